//! What several commands read: a preset, parameters, and the trace in place of a generated one.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::UsageError;
use crate::experiment::{Experiment, Source};
use crate::params::{
    BackendKind, Config, Group, Param, Problem, all_params, from_settings, nearest, param, suggestion,
};
use crate::sweep::TraceId;
use crate::trace::Trace;
use crate::trace::import::{read_json_lines, read_mooncake};

/// The flags that make a configuration and say what arrives.
#[derive(Default)]
pub struct Inputs {
    pub trace: Option<PathBuf>,
    /// Tokens that an id of a Mooncake trace stands for; without it, the trace is our own format.
    pub trace_block: Option<u32>,
    /// Whether to spread arrivals out within the buckets that the trace rounds them to.
    spread: bool,
    preset: Option<String>,
    /// Keys of parameters and their values, to be set once the preset is known.
    values: Vec<(String, String)>,
}

impl Inputs {
    /// The flags besides the parameters'.
    const FLAGS: [&str; 4] = ["trace", "trace-block", "spread", "preset"];

    /// Takes a flag with its value, where it is one of these.
    pub fn take(&mut self, flag: &str, parser: &mut lexopt::Parser) -> Result<bool, UsageError> {
        match flag {
            "trace" => once("trace", &mut self.trace, parser.value()?.into())?,
            "trace-block" => {
                let block = whole("trace-block", parser, 1..=65_536, "a whole number of tokens")?;
                once("trace-block", &mut self.trace_block, block as u32)?;
            }
            "spread" => self.spread = true,
            "preset" => once("preset", &mut self.preset, text(parser)?)?,
            _ => {
                let Some(param) = param(flag) else { return Ok(false) };
                let mut before =
                    self.values.iter().find(|(key, _)| key == param.key).map(|(_, value)| value.clone());
                let value = text(parser)?;
                once(&param.flag(), &mut before, value.clone())?;
                self.values.push((param.key.to_owned(), value));
            }
        }
        Ok(true)
    }

    /// The same, where a flag that is none of these nor of the command's `own` is refused.
    pub fn take_or_refuse(
        &mut self,
        flag: &str,
        parser: &mut lexopt::Parser,
        command: &str,
        own: &[&str],
    ) -> Result<(), UsageError> {
        if self.take(flag, parser)? {
            return Ok(());
        }
        let known = own.iter().chain(&Inputs::FLAGS).map(|flag| (*flag).to_owned());
        let flags: Vec<String> = all_params().map(Param::flag).chain(known).collect();
        let near = match nearest(flag, flags.iter().map(String::as_str)) {
            Some(near) => format!("; did you mean --{near}?"),
            None => suggestion(flag),
        };
        Err(UsageError(format!("--{flag} is no option of {command}{near}")))
    }

    /// The preset's name.
    pub fn preset(&self) -> &str {
        self.preset.as_deref().unwrap_or("chapter")
    }

    /// Keys and values of the parameters, as they were given.
    pub fn values(&self) -> &[(String, String)] {
        &self.values
    }

    /// Gives a parameter a value, unless it was given one.
    pub fn default_to(&mut self, key: &str, value: &str) {
        if self.values.iter().all(|(own, _)| own != key) {
            self.values.insert(0, (key.to_owned(), value.to_owned()));
        }
    }

    /// The configuration that the flags make.
    pub fn config(&self) -> Result<Config, UsageError> {
        let shape = self.values.iter().find(|(key, _)| param(key).is_some_and(|p| p.group == Group::Trace));
        if let (Some((key, _)), Some(_)) = (shape, &self.trace) {
            return Err(UsageError(format!(
                "--{} shapes a generated trace; with --trace there is none",
                key.replace('_', "-")
            )));
        }
        let values = self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let config = from_settings(self.preset(), values).map_err(refused)?;
        self.check_block(&config)?;
        Ok(config)
    }

