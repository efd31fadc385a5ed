//! What users of the routers reported, as runs: a policy, the smallest workload that shows it, what was
//! reported and where; and where there is a fix, the same with it.
//!
//! Each says which figure shows the fault. A test runs them all and asserts it, and that the fix is one.

mod list;
mod workload;

pub use list::SCENARIOS;
pub use workload::Workload;

use crate::compare::{Side, busiest_share, side};
use crate::experiment::Experiment;
use crate::params::{Config, Problem, set};
use crate::policy::{PolicyKind, Reason};
use crate::sim::TooLong;

/// What a run is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// The busiest replica's share of requests.
    BusiestShare,
    /// The busiest replica's share of the requests that arrive at the beginning, in the same 50 ms.
    BurstShare,
    /// Prompt tokens found in a prefix cache ÷ prompt tokens.
    Reuse,
    /// The part of the decisions that followed a match.
    Followed,
}

impl Figure {
    /// What it is, in words.
    pub fn name(self) -> &'static str {
        match self {
            Figure::BusiestShare => "the busiest replica's share of requests",
            Figure::BurstShare => "the busiest replica's share of the first 50 ms' requests",
            Figure::Reuse => "prompt tokens found in a cache",
            Figure::Followed => "decisions that followed a match",
        }
    }

    /// Its value.
    pub fn of(self, experiment: &Experiment, side: &Side) -> f64 {
        match self {
            Figure::BusiestShare => busiest_share(&side.summary).unwrap_or(0.0),
            Figure::BurstShare => {
                let mut counts = vec![0u64; side.summary.assignments.len()];
                let sent = side.decisions.iter().zip(&experiment.trace.requests);
                for (decision, _) in sent.filter(|(_, spec)| spec.arrival.0 < 50_000_000_000) {
                    decision.iter().for_each(|decision| counts[decision.replica as usize] += 1);
                }
                let sum: u64 = counts.iter().sum();
                counts.iter().copied().max().unwrap_or(0) as f64 / sum.max(1) as f64
            }
            Figure::Reuse => side.summary.reuse.unwrap_or(0.0),
            Figure::Followed => {
                let all = side.decisions.iter().flatten();
                let followed = all.clone().filter(|decision| decision.reason == Reason::LongestMatch).count();
                followed as f64 / all.count().max(1) as f64
            }
        }
    }
}

/// One way of running it.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Who decides.
    pub policy: PolicyKind,
    /// Parameters that differ from the scenario's, by key.
    pub settings: &'static [(&'static str, &'static str)],
    /// What that is, in a few words.
    pub what: &'static str,
    /// The figure is at least and at most this.
    pub expect: (f64, f64),
}

/// A report, as something that can be run.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name on the command line and in addresses.
    pub name: &'static str,
    /// What was reported, in a sentence.
    pub reported: &'static str,
    /// Where.
    pub link: &'static str,
    /// What arrives.
    pub workload: Workload,
    /// Parameters besides: how many replicas, routers.
    pub settings: &'static [(&'static str, &'static str)],
    /// What shows it.
    pub figure: Figure,
    /// As reported.
    pub fault: Variant,
    /// What helps.
    pub fix: Option<Variant>,
}

/// A variant that was run.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Which.
    pub variant: Variant,
    /// The configuration.
    pub config: Config,
    /// What it came to.
    pub side: Side,
    /// The scenario's figure.
    pub value: f64,
}

impl Ran {
    /// Whether the figure is what the scenario says.
    pub fn is_as_expected(&self) -> bool {
        (self.variant.expect.0..=self.variant.expect.1).contains(&self.value)
    }
}

/// The scenario of a name.
pub fn scenario(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

impl Scenario {
    /// The configuration of a variant.
    pub fn config(&self, variant: &Variant) -> Result<Config, Problem> {
        let mut config = Workload::base();
        for (key, value) in self.settings.iter().chain(variant.settings) {
            set(&mut config, key, value)?;
        }
        config.policy = vec![variant.policy];
        config.validate()?;
        Ok(config)
    }

    /// The experiment of a variant.
    pub fn experiment(&self, variant: &Variant) -> Result<Experiment, Problem> {
        Ok(Experiment::with_trace(self.config(variant)?, self.workload.trace(), None))
    }

    /// Runs a variant.
    pub fn run(&self, variant: &Variant) -> Result<Ran, Problem> {
        let experiment = self.experiment(variant)?;
        let failed = |too_long: TooLong| Problem { key: "scenario".into(), problem: too_long.to_string() };
        let side = side(&experiment, variant.policy).map_err(failed)?;
        let value = self.figure.of(&experiment, &side);
        Ok(Ran { variant: *variant, config: experiment.config, side, value })
    }

    /// The fault, and the fix where there is one.
    pub fn variants(&self) -> impl Iterator<Item = &Variant> {
        core::iter::once(&self.fault).chain(&self.fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_shows_and_every_fix_is_one() {
        let mut wrong = Vec::new();
        for scenario in &SCENARIOS {
            for variant in scenario.variants() {
                let ran = scenario.run(variant).unwrap_or_else(|e| panic!("{}: {e}", scenario.name));
                if !ran.is_as_expected() {
                    let Ran { value, .. } = ran;
                    wrong.push(format!(
                        "{}, {}: {value:.3}, not {:?}",
                        scenario.name, variant.what, variant.expect
                    ));
                }
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn names_are_unique_and_links_lead_somewhere() {
        for (at, one) in SCENARIOS.iter().enumerate() {
            assert!(SCENARIOS[at + 1..].iter().all(|other| other.name != one.name), "{}", one.name);
            assert!(one.link.starts_with("https://github.com/") && one.reported.ends_with('.'));
            assert_eq!(scenario(one.name).map(|found| found.name), Some(one.name));
            if let Some(fix) = &one.fix {
                let (fault, fix) = (one.fault.expect, fix.expect);
                assert!(
                    fault.1 < fix.0 || fix.1 < fault.0,
                    "{}: the fix must differ from the fault",
                    one.name
                );
            }
        }
    }
}
