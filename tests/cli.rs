//! The command line as its user meets it: results on standard output, wrong input in one line.
#![cfg(not(target_arch = "wasm32"))]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn warmroute(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warmroute")).args(args).output().expect("the binary was built")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is text")
}

fn json(args: &[&str]) -> Value {
    let output = warmroute(args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("--json prints JSON")
}

/// A file in a folder of this test's own.
fn file(name: &str, content: &[u8]) -> String {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(name);
    std::fs::write(&path, content).expect("the folder is the test's own");
    path.to_str().expect("a plain path").to_owned()
}

#[test]
fn json_has_one_object_a_policy_with_every_field() {
    let reports =
        json(&["run", "--backend", "modelled", "--json", "--policy", "all", "--max-imbalance", "inf"]);
    let names: Vec<&str> =
        reports.as_array().expect("an array").iter().map(|r| r["policy"].as_str().expect("a name")).collect();
    assert_eq!(names, ["round-robin", "least-requests", "least-tokens", "prefix-affinity", "longest-prefix"]);
    let report = &reports[3];
    for field in [
        "completed",
        "rejected",
        "reuse",
        "imbalance",
        "token_imbalance",
        "assignments",
        "goodput_per_second",
        "goodput_fraction",
        "output_tokens_per_second",
        "requests_per_second",
        "preemptions",
        "evictions",
        "recomputed_tokens",
        "peak_kv_utilisation",
        "span",
        "tenants",
    ] {
        assert!(!report[field].is_null(), "{field}");
    }
    for latency in ["ttft", "itl"] {
        for p in ["p50", "p95", "p99"] {
            assert!(report[latency][p].is_f64(), "{latency} {p}");
        }
    }
    let configuration = &report["configuration"];
    assert_eq!(configuration["replicas"], 4);
    assert!(configuration["max_imbalance"].is_null(), "no guard is null");
    assert_eq!(report["tenants"].as_array().expect("an array").len(), 6);
}

#[test]
fn the_same_parameters_print_the_same_bytes() {
    let args = ["run", "--backend", "modelled", "--json", "--seed", "11", "--requests", "200"];
    assert_eq!(warmroute(&args).stdout, warmroute(&args).stdout);
}

#[test]
fn a_saved_trace_runs_as_it_did() {
    let path = file("saved.jsonl", b"");
    let made = json(&["run", "--backend", "modelled", "--json", "--save-trace", &path]);
    let read = json(&["run", "--backend", "modelled", "--json", "--trace", &path]);
    for (a, b) in made.as_array().expect("an array").iter().zip(read.as_array().expect("an array")) {
        for field in ["policy", "ttft", "itl", "reuse", "assignments", "goodput_per_second"] {
            assert_eq!(a[field], b[field], "{field}");
        }
    }
    assert_eq!(read[0]["configuration"]["trace"], path.as_str());
    assert!(read[0]["configuration"].get("rate").is_none(), "the generator had no part in it");
}

#[test]
fn wrong_input_is_one_line_and_exit_code_2() {
    let good = "{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1}\n";
    let bad_line = file(
        "bad.jsonl",
        format!("{good}{{\"arrival\": -1, \"prompt\": \"a\", \"max_tokens\": 1}}\n").as_bytes(),
    );
    let image = file("image.jsonl", &[good.as_bytes(), &[0x89, 0x50, 0xff]].concat());
    let empty = file("empty.jsonl", b"\n\n");
    let fine = file("fine.jsonl", good.as_bytes());
    let late = file("late.jsonl", b"{\"arrival\": 18446743.9, \"prompt\": \"abc\", \"max_tokens\": 2000}\n");
    let dear = [u64::MAX.to_string().as_str(); 6].join(",");
    let ids = file(
        "ids.jsonl",
        b"{\"timestamp\": 0, \"input_length\": 40, \"output_length\": 2, \"hash_ids\": [0]}\n",
    );
    let sparse = file("sparse.jsonl", b"");
    let length = std::fs::File::options().write(true).open(&sparse).and_then(|f| f.set_len(1 << 32));
    length.expect("the folder is the test's own");
    let line = "{\"timestamp\": 0, \"input_length\": 60000, \"output_length\": 2, \"hash_ids\": [0]}\n";
    let packed = file("fine-blocks.jsonl", line.repeat(5000).as_bytes());
    let with_fine_blocks =
        ["run", "--backend", "modelled", "--trace", &packed, "--trace-block", "65536", "--block-size", "1"];
    let modelled = ["run", "--backend", "modelled", "--trace", &ids];
    let with = |more: &[&'static str]| [&modelled[..], more].concat();
    let precious = file("kept.jsonl", b"precious");
    let (odd, many, over) = (
        with(&["--trace-block", "40"]),
        with(&["--trace-block", "32"]),
        [&with(&["--trace-block", "48", "--save-trace"])[..], &[&precious]].concat(),
    );
    let cases: [(&[&str], &[&str]); 43] = [
        (&odd, &["--trace-block", "40", "blocks of 16"]),
        (&many, &["ids.jsonl", "line 1", "`hash_ids`", "1 ids", "2 blocks of 32"]),
        (&over, &["kept.jsonl", "is there already", "--force"]),
        (&["run", "--trace", &ids, "--trace-block", "48"], &["--trace-block", "--backend modelled"]),
        (&["run", "--backend", "modelled", "--trace-block", "48"], &["--trace-block", "--trace"]),
        (&["run", "--trace-block", "0"], &["--trace-block", "`0`", "from 1"]),
        (&["run", "--positions", "4096"], &["--positions", "2048"]),
        (&["run", "--backend", "modelled", "--trace", &late], &["213 days"]),
        (&["run", "--backend", "modelled", "--cost", &dear], &["213 days"]),
        (&["run", "--requests", "20000", "--rate", "0.001"], &["--rate", "days"]),
        (&["run", "--trace", &fine, "--trace", &fine], &["--trace", "twice"]),
        (&["run", "--trace", &bad_line], &["bad.jsonl", "line 2", "`arrival`", "-1"]),
        (&["run", "--trace", &image], &["image.jsonl", "line 2", "UTF-8"]),
        (&["run", "--trace", &empty], &["empty.jsonl", "no requests"]),
        (&["run", "--trace", "/no/such/file"], &["/no/such/file"]),
        (&["run", "--trace", &fine, "--rate", "3"], &["--rate", "--trace"]),
        (&["run", "--replicas", "0"], &["--replicas", "`0`", "from 1 to 1024"]),
        (&["run", "--rate", "2", "--rate", "3"], &["--rate", "twice"]),
        (&["run", "--user-min", "9", "--user_min", "9"], &["--user-min", "twice"]),
        (&["run", "--trace", &sparse], &["sparse.jsonl", "longer than 2147483648 bytes"]),
        (&with_fine_blocks, &["--block-size", "in blocks of 1 are 300000000 blocks", "at most 268435456"]),
        (&["run", "--spread"], &["--spread", "--trace"]),
        (&["run", "--requests", "1000001"], &["--requests", "from 1 to 1000000"]),
        (
            &["run", "--backend", "modelled", "--requests", "1000000", "--repeat", "7"],
            &["--requests", "1000000 prompts of up to 592 tokens", "at most 536870912"],
        ),
        (
            &["run", "--replicas", "1024", "--blocks", "64"],
            &["--replicas", "1048576 tokens", "at most 524288"],
        ),
        (&["run", "--max-imbalance", "nan"], &["--max-imbalance", "or inf"]),
        (&["run", "--policy", "lest-tokens"], &["--policy", "`least-tokens`"]),
        (&["run", "--policy", "round-robin,round-robin"], &["twice"]),
        (&["run", "--replica", "2"], &["--replica ", "--replicas"]),
        (&["run", "--user-min", "50"], &["--user-max", "user_min = 50"]),
        (&["run", "--requests"], &["--requests"]),
        (&["run", "--accelerator", "h200x"], &["--accelerator", "`h200x`", "h200 | b200"]),
        (&["run", "--model", "qwen3-32b"], &["--model", "qwen3-32b", "accelerator"]),
        (&["run", "--blocks", "auto"], &["--blocks", "accelerator"]),
        (
            &["run", "--accelerator", "h100", "--tp", "6"],
            &["--tp", "found 6", "32 query heads", "1, 2, 4, 8"],
        ),
        (&["run", "--accelerator", "h100", "--tp", "9"], &["--tp", "`9`", "from 1 to 8"]),
        (
            &["run", "--model", "llama-3-70b", "--accelerator", "a100"],
            &["--tp", "141.11 GB of weights", "80.00 GB", "with tp = 2"],
        ),
        (&["run", "--accelerator", "l40s", "--blocks", "100000"], &["--blocks", "100000", "blocks"]),
        (&["run", "--accelerator", "h100", "--cost", "1,2,3,4,5,6"], &["--cost", "leave out"]),
        (&["cost", "--fit", "--tp", "2"], &["--tp", "--fit"]),
        (&["cost", "--rate", "3"], &["--rate"]),
        (&["rum"], &["`rum`", "`run`"]),
        (&["run", "stray"], &["stray"]),
    ];
    for (args, parts) in cases {
        let output = warmroute(args);
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
        assert_eq!(message.lines().count(), 1, "{args:?}: {message}");
        assert!(output.stdout.is_empty());
        for part in parts {
            assert!(message.contains(part), "{args:?}: `{part}` is missing in: {message}");
        }
    }
}

#[test]
fn a_prompt_too_long_is_a_rejected_request_with_its_reason() {
    let path = file(
        "long.jsonl",
        format!(
            "{{\"arrival\": 0, \"prompt\": \"{}\", \"max_tokens\": 9}}\n{{\"arrival\": 0, \"prompt\": \"b\", \"max_tokens\": 2}}\n",
            "a".repeat(2040)
        )
        .as_bytes(),
    );
    for (extra, reason) in
        [(&[][..], "too_long_for_model"), (&["--blocks", "2", "--block-size", "4"], "too_long_for_model")]
    {
        let mut args = vec!["run", "--backend", "modelled", "--json", "--trace", &path];
        args.extend(extra);
        let reports = json(&args);
        assert_eq!((&reports[0]["completed"], &reports[0]["rejected"]), (&1.into(), &1.into()));
        assert_eq!(reports[0]["rejections"][0]["reason"], reason);
    }
}

#[test]
fn help_lists_every_option() {
    let output = warmroute(&["run", "--help"]);
    assert!(output.status.success());
    for param in &warmroute::params::PARAMS {
        assert!(text(&output.stdout).contains(&format!("--{}", param.flag())), "{}", param.key);
    }
    assert!(warmroute(&[]).status.success() && warmroute(&["--version"]).status.success());
}

#[test]
fn a_trace_of_block_ids_runs_without_tokens() {
    let line = |at: u32, ids: &str| {
        format!(
            "{{\"timestamp\": {at}, \"input_length\": 40, \"output_length\": 4, \"hash_ids\": [{ids}]}}\n"
        )
    };
    let path =
        file("blocks.jsonl", (line(7000, "1, 2") + &line(9000, "1, 2") + &line(9500, "2, 1")).as_bytes());
    let args = ["run", "--backend", "modelled", "--json", "--trace", &path, "--trace-block", "32"];
    let reports = json(&[&args[..], &["--replicas", "1", "--policy", "all"]].concat());
    for report in reports.as_array().expect("an array") {
        assert_eq!((&report["completed"], &report["prompt_tokens"]), (&3.into(), &120.into()));
        assert_eq!(report["cached_tokens"], 32, "the second finds 2 of its 2 full blocks, the third none");
        assert!(report["span"].as_f64().is_some_and(|span| span < 6.0), "it begins with its first arrival");
        assert_eq!(report["configuration"]["trace_block"], 32);
        assert!(report["configuration"].get("spread").is_none());
    }
}

#[test]
fn a_run_that_is_refused_leaves_a_file_as_it_is() {
    let path = file("precious.jsonl", b"precious");
    let dear = [u64::MAX.to_string().as_str(); 6].join(",");
    let output = warmroute(&["run", "--backend", "modelled", "--cost", &dear, "--save-trace", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(&path).expect("it is there"), b"precious");
}

#[test]
fn rounded_arrivals_are_spread_where_that_is_asked_for() {
    let line = |at: u32, id: u32| {
        format!("{{\"timestamp\": {at}, \"input_length\": 32, \"output_length\": 1, \"hash_ids\": [{id}]}}\n")
    };
    let lines: String = (0..300).map(|i| line(i / 100 * 60_000, i)).collect();
    let path = file("rounded.jsonl", lines.as_bytes());
    let args = ["run", "--backend", "modelled", "--policy", "round-robin", "--json", "--trace", &path];
    let args = [&args[..], &["--trace-block", "32", "--replicas", "1"]].concat();
    let ttft = |report: &Value| report[0]["ttft"]["p50"].as_f64().expect("a time");
    let (plain, spread) = (json(&args), json(&[&args[..], &["--spread"]].concat()));
    assert!(ttft(&spread) < ttft(&plain) / 4.0, "no burst that nobody saw");
    assert_eq!(spread[0]["configuration"]["spread"], true);
    let other = json(&[&args[..], &["--spread", "--seed", "9"]].concat());
    assert_ne!(other[0]["span"], spread[0]["span"], "drawn from the seed");
}

#[test]
fn an_accelerator_brings_its_price_its_memory_and_its_defaults() {
    let args = ["run", "--max-batch", "64", "--model", "llama-3-70b", "--tp", "4", "--accelerator", "h100"];
    let reports = json(&[&args[..], &["--json"]].concat());
    let configuration = &reports[0]["configuration"];
    for (field, value) in [
        ("accelerator", "h100".into()),
        ("model", "llama-3-70b".into()),
        ("tp", Value::from(4)),
        ("backend", "modelled".into()),
        ("devices", "separate".into()),
        ("blocks", "auto".into()),
        ("positions", 131_072.into()),
        ("max_batch", 64.into()),
    ] {
        assert_eq!(configuration[field], value, "{field}");
    }
    assert!(configuration.get("cost").is_none(), "the price is the accelerator's");
    let pool = &configuration["kv_pool"];
    assert!(pool["blocks"].as_u64().is_some_and(|blocks| blocks > 27_000), "{pool}");
    assert!(configuration["step_price_picoseconds"]["matrices"]["read"].is_u64());
    let output = warmroute(&args);
    let text = text(&output.stdout);
    assert!(text.starts_with("a replica: llama-3-70b on 4 × h100\nKV pool: (80.00 GB × 0.9 − "), "{text}");
    assert!(text.contains(pool["formula"].as_str().expect("a text")));
    // Without one, nothing is said of it.
    let plain = json(&["run", "--backend", "modelled", "--json"]);
    for field in ["accelerator", "model", "tp", "kv_pool"] {
        assert!(plain[0]["configuration"].get(field).is_none(), "{field}");
    }
    assert_eq!(plain[0]["configuration"]["blocks"], 384);
}

#[test]
fn cost_prints_prices_and_their_fit() {
    let fit = warmroute(&["cost", "--fit"]);
    assert_eq!(text(&fit.stdout).lines().filter(|line| line.contains("(priced)")).count(), 6);
    let prices = warmroute(&["cost", "--accelerator", "b200", "--model", "qwen3-30b-a3b"]);
    let prices = text(&prices.stdout);
    assert!(prices.starts_with("qwen3-30b-a3b on 1 × b200\nKV pool: (180.00 GB"), "{prices}");
    assert!(prices.contains("nothing of this one was measured"));
}
