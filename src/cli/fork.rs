//! `warmroute fork`: one run, and what it would have come to with one thing different from some time on.

use std::ffi::OsString;

use lexopt::prelude::*;
use serde::Serialize;

use super::inputs::{Inputs, once, refused, text};
use super::{UsageError, help};
use crate::experiment::Experiment;
use crate::params::{BackendKind, ClockKind, Config, shortened};
use crate::report::{columns, markdown};
use crate::runlog::{Change, Replay, record};
use crate::sim::Summary;
use crate::units::Time;

#[derive(Default)]
struct Options {
    inputs: Inputs,
    at: Option<String>,
    change: Option<String>,
    json: bool,
    help: bool,
}

const OWN_FLAGS: [&str; 4] = ["at", "change", "json", "help"];

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.json = true,
            Long("at") => once("at", &mut options.at, text(&mut parser)?)?,
            Long("change") => once("change", &mut options.change, text(&mut parser)?)?,
            Long(flag) => {
                let flag = flag.to_owned();
                options.inputs.take_or_refuse(&flag, &mut parser, "fork", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// What is printed as JSON.
#[derive(Serialize)]
struct Both {
    at: f64,
    change: String,
    policy: &'static str,
    original: Summary,
    fork: Summary,
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut options = parse(args)?;
    if options.help {
        return Ok(help::fork());
    }
    // The same schedule as with tensors.
    options.inputs.default_to("backend", "modelled");
    options.inputs.default_to("policy", "round-robin");
    let config = options.inputs.config()?;
    let (at, change) = asked(&options, &config)?;
    let [policy] = config.policy[..] else {
        return Err(UsageError("--policy: one run is forked, so it is one policy".into()));
    };
    if config.clock != ClockKind::Modelled {
        return Err(UsageError(
            "--clock: what a stop-watch measured is not the same twice; it is modelled".into(),
        ));
    }
    let config = Config { backend: BackendKind::Modelled, ..config };
    let experiment = match options.inputs.read_trace(&config)? {
        Some((trace, _)) => Experiment::with_trace(config, trace, options.inputs.source()),
        None => Experiment::new(config),
    };
    let original = record(&experiment, policy, false)?.summary;
    let fork = Replay::fork(&experiment, policy, at, change, false).map_err(refused)?.finish()?.summary;
    if options.json {
        let both = Both {
            at: at.seconds(),
            change: options.change.unwrap_or_default(),
            policy: policy.name(),
            original,
            fork,
        };
        return Ok(serde_json::to_string_pretty(&both)? + "\n");
    }
    let mut rows = vec![vec!["of the whole run".to_owned(), "as it was".into(), "the fork".into()]];
    rows.extend(columns().iter().map(|c| vec![c.heading(), c.text(&original), c.text(&fork)]));
    let assigned = |s: &Summary| s.assignments.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    rows.push(vec!["assignments".into(), assigned(&original), assigned(&fork)]);
    Ok(markdown(&rows))
}

/// When, and what is different from then on.
fn asked(options: &Options, config: &Config) -> Result<(Time, Change), UsageError> {
    let usage = |message: &str| UsageError(message.into());
    let at = options.at.as_deref().ok_or_else(|| usage("--at: a fork has a time, in seconds"))?;
    let time = at.parse().ok().and_then(Time::from_seconds);
    let time = time.ok_or_else(|| {
        usage(&format!("--at: found `{}`; it is a number of seconds, at least 0", shortened(at)))
    })?;
    let change = options.change.as_deref().and_then(|change| change.split_once('='));
    let (key, value) =
        change.ok_or_else(|| usage("--change: it is KEY=VALUE, as policy=prefix-affinity or replicas=6"))?;
    Ok((time, Change::of(config, key, value).map_err(refused)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(args: &str) -> Result<String, String> {
        main(args.split_whitespace().map(OsString::from).collect()).map_err(|UsageError(message)| message)
    }

    #[test]
    fn both_futures_are_printed_and_wrong_input_is_named() {
        let table = said("--at 0.5 --change policy=prefix-affinity").expect("right");
        assert!(table.lines().count() == 11 && table.contains("| reuse "), "{table}");
        let json = said("--at 0.5 --change replicas=6 --json --policy least-tokens").expect("right");
        assert!(json.contains("\"fork\": {") && json.contains("\"at\": 0.5"), "{json}");
        for (args, part) in [
            ("--change replicas=6", "--at:"),
            ("--at x --change replicas=6", "number of seconds"),
            ("--at 1", "KEY=VALUE"),
            ("--at 1 --change rate=3", "middle of a run"),
            ("--at 1 --change replicas=0", "from 1 to 1024"),
            ("--at 1 --change replicas=2 --policy all", "one policy"),
            ("--at 1 --change replicas=2 --clock measured", "stop-watch"),
        ] {
            let message = said(args).expect_err(args);
            assert!(message.contains(part), "{args}: {message}");
        }
    }
}
