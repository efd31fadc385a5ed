//! `ray-prefix`: Ray Serve's PrefixCacheAffinityRouter (2.60.0;
//! `routing_policies/prefix_aware/prefix_aware_router.py` @06c16f2f).
//!
//! A tree of characters remembers what was sent where. If queues differ by more than a guard (infinite by
//! default), the shorter of two that are drawn gets the request. Otherwise those who were sent the longest
//! part of the prompt are candidates, or, if that is below a tenth of it, those with the least in the
//! tree; of the candidates the shortest queue is taken, first index first. Nothing is forgotten unless
//! eviction is on. Queues are the router's own requests in flight, which Ray caches for up to ten seconds:
//! a signal period says how late they are.

use super::index::RadixIndex;
use super::tools::{Dice, all_least, requests};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, mean};

/// The tree, and what the rule is tuned by.
#[derive(Clone, Debug)]
pub struct RayPrefix {
    dice: Dice,
    knobs: Knobs,
    tree: RadixIndex,
    evicted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    imbalanced: f64,
    match_rate: f64,
    evicts: bool,
    most: u64,
    target: u64,
    interval: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::RayPrefix);
        Knobs {
            imbalanced: own.real("imbalanced_threshold"),
            match_rate: own.real("match_rate_threshold"),
            evicts: own.is_on("do_eviction"),
            most: own.whole("eviction_threshold") as u64,
            target: own.whole("eviction_target") as u64,
            interval: own.picos("eviction_interval"),
        }
    }
}

impl RayPrefix {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> RayPrefix {
        RayPrefix {
            dice: Dice::new(settings.seed),
            knobs: Knobs::new(settings),
            tree: RadixIndex::new(1),
            evicted: 0,
        }
    }
}

impl Policy for RayPrefix {
    fn name(&self) -> &'static str {
        "ray-prefix"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs, now) = (replicas.len() as u32, self.knobs, asked.now.0);
        if knobs.evicts && now - self.evicted >= knobs.interval {
            self.evicted = now;
            for replica in 0..n {
                if self.tree.size_of(replica) > knobs.most {
                    self.tree.evict(replica, knobs.target);
                }
            }
        }
        let loads = requests(replicas);
        let load = |replica: u32| loads[replica as usize];
        let most = *loads.iter().max().expect("a fleet has at least one replica");
        let fewest = *loads.iter().min().expect("a fleet has at least one replica");
        let found = self.tree.find(asked.items);
        let held = self.tree.among(found, |replica| replica < n);
        let rate = held.items as f64 / asked.items.len().max(1) as f64;
        let (candidates, reason) = if (most - fewest) as f64 > knobs.imbalanced {
            let (a, b) = self.dice.two(n as usize);
            (vec![a, b], Reason::GuardFired)
        } else if rate < knobs.match_rate || held.items == 0 {
            (all_least((0..n).map(|replica| (replica, self.tree.size_of(replica)))), Reason::ShortMatch)
        } else {
            (self.tree.holders(held.node).filter(|&replica| replica < n).collect(), Reason::LongestMatch)
        };
        let best = all_least(candidates.iter().map(|&replica| (replica, load(replica))));
        let replica = best[0];
        let own = self.tree.among(found, |own| own == replica);
        self.tree.insert(found, asked.items, replica, now);
        Decision {
            replica,
            reason,
            mean: Some(mean(&loads)),
            guard_limit: Some(fewest as f64 + knobs.imbalanced).filter(|limit| limit.is_finite()),
            tied: best.len() as u32,
            candidates,
            predicted: Some(asked.tokens_in(own.items)),
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::{in_flight, tuned};

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..100).map(|at| if at < shared { 7 } else { 100 + own }).collect()
    }

    fn policy(knobs: &[(&str, f64)]) -> RayPrefix {
        RayPrefix::new(&tuned(PolicyKind::RayPrefix, knobs))
    }

    fn pick(policy: &mut RayPrefix, prompt: &[u32], loads: &[u32]) -> Decision {
        policy.route(&Asked::of(prompt), &in_flight(loads))
    }

    #[test]
    fn a_tenth_of_the_prompt_holds_everybody_together_whatever_the_load() {
        let mut policy = policy(&[]);
        let first = pick(&mut policy, &prompt(10, 0), &[0, 0, 0]);
        assert_eq!((first.replica, first.reason), (0, Reason::ShortMatch));
        let tenth = pick(&mut policy, &prompt(10, 1), &[500, 0, 0]);
        assert_eq!((tenth.replica, tenth.reason, tenth.predicted), (0, Reason::LongestMatch, Some(10)));
        let less = pick(&mut policy, &prompt(9, 2), &[500, 8, 3]);
        assert_eq!(
            (less.replica, less.candidates),
            (2, vec![1, 2]),
            "the emptiest, and of them the shortest queue"
        );
    }

    #[test]
    fn with_a_guard_an_uneven_fleet_draws_two() {
        let mut policy = policy(&[("imbalanced_threshold", 10.0)]);
        pick(&mut policy, &prompt(50, 0), &[0, 5, 5]);
        assert_eq!(pick(&mut policy, &prompt(50, 1), &[10, 0, 5]).replica, 0);
        let fired = pick(&mut policy, &prompt(50, 2), &[11, 0, 5]);
        assert_eq!((fired.reason, fired.candidates.len()), (Reason::GuardFired, 2));
        assert_ne!(fired.replica, 0);
    }
}
