//! Replicas that come and go, as wholes: a fleet that is left alone is the plain simulator's, a constant load
//! settles at the count that the formula gives, and whatever fails, no request is lost and nothing is served by a
//! replica that is not ready.
#![cfg(not(target_arch = "wasm32"))]

use std::process::Command;

use proptest::prelude::*;
use serde_json::Value;

use warmroute::autoscale::life::{Change, End, Phase, Victim};
use warmroute::autoscale::run::Run;
use warmroute::autoscale::scaler::Pending;
use warmroute::autoscale::signals::FleetSample;
use warmroute::autoscale::{Lab, Report, Routed, ScaleDecision, ScalerKind, Settings, Watcher, reuse};
use warmroute::engine::{RequestId, StepStart};
use warmroute::experiment::Experiment;
use warmroute::fleet::Devices;
use warmroute::params::{BackendKind, Config};
use warmroute::policy::PolicyKind;
use warmroute::sim::{Outcome, Record};
use warmroute::trace::generate::LoadShape as Shape;
use warmroute::units::Time;

/// Replicas that price the page's own model: a few requests a second each.
fn config(rate: f64, replicas: u32, seed: u64) -> Config {
    Config {
        backend: BackendKind::Modelled,
        devices: Devices::Separate,
        rate,
        replicas,
        seed,
        slo_itl: 0.2,
        ..Config::default()
    }
}

/// Ten seconds from order to service.
fn quick() -> Settings {
    Settings {
        image: 1.0,
        process: 2.0,
        weights: Some(3.0),
        compile: 4.0,
        warm_up: 0.0,
        duration: 120.0,
        shape_at: 30.0,
        hold: 40.0,
        rise: 10.0,
        grace: 5.0,
        ..Settings::default()
    }
}

fn text(run: &Run) -> String {
    let records: Vec<&Record> = run.recorder.records().collect();
    serde_json::to_string(&(records, &run.samples, &run.decisions, &run.changes, &run.reroutes, &run.bills))
        .expect("plain data")
}

#[test]
fn a_fleet_that_is_left_alone_is_the_plain_simulators() {
    for (period, own) in [(0.0, false), (0.7, false), (0.7, true)] {
        let config = Config { signal_period: period, signal_own: own, ..config(9.0, 3, 5) };
        let lab = Lab::new(config.clone(), quick(), None);
        let plain = Experiment::with_trace(config, lab.trace.clone(), None);
        for policy in PolicyKind::of_changing_fleets() {
            let recorder = plain.run_modelled(policy).expect("it fits the clock");
            let run = lab.run(ScalerKind::Fixed, policy).expect("it fits the clock");
            assert!(run.recorder.records().eq(recorder.records()), "{}", policy.name());
            let objectives = lab.config.objectives();
            let summary = |r: &warmroute::sim::Recorder| r.summary(&objectives, &lab.trace.tenants);
            assert_eq!(summary(&run.recorder), summary(&recorder), "{}", policy.name());
            assert!(run.bills.is_empty() && run.reroutes.is_empty());
        }
    }
}

#[test]
fn a_constant_load_settles_at_the_count_of_the_formula() {
    let settings = Settings { shape: Shape::Constant, duration: 900.0, max: 20, ..quick() };
    let lab = Lab::new(config(8.0, 1, 3), settings, None);
    let needed = (8.0 * 1.1 / lab.capacity).ceil() as i64;
    assert!(needed > 1, "{}", lab.capacity);
    for scaler in [ScalerKind::Predictive, ScalerKind::Oracle] {
        let run = lab.run(scaler, PolicyKind::LeastTokens).expect("it fits the clock");
        // Arrivals are random: over ten seconds by a fifth, over a minute by a tenth.
        let last: Vec<i64> = run
            .decisions
            .iter()
            .filter(|d| d.at > 600 * 1_000_000_000_000)
            .map(|d| i64::from(d.desired))
            .collect();
        let mean = last.iter().sum::<i64>() as f64 / last.len() as f64;
        let most = if scaler == ScalerKind::Oracle { 1.8 } else { 1.5 } * needed as f64;
        assert!(
            (needed as f64 - 1.0..=most).contains(&mean),
            "{}: {mean}, not about {needed}",
            scaler.name()
        );
    }
}

#[test]
fn pending_replicas_that_are_forgotten_compound() {
    let ask = |pending| {
        let settings = Settings {
            pending,
            weights: Some(60.0),
            target: Some(0.2),
            max: 64,
            interval: Some(5.0),
            ..quick()
        };
        let lab = Lab::new(config(3.0, 1, 1), Settings { factor: 6.0, ..settings }, None);
        let run = lab.run(ScalerKind::Apa, PolicyKind::LeastTokens).expect("it fits the clock");
        Report::new(&lab, ScalerKind::Apa, PolicyKind::LeastTokens, &run).scaling.most_desired
    };
    let (counted, ignored) = (ask(Pending::Counted), ask(Pending::Ignored));
    assert!(ignored >= 2 * counted, "{ignored} against {counted}");
}

