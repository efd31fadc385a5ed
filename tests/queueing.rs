//! Against queueing theory: with one request at a time and nothing to share, a replica is a server whose
//! mean waiting time is known. The run's own 99 % confidence interval (of batch means) must hold it.
#![cfg(not(target_arch = "wasm32"))]

use warmroute::cost::{PiecePrice, StepPrice};
use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Engine, Limits, Modelled, Replica};
use warmroute::experiment::Experiment;
use warmroute::fleet::{Devices, Fleet};
use warmroute::params::{BackendKind, Blocks, Config};
use warmroute::policy::{PolicyKind, PolicySettings};
use warmroute::sim::{Outcome, Record, Recorder, What, run_express};
use warmroute::trace::Trace;
use warmroute::trace::generate::{Length, Queue};
use warmroute::units::Time;

/// A millisecond for each token of a prompt, and for each of an output after the first (a prompt's step
/// brings that one).
const MILLISECOND: u64 = 1_000_000_000;
const PRICE: StepPrice = StepPrice {
    prefill: PiecePrice { base: 0, per_token: MILLISECOND, per_pair: 0 },
    decode: PiecePrice { base: 0, per_token: MILLISECOND, per_pair: 0 },
};

/// Mean tokens of a service, long enough that whole tokens are nearly continuous.
const TOKENS: f64 = 1000.0;

const REQUESTS: usize = 200_000;

/// Each request's replica, and its wait for its admission in seconds.
fn served(trace: &Trace, replicas: u32, policy: PolicyKind) -> Vec<(u32, f64)> {
    let limits = Limits { blocks: 1 << 12, block_size: 16, max_batch: 1, positions: 1 << 16 };
    let all = (0..replicas).map(|i| Replica::new(i, limits, Box::new(Modelled))).collect();
    let mut fleet = Fleet::new(all, policy.build(&PolicySettings::default()), Devices::Separate);
    let mut recorder = Recorder::new(replicas as usize, limits.blocks);
    run_express(&mut fleet, trace, &Sampling::default(), &PRICE, &mut recorder).expect("it fits the clock");
    let wait = |record: &Record| match record.outcome {
        Outcome::Served { replica, admitted: Some(at), finished: Some(_), .. } => {
            (replica, Time(at).since(Time(record.arrival)).seconds())
        }
        _ => panic!("request {} was not served: {:?}", record.request, record.outcome),
    };
    recorder.records().map(wait).collect()
}

/// The waits in order of arrival.
fn waits(trace: &Trace, replicas: u32, policy: PolicyKind) -> Vec<f64> {
    served(trace, replicas, policy).into_iter().map(|(_, wait)| wait).collect()
}

/// The mean with half the width of its 99 % confidence interval: thirty batches, long enough to be
/// nearly independent, after a tenth of the run is left out as its beginning.
fn mean(waits: &[f64]) -> (f64, f64) {
    const BATCHES: usize = 30;
    // Student's t for 99 % and 29 degrees of freedom.
    const T: f64 = 2.756;
    let steady = &waits[waits.len() / 10..];
    let size = steady.len() / BATCHES;
    let means: Vec<f64> = steady
        .chunks_exact(size)
        .take(BATCHES)
        .map(|batch| batch.iter().sum::<f64>() / size as f64)
        .collect();
    let mean = means.iter().sum::<f64>() / BATCHES as f64;
    let variance = means.iter().map(|m| (m - mean) * (m - mean)).sum::<f64>() / (BATCHES - 1) as f64;
    (mean, T * (variance / BATCHES as f64).sqrt())
}

fn holds(what: &str, waits: &[f64], theory: f64) {
    let (mean, half) = mean(waits);
    assert!(
        (mean - theory).abs() <= half,
        "{what}: the mean wait is {mean:.4} s ± {half:.4} s, and {theory:.4} s by theory"
    );
    assert!(half < 0.12 * theory, "{what}: ± {half:.4} s says little of {theory:.4} s");
}

/// Prompts of one length or exponential ones, an output of one token: a step a request.
fn trace(load: f64, servers: u32, prompt: Length, seed: u64) -> Trace {
    let rate = load * f64::from(servers) / (prompt.mean() * 1e-3);
    Queue { requests: REQUESTS, rate, prompt, output: Length::Fixed(1), seed }.generate()
}

#[test]
fn one_replica_is_m_m_1_and_m_d_1() {
    for (load, seed) in [(0.5, 1), (0.8, 2)] {
        for (what, prompt, share) in
            [("M/M/1", Length::Exponential(TOKENS), 1.0), ("M/D/1", Length::Fixed(TOKENS as u32), 0.5)]
        {
            // Pollaczek and Khinchine: ρ ÷ (1 − ρ) services, and half of that if they are all alike.
            let theory = share * load / (1.0 - load) * prompt.mean() * 1e-3;
            let waits = waits(&trace(load, 1, prompt, seed), 1, PolicyKind::RoundRobin);
            holds(&format!("{what} at {load}"), &waits, theory);
        }
    }
}

#[test]
fn a_service_may_as_well_be_all_output() {
    let output = Length::Exponential(TOKENS);
    let load = 0.7;
    let rate = load / (output.mean() * 1e-3);
    let trace = Queue { requests: REQUESTS, rate, prompt: Length::Fixed(1), output, seed: 3 }.generate();
    let waits = waits(&trace, 1, PolicyKind::RoundRobin);
    holds("M/M/1 of decode steps", &waits, load / (1.0 - load) * output.mean() * 1e-3);
}

