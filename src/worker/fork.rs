//! Another future of a run: the scheduler without tensors, once as it was and once with the change, in
//! slices between which the worker listens.

use super::run::{BATCH, SLICE, listen, memory_bytes, seconds, settled, tell};
use super::{Finished, MAX_EVENTS, Progress, Told, Trend};
use crate::experiment::Experiment;
use crate::params::{BackendKind, Config, from_query};
use crate::policy::PolicyKind;
use crate::runlog::{Change, Replay};
use crate::units::Time;

/// Runs a configuration as it was and with a change from some moment on, and tells what happens in the
/// second and what both come to.
pub(super) async fn run(run: u32, query: String, (policy, at, change): (PolicyKind, u64, Change)) {
    tell(&Told::Started { run });
    if let Some(Err(message)) = both(run, query, (policy, at, change)).await {
        tell(&Told::Refused { message });
    }
}

/// `None`: it is wanted no more.
async fn both(
    run: u32,
    query: String,
    (policy, at, change): (PolicyKind, u64, Change),
) -> Option<Result<(), String>> {
    let (config, problems) = from_query(&query);
    if let Some(problem) = problems.first() {
        return Some(Err(problem.to_string()));
    }
    // The same schedule as with tensors, in a small part of the time.
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..config });
    let mut original = match Replay::new(&experiment, policy, Vec::new(), false) {
        Ok(original) => original,
        Err(problem) => return Some(Err(problem.to_string())),
    };
    let mut more = true;
    while more {
        if !listen(run).await {
            return None;
        }
        tell(&Told::Started { run }); // Who says nothing is taken for dead.
        let start = seconds();
        while more && seconds() - start < SLICE {
            more = match original.advance() {
                Ok(more) => more,
                Err(too_long) => return Some(Err(too_long.to_string())),
            };
        }
    }
    let summary = Box::new(experiment.summary(original.recorder()));
    tell(&Told::Original { run, summary });
    let mut fork = match Replay::fork(&experiment, policy, Time(at), change, true) {
        Ok(fork) => fork,
        Err(problem) => return Some(Err(problem.to_string())),
    };
    // A yardstick measures the whole run, whenever it is taken up.
    let objectives = fork.final_objectives();
    let mut trend = Trend::new(fork.replicas(), objectives);
    let mut progress = Progress { of: experiment.trace.requests.len() as u32, ..Progress::default() };
    let (mut told, mut wall, mut more) = (0, 0.0, true);
    while more {
        if !listen(run).await {
            return None;
        }
        let start = seconds();
        let (mut events, mut points) = (Vec::new(), Vec::new());
        while more && events.len() < BATCH && seconds() - start < SLICE {
            trend.grow(fork.replicas());
            let advanced = fork.tell(|event| {
                points.extend(trend.observe(event));
                progress.at = event.at;
                progress.finished += settled(event);
                if told < MAX_EVENTS {
                    told += 1;
                    events.push(event.clone());
                }
            });
            more = match advanced {
                Ok(more) => more,
                Err(too_long) => return Some(Err(too_long.to_string())),
            };
        }
        wall += seconds() - start;
        progress.arrived = fork.arrived() as u32;
        tell(&Told::Slice { run, progress, events, points });
    }
    let finished = Finished {
        summary: fork.recorder().summary(&objectives, &experiment.trace.tenants),
        json: String::new(),
        kv_bytes: 0,
        weight_bytes: 0,
        memory_bytes: memory_bytes(),
        wall,
    };
    tell(&Told::Finished { run, finished: Box::new(finished) });
    Some(Ok(()))
}
