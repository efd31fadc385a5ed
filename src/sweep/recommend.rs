//! Which policy, with which thresholds, serves most requests well on a trace and a fleet; by how much; and what would
//! change that.
//!
//! In two steps, of which each is plans to be run and what is made of their figures: [`candidates`] are all policies
//! with values of their thresholds, [`Standing`] puts them in order; [`questions`] vary one thing at a time for the
//! best and the runner-up, [`Change`] says where the runner-up comes first. What is compared is the fraction of
//! requests that were good, in the mean over *replicates*: the seeds of a generated trace, or consecutive parts of one
//! from a file.

use serde::Serialize;

use super::{Axis, Done, Figures, Plan, Stat};
use crate::params::{Config, Problem, param};
use crate::policy::PolicyKind;
use crate::report::columns;
use crate::trace::Trace;
use crate::units::Time;

/// A policy's parameters, and the values of each that are tried unless it is set. A guard close to 1 spreads evenly, a
/// far one keeps prefixes together; a prefix is longer where short ones do not tell prompts apart.
fn thresholds(policy: PolicyKind, config: &Config) -> Vec<(&'static str, Vec<String>)> {
    let guards = |more: &[&str]| {
        [&["1.1", "1.25", "1.5", "2", "3"], more].concat().iter().map(|s| (*s).into()).collect()
    };
    match policy {
        PolicyKind::PrefixAffinity => {
            let length = |times: u32| config.prefix_length.saturating_mul(times).min(65_536).to_string();
            let mut lengths = vec![length(1), length(4), length(16)];
            lengths.dedup();
            vec![("max_imbalance", guards(&["inf"])), ("prefix_length", lengths)]
        }
        PolicyKind::LongestPrefix => vec![("longest_prefix_guard", guards(&[]))],
        _ => Vec::new(),
    }
}

/// A policy with its thresholds and its figures, a row a replicate.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The policy.
    pub policy: PolicyKind,
    /// Its parameters and their values.
    pub settings: Vec<(String, String)>,
    /// Its figures.
    pub runs: Vec<Figures>,
}

/// The plans that try all policies of a plan with their thresholds. The plan itself varies nothing; a parameter that
/// it sets stays as it is.
pub fn candidates(base: &Plan, config: &Config) -> Vec<Plan> {
    let plan = |policies: Vec<PolicyKind>, over: Vec<Axis>| {
        let mut plan = Plan { policies, over, ..base.clone() };
        plan.settings.retain(|(key, _)| plan.over.iter().all(|axis| axis.key != *key));
        plan
    };
    let now = |key: &str| {
        let param = param(key).expect("it is in the table");
        Axis { key: key.to_owned(), values: vec![param.get(config)] }
    };
    let (tuned, plain): (Vec<PolicyKind>, Vec<PolicyKind>) =
        base.policies.iter().partition(|&&policy| !thresholds(policy, config).is_empty());
    let mut plans = Vec::new();
    if !plain.is_empty() {
        plans.push(plan(plain, vec![now("max_imbalance")]));
    }
    for policy in tuned {
        let axes = thresholds(policy, config).into_iter().map(|(key, values)| {
            let set = base.settings.iter().any(|(own, _)| own == key);
            if set { now(key) } else { Axis { key: key.to_owned(), values } }
        });
        plans.push(plan(vec![policy], axes.collect()));
    }
    plans
}

/// The figures of a plan's points and policies over its replicates: one list of jobs each.
pub fn gather(plan: &Plan, replicates: &[Vec<Done>]) -> Vec<Candidate> {
    let seeds = plan.seeds.count();
    let mut found = Vec::new();
    for point in 0..plan.points() {
        for (at, &policy) in plan.policies.iter().enumerate() {
            let own = thresholds_of(policy);
            let values = plan.over.iter().map(|axis| axis.key.clone()).zip(plan.values(point));
            let settings = values.filter(|(key, _)| own.contains(&key.as_str()));
            let jobs = replicates.iter().flatten().filter(|done| done.job / seeds == point);
            found.push(Candidate {
                policy,
                settings: settings.map(|(key, value)| (key, value.to_owned())).collect(),
                runs: jobs.map(|done| done.runs[at]).collect(),
            });
        }
    }
    found
}

