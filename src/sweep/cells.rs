//! Results of a sweep: for each point and policy, what the figures were over the seeds.

use serde::Serialize;

use super::{Done, Figures, Plan};
use crate::params::Problem;
use crate::policy::PolicyKind;
use crate::sim::quantile;

/// One figure over the seeds; null where it was never defined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stat {
    /// Seeds for which it was defined.
    pub n: usize,
    /// Their mean.
    pub mean: Option<f64>,
    /// The least.
    pub min: Option<f64>,
    /// The 10th percentile.
    pub p10: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 90th percentile.
    pub p90: Option<f64>,
    /// The greatest.
    pub max: Option<f64>,
}

impl Stat {
    /// Of values in any order.
    pub fn of(mut values: Vec<f64>) -> Stat {
        values.sort_by(f64::total_cmp);
        let n = values.len();
        Stat {
            n,
            mean: (n > 0).then(|| values.iter().sum::<f64>() / n as f64),
            min: values.first().copied(),
            p10: quantile(&values, 0.1),
            p50: quantile(&values, 0.5),
            p90: quantile(&values, 0.9),
            max: values.last().copied(),
        }
    }
}

/// A point under a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The point.
    pub point: u64,
    /// The policy.
    pub policy: PolicyKind,
    /// Each figure over the seeds, in the order of [`columns`](crate::report::columns).
    pub stats: Vec<Stat>,
}

/// A sweep that has been run.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// What was run.
    pub plan: Plan,
    /// By point, and of each point by policy.
    pub cells: Vec<Cell>,
}

impl Results {
    /// Adds up what the jobs came to, in whatever order they are given. Each must be there once.
    pub fn new(plan: Plan, mut done: Vec<Done>) -> Result<Results, Problem> {
        done.sort_by_key(|one| one.job);
        if !done.iter().map(|one| one.job).eq(0..plan.jobs()) {
            let problem = format!("{} of {} jobs, or one twice", done.len(), plan.jobs());
            return Err(Problem { key: "over".into(), problem });
        }
        Ok(Results::so_far(plan, &done))
    }

    /// The same of a sweep that is not over: of each point, the seeds that are done. Jobs are in order,
    /// and none is there twice.
    pub fn so_far(plan: Plan, mut done: &[Done]) -> Results {
        let seeds = plan.seeds.count();
        let mut cells = Vec::with_capacity(plan.points() as usize * plan.policies.len());
        for point in 0..plan.points() {
            let (jobs, rest) = done.split_at(done.partition_point(|one| one.job / seeds <= point));
            done = rest;
            for (at, &policy) in plan.policies.iter().enumerate() {
                let figures = || jobs.iter().map(|job| &job.runs[at]);
                let over = |figure: usize| Stat::of(figures().filter_map(|f| f[figure]).collect());
                let stats = (0..Figures::default().len()).map(over).collect();
                cells.push(Cell { point, policy, stats });
            }
        }
        Results { plan, cells }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all, plan};
    use super::*;

    #[test]
    fn a_stat_is_over_what_is_defined() {
        let stat = Stat::of(vec![4.0, 1.0, 3.0]);
        assert_eq!((stat.n, stat.mean), (3, Some(8.0 / 3.0)));
        assert_eq!((stat.min, stat.p50, stat.max), (Some(1.0), Some(3.0), Some(4.0)));
        assert_eq!(Stat::of(Vec::new()), Stat::default());
    }

    #[test]
    fn the_order_of_jobs_does_not_matter_and_their_number_does() {
        let plan = plan(&["rate=4,16", "replicas=1,4"], 3);
        let done = all(&plan);
        let results = Results::new(plan.clone(), done.clone()).expect("it is whole");
        assert_eq!(results.cells.len(), 4 * 3);
        let mut shuffled = done.clone();
        shuffled.reverse();
        shuffled.swap(1, 7);
        assert_eq!(Results::new(plan.clone(), shuffled), Ok(results.clone()));
        assert!(Results::new(plan.clone(), done[1..].to_vec()).is_err());
        assert!(Results::new(plan, [&done[..], &done[..1]].concat()).is_err());
        let some = Results::so_far(results.plan.clone(), &done[1..5]);
        assert_eq!(some.cells.len(), 4 * 3);
        assert_eq!(some.cells.iter().step_by(3).map(|c| c.stats[0].n).collect::<Vec<_>>(), [2, 2, 0, 0]);
        let first: Vec<f64> = done[..3].iter().filter_map(|one| one.runs[0][0]).collect();
        assert_eq!(results.cells[0].stats[0], Stat::of(first));
    }
}