    /// Whether what is said about the trace is right, and suits a configuration.
    pub fn check_block(&self, config: &Config) -> Result<(), UsageError> {
        if self.spread && self.trace.is_none() {
            return Err(UsageError(
                "--spread: the generated trace rounds no arrivals; it goes with --trace".into(),
            ));
        }
        let Some(block) = self.trace_block else { return Ok(()) };
        let problem = if self.trace.is_none() {
            "says what an id of a trace stands for; it goes with --trace".to_owned()
        } else if config.backend == BackendKind::TinyGpt {
            "a trace of block ids has no tokens to compute; it goes with --backend modelled".to_owned()
        } else if !block.is_multiple_of(config.block_size) {
            format!(
                "found {block}, which blocks of {} tokens (--block-size) do not divide",
                config.block_size
            )
        } else {
            return Ok(());
        };
        Err(UsageError(format!("--trace-block: {problem}")))
    }

    /// Where the trace comes from, for the record.
    pub fn source(&self) -> Option<Source> {
        let file = self.trace.as_ref()?.display().to_string();
        Some(Source { file, trace_block: self.trace_block, spread: self.spread })
    }

    /// Reads the trace, where there is a file, and says which it was.
    pub fn read_trace(&self, config: &Config) -> Result<Option<(Trace, TraceId)>, UsageError> {
        let Some(path) = &self.trace else { return Ok(None) };
        let name = path.display();
        let text = read_text(path, "a trace is JSON lines")?;
        let trace = match self.trace_block {
            Some(block) => read_mooncake(&text, block),
            None => read_json_lines(&text, Experiment::vocabulary(config.backend)),
        };
        let trace = trace.map_err(|e| UsageError(format!("{name}: {e}")))?;
        if trace.requests.is_empty() {
            return Err(UsageError(format!("{name}: no requests; a trace is one JSON object a line")));
        }
        let tokens: u64 = trace.requests.iter().map(|request| request.prompt.len() as u64).sum();
        let blocks = tokens / u64::from(config.block_size);
        if blocks > MAX_TRACE_BLOCKS {
            return Err(UsageError(format!(
                "--block-size: {tokens} prompt tokens of {name} in blocks of {} are {blocks} blocks; a trace has at most {MAX_TRACE_BLOCKS}",
                config.block_size
            )));
        }
        let trace = if self.spread { trace.spread(config.seed) } else { trace };
        let own = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        let id = TraceId::new(own, text.as_bytes(), self.trace_block);
        Ok(Some((trace, TraceId { spread: self.spread, ..id })))
    }
}

/// Blocks that the prompts of a trace fill at most: each is looked up.
const MAX_TRACE_BLOCKS: u64 = 1 << 28;

/// Bytes of a file that is read at most: 2 GiB.
const MAX_FILE: u64 = 1 << 31;

/// A problem with a parameter, as the command line names it.
pub fn refused(problem: Problem) -> UsageError {
    UsageError(format!("--{}: {}", problem.key.replace('_', "-"), problem.problem))
}

/// Sets what may be given once only.
pub fn once<T>(flag: &str, place: &mut Option<T>, value: T) -> Result<(), UsageError> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(UsageError(format!("--{flag} is given twice; once is enough"))),
    }
}

/// A flag's value as text.
pub fn text(parser: &mut lexopt::Parser) -> Result<String, UsageError> {
    use lexopt::ValueExt;
    Ok(parser.value()?.string()?)
}

/// A flag's value as a whole number in a range.
pub fn whole(
    flag: &str,
    parser: &mut lexopt::Parser,
    range: std::ops::RangeInclusive<u64>,
    what: &str,
) -> Result<u64, UsageError> {
    let text = text(parser)?;
    text.parse().ok().filter(|n| range.contains(n)).ok_or_else(|| {
        UsageError(format!(
            "--{flag}: found `{text}`; it is {what} from {} to {}",
            range.start(),
            range.end()
        ))
    })
}

/// Reads a file of text; `what` says what it should have been.
pub fn read_text(path: &Path, what: &str) -> Result<String, UsageError> {
    let name = path.display();
    let failed = |e: std::io::Error| UsageError(format!("{name}: {e}"));
    let too_long = || UsageError(format!("{name}: longer than {MAX_FILE} bytes, the most that is read"));
    let file = std::fs::File::open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.len() > MAX_FILE {
        return Err(too_long());
    }
    // A device says nothing of its length.
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(too_long());
    }
    String::from_utf8(bytes).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        UsageError(format!("{name}: line {line}: not UTF-8 text; {what}"))
    })
}

/// Writes a file whole or not at all: what was there before stays until the new one is complete.
pub fn save(path: &Path, text: &str) -> Result<(), UsageError> {
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