fn thresholds_of(policy: PolicyKind) -> Vec<&'static str> {
    thresholds(policy, &Config::default()).into_iter().map(|(key, _)| key).collect()
}

/// Where a figure is among [`Figures`].
fn place(key: &str) -> usize {
    columns().iter().position(|column| column.key == key).expect("it is a column")
}

/// A figure over a candidate's replicates.
fn over(runs: &[Figures], key: &str) -> Stat {
    let at = place(key);
    Stat::of(runs.iter().filter_map(|run| run[at]).collect())
}

impl Candidate {
    /// The fraction of requests that were good.
    pub fn good(&self) -> Stat {
        over(&self.runs, "goodput_fraction")
    }

    /// Another of its figures.
    pub fn figure(&self, key: &str) -> Stat {
        over(&self.runs, key)
    }

    /// Whether it comes before another: more good requests, then more a second, then a lower TTFT at the 95th
    /// percentile.
    fn before(&self, other: &Candidate) -> core::cmp::Ordering {
        let more = |key| {
            let of = |one: &Candidate| one.figure(key).mean.unwrap_or(0.0);
            of(other).total_cmp(&of(self))
        };
        let less = |key| {
            let of = |one: &Candidate| one.figure(key).mean.unwrap_or(f64::INFINITY);
            of(self).total_cmp(&of(other))
        };
        more("goodput_fraction").then(more("goodput_per_second")).then(less("ttft_p95"))
    }
}

/// Every policy with the thresholds that are best for it, the best policy first.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing(pub Vec<Candidate>);

impl Standing {
    /// Of all candidates. A draw keeps their order.
    pub fn of(mut candidates: Vec<Candidate>) -> Standing {
        candidates.sort_by(Candidate::before);
        let mut best: Vec<Candidate> = Vec::new();
        for candidate in candidates {
            if best.iter().all(|one| one.policy != candidate.policy) {
                best.push(candidate);
            }
        }
        Standing(best)
    }

    /// The best of all.
    pub fn best(&self) -> Option<&Candidate> {
        self.0.first()
    }

    /// The best of another policy.
    pub fn runner_up(&self) -> Option<&Candidate> {
        self.0.get(1)
    }

    /// By how much, over the replicates.
    pub fn margin(&self) -> Option<Margin> {
        let (best, other) = (self.best()?, self.runner_up()?);
        let at = place("goodput_fraction");
        let pairs = best.runs.iter().zip(&other.runs);
        let gaps: Vec<f64> = pairs.filter_map(|(a, b)| Some(a[at]? - b[at]?)).collect();
        let count = |holds: fn(&f64) -> bool| gaps.iter().filter(|gap| holds(gap)).count();
        Some(Margin {
            better: count(|gap| *gap > 0.0),
            equal: count(|gap| *gap == 0.0),
            worse: count(|gap| *gap < 0.0),
            gap: Stat::of(gaps),
        })
    }
}

/// How far the best is before the runner-up, replicate by replicate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Margin {
    /// The difference of the fractions of good requests.
    pub gap: Stat,
    /// Replicates in which it is above zero.
    pub better: usize,
    /// In which it is zero.
    pub equal: usize,
    /// In which it is below.
    pub worse: usize,
}

/// Something that is varied to see when the verdict changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// What: a parameter's key, or `load` for a trace from a file.
    pub key: String,
    /// What is run; of a load, once for each value.
    pub plan: Plan,
    /// By how much faster requests arrive, each as often as the plan is run.
    pub loads: Vec<f64>,
    /// The value that is in force.
    pub now: f64,
}

/// Factors that loads and objectives are varied by.
const FACTORS: [f64; 8] = [0.25, 0.5, 0.75, 1.25, 1.5, 2.0, 3.0, 4.0];

