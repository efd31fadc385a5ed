//! The run log against the run itself: on random workloads every instant that it shows is as the event
//! loop left it, both loops write it alike, and a fork is the same run until it is another.
#![cfg(not(target_arch = "wasm32"))]

use std::collections::VecDeque;

use proptest::prelude::*;
use warmroute::cost::{Cost, PiecePrice, StepPrice};
use warmroute::engine::{BlockUse, Engine};
use warmroute::experiment::Experiment;
use warmroute::fleet::{Devices, Fleet};
use warmroute::params::{BackendKind, Blocks, Config};
use warmroute::policy::{Decision, PolicyKind, Reason};
use warmroute::runlog::{
    ArrivalEntry, Change, Counts, Replay, ReplicaEntry, Run, RunLog, RunningRequest, State, record,
};
use warmroute::sim::{BlockState, Event, Objectives, Outcome, Simulation, What};
use warmroute::trace::{Prompt, RequestSpec, TenantName, Trace};
use warmroute::units::Time;

/// An experiment and a policy.
struct Case(Experiment, PolicyKind);

impl std::fmt::Debug for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}, {:#?}, {:#?}", self.1, self.0.config, self.0.trace)
    }
}

/// An experiment without tensors in pools so small that requests are preempted and some refused, with
/// arrivals at one instant and steps of nearly no length.
fn experiments() -> impl Strategy<Value = Case> {
    let shape = (1u32..6, 1u32..7, 1u32..5, 0u32..8, 0u32..6, any::<bool>());
    let request = (
        prop::collection::vec(0u32..2, 0..20),
        prop_oneof![Just(0u64), 0u64..3, 0u64..40],
        0u64..30,
        prop::option::weighted(0.4, prop::collection::vec(0u32..2, 0..12)),
        prop::option::of(0u32..2),
    );
    let grain = || prop_oneof![Just(0u64), Just(1), Just(7), 0u64..200];
    let prices = (grain(), grain(), grain(), grain(), grain(), grain());
    let guard = prop_oneof![Just(0.0), Just(1.2), Just(2.0), Just(f64::INFINITY)];
    let period = prop_oneof![2 => Just(0u64), 1 => 1u64..8, 3 => 1u64..6000];
    let sight =
        (0..PolicyKind::ALL.len(), guard, 1u32..20, prop_oneof![Just(1u32), 1u32..5], period, any::<bool>());
    let requests = (prop::collection::vec(request, 1..30), 0u64..400);
    (shape, requests, prices, sight).prop_map(|(shape, (requests, spacing), prices, sight)| {
        let (block_size, max_batch, replicas, prefill_chunk, spare, shared) = shape;
        let (kind, max_imbalance, prefix_length, routers, period, signal_own) = sight;
        let tenants = vec![TenantName::Number(4), TenantName::Text("b".into())];
        let (mut trace, mut at) = (Trace { tenants, ..Trace::default() }, 0);
        for (prompt, gap, max_tokens, output, tenant) in requests {
            at += gap * spacing;
            let (arrival, prompt, output) = (Time(at), Prompt::from(prompt), output.map(Into::into));
            trace.requests.push(RequestSpec { arrival, prompt, max_tokens, tenant, output });
        }
        let blocks = |r: &RequestSpec| (r.prompt.len() as u32 + r.max_tokens as u32).div_ceil(block_size);
        let most = trace.requests.iter().map(blocks).max().unwrap_or(1);
        let (base, per_token, per_pair, d_base, d_token, d_pair) = prices;
        let config = Config {
            // Some requests are a block too large for the pool.
            blocks: Blocks::Number((most + spare).saturating_sub(1).max(1)),
            block_size,
            max_batch,
            positions: 48,
            replicas,
            prefill_chunk,
            devices: if shared { Devices::Shared } else { Devices::Separate },
            max_imbalance,
            longest_prefix_guard: max_imbalance,
            prefix_length,
            routers,
            signal_period: period as f64 / 1e12,
            signal_own,
            backend: BackendKind::Modelled,
            cost: Cost::Custom(StepPrice {
                prefill: PiecePrice { base, per_token, per_pair },
                decode: PiecePrice { base: d_base, per_token: d_token, per_pair: d_pair },
            }),
            ..Config::default()
        };
        Case(Experiment::with_trace(config, trace, None), PolicyKind::ALL[kind])
    })
}

