//! One tenant grows: what the guard of prefix-affinity makes of it.

use crate::experiment::Experiment;
use crate::fleet::Devices;
use crate::params::{BackendKind, Config};
use crate::policy::PolicyKind;
use crate::sim::Summary;

/// Requests of each run: enough for a steady state.
pub const REQUESTS: u32 = 300;

/// The map's guards, as factors of the mean load, the last without one.
pub const GUARDS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, f64::INFINITY];

/// The map's shares of the hot tenant: an even sixth, to nearly all.
pub const SHARES: [f64; 6] = [1.0 / 6.0, 0.3, 0.5, 0.7, 0.85, 0.95];

/// The default experiment on devices of their own, with a hot tenant.
pub fn config(share: f64, guard: f64, seed: u64) -> Config {
    Config {
        backend: BackendKind::Modelled,
        devices: Devices::Separate,
        requests: REQUESTS,
        hot_share: Some(share),
        max_imbalance: guard,
        // About as much as four replicas can serve while they share the work.
        rate: 30.0,
        seed,
        ..Config::default()
    }
}

/// A run of it.
pub fn run(share: f64, guard: f64, policy: PolicyKind, seed: u64) -> Option<Summary> {
    let config = config(share, guard, seed);
    let (trace, recorder) = Experiment::run_priced(&config, policy).ok()?;
    Some(recorder.summary(&config.objectives(), &trace.tenants))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn affinity(share: f64, guard: f64) -> Summary {
        run(share, guard, PolicyKind::PrefixAffinity, 1).expect("it fits")
    }

    #[test]
    fn without_a_guard_one_replica_melts_and_a_tight_one_gives_up_reuse() {
        let (free, tight) = (affinity(0.95, f64::INFINITY), affinity(0.95, 1.0));
        assert!(free.imbalance > Some(3.5), "{:?}", free.imbalance);
        assert!(tight.imbalance < Some(1.1), "{:?}", tight.imbalance);
        assert!(
            free.ttft.p95 > Some(4.0 * tight.ttft.p95.expect("it has one")),
            "{:?} {:?}",
            free.ttft,
            tight.ttft
        );
    }

    #[test]
    fn between_too_tight_and_too_loose_is_the_most_goodput() {
        let good = |guard| affinity(0.5, guard).goodput_fraction.expect("requests arrived");
        assert!(good(1.25) > good(1.0) + 0.1 && good(1.25) > good(f64::INFINITY) + 0.1);
        // Nobody can have more than four times the mean of four.
        assert_eq!(affinity(0.5, 4.0), affinity(0.5, f64::INFINITY));
    }

    #[test]
    fn while_no_tenant_is_hot_a_loose_guard_reuses_more() {
        let (loose, tight) = (affinity(SHARES[0], 4.0), affinity(SHARES[0], 1.0));
        assert!(loose.reuse >= tight.reuse, "{:?} {:?}", loose.reuse, tight.reuse);
    }
}
