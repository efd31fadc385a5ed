//! `warmroute recommend`: which policy and which thresholds, by how much, and what would change it.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::sync::Arc;

use lexopt::prelude::*;
use serde::Serialize;

use super::inputs::{Inputs, once, refused, text, whole};
use super::sweep::{run_all, threads};
use super::{UsageError, help};
use crate::params::{BackendKind, ClockKind, Config, param};
use crate::report::{markdown, percent};
use crate::sweep::recommend::{
    At, Candidate, Change, Margin, Question, Standing, base, candidates, gather, parts, questions,
};
use crate::sweep::{MAX_RUNS, Plan, Seeds, Stat};
use crate::trace::Trace;

#[derive(Default)]
struct Options {
    inputs: Inputs,
    seeds: Option<String>,
    parts: Option<u64>,
    json: bool,
    help: bool,
}

const OWN_FLAGS: [&str; 4] = ["seeds", "parts", "json", "help"];

/// Seeds of a generated trace, unless it is said.
const SEEDS: &str = "10";

/// Parts of a trace from a file, unless it is said.
const PARTS: u64 = 4;

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.json = true,
            Long("seeds") => once("seeds", &mut options.seeds, text(&mut parser)?)?,
            Long("parts") => {
                once("parts", &mut options.parts, whole("parts", &mut parser, 1..=16, "a whole number")?)?;
            }
            Value(path) => options.inputs.traces.file(path.into())?,
            Long(flag) => {
                let flag = flag.to_owned();
                options.inputs.take_or_refuse(&flag, &mut parser, "recommend", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// What runs plans: on a generated trace as it is, or on each part of one from a file.
struct Runner {
    parts: Option<Vec<Arc<Trace>>>,
    done: u64,
    watched: bool,
}

impl Runner {
    /// A plan's figures, with requests arriving so many times as fast.
    fn run(&mut self, plan: &Plan, load: f64) -> Result<Vec<Candidate>, UsageError> {
        let jobs = || (0..plan.jobs()).collect::<Vec<u64>>();
        let threads = threads(plan, 0)?;
        let replicates = match &self.parts {
            None => vec![run_all(plan, None, jobs(), threads)?],
            Some(parts) => parts
                .iter()
                .map(|part| {
                    let scaled = || Trace::clone(part).scaled(1.0 / load).map(Arc::new);
                    let part = if load == 1.0 { Some(Arc::clone(part)) } else { scaled() };
                    let part = part.ok_or_else(|| {
                        UsageError(format!(
                            "a load of {load} times the trace's lasts longer than the clock's 213 days"
                        ))
                    })?;
                    run_all(plan, Some(&part), jobs(), threads)
                })
                .collect::<Result<_, _>>()?,
        };
        self.done += plan.jobs() * plan.policies.len() as u64 * replicates.len() as u64;
        if self.watched {
            // Nobody may be looking any more.
            let _ = write!(std::io::stderr(), "\rrecommend: {} runs", self.done);
        }
        Ok(gather(plan, &replicates))
    }
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut options = parse(args)?;
    if options.help {
        return Ok(help::recommend());
    }
    let inputs = &mut options.inputs;
    inputs.default_to("backend", "modelled");
    inputs.default_to("policy", "all");
    inputs.no_arrivals_from()?;
    let config = inputs.config()?;
    if config.backend != BackendKind::Modelled || config.clock != ClockKind::Modelled {
        return Err(UsageError("--backend, --clock: runs are only priced here; both are modelled".into()));
    }
    if config.policy.len() < 2 {
        return Err(UsageError("--policy: found one policy; a recommendation compares two or more".into()));
    }
    match (inputs.traces.is_given(), &options.seeds, options.parts) {
        (true, Some(_), _) => {
            return Err(UsageError(
                "--seeds: a trace file is the same for every seed; its --parts are compared instead".into(),
            ));
        }
        (false, _, Some(_)) => {
            return Err(UsageError("--parts: a generated trace is made anew for each of --seeds".into()));
        }
        _ => {}
    }
    let loaded = inputs.read_trace(&config)?;
    let seeds = if loaded.is_some() { "1" } else { options.seeds.as_deref().unwrap_or(SEEDS) };
    let seeds = Seeds::parse(seeds, config.seed).map_err(refused)?;
    if seeds.count() > MAX_RUNS / 1000 {
        return Err(UsageError(format!(
            "--seeds: found {} seeds; it takes at most {}",
            seeds.count(),
            MAX_RUNS / 1000
        )));
    }
    let settings = inputs.values().iter().filter(|(key, _)| key != "policy" && key != "seed");
    let plan = base(Plan {
        version: env!("CARGO_PKG_VERSION").into(),
        preset: inputs.preset().into(),
        settings: settings.cloned().collect(),
        over: Vec::new(),
        policies: config.policy.clone(),
        seeds,
        trace: loaded.as_ref().map(|loaded| loaded.id.clone()),
    })
    .map_err(refused)?;
    let notes = loaded.as_ref().map_or_else(Vec::new, |loaded| loaded.notes.clone());
    let count = options.parts.unwrap_or(PARTS) as usize;
    let requests = loaded.as_ref().map_or(config.requests as usize, |loaded| loaded.log.trace.requests.len());
    let name = loaded.as_ref().map(|loaded| loaded.source.file.clone());
    let mut runner = Runner {
        parts: loaded.map(|loaded| parts(&loaded.log.trace, count).into_iter().map(Arc::new).collect()),
        done: 0,
        watched: std::io::stderr().is_terminal(),
    };
    let mut all = Vec::new();
    for plan in candidates(&plan, &config) {
        all.extend(runner.run(&plan, 1.0)?);
    }
    let standing = Standing::of(all);
    let mut changes = Vec::new();
    for question in questions(&plan, &config, &standing) {
        let Question { plan, loads, .. } = &question;
        let found = loads.iter().map(|&load| runner.run(plan, load)).collect::<Result<Vec<_>, _>>()?;
        changes.push(Change::of(&question, &found));
    }
    if runner.watched {
        eprintln!();
    }
    inputs.say(&config, &notes);
    let sheet = Sheet {
        config: &config,
        name,
        requests,
        replicates: runner.parts.as_ref().map_or(seeds.count() as usize, Vec::len),
        of_file: runner.parts.is_some(),
        runs: runner.done,
        standing,
        changes,
    };
    Ok(if options.json { sheet.json() } else { sheet.text() })
}

/// All that is said.
struct Sheet<'a> {
    config: &'a Config,
    /// The trace's file.
    name: Option<String>,
    requests: usize,
    replicates: usize,
    of_file: bool,
    runs: u64,
    standing: Standing,
    changes: Vec<Change>,
}

#[derive(Serialize)]
struct Row {
    policy: &'static str,
    thresholds: Vec<(String, String)>,
    good: Stat,
    goodput_per_second: Stat,
    ttft_p95: Stat,
    reuse: Stat,
}

#[derive(Serialize)]
struct Json<'a> {
    version: &'static str,
    trace: &'a Option<String>,
    requests: usize,
    slo_ttft: f64,
    slo_itl: f64,
    replicas: u32,
    replicates: usize,
    of: &'static str,
    runs: u64,
    margin: Option<Margin>,
    standing: Vec<Row>,
    changes: &'a [Change],
}

