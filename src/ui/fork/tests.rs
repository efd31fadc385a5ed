//! Tests of the fork: its worker is played by what it would tell.

use super::*;
use crate::experiment::Experiment;
use crate::params::BackendKind;
use crate::runlog::Replay;
use crate::ui::playback::tests::log;
use crate::ui::state::{Action, State};
use crate::units::Time;
use crate::worker::{Finished, Progress};

/// Plays a fork's worker.
fn told(config: &Config, fork: &Fork) -> Vec<Told> {
    let run = fork.future.run;
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..config.clone() });
    let original = experiment.run(fork.of.1, experiment.modelled_clock()).expect("it fits the clock");
    let mut replay =
        Replay::fork(&experiment, fork.of.1, Time(fork.at), fork.change.clone(), true).expect("right");
    let mut events = Vec::new();
    while replay.tell(|event| events.push(event.clone())).expect("it fits the clock") {}
    let progress = Progress { at: events.last().map_or(0, |e| e.at), ..Progress::default() };
    let objectives = replay.final_objectives();
    let summary = replay.recorder().summary(&objectives, &experiment.trace.tenants);
    let finished =
        Finished { summary, json: String::new(), kv_bytes: 0, weight_bytes: 0, memory_bytes: 0, wall: 0.0 };
    vec![
        Told::Started { run },
        Told::Original { run, summary: Box::new(experiment.summary(&original)) },
        Told::Slice { run, progress, events, points: Vec::new() },
        Told::Finished { run, finished: Box::new(finished) },
    ]
}

fn state_with(query: &str, part: f64) -> Rc<State> {
    let mut state = Rc::new(State::open(query, false));
    let config = state.config.clone();
    for lane in 0..state.lanes.len() {
        let Lane { policy, run, .. } = state.lanes[lane];
        let events: Vec<Event> = log(&config, policy, 64).0.iter().cloned().collect();
        let progress = Progress { at: events.last().map_or(0, |e| e.at), ..Progress::default() };
        state = state.reduce(Action::Heard(lane, Told::Slice { run, progress, events, points: Vec::new() }));
    }
    let at = (state.horizon() as f64 * part) as u64;
    state.reduce(Action::Seek(at))
}

#[test]
fn a_fork_is_its_lane_up_to_the_moment_and_then_another() {
    for (key, value) in
        [("policy", "prefix-affinity"), ("replicas", "6"), ("replicas", "1"), ("slo_ttft", "0.1")]
    {
        let mut state = state_with("rate=16", 0.4);
        let change = Change::of(&state.config, key, value).expect("right");
        state = state.reduce(Action::Fork(Act::Ask { lane: 0, change }));
        let fork = state.fork.clone().expect("asked for");
        assert_eq!(
            (fork.at, fork.wanted(), fork.agreement(&state.lanes[0])),
            (state.at, Some(fork.future.run), None)
        );
        assert!(state.horizon() >= fork.at, "what is shown stays, though the fork has not come so far");
        for said in told(&state.config, &fork) {
            state = state.reduce(Action::Fork(Act::Heard(said)));
        }
        let fork = state.fork.clone().expect("asked for");
        let same = state.lanes[0].log.until(fork.at);
        assert_eq!(fork.agreement(&state.lanes[0]), Some(Agreement::Same(same)), "{key}");
        assert!(same > 20 && fork.wanted().is_none() && fork.original.is_some());
        let parts = fork.future.log.iter().zip(state.lanes[0].log.iter()).any(|(a, b)| !super::same(a, b));
        assert_eq!(parts, key != "slo_ttft", "{key}");
        // Against another lane it is not the same from the beginning.
        assert!(matches!(fork.agreement(&state.lanes[2]), Some(Agreement::Differs(_))));
        let command = fork.command(&state.config);
        let tail = format!(" --change {key}={value} --policy round-robin --rate 16");
        assert!(command.starts_with("warmroute fork --at ") && command.ends_with(&tail), "{command}");
        let dropped = Rc::clone(&state).reduce(Action::Fork(Act::Drop));
        assert!(dropped.fork.is_none() && dropped.at <= dropped.horizon());
        assert!(state.reduce(Action::Restart).fork.is_none());
    }
}

#[test]
fn a_worker_that_dies_is_replaced_once_and_then_on_demand() {
    let mut state = state_with("", 0.5);
    let change = Change::of(&state.config, "max_imbalance", "1.1").expect("right");
    state = state.reduce(Action::Fork(Act::Ask { lane: 2, change }));
    let run = |state: &State| state.fork.as_ref().and_then(|fork| fork.wanted());
    let first = run(&state);
    state = state.reduce(Action::Fork(Act::Died("gone".into())));
    let second = run(&state);
    assert!(second.is_some() && first != second);
    state = state.reduce(Action::Fork(Act::Died("gone".into())));
    assert_eq!(run(&state), None);
    let status = state.fork.as_ref().map(|fork| fork.future.status.clone());
    assert_eq!(status, Some(Status::Dead("gone".into())));
    // The fork's column is the one after the lanes.
    state = state.reduce(Action::Revive(3));
    assert!(run(&state).is_some());
    let fork = state.fork.clone().expect("asked for");
    for said in told(&state.config, &fork) {
        state = state.reduce(Action::Fork(Act::Heard(said)));
    }
    assert_eq!(run(&state), None);
}

#[test]
fn a_stop_watch_is_in_the_way() {
    assert_eq!(obstacle(&Config::default()), None);
    assert!(obstacle(&Config { clock: ClockKind::Measured, ..Config::default() }).is_some());
}
