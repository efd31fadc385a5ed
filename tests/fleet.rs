//! Fleets as wholes: one replica is its bare engine, tensors and prices make the same decisions,
//! and the default preset shows what the chapter shows.
#![cfg(not(target_arch = "wasm32"))]

use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Engine, Request};
use warmroute::experiment::Experiment;
use warmroute::fleet::{Devices, Fleet};
use warmroute::params::{BackendKind, Blocks, Config};
use warmroute::policy::{PolicyKind, PolicySettings, View};
use warmroute::router::Signal;
use warmroute::sim::{Event, Modelled, Record, Simulation, Summary, What};
use warmroute::trace::{Prompt, RequestSpec};
use warmroute::units::{Span, Time};

fn modelled(config: Config) -> Experiment {
    Experiment::new(Config { backend: BackendKind::Modelled, ..config })
}

fn summary(experiment: &Experiment, policy: PolicyKind) -> Summary {
    experiment.summary(&experiment.run(policy, experiment.modelled_clock()).expect("it fits the clock"))
}

/// Events and records of a run, the router's own decision left out.
fn log<E: Engine>(experiment: &Experiment, engine: E) -> (Vec<Event>, Vec<Record>) {
    let clock = Box::new(Modelled(experiment.config.cost.price()));
    let mut events = Vec::new();
    let mut recorder = experiment.recorder();
    Simulation::new(engine, &experiment.trace, experiment.config.sampling(), clock)
        .watch_blocks()
        .run(|mut event| {
            recorder.observe(&event);
            if let What::Routed { decision, .. } = &mut event.what {
                *decision = None;
            }
            events.push(event);
        })
        .expect("it fits the clock");
    (events, recorder.records().cloned().collect())
}

#[test]
fn a_fleet_of_one_is_its_bare_engine_byte_for_byte() {
    // Tight enough to preempt and to evict.
    let config =
        Config { replicas: 1, blocks: Blocks::Number(36), requests: 60, rate: 20.0, ..Config::default() };
    for devices in [Devices::Shared, Devices::Separate] {
        let experiment = modelled(Config { devices, ..config.clone() });
        let bare = log(&experiment, experiment.replica(0));
        for policy in PolicyKind::ALL {
            let fleet = log(&experiment, experiment.fleet(policy));
            let text = |log: &(Vec<Event>, Vec<Record>)| serde_json::to_string(log).expect("plain data");
            assert_eq!(text(&fleet), text(&bare), "{policy:?}, {devices:?}");
        }
        let preempted = bare.1.iter().any(|record| {
            matches!(record.outcome, warmroute::sim::Outcome::Served { preemptions, .. } if preemptions > 0)
        });
        assert!(preempted, "the test's pool is meant to be tight");
    }
}

/// The same small runs, computed and only priced, in a pool so tight that requests are preempted.
fn tensors_and_prices_agree(prefill_chunk: u32) {
    let config = Config {
        requests: 6,
        repeat: 1,
        output_max: 20,
        blocks: Blocks::Number(18),
        rate: 40.0,
        prefill_chunk,
        ..Config::default()
    };
    let priced = modelled(config.clone());
    let computed = Experiment::new(config);
    for policy in PolicyKind::ALL {
        assert_eq!(summary(&priced, policy), summary(&computed, policy), "{policy:?}");
    }
}

#[test]
fn tensors_and_prices_make_the_same_run() {
    tensors_and_prices_agree(0);
}

#[test]
fn the_default_preset_shows_the_point() {
    let experiment = modelled(Config::default());
    let [robin, tokens, affinity] = PolicyKind::RACE.map(|policy| summary(&experiment, policy));
    let reuse = |s: &Summary| s.reuse.expect("requests were admitted");
    let goodput = |s: &Summary| s.goodput_per_second.expect("requests were finished");
    assert!(reuse(&affinity) > 2.0 * reuse(&robin), "{} against {}", reuse(&affinity), reuse(&robin));
    assert!(goodput(&robin) <= goodput(&tokens) && goodput(&tokens) < goodput(&affinity));
    for s in [robin, tokens, affinity] {
        assert_eq!((s.arrived, s.completed, s.rejected), (24, 24, 0));
    }
}