/// What is seen of a replica by looking at the run's events only.
#[derive(Clone, Debug, Default, PartialEq)]
struct Seen {
    queue: VecDeque<u32>,
    running: Vec<RunningRequest>,
    counts: Counts,
    step_ends: Option<u64>,
}

/// A run looked at from outside.
#[derive(Clone, Debug, Default)]
struct Watch {
    replicas: Vec<Seen>,
    arrived: u32,
    rejected: u32,
    last: Option<(u64, u32, Option<Decision>)>,
    /// By request: first token, tokens, preemptions.
    requests: Vec<(Option<u64>, u32, u32)>,
}

impl Watch {
    fn observe(&mut self, event: &Event) {
        let at = event.at;
        match &event.what {
            What::Rejected { .. } => {
                (self.arrived, self.rejected) = (self.arrived + 1, self.rejected + 1);
                self.requests.push((None, 0, 0));
            }
            What::Routed { arrival, replica, decision } => {
                self.arrived += 1;
                self.requests.push((None, 0, 0));
                self.last = Some((at, arrival.request, decision.clone()));
                let seen = &mut self.replicas[*replica as usize];
                seen.queue.push_back(arrival.request);
                seen.counts.assigned += 1;
            }
            What::StepStarted { start, ends, .. } => {
                let seen = &mut self.replicas[start.replica as usize];
                seen.step_ends = Some(*ends);
                seen.counts.evictions += u64::from(start.evicted);
                for &request in &start.preempted {
                    seen.running.retain(|one| one.request != request);
                    seen.queue.push_front(request);
                    seen.counts.preemptions += 1;
                    self.requests[request as usize].2 += 1;
                }
                if let Some(one) = &start.continued {
                    let running = seen.running.iter_mut().find(|r| r.request == one.request);
                    running.expect("it runs").computed += one.computed;
                    seen.counts.computed_tokens += u64::from(one.computed);
                    seen.counts.recomputed_tokens += u64::from(one.recomputed);
                }
                for one in &start.admitted {
                    seen.queue.retain(|&request| request != one.request);
                    let (first_token, tokens, preemptions) = self.requests[one.request as usize];
                    seen.running.push(RunningRequest {
                        request: one.request,
                        admitted: at,
                        cached: one.cached,
                        computed: one.computed,
                        prefilled: None,
                        first_token,
                        generated: Some(tokens),
                        preemptions,
                    });
                    let cached = u64::from(one.cached);
                    if one.first {
                        seen.counts.admitted += 1;
                        seen.counts.cached_tokens += cached;
                    } else {
                        seen.counts.cached_again_tokens += cached;
                    }
                    seen.counts.computed_tokens += u64::from(one.computed);
                    seen.counts.recomputed_tokens += u64::from(one.recomputed);
                }
            }
            What::StepEnded { end, .. } => {
                let seen = &mut self.replicas[end.replica as usize];
                seen.step_ends = None;
                for token in &end.emitted {
                    let (first, tokens, _) = &mut self.requests[token.request as usize];
                    *tokens += 1;
                    if first.is_none() {
                        *first = Some(at);
                        seen.counts.first_tokens += 1;
                    }
                    let one = seen.running.iter_mut().find(|r| r.request == token.request);
                    let one = one.expect("it runs");
                    one.prefilled = one.prefilled.or(Some(at));
                    (one.first_token, one.generated) = (*first, Some(*tokens));
                }
                let last = |request| end.emitted.iter().any(|t| t.last && t.request == request);
                seen.counts.finished += end.emitted.iter().filter(|token| token.last).count() as u64;
                seen.running.retain(|one| !last(one.request));
            }
        }
    }

