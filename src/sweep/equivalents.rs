//! Replica-equivalents: how many replicas under one policy are worth so many under another.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::experiment::Experiment;
use crate::params::{Config, Kind, Problem, param};
use crate::policy::PolicyKind;
use crate::trace::Trace;

/// What it takes to reach the requests that were good under another policy, on the same trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equivalents {
    /// The seed of the trace.
    pub seed: u64,
    /// The policy that is to be reached, and with how many replicas.
    pub of: PolicyKind,
    /// Its replicas.
    pub replicas: u32,
    /// The fraction of requests that were good there.
    pub target: Option<f64>,
    /// The policy that is to reach it.
    pub by: PolicyKind,
    /// Its least number of replicas that does; null: none up to the cap.
    pub equivalents: Option<u32>,
    /// The most replicas that were tried.
    pub cap: u32,
    /// The fraction that was good on 1, 2, … replicas, as far as was scanned.
    pub fractions: Vec<Option<f64>>,
}

/// Scans upwards from one replica until `by` is as good as `of` is on the configuration's replicas.
///
/// Upwards, since more replicas are not always better: a bisection could step over the smallest. It
/// is the fraction that is compared and not the rate, which the last requests' drain distorts.
pub fn equivalents(
    config: &Config,
    trace: Option<&Arc<Trace>>,
    of: PolicyKind,
    by: PolicyKind,
    cap: u32,
) -> Result<Equivalents, Problem> {
    let good = |policy: PolicyKind, replicas: u32| {
        let config = Config { replicas, ..config.clone() };
        let experiment = match trace {
            Some(trace) => Experiment::with_trace(config, Arc::clone(trace), None),
            None => Experiment::new(config),
        };
        let recorder = experiment
            .run_modelled(policy)
            .map_err(|too_long| Problem { key: "rate".into(), problem: too_long.to_string() })?;
        let summary = experiment.summary(&recorder);
        Ok((summary.good, summary.goodput_fraction))
    };
    let (target_good, target) = good(of, config.replicas)?;
    let mut fractions = Vec::new();
    let mut equivalents = None;
    for replicas in 1..=cap {
        let (as_good, fraction) = good(by, replicas)?;
        fractions.push(fraction);
        if as_good >= target_good {
            equivalents = Some(replicas);
            break;
        }
    }
    let (seed, replicas) = (config.seed, config.replicas);
    Ok(Equivalents { seed, of, replicas, target, by, equivalents, cap, fractions })
}

/// The most replicas that a fleet can have.
pub fn most_replicas() -> u32 {
    match param("replicas").map(|p| p.kind) {
        Some(Kind::Integer { max, .. }) => max as u32,
        _ => unreachable!("replicas are a whole number"),
    }
}

/// The cap of a scan, unless it is given another.
pub const DEFAULT_CAP: u32 = 64;

/// What many seeds say together: how many replicas it takes; `None`: more than the cap.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// The policy that is to be reached.
    pub of: PolicyKind,
    /// Its replicas.
    pub replicas: u32,
    /// The policy that is to reach it.
    pub by: PolicyKind,
    /// The most replicas that were tried.
    pub cap: u32,
    /// Seeds.
    pub seeds: usize,
    /// Seeds for which no number up to the cap was enough.
    pub above: usize,
    /// The 10th percentile.
    pub p10: Option<u32>,
    /// The median.
    pub p50: Option<u32>,
    /// The 90th percentile.
    pub p90: Option<u32>,
}

impl Worth {
    /// Of the scans of several seeds, all of which ask for the same; `None`: there are none.
    pub fn of(found: &[Equivalents]) -> Option<Worth> {
        let first = found.first()?;
        let mut counts: Vec<f64> =
            found.iter().map(|one| one.equivalents.map_or(f64::INFINITY, f64::from)).collect();
        counts.sort_by(f64::total_cmp);
        // Ranks without interpolation: beyond the cap there is nothing to interpolate to.
        let at = |p: f64| {
            let count = counts[(p * (counts.len() - 1) as f64).round() as usize];
            count.is_finite().then_some(count as u32)
        };
        Some(Worth {
            of: first.of,
            replicas: first.replicas,
            by: first.by,
            cap: first.cap,
            seeds: found.len(),
            above: counts.iter().filter(|count| count.is_infinite()).count(),
            p10: at(0.1),
            p50: at(0.5),
            p90: at(0.9),
        })
    }

    /// A number of replicas in words.
    pub fn count(&self, count: Option<u32>) -> String {
        count.map_or_else(|| format!("more than {}", self.cap), |count| count.to_string())
    }

    /// In a sentence, without its end.
    pub fn sentence(&self) -> String {
        let mut text = format!(
            "{} {} {} worth {} {} {}",
            self.replicas,
            self.of.name(),
            if self.replicas == 1 { "replica is" } else { "replicas are" },
            self.count(self.p50),
            self.by.name(),
            if self.p50 == Some(1) { "replica" } else { "replicas" }
        );
        if self.seeds > 1 {
            text += &format!(
                " (median of {} seeds; 10th to 90th percentile: {} to {})",
                self.seeds,
                self.count(self.p10),
                self.count(self.p90)
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Devices;
    use crate::params::BackendKind;

    fn config() -> Config {
        Config {
            backend: BackendKind::Modelled,
            devices: Devices::Separate,
            requests: 300,
            rate: 24.0,
            // More prefixes than one replica's cache holds, and fewer than four's.
            tenants: 48,
            ..Config::default()
        }
    }

    fn scan(config: &Config, by: PolicyKind, cap: u32) -> Equivalents {
        equivalents(config, None, PolicyKind::PrefixAffinity, by, cap).expect("it fits the clock")
    }

    #[test]
    fn it_is_the_first_number_that_reaches_the_target() {
        let found = scan(&config(), PolicyKind::RoundRobin, 64);
        let m = found.equivalents.expect("64 replicas are enough") as usize;
        assert!(m > 4, "affinity on four replicas is worth more than four");
        assert_eq!(found.fractions.len(), m);
        assert!(found.fractions[..m - 1].iter().all(|f| *f < found.target));
        assert!(found.fractions[m - 1] >= found.target);
    }

    #[test]
    fn a_policy_is_at_most_itself() {
        let found = scan(&config(), PolicyKind::PrefixAffinity, 64);
        assert!(found.equivalents.is_some_and(|m| m <= 4), "{found:?}");
    }

    #[test]
    fn the_cap_ends_the_scan_and_says_so() {
        let found = scan(&config(), PolicyKind::RoundRobin, 2);
        assert_eq!((found.equivalents, found.cap, found.fractions.len()), (None, 2, 2));
    }

    #[test]
    fn seeds_are_summed_up_by_rank_and_beyond_the_cap_by_name() {
        let scan = |equivalents| Equivalents { equivalents, ..scan(&config(), PolicyKind::RoundRobin, 1) };
        let found: Vec<_> = [Some(6), None, Some(5), Some(9)].map(scan).into();
        let worth = Worth::of(&found).expect("there are four");
        assert_eq!((worth.p10, worth.p50, worth.p90, worth.above), (Some(5), Some(9), None, 1));
        assert_eq!(
            worth.sentence(),
            "4 prefix-affinity replicas are worth 9 round-robin replicas (median of 4 seeds; 10th to 90th percentile: 5 to more than 1)"
        );
        let one = Worth::of(&found[..1]).expect("there is one");
        assert_eq!(one.sentence(), "4 prefix-affinity replicas are worth 6 round-robin replicas");
        assert_eq!(Worth::of(&[]), None);
    }
}