#[test]
fn what_can_never_be_served_takes_no_turn() {
    let text = "{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 2}\n\
                {\"arrival\": 0, \"prompt\": \"\", \"max_tokens\": 2}\n\
                {\"arrival\": 0, \"prompt\": \"b\", \"max_tokens\": 0}\n\
                {\"arrival\": 0, \"prompt\": \"c\", \"max_tokens\": 5000}\n\
                {\"arrival\": 0, \"prompt\": \"d\", \"max_tokens\": 2}\n";
    let trace = warmroute::trace::import::read_json_lines(text, 260).expect("a good trace");
    let config = Config { backend: BackendKind::Modelled, replicas: 2, ..Config::default() };
    let experiment = Experiment::with_trace(config, trace, None);
    let summary = summary(&experiment, PolicyKind::RoundRobin);
    assert_eq!((summary.arrived, summary.completed, summary.rejected), (5, 2, 3));
    assert_eq!(summary.assignments, [1, 1], "the fifth request is the second to take a turn");
    assert_eq!(summary.goodput_fraction, Some(2.0 / 5.0), "rejected requests count as not good");
    let why: Vec<&str> = summary.rejections.iter().map(|r| r.message.as_str()).collect();
    assert!(why[0].contains("empty") && why[1].contains("max_tokens") && why[2].contains("2048 positions"));
}

/// Where each request went and what the decision says of who made it, on a fleet that no step delays:
/// everything arrives in the first 90 ms, before anything is finished.
fn routed(policy: PolicyKind, config: Config) -> Vec<(u32, View)> {
    let lines: String = (0..8)
        .map(|i| {
            format!(
                "{{\"arrival\": {}, \"prompt\": \"abcd\", \"max_tokens\": 900}}\n",
                f64::from(i + 1) / 100.0
            )
        })
        .collect();
    let refused = "{\"arrival\": 0.035, \"prompt\": \"\", \"max_tokens\": 2}\n";
    let trace = warmroute::trace::import::read_json_lines(&(lines + refused), 260).expect("a good trace");
    let config = Config { backend: BackendKind::Modelled, devices: Devices::Separate, replicas: 2, ..config };
    let experiment = Experiment::with_trace(config, trace, None);
    let mut went = Vec::new();
    let observe = |event: Event| {
        if let What::Routed { replica, decision: Some(decision), .. } = event.what {
            went.push((replica, decision.view));
        }
    };
    experiment.simulation(policy, experiment.modelled_clock()).run(observe).expect("it fits the clock");
    went
}

fn replicas(went: &[(u32, View)]) -> Vec<u32> {
    went.iter().map(|(replica, _)| *replica).collect()
}