    fn check(&self, log: &RunLog, at: u64, fleet: Option<&Fleet>) -> Result<(), TestCaseError> {
        let state = log.seek(Time(at));
        prop_assert_eq!((state.at, state.arrived, state.rejected), (at, self.arrived, self.rejected));
        let last = state.last.as_ref().map(|(at, entry)| match entry {
            ArrivalEntry::Routed { arrival, replica, decision } => {
                assert!(decision.as_ref().is_none_or(|d| d.replica == *replica));
                (*at, arrival.request, decision.clone())
            }
            other => panic!("{other:?} went nowhere"),
        });
        prop_assert_eq!(&last, &self.last);
        prop_assert_eq!(state.replicas.len(), self.replicas.len());
        for (replica, seen) in state.replicas.iter().zip(&self.replicas) {
            let mut seen = seen.clone();
            if !log.is_detailed() {
                seen.step_ends = None;
                seen.running.iter_mut().for_each(|one| one.generated = None);
            }
            let (queue, running) = (replica.queue.clone(), replica.running.clone());
            let (counts, step_ends) = (replica.counts, replica.step_ends);
            for one in &replica.preempted {
                let (first_token, tokens, preemptions) = self.requests[one.request as usize];
                prop_assert!(replica.queue.contains(&one.request));
                prop_assert_eq!((one.first_token, one.preemptions), (first_token, preemptions));
                prop_assert_eq!(one.generated, log.is_detailed().then_some(tokens));
            }
            let back = seen.queue.iter().filter(|&&id| self.requests[id as usize].2 > 0).count();
            prop_assert_eq!(back, replica.preempted.len());
            prop_assert_eq!(Seen { queue, running, counts, step_ends }, seen);
        }
        let Some(fleet) = fleet else { return Ok(()) };
        for (replica, own) in state.replicas.iter().zip(fleet.replicas()) {
            let (load, stats) = (own.load(), own.stats());
            prop_assert_eq!(replica.queue.len(), load.waiting as usize);
            prop_assert_eq!(replica.running.len(), load.running as usize);
            prop_assert_eq!(replica.counts.evictions, stats.evictions);
            prop_assert_eq!(replica.counts.preemptions, stats.preemptions);
            if log.is_detailed() {
                let blocks = replica.blocks.iter().copied();
                let uses = own.block_uses().map(|block| match block {
                    BlockUse::Free => (BlockState::Free, None),
                    BlockUse::Cached(tenant) => (BlockState::Cached, tenant),
                    BlockUse::Held(tenant) => (BlockState::Held, tenant),
                });
                prop_assert!(blocks.eq(uses), "the same blocks");
            }
        }
        Ok(())
    }
}

fn simulation(experiment: &Experiment, policy: PolicyKind) -> Simulation<'_, Fleet> {
    experiment.simulation(policy, experiment.modelled_clock())
}

fn recorded(experiment: &Experiment, policy: PolicyKind, detailed: bool) -> Run {
    record(experiment, policy, detailed).expect("it fits the clock")
}

fn stepwise(experiment: &Experiment, policy: PolicyKind, changes: Vec<(Time, Change)>) -> Run {
    let replay = Replay::new(experiment, policy, changes, false).expect("the changes are good ones");
    replay.finish().expect("it fits the clock")
}

fn changed(experiment: &Experiment, policy: PolicyKind, at: u64, change: Change) -> Run {
    let fork = Replay::fork(experiment, policy, Time(at), change, false).expect("a good change");
    fork.finish().expect("it fits the clock")
}

/// Records and summary.
fn figures(run: &Run) -> String {
    let records: Vec<_> = run.recorder.records().collect();
    serde_json::to_string(&(records, &run.summary)).expect("plain data")
}

fn changes() -> impl Strategy<Value = Change> {
    let parameter = |key: &str, value: &str| Change::Parameter { key: key.into(), value: value.into() };
    prop_oneof![
        (0..PolicyKind::ALL.len()).prop_map(|kind| Change::Policy(PolicyKind::ALL[kind])),
        (1u32..7).prop_map(Change::Replicas),
        (1u32..9).prop_map(move |length| parameter("prefix_length", &length.to_string())),
        prop_oneof![Just("1"), Just("1.5"), Just("inf")].prop_map(move |x| parameter("max_imbalance", x)),
        prop_oneof![Just("0"), Just("0.001")].prop_map(move |x| parameter("signal_period", x)),
        Just(Change::Objectives(Objectives { ttft: 0.5, itl: 0.01 })),
    ]
}

