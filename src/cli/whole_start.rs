//! `warmroute cold-start --whole`: a cold start from the order to the first request, what shortens it, and what it
//! means for a fleet.

use std::ffi::OsString;

use lexopt::prelude::*;
use serde::Serialize;

use super::UsageError;
use super::inputs::{once_each, text};
use crate::coldstart::format::Format;
use crate::coldstart::measured::TABLE;
use crate::coldstart::outage::{Cell, Failures, Overload, Spike, scale_to_zero};
use crate::coldstart::phases::{PRESETS, Phases, preset};
use crate::coldstart::start::{ColdStart, Plan, Route};
use crate::coldstart::techniques::{Effect, Technique};
use crate::coldstart::{bytes_text, seconds_text};
use crate::cost::roofline::ServedModel;
use crate::params::nearest;
use crate::report::markdown;
use crate::units::Bytes;

/// The flags with what their value is, for help and near names.
pub(super) const FLAGS: [(&str, &str); 18] = [
    ("model", "The model, one of those that accelerators serve [default: llama-3-8b]."),
    ("format", "How its weights are stored, scales counted [default: bf16]."),
    ("route", "The way of the weights [default: nvme]."),
    ("phases", "What happens around them, as somebody measured it [default: 8b-cached]."),
    ("provisioning", "Seconds until there is a machine, in place of the preset's."),
    ("image", "Seconds until the image is there, likewise."),
    ("process", "Seconds of imports and devices, likewise."),
    ("compile", "Seconds of compilation, likewise."),
    ("graphs", "Seconds of graph capture, likewise."),
    ("warm-up", "Seconds of profiling and warm-up, likewise."),
    ("tp", "GPUs that share the weights [default: 1]."),
    ("starts", "Replicas that start at once from one store or disk [default: 1]."),
    ("packed", "Stored bytes ÷ unpacked ones, unpacked at 1 GB/s a replica [default: not packed]."),
    ("with", "Techniques, a comma list, applied in this order [default: none]."),
    ("slo-ttft", "The objective that scale to zero is held against, in seconds [default: 1]."),
    ("spike", "How many times as much comes at once [default: 3]."),
    ("lead", "Seconds by which a leading signal moves before the spike [default: 60]."),
    ("mtbf", "Hours between two failures of a replica [default: 1000]."),
];

struct Options {
    start: ColdStart,
    techniques: Vec<Technique>,
    objective: f64,
    spike: f64,
    lead: f64,
    mtbf: f64,
    json: bool,
}

fn refuse<T>(flag: &str, found: &str, right: &str) -> Result<T, UsageError> {
    Err(UsageError(format!("--{flag}: found `{found}`; it is {right}")))
}

/// A number in a range.
fn number(flag: &str, found: &str, (least, most): (f64, f64)) -> Result<f64, UsageError> {
    match found.parse::<f64>() {
        Ok(value) if (least..=most).contains(&value) => Ok(value),
        _ => refuse(flag, found, &format!("a number from {least} to {most}")),
    }
}

/// One of some names, or the nearest is named.
fn named<T: Copy>(flag: &str, found: &str, all: &[T], name: fn(T) -> &'static str) -> Result<T, UsageError> {
    let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
    match all.iter().find(|one| name(**one) == found) {
        Some(one) => Ok(*one),
        None => {
            let near = nearest(found, names.iter().copied())
                .map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            refuse(flag, found, &format!("{}{near}", names.join(" | ")))
        }
    }
}

