//! Numbers and results as the page words them.

use crate::params::{Config, pairs, to_query};
use crate::policy::{PolicyKind, grouped};
use crate::report::columns;
use crate::sim::{Outcome, Record, Summary};
use crate::units::{PICOS_PER_SECOND, Span, Time};

/// Okabe and Ito's colours, which most colour-blind readers can tell apart, without black.
pub const TENANT_COLOURS: [&str; 7] =
    ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442"];

/// What the command line is told of a configuration: what differs from the defaults, but for some keys.
pub fn flags(config: &Config, but: &[&str]) -> String {
    let own = pairs(&to_query(config)).into_iter().filter(|(key, _)| !but.contains(&key.as_str()));
    own.map(|(key, value)| format!(" --{} {value}", key.replace('_', "-"))).collect()
}

/// Which of the tenant colours a tenant has; there are more tenants than colours.
pub fn colour_of(tenant: Option<u32>) -> usize {
    tenant.map_or(0, |t| t as usize % TENANT_COLOURS.len())
}

/// A tenant's name on the page: a letter, or beyond the alphabet a number.
pub fn tenant_name(tenant: Option<u32>) -> String {
    match tenant {
        None => "no tenant".into(),
        Some(t) => match u8::try_from(t).ok().filter(|t| *t < 26) {
            Some(t) => char::from(b'A' + t).to_string(),
            None => t.to_string(),
        },
    }
}

/// A moment or a length of time, in picoseconds, with as many digits as tell something.
pub fn time(picos: u64) -> String {
    seconds(picos as f64 / PICOS_PER_SECOND as f64)
}

/// Seconds with as many digits as tell something.
pub fn seconds(s: f64) -> String {
    match s {
        s if s >= 100.0 => format!("{s:.0} s"),
        s if s >= 10.0 => format!("{s:.1} s"),
        s if s >= 0.1 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.1} ms", s * 1e3),
        s if s >= 1e-6 => format!("{:.1} µs", s * 1e6),
        s if s > 0.0 => format!("{:.1} ns", s * 1e9),
        _ => "0 s".into(),
    }
}

/// A request's name for a screen reader.
pub fn request_label(request: u32, tenant: Option<u32>, prompt: u32) -> String {
    format!("request {request}, tenant {}, {} prompt tokens", tenant_name(tenant), grouped(prompt.into()))
}

/// What has become of a request so far, as short sentences.
pub fn life(record: &Record) -> Vec<String> {
    let mut told = vec![format!("Arrived at {}.", time(record.arrival))];
    let Outcome::Served {
        admitted, cached, first_token, finished, generated, preemptions, recomputed, ..
    } = record.outcome
    else {
        told.push("It was refused: it can never be served.".into());
        return told;
    };
    let Some(admitted) = admitted else {
        told.push("It waits to be admitted.".into());
        return told;
    };
    let since = |from: u64, to: u64| span(Time(to).since(Time(from)));
    told.push(format!("Waited {} for its step to begin.", since(record.arrival, admitted)));
    let computed = record.prompt - cached.min(record.prompt);
    told.push(match cached {
        0 => format!("Nothing was cached: all {} prompt tokens were computed.", grouped(computed.into())),
        _ => format!(
            "{} of {} prompt tokens were cached; {} were computed.",
            grouped(cached.into()),
            grouped(record.prompt.into()),
            grouped(computed.into())
        ),
    });
    if preemptions > 0 {
        told.push(format!(
            "Preempted {preemptions}×, which cost {} tokens computed again.",
            grouped(recomputed.into())
        ));
    }
    if let Some(first) = first_token {
        told.push(format!("First token after {}.", since(record.arrival, first)));
    }
    told.push(match (finished, record.itl()) {
        (Some(end), Some(itl)) => {
            format!("All {generated} tokens by {}, {} a token after the first.", time(end), seconds(itl))
        }
        (Some(end), None) => format!("Its only token was out at {}.", time(end)),
        (None, _) => format!("{generated} of {} tokens so far.", grouped(record.max_tokens)),
    });
    told
}

fn span(span: Span) -> String {
    seconds(span.seconds())
}

/// The result in a sentence or two, for whoever does not see the table.
pub fn verdict(results: &[(PolicyKind, &Summary)]) -> String {
    let mut parts = Vec::new();
    for title in ["reuse", "TTFT p50", "goodput/s"] {
        let Some(column) = columns().into_iter().find(|c| c.title == title) else { continue };
        let row: Vec<String> = results
            .iter()
            .map(|(policy, summary)| {
                let unit = if column.unit.is_empty() { String::new() } else { format!(" {}", column.unit) };
                format!("{} {}{unit}", policy.name(), column.text(summary))
            })
            .collect();
        parts.push(format!("{title}: {}", row.join(", ")));
    }
    let rejected: Vec<String> = results
        .iter()
        .filter(|(_, summary)| summary.rejected > 0)
        .map(|(policy, s)| format!("{} {} of {}", policy.name(), s.rejected, s.arrived))
        .collect();
    if !rejected.is_empty() {
        parts.push(format!("Requests rejected: {}", rejected.join(", ")));
    }
    format!("The race is over. {}.", parts.join(". "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Experiment;
    use crate::params::BackendKind;

    #[test]
    fn times_have_as_many_digits_as_tell_something() {
        let texts = [0.0, 2.5e-9, 4.3e-6, 0.0123, 0.25, 7.678, 42.06, 1234.5].map(seconds);
        assert_eq!(texts, ["0 s", "2.5 ns", "4.3 µs", "12.3 ms", "0.25 s", "7.68 s", "42.1 s", "1234 s"]);
    }

    #[test]
    fn tenants_are_letters_and_then_numbers() {
        assert_eq!([Some(0), Some(25), Some(26), None].map(tenant_name), ["A", "Z", "26", "no tenant"]);
        assert_eq!(colour_of(Some(8)), 1);
    }

    #[test]
    fn a_life_is_told_from_arrival_to_end() {
        let experiment = Experiment::new(Config { backend: BackendKind::Modelled, ..Config::default() });
        let recorder = experiment
            .run(PolicyKind::PrefixAffinity, experiment.modelled_clock())
            .expect("it fits the clock");
        let told = life(recorder.record(20).expect("24 requests ran"));
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told[0].starts_with("Arrived at ") && told[4].starts_with("All "), "{told:?}");
        let summary = experiment.summary(&recorder);
        let said = verdict(&[(PolicyKind::PrefixAffinity, &summary)]);
        assert!(said.contains(". reuse: prefix-affinity ") && said.contains(" %. TTFT p50: "), "{said}");
    }
}
