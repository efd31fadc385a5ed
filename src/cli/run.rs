//! `warmroute run`: one trace, several policies, one answer.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use lexopt::prelude::*;

use super::{UsageError, help};
use crate::experiment::Experiment;
use crate::params::{BackendKind, ClockKind, Config, Group, PARAMS, Preset, nearest, param};
use crate::policy::PolicyKind;
use crate::report::{Report, Spread, columns, markdown, spread_json, spread_table, to_json};
use crate::sim::{Measured, Recorder, TooLong};
use crate::trace::import::{read_json_lines, read_mooncake};
use crate::trace::{Trace, export};

#[derive(Default)]
struct Options {
    trace: Option<PathBuf>,
    /// Tokens that an id of a Mooncake trace stands for; without it, the trace is our own format.
    trace_block: Option<u32>,
    save_trace: Option<PathBuf>,
    preset: Preset,
    seeds: Option<u32>,
    json: bool,
    help: bool,
    /// Flags and their values, to be set once the preset is known.
    values: Vec<(String, String)>,
}

const OWN_FLAGS: [&str; 7] = ["trace", "trace-block", "save-trace", "preset", "seeds", "json", "help"];

/// Sets what may be given once only.
fn once<T>(flag: &str, place: &mut Option<T>, value: T) -> Result<(), UsageError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(UsageError(format!("--{flag} is given twice; once is enough"))),
    }
}

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.json = true,
            Long("trace") => once("trace", &mut options.trace, parser.value()?.into())?,
            Long("trace-block") => {
                let text = parser.value()?.string()?;
                let block = text.parse().ok().filter(|n| (1..=65_536).contains(n)).ok_or_else(|| {
                    UsageError(format!(
                        "--trace-block: found `{text}`; it is a whole number of tokens from 1 to 65536"
                    ))
                })?;
                once("trace-block", &mut options.trace_block, block)?;
            }
            Long("save-trace") => once("save-trace", &mut options.save_trace, parser.value()?.into())?,
            Long("preset") => {
                let name = parser.value()?.string()?;
                options.preset = Preset::from_name(&name).ok_or_else(|| {
                    UsageError(format!("--preset: found `{name}`; it is chapter | tinygpt-wasm"))
                })?;
            }
            Long("seeds") => {
                let text = parser.value()?.string()?;
                options.seeds =
                    Some(text.parse().ok().filter(|n| (1..=10_000).contains(n)).ok_or_else(|| {
                        UsageError(format!("--seeds: found `{text}`; it is a whole number from 1 to 10000"))
                    })?);
            }
            Long(flag) if param(flag).is_some() => {
                let flag = flag.to_owned();
                options.values.push((flag, parser.value()?.string()?));
            }
            Long(flag) => {
                let flags = PARAMS.iter().map(|p| p.flag()).chain(OWN_FLAGS.map(str::to_owned));
                let flags: Vec<String> = flags.collect();
                let near = nearest(flag, flags.iter().map(String::as_str))
                    .map_or_else(String::new, |near| format!("; did you mean --{near}?"));
                return Err(UsageError(format!("--{flag} is no option of run{near}")));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// The configuration that the options make.
fn configure(options: &Options) -> Result<Config, UsageError> {
    let mut config = options.preset.config();
    let mut values: Vec<&(String, String)> = options.values.iter().collect();
    // What others' defaults depend on comes first; a stable sort leaves the rest in its order.
    values.sort_by_key(|(flag, _)| Config::turn(flag));
    for (flag, value) in values {
        let param = param(flag).expect("flags were looked up when they were read");
        if options.trace.is_some() && param.group == Group::Trace {
            return Err(UsageError(format!("--{flag} shapes a generated trace; with --trace there is none")));
        }
        param
            .set(&mut config, value)
            .map_err(|p| UsageError(format!("--{}: {}", param.flag(), p.problem)))?;
    }
    if let Some(block) = options.trace_block {
        let problem = if options.trace.is_none() {
            "says what an id of a trace stands for; it goes with --trace".to_owned()
        } else if config.backend == BackendKind::TinyGpt {
            "a trace of block ids has no tokens to compute; it goes with --backend modelled".to_owned()
        } else if !block.is_multiple_of(config.block_size) {
            format!(
                "found {block}, which blocks of {} tokens (--block-size) do not divide",
                config.block_size
            )
        } else {
            String::new()
        };
        if !problem.is_empty() {
            return Err(UsageError(format!("--trace-block: {problem}")));
        }
    }
    config.validate().map_err(|p| UsageError(format!("--{}: {}", p.key.replace('_', "-"), p.problem)))?;
    Ok(config)
}

fn read_trace(path: &Path, block: Option<u32>, config: &Config) -> Result<Trace, UsageError> {
    let name = path.display();
    let bytes = std::fs::read(path).map_err(|e| UsageError(format!("{name}: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        UsageError(format!("{name}: line {line}: not UTF-8 text; a trace is JSON lines"))
    })?;
    let trace = match block {
        Some(block) => read_mooncake(&text, block),
        None => read_json_lines(&text, Experiment::vocabulary(config.backend)),
    };
    let trace = trace.map_err(|e| UsageError(format!("{name}: {e}")))?;
    if trace.requests.is_empty() {
        return Err(UsageError(format!("{name}: no requests; a trace is one JSON object a line")));
    }
    Ok(trace)
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

/// Writes a file whole or not at all: what was there before stays until the new one is complete.
fn save(path: &Path, text: &str) -> Result<(), UsageError> {
    let failed = |e: std::io::Error| UsageError(format!("{}: {e}", path.display()));
    // What is no plain file (a pipe, a device) cannot be replaced.
    if path.exists() && !path.is_file() {
        return std::fs::write(path, text).map_err(failed);
    }
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}.part", std::process::id()));
    std::fs::write(&beside, text).and_then(|()| std::fs::rename(&beside, path)).map_err(|e| {
        let _ = std::fs::remove_file(&beside);
        failed(e)
    })
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let options = parse(args)?;
    if options.help {
        return Ok(help::run());
    }
    let config = configure(&options)?;
    if let Some(seeds) = options.seeds {
        return many_seeds(&options, &config, seeds);
    }
    let experiment = match &options.trace {
        Some(path) => {
            let trace = read_trace(path, options.trace_block, &config)?;
            Experiment::with_trace(config, trace, Some(path.display().to_string()))
        }
        None => Experiment::new(config),
    };
    if let Some(path) = &options.save_trace {
        let lines = export::json_lines(&experiment.trace).ok_or_else(|| {
            UsageError("--save-trace: a trace of block ids has no tokens that could be written".into())
        })?;
        save(path, &lines)?;
    }
    let reports: Vec<Report> = experiment
        .config
        .policy
        .iter()
        .map(|&policy| {
            let recorder = run(&experiment, policy)?;
            Ok(Report::new(&experiment, policy, experiment.summary(&recorder)))
        })
        .collect::<Result<_, UsageError>>()?;
    Ok(if options.json { to_json(&reports) } else { header(&experiment.config) + &table(&reports) })
}

/// What a replica is and what its memory holds, where that is accelerators.
fn header(config: &Config) -> String {
    config.deployment().zip(config.kv_pool()).map_or_else(String::new, |(deployment, pool)| {
        format!("a replica: {deployment}\nKV pool: {pool}\n\n")
    })
}

fn many_seeds(options: &Options, config: &Config, seeds: u32) -> Result<String, UsageError> {
    if options.trace.is_some() || options.save_trace.is_some() {
        return Err(UsageError("--seeds draws a trace a seed; it does not go with a trace file".into()));
    }
    let mut spreads: Vec<Spread> =
        config.policy.iter().map(|&policy| Spread { policy, summaries: Vec::new() }).collect();
    let mut model = None;
    for seed in 0..u64::from(seeds) {
        let config = Config { seed: config.seed.wrapping_add(seed), ..config.clone() };
        let experiment = Experiment::reusing(config, model);
        for spread in &mut spreads {
            let recorder = run(&experiment, spread.policy)?;
            spread.summaries.push(experiment.summary(&recorder));
        }
        model = experiment.model();
    }
    Ok(if options.json { spread_json(&spreads) } else { header(config) + &spread_table(&spreads) })
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