#[test]
fn an_idle_fleet_goes_to_zero_and_its_next_request_waits_for_a_cold_start() {
    let lines = "{\"arrival\": 1, \"prompt\": \"a\", \"max_tokens\": 3}\n{\"arrival\": 600, \"prompt\": \"b\", \"max_tokens\": 3}\n";
    let trace = warmroute::trace::import::read_json_lines(lines, 260).expect("a good trace");
    let settings = Settings { min: 0, grace: 30.0, scrape: 5.0, down_window: Some(0.0), ..quick() };
    let lab = Lab::new(config(1.0, 1, 0), settings, Some(trace.into()));
    let run = lab.run(ScalerKind::Keda, PolicyKind::RoundRobin).expect("it fits the clock");
    let to = |phase: Phase| {
        run.changes.iter().filter(|c| c.to == phase).map(|c| Time(c.at).seconds()).collect::<Vec<_>>()
    };
    // Idle since second 1; 360 s of cooldown; the next look is at a multiple of 15 s.
    assert_eq!(to(Phase::Gone)[0], 375.0);
    let second = run.recorder.record(1).expect("it arrived");
    // A look at second 600 comes before the arrival; the next at 615 starts one, which takes ten seconds.
    let ttft = second.ttft().expect("it was served").seconds();
    assert!((25.0..25.5).contains(&ttft), "{ttft}");
    let first = run.decisions.iter().find(|d| d.counts.held == 1).expect("somebody waited at the gateway");
    assert_eq!((first.desired, first.formula.as_str()), (1, "ceil(1 waiting ÷ 5) = 1"));
}

#[test]
fn a_warm_pool_is_there_at_once_and_is_filled_again() {
    let settings = Settings { warm_pool: 2, wake: 1.0, shape: Shape::Step, factor: 4.0, ..quick() };
    let lab = Lab::new(config(3.0, 1, 2), settings, None);
    let run = lab.run(ScalerKind::Oracle, PolicyKind::LeastTokens).expect("it fits the clock");
    let woken: Vec<&Change> = run.changes.iter().filter(|c| c.to == Phase::Waking).collect();
    assert!(woken.len() >= 2);
    for change in woken {
        let serves = run.changes.iter().find(|c| c.replica == change.replica && c.to == Phase::Serving);
        assert_eq!(serves.map(|c| c.at - change.at), Some(1_000_000_000_000));
    }
    let warm = run.changes.iter().filter(|c| c.to == Phase::Warm).count();
    assert!(warm >= 4, "two at first, and one for each that was taken: {warm}");
}

#[test]
fn a_planned_replacement_that_starts_first_never_has_fewer() {
    let fewest = |start_before_drain| {
        let settings =
            Settings { start_before_drain, replace_at: Some(40.0), shape: Shape::Constant, ..quick() };
        let lab = Lab::new(config(4.0, 3, 2), Settings { scrape: 1.0, ..settings }, None);
        let run = lab.run(ScalerKind::Fixed, PolicyKind::LeastTokens).expect("it fits the clock");
        let replaced = run.bills.iter().filter(|b| b.replica < 3).count();
        assert_eq!((replaced, run.unfinished), (3, 0), "every old one is gone");
        run.samples.iter().map(|s| s.serving).min()
    };
    assert_eq!((fewest(true), fewest(false)), (Some(3), Some(2)));
}

#[test]
fn a_failure_sends_its_requests_elsewhere_and_says_so() {
    let lab = Lab::new(config(9.0, 2, 4), Settings { fail_at: Some(50.0), ..quick() }, None);
    let run = lab.run(ScalerKind::Fixed, PolicyKind::LeastTokens).expect("it fits the clock");
    assert!(!run.reroutes.is_empty());
    assert!(run.reroutes.iter().all(|r| r.from == 0 && r.end == End::Failed && r.to.is_some()));
    assert!(run.reroutes.iter().any(|r| r.lost_tokens > 0));
    let report = Report::new(&lab, ScalerKind::Fixed, PolicyKind::LeastTokens, &run);
    assert_eq!((report.completed, report.unfinished, report.removal.failed), (report.arrived, 0, 1));
    assert!(report.removal.cached_tokens_lost > 0 && report.removal.extra_prefill_tokens > 0);
}

