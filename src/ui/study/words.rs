//! What a sweep and a scan came to, in words, and the commands that do the same natively.

use super::settings::{modelled_settings, names};
use super::{Phase, Scan, Sweep};
use crate::fleet::Devices;
use crate::params::{Config, param};
use crate::policy::PolicyKind;
use crate::report::{Column, columns};
use crate::sweep::{Axis, Cell, DEFAULT_CAP, Plan, Results, Seeds, Stat, Worth};

/// The fraction of good requests that a policy keeps up to its knee.
pub const KNEE: f64 = 0.95;

/// A value of a parameter as one says it.
pub fn value_text(key: &str, value: &str) -> String {
    match param(key) {
        Some(param) if param.unit.is_empty() => format!("{} {value}", param.label.to_ascii_lowercase()),
        Some(param) => format!("{value} {}", param.unit),
        None => value.to_owned(),
    }
}

/// The cells of a policy along the first parameter, at a value of the second.
pub fn along(results: &Results, second: usize, policy: PolicyKind) -> Vec<&Cell> {
    let step = results.plan.over.get(1).map_or(1, |axis| axis.values.len()) as u64;
    let own = |cell: &&Cell| cell.policy == policy && cell.point % step == second as u64;
    results.cells.iter().filter(own).collect()
}

/// An axis's values, where they are numbers in rising order.
pub fn rising(axis: &Axis) -> Option<Vec<f64>> {
    let numbers = axis.values.iter().filter_map(|v| v.parse().ok()).filter(|v: &f64| v.is_finite());
    let numbers: Vec<f64> = numbers.collect();
    (numbers.len() == axis.values.len() && numbers.is_sorted_by(|a, b| a < b)).then_some(numbers)
}

/// How far a policy keeps [`KNEE`] of all requests within their objectives, at a value of the second
/// parameter: what follows its name. `None` while nothing is done.
pub fn knee(results: &Results, second: usize, policy: PolicyKind) -> Option<String> {
    let axis = results.plan.over.first()?;
    let figure = columns().iter().position(|c| c.key == "goodput_fraction")?;
    let known: Vec<(&str, f64)> = along(results, second, policy)
        .iter()
        .zip(&axis.values)
        .filter_map(|(cell, value)| Some((value.as_str(), cell.stats[figure].mean?)))
        .collect();
    let say = |value: &str| value_text(&axis.key, value);
    let percent = |fraction: f64| format!("{:.1} %", 100.0 * fraction);
    let keeps: Vec<&str> = known.iter().filter(|(_, f)| *f >= KNEE).map(|(value, _)| *value).collect();
    let (first, last) = (known.first()?, known.last()?);
    let best = known.iter().fold(first, |best, one| if one.1 > best.1 { one } else { best });
    let after = |kept: usize| known.get(kept).map(|(v, f)| format!(" (at {v}: {})", percent(*f)));
    let (Some(low), Some(high)) = (keeps.first(), keeps.last()) else {
        return Some(format!("nowhere here; at best {}, at {}", percent(best.1), say(best.0)));
    };
    if keeps.len() == known.len() {
        return Some(if known.len() == 1 || rising(axis).is_none() {
            "at every value here".into()
        } else {
            format!("at every value here, up to {}", say(last.0))
        });
    }
    let place = |value: &str| known.iter().position(|(own, _)| *own == value);
    let together = place(high).zip(place(low)).is_some_and(|(high, low)| high + 1 - low == keeps.len());
    let together = together && rising(axis).is_some();
    Some(if together && *low == first.0 {
        format!("up to {}{}", say(high), after(keeps.len()).unwrap_or_default())
    } else if together && *high == last.0 {
        format!("from {} on", say(low))
    } else {
        format!("at {}", say(&keeps.join(", ")))
    })
}