fn parse(args: Vec<OsString>) -> Result<Options, UsageError> {
    let mut values: Vec<(String, String)> = Vec::new();
    let mut json = false;
    let mut parser = lexopt::Parser::from_args(args);
    while let Some(arg) = parser.next()? {
        match arg {
            Long("whole") => {}
            Long("json") => json = true,
            Long(flag) => {
                let flag = flag.to_owned();
                if !FLAGS.iter().any(|(own, _)| *own == flag) {
                    let own = FLAGS.iter().map(|(own, _)| *own).chain(["json", "whole"]);
                    let near = match flag.as_str() {
                        "parameters" => "; with --whole a model has all its sizes: --model".into(),
                        "precision" => "; with --whole scales count: --format".into(),
                        "bandwidth" => "; with --whole it is a route of stages: --route".into(),
                        _ => nearest(&flag, own)
                            .map_or_else(String::new, |near| format!("; did you mean --{near}?")),
                    };
                    return Err(UsageError(format!("--{flag} is no option of cold-start --whole{near}")));
                }
                once_each(&flag, &mut values, flag.clone(), text(&mut parser)?)?;
            }
            other => return Err(other.unexpected().into()),
        }
    }
    let value = |flag: &str| values.iter().find(|(own, _)| own == flag).map(|(_, value)| value.as_str());
    let real = |flag: &str, range, default: f64| value(flag).map_or(Ok(default), |v| number(flag, v, range));
    let whole = |flag: &str, most: f64| {
        let found = real(flag, (1.0, most), 1.0)?;
        if found.fract() == 0.0 {
            Ok(found as u32)
        } else {
            refuse(flag, &found.to_string(), "a whole number")
        }
    };
    let model = named("model", value("model").unwrap_or("llama-3-8b"), &ServedModel::ALL, ServedModel::name)?;
    let format = named("format", value("format").unwrap_or("bf16"), &Format::ALL, Format::name)?;
    let route = named("route", value("route").unwrap_or("nvme"), &Route::ALL, Route::name)?;
    let names = PRESETS.map(|preset| preset.name);
    let own = named("phases", value("phases").unwrap_or("8b-cached"), &names, |name| name)?;
    let base = preset(own).expect("it is one of them").phases;
    let day = (0.0, 86_400.0);
    let phases = Phases {
        provisioning: real("provisioning", day, base.provisioning)?,
        image: real("image", day, base.image)?,
        process: real("process", day, base.process)?,
        compile: real("compile", day, base.compile)?,
        graphs: real("graphs", day, base.graphs)?,
        warm_up: real("warm-up", day, base.warm_up)?,
    };
    let tp = whole("tp", 8.0)?;
    if !model.shape().divides(tp) {
        let fit =
            (1..=8).filter(|tp| model.shape().divides(*tp)).map(|tp| tp.to_string()).collect::<Vec<_>>();
        return refuse(
            "tp",
            &tp.to_string(),
            &format!("one of {}, by which {} can be shared", fit.join(", "), model.name()),
        );
    }
    let packed =
        value("packed").map(|v| number("packed", v, (0.05, 1.0))).transpose()?.map(|ratio| (ratio, 1e9));
    let start = ColdStart {
        tp,
        replicas: whole("starts", 1024.0)?,
        packed,
        ..ColdStart::new(model, format, route, phases)
    };
    let techniques = value("with")
        .map(|list| {
            list.split(',').map(|one| named("with", one.trim(), &Technique::ALL, Technique::name)).collect()
        })
        .transpose()?
        .unwrap_or_default();
    Ok(Options {
        start,
        techniques,
        objective: real("slo-ttft", (0.001, 86_400.0), 1.0)?,
        spike: real("spike", (1.0, 1000.0), 3.0)?,
        lead: real("lead", day, 60.0)?,
        mtbf: real("mtbf", (0.01, 1e7), 1000.0)? * 3600.0,
        json,
    })
}

/// One format beside the others.
#[derive(Serialize)]
struct Side {
    format: &'static str,
    bits: f64,
    bytes: f64,
    weights: f64,
    recovery: f64,
    availability: f64,
    short_seconds_a_year: f64,
}

/// Everything that is printed.
#[derive(Serialize)]
struct Output {
    formula: String,
    plan: Plan,
    techniques: Vec<Effect>,
    with_them: Option<Plan>,
    spike: Overload,
    spike_with_leading_signal: Overload,
    formats: Vec<Side>,
    scale_to_zero: Vec<Cell>,
    measured: Vec<Measured>,
}

