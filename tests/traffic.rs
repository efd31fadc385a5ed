//! A reader's own traffic, from the first file to an answer: what is read, described, made, written and recommended.
//!
//! What needs the public traces looks for them in the folder beside the repository's, `shared/traces`, or the one that
//! `WARMROUTE_TRACES` names, and is skipped, saying so, where they are not there.
#![cfg(not(target_arch = "wasm32"))]

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

fn warmroute(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_warmroute")).args(args).output().expect("the binary was built")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is text")
}

fn good(args: &[&str]) -> (String, String) {
    let output = warmroute(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    (text(&output.stdout).to_owned(), text(&output.stderr).to_owned())
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&good(args).0).expect("it is JSON")
}

/// What is said of wrong input: one line, exit code 2, nothing on standard output.
fn refused(args: &[&str]) -> String {
    let output = warmroute(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    assert_eq!(message.lines().count(), 1, "{args:?}: {message}");
    assert!(output.stdout.is_empty());
    message.to_owned()
}

fn path(name: &str) -> String {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name).to_str().expect("a plain path").to_owned()
}

fn file(name: &str, content: &str) -> String {
    let path = path(name);
    std::fs::write(&path, content).expect("the folder is the test's own");
    path
}

/// One of the corpus.
fn fixture(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traces").join(name);
    path.to_str().expect("a plain path").to_owned()
}

/// A public trace, where it is there; `None`, and a word about it, where it is not.
fn public(name: &str) -> Option<String> {
    let beside = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/traces"));
    let path = std::env::var_os("WARMROUTE_TRACES").map_or(beside, PathBuf::from).join(name);
    if !path.is_file() {
        // Past the test harness, which shows what a test prints only when it fails.
        writeln!(std::io::stderr(), "skipped: no {name} (WARMROUTE_TRACES)").expect("standard error is open");
        return None;
    }
    Some(path.to_str().expect("a plain path").to_owned())
}

#[test]
fn azures_trace_is_what_it_is_known_to_be() {
    let Some(azure) = public("AzureLLMInferenceTrace_conv.csv") else { return };
    let (said, _) = good(&["portrait", &azure]);
    assert!(said.contains("19366 requests, read as Azure LLM inference"), "{said}");
    assert!(said.contains("nothing is known of the prompts but their lengths"), "{said}");
    let portrait = json(&["portrait", &azure, "--json"]);
    let near = |pointer: &str, to: f64, by: f64| {
        let value = portrait.pointer(pointer).and_then(Value::as_f64).expect(pointer);
        assert!((value - to).abs() <= by, "{pointer}: {value}");
    };
    assert_eq!(portrait["requests"], 19_366);
    near("/arrivals/rate", 5.53, 0.01);
    near("/arrivals/gap_variation", 1.09, 0.01);
    near("/input/mean", 1155.0, 1.0);
    near("/output/mean", 211.0, 1.0);
    let run = [
        "run",
        "--accelerator",
        "h100",
        "--trace",
        &azure,
        "--to",
        "60",
        "--policy",
        "least-tokens",
        "--json",
    ];
    let run = json(&run);
    assert!(run[0]["arrived"].as_u64().is_some_and(|n| (150..400).contains(&n)), "{}", run[0]["arrived"]);
    assert_eq!(run[0]["configuration"]["trace_read"], "--to 60");
}

