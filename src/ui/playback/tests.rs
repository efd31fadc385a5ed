//! Tests of the fold, on runs of the scheduler alone.

use super::*;
use crate::experiment::Experiment;
use crate::params::{BackendKind, Config};
use crate::policy::PolicyKind;

pub fn log(config: &Config, policy: PolicyKind, chunk: usize) -> (Log, Experiment) {
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..config.clone() });
    let mut events = Vec::new();
    experiment
        .simulation(policy, experiment.modelled_clock())
        .watch_blocks()
        .run(|event| events.push(event))
        .expect("it fits the clock");
    let mut log = Log::default();
    for part in events.chunks(chunk) {
        log.push(part.to_vec());
    }
    (log, experiment)
}

#[test]
fn at_the_end_everything_is_done_and_the_figures_are_the_runs() {
    let config = Config::default();
    let (log, experiment) = log(&config, PolicyKind::PrefixAffinity, 7);
    let mut fold = Fold::new(4, 384);
    fold.seek(&log, log.end());
    let recorder =
        experiment.run(PolicyKind::PrefixAffinity, experiment.modelled_clock()).expect("it fits the clock");
    assert_eq!(experiment.summary(&fold.recorder), experiment.summary(&recorder));
    let done: usize = fold.replicas.iter().map(|r| r.done.len()).sum();
    assert_eq!((done, fold.routed.len(), fold.refused.len()), (24, 24, 0));
    assert!(fold.replicas.iter().all(|r| r.waiting.is_empty() && r.running.is_empty() && r.held == 0));
    assert_eq!(fold.find(7).map(|r| r.arrival.request), Some(7));
}

/// Loads that a policy saw are those that the picture shows, all through a run with preemptions.
#[test]
fn the_picture_is_what_the_router_saw() {
    let config = Config {
        blocks: crate::params::Blocks::Number(70),
        requests: 60,
        rate: 20.0,
        output_min: 100,
        output_max: 200,
        ..Config::default()
    };
    let (log, _) = log(&config, PolicyKind::LeastTokens, 64);
    let mut fold = Fold::new(4, 70);
    let events: Vec<Event> = log.iter().cloned().collect();
    let (mut preempted, mut compared) = (0, 0);
    for event in &events {
        if let What::Routed { decision: Some(decision), .. } = &event.what {
            let shown: Vec<u64> = fold.replicas.iter().map(|r| r.outstanding()).collect();
            assert_eq!(shown, decision.loads, "at {}", event.at);
            compared += 1;
        }
        if let What::StepStarted { start, .. } = &event.what {
            preempted += start.preempted.len();
        }
        fold.take(event);
        if let What::StepStarted { start, .. } = &event.what {
            assert_eq!(fold.replicas[start.replica as usize].held, start.held);
        }
    }
    assert!(preempted > 0 && compared == 60, "{preempted} preemptions");
}

#[test]
fn going_back_is_starting_over_and_what_did_not_change_is_shared() {
    let (log, _) = log(&Config::default(), PolicyKind::RoundRobin, 50);
    let half = log.end() / 2;
    let (mut once, mut back) = (Fold::new(4, 384), Fold::new(4, 384));
    once.seek(&log, half);
    back.seek(&log, log.end());
    back.seek(&log, half);
    assert_eq!(once.replicas, back.replicas);
    let before = once.replicas.clone();
    once.seek(&log, half);
    assert!(before.iter().zip(&once.replicas).all(|(a, b)| Rc::ptr_eq(a, b)));
}