#[derive(Serialize)]
struct Measured {
    #[serde(flatten)]
    row: crate::coldstart::measured::Row,
    predicted: f64,
    factor: f64,
}

/// Four replicas of which all are needed, and a failure that is noticed in thirty seconds: three missed probes ten
/// seconds apart, Kubernetes' defaults.
const FLEET: (u32, u32, f64) = (4, 4, 30.0);

/// Ten requests a second at 70 % of the capacity, and a scaler that has seen it after thirty seconds.
const SPIKE: (f64, f64, f64) = (10.0, 0.7, 30.0);

fn output(options: &Options) -> Output {
    let start = &options.start;
    let plan = start.plan();
    let better = options.techniques.iter().fold(start.clone(), |start, technique| technique.apply(&start));
    let (rate, utilisation, reaction) = SPIKE;
    let spike =
        Spike { rate, utilisation, factor: options.spike, reaction, cold_start: plan.total, lead: 0.0 };
    let (replicas, needed, detection) = FLEET;
    let side = |format: Format| {
        let plan = ColdStart { format, ..start.clone() }.plan();
        let fleet = Failures { replicas, needed, mtbf: options.mtbf, detection, cold_start: plan.total };
        Side {
            format: format.name(),
            bits: format.bits(),
            bytes: plan.bytes,
            weights: plan.weights,
            recovery: fleet.recovery(),
            availability: fleet.availability(),
            short_seconds_a_year: fleet.short_a_year(),
        }
    };
    Output {
        formula: start.formula(),
        techniques: Technique::ALL.iter().map(|technique| technique.effect(start)).collect(),
        with_them: (!options.techniques.is_empty()).then(|| better.plan()),
        spike: spike.overload(),
        spike_with_leading_signal: Spike { lead: options.lead, ..spike }.overload(),
        formats: [Format::Bf16, Format::Int8, Format::Awq].map(side).into(),
        scale_to_zero: scale_to_zero(start.phases, options.objective),
        measured: TABLE
            .iter()
            .map(|&row| Measured { row, predicted: row.predicted(), factor: row.factor() })
            .collect(),
        plan,
    }
}

/// Runs the command and returns what goes to standard output.
pub fn main(args: Vec<OsString>) -> Result<String, UsageError> {
    let options = parse(args)?;
    let output = output(&options);
    if options.json {
        return Ok(serde_json::to_string_pretty(&output).expect("plain data") + "\n");
    }
    Ok(table(&options, &output))
}

fn bars(plan: &Plan) -> String {
    const WIDTH: f64 = 60.0;
    let scale = |seconds: f64| (seconds / plan.total.max(1e-9) * WIDTH).round() as usize;
    let line = |bar: &crate::coldstart::start::Bar| {
        let (from, until) = (scale(bar.from), scale(bar.until));
        format!(
            "  {:<22}{}{} {}\n",
            bar.name,
            " ".repeat(from),
            "█".repeat((until - from).max(1)),
            seconds_text(bar.until - bar.from)
        )
    };
    plan.bars.iter().map(line).collect()
}

