//! A public trace of conversations, where it is there: what unlimited caches would reuse of it is known.
//!
//! The folder beside the repository's, `shared/traces`, or the one that `WARMROUTE_TRACES` names.
#![cfg(not(target_arch = "wasm32"))]

use std::io::Write;
use std::path::PathBuf;

use warmroute::cost::{PiecePrice, StepPrice};
use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Limits, Modelled, Replica};
use warmroute::fleet::{Devices, Fleet};
use warmroute::policy::{PolicyKind, PolicySettings, tuple_hash};
use warmroute::sim::{Objectives, Outcome, Recorder, run_express};
use warmroute::trace::import::read_mooncake;
use warmroute::trace::{BlockIds, Prompt, RequestSpec, Trace};
use warmroute::units::Time;

const PRICE: StepPrice = StepPrice {
    prefill: PiecePrice { base: 1, per_token: 1, per_pair: 0 },
    decode: PiecePrice { base: 1, per_token: 1, per_pair: 0 },
};

fn run(
    trace: &Trace,
    limits: Limits,
    replicas: u32,
    policy: PolicyKind,
    settings: &PolicySettings,
) -> Recorder {
    let replica = |i| Replica::new(i, limits, Box::new(Modelled));
    let all = (0..replicas).map(replica).collect();
    let mut fleet = Fleet::new(all, policy.build(settings), Devices::Separate);
    let mut recorder = Recorder::new(replicas as usize, limits.blocks);
    run_express(&mut fleet, trace, &Sampling::default(), &PRICE, &mut recorder).expect("it fits the clock");
    recorder
}

const UNLIMITED: Limits = Limits { blocks: 90_000, block_size: 512, max_batch: 256, positions: 131_072 };

/// The trace, where it is there; `None`, and a word about it, where it is not.
fn conversation() -> Option<Trace> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces"));
    let folder = std::env::var_os("WARMROUTE_TRACES").map_or(beside, PathBuf::from);
    let Ok(text) = std::fs::read_to_string(folder.join("mooncake_conversation_trace.jsonl")) else {
        // Past the test harness, which shows what a test prints only when it fails.
        writeln!(std::io::stderr(), "skipped: no mooncake_conversation_trace.jsonl (WARMROUTE_TRACES)")
            .expect("standard error is open");
        return None;
    };
    Some(read_mooncake(&text, 512).expect("a good trace"))
}

/// Hit rates of round-robin with caches that never evict, as counted apart from any scheduler.
#[test]
fn unlimited_caches_reuse_what_was_counted() {
    let Some(trace) = conversation() else { return };
    for (replicas, percent) in [(4, 19.6), (8, 13.9), (16, 10.1)] {
        let settings = PolicySettings::default();
        let recorder = run(&trace, UNLIMITED, replicas, PolicyKind::RoundRobin, &settings);
        let summary = recorder.summary(&Objectives { ttft: 1.0, itl: 1.0 }, &trace.tenants);
        assert_eq!((summary.completed, summary.evictions), (12_031, 0));
        let reuse = 100.0 * summary.reuse.expect("requests were admitted");
        assert!((reuse - percent).abs() < 0.1, "{reuse} % on {replicas} replicas, {percent} % counted");
    }
}

/// Its conversations begin with the same block, and whoever has it gets them all; with a guard, not.
#[test]
fn the_longest_prefix_is_one_replicas_unless_it_is_guarded() {
    let Some(trace) = conversation() else { return };
    let assignments = |limits: Limits, settings: &PolicySettings| {
        run(&trace, limits, 16, PolicyKind::LongestPrefix, settings).assignments().to_vec()
    };
    let small = Limits { blocks: 800, ..UNLIMITED };
    for limits in [UNLIMITED, small] {
        let unguarded = assignments(limits, &PolicySettings::default());
        assert_eq!(unguarded[0], 12_031, "{unguarded:?}");
    }
    let guard = PolicySettings { longest_prefix_guard: 2.0, ..PolicySettings::default() };
    let guarded = assignments(UNLIMITED, &guard);
    assert_eq!(guarded.iter().sum::<u64>(), 12_031);
    assert!(guarded.iter().all(|&n| 0 < n && n < 12_031 / 3), "{guarded:?}");
}

/// The prefix of a prompt without tokens is the ids that cover it.
#[test]
fn affinity_hashes_the_leading_ids_that_cover_the_prefix() {
    let request = |i: u32| RequestSpec {
        arrival: Time(u64::from(i)),
        prompt: Prompt::Blocks(BlockIds { tokens: 40, block: 16, ids: [i % 3, i % 5, i].into() }),
        max_tokens: 1,
        tenant: None,
        output: None,
    };
    let trace = Trace { requests: (0..60).map(request).collect(), tenants: Vec::new() };
    let limits = Limits { blocks: 64, block_size: 8, max_batch: 8, positions: 64 };
    for (prefix_length, ids) in [(1, 1), (16, 1), (17, 2), (32, 2), (33, 3), (500, 3)] {
        let items = usize::div_ceil(prefix_length, trace.tokens_per_item());
        let settings = PolicySettings {
            prefix_length: items,
            max_imbalance: f64::INFINITY,
            ..PolicySettings::default()
        };
        let recorder = run(&trace, limits, 7, PolicyKind::PrefixAffinity, &settings);
        for (record, request) in recorder.records().zip(&trace.requests) {
            let expected = tuple_hash(&request.prompt.items()[..ids]).rem_euclid(7) as u32;
            assert!(matches!(record.outcome, Outcome::Served { replica, .. } if replica == expected));
        }
    }
}

/// What a prompt without tokens generates is nobody's to share, and gone when it is finished.
#[test]
fn what_was_generated_is_free_again() {
    let prompt = Prompt::Blocks(BlockIds { tokens: 20, block: 16, ids: [3, 4].into() });
    let request = RequestSpec { arrival: Time::ZERO, prompt, max_tokens: 30, tenant: None, output: None };
    let trace = Trace { requests: vec![request.clone(), request], tenants: Vec::new() };
    let limits = Limits { blocks: 64, block_size: 8, max_batch: 8, positions: 64 };
    let replica = Replica::new(0, limits, Box::new(Modelled));
    let mut fleet = Fleet::new(
        vec![replica],
        PolicyKind::RoundRobin.build(&PolicySettings::default()),
        Devices::Separate,
    );
    let mut recorder = Recorder::new(1, limits.blocks);
    run_express(&mut fleet, &trace, &Sampling::default(), &PRICE, &mut recorder).expect("it fits the clock");
    let pool = warmroute::engine::Engine::replicas(&fleet)[0].pool();
    assert_eq!(
        (pool.held(), pool.cached(), pool.free()),
        (0, 2, 62),
        "two full blocks of the prompt are kept"
    );
    assert_eq!(recorder.reuse(), Some(16.0 / 40.0));
}
