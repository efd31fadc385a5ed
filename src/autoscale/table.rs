//! The table of an autoscaled run's own parameters, of the same kind as an experiment's.

use super::life::Victim;
use super::scaler::{Pending, ScalerKind};
use super::settings::Settings;
use crate::coldstart::Bandwidth;
use crate::params::{Field, Group, Kind, Param};
use crate::trace::generate::LoadShape as Shape;

const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn real(min: f64, max: f64) -> Kind {
    Kind::Real { min, max, infinite: false }
}

macro_rules! param {
    ($key:ident, $label:literal, $unit:literal, $kind:expr, $field:ident, $help:literal) => {
        Param {
            key: stringify!($key),
            label: $label,
            unit: $unit,
            help: $help,
            group: Group::Autoscale,
            kind: $kind,
            optional: matches!(
                Field::<Settings>::$field(|s| &mut s.$key),
                Field::OptU32(_) | Field::OptF64(_)
            ),
            field: Field::$field(|s| &mut s.$key),
        }
    };
}

macro_rules! choice {
    ($key:ident, $label:literal, $help:literal, [$($value:expr => $name:literal, $means:literal;)+]) => {
        Param {
            key: stringify!($key),
            label: $label,
            unit: "",
            help: $help,
            group: Group::Autoscale,
            kind: Kind::Choice(&[$(($name, $means)),+]),
            optional: false,
            field: Field::Choice(
                |s| [$($value),+].iter().position(|v| *v == s.$key).expect("every value is listed"),
                |s, i| s.$key = [$($value),+][i],
            ),
        }
    };
}

/// Every parameter, in the order of controls and help.
pub static PARAMS: [Param<Settings>; 34] = [
    Param {
        key: "scaler",
        label: "Scalers",
        unit: "",
        help: "Who decides how many replicas there are; each runs over the same trace.",
        group: Group::Autoscale,
        kind: Kind::Quantity {
            names: &[
                ("fixed", "as many as at first, whatever comes"),
                ("hpa", "Kubernetes' HPA on compute utilisation, target 0.8"),
                ("keda", "KEDA on waiting requests, 5 a replica"),
                ("kpa", "Knative's KPA on requests in flight, 70 a replica, with a panic window"),
                ("apa", "AIBrix's APA on KV utilisation, target 0.5"),
                ("wva", "llm-d's WVA on spare KV and spare queue, one at a time"),
                ("dynamo", "Dynamo's planner on load thresholds, one at a time"),
                ("queue-derivative", "how fast the queue grows"),
                ("predictive", "the arrivals of a cold start from now, by the trend"),
                ("oracle", "knows the trace: a bound"),
            ],
            number: "a comma list of them, or all",
        },
        optional: false,
        field: Field::Quantity {
            get: |s| s.scaler.iter().map(|k| k.name()).collect::<Vec<_>>().join(","),
            set: |s, text| scalers(text).map(|found| s.scaler = found).is_some(),
            number: |s| s.scaler.len() as f64,
        },
    },
    param!(
        min,
        "Fewest replicas",
        "replicas",
        integer(0, 256),
        U32,
        "The fewest replicas; 0: an idle fleet may go to none, with scalers that do."
    ),
    param!(max, "Most replicas", "replicas", integer(1, 256), U32, "The most replicas."),
    param!(
        scrape,
        "Scrape every",
        "s",
        real(0.1, 600.0),
        F64,
        "The time between two samples of the signals."
    ),
    param!(
        delay,
        "Scrape delay",
        "s",
        real(0.0, 600.0),
        F64,
        "How old a sample is, at least, when a scaler sees it."
    ),
    param!(
        target,
        "Target",
        "the scaler's unit",
        real(0.001, 100_000.0),
        OptF64,
        "What a replica should have, for the scalers that aim at something; none: each its own default."
    ),
    param!(
        tolerance,
        "Tolerance",
        "fraction",
        real(0.0, 1.0),
        OptF64,
        "How far from the target is near enough, for the scalers that have such a thing."
    ),
    param!(
        interval,
        "Decide every",
        "s",
        real(0.1, 3600.0),
        OptF64,
        "The time between two decisions; none: each scaler's own."
    ),
    param!(
        down_window,
        "Shrink after",
        "s",
        real(0.0, 7200.0),
        OptF64,
        "How long fewer must have been enough before it shrinks (a stabilisation window, or a cooldown)."
    ),
    choice!(pending, "Replicas that start", "What scalers make of replicas that have been asked for and do not serve yet.", [
        Pending::Counted => "counted", "they count as idle, or are waited for";
        Pending::Ignored => "ignored", "they are forgotten, and asked for again: it compounds";
    ]),
    choice!(shape, "Load", "How the arrival rate goes over time; it begins at rate.", [
        Shape::Constant => "constant", "it stays";
        Shape::Step => "step", "up at once, and down at once after it has held";
        Shape::Ramp => "ramp", "up in a straight line, held, down in one";
        Shape::Diurnal => "diurnal", "one day, from its night to its noon and back";
        Shape::Flash => "flash", "up in a straight line, held, then dying down exponentially";
    ]),
    param!(factor, "Rise", "× rate", real(0.01, 1000.0), F64, "The highest rate ÷ the first."),
    param!(shape_at, "Rise begins", "s", real(0.0, 1e6), F64, "When the rate begins to rise."),
    param!(
        rise,
        "Rise takes",
        "s",
        real(0.0, 1e6),
        F64,
        "How long a ramp or a flash crowd rises, and a ramp falls."
    ),
    param!(
        hold,
        "Holds",
        "s",
        real(0.0, 1e6),
        F64,
        "How long it stays up; a flash crowd then dies down with this as its time constant."
    ),
    param!(duration, "Duration", "s", real(1.0, 1e6), F64, "How long requests arrive; a diurnal load's day."),
    param!(provisioning, "Provisioning", "s", real(0.0, 86_400.0), F64, "Until there is a machine."),
    param!(
        image,
        "Image",
        "s",
        real(0.0, 86_400.0),
        F64,
        "Until the container's image is there and started."
    ),
    param!(process, "Process", "s", real(0.0, 86_400.0), F64, "Imports, devices, memory."),
    param!(
        weights,
        "Weights",
        "s",
        real(0.0, 86_400.0),
        OptF64,
        "Until the weights are there; none: the model's bytes ÷ bandwidth."
    ),
    Param {
        key: "bandwidth",
        label: "Bandwidth",
        unit: "bytes/s",
        help: "How fast the weights come, by where they come from.",
        group: Group::Autoscale,
        kind: crate::coldstart::BANDWIDTHS,
        optional: false,
        field: Field::Quantity {
            get: |s| s.bandwidth.text(),
            set: |s, text| Bandwidth::parse(text).map(|b| s.bandwidth = b).is_some(),
            number: |s| s.bandwidth.rate().0,
        },
    },
    param!(compile, "Compile, graphs", "s", real(0.0, 86_400.0), F64, "Compilation and graph capture."),
    param!(warm_up, "Warm-up", "s", real(0.0, 86_400.0), F64, "Requests of its own before it serves."),
    param!(
        warm_pool,
        "Warm pool",
        "replicas",
        integer(0, 64),
        U32,
        "Replicas that stand ready besides, and are paid for."
    ),
    param!(wake, "Wake", "s", real(0.0, 3600.0), F64, "How long one of those takes to serve."),
    param!(
        grace,
        "Grace",
        "s",
        real(0.0, 86_400.0),
        F64,
        "How long a replica that is removed may work on what it has; what is left then begins anew elsewhere."
    ),
    choice!(victim, "Victim", "Whom to remove when there are too many.", [
        Victim::Youngest => "youngest", "the one that was ordered last";
        Victim::Emptiest => "emptiest", "the one with the fewest outstanding tokens";
        Victim::Coldest => "coldest", "the one with the fewest tokens in its cache";
    ]),
    param!(
        mtbf,
        "Mean time to failure",
        "s",
        real(1.0, 1e8),
        OptF64,
        "Mean time between failures of a replica that serves; none: they do not fail."
    ),
    param!(fail_at, "Fails at", "s", real(0.0, 1e6), OptF64, "When the oldest replica fails; none: never."),
    param!(
        preempt_at,
        "Taken away at",
        "s",
        real(0.0, 1e6),
        OptF64,
        "When the oldest replica's machine is called back, with notice; none: never."
    ),
    param!(
        notice,
        "Notice",
        "s",
        real(0.0, 86_400.0),
        F64,
        "How long a machine that is taken away may go on."
    ),
    param!(
        replace_at,
        "Replaced at",
        "s",
        real(0.0, 1e6),
        OptF64,
        "When every replica is replaced, one after the other; none: never."
    ),
    choice!(start_before_drain, "Start before drain", "What a planned replacement does first.", [
        false => "off", "it drains the old one, and the fleet is one short for a cold start";
        true => "on", "it starts the new one, and pays for both meanwhile";
    ]),
    param!(
        price,
        "Price",
        "an hour",
        real(0.0, 1e6),
        F64,
        "What a replica costs an hour, from order to end."
    ),
];