fn table(options: &Options, output: &Output) -> String {
    let plan = &output.plan;
    let mut out = format!("{}\n\n{}", output.formula, bars(plan));
    out += &format!(
        "  from order to service {}; floor of the weights {}, one stage after the other {}\n",
        seconds_text(plan.total),
        seconds_text(plan.floor),
        seconds_text(plan.one_by_one)
    );
    let head = |titles: &[&str]| titles.iter().map(|title| (*title).to_owned()).collect::<Vec<_>>();
    let mut rows = vec![head(&["technique", "total", "saves", "costs"])];
    rows.extend(output.techniques.iter().map(|effect| {
        vec![
            effect.name.to_owned(),
            seconds_text(effect.total),
            seconds_text(effect.saves),
            effect.costs.to_owned(),
        ]
    }));
    out += &format!("\n{}", markdown(&rows));
    if let Some(better) = &output.with_them {
        let names: Vec<&str> = options.techniques.iter().map(|technique| technique.name()).collect();
        out += &format!("\nWith {}: {}\n\n{}", names.join(", "), seconds_text(better.total), bars(better));
    }
    out += &format!(
        "\nA spike of × {} on a fleet at {:.0} %: {:.0} s of overload, {:.0} requests left over; with a signal that moves {} s before, {:.0} s and {:.0}.\n",
        options.spike,
        100.0 * SPIKE.1,
        output.spike.seconds,
        output.spike.requests,
        options.lead,
        output.spike_with_leading_signal.seconds,
        output.spike_with_leading_signal.requests
    );
    let mut rows = vec![head(&[
        "format",
        "bits a weight",
        "bytes",
        "weights",
        "recovery",
        "availability",
        "short a year",
    ])];
    rows.extend(output.formats.iter().map(|side| {
        vec![
            side.format.to_owned(),
            format!("{:.4}", side.bits),
            bytes_text(Bytes(side.bytes)),
            seconds_text(side.weights),
            seconds_text(side.recovery),
            format!("{:.5} %", 100.0 * side.availability),
            format!("{:.0} s", side.short_seconds_a_year),
        ]
    }));
    let (replicas, needed, detection) = FLEET;
    out += &format!(
        "\nLosing one of {replicas} replicas of which {needed} are needed, noticed after {detection} s, each failing once in {} hours:\n\n{}",
        options.mtbf / 3600.0,
        markdown(&rows)
    );
    let fits = output.scale_to_zero.iter().filter(|cell| cell.fits).count();
    let floors = output.scale_to_zero.iter().filter(|cell| cell.floor_fits).count();
    out += &format!(
        "\nScale to zero against a TTFT of {} s: of {} combinations of model, format and route {fits} fit, and {floors} would if only the weights had to come.\n",
        options.objective,
        output.scale_to_zero.len()
    );
    let mut rows = vec![head(&["published", "measured", "floor", "factor", "why"])];
    rows.extend(output.measured.iter().map(|one| {
        vec![
            one.row.what.to_owned(),
            seconds_text(one.row.measured),
            seconds_text(one.predicted),
            format!("{:.1}", one.factor),
            one.row.why.to_owned(),
        ]
    }));
    out + &format!("\n{}", markdown(&rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(args: &[&str]) -> Result<String, String> {
        main(args.iter().map(OsString::from).collect()).map_err(|UsageError(message)| message)
    }

    #[test]
    fn it_prints_bars_techniques_and_what_follows() {
        let out = run(&["--whole", "--with", "snapshot,quantise"]).expect("it is right");
        for part in [
            "compile",
            "█",
            "peer-to-peer",
            "With snapshot, quantise",
            "A spike of × 3",
            "awq",
            "8B, streamer, S3",
        ] {
            assert!(out.contains(part), "{part}: {out}");
        }
        let json =
            run(&["--whole", "--json", "--phases", "none", "--model", "tinygpt"]).expect("it is right");
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        assert_eq!(
            (json["plan"]["bars"][0]["name"].as_str(), json["with_them"].is_null()),
            (Some("disk"), true)
        );
    }

    #[test]
    fn wrong_input_says_what_would_be_right() {
        for (args, part) in [
            (["--format", "gpqt"], "did you mean `gptq`"),
            (["--route", "floppy"], "nvme"),
            (["--image", "-1"], "from 0 to 86400"),
            (["--tp", "3"], "1, 2, 4, 8"),
            (["--tp", "1.5"], "whole number"),
            (["--packed", "0"], "from 0.05 to 1"),
            (["--with", "magic"], "warm-pool"),
            (["--mtfb", "1"], "did you mean --mtbf"),
            (["--precision", "int4"], "--format"),
        ] {
            let message = run(&args).expect_err("wrong input");
            assert!(message.starts_with(args[0]) && message.contains(part), "{message}");
        }
    }
}
