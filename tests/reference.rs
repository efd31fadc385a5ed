//! On a trace with explicit tokens, reuse and assignments are what a few lines of Python say.
//!
//! `tests/reference/explicit.py` wrote the trace and printed the numbers.
#![cfg(not(target_arch = "wasm32"))]

use warmroute::experiment::Experiment;
use warmroute::params::{BackendKind, Config};
use warmroute::policy::PolicyKind;
use warmroute::trace::import::read_json_lines;

/// Cached tokens, prompt tokens, assignments.
type Counts = (u64, u64, &'static [u64]);

/// Replicas; round-robin; unguarded prefix-affinity.
const PYTHON: [(u32, Counts, Counts); 4] = [
    (1, (3856, 6072, &[63]), (3856, 6072, &[63])),
    (3, (2816, 6072, &[21, 21, 21]), (3712, 6072, &[16, 31, 16])),
    (4, (2720, 6072, &[16, 16, 16, 15]), (3680, 6072, &[14, 5, 9, 35])),
    (7, (1408, 6072, &[9, 9, 9, 9, 9, 9, 9]), (3584, 6072, &[16, 9, 13, 16, 1, 3, 5])),
];

#[test]
fn reuse_and_assignments_agree_with_python() {
    let text = include_str!("reference/explicit.jsonl");
    for (replicas, robin, affinity) in PYTHON {
        let config = Config {
            replicas,
            max_imbalance: f64::INFINITY,
            backend: BackendKind::Modelled,
            ..Config::default()
        };
        let trace = read_json_lines(text, 260).expect("a good trace");
        let experiment = Experiment::with_trace(config, trace, None);
        for (policy, (cached, prompt, assignments)) in
            [(PolicyKind::RoundRobin, robin), (PolicyKind::PrefixAffinity, affinity)]
        {
            let recorder = experiment.run(policy, experiment.modelled_clock()).expect("it fits the clock");
            let summary = experiment.summary(&recorder);
            assert_eq!((summary.cached_tokens, summary.prompt_tokens), (cached, prompt), "{policy:?}");
            assert_eq!(summary.assignments, assignments, "{policy:?} on {replicas}");
            assert_eq!(summary.reuse, Some(cached as f64 / prompt as f64));
            assert_eq!(summary.completed, 63);
        }
    }
}