/// What is varied for a standing: the load, each objective, and the number of replicas.
pub fn questions(base: &Plan, config: &Config, standing: &Standing) -> Vec<Question> {
    let (Some(best), Some(other)) = (standing.best(), standing.runner_up()) else { return Vec::new() };
    let mut settings = base.settings.clone();
    for (key, value) in best.settings.iter().chain(&other.settings) {
        settings.retain(|(own, _)| own != key);
        settings.push((key.clone(), value.clone()));
    }
    let policies = vec![best.policy, other.policy];
    // Where a curve crosses can be said with less than how far apart two points are.
    let mut seeds = base.seeds;
    seeds.to = seeds.to.min(seeds.from + 8);
    let plan = |key: &str, values: Vec<String>| {
        let mut plan = Plan {
            settings: settings.clone(),
            policies: policies.clone(),
            over: vec![Axis { key: key.into(), values }],
            seeds,
            ..base.clone()
        };
        plan.settings.retain(|(own, _)| own != key);
        plan
    };
    let scaled = |key: &str, now: f64| {
        let mut values: Vec<String> = Vec::new();
        for factor in FACTORS {
            let mut scratch = config.clone();
            let known = param(key).expect("it is in the table");
            let good =
                known.set(&mut scratch, &(now * factor).to_string()).is_ok() && scratch.validate().is_ok();
            let value = known.get(&scratch);
            if good && now > 0.0 && !values.contains(&value) {
                values.push(value);
            }
        }
        Question { key: key.into(), plan: plan(key, values), loads: vec![1.0], now }
    };
    let load = if base.trace.is_some() {
        let same = param("slo_ttft").expect("it is in the table").get(config);
        Question { key: "load".into(), plan: plan("slo_ttft", vec![same]), loads: FACTORS.to_vec(), now: 1.0 }
    } else {
        scaled("rate", config.rate)
    };
    let n = config.replicas;
    let mut numbers = vec![n / 2, n.saturating_sub(1), n + 1, n + 2, 2 * n];
    numbers.retain(|&m| m >= 1 && m != n);
    numbers.sort_unstable();
    numbers.dedup();
    let fits = |&&m: &&u32| {
        Config { replicas: m, ..config.clone() }.validate().is_ok() && m <= super::most_replicas()
    };
    let numbers = numbers.iter().filter(fits).map(u32::to_string).collect();
    let replicas = Question {
        key: "replicas".into(),
        plan: plan("replicas", numbers),
        loads: vec![1.0],
        now: f64::from(n),
    };
    let all = [load, scaled("slo_ttft", config.slo_ttft), scaled("slo_itl", config.slo_itl), replicas];
    all.into_iter().filter(|question| !question.plan.over[0].values.is_empty()).collect()
}

/// The best and the runner-up at one value of what is varied.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct At {
    /// The value.
    pub value: f64,
    /// The mean fraction of good requests under the best.
    pub best: f64,
    /// The same under the runner-up.
    pub runner_up: f64,
}

/// Where, along one thing that is varied, the verdict changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// What is varied.
    pub key: String,
    /// Its value now.
    pub now: f64,
    /// All values that were tried, ascending.
    pub tried: Vec<At>,
    /// The nearest value below at which the runner-up is better.
    pub below: Option<At>,
    /// The nearest above.
    pub above: Option<At>,
}

impl Change {
    /// Of the figures of a question's runs: for each load, the candidates of its plan.
    pub fn of(question: &Question, found: &[Vec<Candidate>]) -> Change {
        let axis = &question.plan.over[0];
        let mut tried = Vec::new();
        for (load, candidates) in question.loads.iter().zip(found) {
            for (point, pair) in candidates.chunks(question.plan.policies.len()).enumerate() {
                let [best, other] = pair else { continue };
                let value = if question.key == "load" {
                    *load
                } else {
                    axis.values[point].parse().unwrap_or(f64::NAN)
                };
                let mean = |one: &Candidate| one.good().mean.unwrap_or(0.0);
                tried.push(At { value, best: mean(best), runner_up: mean(other) });
            }
        }
        tried.sort_by(|a, b| a.value.total_cmp(&b.value));
        let flips = |at: &&At| at.runner_up > at.best;
        let below = tried.iter().rev().filter(|at| at.value < question.now).find(flips).copied();
        let above = tried.iter().filter(|at| at.value > question.now).find(flips).copied();
        Change { key: question.key.clone(), now: question.now, tried, below, above }
    }
}

