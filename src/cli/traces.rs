//! The trace files that a command reads: how they are to be read, and what of them is run.

use std::io::{IsTerminal, Read, Write};
use std::path::{Path, PathBuf};

use super::UsageError;
use super::inputs::{MAX_FILE, once, read_bytes, real, text, whole};
use crate::experiment::{Experiment, Source};
use crate::params::{BackendKind, Config, nearest};
use crate::sweep::{Digest, TraceId};
use crate::trace::import::{Columns, Format, Imported, Lengths, ReadOptions, Reader, TimeUnit};
use crate::trace::{Log, Prompt, Trace};
use crate::units::Time;

/// The flags that name trace files and say how they are read.
#[derive(Default)]
pub struct TraceFlags {
    /// The files.
    pub paths: Vec<PathBuf>,
    /// Tokens that an id stands for, where it is said.
    pub trace_block: Option<u32>,
    /// Whether to spread arrivals out within the buckets that the trace rounds them to.
    pub spread: bool,
    format: Option<Format>,
    columns: Option<Columns>,
    time_unit: Option<TimeUnit>,
    skip_bad_lines: bool,
    keep_failed: bool,
    bytes_per_token: Option<u32>,
    lengths: Vec<PathBuf>,
    from: Option<f64>,
    to: Option<f64>,
    time_scale: Option<f64>,
    sample: Option<f64>,
    /// What was given of these besides the files, the block and the spreading, for the record.
    said: Vec<String>,
}

/// Trace files that have been read.
pub struct Loaded {
    /// Their requests.
    pub log: Log,
    /// Which files they were, and how they were read.
    pub id: TraceId,
    /// The same, for the record of a run.
    pub source: Source,
    /// What one should know of it.
    pub notes: Vec<String>,
    /// What the first file is.
    pub title: &'static str,
    /// What a configuration has to suit.
    needs: Needs,
}

impl TraceFlags {
    /// The flags.
    pub const FLAGS: [&str; 14] = [
        "trace",
        "trace-block",
        "spread",
        "format",
        "columns",
        "time-unit",
        "skip-bad-lines",
        "keep-failed",
        "bytes-per-token",
        "lengths",
        "from",
        "to",
        "time-scale",
        "sample",
    ];

