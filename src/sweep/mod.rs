//! Sweeps: one or two parameters over their values × policies × seeds, and what came of each.
//!
//! A [`Plan`] says what is run; its *jobs* (a point and a seed, under every policy) are independent,
//! so that threads, workers or machines can share them out. [`Results`] are the same bytes however that was
//! done: jobs are put in order before anything is added up, and a [`Part`] on disk keeps every bit.
//! Nothing here knows of threads.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

mod axis;
mod cells;
mod equivalents;
mod output;
mod part;
pub mod recommend;

pub use axis::{Axis, MAX_VALUES};
pub use cells::{Cell, Results, Stat};
pub use equivalents::{DEFAULT_CAP, Equivalents, Worth, equivalents, most_replicas};
pub use part::{Part, join};

use crate::experiment::Experiment;
use crate::params::{BackendKind, ClockKind, Config, Group, Problem, from_settings};
use crate::policy::PolicyKind;
use crate::report::columns;
use crate::trace::Trace;

/// The most parameters that a sweep varies.
pub const MAX_AXES: usize = 2;

/// The most runs (a point, a policy, a seed) of one sweep.
pub const MAX_RUNS: u64 = 1_000_000;

/// The figures of one run, in the order of [`columns`].
pub type Figures = [Option<f64>; 8];

/// Seeds from one up to, not including, another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seeds {
    /// The first.
    pub from: u64,
    /// One more than the last.
    pub to: u64,
}

impl Seeds {
    /// Reads `FROM..TO`, or how many there are from `first` on.
    pub fn parse(text: &str, first: u64) -> Result<Seeds, Problem> {
        let seeds = match text.split_once("..") {
            Some((from, to)) => from.trim().parse().ok().zip(to.trim().parse().ok()),
            None => text.trim().parse().ok().and_then(|n: u64| Some((first, first.checked_add(n)?))),
        };
        seeds.map(|(from, to)| Seeds { from, to }).filter(|seeds| seeds.from < seeds.to).ok_or_else(|| Problem {
            key: "seeds".into(),
            problem: format!(
                "found `{text}`; it is FROM..TO with FROM below TO (0..100 are the hundred seeds 0 to 99), or how many"
            ),
        })
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.to - self.from
    }
}

/// Which file a trace came from: its name, without its folder, and a digest of what is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceId {
    /// The file's name.
    pub name: String,
    /// FNV-1a of its bytes.
    pub digest: String,
    /// Tokens that a block's id stands for, where it has ids.
    pub trace_block: Option<u32>,
    /// Whether its arrivals were spread out within their buckets.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub spread: bool,
    /// What else was said of how it is read or what of it is run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read: Option<String>,
}

/// FNV-1a of bytes that come in parts.
#[derive(Clone, Copy, Debug)]
pub struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Takes the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        self.0 = bytes.iter().fold(self.0, mix);
    }

    /// As sixteen hexadecimal digits.
    pub fn text(self) -> String {
        format!("{:016x}", self.0)
    }
}

impl TraceId {
    /// Of a file's name and content.
    pub fn new(name: String, content: &[u8], trace_block: Option<u32>) -> TraceId {
        let mut digest = Digest::default();
        digest.add(content);
        TraceId { name, digest: digest.text(), trace_block, spread: false, read: None }
    }
}

/// What a sweep runs. Two plans that are equal give the same results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// Of the program.
    pub version: String,
    /// Where the parameters start from.
    pub preset: String,
    /// The parameters that are set besides, each a key and a value.
    pub settings: Vec<(String, String)>,
    /// What varies: the last fastest.
    pub over: Vec<Axis>,
    /// Who decides.
    pub policies: Vec<PolicyKind>,
    /// The seeds of every point.
    pub seeds: Seeds,
    /// The trace, where it comes from a file.
    pub trace: Option<TraceId>,
}

/// What a job came to: the figures under each policy, in the plan's order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Done {
    /// Its number in the plan.
    pub job: u64,
    /// One entry a policy.
    pub runs: Vec<Figures>,
}