/// Entries and when they are.
type Told<E> = Vec<(Time, E)>;

/// Entries until a time.
fn until(log: &RunLog, at: u64) -> (Told<ArrivalEntry>, Vec<Told<ReplicaEntry>>) {
    // Who decides after `at` may be told at `at`, when everything else has happened.
    let setting = |entry: &ArrivalEntry| matches!(entry, ArrivalEntry::Setting(_));
    let early = |t: &Time| t.0 <= at;
    let arrivals = log.arrivals().take_while(|(t, _)| early(t));
    let arrivals = arrivals.enumerate().filter(|(place, (_, entry))| *place == 0 || !setting(entry));
    let arrivals = arrivals.map(|(_, told)| told).collect();
    let of = |i| log.replica(i).take_while(|(t, _)| early(t)).collect();
    let mut replicas: Vec<Vec<_>> = (0..log.replicas()).map(of).collect();
    while replicas.last().is_some_and(Vec::is_empty) {
        replicas.pop();
    }
    (arrivals, replicas)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_instant_is_as_the_run_left_it(Case(experiment, policy) in experiments()) {
        for detailed in [false, true] {
            let log = recorded(&experiment, policy, detailed).log;
            let log: RunLog = serde_json::from_str(&serde_json::to_string(&log).expect("plain data")).expect("a log");
            let mut run = simulation(&experiment, policy);
            let replicas = vec![Seen::default(); experiment.config.replicas as usize];
            let mut watch = Watch { replicas, ..Watch::default() };
            watch.check(&log, 0, None).or_else(|e| if run.next_instant() == Some(Time(0)) { Ok(()) } else { Err(e) })?;
            while let Some(now) = run.next_instant() {
                if let Some(before) = now.0.checked_sub(1) {
                    watch.check(&log, before, Some(run.engine()))?;
                }
                run.advance(|event| watch.observe(&event)).expect("it fits the clock");
                watch.check(&log, now.0, Some(run.engine()))?;
            }
            watch.check(&log, u64::MAX, Some(run.engine()))?;
            prop_assert!(log.end() >= experiment.trace.requests.last().expect("there are some").arrival);
        }
    }

    #[test]
    fn both_loops_write_the_same_log(Case(mut experiment, policy) in experiments()) {
        experiment.config.devices = Devices::Separate;
        let (express, plain) = (recorded(&experiment, policy, false), stepwise(&experiment, policy, vec![]));
        prop_assert!(express.log == plain.log);
        prop_assert_eq!(figures(&express), figures(&plain));
    }

    #[test]
    fn every_decision_is_kept_whole(Case(experiment, policy) in experiments()) {
        let log = recorded(&experiment, policy, false).log;
        let mut told = Vec::new();
        simulation(&experiment, policy).run(|Event { at, what }| match what {
            What::Routed { arrival, replica, decision } => {
                told.push((Time(at), ArrivalEntry::Routed { arrival, replica, decision }));
            }
            What::Rejected { arrival, rejection } => {
                told.push((Time(at), ArrivalEntry::Rejected { arrival, rejection }));
            }
            _ => {}
        }).expect("it fits the clock");
        for (request, entry) in told.iter().enumerate() {
            prop_assert_eq!(&log.arrival(request as u32).expect("it arrived"), entry);
        }
        prop_assert_eq!(log.arrival(told.len() as u32), None);
        prop_assert!(log.arrivals().skip(1).eq(told));
    }

    #[test]
    fn a_fork_is_the_same_run_until_then(
        Case(experiment, policy) in experiments(),
        share in 0.0..1.1,
        change in changes(),
    ) {
        let original = recorded(&experiment, policy, false);
        let at = (original.log.end().0 as f64 * share) as u64;
        let fork = changed(&experiment, policy, at, change.clone());
        prop_assert_eq!(until(&original.log, at), until(&fork.log, at));
        let (before, then) = (original.log.seek(Time(at)), fork.log.seek(Time(at)));
        prop_assert_eq!(&before.replicas[..], &then.replicas[..before.replicas.len()]);
        prop_assert!(then.replicas[before.replicas.len()..].iter().all(|r| r.counts == Counts::default()));
        for (one, other) in original.recorder.records().zip(fork.recorder.records()) {
            if one.finished().is_some_and(|end| end.0 <= at) {
                prop_assert_eq!(one, other);
            }
        }
        let again = changed(&experiment, policy, at, change.clone());
        prop_assert!(again.log == fork.log && figures(&again) == figures(&fork), "it is deterministic");
        prop_assert_eq!(fork.summary.completed + fork.summary.rejected, experiment.trace.requests.len());
        for (when, entry) in fork.log.arrivals() {
            if let (true, ArrivalEntry::Routed { replica, decision: Some(decision), .. }) = (when.0 > at, entry) {
                if let Change::Replicas(active) = change {
                    prop_assert!(replica < active, "drained replicas get nothing");
                    prop_assert!(decision.loads.is_empty() || decision.loads.len() == active as usize);
                }
                if let Change::Policy(policy) = change {
                    let reasons: &[Reason] = match policy {
                        PolicyKind::RoundRobin => &[Reason::NextInTurn],
                        PolicyKind::PrefixAffinity => &[Reason::Preferred, Reason::GuardFired],
                        PolicyKind::LongestPrefix => &[Reason::LongestMatch, Reason::GuardFired],
                        _ => &[Reason::LeastLoaded],
                    };
                    prop_assert!(reasons.contains(&decision.reason), "{policy:?} gives {:?}", decision.reason);
                }
            }
        }
    }

    #[test]
    fn without_an_effective_change_nothing_changes(Case(experiment, policy) in experiments(), at in 0u64..200_000) {
        let original = recorded(&experiment, policy, false);
        let config = &experiment.config;
        let same = |key: &str, value: String| Change::Parameter { key: key.into(), value };
        for change in [
            Change::Policy(policy),
            Change::Replicas(config.replicas),
            same("max-imbalance", config.max_imbalance.to_string()),
            same("prefix_length", config.prefix_length.to_string()),
            Change::Objectives(config.objectives()),
        ] {
            let fork = changed(&experiment, policy, at, change);
            prop_assert!(fork.log == original.log);
            prop_assert_eq!(figures(&fork), figures(&original));
        }
        if policy != PolicyKind::PrefixAffinity {
            let fork = changed(&experiment, policy, at, same("prefix_length", "3".into()));
            prop_assert!(fork.log == original.log, "it has no prefixes");
        }
    }

    #[test]
    fn what_changes_before_anything_happens_is_the_other_run(
        Case(mut experiment, policy) in experiments(),
        change in changes(),
    ) {
        let later: Vec<RequestSpec> = experiment.trace.requests.iter().cloned()
            .map(|spec| RequestSpec { arrival: Time(spec.arrival.0 + 1), ..spec })
            .collect();
        experiment.trace = Trace { requests: later, tenants: experiment.trace.tenants.clone() }.into();
        let fork = changed(&experiment, policy, 0, change.clone());
        let (mut config, mut other) = (experiment.config.clone(), policy);
        match &change {
            Change::Policy(policy) => other = *policy,
            Change::Replicas(replicas) => config.replicas = *replicas,
            Change::Objectives(Objectives { ttft, itl }) => (config.slo_ttft, config.slo_itl) = (*ttft, *itl),
            Change::Parameter { key, value } => {
                warmroute::params::param(key).expect("it exists").set(&mut config, value).expect("a good value");
            }
        }
        let fewer = config.replicas < experiment.config.replicas;
        let whole = Experiment::with_trace(config, (*experiment.trace).clone(), None);
        let whole = recorded(&whole, other, false);
        prop_assert!(fork.recorder.records().eq(whole.recorder.records()));
        // A drained replica is still one that there is.
        prop_assert!(fewer || figures(&fork) == figures(&whole));
    }

    #[test]
    fn drained_replicas_serve_again_and_changes_follow_on_each_other(
        Case(experiment, policy) in experiments(),
        first in 0u64..100_000,
        then in 0u64..100_000,
    ) {
        let replicas = experiment.config.replicas;
        let there_and_back = vec![
            (Time(first), Change::Replicas(1)),
            (Time(first + then), Change::Replicas(replicas + 1)),
            (Time(first + then), Change::Policy(PolicyKind::RoundRobin)),
        ];
        let run = stepwise(&experiment, policy, there_and_back);
        prop_assert_eq!(run.summary.completed + run.summary.rejected, experiment.trace.requests.len());
        prop_assert_eq!(run.log.seek(Time(u64::MAX)).setting.policy, PolicyKind::RoundRobin);
        for (when, entry) in run.log.arrivals() {
            if let (true, ArrivalEntry::Routed { replica, .. }) = (when.0 > first && when.0 <= first + then, entry) {
                prop_assert_eq!(replica, 0);
            }
        }
        let state = run.log.seek(run.log.end());
        prop_assert!(state.replicas.iter().all(|r| r.queue.is_empty() && r.running.is_empty()));
    }
}

