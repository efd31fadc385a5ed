//! `warmroute calibrate`: what TinyGPT's passes take on this machine, and the price that they make.

use std::ffi::OsString;

use lexopt::prelude::*;

use super::UsageError;
use super::inputs::unknown;
use super::run::stop_watch;
use crate::cost::Cost;
use crate::cost::calibrate::{Calibration, Sample, calibrate};
use crate::experiment::random_model;
use crate::report::markdown;

const HELP: &str = "\
Measures TinyGPT's passes on this machine and fits the price of a step to them.

Usage: warmroute calibrate [OPTIONS]

  --json
        Print JSON: every measurement, the constants and their largest relative error.

Each pass is repeated until the total is 100 times the stop-watch's grain.
";

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut json = false;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(HELP.to_owned()),
            Long("json") => json = true,
            Long(flag) => return Err(unknown(flag, "calibrate", ["json", "help"])),
            other => return Err(other.unexpected().into()),
        }
    }
    let found = calibrate(&random_model(), &mut stop_watch(), &mut |done, of| {
        eprint!("\r{done} of {of} measurements{}", if done == of { "\n" } else { "" });
    });
    if json {
        return Ok(serde_json::to_string_pretty(&found)? + "\n");
    }
    Ok(text(&found))
}

fn text(found: &Calibration) -> String {
    let mut rows =
        vec![["pass", "tokens", "pairs", "ms", "priced at ms", "passes"].map(str::to_owned).to_vec()];
    for (name, samples, price) in
        [("prefill", &found.prefill, found.price.prefill), ("decode", &found.decode, found.price.decode)]
    {
        rows.extend(samples.iter().map(|Sample { piece, seconds, passes }| {
            vec![
                name.to_owned(),
                piece.tokens.to_string(),
                piece.pairs.to_string(),
                format!("{:.3}", 1e3 * seconds),
                format!("{:.3}", 1e3 * price.of(piece).seconds()),
                passes.to_string(),
            ]
        }));
    }
    format!(
        "{}largest error: prefill {:.0} %, decode {:.0} %\nuse it: warmroute run --cost {}\n",
        markdown(&rows),
        100.0 * found.prefill_worst,
        100.0 * found.decode_worst,
        Cost::Custom(found.price)
    )
}