#[test]
fn who_maps_by_modulo_loses_its_reuse_when_n_changes() {
    let settings = Settings { shape: Shape::Constant, duration: 400.0, ..quick() };
    let config = Config {
        tenants: 40,
        repeat: 6,
        blocks: warmroute::params::Blocks::Number(700),
        ..config(6.0, 4, 8)
    };
    let lab = Lab::new(config, settings, None);
    let around =
        |policy| reuse::change(&lab.config, &lab.trace, policy, (4, 5), 200.0, 10.0).expect("it fits");
    let [modulo, ring, rendezvous] = PolicyKind::HASHES.map(around);
    let fall = |a: &reuse::Around| a.before.expect("it ran") - a.lowest.expect("it ran");
    assert!(modulo.moved > 0.75 && ring.moved < 0.3 && rendezvous.moved < 0.25);
    assert!(fall(&modulo) > 1.5 * fall(&ring).max(fall(&rendezvous)), "{modulo:?} {ring:?} {rendezvous:?}");
}

/// Keeps what it is told, with its rank in the order of one instant.
#[derive(Default)]
struct Log {
    ranks: Vec<(Time, u8)>,
    routed: Vec<(Time, RequestId, u32)>,
    started: Vec<(Time, u32)>,
}

impl Watcher for Log {
    fn routed(&mut self, at: Time, request: RequestId, routed: &Routed, again: bool) {
        self.routed.push((at, request, routed.replica));
        if !again {
            self.ranks.push((at, 4));
        }
    }
    fn started(&mut self, at: Time, start: &StepStart) {
        self.started.push((at, start.replica));
        self.ranks.push((at, 5));
    }
    fn ended(&mut self, at: Time, _replica: u32, _finished: &[RequestId]) {
        self.ranks.push((at, 0));
    }
    fn decided(&mut self, decision: &ScaleDecision) {
        self.ranks.push((Time(decision.at), 3));
    }
    fn sampled(&mut self, sample: &FleetSample) {
        self.ranks.push((sample.time(), 2));
    }
}

/// When a replica served, and when it was gone.
fn life(changes: &[Change], replica: u32) -> (Option<u64>, u64, u64) {
    let at = |to: Phase| changes.iter().find(|c| c.replica == replica && c.to == to).map(|c| c.at);
    let gone = at(Phase::Gone).unwrap_or(u64::MAX);
    (at(Phase::Serving), at(Phase::Draining).unwrap_or(gone), gone)
}

fn check(lab: &Lab, run: &Run, log: &Log) {
    assert!(log.ranks.is_sorted(), "the order of one instant");
    for &(at, request, replica) in &log.routed {
        let (served, left, _) = life(&run.changes, replica);
        assert!(
            served.is_some_and(|from| from <= at.0) && at.0 <= left,
            "{request} went to {replica} at {at}"
        );
    }
    for &(at, replica) in &log.started {
        let (served, _, gone) = life(&run.changes, replica);
        assert!(served.is_some_and(|from| from <= at.0) && at.0 < gone, "{replica} began a step at {at}");
    }
    assert_eq!((run.unfinished, run.recorder.records().count()), (0, lab.trace.requests.len()));
    for record in run.recorder.records() {
        match record.outcome {
            Outcome::Served { finished, generated, first_token, .. } => {
                assert!(finished.is_some() && first_token <= finished, "{record:?}");
                assert_eq!(u64::from(generated), record.max_tokens, "{record:?}");
            }
            Outcome::Rejected(_) => {}
        }
    }
    // Whoever was re-routed was sent on, at once or from the gateway.
    for reroute in &run.reroutes {
        let sent = log
            .routed
            .iter()
            .any(|(at, id, to)| *id == reroute.request && at.0 >= reroute.at && *to != reroute.from);
        assert!(sent, "{reroute:?}");
    }
    let bounds = lab.settings.bounds();
    assert!(run.decisions.iter().all(|d| d.desired <= bounds.max));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn whatever_fails_no_request_is_lost(
        seed in 0u64..1000,
        (rate, factor) in (1.0f64..6.0, 0.5f64..6.0),
        (scaler, policy) in (0..ScalerKind::ALL.len(), 0usize..8),
        (shape, victim) in (0usize..5, 0usize..3),
        (min, replicas, pool) in (0u32..3, 1u32..4, 0u32..3),
        phases in prop::array::uniform4(0u32..12),
        (grace, mtbf) in (0u32..6, prop::option::of(15.0f64..200.0)),
        (preempt, replace, first) in (any::<bool>(), any::<bool>(), any::<bool>()),
        (ignored, scrape, delay) in (any::<bool>(), 1u32..6, 0u32..8),
        period in prop_oneof![Just(0.0), 0.3f64..4.0],
    ) {
        // Compute utilisation is known only of accelerators.
        let kind = ScalerKind::ALL[scaler];
        let kind = if kind.reads_compute() { ScalerKind::Kpa } else { kind };
        let settings = Settings {
            scaler: vec![kind],
            min: min.min(replicas),
            max: 8,
            warm_pool: pool,
            shape: Shape::ALL[shape],
            victim: [Victim::Youngest, Victim::Emptiest, Victim::Coldest][victim],
            factor,
            image: phases[0].into(),
            process: phases[1].into(),
            weights: Some(phases[2].into()),
            compile: phases[3].into(),
            grace: grace.into(),
            mtbf,
            preempt_at: preempt.then_some(40.0),
            notice: 3.0,
            replace_at: replace.then_some(60.0),
            start_before_drain: first,
            pending: if ignored { Pending::Ignored } else { Pending::Counted },
            scrape: scrape.into(),
            delay: delay.into(),
            down_window: Some(10.0),
            ..quick()
        };
        let config = Config { signal_period: period, ..config(rate, replicas, seed) };
        prop_assert_eq!(settings.validate(&config, false), Ok(()));
        let lab = Lab::new(config, settings, None);
        let policy = PolicyKind::of_changing_fleets().nth(policy).expect("there are eight");
        let mut log = Log::default();
        let run = lab.scaled(kind, policy).run(&mut log).expect("it fits the clock");
        check(&lab, &run, &log);
        prop_assert_eq!(text(&run), text(&lab.run(kind, policy).expect("it fits the clock")));
        let report = Report::new(&lab, kind, policy, &run);
        prop_assert!(report.overload.bad_while_waiting <= report.overload.bad);
        prop_assert!(report.spent.serving_seconds <= report.spent.replica_seconds + 1e-9);
    }
}