/// A busy run of some thousand requests: many checkpoints.
fn busy() -> Experiment {
    let config = Config {
        requests: 3_000,
        rate: 30.0,
        tenants: 24,
        output_max: 128,
        backend: BackendKind::Modelled,
        devices: Devices::Separate,
        blocks: Blocks::Number(160),
        ..Config::default()
    };
    Experiment::new(config)
}

#[test]
fn a_time_is_found_with_little_reading() {
    let log = recorded(&busy(), PolicyKind::PrefixAffinity, false).log;
    let end = log.end().0;
    let preemptions: u64 = log.seek(Time(end)).replicas.iter().map(|r| r.counts.preemptions).sum();
    let bytes = log.bytes();
    assert!(preemptions > 0 && bytes > 50_000, "a long and tight run: {bytes} bytes, {preemptions}");
    assert!(log.checkpoint_bytes() <= log.bytes());
    for share in 0..=100 {
        let state = log.seek(Time(end / 100 * share));
        let most = |queue: usize, running: usize| 4096.max(1024 + 4 * queue + 64 * running) + 64;
        let bound: usize =
            state.replicas.iter().map(|r| most(2 * r.queue.len() + 1024, r.running.len())).sum();
        assert!(state.read <= bound + 4096 + 64, "{} bytes of {}", state.read, log.bytes());
    }
}

