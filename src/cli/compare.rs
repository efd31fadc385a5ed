//! `warmroute compare`: any set of policies on one trace, where two first decide otherwise, and what a
//! threshold trades.

use std::ffi::OsString;

use lexopt::prelude::*;

use super::inputs::{Inputs, refused};
use super::{UsageError, help};
use crate::compare::{compare, curve, curve_table, table, to_json};
use crate::experiment::Experiment;
use crate::params::{BackendKind, ClockKind};

const OWN_FLAGS: [&str; 3] = ["curve", "json", "help"];

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let (mut inputs, mut curves, mut json) = (Inputs::default(), false, false);
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::compare()),
            Long("curve") => curves = true,
            Long("json") => json = true,
            Long(flag) => {
                let flag = flag.to_owned();
                inputs.take_or_refuse(&flag, &mut parser, "compare", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    inputs.default_to("backend", "modelled");
    let config = inputs.config()?;
    if config.backend != BackendKind::Modelled || config.clock != ClockKind::Modelled {
        return Err(UsageError(
            "--backend: a comparison only prices what a step computes; it is modelled".into(),
        ));
    }
    let (experiment, notes) = match inputs.read_trace(&config)? {
        Some(loaded) => (Experiment::with_trace(config, loaded.log.trace, Some(loaded.source)), loaded.notes),
        None => (Experiment::new(config), Vec::new()),
    };
    let comparison = compare(&experiment)?;
    inputs.say(&experiment.config, &notes);
    let mut drawn = Vec::new();
    if curves {
        for &policy in &experiment.config.policy {
            drawn.extend(curve(&experiment, policy).map_err(refused)?);
        }
    }
    if json {
        return Ok(to_json(&comparison, &drawn));
    }
    Ok(table(&comparison) + &drawn.iter().map(curve_table).collect::<String>())
}
