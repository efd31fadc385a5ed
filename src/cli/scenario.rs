//! `warmroute scenario`: what users of the routers reported, run.

use std::ffi::OsString;

use lexopt::prelude::*;
use serde::Serialize;

use super::inputs::refused;
use super::{UsageError, help};
use crate::compare::table;
use crate::params::{nearest, to_query};
use crate::scenario::{Ran, SCENARIOS, Scenario, scenario};

#[derive(Serialize)]
struct Json {
    scenario: &'static str,
    reported: &'static str,
    link: &'static str,
    figure: &'static str,
    variants: Vec<JsonVariant>,
}

#[derive(Serialize)]
struct JsonVariant {
    fix: bool,
    policy: &'static str,
    what: &'static str,
    settings: String,
    value: f64,
    expected: (f64, f64),
    summary: crate::sim::Summary,
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let (mut names, mut json) = (Vec::new(), false);
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Short('h') | Long("help") => return Ok(help::scenario()),
            Long("json") => json = true,
            Value(name) => names.push(name.string()?),
            other => return Err(other.unexpected().into()),
        }
    }
    if names.is_empty() || names == ["list"] {
        return Ok(SCENARIOS
            .iter()
            .map(|one| format!("{:<28} {}\n{:<28} {}\n", one.name, one.reported, "", one.link))
            .collect());
    }
    let chosen: Vec<&Scenario> = match &names[..] {
        [all] if all == "all" => SCENARIOS.iter().collect(),
        names => names.iter().map(|name| named(name)).collect::<Result<_, _>>()?,
    };
    let mut text = String::new();
    let mut objects = Vec::new();
    for scenario in chosen {
        let runs: Vec<Ran> = scenario
            .variants()
            .map(|variant| scenario.run(variant))
            .collect::<Result<_, _>>()
            .map_err(refused)?;
        if json {
            objects.push(object(scenario, &runs));
        } else {
            text += &said(scenario, &runs);
        }
    }
    if json {
        return Ok(serde_json::to_string_pretty(&objects)? + "\n");
    }
    Ok(text)
}

fn named(name: &str) -> Result<&'static Scenario, UsageError> {
    scenario(name).ok_or_else(|| {
        let near = nearest(name, SCENARIOS.iter().map(|one| one.name))
            .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        UsageError(format!("`{name}` is no scenario; `warmroute scenario list` lists them{near}"))
    })
}

fn said(scenario: &Scenario, runs: &[Ran]) -> String {
    let mut text = format!("{}\n{}\n{}\n", scenario.name, scenario.reported, scenario.link);
    for (at, ran) in runs.iter().enumerate() {
        let kind = if at == 0 { "the fault" } else { "the fix" };
        text += &format!(
            "{kind}: {}, {}: {} {:.1} %\n",
            ran.variant.policy.name(),
            ran.variant.what,
            scenario.figure.name(),
            100.0 * ran.value
        );
    }
    let sides = runs.iter().map(|ran| ran.side.clone()).collect();
    text + &table(&crate::compare::Comparison { sides, partings: Vec::new() }) + "\n"
}

fn object(scenario: &Scenario, runs: &[Ran]) -> Json {
    let variant = |(at, ran): (usize, &Ran)| JsonVariant {
        fix: at > 0,
        policy: ran.variant.policy.name(),
        what: ran.variant.what,
        settings: to_query(&ran.config),
        value: ran.value,
        expected: ran.variant.expect,
        summary: ran.side.summary.clone(),
    };
    Json {
        scenario: scenario.name,
        reported: scenario.reported,
        link: scenario.link,
        figure: scenario.figure.name(),
        variants: runs.iter().enumerate().map(variant).collect(),
    }
}
