//! Sweeps as their user meets them: the same bytes on any number of threads and from any parts, and
//! what is wrong in one line.
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

fn good(args: &[&str]) -> String {
    let output = warmroute(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
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

const SWEEP: [&str; 9] = [
    "sweep",
    "--over",
    "rate=4:16:4",
    "--over",
    "replicas=2,4",
    "--seeds",
    "0..5",
    "--policy",
    "round-robin,prefix-affinity,longest-prefix",
];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&SWEEP[..], more].concat()
}

#[test]
fn the_bytes_do_not_depend_on_the_number_of_threads() {
    for format in [&["--json"][..], &["--csv"], &[]] {
        let one = good(&with(&[format, &["--threads", "1"]].concat()));
        for threads in ["2", "7"] {
            assert_eq!(good(&with(&[format, &["--threads", threads]].concat())), one, "{threads} {format:?}");
        }
        assert_eq!(good(&with(format)), one);
    }
}

#[test]
fn parts_join_to_the_bytes_of_the_whole() {
    for of in ["1", "3", "47"] {
        let n: u32 = of.parse().expect("a number");
        let parts: Vec<String> = (1..=n).map(|i| path(&format!("whole-{of}-{i}.part"))).collect();
        for (i, part) in parts.iter().enumerate() {
            let said = good(&with(&["--shard", &format!("{}/{of}", i + 1), "--part", part, "--force"]));
            assert!(said.starts_with(&format!("part {} of {of}: ", i + 1)) && said.contains(part), "{said}");
        }
        let names: Vec<&str> = parts.iter().rev().map(String::as_str).collect();
        for format in [&["--json"][..], &["--csv"], &[]] {
            assert_eq!(good(&[&["merge"], format, &names[..]].concat()), good(&with(format)), "{of}");
        }
    }
}

#[test]
fn a_cell_is_what_the_runs_of_its_point_came_to() {
    let sweep: Value = serde_json::from_str(&good(&with(&["--json"]))).expect("it is JSON");
    assert_eq!(sweep["cells"].as_array().expect("an array").len(), 4 * 2 * 3);
    // Rate 8, two replicas, prefix-affinity.
    let cell = &sweep["cells"][2 * 3 + 1];
    assert_eq!((&cell["rate"], &cell["replicas"]), (&8.0.into(), &2.into()));
    let args =
        "run --backend modelled --json --rate 8 --replicas 2 --seed 0 --seeds 5 --policy prefix-affinity";
    let runs: Value = serde_json::from_str(&good(&args.split(' ').collect::<Vec<_>>())).expect("it is JSON");
    for p in ["p10", "p50", "p90"] {
        for figure in ["ttft_p50", "ttft_p95", "itl_p50", "goodput_fraction", "reuse", "imbalance"] {
            assert_eq!(cell[figure][p], runs[0][figure][p], "{figure} {p}");
        }
    }
    let reuse =
        runs[0]["runs"].as_array().expect("five").iter().map(|r| r["reuse"].as_f64().expect("defined"));
    let mean = reuse.clone().sum::<f64>() / 5.0;
    assert!((cell["reuse"]["mean"].as_f64().expect("defined") - mean).abs() < 1e-12);
    assert_eq!(cell["reuse"]["min"].as_f64(), reuse.clone().reduce(f64::min));
    assert_eq!(cell["reuse"]["max"].as_f64(), reuse.reduce(f64::max));
}

