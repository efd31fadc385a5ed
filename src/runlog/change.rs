//! What may be different from some time of a run on, and what a configuration is after it.

use serde::{Deserialize, Serialize};

use super::Setting;
use crate::params::{Config, Group, Problem, param, shortened};
use crate::policy::PolicyKind;
use crate::sim::Objectives;

/// What can be different, in the order in which one would ask for it: keys of parameters.
pub const CHANGEABLE: [&str; 9] = [
    "policy",
    "replicas",
    "max_imbalance",
    "longest_prefix_guard",
    "prefix_length",
    "signal_period",
    "signal_own",
    "slo_ttft",
    "slo_itl",
];

/// Something that is different from some time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// Another policy.
    Policy(PolicyKind),
    /// Another value of a policy's parameter, by its key and as a text.
    Parameter {
        /// The parameter's key.
        key: String,
        /// Its value.
        value: String,
    },
    /// So many replicas.
    Replicas(u32),
    /// Other objectives.
    Objectives(Objectives),
}

/// Configuration and policy from some time on.
#[derive(Clone, Debug)]
pub(super) struct Phase {
    pub config: Config,
    pub policy: PolicyKind,
}

impl Change {
    /// A parameter's change to a value, as it is written; whether it can be made is not looked at yet.
    pub fn of(config: &Config, key: &str, value: &str) -> Result<Change, Problem> {
        let (key, value) = (key.replace('-', "_"), value.trim());
        // What is no value of the parameter at all is refused in its own words.
        if let Some(param) = param(&key).filter(|param| param.key != "policy") {
            param.set(&mut config.clone(), value)?;
        }
        let wrong = |problem: String| Problem { key: key.clone(), problem };
        let Objectives { ttft, itl } = config.objectives();
        let number = || value.parse().map_err(|_| wrong("it is a number".into()));
        Ok(match key.as_str() {
            "policy" => match PolicyKind::from_name(value) {
                Some(policy) => Change::Policy(policy),
                None => {
                    let names = PolicyKind::ALL.map(PolicyKind::name).join(" | ");
                    return Err(wrong(format!("found `{}`; it is one of {names}", shortened(value))));
                }
            },
            "replicas" => Change::Replicas(value.parse().map_err(|_| wrong("it is a whole number".into()))?),
            "slo_ttft" => Change::Objectives(Objectives { ttft: number()?, itl }),
            "slo_itl" => Change::Objectives(Objectives { ttft, itl: number()? }),
            _ => Change::Parameter { key, value: value.into() },
        })
    }

    /// What a configuration and its policy are after it, or why it cannot be made.
    pub fn check(&self, config: &Config, policy: PolicyKind) -> Result<(Config, PolicyKind), Problem> {
        let mut to = Phase { config: config.clone(), policy };
        self.apply(&mut to)?;
        Ok((to.config, to.policy))
    }

    /// Makes it, or says why it cannot be.
    pub(super) fn apply(&self, to: &mut Phase) -> Result<(), Problem> {
        let mut set = |key: &str, value: &str| match param(key) {
            Some(param) => param.set(&mut to.config, value),
            None => Err(Problem { key: key.into(), problem: "there is no such parameter".into() }),
        };
        match self {
            Change::Policy(policy) => to.policy = *policy,
            Change::Parameter { key, value } => {
                let of_policy = param(key).is_some_and(|param| {
                    param.group == Group::Policy && !["policy", "routers"].contains(&param.key)
                });
                if param(key).is_some() && !of_policy {
                    let problem = "it cannot be changed in the middle of a run";
                    return Err(Problem { key: key.clone(), problem: problem.into() });
                }
                set(key, value)?;
            }
            Change::Replicas(replicas) => set("replicas", &replicas.to_string())?,
            Change::Objectives(Objectives { ttft, itl }) => {
                set("slo_ttft", &ttft.to_string())?;
                set("slo_itl", &itl.to_string())?;
            }
        }
        to.config.validate()
    }
}

impl Phase {
    pub(super) fn setting(&self) -> Setting {
        Setting::of(&self.config, self.policy)
    }
}

impl Setting {
    /// A configuration's, under a policy.
    pub fn of(config: &Config, policy: PolicyKind) -> Setting {
        let guard = match policy {
            PolicyKind::LongestPrefix => config.longest_prefix_guard,
            _ => config.max_imbalance,
        };
        let guard = Some(guard).filter(|guard| guard.is_finite());
        Setting { policy, guard, replicas: config.replicas }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_changed_is_and_what_cannot_is_said() {
        let config = Config::default();
        let check = |key: &str, value: &str| {
            let change = Change::of(&config, key, value)?;
            change.check(&config, PolicyKind::RoundRobin).map(|_| ())
        };
        for key in CHANGEABLE {
            let value = param(key).expect("it exists").get(&config);
            let value = if key == "policy" { "least-tokens" } else { &value };
            assert_eq!(check(key, value), Ok(()), "{key}");
        }
        for (key, value, part) in [
            ("policy", "fastest", "least-tokens"),
            ("replicas", "0", "from 1 to 1024"),
            ("replicas", "many", "from 1 to 1024"),
            ("slo-ttft", "x", "(s)"),
            ("prefix_length", "0", "from 1"),
            ("rate", "3", "middle of a run"),
            ("rates", "3", "no such parameter"),
        ] {
            let said = check(key, value).expect_err(value).to_string();
            assert!(said.contains(part), "{said}");
        }
    }
}
