//! `warmroute trace`: writes a trace, generated or read, in our format or in Mooncake's.

use std::ffi::OsString;
use std::path::PathBuf;

use lexopt::prelude::*;

use super::inputs::{Inputs, may_save, once, save, text, whole};
use super::{UsageError, help};
use crate::trace::export::{MAX_IDS, json_lines, mooncake};

#[derive(Default)]
struct Options {
    inputs: Inputs,
    mooncake: Option<bool>,
    block: Option<u32>,
    out: Option<PathBuf>,
    force: bool,
}

const OWN_FLAGS: [&str; 5] = ["as", "out-block", "out", "force", "help"];

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::trace()),
            Long("as") => {
                let name = text(&mut parser)?;
                let mooncake = match name.as_str() {
                    "json-lines" => false,
                    "mooncake" => true,
                    _ => {
                        return Err(UsageError(format!("--as: found `{name}`; it is json-lines | mooncake")));
                    }
                };
                once("as", &mut options.mooncake, mooncake)?;
            }
            Long("out-block") => {
                let block = whole("out-block", &mut parser, 1..=65_536, "a whole number of tokens")?;
                once("out-block", &mut options.block, block as u32)?;
            }
            Long("out") => once("out", &mut options.out, parser.value()?.into())?,
            Long("force") => options.force = true,
            Value(path) => options.inputs.traces.file(path.into())?,
            Long(flag) => {
                let flag = flag.to_owned();
                options.inputs.take_or_refuse(&flag, &mut parser, "trace", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let as_mooncake = options.mooncake.unwrap_or(false);
    if options.block.is_some() && !as_mooncake {
        return Err(UsageError("--out-block: says what an id stands for; it goes with --as mooncake".into()));
    }
    options.inputs.default_to("backend", "modelled");
    let config = options.inputs.config()?;
    let (log, notes) = match options.inputs.traces.read(&config)? {
        Some(loaded) => (loaded.log, loaded.notes),
        None => (config.trace().into(), Vec::new()),
    };
    let written = if as_mooncake {
        mooncake(&log.trace, options.block.unwrap_or(512)).ok_or_else(|| {
            UsageError(format!("--as mooncake: more than {MAX_IDS} blocks, the most that are written"))
        })?
    } else {
        json_lines(&log.trace, &log.sessions)
    };
    let Some(path) = options.out else {
        options.inputs.say(&config, &notes);
        return Ok(written);
    };
    may_save(&path, &written, options.force)?;
    options.inputs.say(&config, &notes);
    save(&path, &written)?;
    Ok(format!("{} requests in {}\n", log.trace.requests.len(), path.display()))
}