/// Reads a list of scalers.
fn scalers(text: &str) -> Option<Vec<ScalerKind>> {
    if text == "all" {
        return Some(ScalerKind::ALL.to_vec());
    }
    let mut found = Vec::new();
    for name in text.split(',').map(str::trim) {
        let kind = ScalerKind::from_name(name)?;
        if found.contains(&kind) {
            return None;
        }
        found.push(kind);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params;

    #[test]
    fn every_setting_reads_back_what_it_writes_and_is_no_parameter_of_the_experiment() {
        for (i, param) in PARAMS.iter().enumerate() {
            let mut copy = Settings::default();
            param.set(&mut copy, &param.get(&Settings::default())).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(copy, Settings::default(), "{}", param.key);
            for (name, means) in param.choices() {
                param.set(&mut copy, name).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!((param.get(&copy).as_str(), means.is_empty()), (*name, false));
            }
            assert!(params::param(param.key).is_none(), "{}", param.key);
            assert!(PARAMS[i + 1..].iter().all(|other| other.key != param.key), "{}", param.key);
        }
    }

    #[test]
    fn what_the_table_says_of_each_scaler_is_so() {
        for (kind, (name, means)) in ScalerKind::ALL.iter().zip(PARAMS[0].choices()) {
            assert_eq!((kind.name(), kind.summary()), (*name, *means));
        }
        assert_eq!(scalers("hpa, keda"), Some(vec![ScalerKind::Hpa, ScalerKind::Keda]));
        assert_eq!((scalers("hpa,hpa"), scalers("vpa"), scalers("")), (None, None, None));
        assert_eq!(scalers("all").map(|all| all.len()), Some(10));
    }

    #[test]
    fn zero_and_less_are_refused_where_they_mean_nothing() {
        for (key, bad) in [
            ("scrape", "0"),
            ("duration", "-1"),
            ("max", "0"),
            ("factor", "0"),
            ("bandwidth", "0"),
            ("target", "0"),
            ("grace", "nan"),
        ] {
            let param = PARAMS.iter().find(|p| p.key == key).expect("it exists");
            let problem = param.set(&mut Settings::default(), bad).expect_err(bad);
            assert!(problem.problem.contains(&format!("found `{bad}`")), "{problem}");
        }
    }
}
