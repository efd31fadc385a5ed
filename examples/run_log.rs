//! How large a run log is, and how long it takes to find a time in it.
//!
//! `cargo run --release --example run_log`: from 10³ to 10⁵ requests on 16 replicas, priced as
//! Llama-3.1-8B on H100s, with prompts of 64 tenants that share their beginnings; near what the fleet can
//! serve, and with twice as many arrivals, so that queues grow without end.

#[cfg(not(target_arch = "wasm32"))]
use std::{sync::OnceLock, time::Instant};

use host::processor_seconds;
use warmroute::experiment::Experiment;
use warmroute::params::{Config, param};
use warmroute::policy::PolicyKind;
use warmroute::runlog::{Change, Replay, RunLog, State, record};
use warmroute::units::Time;

#[allow(dead_code, reason = "another benchmark asks for more")]
#[path = "../benches/simulate/host.rs"]
mod host;

/// Times that are looked for in each log.
const SEEKS: u64 = 500;

fn main() {
    host::print(
        "| requests | rate | policy | entries, B a request | checkpoints | decisions | in all | to write them | the run without | seek, mean | longest | most read | fork at half |",
    );
    host::print("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for rate in [240.0, 480.0] {
        for requests in [1_000, 10_000, 100_000] {
            for policy in [PolicyKind::RoundRobin, PolicyKind::PrefixAffinity] {
                measure(requests, rate, policy);
            }
        }
    }
}

/// Seconds that have passed, finely.
#[cfg(not(target_arch = "wasm32"))]
#[expect(clippy::disallowed_methods, reason = "a benchmark's stop-watch")]
fn seconds() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

/// Of the processor's, in node.
#[cfg(target_arch = "wasm32")]
use processor_seconds as seconds;

/// Looks for a time, thrice; the least of the three times is not that of something else that the machine
/// does.
fn seek(log: &RunLog, at: Time) -> (f64, State) {
    let once = |_| {
        let start = seconds();
        let state = log.seek(at);
        (seconds() - start, state)
    };
    (0..3).map(once).min_by(|(a, _), (b, _)| a.total_cmp(b)).expect("three is not none")
}

fn measure(requests: u32, rate: f64, policy: PolicyKind) {
    let mut config = Config::default();
    param("accelerator").expect("it exists").set(&mut config, "h100").expect("it is one");
    let config = Config {
        requests,
        rate,
        replicas: 16,
        tenants: 64,
        repeat: 12,
        user_min: 64,
        user_max: 512,
        output_min: 64,
        output_max: 358,
        ..config
    };
    let experiment = Experiment::new(config);
    let start = processor_seconds();
    experiment.run_modelled(policy).expect("it fits the clock");
    let bare = processor_seconds() - start;
    let start = processor_seconds();
    let run = record(&experiment, policy, false).expect("it fits the clock");
    let write = processor_seconds() - start;
    let log = &run.log;
    let (mut longest, mut sum, mut most) = (0.0f64, 0.0, 0);
    for at in 0..SEEKS {
        let (least, state) = seek(log, Time(log.end().0 / SEEKS * at + at));
        longest = longest.max(least);
        sum += least;
        most = most.max(state.read);
    }
    let mean = sum / SEEKS as f64;
    let (bytes, checkpoints) = (log.bytes() as f64, log.checkpoint_bytes() as f64);
    let each = |bytes: f64| bytes / f64::from(requests);
    let start = processor_seconds();
    let change = Change::Policy(PolicyKind::LeastTokens);
    let fork = Replay::fork(&experiment, policy, Time(log.end().0 / 2), change, false).expect("a change");
    fork.finish().expect("it fits the clock");
    host::print(&format!(
        "| {requests} | {rate} | {} | {:.0} | {:.0} | {:.0} | {:.1} MB | {:.2} s | {:.2} s | {:.2} ms | {:.2} ms | {:.0} kB | {:.1} s |",
        policy.name(),
        each(bytes),
        each(checkpoints),
        each(log.arrival_bytes() as f64),
        (bytes + checkpoints) / 1e6,
        write - bare,
        bare,
        mean * 1e3,
        longest * 1e3,
        most as f64 / 1e3,
        processor_seconds() - start,
    ));
}
