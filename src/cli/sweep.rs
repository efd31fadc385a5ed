//! `warmroute sweep` and `warmroute merge`: many runs on all cores, or a part of them on this machine.

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use lexopt::prelude::*;
use rayon::prelude::*;

use super::inputs::{Inputs, once, read_text, refused, save, text, unknown, whole};
use super::{UsageError, help};
use crate::params::MAX_TRACE_TOKENS;
use crate::sweep::{Axis, Done, Part, Plan, Results, Seeds, join};

/// How results are written.
#[derive(Clone, Copy, Default)]
pub(super) enum Format {
    #[default]
    Table,
    Csv,
    Json,
}

impl Format {
    fn write(self, results: &Results) -> String {
        match self {
            Format::Table => results.table(),
            Format::Csv => results.csv(),
            Format::Json => results.json(),
        }
    }
}

#[derive(Default)]
struct Options {
    inputs: Inputs,
    over: Vec<Axis>,
    seeds: Option<String>,
    shard: Option<(u64, u64)>,
    part: Option<PathBuf>,
    force: bool,
    threads: usize,
    format: Format,
    help: bool,
}

const OWN_FLAGS: [&str; 9] = ["over", "seeds", "shard", "part", "force", "threads", "csv", "json", "help"];

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.format = Format::Json,
            Long("csv") => options.format = Format::Csv,
            Long("over") => options.over.push(Axis::parse(&text(&mut parser)?).map_err(refused)?),
            Long("seeds") => once("seeds", &mut options.seeds, text(&mut parser)?)?,
            Long("shard") => once("shard", &mut options.shard, shard(&text(&mut parser)?)?)?,
            Long("force") => options.force = true,
            Long("part") => once("part", &mut options.part, parser.value()?.into())?,
            Long("threads") => {
                options.threads = whole("threads", &mut parser, 1..=1024, "a whole number")? as usize;
            }
            Long(flag) => {
                let flag = flag.to_owned();
                options.inputs.take_or_refuse(&flag, &mut parser, "sweep", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// Reads `I/N`, counted from 1.
fn shard(text: &str) -> Result<(u64, u64), UsageError> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    numbers.filter(|&(i, n)| 1 <= i && i <= n && n <= 1_000_000).ok_or_else(|| {
        UsageError(format!(
            "--shard: found `{text}`; it is I/N, the I-th of N parts counted from 1, as 3/8 (N up to 1000000)"
        ))
    })
}

/// `warmroute sweep`: returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut options = parse(args)?;
    if options.help {
        return Ok(help::sweep());
    }
    options.inputs.default_to("backend", "modelled");
    let inputs = &options.inputs;
    inputs.no_arrivals_from()?;
    let config = inputs.config()?;
    let seeds = match &options.seeds {
        Some(text) => Seeds::parse(text, config.seed).map_err(refused)?,
        None => Seeds::parse("1", config.seed).map_err(refused)?,
    };
    let loaded = inputs.read_trace(&config)?;
    let mut plan = Plan {
        version: env!("CARGO_PKG_VERSION").into(),
        preset: inputs.preset().into(),
        settings: inputs.values().to_vec(),
        over: options.over,
        policies: config.policy.clone(),
        seeds,
        trace: loaded.as_ref().map(|loaded| loaded.id.clone()),
    };
    // What the plan says itself.
    plan.settings.retain(|(key, _)| key != "policy" && key != "seed");
    plan.check().map_err(refused)?;
    if let Some(loaded) = &loaded {
        for point in 0..plan.points() {
            loaded.check(&plan.config(point).map_err(refused)?)?;
        }
    }
    let (shard, of) = options.shard.unwrap_or((1, 1));
    let part = options.shard.map(|_| {
        options.part.clone().unwrap_or_else(|| PathBuf::from(format!("sweep-{shard}-of-{of}.part")))
    });
    if let Some(path) = part.as_deref().filter(|_| !options.force) {
        may_write_part(path, &plan, shard, of)?;
    }
    let jobs: Vec<u64> = plan.shard(shard, of).collect();
    let notes = loaded.as_ref().map_or_else(Vec::new, |loaded| loaded.notes.clone());
    let trace = loaded.map(|loaded| Arc::new(loaded.log.trace));
    let done = run_all(&plan, trace.as_ref(), jobs, threads(&plan, options.threads)?)?;
    let said = options.seeds.as_deref().filter(|seeds| seeds.contains(".."));
    if let (Some(seeds), true) = (said, options.inputs.sets("seed") && !options.inputs.traces.spread) {
        eprintln!("warmroute: --seed: has no effect, since --seeds {seeds} says which seeds are run");
    }
    options.inputs.say(&config, &notes);
    match (part, options.part) {
        (None, None) => Ok(options.format.write(&Results::new(plan, done).map_err(refused)?)),
        (None, Some(_)) => Err(UsageError("--part names the file of a --shard I/N; there is none".into())),
        (Some(path), _) => {
            let runs = done.len() * plan.policies.len();
            let part = Part { shard, of, plan, done }.write();
            save(&path, &part)?;
            Ok(format!("part {shard} of {of}: {runs} runs in {}\n", path.display()))
        }
    }
}

