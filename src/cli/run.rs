//! `warmroute run`: one trace, several policies, one answer.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use super::inputs::{Inputs, may_save, once, save, whole};
use super::sweep::Format;
use super::traces::Loaded;
use super::{UsageError, help};
use crate::experiment::Experiment;
use crate::params::{ClockKind, Config};
use crate::policy::PolicyKind;
use crate::report::{Report, Spread, columns, markdown, spread_json, spread_table, to_csv, to_json};
use crate::sim::{Measured, Recorder, TooLong};
use crate::trace::export;

#[derive(Default)]
struct Options {
    inputs: Inputs,
    save_trace: Option<PathBuf>,
    seeds: Option<u64>,
    force: bool,
    format: Format,
    help: bool,
}

const OWN_FLAGS: [&str; 6] = ["save-trace", "force", "seeds", "csv", "json", "help"];

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.format = Format::Json,
            Long("csv") => options.format = Format::Csv,
            Long("force") => options.force = true,
            Long("save-trace") => once("save-trace", &mut options.save_trace, parser.value()?.into())?,
            Long("seeds") => {
                let seeds = whole("seeds", &mut parser, 1..=10_000, "a whole number")?;
                once("seeds", &mut options.seeds, seeds)?;
            }
            Long(flag) => {
                let flag = flag.to_owned();
                options.inputs.take_or_refuse(&flag, &mut parser, "run", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the measured clock's stop-watch, handed to the core from outside"
)]
pub(super) fn stop_watch() -> impl FnMut() -> f64 {
    let start = std::time::Instant::now();
    move || start.elapsed().as_secs_f64()
}

fn run(experiment: &Experiment, policy: PolicyKind) -> Result<Recorder, TooLong> {
    match experiment.config.clock {
        ClockKind::Modelled => experiment.run_modelled(policy),
        ClockKind::Measured => experiment.run(policy, Box::new(Measured::new(stop_watch()))),
    }
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let options = parse(args)?;
    if options.help {
        return Ok(help::run());
    }
    let config = options.inputs.config()?;
    if let Some(seeds) = options.seeds {
        return many_seeds(&options, &config, seeds);
    }
    let loaded = options.inputs.read_trace(&config)?;
    let notes = loaded.as_ref().map_or_else(Vec::new, |loaded| loaded.notes.clone());
    let (experiment, sessions) = match loaded {
        Some(Loaded { log, source, .. }) => {
            (Experiment::with_trace(config, log.trace, Some(source)), log.sessions)
        }
        None => (Experiment::new(config), Vec::new()),
    };
    let lines = match &options.save_trace {
        Some(path) => {
            let lines = export::json_lines(&experiment.trace, &sessions);
            may_save(path, &lines, options.force)?;
            Some((path, lines))
        }
        None => None,
    };
    let reports: Vec<Report> = experiment
        .config
        .policy
        .iter()
        .map(|&policy| {
            let recorder = run(&experiment, policy)?;
            Ok(Report::new(&experiment, policy, experiment.summary(&recorder)))
        })
        .collect::<Result<_, UsageError>>()?;
    // Only now: a run that is refused leaves what is on disk as it is.
    if let Some((path, lines)) = lines {
        save(path, &lines)?;
    }
    options.inputs.say(&experiment.config, &notes);
    Ok(match options.format {
        Format::Json => to_json(&reports),
        Format::Csv => to_csv(reports.iter().map(|report| (report.policy, None, &report.summary))),
        Format::Table => header(&experiment.config) + &table(&reports),
    })
}

/// What a replica is and what its memory holds, where that is accelerators.
fn header(config: &Config) -> String {
    config.deployment().zip(config.kv_pool()).map_or_else(String::new, |(deployment, pool)| {
        format!("a replica: {deployment}\nKV pool: {pool}\n\n")
    })
}

fn many_seeds(options: &Options, config: &Config, seeds: u64) -> Result<String, UsageError> {
    if options.inputs.traces.is_given() || options.save_trace.is_some() {
        return Err(UsageError("--seeds draws a trace a seed; it does not go with a trace file".into()));
    }
    let mut spreads: Vec<Spread> =
        config.policy.iter().map(|&policy| Spread { policy, summaries: Vec::new() }).collect();
    let mut model = None;
    for seed in 0..seeds {
        let config = Config { seed: config.seed.wrapping_add(seed), ..config.clone() };
        let experiment = Experiment::reusing(config, model);
        for spread in &mut spreads {
            let recorder = run(&experiment, spread.policy)?;
            spread.summaries.push(experiment.summary(&recorder));
        }
        model = experiment.model();
    }
    options.inputs.say(config, &[]);
    let rows = spreads.iter().flat_map(|spread| {
        let seeds = (0..).map(|seed| Some(config.seed.wrapping_add(seed)));
        seeds.zip(&spread.summaries).map(|(seed, summary)| (spread.policy.name(), seed, summary))
    });
    Ok(match options.format {
        Format::Json => spread_json(&spreads),
        Format::Csv => to_csv(rows),
        Format::Table => header(config) + &spread_table(&spreads),
    })
}

/// The chapter's table, and what the run counted besides.
fn table(reports: &[Report]) -> String {
    let columns = columns();
    let mut rows = vec![vec!["policy".to_owned()]];
    rows[0].extend(columns.iter().map(|c| c.heading()));
    rows[0].push("assignments".into());
    for report in reports {
        let mut row = vec![report.policy.to_owned()];
        row.extend(columns.iter().map(|c| c.text(&report.summary)));
        row.push(report.summary.assignments.iter().map(u64::to_string).collect::<Vec<_>>().join(" "));
        rows.push(row);
    }
    let mut text = markdown(&rows);
    for report in reports {
        let s = &report.summary;
        text += &format!(
            "{}: {} of {} completed in {:.2} s; {} preemptions, {} tokens recomputed, {} evictions, peak KV utilisation {:.1} %\n",
            report.policy,
            s.completed,
            s.arrived,
            s.span,
            s.preemptions,
            s.recomputed_tokens,
            s.evictions,
            100.0 * s.peak_kv_utilisation
        );
    }
    for rejected in reports.first().map_or(&[][..], |r| &r.summary.rejections) {
        text += &format!("request {} rejected: {}\n", rejected.request, rejected.message);
    }
    text
}