#[test]
fn a_trace_file_is_swept_and_its_content_tells_it_from_others() {
    let line = |at: u32, id: u32| {
        format!(
            "{{\"timestamp\": {at}, \"input_length\": 64, \"output_length\": 4, \"hash_ids\": [{id}, {id}]}}\n"
        )
    };
    let trace = |name: &str, ids: u32| {
        let path = path(name);
        let lines: String = (0..60).map(|i| line(i * 40, i % ids)).collect();
        std::fs::write(&path, lines).expect("the folder is the test's own");
        path
    };
    let (one, other) = (trace("ids.jsonl", 5), trace("other-ids.jsonl", 4));
    let sweep = |trace: &str, more: &[&str]| {
        let args = ["sweep", "--trace", trace, "--trace-block", "32", "--over", "block-size=8,16,32"];
        [&args[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |args: Vec<String>| good(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let table = run(sweep(&one, &[]));
    assert_eq!(table.lines().count(), 2 + 3 * 3, "{table}");
    let (a, b) = (path("trace-1.part"), path("trace-2.part"));
    run(sweep(&one, &["--shard", "1/2", "--part", &a, "--force"]));
    run(sweep(&one, &["--shard", "2/2", "--part", &b, "--force"]));
    assert_eq!(good(&["merge", &a, &b]), table);
    run(sweep(&other, &["--shard", "2/2", "--part", &b, "--force"]));
    assert!(refused(&["merge", &a, &b]).contains("their trace differ"));
    let args = sweep(&one, &["--rate", "3"]);
    assert!(refused(&args.iter().map(String::as_str).collect::<Vec<_>>()).contains("--rate"));
    let odd = ["sweep", "--trace", &one, "--trace-block", "32", "--over", "block-size=16,24"];
    assert!(refused(&odd).contains("blocks of 24"));
}

#[test]
fn wrong_sweeps_are_refused_with_the_flag() {
    let cases: [(&[&str], &[&str]); 17] = [
        (&["sweep"], &["--over", "one or two", "rate=2:20:2"]),
        (&["sweep", "--over", "rate=20:2:2"], &["--over", "`20:2:2`", "FROM ≤ TO"]),
        (&["sweep", "--over", "rate=2:20:0"], &["--over", "step 0"]),
        (&["sweep", "--over", "rate=0,2"], &["--over", "`0`", "from 0.001"]),
        (&["sweep", "--over", "rat=1,2"], &["--over", "`rat`", "did you mean `rate`"]),
        (&["sweep", "--over", "seed=1,2"], &["--over", "--seeds"]),
        (&["sweep", "--over", "rate=1,2", "--rate", "3"], &["--rate", "--over varies it"]),
        (&["sweep", "--over", "user-max=16,4"], &["--user-max", "user_min = 8", "user_max=4"]),
        (&["sweep", "--over", "rate=1,2", "--seeds", "9..2"], &["--seeds", "`9..2`", "FROM..TO"]),
        (&["sweep", "--over", "rate=1,2", "--seeds", "0..9000000"], &["at most 1000000"]),
        (&["sweep", "--over", "rate=1,2", "--shard", "0/4"], &["--shard", "`0/4`", "counted from 1"]),
        (&["sweep", "--over", "rate=1,2", "--shard", "5/4"], &["--shard", "`5/4`"]),
        (&["sweep", "--over", "rate=1,2", "--part", "x"], &["--part", "--shard"]),
        (&["sweep", "--over", "rate=1,2", "--backend", "tinygpt"], &["--backend", "modelled"]),
        (&["sweep", "--over", "rate=1,2", "--threads", "0"], &["--threads", "`0`", "from 1"]),
        (&["sweep", "--ovr", "rate=1,2"], &["--ovr", "--over"]),
        (&["sweep", "--over", "replicas=1", "--clock", "measured"], &["--clock", "modelled"]),
    ];
    for (args, parts) in cases {
        let message = refused(args);
        for part in parts {
            assert!(message.contains(part), "{args:?}: `{part}` is missing in: {message}");
        }
    }
}

#[test]
fn parts_that_do_not_fit_are_refused_by_name() {
    let part = |name: &str, seeds: &str, shard: &str| {
        let path = path(name);
        let args =
            ["sweep", "--over", "rate=4,8", "--seeds", seeds, "--shard", shard, "--part", &path, "--force"];
        good(&args);
        path
    };
    let (one, two) = (part("fit-1.part", "4", "1/3"), part("fit-2.part", "4", "2/3"));
    let (again, foreign) = (part("fit-2-again.part", "4", "2/3"), part("foreign.part", "5", "3/3"));
    let cut = path("cut.part");
    let whole = std::fs::read_to_string(&two).expect("it was written");
    std::fs::write(&cut, &whole[..whole.len() - 40]).expect("the folder is the test's own");
    let odd = path("odd.part");
    let figure = whole.lines().nth(2).and_then(|line| line.split(',').nth(2)).expect("a figure");
    std::fs::write(&odd, whole.replacen(figure, "NaN", 1)).expect("the folder is the test's own");
    let changed = path("changed.part");
    std::fs::write(&changed, whole.replacen(figure, "0.5", 1)).expect("the folder is the test's own");
    let table = path("table.part");
    std::fs::write(&table, "| rate | policy |\n").expect("the folder is the test's own");
    for (parts, said) in [
        (&[][..], &["no parts"][..]),
        (&[&one, &two], &["part 3 of 3 is missing", "--shard 3/3"]),
        (&[&one, &two, &again], &["fit-2-again.part", "part 2 of 3", "fit-2.part"]),
        (&[&one, &two, &foreign], &["foreign.part", "fit-1.part", "seeds differ"]),
        (&[&one, &cut], &["cut.part", "incomplete"]),
        (&[&odd], &["odd.part", "line 3", "NaN"]),
        (&[&changed], &["changed.part", "the file was changed"]),
        (&[&table], &["table.part", "line 1", "no part of a sweep"]),
        (&[&path("nowhere.part")], &["nowhere.part"]),
    ] {
        let args: Vec<&str> = ["merge"].into_iter().chain(parts.iter().map(|part| part.as_str())).collect();
        let message = refused(&args);
        for part in said {
            assert!(message.contains(part), "{args:?}: `{part}` is missing in: {message}");
        }
    }
}

#[test]
fn a_part_is_not_written_over_another_unless_that_is_asked_for() {
    let file = path("precious.part");
    let args = |seeds: &'static str| {
        ["sweep", "--over", "rate=4,8", "--seeds", seeds, "--shard", "1/2", "--part", &file]
            .map(str::to_owned)
            .to_vec()
    };
    let run = |args: Vec<String>, force: bool| {
        let args: Vec<&str> = args.iter().map(String::as_str).chain(force.then_some("--force")).collect();
        warmroute(&args)
    };
    assert!(run(args("2"), true).status.success());
    assert!(run(args("2"), false).status.success(), "the same part again changes nothing");
    let before = std::fs::read(&file).expect("it was written");
    let refused = run(args("3"), false);
    let message = text(&refused.stderr);
    assert!(refused.status.code() == Some(2) && message.contains("another sweep; --force"), "{message}");
    assert_eq!(std::fs::read(&file).expect("it is there"), before);
    assert!(run(args("3"), true).status.success());
    std::fs::write(&file, "notes").expect("the folder is the test's own");
    assert!(text(&run(args("3"), false).stderr).contains("no part of this sweep"));
}

#[test]
fn what_has_no_effect_is_said() {
    let said = |args: &[&str]| text(&warmroute(args).stderr).to_owned();
    let sweep = ["sweep", "--over", "rate=4", "--requests", "3", "--seeds", "0..2"];
    assert!(said(&[&sweep[..], &["--seed", "5"]].concat()).contains("--seed: has no effect"));
    assert!(said(&sweep).is_empty());
    let run = ["run", "--backend", "modelled", "--requests", "3", "--hot-share", "0.5"];
    assert!(said(&[&run[..], &["--tenants", "1"]].concat()).contains("--hot-share: has no effect"));
    assert!(said(&run).is_empty());
    assert!(refused(&["equivalents", "--backend", "tinygpt"]).contains("--backend"));
    for (args, near) in [
        (["merge", "--jsn"], "--json"),
        (["cost", "--fitt"], "--fit"),
        (["cost", "--modle"], "--model"),
        (["calibrate", "--jso"], "--json"),
    ] {
        assert!(refused(&args).contains(&format!("did you mean {near}?")), "{args:?}");
    }
}

#[test]
fn equivalents_are_scanned_upwards_and_capped() {
    let base = "equivalents --devices separate --requests 300 --rate 24 --tenants 48";
    let args = |more: &'static str| base.split(' ').chain(more.split_whitespace()).collect::<Vec<_>>();
    let found: Value = serde_json::from_str(&good(&args("--json --seeds 0..3"))).expect("it is JSON");
    for (seed, one) in found.as_array().expect("an array").iter().enumerate() {
        let m = one["equivalents"].as_u64().expect("64 are enough") as usize;
        let fractions = one["fractions"].as_array().expect("one a number tried");
        assert!(m > 4, "four affinity replicas are worth more than four: {one}");
        assert_eq!((fractions.len(), &one["seed"], &one["replicas"]), (m, &seed.into(), &4.into()));
        let target = one["target"].as_f64();
        assert!(
            fractions[..m - 1].iter().all(|f| f.as_f64() < target) && fractions[m - 1].as_f64() >= target
        );
    }
    let table = good(&args("--seeds 0..3"));
    assert!(table.contains("4 prefix-affinity replicas are worth "), "{table}");
    let capped = good(&args("--cap 2"));
    assert!(capped.contains("more than 2") && capped.contains("up to the cap of 2 (--cap)"), "{capped}");
    let shared = good(&["equivalents", "--cap", "2", "--slo-ttft", "0"]);
    assert!(shared.contains("share one processor") && shared.contains("nothing to compare"), "{shared}");
    assert!(refused(&args("--of rond-robin")).contains("did you mean `round-robin`?"));
    assert!(refused(&args("--cap 0")).contains("--cap: found `0`"));
    assert!(refused(&args("--policy all")).contains("--of and --by"));
}

#[test]
fn help_names_every_flag() {
    for (command, flags) in [
        (
            "sweep",
            &["--over", "--seeds", "--shard", "--part", "--threads", "--csv", "--json", "--trace-block"][..],
        ),
        ("merge", &["--csv", "--json", "PART"]),
        ("equivalents", &["--of", "--by", "--cap", "--seeds", "--json", "--slo-ttft"]),
    ] {
        let help = good(&[command, "--help"]);
        for flag in flags {
            assert!(help.contains(flag), "{command}: {flag}");
        }
    }
}