/// Whether a part may go to a file, before anything is run: there is none, or nothing in it, or what an earlier run of
/// the same part wrote.
fn may_write_part(path: &Path, plan: &Plan, shard: u64, of: u64) -> Result<(), UsageError> {
    if !path.is_file() || std::fs::metadata(path).is_ok_and(|file| file.len() == 0) {
        return Ok(());
    }
    match read_part(path) {
        Ok((_, part)) if part.plan == *plan && (part.shard, part.of) == (shard, of) => Ok(()),
        Ok((name, part)) => Err(UsageError(format!(
            "{name}: is there already, as part {} of {} of {}; --force replaces it",
            part.shard,
            part.of,
            if part.plan == *plan { "this sweep" } else { "another sweep" }
        ))),
        Err(_) => Err(UsageError(format!(
            "{}: is there already, and is no part of this sweep; --force replaces it",
            path.display()
        ))),
    }
}

/// So many threads (0: all cores), but no more than can hold a generated trace each.
pub(super) fn threads(plan: &Plan, wanted: usize) -> Result<usize, UsageError> {
    let wanted = if wanted == 0 { rayon::current_num_threads() } else { wanted };
    if plan.trace.is_some() {
        return Ok(wanted);
    }
    let tokens = |point| plan.config(point).map(|config| config.most_trace_tokens());
    let largest = (0..plan.points()).map(tokens).try_fold(1, |most, one| one.map(|one| most.max(one)));
    let most = MAX_TRACE_TOKENS / largest.map_err(refused)?;
    Ok(wanted.min(most.max(1) as usize))
}

/// Runs jobs on so many threads (0: on all cores), in whatever order, and returns them in theirs.
pub(super) fn run_all(
    plan: &Plan,
    trace: Option<&Arc<crate::trace::Trace>>,
    jobs: Vec<u64>,
    threads: usize,
) -> Result<Vec<Done>, UsageError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let (total, ended) = (jobs.len() as u64, AtomicU64::new(0));
    let watched = std::io::stderr().is_terminal();
    let run = |job: u64| {
        let done = plan.run(trace, job);
        let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
        let step = (total / 100).max(1);
        if watched && (ended.is_multiple_of(step) || ended == total) {
            let end = if ended == total { "\n" } else { "" };
            // Nobody may be looking any more.
            let _ = write!(std::io::stderr().lock(), "\rsweep: {ended} of {total} jobs{end}");
        }
        done
    };
    let done: Vec<_> = pool.install(|| jobs.into_par_iter().map(run).collect());
    // Of several that failed, the first by number, whichever came first.
    done.into_iter().collect::<Result<_, _>>().map_err(refused)
}

/// `warmroute merge`: joins the parts of a sweep.
pub fn merge(args: Vec<OsString>) -> Result<String, UsageError> {
    let (mut paths, mut format) = (Vec::<PathBuf>::new(), Format::default());
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::merge()),
            Long("json") => format = Format::Json,
            Long("csv") => format = Format::Csv,
            Value(path) => paths.push(path.into()),
            Long(flag) => return Err(unknown(flag, "merge", ["csv", "json", "help"])),
            other => return Err(other.unexpected().into()),
        }
    }
    let parts = paths.iter().map(|path| read_part(path)).collect::<Result<_, _>>()?;
    Ok(format.write(&join(parts).map_err(UsageError)?))
}

fn read_part(path: &Path) -> Result<(String, Part), UsageError> {
    let name = path.display().to_string();
    let text = read_text(path, "a part of a sweep is")?;
    let part = Part::read(&text).map_err(|problem| UsageError(format!("{name}: {problem}")))?;
    Ok((name, part))
}
