//! The knobs of the routers people run as parameters like all others: read, checked and written alike.

use std::sync::LazyLock;

use super::{Config, Field, Group, Kind, PARAMS, Param, Problem, SHAPE_KEYS, nearest, shortened};
use crate::policy::{KNOBS, PolicyKind, Range};

static KNOB_PARAMS: LazyLock<Vec<Param>> = LazyLock::new(|| {
    let param = |(index, knob): (usize, &crate::policy::Knob)| Param {
        key: knob.key,
        label: knob.label,
        unit: knob.unit,
        help: knob.help,
        group: Group::Policy,
        kind: match knob.range {
            Range::Whole(min, max) => Kind::Integer { min, max },
            Range::Real(min, max) => Kind::Real { min, max, infinite: false },
            Range::RealOrInf(min, max) => Kind::Real { min, max, infinite: true },
            Range::Choice(names) => Kind::Choice(names),
        },
        optional: false,
        field: Field::Tuned {
            index,
            get: |config: &Config, index| config.tuning.at(index),
            set: |config, index, value| config.tuning.set_at(index, value),
        },
    };
    KNOBS.iter().enumerate().map(param).collect()
});

/// Every knob of every router, in the order of [`KNOBS`].
pub fn knob_params() -> &'static [Param] {
    &KNOB_PARAMS
}

/// The knobs of a policy, with where each comes from.
pub fn knobs_of(policy: PolicyKind) -> impl Iterator<Item = (&'static Param, &'static str)> {
    knob_params()
        .iter()
        .zip(&KNOBS)
        .filter(move |(_, knob)| knob.policy == policy)
        .map(|(p, k)| (p, k.source))
}

/// Every parameter, the knobs last.
pub fn all_params() -> impl Iterator<Item = &'static Param> {
    PARAMS.iter().chain(knob_params())
}

/// What is said of a key that does not exist: the nearest, or the knobs of the policy that it names.
pub fn suggestion(key: &str) -> String {
    let key = key.replace('-', "_");
    let near = nearest(&key, all_params().map(|param| param.key));
    if let Some(near) = near {
        return format!("; did you mean `{near}`?");
    }
    let Some((policy, _)) = key.split_once('.') else { return String::new() };
    match PolicyKind::from_name(&policy.replace('_', "-")) {
        Some(policy) => {
            let own: Vec<&str> = knobs_of(policy).map(|(param, _)| param.key).collect();
            match own.is_empty() {
                true => format!("; {} has none of its own", policy.name()),
                false => format!("; {} has {}", policy.name(), own.join(", ")),
            }
        }
        None => {
            let names = PolicyKind::every().map(PolicyKind::name);
            nearest(&policy.replace('_', "-"), names)
                .map_or_else(String::new, |near| format!("; the nearest policy is `{near}`"))
        }
    }
}

/// Sets any parameter by its key: the knobs and [`SHAPE_KEYS`] too.
pub fn set(config: &mut Config, key: &str, value: &str) -> Result<(), Problem> {
    match super::param(key) {
        Some(param) => param.set(config, value),
        None if SHAPE_KEYS.contains(&key) => config.set_shape(key, value),
        None => {
            let key = shortened(key);
            let problem = format!("no such parameter{}", suggestion(&key));
            Err(Problem { key, problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{from_query, to_query};

    #[test]
    fn every_knob_reads_back_what_it_writes_and_keeps_to_its_range() {
        for (param, knob) in knob_params().iter().zip(&KNOBS) {
            let mut config = Config::default();
            let text = param.get(&config);
            param.set(&mut config, &text).unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(config, Config::default(), "{}", param.key);
            let (low, high, beyond) = match knob.range {
                Range::Whole(low, high) => (low.to_string(), high.to_string(), (high + 1).to_string()),
                Range::Real(low, high) | Range::RealOrInf(low, high) => {
                    (low.to_string(), high.to_string(), (high * 1.01).to_string())
                }
                Range::Choice(names) => {
                    (names[0].0.into(), names[names.len() - 1].0.into(), "neither".to_owned())
                }
            };
            for good in [low, high] {
                param.set(&mut config, &good).unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(param.get(&config), good, "{}", param.key);
            }
            let before = config.clone();
            for bad in [beyond.as_str(), "-1e12", "nan", ""] {
                let problem = param.set(&mut config, bad).expect_err(bad);
                assert!(problem.problem.contains(&param.range()), "{problem}");
            }
            assert_eq!(config, before, "a refused value changes nothing");
        }
    }

    #[test]
    fn a_query_tells_the_knobs_that_were_turned() {
        let query = "policy=llm-d,ray-prefix&llm_d.prefix_weight=0.5&llm_d.picker=weighted-random&ray_prefix.imbalanced_threshold=10";
        let (config, problems) = from_query(query);
        assert_eq!(problems, []);
        assert_eq!(config.tuning.of(PolicyKind::LlmD).real("prefix_weight"), 0.5);
        assert!(config.tuning.of(PolicyKind::LlmD).is_on("picker"));
        assert_eq!(to_query(&config), query);
        let (config, problems) = from_query("llm-d.prefix-weight=2&llm_d.prefix_wieght=1&dynamo.ttl=0");
        let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, ["llm_d.prefix_wieght", "dynamo.ttl"]);
        assert!(problems[0].problem.contains("`llm_d.prefix_weight`"), "{}", problems[0]);
        assert!(problems[1].problem.contains("from 0.001 to 864000"), "{}", problems[1]);
        assert_eq!(config.tuning.of(PolicyKind::LlmD).real("prefix_weight"), 2.0);
    }

    #[test]
    fn what_is_no_knob_is_answered_with_those_that_are() {
        assert_eq!(suggestion("dynamo.tempratur"), "; did you mean `dynamo.temperature`?");
        assert!(
            suggestion("chwbl.qqqqqqqqqqqqqq").starts_with("; chwbl has chwbl.load_factor, chwbl.vnodes")
        );
        assert_eq!(suggestion("round_robin.qqqqqqqqqqqq"), "; round-robin has none of its own");
        assert!(suggestion("dinamo.qqqqqqqqqqqqqqqqqq").contains("`dynamo`"));
        let mut config = Config::default();
        let problem = set(&mut config, "dynamo.q", "1").expect_err("there is none");
        assert!(problem.problem.starts_with("no such parameter"));
    }
}