fn warmroute(args: &[&str]) -> (bool, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_warmroute"))
        .arg("autoscale")
        .args(args)
        .output()
        .expect("it was built");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is text");
    (output.status.success(), text(output.stdout), text(output.stderr))
}

const SHORT: [&str; 8] = ["--duration", "60", "--shape-at", "20", "--rate", "4", "--hold", "20"];

#[test]
fn the_command_prints_a_table_and_json() {
    let (fine, out, error) = warmroute(&[&SHORT[..], &["--scaler", "hpa,keda", "--decisions"]].concat());
    assert!(fine, "{error}");
    assert!(out.contains("| hpa ") && out.contains("| keda ") && out.contains("late by s"), "{out}");
    let args = [&SHORT[..], &["--scaler", "all", "--json", "--samples", "--decisions"]].concat();
    let (fine, out, error) = warmroute(&args);
    assert!(fine, "{error}");
    assert_eq!(warmroute(&args).1, out, "the same bytes");
    let runs: Value = serde_json::from_str(&out).expect("it is JSON");
    let runs = runs.as_array().expect("an array");
    assert_eq!(runs.len(), ScalerKind::ALL.len());
    for (run, kind) in runs.iter().zip(ScalerKind::ALL) {
        assert_eq!(run["scaler"], kind.name());
        for path in [
            "/overload/area",
            "/spent/replica_seconds",
            "/headroom/replicas",
            "/samples/0/mean/compute",
            "/first_moves/signals/0/signal",
            "/removal/extra_prefill_tokens",
            "/decisions/0/formula",
            "/configuration/scrape",
        ] {
            assert!(run.pointer(path).is_some_and(|value| !value.is_null()), "{} {path}", kind.name());
        }
    }
}

#[test]
fn wrong_input_says_what_would_be_right() {
    for (args, parts) in [
        (&["--min", "5", "--max", "3"][..], &["--min", "above max = 3"][..]),
        (&["--scrape", "10", "--scaler", "kpa"], &["--scrape", "kpa", "window of 6 s"]),
        (&["--scrape", "0"], &["--scrape", "`0`", "from 0.1"]),
        (&["--bandwidth", "-1"], &["--bandwidth", "`-1`"]),
        (&["--scaler", "hpaa"], &["--scaler", "did you mean `hpa`"]),
        (&["--scalr", "hpa"], &["--scalr", "did you mean --scaler"]),
        (&["--repicas", "3"], &["did you mean --replicas"]),
        (&["--requests", "9"], &["--requests", "--duration"]),
        (&["--accelerator", "none"], &["--scaler", "hpa", "accelerator"]),
        (&["--replicas", "20"], &["--replicas", "from 1 to 16"]),
        (&["--routers", "2"], &["--routers"]),
        (&["--shape-at", "2000"], &["--shape-at", "1800"]),
        (&["--fail-at", "1800"], &["--fail-at", "1800"]),
        (&["--reuse", "4"], &["--reuse", "FROM:TO"]),
        (&["--max", "3", "--max", "4"], &["--max", "twice"]),
    ] {
        let (fine, out, error) = warmroute(args);
        assert!(!fine && out.is_empty(), "{args:?}: {out}");
        assert!(parts.iter().all(|part| error.contains(part)), "{args:?}: {error}");
        assert_eq!(error.trim_end().lines().count(), 1, "{error}");
    }
}
