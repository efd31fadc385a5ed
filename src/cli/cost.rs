//! `warmroute cost`: what steps cost on accelerators, and how near that is to what was measured.

use std::ffi::OsString;

use lexopt::prelude::*;

use super::inputs::unknown;
use super::{UsageError, help};
use crate::cost::Price;
use crate::cost::roofline::fit::{PROFILES, TOKENS};
use crate::cost::roofline::{Accelerator, ServedModel};
use crate::engine::{Piece, Work};
use crate::params::{Config, Group, PARAMS, param};
use crate::report::markdown;

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut parser = lexopt::Parser::from_args(args);
    let mut values: Vec<(String, String)> = Vec::new();
    let mut only_fit = false;
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::cost()),
            Long("fit") => only_fit = true,
            Long(flag) if param(flag).is_some_and(|p| p.group == Group::Fleet) => {
                let flag = flag.to_owned();
                values.push((flag, parser.value()?.string()?));
            }
            Long(flag) => {
                let flags: Vec<String> =
                    PARAMS.iter().filter(|p| p.group == Group::Fleet).map(|p| p.flag()).collect();
                let flags = flags.iter().map(String::as_str).chain(["fit", "help"]);
                return Err(unknown(flag, "cost", flags));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    if only_fit {
        return match values.first() {
            None => Ok(fit_table()),
            Some((flag, _)) => {
                Err(UsageError(format!("--{flag}: --fit prints all that was profiled; it goes alone")))
            }
        };
    }
    let mut config = Config::on(Some(Accelerator::H100), ServedModel::default());
    values.sort_by_key(|(flag, _)| Config::turn(flag));
    for (flag, value) in &values {
        let param = param(flag).expect("flags were looked up when they were read");
        param.set(&mut config, value).map_err(|p| UsageError(format!("--{flag}: {}", p.problem)))?;
    }
    config.validate().map_err(|p| UsageError(format!("--{}: {}", p.key.replace('_', "-"), p.problem)))?;
    prices(&config)
}

/// Steps of several kinds.
fn prices(config: &Config) -> Result<String, UsageError> {
    let (Some(deployment), Some(pool)) = (config.deployment(), config.kv_pool()) else {
        return Err(UsageError("--accelerator: found `none`; a price on accelerators needs one".into()));
    };
    let price = deployment.price();
    let mut rows =
        vec![["prompt tokens", "after cached", "decoding", "context", "ms"].map(str::to_owned).to_vec()];
    for (prompt, cached, batch, context) in [
        (0, 0, 1, 1024),
        (0, 0, 32, 1024),
        (0, 0, 256, 1024),
        (512, 0, 0, 0),
        (2048, 0, 0, 0),
        (8192, 0, 0, 0),
        (64, 8128, 0, 0),
        (512, 0, 64, 1024),
    ] {
        let prefills = if prompt > 0 { vec![Piece::range(cached, cached + prompt)] } else { Vec::new() };
        let decode = (batch > 0).then_some(Piece { tokens: batch, pairs: batch * context });
        let span = price.of(&Work { prefills, decode });
        let numbers = [prompt as u64, cached as u64, batch, context].map(|n| n.to_string());
        let mut row = numbers.to_vec();
        row.push(format!("{:.3}", 1e3 * span.seconds()));
        rows.push(row);
    }
    let origin = if deployment.accelerator.is_fitted() {
        "Efficiencies fitted to profiles of this accelerator (warmroute cost --fit)."
    } else {
        "Efficiencies taken from a related accelerator: nothing of this one was measured."
    };
    Ok(format!("{deployment}\nKV pool: {pool}\n\nA step of it:\n\n{}\n{origin}\n", markdown(&rows)))
}

/// The roofline beside the profiled steps.
fn fit_table() -> String {
    let mut rows = vec![vec!["ms a step of".to_owned()]];
    rows[0]
        .extend(TOKENS.map(|tokens| if tokens == 1 { "1 token".into() } else { format!("{tokens} tokens") }));
    rows[0].push("worst".into());
    for profile in &PROFILES {
        let have = profile.accelerator.efficiency();
        let name = format!("{}, {} × {}", profile.shape.name, profile.tp, profile.accelerator.name());
        for (who, milliseconds, worst) in [
            ("profiled", profile.milliseconds, String::new()),
            ("priced", profile.priced(&have), format!("{:+.1} %", 100.0 * profile.worst(&have))),
        ] {
            let mut row = vec![format!("{name} ({who})")];
            row.extend(milliseconds.map(|ms| format!("{ms:.1}")));
            row.push(worst);
            rows.push(row);
        }
    }
    markdown(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fit_that_is_shown_is_the_one_in_force() {
        let readme = include_str!("../../README.md");
        assert!(readme.contains(&fit_table()), "README.md shows another fit than:\n{}", fit_table());
    }
}
