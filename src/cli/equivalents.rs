//! `warmroute equivalents`: how many round-robin replicas these are worth.

use std::ffi::OsString;
use std::sync::Arc;

use lexopt::prelude::*;
use rayon::prelude::*;

use super::inputs::{Inputs, once, refused, text, whole};
use super::{UsageError, help};
use crate::fleet::Devices;
use crate::params::{BackendKind, ClockKind, Config, nearest};
use crate::policy::PolicyKind;
use crate::report::markdown;
use crate::sweep::{DEFAULT_CAP, Equivalents, Seeds, Worth, equivalents, most_replicas};

#[derive(Default)]
struct Options {
    inputs: Inputs,
    of: Option<PolicyKind>,
    by: Option<PolicyKind>,
    cap: Option<u64>,
    seeds: Option<String>,
    json: bool,
    help: bool,
}

const OWN_FLAGS: [&str; 6] = ["of", "by", "cap", "seeds", "json", "help"];

fn policy(flag: &str, name: &str) -> Result<PolicyKind, UsageError> {
    PolicyKind::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = PolicyKind::every().map(PolicyKind::name).collect();
        let near = nearest(name, names.iter().copied())
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        UsageError(format!("--{flag}: found `{name}`; it is {}{near}", names.join(" | ")))
    })
}

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut options = Options::default();
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => options.help = true,
            Long("json") => options.json = true,
            Long("of") => once("of", &mut options.of, policy("of", &text(&mut parser)?)?)?,
            Long("by") => once("by", &mut options.by, policy("by", &text(&mut parser)?)?)?,
            Long("cap") => {
                once(
                    "cap",
                    &mut options.cap,
                    whole("cap", &mut parser, 1..=most_replicas().into(), "a whole number")?,
                )?;
            }
            Long("seeds") => once("seeds", &mut options.seeds, text(&mut parser)?)?,
            Long("policy") => {
                return Err(UsageError(
                    "--policy: two policies are compared here; name them with --of and --by".into(),
                ));
            }
            Long(flag) => {
                let flag = flag.to_owned();
                options.inputs.take_or_refuse(&flag, &mut parser, "equivalents", &OWN_FLAGS)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Ok(options)
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let mut options = parse(args)?;
    if options.help {
        return Ok(help::equivalents());
    }
    options.inputs.default_to("backend", "modelled");
    let config = options.inputs.config()?;
    if config.clock != ClockKind::Modelled {
        return Err(UsageError("--clock: runs side by side would measure each other; it is modelled".into()));
    }
    let seeds = Seeds::parse(options.seeds.as_deref().unwrap_or("1"), config.seed).map_err(refused)?;
    if config.backend != BackendKind::Modelled {
        return Err(UsageError(
            "--backend: replicas are only priced here, not computed; it is modelled".into(),
        ));
    }
    let loaded = options.inputs.read_trace(&config)?;
    let notes = loaded.as_ref().map_or_else(Vec::new, |loaded| loaded.notes.clone());
    let trace = loaded.map(|loaded| Arc::new(loaded.log.trace));
    if trace.is_some() && seeds.count() > 1 {
        return Err(UsageError("--seeds: a trace file is the same for every seed; it goes with one".into()));
    }
    if seeds.count() > 10_000 {
        return Err(UsageError(format!("--seeds: found {} seeds; it takes at most 10000", seeds.count())));
    }
    let of = options.of.unwrap_or(PolicyKind::PrefixAffinity);
    let by = options.by.unwrap_or(PolicyKind::RoundRobin);
    let cap = options.cap.map_or(DEFAULT_CAP, |cap| cap as u32);
    let found: Vec<_> = (seeds.from..seeds.to)
        .into_par_iter()
        .map(|seed| equivalents(&Config { seed, ..config.clone() }, trace.as_ref(), of, by, cap))
        .collect();
    let found = found.into_iter().collect::<Result<Vec<_>, _>>().map_err(refused)?;
    options.inputs.say(&config, &notes);
    if options.json {
        let text = serde_json::to_string_pretty(&found).expect("plain data");
        return Ok(text + "\n");
    }
    Ok(words(&config, &found))
}

fn words(config: &Config, found: &[Equivalents]) -> String {
    let percent = |f: Option<f64>| f.map_or_else(|| "–".into(), |f| format!("{:.1} %", 100.0 * f));
    let Some(worth) = Worth::of(found) else { return String::new() };
    let (of, by) = (worth.of.name(), worth.by.name());
    let mut rows = vec![
        [
            "seed",
            &format!("good: {} × {of}", worth.replicas),
            &format!("{by} replicas"),
            &format!("good: {by}"),
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for one in found {
        let last = one.fractions.last().copied().flatten();
        rows.push(vec![
            one.seed.to_string(),
            percent(one.target),
            worth.count(one.equivalents),
            percent(last),
        ]);
    }
    let mut text = markdown(&rows);
    if worth.above > 0 {
        text += &format!(
            "{} of {}: no number of {by} replicas up to the cap of {} (--cap) was enough\n",
            worth.above, worth.seeds, worth.cap
        );
    }
    if worth.seeds > 1 {
        text += &format!("{}\n", worth.sentence());
    }
    if found.iter().all(|one| one.target == Some(0.0)) {
        text += &format!(
            "no request was good under {of}, which any number of replicas reaches: with these objectives (--slo-ttft, --slo-itl) at this load there is nothing to compare\n"
        );
    }
    if config.devices == Devices::Shared {
        text += "all replicas share one processor (--devices shared): more of them add caches to warm and batches that wait for each other, and no speed\n";
    }
    text
}
