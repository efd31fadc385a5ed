//! `warmroute autoscale`: one load, several scalers, and what each was worth.

use std::ffi::OsString;
use std::sync::Arc;

use lexopt::prelude::*;
use serde::Serialize;

use super::inputs::{Inputs, once, once_each, refused, text};
use super::{UsageError, help};
use crate::autoscale::life::Change;
use crate::autoscale::run::Reroute;
use crate::autoscale::scaler::explain;
use crate::autoscale::signals::FleetSample;
use crate::autoscale::{Lab, PARAMS, Report, Run, ScaleDecision, Settings, reuse};
use crate::params::{Config, Group, nearest, param};
use crate::policy::PolicyKind;
use crate::report::markdown;
use crate::units::Time;

#[derive(Default)]
struct Options {
    inputs: Inputs,
    /// Keys of the own parameters and their values.
    values: Vec<(&'static str, String)>,
    decisions: bool,
    samples: bool,
    reuse: Option<String>,
    json: bool,
    help: bool,
}

const OWN_FLAGS: [&str; 5] = ["decisions", "samples", "reuse", "json", "help"];

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.json = true,
            Long("decisions") => options.decisions = true,
            Long("samples") => options.samples = true,
            Long("reuse") => once("reuse", &mut options.reuse, text(&mut parser)?)?,
            Long(flag) => {
                let flag = flag.to_owned();
                take(&mut options, &flag, &mut parser)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// Takes a parameter, of this command or of the experiment.
fn take(options: &mut Options, flag: &str, parser: &mut lexopt::Parser) -> Result<(), UsageError> {
    if let Some(own) = PARAMS.iter().find(|p| p.flag() == flag) {
        return once_each(flag, &mut options.values, own.key, text(parser)?);
    }
    let flags: Vec<String> = PARAMS.iter().map(|p| p.flag()).collect();
    let own: Vec<&str> = OWN_FLAGS.into_iter().chain(flags.iter().map(String::as_str)).collect();
    options.inputs.take_or_refuse(flag, parser, "autoscale", &own)
}

/// Where an autoscaled run starts from, besides the table's defaults: a model on accelerators that is busy for
/// half an hour.
pub(super) const START: [(&str, &str); 13] = [
    ("accelerator", "h100"),
    ("model", "llama-3-70b"),
    ("tp", "4"),
    ("backend", "modelled"),
    ("devices", "separate"),
    ("replicas", "1"),
    ("rate", "12"),
    ("tenants", "48"),
    ("repeat", "12"),
    ("user_min", "64"),
    ("user_max", "512"),
    ("output_min", "64"),
    ("output_max", "384"),
];

/// The experiment's parameters and the own ones, valid together.
fn configured(options: &mut Options) -> Result<(Config, Settings), UsageError> {
    if options.inputs.sets("requests") {
        return Err(UsageError(
            "--requests: here requests arrive for a time; say --duration (s) and --rate (requests/s)".into(),
        ));
    }
    let accelerated = !options.inputs.values().contains(&("accelerator".to_owned(), "none".to_owned()));
    let from_file = options.inputs.traces.is_given();
    // One who names a model says how many devices it takes.
    let named = options.inputs.sets("model");
    for (key, value) in START {
        let shapes = param(key).is_some_and(|p| p.group == Group::Trace);
        let of_device = matches!(key, "accelerator" | "model" | "tp");
        let elsewhere = (shapes && from_file) || (of_device && !accelerated) || (named && key == "tp");
        if !elsewhere {
            options.inputs.default_to(key, value);
        }
    }
    options.inputs.default_to("policy", PolicyKind::LeastTokens.name());
    let config = options.inputs.config()?;
    let mut settings = Settings::default();
    for (key, value) in &options.values {
        let own = PARAMS.iter().find(|p| p.key == *key).expect("only those were taken");
        own.set(&mut settings, value).map_err(|mut problem| {
            if *key == "scaler" {
                let names = own.choices().iter().map(|(name, _)| *name);
                let near = value
                    .split(',')
                    .find_map(|one| nearest(one.trim(), names.clone()).filter(|n| *n != one.trim()));
                problem.problem += &near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            }
            refused(problem)
        })?;
    }
    settings.validate(&config, from_file).map_err(refused)?;
    Ok((config, settings))
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut options = parse(args)?;
    if options.help {
        return Ok(help::autoscale());
    }
    let (config, settings) = configured(&mut options)?;
    let read = options.inputs.read_trace(&config)?;
    let file = read.as_ref().map(|read| read.source.file.clone());
    options.inputs.say(&config, read.as_ref().map_or(&[][..], |read| &read.notes));
    let trace = read.map(|read| Arc::new(read.log.trace));
    let lab = Lab::new(config, settings, trace);
    if let Some(change) = &options.reuse {
        return around(&lab, change, options.json);
    }
    let mut runs = Vec::new();
    for &policy in &lab.config.policy {
        for &scaler in &lab.settings.scaler {
            let run = lab.run(scaler, policy)?;
            runs.push((Report::new(&lab, scaler, policy, &run), run));
        }
    }
    Ok(if options.json { json(&options, file.as_deref(), &lab, &runs) } else { table(&options, &lab, &runs) })
}

/// `--reuse FROM:TO`: what a change of n does to reuse.
fn around(lab: &Lab, change: &str, as_json: bool) -> Result<String, UsageError> {
    let numbers = change.split_once(':').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    let (from, to): (u32, u32) =
        numbers.filter(|(a, b)| (1..=256).contains(a) && (1..=256).contains(b)).ok_or_else(|| {
            UsageError(format!(
                "--reuse: found `{change}`; it is FROM:TO, numbers of replicas from 1 to 256, as 4:5"
            ))
        })?;
    let mut policies = vec![PolicyKind::PrefixAffinity];
    policies.extend(PolicyKind::HASHES);
    let middle = lab.horizon().seconds() / 2.0;
    let mut found = Vec::new();
    for policy in policies {
        found.push(reuse::change(&lab.config, &lab.trace, policy, (from, to), middle, 10.0)?);
    }
    if as_json {
        return Ok(pretty(&found));
    }
    let percent = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{:.1} %", 100.0 * x));
    let mut rows = vec![
        ["policy", "prefixes that move", "reuse before", "lowest after", "seconds to recover"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(found.iter().map(|one| {
        let back = one.recovered_after.map_or_else(|| "–".to_owned(), |n| (10 * n).to_string());
        vec![one.policy.to_owned(), percent(Some(one.moved)), percent(one.before), percent(one.lowest), back]
    }));
    Ok(format!("From {from} to {to} replicas at {middle:.0} s:\n\n{}", markdown(&rows)))
}

/// A run with all that it left behind.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    report: &'a Report,
    changes: &'a [Change],
    bills: &'a [crate::autoscale::bill::Bill],
    reroutes: &'a [Reroute],
    #[serde(skip_serializing_if = "Option::is_none")]
    decisions: Option<&'a [ScaleDecision]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<&'a [FleetSample]>,
    configuration: serde_json::Map<String, serde_json::Value>,
}

fn pretty(value: &impl Serialize) -> String {
    serde_json::to_string_pretty(value).expect("plain data") + "\n"
}

fn json(options: &Options, file: Option<&str>, lab: &Lab, runs: &[(Report, Run)]) -> String {
    let mut configuration = serde_json::Map::new();
    configuration.insert("version".into(), env!("CARGO_PKG_VERSION").into());
    configuration.insert("trace".into(), file.into());
    for own in
        crate::params::PARAMS.iter().filter(|p| p.group != Group::Trace || !options.inputs.traces.is_given())
    {
        if !matches!(own.key, "policy" | "requests") {
            configuration.insert(own.key.into(), own.json(&lab.config));
        }
    }
    for own in PARAMS.iter().filter(|p| p.key != "scaler") {
        configuration.insert(own.key.into(), own.json(&lab.settings));
    }
    let whole = |(report, run): &'_ (Report, Run)| {
        pretty(&Whole {
            report,
            changes: &run.changes,
            bills: &run.bills,
            reroutes: &run.reroutes,
            decisions: options.decisions.then_some(&run.decisions),
            samples: options.samples.then_some(&run.samples),
            configuration: configuration.clone(),
        })
    };
    let objects: Vec<String> = runs.iter().map(whole).collect();
    let objects: Vec<&str> = objects.iter().map(|object| object.trim_end()).collect();
    format!("[\n{}\n]\n", objects.join(",\n"))
}

fn table(options: &Options, lab: &Lab, runs: &[(Report, Run)]) -> String {
    let life = lab.settings.lifecycle(&lab.config);
    let mut out = String::new();
    if let Some(deployment) = lab.config.deployment() {
        out += &format!("a replica: {deployment}\n");
    }
    out += &format!(
        "it serves {:.2} requests/s with 95 % within TTFT {} s and ITL {} s; from order to service it takes {:.1} s\n\n",
        lab.capacity,
        lab.config.slo_ttft,
        lab.config.slo_itl,
        life.start.total().seconds()
    );
    let mut rows = vec![
        [
            "scaler",
            "good",
            "TTFT p95 s",
            "bad",
            "while waiting",
            "overload area",
            "late by s",
            "replica-hours",
            "most asked",
            "needed",
            "turns",
            "reuse",
            "cached tokens lost",
            "extra prefill",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    if lab.config.policy.len() > 1 {
        rows[0].insert(1, "policy".into());
    }
    let percent = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{:.1} %", 100.0 * x));
    for (report, _) in runs {
        let mut row = vec![
            report.scaler.name().to_owned(),
            percent(report.goodput_fraction),
            report.ttft.p95.map_or_else(|| "–".to_owned(), |x| format!("{x:.2}")),
            report.overload.bad.to_string(),
            report.overload.bad_while_waiting.to_string(),
            format!("{:.0}", report.overload.area),
            format!("{:.0}", report.overload.late_by),
            format!("{:.2}", report.spent.replica_seconds / 3600.0),
            report.scaling.most_desired.to_string(),
            report.scaling.most_needed.to_string(),
            report.scaling.oscillations.to_string(),
            percent(report.reuse),
            report.removal.cached_tokens_lost.to_string(),
            report.removal.extra_prefill_tokens.to_string(),
        ];
        if lab.config.policy.len() > 1 {
            row.insert(1, report.policy.to_owned());
        }
        rows.push(row);
    }
    out += &markdown(&rows);
    for (report, run) in runs {
        out += &format!("\n{}, {}:\n{}", report.scaler.name(), report.policy, sentences(lab, report));
        if options.decisions {
            for decision in run.decisions.iter().filter(|d| d.desired != d.counts.live()) {
                out += &format!("  {:>8.1} s  {}\n", Time(decision.at).seconds(), explain(decision));
            }
        }
        if options.samples {
            out += &samples(run);
        }
    }
    out
}

fn sentences(lab: &Lab, report: &Report) -> String {
    let mut out = format!("  {}\n", report.first_moves.text());
    let Report { headroom, removal, spent, .. } = report;
    if headroom.rise > 0.0 {
        out += &format!(
            "  Headroom: a rise of {:.3} requests/s each second × {:.1} s ÷ {:.2} = {:.2} replicas to spare; the run lacked {} at worst.\n",
            headroom.rise, report.cold_start, report.capacity, headroom.replicas, headroom.missing
        );
    }
    if removal.rerouted > 0 {
        out += &format!(
            "  {} requests began anew elsewhere ({} computed tokens lost); none was lost.\n",
            removal.rerouted, removal.rerouted_tokens
        );
    }
    if report.unfinished > 0 {
        out += &format!("  {} requests were unfinished when the run was given up.\n", report.unfinished);
    }
    if lab.settings.price > 0.0 {
        out += &format!("  It cost {:.2}", spent.cost);
        if let Some(each) = spent.cost_per_thousand_good {
            out += &format!(", {each:.4} for a thousand good requests");
        }
        out += ".\n";
    }
    out
}

/// The scrapes as a table.
fn samples(run: &Run) -> String {
    let mut rows = vec![
        [
            "s",
            "serve",
            "start",
            "rate",
            "waiting",
            "slope",
            "running",
            "occupancy",
            "KV",
            "compute",
            "memory",
            "busy",
            "preempted",
            "TTFT p95",
            "ITL p95",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let two = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.2}"));
    for s in &run.samples {
        let mean = s.mean.unwrap_or_default();
        rows.push(vec![
            format!("{:.0}", s.time().seconds()),
            s.serving.to_string(),
            s.starting.to_string(),
            format!("{:.1}", s.rate()),
            s.waiting.to_string(),
            format!("{:.1}", s.slope),
            s.running.to_string(),
            two(Some(mean.occupancy)),
            two(Some(mean.kv)),
            two(mean.compute),
            two(mean.memory),
            two(Some(mean.busy)),
            s.preemptions.to_string(),
            two(s.ttft[1]),
            s.itl[1].map_or_else(|| "–".to_owned(), |x| format!("{x:.4}")),
        ]);
    }
    markdown(&rows)
}