    /// Takes a flag with its value, where it is one of these.
    pub fn take(&mut self, flag: &str, parser: &mut lexopt::Parser) -> Result<bool, UsageError> {
        let mut said = |value: &str| self.said.push(format!("--{flag} {value}").trim().to_owned());
        let seconds = "a number of seconds";
        match flag {
            "trace" => return self.file(parser.value()?.into()).map(|()| true),
            "trace-block" => {
                let block = whole("trace-block", parser, 1..=65_536, "a whole number of tokens")?;
                once("trace-block", &mut self.trace_block, block as u32)?;
            }
            "spread" => self.spread = true,
            "format" => {
                let name = text(parser)?;
                let format = Format::from_name(&name).ok_or_else(|| {
                    let names = Format::ALL.map(|row| row.0);
                    let near =
                        nearest(&name, names).map_or_else(String::new, |n| format!("; did you mean `{n}`?"));
                    UsageError(format!("--format: found `{name}`; it is {}{near}", names.join(" | ")))
                })?;
                said(&name);
                once("format", &mut self.format, format)?;
            }
            "columns" => {
                let columns = text(parser)?;
                said(&columns);
                let columns = Columns::parse(&columns).map_err(|e| UsageError(format!("--columns: {e}")))?;
                once("columns", &mut self.columns, columns)?;
            }
            "time-unit" => {
                let name = text(parser)?;
                let unit = TimeUnit::from_name(&name).ok_or_else(|| {
                    let names = TimeUnit::ALL.map(|(name, _)| name).join(" | ");
                    UsageError(format!("--time-unit: found `{name}`; it is {names}"))
                })?;
                said(&name);
                once("time-unit", &mut self.time_unit, unit)?;
            }
            "skip-bad-lines" => {
                said("");
                self.skip_bad_lines = true;
            }
            "keep-failed" => {
                said("");
                self.keep_failed = true;
            }
            "bytes-per-token" => {
                let bytes = whole("bytes-per-token", parser, 1..=64, "a whole number")?;
                said(&bytes.to_string());
                once("bytes-per-token", &mut self.bytes_per_token, bytes as u32)?;
            }
            "lengths" => self.lengths.push(parser.value()?.into()),
            "from" => {
                let from = real("from", parser, 0.0..=1.8e7, seconds)?;
                said(&from.to_string());
                once("from", &mut self.from, from)?;
            }
            "to" => {
                let to = real("to", parser, 0.0..=1.8e7, seconds)?;
                said(&to.to_string());
                once("to", &mut self.to, to)?;
            }
            "time-scale" => {
                let scale = real("time-scale", parser, 1e-6..=1e6, "a factor")?;
                said(&scale.to_string());
                once("time-scale", &mut self.time_scale, scale)?;
            }
            "sample" => {
                let share = real("sample", parser, 0.0..=1.0, "a fraction of the sessions")?;
                said(&share.to_string());
                once("sample", &mut self.sample, share)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Adds a file.
    pub fn file(&mut self, path: PathBuf) -> Result<(), UsageError> {
        if self.paths.contains(&path) {
            return Err(UsageError(format!(
                "--trace: {} is given twice; once is enough (other files are merged with it)",
                path.display()
            )));
        }
        self.paths.push(path);
        Ok(())
    }

    /// Whether there is a file.
    pub fn is_given(&self) -> bool {
        !self.paths.is_empty()
    }

    /// The first flag that says something of a file, where there is none.
    pub fn without_file(&self) -> Option<String> {
        if self.is_given() {
            return None;
        }
        let spread =
            self.spread.then_some("--spread: the generated trace rounds no arrivals; it goes with --trace");
        let block = self
            .trace_block
            .and(Some("--trace-block: says what an id of a trace stands for; it goes with --trace"));
        let lengths = (!self.lengths.is_empty()).then_some("--lengths: it goes with --trace");
        let said = self.said.first().map(|said| {
            let flag = said.split(' ').next().unwrap_or_default();
            format!("{flag}: says how a trace file is read or what of it is run; it goes with --trace")
        });
        spread.or(block).or(lengths).map(str::to_owned).or(said)
    }

    fn options(&self, backend: BackendKind) -> Result<ReadOptions, UsageError> {
        let mut lengths = Lengths::default();
        for path in &self.lengths {
            let name = path.display();
            let bytes = read_bytes(path)?;
            lengths.read(&bytes).map_err(|e| UsageError(format!("{name}: {e}")))?;
        }
        Ok(ReadOptions {
            format: self.format,
            trace_block: self.trace_block,
            columns: self.columns.clone().unwrap_or_default(),
            time_unit: self.time_unit,
            skip_bad_lines: self.skip_bad_lines,
            spread: self.spread,
            keep_failed: self.keep_failed,
            bytes_per_token: self.bytes_per_token.unwrap_or(1),
            lengths,
            vocabulary: Experiment::vocabulary(backend),
        })
    }

    /// Reads the files, where there are any, and makes of them what is to be run.
    pub fn read(&self, config: &Config) -> Result<Option<Loaded>, UsageError> {
        if !self.is_given() {
            return Ok(None);
        }
        let options = self.options(config.backend)?;
        let (mut logs, mut notes, mut names, mut title) = (Vec::new(), Vec::new(), Vec::new(), "");
        let mut digest = Digest::default();
        for path in &self.paths {
            let name = path.display().to_string();
            let Imported { mut log, detected, notes: own, .. } =
                read_file(path, options.clone(), &mut digest)?;
            if log.trace.requests.is_empty() {
                return Err(UsageError(format!(
                    "{name}: no requests (read as {}: {})",
                    detected.format.title(),
                    detected.why
                )));
            }
            if self.format.is_none() && detected.format != Format::JsonLines {
                notes.push(format!(
                    "{name}: {} requests, read as {} ({})",
                    log.trace.requests.len(),
                    detected.format.title(),
                    detected.why
                ));
            }
            notes.extend(own.iter().map(|note| format!("{name}: {note}")));
            if self.spread {
                log.trace = log.trace.spread(config.seed);
            }
            title = if title.is_empty() { detected.format.title() } else { title };
            logs.push(log);
            names.push(name);
        }
        let mut log = Log::merge(logs).map_err(|e| UsageError(format!("--trace: {e}")))?;
        let (all, span) = (log.trace.requests.len(), log.trace.span());
        log = self.part(log, config.seed)?;
        if log.trace.requests.is_empty() {
            return Err(UsageError(format!(
                "--from, --to, --sample: of {all} requests none is left; the trace is {:.3} s long",
                span.seconds()
            )));
        }
        if log.trace.requests.len() < all {
            notes.push(format!(
                "{} of {all} requests are kept (--from, --to, --sample)",
                log.trace.requests.len()
            ));
        }
        let file =
            self.paths.iter().map(|path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy());
        let file = file.collect::<Vec<_>>().join("+");
        let read = (!self.said.is_empty()).then(|| self.said.join(" "));
        let id = TraceId {
            name: file,
            digest: digest.text(),
            trace_block: self.trace_block,
            spread: self.spread,
            read: read.clone(),
        };
        let source =
            Source { file: names.join(" + "), trace_block: self.trace_block, spread: self.spread, read };
        Ok(Some(Loaded { needs: Needs::of(&log.trace), log, id, source, notes, title }))
    }

    /// The part of a log that is asked for, at the pace that is asked for.
    fn part(&self, mut log: Log, seed: u64) -> Result<Log, UsageError> {
        let time = |seconds: f64| Time::from_seconds(seconds).expect("its range is within the clock's");
        if let (Some(from), Some(to)) = (self.from, self.to)
            && from >= to
        {
            return Err(UsageError(format!("--to: found {to}, which is not after --from {from}")));
        }
        if self.from.is_some() || self.to.is_some() {
            log = log.slice(time(self.from.unwrap_or(0.0)), self.to.map(time));
        }
        if let Some(share) = self.sample {
            log = log.sample(share, seed);
        }
        match self.time_scale {
            None => Ok(log),
            Some(scale) => log.scaled(scale).ok_or_else(|| {
                UsageError(format!("--time-scale: {scale} times as long is longer than the clock's 213 days"))
            }),
        }
    }
}

impl Loaded {
    /// Whether a configuration can run it.
    pub fn check(&self, config: &Config) -> Result<(), UsageError> {
        self.needs.check(&self.source.file, self.title, config)
    }
}

/// Blocks that the prompts of a trace fill at most: each is looked up.
const MAX_TRACE_BLOCKS: u64 = 1 << 28;

/// What a trace asks of a configuration: counted once, since a sweep asks at every point.
struct Needs {
    /// Tokens that an id stands for, where prompts are told by blocks.
    block: Option<u32>,
    /// Whether any prompt has ids.
    has_ids: bool,
    /// Tokens of all prompts.
    tokens: u64,
}

impl Needs {
    fn of(trace: &Trace) -> Needs {
        let blocks = || {
            trace.requests.iter().filter_map(|request| match &request.prompt {
                Prompt::Blocks(blocks) => Some(blocks),
                Prompt::Tokens(_) => None,
            })
        };
        Needs {
            block: blocks().next().map(|blocks| blocks.block),
            has_ids: blocks().any(|blocks| !blocks.ids.is_empty()),
            tokens: trace.requests.iter().map(|request| request.prompt.len() as u64).sum(),
        }
    }

    fn check(&self, name: &str, title: &str, config: &Config) -> Result<(), UsageError> {
        let Needs { block, has_ids, tokens } = *self;
        if block.is_some() && config.backend == BackendKind::TinyGpt {
            return Err(UsageError(format!(
                "--backend: {name} ({title}) has no tokens to compute; it goes with --backend modelled"
            )));
        }
        if let Some(block) = block.filter(|block| has_ids && !block.is_multiple_of(config.block_size)) {
            return Err(UsageError(format!(
                "--trace-block: found {block}, which blocks of {} tokens (--block-size) do not divide",
                config.block_size
            )));
        }
        let blocks = tokens / u64::from(config.block_size);
        if blocks > MAX_TRACE_BLOCKS {
            return Err(UsageError(format!(
                "--block-size: {tokens} prompt tokens of {name} in blocks of {} are {blocks} blocks; a trace has at most {MAX_TRACE_BLOCKS}",
                config.block_size
            )));
        }
        Ok(())
    }
}

/// Reads one file, a chunk at a time.
fn read_file(path: &Path, options: ReadOptions, digest: &mut Digest) -> Result<Imported, UsageError> {
    let name = path.display();
    let failed = |e: std::io::Error| UsageError(format!("{name}: {e}"));
    let too_long = || UsageError(format!("{name}: longer than {MAX_FILE} bytes, the most that is read"));
    let mut file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > MAX_FILE {
        return Err(too_long());
    }
    let refused = |e| UsageError(format!("{name}: {e}"));
    let mut reader = Reader::new(options);
    let mut chunk = vec![0u8; 1 << 20];
    let watched = length > 1 << 26 && std::io::stderr().is_terminal();
    loop {
        let read = file.read(&mut chunk).map_err(failed)?;
        if read == 0 {
            break;
        }
        digest.add(&chunk[..read]);
        reader.push(&chunk[..read]).map_err(refused)?;
        let progress = reader.progress();
        // A device says nothing of its length.
        if progress.bytes > MAX_FILE {
            return Err(too_long());
        }
        if watched {
            let percent = 100 * progress.bytes / length.max(1);
            // Nobody may be looking any more.
            let _ = write!(std::io::stderr(), "\r{name}: {percent} %, {} requests", progress.requests);
        }
    }
    if watched {
        eprintln!();
    }
    reader.finish().map_err(refused)
}