#[test]
fn mooncakes_conversations_are_what_they_are_known_to_be() {
    let Some(mooncake) = public("mooncake_conversation_trace.jsonl") else { return };
    let portrait = json(&["portrait", &mooncake, "--json"]);
    let number = |pointer: &str| portrait.pointer(pointer).and_then(Value::as_f64).expect(pointer);
    assert_eq!(portrait["requests"], 12_031);
    // 37.4 % is with the partial blocks at the ends of equal prompts, which are never shared here.
    assert!((0.373..0.374).contains(&number("/reuse/ideal")), "{}", number("/reuse/ideal"));
    assert_eq!(
        (number("/reuse/shared_tokens"), portrait["reuse"]["shared_ids"][0].as_u64()),
        (512.0, Some(0))
    );
    assert!((number("/arrivals/span") - 3537.0).abs() < 1.0);
    assert!((number("/arrivals/bucket") - 3.0).abs() < 1e-9);
    assert!((number("/input/mean") - 12_035.0).abs() < 1.0 && (number("/output/mean") - 343.0).abs() < 1.0);
    assert!((number("/input/percentiles/p50") - 6909.0).abs() < 1.0);
    let (said, _) = good(&["portrait", &mooncake]);
    for part in ["rounded to 3 s (--spread", "block 0", "37.3 %"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // It says itself what it is; written again, it is the same trace.
    let part =
        ["--to", "30", "--accelerator", "h100", "--block-size", "64", "--policy", "round-robin", "--json"];
    let out = path("mooncake-part.jsonl");
    let run = json(&[&["run", "--trace", &mooncake], &part[..], &["--save-trace", &out, "--force"]].concat());
    let again = json(&[&["run", "--trace", &out], &part[2..]].concat());
    for field in ["arrived", "ttft", "reuse", "assignments", "span"] {
        assert_eq!(run[0][field], again[0][field], "{field}");
    }
}

#[test]
fn every_format_is_told_by_its_first_line_and_runs() {
    for (name, title) in [
        ("mooncake.jsonl", "Mooncake"),
        ("bailian.jsonl", "Bailian"),
        ("burstgpt.csv", "BurstGPT"),
        ("azure.csv", "Azure"),
        ("azure-2025.csv", "Azure"),
        ("kv-cache-tester.json", "kv-cache-tester"),
        ("ragpulse.jsonl", "RAGPulse"),
        ("access-log.jsonl", "OpenAI-style access log"),
        ("columns.csv", "CSV"),
    ] {
        let file = fixture(name);
        let (_, said) = good(&[
            "run",
            "--backend",
            "modelled",
            "--trace",
            &file,
            "--blocks",
            "4096",
            "--positions",
            "9999",
        ]);
        assert!(said.contains(&format!("read as {title}")), "{name}: {said}");
        assert!(refused(&["run", "--trace", &file]).contains("--backend modelled"), "{name}");
    }
    let (_, said) = good(&["run", "--trace", &fixture("json-lines.jsonl")]);
    assert!(said.contains("sorted by time"), "{said}");
    let ragpulse = fixture("ragpulse.jsonl");
    let (_, said) = good(&["run", "--backend", "modelled", "--trace", &ragpulse]);
    assert!(said.contains("--lengths"), "{said}");
    for (name, part) in [("image.png", "an image (PNG)"), ("archive.zip", "a ZIP archive")] {
        assert!(refused(&["portrait", &fixture(name)]).contains(part), "{name}");
    }
}

#[test]
fn a_bad_line_is_named_and_passed_over_only_if_that_is_asked_for() {
    let lines = "time,input,output\n0,10,2\n1,ten,2\n2,10,2\n3,10\n4,10,0\n";
    let file = file("bad-lines.csv", lines);
    let message = refused(&["portrait", &file]);
    for part in ["bad-lines.csv", "line 3", "`input`", "`ten`", "a whole number"] {
        assert!(message.contains(part), "`{part}` is missing in: {message}");
    }
    let (said, _) = good(&["portrait", &file, "--skip-bad-lines"]);
    for part in ["2 bad lines are passed over, the first: line 3", "1 rows with no output", "2 requests over"]
    {
        assert!(said.contains(part), "`{part}` is missing in: {said}");
    }
    assert_eq!(json(&["portrait", &file, "--skip-bad-lines", "--keep-failed", "--json"])["requests"], 3);
    let mapped =
        json(&["portrait", &file, "--json", "--columns", "output=input,input=3", "--skip-bad-lines"]);
    assert_eq!(mapped["output"]["percentiles"]["max"], 10.0);
}

#[test]
fn traces_are_cut_thinned_stretched_and_merged() {
    let rows: String = (0..400).map(|i| format!("{},{},4,s{}\n", i, 10 + i, i / 4)).collect();
    let one = file("merge-1.csv", &format!("time,input,output,session\n{rows}"));
    let other = file("merge-2.csv", "time,input,output\n0.5,7,1\n1.5,7,1\n");
    let portrait = |args: &[&str]| json(&[&["portrait", "--json"], args].concat());
    let span = |portrait: &Value| portrait["arrivals"]["span"].as_f64().expect("a number");
    assert_eq!((span(&portrait(&[&one])), &portrait(&[&one])["sessions"]["count"]), (399.0, &100.into()));
    let cut = portrait(&[&one, "--from", "100", "--to", "200", "--time-scale", "0.5"]);
    assert_eq!((span(&cut), &cut["requests"]), (49.5, &100.into()));
    let thin = portrait(&[&one, "--sample", "0.25"]);
    let kept = thin["requests"].as_u64().expect("a number");
    assert!((40..160).contains(&kept) && kept.is_multiple_of(4), "{kept}");
    assert_ne!(portrait(&[&one, "--sample", "0.25", "--seed", "3"]), thin, "drawn from the seed");
    assert_eq!(portrait(&[&one, &other])["requests"], 402);
    assert!(refused(&["portrait", &one, &one]).contains("twice"));
    assert!(refused(&["portrait", &one, "--from", "9", "--to", "4"]).contains("--to"));
    assert!(refused(&["portrait", &one, "--from", "1000"]).contains("none is left"));
    assert!(refused(&["run", "--sample", "0.5"]).contains("--trace"));
}

#[test]
fn every_shape_is_made_run_described_and_written() {
    for shape in [
        "multi-tenant",
        "chat:turns=3",
        "rag:top=2",
        "agents:preamble=200",
        "completion",
        "noisy-neighbour:tokens=400",
        "batch",
    ] {
        let made = ["--shape", shape, "--requests", "60", "--rate", "20"];
        let run = ["run", "--backend", "modelled", "--policy", "prefix-affinity", "--json"];
        let report = json(&[&run[..], &made].concat());
        assert_eq!(report[0]["arrived"], 60, "{shape}");
        let said = &report[0]["configuration"]["shape"];
        assert_eq!(said.as_str(), (shape != "multi-tenant").then_some(shape), "{shape}");
        // The trace in a file is the trace that was made.
        let out = path("shape.jsonl");
        good(&[&["trace", "--out", &out, "--force"], &made[..]].concat());
        let read = json(&[&run[..], &["--trace", &out]].concat());
        for field in ["ttft", "itl", "reuse", "assignments", "goodput_per_second"] {
            assert_eq!(read[0][field], report[0][field], "{shape}: {field}");
        }
        let (mooncake, _) = good(&[&["trace", "--as", "mooncake", "--out-block", "16"], &made[..]].concat());
        let read =
            json(&["portrait", "--json", "--trace-block", "16", &file("shape-mooncake.jsonl", &mooncake)]);
        let made = json(&[&["portrait", "--json"], &made[..]].concat());
        for field in ["ideal", "shared_tokens", "distinct"] {
            assert_eq!(read["reuse"][field], made["reuse"][field], "{shape}: {field}");
        }
    }
    let bursts = |arrivals: &str| {
        let portrait = json(&["portrait", "--json", "--requests", "3000", "--arrivals", arrivals]);
        portrait["arrivals"]["gap_variation"].as_f64().expect("a number")
    };
    assert!((bursts("gamma:3") - 3.0).abs() < 0.4 && (bursts("poisson") - 1.0).abs() < 0.1);
    let azure = fixture("azure.csv");
    let given = json(&["portrait", "--json", "--shape", "rag", "--arrivals-from", &azure]);
    assert_eq!((&given["requests"], given["arrivals"]["span"].as_f64()), (&2.into(), Some(4.314579)));
    assert!(refused(&["run", "--shape", "chatt"]).contains("--shape"));
    assert!(refused(&["run", "--shape", "batch", "--arrivals", "gamma:2"]).contains("--arrivals"));
    assert!(refused(&["run", "--shpae", "chat"]).contains("--shape"));
    assert!(refused(&["run", "--shape", "chat", "--trace", &azure]).contains("--shape"));
    assert!(refused(&["sweep", "--over", "rate=1,2", "--arrivals-from", &azure]).contains("--arrivals-from"));
}

#[test]
fn a_sweep_over_a_shape_joins_from_its_parts() {
    let sweep =
        ["sweep", "--over", "rate=4,8", "--shape", "chat:turns=2", "--requests", "40", "--seeds", "0..2"];
    let parts: Vec<String> = (1..=2)
        .map(|i| {
            let part = path(&format!("shape-{i}.part"));
            good(&[&sweep[..], &["--shard", &format!("{i}/2"), "--part", &part, "--force"]].concat());
            part
        })
        .collect();
    let whole = good(&[&sweep[..], &["--csv"]].concat()).0;
    assert_eq!(good(&["merge", "--csv", &parts[0], &parts[1]]).0, whole);
}

#[test]
fn results_are_csv_too() {
    let run = ["run", "--backend", "modelled", "--csv"];
    let (csv, _) = good(&run);
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), rows[0][0], rows[1][0]), (4, "policy", "round-robin"));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()));
    let reports = json(&["run", "--backend", "modelled", "--json"]);
    let column = rows[0].iter().position(|name| *name == "reuse").expect("a column");
    for (row, report) in rows[1..].iter().zip(reports.as_array().expect("an array")) {
        assert_eq!(row[column].parse().ok(), report["reuse"].as_f64());
    }
    let (csv, _) = good(&[&run[..], &["--seeds", "3", "--seed", "7"]].concat());
    assert_eq!(csv.lines().count(), 1 + 3 * 3);
    assert!(csv.contains("\nleast-tokens,9,"), "{csv}");
}

