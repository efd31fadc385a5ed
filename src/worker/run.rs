//! The worker's event loop: takes jobs, computes in slices, and between two slices listens.

use std::cell::RefCell;

use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{DedicatedWorkerGlobalScope, MessageEvent};

use super::{Finished, Job, MAX_EVENTS, Progress, Told, Trend, bench, fork, sweep, wire};
use crate::engine::{Engine, SharedModel};
use crate::experiment::{Experiment, random_model};
use crate::params::{ClockKind, Config, from_query};
use crate::policy::PolicyKind;
use crate::report::{Report, to_json};
use crate::sim::{Clock, Event, Measured, What};

/// How long a slice computes before it lets the worker listen, in seconds.
pub(super) const SLICE: f64 = 0.025;

/// How long a worker that is told to pause waits before it looks again, in milliseconds.
const NAP: i32 = 40;

/// How many events a message carries at most, so that the page is not long at any one of them.
pub(super) const BATCH: usize = 256;

/// Seconds of the worker's own clock.
#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = performance, js_name = now)]
    fn performance_now() -> f64;
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &js_sys::Function, milliseconds: i32) -> i32;
}

pub(super) fn seconds() -> f64 {
    performance_now() / 1000.0
}

fn scope() -> DedicatedWorkerGlobalScope {
    js_sys::global().unchecked_into()
}

pub(super) fn tell(message: &Told) {
    // The page is gone where this fails, and then nobody is left to be told so.
    let _ = scope().post_message(&wire::encode(message));
}

/// What the jobs of one worker share.
#[derive(Default)]
struct Worker {
    /// The run that is wanted: one that sees another number here gives up.
    wanted: Option<u32>,
    paused: bool,
    model: Option<SharedModel>,
}

thread_local! {
    static WORKER: RefCell<Worker> = RefCell::default();
}

/// Listens to the page, for as long as the worker lives.
pub fn start() {
    std::panic::set_hook(Box::new(|info| {
        tell(&Told::Failed { message: info.to_string() });
        console_error_panic_hook::hook(info);
    }));
    let hear = Closure::<dyn FnMut(MessageEvent)>::new(|event: MessageEvent| {
        if let Some(job) = wire::decode(event.data()) {
            take(job);
        }
    });
    scope().set_onmessage(Some(hear.into_js_value().unchecked_ref()));
    tell(&Told::Ready);
}

fn take(job: Job) {
    match job {
        Job::Race { run, query, policy } => {
            want(run);
            let (config, problems) = from_query(&query);
            match problems.first() {
                Some(problem) => tell(&Told::Refused { message: problem.to_string() }),
                None => spawn_local(race(run, config, policy)),
            }
        }
        Job::Fork { run, query, policy, at, change } => {
            want(run);
            spawn_local(fork::run(run, query, (policy, at, change)));
        }
        Job::Sweep { run, plan, jobs } => {
            want(run);
            spawn_local(sweep::points(run, plan, jobs));
        }
        Job::Equivalents { run, ask, seeds } => {
            want(run);
            spawn_local(sweep::equals(run, ask, seeds));
        }
        Job::Calibrate => {
            let model = WORKER.with_borrow_mut(|w| w.model.get_or_insert_with(random_model).clone());
            bench::measure(&model, &tell);
        }
        Job::Pause => WORKER.with_borrow_mut(|worker| worker.paused = true),
        Job::Resume => WORKER.with_borrow_mut(|worker| worker.paused = false),
        Job::Stop => WORKER.with_borrow_mut(|worker| worker.wanted = None),
    }
}

/// Takes a run up: whatever else it was at is given up.
fn want(run: u32) {
    WORKER.with_borrow_mut(|worker| {
        worker.wanted = Some(run);
        worker.paused = false;
    });
}

/// Lets the worker listen; whether the run is still wanted afterwards.
pub(super) async fn listen(run: u32) -> bool {
    let mut wait = 0;
    loop {
        let timer = js_sys::Promise::new(&mut |resolve, _| {
            set_timeout(&resolve, wait);
        });
        // A timer's promise is never refused.
        let _ = JsFuture::from(timer).await;
        let (wanted, paused) = WORKER.with_borrow(|worker| (worker.wanted == Some(run), worker.paused));
        if !wanted || !paused {
            return wanted;
        }
        wait = NAP;
    }
}

/// Runs a configuration under one policy in slices, and tells what happens.
async fn race(run: u32, config: Config, policy: PolicyKind) {
    tell(&Told::Started { run });
    let model = WORKER.with_borrow(|worker| worker.model.clone());
    let experiment = Experiment::reusing(config, model);
    WORKER.with_borrow_mut(|worker| worker.model = experiment.model().or(worker.model.take()));
    let clock: Box<dyn Clock> = match experiment.config.clock {
        ClockKind::Modelled => experiment.modelled_clock(),
        ClockKind::Measured => Box::new(Measured::new(seconds)),
    };
    let mut simulation = experiment.simulation(policy, clock).watch_blocks();
    let mut recorder = experiment.recorder();
    let mut trend = Trend::new(experiment.config.replicas as usize, experiment.config.objectives());
    let mut progress = Progress { of: experiment.trace.requests.len() as u32, ..Progress::default() };
    let (mut told, mut wall, mut more) = (0, 0.0, true);
    while more {
        if !listen(run).await {
            return;
        }
        let start = seconds();
        let (mut events, mut points) = (Vec::new(), Vec::new());
        while more && events.len() < BATCH && seconds() - start < SLICE {
            let advanced = simulation.advance(|event| {
                recorder.observe(&event);
                points.extend(trend.observe(&event));
                progress.at = event.at;
                progress.finished += settled(&event);
                if told < MAX_EVENTS {
                    told += 1;
                    events.push(event);
                }
            });
            more = match advanced {
                Ok(more) => more,
                Err(too_long) => return tell(&Told::Refused { message: too_long.to_string() }),
            };
        }
        wall += seconds() - start;
        progress.arrived = simulation.arrived() as u32;
        tell(&Told::Slice { run, progress, events, points });
    }
    let summary = experiment.summary(&recorder);
    let report = Report::new(&experiment, policy, summary.clone());
    let kv_bytes = simulation.engine().replicas().iter().map(|r| r.kv_bytes() as u64).sum();
    let weight_bytes = experiment.model().map_or(0, |model| model.bytes() as u64);
    let json = to_json(&[report]);
    let finished = Finished { summary, json, kv_bytes, weight_bytes, memory_bytes: memory_bytes(), wall };
    tell(&Told::Finished { run, finished: Box::new(finished) });
}

/// Bytes of this instance's memory, which grows and never shrinks.
pub(super) fn memory_bytes() -> u64 {
    const PAGE: u64 = 65_536;
    core::arch::wasm32::memory_size::<0>() as u64 * PAGE
}

/// How many requests an event finishes or refuses.
pub(super) fn settled(event: &Event) -> u32 {
    match &event.what {
        What::StepEnded { end, .. } => end.emitted.iter().filter(|token| token.last).count() as u32,
        What::Rejected { .. } => 1,
        _ => 0,
    }
}