#[test]
fn several_routers_take_turns_and_know_only_what_they_sent() {
    let config = |routers| Config { routers, ..Config::default() };
    let went = routed(PolicyKind::RoundRobin, config(2));
    let routers: Vec<_> = went.iter().map(|(_, view)| view.router).collect();
    assert_eq!(routers, [0, 1, 0, 1, 0, 1, 0, 1].map(Some), "a refused request takes no router's turn");
    assert_eq!(replicas(&went), [0, 0, 1, 1, 0, 0, 1, 1], "each has a counter of its own");
    // Each of eight has sent nothing before, and takes the lowest number of a tie.
    assert_eq!(replicas(&routed(PolicyKind::LeastTokens, config(8))), [0; 8]);
    assert_eq!(replicas(&routed(PolicyKind::LeastRequests, config(4))), [0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(routed(PolicyKind::LeastTokens, config(1)), {
        [0, 1, 0, 1, 0, 1, 0, 1].map(|replica| (replica, View::default()))
    });
}

#[test]
fn what_is_seen_late_is_what_was_there_at_the_refresh() {
    let config = |signal_period, signal_own| Config { signal_period, signal_own, ..Config::default() };
    // Refreshes at 0 and 50 ms: the second shows four requests on replica 0, before the fifth arrives.
    let went = routed(PolicyKind::LeastRequests, config(0.05, false));
    assert_eq!(replicas(&went), [0, 0, 0, 0, 1, 1, 1, 1]);
    let refreshed: Vec<_> = went.iter().map(|(_, view)| view.refreshed.expect("it is late")).collect();
    assert_eq!(refreshed, [[0; 4], [50_000_000_000; 4]].concat());
    assert_eq!(replicas(&routed(PolicyKind::LeastRequests, config(30.0, false))), [0; 8]);
    let went = routed(PolicyKind::LeastRequests, config(30.0, true));
    assert_eq!(replicas(&went), [0, 1, 0, 1, 0, 1, 0, 1]);
    assert!(went.iter().all(|(_, view)| view.own));
}

#[test]
fn separate_devices_leave_the_idle_idle_and_are_never_slower() {
    let config = Config { requests: 60, ..Config::default() };
    let shared = modelled(config.clone());
    let separate = modelled(Config { devices: Devices::Separate, ..config });
    for policy in PolicyKind::ALL {
        let ttft = |e| summary(e, policy).ttft.p50.expect("requests were finished");
        match policy {
            // One replica serves them all; the others are idle whoever's processor it is.
            PolicyKind::LongestPrefix => assert_eq!(ttft(&separate), ttft(&shared)),
            _ => assert!(ttft(&separate) < ttft(&shared), "{policy:?}"),
        }
    }
}

/// The longest step of a run under a policy, in picoseconds, and its figures.
fn longest_step(experiment: &Experiment, policy: PolicyKind) -> (u64, Summary) {
    let (mut recorder, mut longest) = (experiment.recorder(), 0);
    let observe = |event: Event| {
        if let What::StepStarted { ends, .. } = &event.what {
            longest = longest.max(ends - event.at);
        }
        recorder.observe(&event);
    };
    experiment.simulation(policy, experiment.modelled_clock()).run(observe).expect("it fits the clock");
    (longest, experiment.summary(&recorder))
}

#[test]
fn chunks_of_long_prompts_hold_up_the_others_less() {
    // Prompts of some 600 tokens, mostly new, beside answers that are being read as they come.
    let config = Config {
        requests: 200,
        repeat: 1,
        user_min: 500,
        user_max: 512,
        devices: Devices::Separate,
        blocks: Blocks::Number(1024),
        ..Config::default()
    };
    let whole = modelled(config.clone());
    let cut = modelled(Config { prefill_chunk: 64, ..config });
    for policy in PolicyKind::ALL {
        let ((long, without), (short, with)) = (longest_step(&whole, policy), longest_step(&cut, policy));
        let gap = |s: &Summary| s.token_gap.p99.expect("tokens followed each other");
        assert!(4 * short < long, "{policy:?}: a step takes {short} ps, {long} without chunks");
        assert!(4.0 * gap(&with) < gap(&without), "{policy:?}: {} s, {} s", gap(&with), gap(&without));
        assert_eq!(with.output_tokens, without.output_tokens);
    }
}

#[test]
fn tensors_and_prices_make_the_same_run_in_chunks() {
    tensors_and_prices_agree(24);
}

/// Whoever has the prompts' common beginning gets them all, however long its queue; a guard ends that.
#[test]
fn a_shared_prefix_without_a_guard_is_a_fleet_of_one() {
    let config = Config { requests: 300, tenants: 1, rate: 40.0, ..Config::default() };
    for devices in [Devices::Shared, Devices::Separate] {
        let config = Config { devices, ..config.clone() };
        let unguarded = summary(&modelled(config.clone()), PolicyKind::LongestPrefix);
        assert_eq!(unguarded.assignments, [300, 0, 0, 0]);
        let guarded = Config { longest_prefix_guard: 1.5, ..config };
        let guarded = summary(&modelled(guarded), PolicyKind::LongestPrefix);
        assert!(guarded.assignments.iter().all(|&n| n > 30), "{:?}", guarded.assignments);
        assert!(guarded.imbalance < unguarded.imbalance);
    }
}

/// A match is what the prompt would find if it were admitted now, and the decision shows it.
#[test]
fn a_longest_match_is_what_each_cache_has_of_the_prompt() {
    let experiment = modelled(Config { devices: Devices::Separate, requests: 60, ..Config::default() });
    let mut simulation = experiment.simulation(PolicyKind::LongestPrefix, experiment.modelled_clock());
    let mut routed = 0;
    loop {
        // What a cache has changes only when a step starts, and steps start after arrivals.
        let matched = |spec: &RequestSpec| -> Vec<u32> {
            let replicas = simulation.engine().replicas().iter();
            replicas.map(|replica| replica.matched_blocks(&spec.prompt) as u32).collect()
        };
        let seen: Vec<Vec<u32>> = experiment.trace.requests.iter().map(matched).collect();
        let mut decisions = Vec::new();
        let more = simulation
            .advance(|event| {
                if let What::Routed { arrival, decision: Some(decision), .. } = event.what {
                    decisions.push((arrival.request, decision));
                }
            })
            .expect("it fits the clock");
        for (request, decision) in decisions {
            assert_eq!(decision.matched, seen[request as usize]);
            routed += 1;
        }
        if !more {
            break;
        }
    }
    assert_eq!(routed, 60);
}

/// A fleet without tensors, and a way to send it requests of four tokens, all alike; where each went.
struct Sent {
    fleet: Fleet,
    next: u32,
}

impl Sent {
    fn new(policy: PolicyKind, replicas: u32) -> Sent {
        let fleet = modelled(Config { replicas, ..Config::default() }).fleet(policy);
        Sent { fleet, next: 0 }
    }

    fn send(&mut self, requests: usize) -> Vec<u32> {
        let mut send = |_| {
            let request = Request {
                id: self.next,
                tenant: None,
                prompt: Prompt::from(vec![1, 2, 3, 4]),
                max_tokens: 5,
                output: None,
                sampling: Sampling::default(),
            };
            self.next += 1;
            self.fleet.add_request(request).expect("it fits").replica
        };
        (0..requests).map(&mut send).collect()
    }

    fn scale(&mut self, replicas: u32) {
        let experiment = modelled(Config::default());
        self.fleet.scale(replicas as usize, |index| experiment.replica(index));
    }

    /// Requests waiting and running on each replica.
    fn in_flight(&self) -> Vec<u32> {
        self.fleet.replicas().iter().map(|r| r.load().waiting + r.load().running).collect()
    }
}

#[test]
fn new_replicas_join_empty_and_drained_ones_finish_what_they_have() {
    let mut sent = Sent::new(PolicyKind::LeastRequests, 2);
    assert_eq!(sent.send(4), [0, 1, 0, 1]);
    sent.scale(4);
    assert_eq!((sent.in_flight(), sent.fleet.devices()), (vec![2, 2, 0, 0], 1));
    assert_eq!(sent.send(5), [2, 3, 2, 3, 0]);
    sent.scale(1);
    assert_eq!(sent.send(2), [0, 0], "the others are drained");
    assert_eq!(sent.in_flight(), [5, 2, 2, 2], "and keep what they have");
    while sent.fleet.step().is_some() {}
    assert_eq!(sent.in_flight(), [0; 4]);
    sent.scale(3);
    assert_eq!(sent.send(3), [0, 1, 2], "they serve again");
    assert_eq!(sent.fleet.assignments(), [6, 3, 3, 2]);
    assert_eq!(sent.fleet.replicas().len(), 4);
}

#[test]
fn another_policy_begins_without_a_memory_and_knows_the_replicas() {
    let mut sent = Sent::new(PolicyKind::RoundRobin, 3);
    assert_eq!(sent.send(4), [0, 1, 2, 0]);
    let settings = PolicySettings::default();
    sent.fleet.change_policy(vec![PolicyKind::LeastRequests.build(&settings)], Time(1));
    assert_eq!(sent.send(3), [1, 2, 0]);
    sent.fleet.change_policy(vec![PolicyKind::RoundRobin.build(&settings)], Time(2));
    assert_eq!(sent.send(1), [0], "its turns begin anew");
    sent.fleet.retune(&PolicySettings { prefix_length: 1, max_imbalance: 1.0, ..PolicySettings::default() });
    assert_eq!(sent.send(3), [1, 2, 0], "other settings take nothing from its memory");
}

#[test]
fn whoever_has_never_looked_takes_a_first_look() {
    let mut sent = Sent::new(PolicyKind::RoundRobin, 3);
    assert_eq!(sent.send(2), [0, 1]);
    let (settings, late) = (PolicySettings::default(), Signal { period: Span(1000), own: false });
    sent.fleet.change_signal(late, Time(1));
    sent.fleet.change_policy(vec![PolicyKind::LeastRequests.build(&settings)], Time(5));
    assert_eq!(sent.send(2), [2, 2], "it was shown the loads of time 5");
    sent.fleet.change_policy(vec![PolicyKind::LeastTokens.build(&settings)], Time(6));
    assert_eq!(sent.send(1), [2], "a router keeps what it was shown");
    sent.fleet.refresh(Time(1000));
    assert_eq!(sent.send(1), [0]);
    sent.fleet.change_signal(Signal::default(), Time(1001));
    assert_eq!(sent.send(2), [1, 0], "nothing is late any more");
}

#[test]
fn each_of_several_routers_still_knows_what_it_sent() {
    let config = Config { replicas: 2, routers: 2, ..Config::default() };
    let mut sent = Sent { fleet: modelled(config).fleet(PolicyKind::LeastTokens), next: 0 };
    assert_eq!(sent.send(2), [0, 0], "neither knows of the other's");
    sent.scale(3);
    let least = || PolicyKind::LeastRequests.build(&PolicySettings::default());
    sent.fleet.change_policy(vec![least(), least()], Time(1));
    assert_eq!(sent.send(4), [1, 1, 2, 2]);
    while sent.fleet.step().is_some() {}
    assert_eq!(sent.send(2), [0, 0], "all that they sent is finished");
}