#[test]
fn a_long_run_is_found_from_its_checkpoints_as_it_was() {
    for (detailed, devices) in
        [(false, Devices::Separate), (true, Devices::Separate), (true, Devices::Shared)]
    {
        let experiment = Experiment::new(Config { devices, ..busy().config });
        let policy = PolicyKind::LeastRequests;
        let log = recorded(&experiment, policy, detailed).log;
        assert!(log.checkpoint_bytes() > 20_000, "there are checkpoints");
        let mut run = simulation(&experiment, policy);
        let mut watch = Watch { replicas: vec![Seen::default(); 4], ..Watch::default() };
        let mut instants = 0;
        while let Some(now) = run.next_instant() {
            run.advance(|event| watch.observe(&event)).expect("it fits the clock");
            instants += 1;
            if instants % 29 == 0 {
                watch.check(&log, now.0, Some(run.engine())).expect("it is as the run left it");
            }
        }
    }
}

#[test]
fn a_replay_goes_to_an_instant_and_on() {
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..Config::default() });
    let whole = recorded(&experiment, PolicyKind::LeastTokens, true);
    let middle = Time(whole.log.end().0 / 2);
    let mut replay = Replay::new(&experiment, PolicyKind::LeastTokens, vec![], true).expect("no change");
    let mut instants = 0;
    while replay.advance_until(middle).expect("it fits the clock") {
        instants += 1;
        assert!(replay.at() <= middle);
    }
    let same = |a: &State, b: &State| a.same(b);
    assert!(instants > 10 && same(&replay.log().seek(middle), &whole.log.seek(middle)));
    assert_eq!(replay.arrived() as u32, whole.log.seek(middle).arrived);
    let state = whole.log.seek(middle);
    for (index, replica) in state.replicas.iter().enumerate() {
        let held = replay.block_uses(index).filter(|block| matches!(block, BlockUse::Held(_))).count();
        let shown = replica.blocks.iter().filter(|(state, _)| *state == BlockState::Held);
        assert_eq!(held, shown.count());
    }
    let run = replay.finish().expect("it fits the clock");
    assert!(run.log == whole.log && figures(&run) == figures(&whole));
}

