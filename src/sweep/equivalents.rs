//! Replica-equivalents: how many replicas under one policy are worth so many under another.

use std::sync::Arc;

use serde::Serialize;

use crate::experiment::Experiment;
use crate::params::{Config, Problem};
use crate::policy::PolicyKind;
use crate::trace::Trace;

/// What it takes to reach the requests that were good under another policy, on the same trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
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
}