/// The knees of all policies, or what else there is to say, once a sweep is over: for whoever does not
/// see the plot.
pub fn verdict(sweep: &Sweep) -> String {
    let (done, of) = sweep.runs();
    match &sweep.phase {
        Phase::Running => String::new(),
        Phase::Cancelled => format!("The sweep was ended; {done} of {of} runs are shown."),
        Phase::Failed(why) => format!("The sweep stopped: {why}. {done} of {of} runs are shown."),
        Phase::Done => {
            let results = sweep.results();
            let mut text = format!("The sweep is over, {of} runs. 95 % of requests are good: ");
            let second = results.plan.over.get(1);
            for at in 0..second.map_or(1, |axis| axis.values.len()) {
                if let Some(axis) = second {
                    text += &format!("with {}: ", value_text(&axis.key, &axis.values[at]));
                }
                let knees =
                    results.plan.policies.iter().filter_map(|&policy| {
                        Some(format!("{} {}", policy.name(), knee(&results, at, policy)?))
                    });
                text += &(knees.collect::<Vec<_>>().join("; ") + ". ");
            }
            text.trim_end().to_owned()
        }
    }
}

/// A stat as the table has it: mean, and the 10th and the 90th percentile.
pub fn stat(column: &Column, stat: &Stat) -> [String; 3] {
    [stat.mean, stat.p10, stat.p90].map(|v| v.map_or_else(|| "–".into(), column.format))
}

fn flags<'a>(settings: impl Iterator<Item = &'a (String, String)>) -> String {
    let own = settings.filter(|(key, value)| (key.as_str(), value.as_str()) != ("backend", "modelled"));
    own.map(|(key, value)| format!(" --{} {value}", key.replace('_', "-"))).collect()
}

/// The values of an axis as `--over` takes them, as a range where they are one.
fn over(axis: &Axis) -> String {
    let list = format!("{}={}", axis.key, axis.values.join(","));
    let [first, second, .., last] = &axis.values[..] else { return list };
    let step = second.parse::<f64>().ok().zip(first.parse::<f64>().ok()).map(|(b, a)| b - a);
    let range = step.map(|step| format!("{}={first}:{last}:{step}", axis.key));
    range.filter(|text| Axis::parse(text).as_ref() == Ok(axis)).unwrap_or(list)
}

/// The command that runs a plan.
pub fn sweep_command(plan: &Plan) -> String {
    let mut text = "warmroute sweep".to_owned();
    for axis in &plan.over {
        text += &format!(" --over {}", over(axis));
    }
    text += &format!(" --seeds {}..{}", plan.seeds.from, plan.seeds.to);
    if plan.policies != PolicyKind::RACE {
        text += &format!(" --policy {}", names(&plan.policies));
    }
    text + &flags(plan.settings.iter())
}

/// The command that does a scan.
pub fn scan_command(config: &Config, seeds: Seeds, cap: u32) -> String {
    let cap = if cap == DEFAULT_CAP { String::new() } else { format!(" --cap {cap}") };
    let settings = modelled_settings(config);
    format!("warmroute equivalents --seeds {}..{}{cap}{}", seeds.from, seeds.to, flags(settings.iter()))
}

/// What a scan came to, in sentences; none before the first seed is done.
pub fn scanned(scan: &Scan) -> Vec<String> {
    let Some(worth) = Worth::of(&scan.found) else { return Vec::new() };
    let (of, by) = (worth.of.name(), worth.by.name());
    let mean = |values: Vec<f64>| Stat::of(values).mean;
    let percent = |f: Option<f64>| f.map_or_else(|| "–".into(), |f| format!("{:.1} %", 100.0 * f));
    let target = mean(scan.found.iter().filter_map(|one| one.target).collect());
    let reached = scan.found.iter().filter(|one| one.equivalents.is_some());
    let last = mean(reached.filter_map(|one| one.fractions.last().copied().flatten()).collect());
    let mut told = vec![format!("{}.", worth.sentence())];
    told.push(format!(
        "Good requests, mean: {} under {of}{}.",
        percent(target),
        last.map_or_else(String::new, |last| format!(" against {} under the {by} ones", percent(Some(last))))
    ));
    if worth.above > 0 {
        told.push(format!(
            "For {} of {} seeds no number of {by} replicas up to the cap of {} was enough.",
            worth.above, worth.seeds, worth.cap
        ));
    }
    if scan.found.iter().all(|one| one.target == Some(0.0)) {
        told.push(
            "No request was good there, which any number of replicas reaches: at this load, with these objectives, there is nothing to compare."
                .into(),
        );
    }
    if scan.config.devices == Devices::Shared {
        told.push("All replicas share one processor: more of them add caches to warm and batches that wait for each other, and no speed. Give each its own (devices: separate) to see what routing is worth.".into());
    }
    told
}