/// A threshold as a flag.
fn flags(candidate: &Candidate) -> String {
    candidate.settings.iter().map(|(key, value)| format!(" --{} {value}", key.replace('_', "-"))).collect()
}

fn named(candidate: &Candidate) -> String {
    let thresholds: Vec<String> =
        candidate.settings.iter().map(|(key, value)| format!("{} {value}", key.replace('_', "-"))).collect();
    let with =
        if thresholds.is_empty() { String::new() } else { format!(" with {}", thresholds.join(" and ")) };
    format!("{}{with}", candidate.policy.name())
}

impl Sheet<'_> {
    fn json(&self) -> String {
        let row = |one: &Candidate| Row {
            policy: one.policy.name(),
            thresholds: one.settings.clone(),
            good: one.good(),
            goodput_per_second: one.figure("goodput_per_second"),
            ttft_p95: one.figure("ttft_p95"),
            reuse: one.figure("reuse"),
        };
        let json = Json {
            version: env!("CARGO_PKG_VERSION"),
            trace: &self.name,
            requests: self.requests,
            slo_ttft: self.config.slo_ttft,
            slo_itl: self.config.slo_itl,
            replicas: self.config.replicas,
            replicates: self.replicates,
            of: if self.of_file { "parts of the trace" } else { "seeds" },
            runs: self.runs,
            margin: self.standing.margin(),
            standing: self.standing.0.iter().map(row).collect(),
            changes: &self.changes,
        };
        serde_json::to_string_pretty(&json).expect("plain data") + "\n"
    }

    /// What replicates are called.
    fn over(&self) -> String {
        match (self.of_file, self.replicates) {
            (true, 1) => "the whole trace".into(),
            (true, n) => format!("{n} consecutive parts of the trace"),
            (false, n) => format!("{n} seeds"),
        }
    }

    fn text(&self) -> String {
        let config = self.config;
        let what = match &self.name {
            Some(name) => format!("{} requests of {name}", self.requests),
            None => format!(
                "{} requests a seed, {} at {} a second ({})",
                self.requests, config.shape, config.rate, config.arrivals
            ),
        };
        let deployment =
            config.deployment().map_or_else(String::new, |deployment| format!(", each {deployment}"));
        let mut text = format!(
            "{what}, on {} replicas{deployment}\nobjectives: first token within {} s, every further one within {} s\n\n",
            config.replicas, config.slo_ttft, config.slo_itl
        );
        let (Some(best), Some(margin)) = (self.standing.best(), self.standing.margin()) else { return text };
        let runner_up = self.standing.runner_up().expect("there is a margin");
        let mean = |one: &Candidate| one.good().mean.unwrap_or(0.0);
        if mean(best) == 0.0 {
            text += "No policy serves any request within these objectives: less load, more replicas, or other objectives.\n\n";
        } else if margin.gap.mean == Some(0.0) {
            text += &format!(
                "It makes no difference: {} and {} serve as many requests well, {}; the first answers sooner.\n\n",
                named(best),
                named(runner_up),
                percent(mean(best))
            );
        } else {
            text += &format!("Use {}: {} of all requests are good.\n", named(best), percent(mean(best)));
            let (low, high) = (margin.gap.p10.unwrap_or(0.0), margin.gap.p90.unwrap_or(0.0));
            text += &format!(
                "Runner-up: {}, {}: {:.1} points less (over {}: {:.1} to {:.1}), worse in {} of them, equal in {}, better in {}.\n",
                named(runner_up),
                percent(mean(runner_up)),
                100.0 * margin.gap.mean.unwrap_or(0.0),
                self.over(),
                100.0 * low,
                100.0 * high,
                margin.better,
                margin.equal,
                margin.worse
            );
            if margin.better * 10 < 9 * (margin.better + margin.equal + margin.worse) {
                text += "That is no clear margin: take either, or look at more.\n";
            }
            text.push('\n');
        }
        text += &self.table();
        text += "\nWhat would change it (the two compared alone, one thing varied at a time):\n";
        for change in &self.changes {
            text += &format!("- {}\n", sentence(change, runner_up));
        }
        text += &format!(
            "\nRun it: warmroute run{} --backend modelled --policy {}{} …\n",
            self.name.as_ref().map_or_else(String::new, |name| format!(" --trace {name}")),
            best.policy.name(),
            flags(best)
        );
        text += &format!(
            "{} runs; means over {}{}. Thresholds are the best of those tried on the same {}, which flatters them a little.\n",
            self.runs,
            self.over(),
            if self.of_file { ", each from empty caches" } else { "" },
            if self.of_file { "requests" } else { "seeds" }
        );
        text
    }

    fn table(&self) -> String {
        let heading =
            ["policy", "thresholds", "good", "good/s", "TTFT p95 s", "reuse"].map(str::to_owned).to_vec();
        let number =
            |stat: Stat, digits: usize| stat.mean.map_or_else(|| "–".into(), |x| format!("{x:.digits$}"));
        let row = |one: &Candidate| {
            let good = one.good();
            let range = match (good.mean, good.p10, good.p90) {
                (Some(mean), Some(low), Some(high)) if good.n > 1 => {
                    format!("{} ({} to {})", percent(mean), percent(low), percent(high))
                }
                (Some(mean), ..) => percent(mean),
                _ => "–".into(),
            };
            vec![
                one.policy.name().to_owned(),
                flags(one).trim().to_owned(),
                range,
                number(one.figure("goodput_per_second"), 2),
                number(one.figure("ttft_p95"), 4),
                one.figure("reuse").mean.map_or_else(|| "–".into(), percent),
            ]
        };
        markdown(&[vec![heading], self.standing.0.iter().map(row).collect()].concat())
    }
}