/// What arrives at each of k replicas in turn is every k-th arrival: gaps of k exponentials, Eₖ/M/1.
#[test]
fn round_robin_over_k_is_e_k_m_1_on_each() {
    let prompt = Length::Exponential(TOKENS);
    let service = prompt.mean() * 1e-3;
    let load = 0.8;
    for k in [2u32, 4] {
        let served = served(&trace(load, k, prompt, 4), k, PolicyKind::RoundRobin);
        // σ = A*(µ − µσ), with A* the transform of the gaps: (kρ ÷ (kρ + 1 − σ))ᵏ. Its iteration from 0
        // climbs to the smallest root.
        let scale = f64::from(k) * load;
        let root = (0..10_000).fold(0.0f64, |sigma, _| libm::pow(scale / (scale + 1.0 - sigma), k.into()));
        for replica in 0..k {
            let own: Vec<f64> = served.iter().filter(|one| one.0 == replica).map(|one| one.1).collect();
            holds(&format!("E{k}/M/1, replica {replica}"), &own, root / (1.0 - root) * service);
        }
    }
}

/// The share of arrivals that wait in M/M/k, by Erlang's formula.
fn erlang_c(k: u32, load: f64) -> f64 {
    let offered = f64::from(k) * load;
    let blocked = (1..=k).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    blocked / (1.0 - load * (1.0 - blocked))
}

/// Whoever joins the least work left is served as from one queue. Outstanding tokens are that work but
/// for what they count besides: each prompt's one token, and the first of each output, which costs no
/// step of its own. So once in a while a choice between replicas
/// whose ends are a token apart goes the other way, and the mean wait differs from one queue's on the
/// same trace by less than a hundredth of a percent.
#[test]
fn least_tokens_on_one_token_prompts_is_nearly_m_m_k() {
    let output = Length::Exponential(TOKENS);
    let service = output.mean() * 1e-3;
    let load = 0.8;
    for k in [2u32, 4] {
        let rate = load * f64::from(k) / service;
        let trace = Queue { requests: REQUESTS, rate, prompt: Length::Fixed(1), output, seed: 5 }.generate();
        let by_tokens = waits(&trace, k, PolicyKind::LeastTokens);
        let theory = erlang_c(k, load) / (f64::from(k) * (1.0 - load)) * service;
        holds(&format!("M/M/{k}"), &by_tokens, theory);
        let own = mean(&by_tokens).0;
        let exact = mean(&one_queue(&trace, k)).0;
        let off = own / exact - 1.0;
        println!("M/M/{k}: {own:.4} s by least-tokens, {exact:.4} s from one queue ({:+.3} %)", 100.0 * off);
        assert!(off.abs() < 1e-4, "{:.3} % from one queue on the same trace", 100.0 * off);
        let turns = mean(&waits(&trace, k, PolicyKind::RoundRobin)).0;
        assert!(turns > 1.5 * own, "{turns} s in turn, {own} s by least tokens");
    }
}

/// The waits of the same requests at one queue before k servers.
fn one_queue(trace: &Trace, k: u32) -> Vec<f64> {
    let mut free = vec![0u64; k as usize];
    let wait = |spec: &warmroute::trace::RequestSpec| {
        let next = free.iter_mut().min().expect("there are servers");
        let begin = spec.arrival.0.max(*next);
        *next = begin + MILLISECOND * (spec.prompt.len() as u64 + spec.max_tokens - 1);
        Time(begin).since(spec.arrival).seconds()
    };
    trace.requests.iter().map(wait).collect()
}

/// Arrived = finished + rejected + in flight, at every instant of runs that preempt, evict and reject.
#[test]
fn nobody_is_lost_at_any_instant() {
    for (devices, policy) in [Devices::Shared, Devices::Separate]
        .into_iter()
        .flat_map(|devices| PolicyKind::ALL.map(|policy| (devices, policy)))
    {
        let config = Config {
            backend: BackendKind::Modelled,
            devices,
            requests: 300,
            rate: 40.0,
            // Some need more blocks than there are, and who runs beside others is preempted.
            blocks: Blocks::Number(29),
            ..Config::default()
        };
        let experiment = Experiment::new(config);
        let mut simulation = experiment.simulation(policy, experiment.modelled_clock());
        let (mut finished, mut rejected, mut preempted, mut instants) = (0, 0, 0, 0);
        loop {
            let more = simulation
                .advance(|event| match event.what {
                    What::Rejected { .. } => rejected += 1,
                    What::StepEnded { end, .. } => finished += end.emitted.iter().filter(|e| e.last).count(),
                    What::StepStarted { start, .. } => preempted += start.preempted.len(),
                    What::Routed { .. } => {}
                })
                .expect("it fits the clock");
            let loads = simulation.engine().replicas().iter().map(Replica::load);
            let in_flight: u32 = loads.map(|load| load.waiting + load.running).sum();
            assert_eq!(simulation.arrived(), finished + rejected + in_flight as usize);
            instants += 1;
            if !more {
                assert_eq!(in_flight, 0);
                break;
            }
        }
        assert!(instants > 1000 && finished > 0 && rejected > 0 && preempted > 0, "{rejected} {preempted}");
    }
}