impl Plan {
    /// Checks that every point of it can be run.
    pub fn check(&self) -> Result<(), Problem> {
        let refuse = |key: &str, problem: String| Err(Problem { key: key.into(), problem });
        if self.over.is_empty() || self.over.len() > MAX_AXES {
            return refuse(
                "over",
                format!(
                    "found {} parameters; a sweep varies one or two, as --over rate=2:20:2 --over replicas=2,4,8",
                    self.over.len()
                ),
            );
        }
        if let [one, other] = &self.over[..]
            && one.key == other.key
        {
            return refuse("over", format!("`{}` is there twice; name its values together", one.key));
        }
        if self.seeds.from >= self.seeds.to {
            return refuse("seeds", "there are none".into());
        }
        for axis in &self.over {
            if axis.values.is_empty() {
                return refuse("over", format!("`{}` has no values", axis.key));
            }
            let group = axis.param()?.group;
            if self.trace.is_some() && group == Group::Trace {
                let problem = format!("`{}` shapes a generated trace; with --trace there is none", axis.key);
                return refuse("over", problem);
            }
            if let Some((key, value)) = self.settings.iter().find(|(key, _)| *key == axis.key) {
                return refuse(key, format!("is set to {value}, and --over varies it; it is one of the two"));
            }
        }
        if self.trace.is_some() && self.seeds.count() > 1 {
            return refuse("seeds", "a trace file is the same for every seed; it goes with one".into());
        }
        let runs = self.jobs().saturating_mul(self.policies.len() as u64);
        if runs > MAX_RUNS {
            return refuse(
                "over",
                format!(
                    "{} points × {} seeds × {} policies are {runs} runs; a sweep takes at most {MAX_RUNS}",
                    self.points(),
                    self.seeds.count(),
                    self.policies.len()
                ),
            );
        }
        (0..self.points()).try_for_each(|point| self.config(point).map(|_| ()))
    }

    /// How many combinations of values there are.
    pub fn points(&self) -> u64 {
        self.over.iter().map(|axis| axis.values.len() as u64).product()
    }

    /// How many jobs there are: one a point and seed.
    pub fn jobs(&self) -> u64 {
        self.points().saturating_mul(self.seeds.count())
    }

    /// The jobs of the part `shard` of `of`, counted from 1: every `of`-th, so that parts take alike.
    pub fn shard(&self, shard: u64, of: u64) -> impl Iterator<Item = u64> + use<> {
        (shard - 1..self.jobs()).step_by(of as usize)
    }

    /// What each swept parameter is at a point.
    pub fn values(&self, point: u64) -> Vec<&str> {
        let mut rest = point as usize;
        let mut values: Vec<&str> = Vec::with_capacity(self.over.len());
        for axis in self.over.iter().rev() {
            values.push(&axis.values[rest % axis.values.len()]);
            rest /= axis.values.len();
        }
        values.reverse();
        values
    }

    /// The configuration at a point.
    pub fn config(&self, point: u64) -> Result<Config, Problem> {
        let values = self.values(point);
        let set = self.settings.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let swept = self.over.iter().zip(&values).map(|(axis, value)| (axis.key.as_str(), *value));
        let config = from_settings(&self.preset, set.chain(swept)).and_then(|config| {
            let unfit = |key: &str, problem: &str| Err(Problem { key: key.into(), problem: problem.into() });
            if config.backend != BackendKind::Modelled {
                return unfit("backend", "a sweep only prices what a step computes: it is modelled");
            }
            if config.clock != ClockKind::Modelled {
                return unfit("clock", "runs side by side would measure each other: it is modelled");
            }
            Ok(config)
        });
        config.map_err(|p| self.at(point, p))
    }

    /// A problem, with the point that it is met at.
    fn at(&self, point: u64, problem: Problem) -> Problem {
        let met: Vec<String> = self
            .over
            .iter()
            .zip(self.values(point))
            .map(|(axis, value)| format!("{}={value}", axis.key))
            .collect();
        Problem { problem: format!("{} (at {})", problem.problem, met.join(", ")), ..problem }
    }