/// So many consecutive parts of a trace, of as many requests each (the last may have more), each from its own zero.
pub fn parts(trace: &Trace, count: usize) -> Vec<Trace> {
    let count = count.clamp(1, trace.requests.len().max(1));
    let each = trace.requests.len() / count;
    let part = |at: usize| {
        let end = if at + 1 == count { trace.requests.len() } else { (at + 1) * each };
        let mut requests = trace.requests[at * each..end].to_vec();
        let first = requests.first().map_or(Time::ZERO, |request| request.arrival);
        for request in &mut requests {
            request.arrival = Time(request.arrival.since(first).0);
        }
        Trace { requests, tenants: trace.tenants.clone() }
    };
    (0..count).map(part).collect()
}

/// The base of a search: what is run, varying nothing.
pub fn base(plan: Plan) -> Result<Plan, Problem> {
    // A plan varies something; that it holds at the values in force says that it holds.
    let probe = Plan {
        over: vec![Axis { key: "slo_itl".into(), values: vec!["0.05".into()] }],
        settings: plan.settings.iter().filter(|(key, _)| key != "slo_itl").cloned().collect(),
        ..plan.clone()
    };
    probe.check()?;
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;
    use super::*;

    fn run(plan: &Plan) -> Vec<Candidate> {
        let done =
            (0..plan.jobs()).map(|job| plan.run(None, job).unwrap_or_else(|e| panic!("{e}"))).collect();
        gather(plan, &[done])
    }

    fn config(base: &Plan) -> Config {
        let settings = base.settings.iter().map(|(k, v)| (k.as_str(), v.as_str()));
        crate::params::from_settings(&base.preset, settings).expect("a good base")
    }

    fn a_base() -> Plan {
        let mut base = plan(&["rate=4"], 3);
        base.over.clear();
        base.policies = PolicyKind::ALL.to_vec();
        for (key, value) in [("requests", "300"), ("tenants", "48"), ("rate", "16")] {
            base.settings.push((key.into(), value.into()));
        }
        super::base(base).expect("a good base")
    }

    #[test]
    fn every_policy_is_tried_with_its_thresholds_unless_they_are_set() {
        let mut base = a_base();
        let plans = candidates(&base, &config(&base));
        let points: Vec<u64> = plans.iter().map(|plan| plan.points() * plan.policies.len() as u64).collect();
        assert_eq!(points[..3], [3, 18, 5]);
        plans.iter().for_each(|plan| plan.check().unwrap_or_else(|e| panic!("{e}")));
        base.settings.push(("max_imbalance".into(), "1.7".into()));
        let plans = candidates(&base, &config(&base));
        assert_eq!((plans[1].points(), plans[1].over[0].values[0].as_str()), (3, "1.7"));
    }

    #[test]
    fn the_best_is_before_the_runner_up_and_where_it_is_not_is_found() {
        let base = a_base();
        let all: Vec<Candidate> = candidates(&base, &config(&base)).iter().flat_map(run).collect();
        let standing = Standing::of(all.clone());
        let (best, other) = (standing.best().expect("five"), standing.runner_up().expect("five"));
        assert!(best.policy != other.policy && standing.0.len() == PolicyKind::ALL.len());
        let mean = |one: &Candidate| one.good().mean.expect("defined");
        assert!(all.iter().all(|one| mean(one) <= mean(best)));
        let margin = standing.margin().expect("two");
        assert_eq!(margin.better + margin.equal + margin.worse, 3);
        assert!((margin.gap.mean.expect("defined") - (mean(best) - mean(other))).abs() < 1e-12);
        for question in questions(&base, &config(&base), &standing) {
            question.plan.check().unwrap_or_else(|e| panic!("{e}"));
            let change = Change::of(&question, &[run(&question.plan)]);
            assert!(
                change.tried.len() >= 4 && change.tried.is_sorted_by(|a, b| a.value < b.value),
                "{change:?}"
            );
            for at in [change.below, change.above].into_iter().flatten() {
                assert!(at.runner_up > at.best && at.value != change.now);
            }
        }
    }

    #[test]
    fn parts_are_the_whole_each_from_its_own_zero() {
        let trace = Config::default().trace();
        let parts = parts(&trace, 5);
        assert_eq!(parts.iter().map(|part| part.requests.len()).collect::<Vec<_>>(), [4, 4, 4, 4, 8]);
        assert!(parts.iter().all(|part| part.requests[0].arrival == Time::ZERO));
        assert_eq!(super::parts(&trace, 1000).len(), 24);
    }
}
