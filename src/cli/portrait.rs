//! `warmroute portrait`: what a trace is like, before anything is run.

use std::ffi::OsString;

use lexopt::prelude::*;

use super::inputs::Inputs;
use super::{UsageError, help};
use crate::portrait::Portrait;

const OWN_FLAGS: [&str; 2] = ["json", "help"];

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let (mut inputs, mut json) = (Inputs::default(), false);
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::portrait()),
            Long("json") => json = true,
            Value(path) => inputs.traces.file(path.into())?,
            Long(flag) => {
                let flag = flag.to_owned();
                inputs.take_or_refuse(&flag, &mut parser, "portrait", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    // Nothing is run: a trace without tokens is as good as any.
    inputs.default_to("backend", "modelled");
    let config = inputs.config()?;
    let (log, notes) = match inputs.traces.read(&config)? {
        Some(loaded) => (loaded.log, loaded.notes),
        None => (config.trace().into(), Vec::new()),
    };
    let portrait = Portrait::of(&log);
    if json {
        for note in notes {
            eprintln!("warmroute: {note}");
        }
        return Ok(portrait.json());
    }
    let notes: String = notes.iter().map(|note| format!("{note}\n")).collect();
    Ok(format!("{notes}{}{}", if notes.is_empty() { "" } else { "\n" }, portrait.text()))
}
