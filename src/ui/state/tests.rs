//! Tests of the reducer: workers are played by what they would tell.

use super::*;
use crate::params::{BackendKind, from_query};
use crate::sim::Event;
use crate::worker::{Finished, Progress, Trend};

fn act(state: &mut Rc<State>, action: Action) {
    *state = Rc::clone(state).reduce(action);
}

/// Plays a worker: everything it would tell of a lane's run.
fn told(state: &State, lane: usize, slice: usize) -> Vec<Told> {
    let Lane { run, policy, .. } = state.lanes[lane];
    let config = Config { backend: BackendKind::Modelled, ..from_query(&state.race_query()).0 };
    let experiment = Experiment::new(config);
    let mut events: Vec<Event> = Vec::new();
    let (mut recorder, mut points) = (experiment.recorder(), Vec::new());
    let mut trend = Trend::new(experiment.config.replicas as usize, experiment.config.objectives());
    experiment
        .simulation(policy, experiment.modelled_clock())
        .watch_blocks()
        .run(|event| {
            recorder.observe(&event);
            points.extend(trend.observe(&event));
            events.push(event);
        })
        .expect("it fits the clock");
    let mut told = vec![Told::Started { run }];
    for part in events.chunks(slice) {
        let progress = Progress { at: part.last().expect("not empty").at, ..Progress::default() };
        told.push(Told::Slice { run, progress, events: part.to_vec(), points: Vec::new() });
    }
    let summary = experiment.summary(&recorder);
    let finished =
        Finished { summary, json: String::new(), kv_bytes: 0, weight_bytes: 0, memory_bytes: 0, wall: 0.0 };
    told.push(Told::Finished { run, finished: Box::new(finished) });
    told
}

fn opened(query: &str, still: bool) -> Rc<State> {
    Rc::new(State::open(query, still))
}

#[test]
fn time_waits_for_the_slowest_lane_and_stops_at_the_end() {
    let mut state = opened("", false);
    for lane in [0, 1] {
        for said in told(&state, lane, 50) {
            act(&mut state, Action::Heard(lane, said));
        }
    }
    assert_eq!((state.horizon(), state.starved(), state.settled()), (0, true, false));
    let same = Rc::clone(&state).reduce(Action::Tick(0.1));
    assert!(Rc::ptr_eq(&state, &same), "nothing to show, nothing to draw");
    for said in told(&state, 2, 50).into_iter().take(3) {
        act(&mut state, Action::Heard(2, said));
    }
    act(&mut state, Action::Tick(60.0));
    assert_eq!(state.at, state.horizon());
    assert!(state.at > 0 && state.playing() && !state.over());
    act(&mut state, Action::Died(2, "gone".into()));
    act(&mut state, Action::Tick(60.0));
    assert!(state.over() && !state.playing(), "the other lanes go on to their end");
    assert_eq!(state.lanes[2].status, Status::Dead("gone".into()));
}

#[test]
fn the_replay_takes_about_ten_seconds() {
    let mut state = opened("", false);
    for lane in 0..3 {
        for said in told(&state, lane, 50) {
            act(&mut state, Action::Heard(lane, said));
        }
    }
    assert_eq!(state.hint, state.end(), "the modelled clock says beforehand how long it takes");
    let mut ticks = 0;
    while state.playing() {
        act(&mut state, Action::Tick(0.016));
        ticks += 1;
    }
    assert!((600..650).contains(&ticks), "{ticks}");
    act(&mut state, Action::Play);
    assert_eq!((state.at, state.playing()), (0, true), "play at the end plays again");
}

#[test]
fn what_is_out_of_range_is_refused_and_the_last_value_stays() {
    let mut state = opened("rate=12", false);
    let run = state.lanes[0].run;
    act(&mut state, Action::Edit { key: "replicas", text: "9999".into() });
    assert_eq!((state.config.replicas, state.lanes[0].run), (4, run), "nothing is run anew");
    let (text, problem) = state.text("replicas");
    assert!(text == "9999" && problem.expect("refused").contains("from 1 to 1024"));
    act(&mut state, Action::Edit { key: "replicas", text: "3".into() });
    assert_eq!((state.config.replicas, state.text("replicas")), (3, ("3".into(), None)));
    assert_eq!(state.query(), "rate=12&replicas=3");
    act(&mut state, Action::Edit { key: "user_min", text: "33".into() });
    assert!(state.text("user_min").1.expect("refused").contains("user_min = 33"));
}

#[test]
fn what_an_earlier_run_still_says_is_not_heard() {
    let mut state = opened("", false);
    let late = told(&state, 0, 50);
    act(&mut state, Action::Restart);
    for said in late {
        act(&mut state, Action::Heard(0, said));
    }
    assert_eq!((state.lanes[0].status.clone(), state.lanes[0].log.len()), (Status::Starting, 0));
}

#[test]
fn under_a_stop_watch_lanes_take_turns() {
    let mut state = opened("clock=measured", false);
    let wanted = |state: &State| [0, 1, 2].map(|lane| state.wanted(lane).is_some());
    assert_eq!(wanted(&state), [true, false, false]);
    act(&mut state, Action::Died(0, "gone".into()));
    assert_eq!(wanted(&state), [false, true, false]);
    act(&mut state, Action::Revive(0));
    assert_eq!(wanted(&state), [true, false, false]);
    act(&mut state, Action::Cancel);
    assert_eq!((wanted(&state), state.settled()), ([false; 3], true));
    assert_eq!([0, 1, 2].map(|lane| opened("", false).wanted(lane).is_some()), [true; 3]);
}

#[test]
fn to_run_what_was_cancelled_is_to_run_it_anew() {
    let mut state = opened("", false);
    let run = state.lanes[0].run;
    act(&mut state, Action::Cancel);
    act(&mut state, Action::Play);
    assert_ne!(state.lanes[0].run, run);
    assert!([0, 1, 2].into_iter().all(|lane| state.wanted(lane).is_some()));
}

#[test]
fn a_price_beyond_the_clock_leaves_the_page_standing() {
    let state = opened(&format!("cost={0},{0},{0},{0},{0},{0}", u64::MAX), false);
    assert!(state.hint > 0 && state.notices.is_empty());
}

#[test]
fn without_motion_only_the_result_is_shown() {
    let mut state = opened("", true);
    for lane in 0..3 {
        for said in told(&state, lane, 50) {
            assert_eq!(state.at, 0);
            act(&mut state, Action::Heard(lane, said));
        }
    }
    assert!(state.over() && !state.playing() && state.at > 0);
    act(&mut state, Action::Seek(5));
    assert_eq!((state.at, state.paused), (5, true));
}

#[test]
fn what_the_address_says_wrong_is_said_and_can_be_dismissed() {
    let mut state = opened("?tenant=3&rate=0&seed=7", false);
    assert_eq!((state.notices.len(), state.config.seed), (2, 7));
    act(&mut state, Action::Dismiss);
    assert!(state.notices.is_empty());
}

#[test]
fn the_cold_start_is_part_of_the_address_and_disturbs_no_race() {
    let mut state = opened("rate=12&cold_precision=int4", false);
    let run = state.lanes[0].run;
    assert_eq!(state.query(), "rate=12&cold_precision=int4");
    assert_eq!(state.race_query(), "rate=12");
    act(&mut state, Action::Cold(Settings::default()));
    assert_eq!((state.query().as_str(), state.lanes[0].run), ("rate=12", run));
    act(&mut state, Action::Open("rate=12&cold_precision=fp32".into()));
    assert_eq!((state.query().as_str(), state.lanes[0].run), ("rate=12&cold_precision=fp32", run));
}
