//! What several commands read: a preset, parameters, and the trace in place of a generated one.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::UsageError;
use super::traces::{Loaded, TraceFlags};
use crate::params::{
    BackendKind, Config, Group, Param, Problem, SHAPE_KEYS, all_params, from_settings, nearest, param,
    suggestion,
};
use crate::trace::generate::Arrivals;

/// The flags that make a configuration and say what arrives.
#[derive(Default)]
pub struct Inputs {
    /// Trace files, and how they are read.
    pub traces: TraceFlags,
    preset: Option<String>,
    /// The trace whose arrivals a generated one has.
    pub arrivals_from: Option<PathBuf>,
    /// Keys of parameters and their values, to be set once the preset is known.
    values: Vec<(String, String)>,
}

impl Inputs {
    /// Takes a flag with its value, where it is one of these.
    pub fn take(&mut self, flag: &str, parser: &mut lexopt::Parser) -> Result<bool, UsageError> {
        if self.traces.take(flag, parser)? {
            return Ok(true);
        }
        match flag {
            "preset" => once("preset", &mut self.preset, text(parser)?)?,
            "arrivals-from" => once("arrivals-from", &mut self.arrivals_from, parser.value()?.into())?,
            _ => {
                let param = param(flag).map(|param| param.key);
                let Some(key) = param.or_else(|| SHAPE_KEYS.into_iter().find(|key| *key == flag)) else {
                    return Ok(false);
                };
                once_each(&key.replace('_', "-"), &mut self.values, key.to_owned(), text(parser)?)?;
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
        let known =
            own.iter().chain(&TraceFlags::FLAGS).chain(&["preset", "arrivals-from"]).chain(&SHAPE_KEYS);
        let known = known.map(|flag| (*flag).to_owned());
        let flags: Vec<String> = all_params().map(Param::flag).chain(known).collect();
        Err(match nearest(flag, flags.iter().map(String::as_str)) {
            Some(_) => unknown(flag, command, flags.iter().map(String::as_str)),
            None => UsageError(format!("--{flag} is no option of {command}{}", suggestion(flag))),
        })
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
        if !self.sets(key) {
            self.values.insert(0, (key.to_owned(), value.to_owned()));
        }
    }

    /// The configuration that the flags make.
    pub fn config(&self) -> Result<Config, UsageError> {
        let of_shape =
            |key: &str| SHAPE_KEYS.contains(&key) || param(key).is_some_and(|p| p.group == Group::Trace);
        let shape = self.values.iter().find(|(key, _)| of_shape(key));
        if let (Some((key, _)), true) = (shape, self.traces.is_given()) {
            return Err(UsageError(format!(
                "--{} shapes a generated trace; with --trace there is none",
                key.replace('_', "-")
            )));
        }
        if let Some(problem) = self.traces.without_file() {
            return Err(UsageError(problem));
        }
        let values = self.values.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut config = from_settings(self.preset(), values).map_err(refused)?;
        if let Some(path) = &self.arrivals_from {
            if self.sets("arrivals") || self.traces.is_given() {
                let other =
                    if self.traces.is_given() { "--trace has its own" } else { "--arrivals says them" };
                return Err(UsageError(format!("--arrivals-from: {other}; it is one of the two")));
            }
            let mut other = TraceFlags::default();
            other.file(path.clone())?;
            let read = other.read(&Config { backend: BackendKind::Modelled, ..config.clone() })?;
            let times = read.into_iter().flat_map(|read| read.log.trace.requests).map(|r| r.arrival);
            config.arrivals = Arrivals::Given(times.collect::<Arc<[_]>>());
            config.validate().map_err(refused)?;
        }
        if self.traces.trace_block.is_some() && config.backend == BackendKind::TinyGpt {
            return Err(UsageError(
                "--trace-block: a trace of block ids has no tokens to compute; it goes with --backend modelled".into(),
            ));
        }
        Ok(config)
    }

    /// Refuses arrivals from a file, which a plan that is shared out cannot name.
    pub fn no_arrivals_from(&self) -> Result<(), UsageError> {
        match self.arrivals_from {
            None => Ok(()),
            Some(_) => Err(UsageError(
                "--arrivals-from: many traces are made here, each at a rate of its own; write one with `warmroute trace` and give it as --trace".into(),
            )),
        }
    }

    /// Whether a parameter was given a value.
    pub fn sets(&self, key: &str) -> bool {
        self.values.iter().any(|(own, _)| own == key)
    }

    /// Says on standard error what was asked for and has no effect, and what one should know of what was read.
    pub fn say(&self, config: &Config, notes: &[String]) {
        if config.tenants == 1 && config.hot_share.is_some() && !self.traces.is_given() {
            eprintln!("warmroute: --hot-share: has no effect with one tenant, which has all of the traffic");
        }
        for note in notes {
            eprintln!("warmroute: {note}");
        }
    }

    /// Reads the trace files, where there are any, and sees to it that a configuration can run them.
    pub fn read_trace(&self, config: &Config) -> Result<Option<Loaded>, UsageError> {
        let loaded = self.traces.read(config)?;
        if let Some(loaded) = &loaded {
            loaded.check(config)?;
        }
        Ok(loaded)
    }
}

/// That a command has no such flag, and which one may have been meant.
pub fn unknown<'a>(flag: &str, command: &str, flags: impl IntoIterator<Item = &'a str>) -> UsageError {
    let near = nearest(flag, flags).map_or_else(String::new, |near| format!("; did you mean --{near}?"));
    UsageError(format!("--{flag} is no option of {command}{near}"))
}

/// Bytes of a file that is read at most: 2 GiB.
pub const MAX_FILE: u64 = 1 << 31;

/// A problem with a parameter, as the command line names it.
pub fn refused(problem: Problem) -> UsageError {
    UsageError(format!("--{}: {}", problem.key.replace('_', "-"), problem.problem))
}

/// Adds a key's value to others; a key may be given once only.
pub fn once_each<K: PartialEq>(
    flag: &str,
    values: &mut Vec<(K, String)>,
    key: K,
    value: String,
) -> Result<(), UsageError> {
    let mut before = values.iter().find(|(own, _)| *own == key).map(|(_, value)| value.clone());
    once(flag, &mut before, value.clone())?;
    values.push((key, value));
    Ok(())
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

/// A flag's value as a number in a range.
pub fn real(
    flag: &str,
    parser: &mut lexopt::Parser,
    range: std::ops::RangeInclusive<f64>,
    what: &str,
) -> Result<f64, UsageError> {
    let text = text(parser)?;
    text.parse().ok().filter(|x| range.contains(x)).ok_or_else(|| {
        UsageError(format!(
            "--{flag}: found `{text}`; it is {what} from {} to {}",
            range.start(),
            range.end()
        ))
    })
}

/// Reads a file.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, UsageError> {
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
    Ok(bytes)
}

/// Reads a file of text; `what` says what it should have been.
pub fn read_text(path: &Path, what: &str) -> Result<String, UsageError> {
    let name = path.display();
    String::from_utf8(read_bytes(path)?).map_err(|e| {
        let line = 1 + e.as_bytes()[..e.utf8_error().valid_up_to()].iter().filter(|&&b| b == b'\n').count();
        UsageError(format!("{name}: line {line}: not UTF-8 text; {what}"))
    })
}

/// Whether a file may be written: there is none yet, or nothing is in it, or just this, or it is to be replaced.
pub fn may_save(path: &Path, text: &str, force: bool) -> Result<(), UsageError> {
    if force || !path.is_file() {
        return Ok(());
    }
    let same = std::fs::metadata(path).is_ok_and(|m| m.len() == 0 || m.len() == text.len() as u64)
        && std::fs::read(path).is_ok_and(|old| old.is_empty() || old == text.as_bytes());
    if same {
        return Ok(());
    }
    Err(UsageError(format!("{}: is there already, with other content; --force replaces it", path.display())))
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