    /// Runs a job. `trace` is the one that the plan names.
    pub fn run(&self, trace: Option<&Arc<Trace>>, job: u64) -> Result<Done, Problem> {
        let (point, seed) = (job / self.seeds.count(), job % self.seeds.count());
        let config = Config { seed: self.seeds.from + seed, ..self.config(point)? };
        let experiment = match trace {
            Some(trace) => Experiment::with_trace(config, Arc::clone(trace), None),
            None => Experiment::new(config),
        };
        let figures = |&policy: &PolicyKind| {
            let recorder = experiment.run_modelled(policy).map_err(|too_long| {
                self.at(point, Problem { key: "over".into(), problem: too_long.to_string() })
            })?;
            let summary = experiment.summary(&recorder);
            Ok(columns().map(|column| (column.value)(&summary)))
        };
        Ok(Done { job, runs: self.policies.iter().map(figures).collect::<Result<_, Problem>>()? })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan(over: &[&str], seeds: u64) -> Plan {
        Plan {
            version: "test".into(),
            preset: "chapter".into(),
            settings: vec![("backend".into(), "modelled".into()), ("devices".into(), "separate".into())],
            over: over.iter().map(|text| Axis::parse(text).unwrap_or_else(|e| panic!("{e}"))).collect(),
            policies: PolicyKind::RACE.to_vec(),
            seeds: Seeds { from: 3, to: 3 + seeds },
            trace: None,
        }
    }

    pub(crate) fn all(plan: &Plan) -> Vec<Done> {
        (0..plan.jobs()).map(|job| plan.run(None, job).unwrap_or_else(|e| panic!("{e}"))).collect()
    }

    #[test]
    fn points_go_through_the_last_parameter_first() {
        let plan = plan(&["rate=4,8", "replicas=2,3,5"], 4);
        assert_eq!((plan.points(), plan.jobs()), (6, 24));
        let values: Vec<Vec<&str>> = (0..6).map(|point| plan.values(point)).collect();
        assert_eq!(values[..4], [["4", "2"], ["4", "3"], ["4", "5"], ["8", "2"]]);
        let config = plan.config(5).expect("a good point");
        assert_eq!((config.rate, config.replicas), (8.0, 5));
    }

    #[test]
    fn a_job_is_the_run_of_its_point_and_seed() {
        let plan = plan(&["rate=4,8"], 3);
        let done = plan.run(None, 4).expect("it fits the clock");
        let experiment = Experiment::new(Config { seed: 4, ..plan.config(1).expect("a good point") });
        for (policy, figures) in plan.policies.iter().zip(&done.runs) {
            let recorder = experiment.run_modelled(*policy).expect("it fits the clock");
            let summary = experiment.summary(&recorder);
            assert_eq!(figures, &columns().map(|c| (c.value)(&summary)));
        }
    }

    #[test]
    fn every_job_is_in_one_part() {
        let plan = plan(&["rate=4,8"], 5);
        for of in [1, 3, 10, 12] {
            let mut jobs: Vec<u64> = (1..=of).flat_map(|shard| plan.shard(shard, of)).collect();
            jobs.sort_unstable();
            assert_eq!(jobs, (0..10).collect::<Vec<_>>(), "{of}");
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused_before_anything_is() {
        let with = |change: &dyn Fn(&mut Plan)| {
            let mut plan = plan(&["rate=4,8"], 2);
            change(&mut plan);
            plan.check().expect_err("it cannot be run").to_string()
        };
        let axis = |text: &str| Axis::parse(text).expect("a good axis");
        let set = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        assert!(with(&|p| p.over.clear()).contains("one or two"));
        assert!(with(&|p| p.over.push(axis("rate=1"))).contains("twice"));
        assert!(with(&|p| p.settings.push(set("rate", "9"))).starts_with("rate: is set to 9"));
        assert!(with(&|p| p.settings[0].1 = "tinygpt".into()).starts_with("backend:"));
        assert!(with(&|p| p.settings.push(set("clock", "measured"))).starts_with("clock:"));
        assert!(with(&|p| p.seeds.to = 1 << 40).contains("at most 1000000"));
        let far = with(&|p| {
            p.over = vec![axis("rate=1,0.001")];
            p.settings.push(set("requests", "20000"));
        });
        assert!(far.contains("days") && far.ends_with("(at rate=0.001)"), "{far}");
        let trace = TraceId::new("t.jsonl".into(), b"", None);
        assert!(with(&|p| p.trace = Some(trace.clone())).contains("shapes a generated trace"));
        assert!(
            with(&|p| (p.trace, p.over) = (Some(trace.clone()), vec![axis("replicas=1,2")])).contains("one")
        );
        assert_eq!(plan(&["rate=4,8"], 2).check(), Ok(()));
    }

    #[test]
    fn seeds_are_a_range_or_a_number_of_them() {
        assert_eq!(Seeds::parse("0..100", 85), Ok(Seeds { from: 0, to: 100 }));
        assert_eq!(Seeds::parse("3", 85), Ok(Seeds { from: 85, to: 88 }));
        for bad in ["", "0", "5..5", "9..2", "-1..3", "1..x", "0..18446744073709551616"] {
            let problem = Seeds::parse(bad, 1).expect_err(bad);
            assert!(problem.problem.contains("FROM..TO") && problem.problem.contains(&format!("`{bad}`")));
        }
        assert!(Seeds::parse("2", u64::MAX - 1).is_err());
    }
}