#[test]
fn other_objectives_change_what_counts_as_good_and_nothing_else() {
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..Config::default() });
    let original = recorded(&experiment, PolicyKind::PrefixAffinity, false);
    let at = original.log.end().0 / 2;
    let objectives = Objectives { ttft: 0.001, itl: 0.001 };
    let fork = changed(&experiment, PolicyKind::PrefixAffinity, at, Change::Objectives(objectives));
    assert!(fork.log == original.log);
    assert!(original.summary.good > 0 && fork.summary.good == 0);
    assert_eq!(fork.summary.ttft, original.summary.ttft);
}

#[test]
fn a_change_of_policy_or_fleet_shows_in_what_follows() {
    let experiment = busy();
    let robin = recorded(&experiment, PolicyKind::RoundRobin, false);
    let at = robin.log.end().0 / 4;
    let affinity =
        changed(&experiment, PolicyKind::RoundRobin, at, Change::Policy(PolicyKind::PrefixAffinity));
    assert!(affinity.summary.reuse > robin.summary.reuse);
    let more = changed(&experiment, PolicyKind::RoundRobin, at, Change::Replicas(8));
    assert_eq!(more.summary.assignments.len(), 8);
    assert!(more.summary.span < robin.summary.span, "eight finish sooner than four");
    let fewer = changed(&experiment, PolicyKind::RoundRobin, at, Change::Replicas(2));
    let state = fewer.log.seek(Time(at));
    assert_eq!((state.setting.replicas, state.replicas.len()), (2, 4));
    let served = |run: &Run, replica| {
        let on = |o: &Outcome| matches!(o, Outcome::Served { replica: r, .. } if *r == replica);
        run.recorder.records().filter(|record| on(&record.outcome) && record.finished().is_some()).count()
            as u64
    };
    for (replica, seen) in state.replicas.iter().enumerate() {
        let finished = served(&fewer, replica as u32);
        assert!(finished >= seen.counts.assigned, "who waits on a drained replica is served there");
        assert!(replica < 2 || finished == seen.counts.assigned);
    }
}

#[test]
fn what_cannot_change_is_refused() {
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..Config::default() });
    let refused = |change: Change| {
        let fork = Replay::fork(&experiment, PolicyKind::RoundRobin, Time(1), change, false);
        fork.err().expect("it is refused").to_string()
    };
    let set = |key: &str, value: &str| Change::Parameter { key: key.into(), value: value.into() };
    assert!(refused(set("block_size", "32")).contains("block_size"));
    assert!(refused(set("routers", "2")).contains("in the middle"));
    assert!(refused(set("prefix_length", "many")).contains("found `many`"));
    assert!(refused(set("no_such", "1")).contains("no such parameter"));
    assert!(refused(Change::Replicas(0)).contains("from 1"));
}

#[test]
fn what_is_no_log_is_refused() {
    let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..Config::default() });
    let log = recorded(&experiment, PolicyKind::LeastTokens, true).log;
    let text = serde_json::to_value(&log).expect("plain data");
    assert!(serde_json::from_value::<RunLog>(text.clone()).expect("a log") == log);
    for spoil in [
        |v: &mut serde_json::Value| v["format"] = 2.into(),
        |v: &mut serde_json::Value| v["replicas"][1][0] = 127.into(),
        |v: &mut serde_json::Value| v["arrivals"] = Vec::<u8>::new().into(),
        |v: &mut serde_json::Value| drop(v["replicas"].as_array_mut().map(Vec::pop)),
        |v: &mut serde_json::Value| drop(v["replicas"][0].as_array_mut().map(Vec::pop)),
        |v: &mut serde_json::Value| v["blocks"] = 3.into(),
    ] {
        let mut spoilt = text.clone();
        spoil(&mut spoilt);
        assert!(serde_json::from_value::<RunLog>(spoilt).is_err());
    }
}