fn sentence(change: &Change, runner_up: &Candidate) -> String {
    let label = match change.key.as_str() {
        "load" => "load".to_owned(),
        key => param(key)
            .map_or(key, |param| param.label)
            .to_lowercase()
            .replace("ttft", "TTFT")
            .replace("itl", "ITL"),
    };
    let times = if change.key == "load" { "× the trace's" } else { "" };
    let value = |x: f64| {
        format!("{}{times}", crate::units::significant(x, 3).trim_end_matches(".00").trim_end_matches(".0"))
    };
    let at =
        |at: &At| format!("{} ({} against {})", value(at.value), percent(at.runner_up), percent(at.best));
    let name = runner_up.policy.name();
    match (&change.below, &change.above) {
        (None, None) => {
            let ends = change.tried.first().zip(change.tried.last());
            let ends = ends
                .map_or_else(String::new, |(a, b)| format!(" from {} to {}", value(a.value), value(b.value)));
            format!("{label} (now {}): nothing tried{ends} puts {name} first", value(change.now))
        }
        (Some(low), None) => format!("{label} (now {}): {name} is first at {}", value(change.now), at(low)),
        (None, Some(high)) => format!("{label} (now {}): {name} is first at {}", value(change.now), at(high)),
        (Some(low), Some(high)) => {
            format!("{label} (now {}): {name} is first at {} and at {}", value(change.now), at(low), at(high))
        }
    }
}