#[test]
fn a_recommendation_names_the_best_the_runner_up_and_what_would_change_it() {
    let fleet = [
        "recommend",
        "--devices",
        "separate",
        "--tenants",
        "48",
        "--requests",
        "300",
        "--rate",
        "20",
        "--seeds",
        "0..3",
    ];
    let answer = json(&[&fleet[..], &["--json"]].concat());
    let standing = answer["standing"].as_array().expect("an array");
    let good_of = |row: &Value| row["good"]["mean"].as_f64().expect("a number");
    assert!(standing.windows(2).all(|pair| good_of(&pair[0]) >= good_of(&pair[1])));
    assert_eq!(standing.len(), warmroute::policy::PolicyKind::ALL.len());
    let margin = &answer["margin"];
    let gap = margin["gap"]["mean"].as_f64().expect("a number");
    assert!((gap - (good_of(&standing[0]) - good_of(&standing[1]))).abs() < 1e-9);
    let keys: Vec<&str> = answer["changes"]
        .as_array()
        .expect("an array")
        .iter()
        .map(|c| c["key"].as_str().expect("a key"))
        .collect();
    assert_eq!(keys, ["rate", "slo_ttft", "slo_itl", "replicas"]);
    // The best is what a run of it says.
    let policy = standing[0]["policy"].as_str().expect("a name");
    let mut run =
        vec!["run", "--backend", "modelled", "--devices", "separate", "--tenants", "48", "--requests", "300"];
    run.extend(["--rate", "20", "--seed", "0", "--seeds", "3", "--json", "--policy", policy]);
    let thresholds: Vec<(String, String)> =
        serde_json::from_value(standing[0]["thresholds"].clone()).expect("pairs");
    let thresholds: Vec<(String, String)> =
        thresholds.into_iter().map(|(key, value)| (format!("--{}", key.replace('_', "-")), value)).collect();
    thresholds.iter().for_each(|(flag, value)| run.extend([flag.as_str(), value.as_str()]));
    let ran = json(&run);
    assert_eq!(ran[0]["goodput_fraction"]["p50"], standing[0]["good"]["p50"]);
    let (sheet, _) = good(&fleet);
    for part in [
        "Use ",
        "Runner-up: ",
        "What would change it",
        "- arrival rate (now 20)",
        "- replicas (now 4)",
        "Run it: ",
    ] {
        assert!(sheet.contains(part), "`{part}` is missing in: {sheet}");
    }
    assert!(sheet.lines().count() <= 40, "it fits one sheet: {sheet}");
    assert!(refused(&["recommend", "--policy", "round-robin"]).contains("two or more"));
    assert!(refused(&["recommend", "--parts", "3"]).contains("--seeds"));
    assert!(refused(&["recommend", "--backend", "tinygpt"]).contains("modelled"));
}

#[test]
fn a_recommendation_on_a_file_compares_its_parts() {
    let lines: String = (0..240)
        .map(|i| {
            let id = i % 7;
            format!("{{\"timestamp\": {}, \"input_length\": 192, \"output_length\": 8, \"hash_ids\": [{id}, {}, {}]}}\n", i * 60, id + 100, 200 + i)
        })
        .collect();
    let trace = file("recommend.jsonl", &lines);
    let answer = json(&["recommend", &trace, "--trace-block", "64", "--devices", "separate", "--json"]);
    assert_eq!((&answer["replicates"], &answer["requests"]), (&4.into(), &240.into()));
    assert_eq!(answer["changes"][0]["key"], "load");
    let (sheet, _) =
        good(&["recommend", &trace, "--trace-block", "64", "--devices", "separate", "--parts", "2"]);
    assert!(
        sheet.contains("2 consecutive parts") && sheet.contains("- load (now 1× the trace's)"),
        "{sheet}"
    );
    assert!(refused(&["recommend", &trace, "--trace-block", "64", "--seeds", "3"]).contains("--parts"));
}
