//! Results are the same bytes natively and in the browser: a small run under each policy against its
//! file in tests/golden, and a hundred seeds against one hash.
//!
//! `BLESS=1 cargo test --test web_golden` writes the files anew, once a change of what a run comes to is
//! wanted. The hash is then the one that the failing test names.

use std::fmt::Write;

use serde::Serialize;
use warmroute::experiment::Experiment;
use warmroute::fleet::Devices;
use warmroute::params::{BackendKind, Blocks, Config};
use warmroute::policy::PolicyKind;
use warmroute::sim::{Recorder, What};

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// FNV-1a over the JSON of a hundred seeds under five policies.
const HASH: u64 = 0x2392c3478a863c03;

/// Pools so tight that requests are preempted and prefixes evicted, and a replica that is too popular.
fn tight() -> Config {
    Config {
        backend: BackendKind::Modelled,
        devices: Devices::Separate,
        requests: 16,
        rate: 24.0,
        tenants: 3,
        replicas: 2,
        output_min: 60,
        output_max: 90,
        blocks: Blocks::Number(38),
        max_imbalance: 1.25,
        longest_prefix_guard: 1.25,
        ..Config::default()
    }
}

/// The same behind routers that see little, and late.
fn late(config: Config) -> Config {
    Config { routers: 2, signal_period: 0.125, signal_own: true, ..config }
}

fn line(text: &mut String, value: &impl Serialize) {
    let json = serde_json::to_string(value).expect("plain data");
    writeln!(text, "    {json},").expect("a text takes all that is written");
}

/// Every decision, every request's life and the figures, an object a run.
fn run(config: Config, policy: PolicyKind) -> String {
    let experiment = Experiment::new(config);
    let mut recorder = experiment.recorder();
    let mut text = String::from("{\n  \"decisions\": [\n");
    experiment
        .simulation(policy, experiment.modelled_clock())
        .run(|event| {
            recorder.observe(&event);
            if let What::Routed { decision, .. } = &event.what {
                line(&mut text, decision);
            }
        })
        .expect("it fits the clock");
    text += "    null\n  ],\n";
    text + &figures(&experiment, &recorder) + "}"
}

fn figures(experiment: &Experiment, recorder: &Recorder) -> String {
    let mut text = String::from("  \"requests\": [\n");
    recorder.records().for_each(|record| line(&mut text, record));
    let summary = serde_json::to_string(&experiment.summary(recorder)).expect("plain data");
    text + "    null\n  ],\n  \"summary\": " + &summary + "\n"
}

/// What a policy's file holds.
fn golden(policy: PolicyKind) -> String {
    format!("[\n{},\n{}\n]\n", run(tight(), policy), run(late(tight()), policy))
}

#[cfg(not(target_arch = "wasm32"))]
#[test]
fn each_policy_does_what_its_file_says() {
    for policy in PolicyKind::ALL {
        let path = format!("{}/tests/golden/{}.json", env!("CARGO_MANIFEST_DIR"), policy.name());
        let text = golden(policy);
        serde_json::from_str::<serde_json::Value>(&text).expect("it is JSON");
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).expect("the folder is there");
        }
        assert!(std::fs::read_to_string(&path).expect("one file a policy") == text, "{path} differs");
    }
}

#[cfg(target_arch = "wasm32")]
#[wasm_bindgen_test::wasm_bindgen_test]
fn each_policy_does_what_its_file_says() {
    let files = [
        (PolicyKind::RoundRobin, include_str!("golden/round-robin.json")),
        (PolicyKind::LeastRequests, include_str!("golden/least-requests.json")),
        (PolicyKind::LeastTokens, include_str!("golden/least-tokens.json")),
        (PolicyKind::PrefixAffinity, include_str!("golden/prefix-affinity.json")),
        (PolicyKind::LongestPrefix, include_str!("golden/longest-prefix.json")),
    ];
    assert_eq!(files.map(|(policy, _)| policy), PolicyKind::ALL, "one file a policy");
    for (policy, file) in files {
        assert!(golden(policy) == file, "{} differs", policy.name());
    }
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn a_hundred_seeds_have_a_pinned_hash() {
    // By name, so that another policy leaves the hash as it is.
    let policies = ["round-robin", "least-requests", "least-tokens", "prefix-affinity", "longest-prefix"];
    let policies = policies.map(|name| PolicyKind::from_name(name).expect("it exists"));
    let mut hash: u64 = 0xCBF2_9CE4_8422_2325;
    for seed in 0..100 {
        let config = Config { seed, ..tight() };
        let experiment = Experiment::new(if seed % 2 == 0 { config } else { late(config) });
        for policy in policies {
            let recorder = experiment.run_modelled(policy).expect("it fits the clock");
            for byte in figures(&experiment, &recorder).bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
            }
        }
    }
    assert_eq!(hash, HASH, "{hash:#018x}");
}
