//! `sglang-cache-aware`: SGLang's original rule with one gate for the fleet
//! (`sgl-model-gateway/src/policies/cache_aware.rs` @053b63ff), which vLLM's router has too
//! (`src/policies/cache_aware.rs` @16917f49); defaults of the command lines.
//!
//! If the most requests on a replica are more than 64 above the fewest, and more than 1.5 times them, the
//! fewest get the request, first index first, whoever has its prefix. Otherwise a tree of characters says
//! who was sent the longest part of it: if that is over 0.3, one of the holders gets it (a hash map's
//! first there, the lowest number here), and if not the fewest requests; before pull 14305 it was the
//! replica with the least in the tree. Whatever was decided is put into the tree.
//!
//! vLLM router's `session_ttl` of an hour keeps a conversation where it is before anything else is asked;
//! a tenant stands in for a session.

use std::collections::BTreeMap;

use super::index::RadixIndex;
use super::tools::{all_least, requests};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, least, mean};

/// The tree, and what the rule is tuned by.
#[derive(Clone, Debug)]
pub struct SglangCacheAware {
    knobs: Knobs,
    tree: Option<RadixIndex>,
    /// Where a conversation was last sent, and when.
    sessions: BTreeMap<u32, (u32, u64)>,
    evicted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    cache_threshold: f64,
    abs: f64,
    rel: f64,
    smallest_tree: bool,
    page: f64,
    interval: u64,
    max_tree: u64,
    session_ttl: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::SglangCacheAware);
        Knobs {
            cache_threshold: own.real("cache_threshold"),
            abs: own.real("balance_abs_threshold"),
            rel: own.real("balance_rel_threshold"),
            smallest_tree: own.is_on("miss"),
            page: own.real("page_size"),
            interval: own.picos("eviction_interval"),
            max_tree: own.whole("max_tree_size") as u64,
            session_ttl: own.picos("session_ttl"),
        }
    }
}

impl SglangCacheAware {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> SglangCacheAware {
        SglangCacheAware { knobs: Knobs::new(settings), tree: None, sessions: BTreeMap::new(), evicted: 0 }
    }

    /// Where its conversation is kept, if it is.
    fn session(&self, asked: &Asked<'_>, replicas: usize) -> Option<u32> {
        let (replica, at) = *self.sessions.get(&asked.session?)?;
        let kept = asked.now.0 - at < self.knobs.session_ttl && (replica as usize) < replicas;
        kept.then_some(replica)
    }
}

impl Policy for SglangCacheAware {
    fn name(&self) -> &'static str {
        "sglang-cache-aware"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs, items) = (replicas.len() as u32, self.knobs, asked.items);
        let session = self.session(asked, replicas.len());
        let tree = self.tree.get_or_insert_with(|| RadixIndex::new(asked.items_in(knobs.page)));
        if knobs.interval > 0 && asked.now.0 - self.evicted >= knobs.interval {
            self.evicted = asked.now.0;
            let most = knobs.max_tree / u64::from(asked.per_item.max(1));
            (0..n).for_each(|replica| tree.evict(replica, most));
        }
        let loads = requests(replicas);
        let most = *loads.iter().max().expect("a fleet has at least one replica") as f64;
        let (idlest, idle) = least(&loads);
        let fewest = loads[idlest as usize] as f64;
        let imbalanced = most - fewest > knobs.abs && most > knobs.rel * fewest;
        let found = tree.find(items);
        let rate = found.items as f64 / items.len().max(1) as f64;
        let holder = tree.holders(found.node).find(|&r| r < n).filter(|_| rate > knobs.cache_threshold);
        let (replica, reason, tied) = match (session, holder) {
            (Some(own), _) => (own, Reason::Session, 0),
            _ if imbalanced => (idlest, Reason::GuardFired, idle),
            (None, Some(holder)) => (holder, Reason::LongestMatch, 0),
            (None, None) if knobs.smallest_tree => {
                let smallest = all_least((0..n).map(|r| (r, tree.size_of(r))));
                (smallest[0], Reason::ShortMatch, smallest.len() as u32)
            }
            (None, None) => (idlest, Reason::ShortMatch, idle),
        };
        let own = tree.among(found, |r| r == replica);
        tree.insert(found, items, replica, asked.now.0);
        if let Some(session) = asked.session.filter(|_| knobs.session_ttl > 0) {
            self.sessions.insert(session, (replica, asked.now.0));
        }
        Decision {
            replica,
            reason,
            mean: Some(mean(&loads)),
            preferred: holder,
            guard_limit: Some((fewest + knobs.abs).max(knobs.rel * fewest)).filter(|limit| limit.is_finite()),
            tied,
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

    fn policy(knobs: &[(&str, f64)]) -> SglangCacheAware {
        SglangCacheAware::new(&tuned(PolicyKind::SglangCacheAware, knobs))
    }

    fn pick(policy: &mut SglangCacheAware, prompt: &[u32], loads: &[u32]) -> Decision {
        policy.route(&Asked::of(prompt), &in_flight(loads))
    }

    /// One runaway replica ends affinity for everybody: at a difference of 64 it holds, at 65 it does not.
    #[test]
    fn one_gate_is_for_the_whole_fleet() {
        let mut policy = policy(&[]);
        let (a, b): (Vec<u32>, Vec<u32>) = ((0..50).collect(), (100..150).collect());
        assert_eq!(pick(&mut policy, &a, &[1, 0, 1]).replica, 1);
        assert_eq!(pick(&mut policy, &b, &[1, 1, 0]).replica, 2);
        let held = pick(&mut policy, &a, &[64, 3, 0]);
        assert_eq!((held.replica, held.reason), (1, Reason::LongestMatch));
        let fired = pick(&mut policy, &a, &[65, 3, 0]);
        assert_eq!((fired.replica, fired.reason, fired.preferred), (2, Reason::GuardFired, Some(1)));
        // 195 is 65 above 130, but not over 1.5 times it.
        assert_eq!(pick(&mut policy, &b, &[195, 130, 130]).reason, Reason::LongestMatch);
        assert_eq!(pick(&mut policy, &b, &[196, 130, 130]).reason, Reason::GuardFired);
    }

    #[test]
    fn characters_match_anywhere_and_a_rate_must_be_above_the_threshold() {
        let mut policy = policy(&[]);
        let prompt = |shared: u32, own: u32| -> Vec<u32> {
            (0..10).map(|at| if at < shared { at } else { 100 * own + at }).collect()
        };
        pick(&mut policy, &prompt(10, 0), &[0, 0]);
        assert_eq!(
            pick(&mut policy, &prompt(3, 1), &[5, 0]).reason,
            Reason::ShortMatch,
            "0.3 is not above 0.3"
        );
        let four = pick(&mut policy, &prompt(4, 2), &[5, 0]);
        assert_eq!((four.replica, four.predicted, four.reason), (0, Some(4), Reason::LongestMatch));
    }

    #[test]
    fn before_pull_14305_a_miss_went_to_the_smallest_tree_however_busy() {
        let (long, short): (Vec<u32>, Vec<u32>) = ((0..90).collect(), (200..205).collect());
        for (miss, goes) in [(1.0, 1), (0.0, 0)] {
            let mut policy = policy(&[("miss", miss)]);
            assert_eq!(pick(&mut policy, &long, &[0, 9]).replica, 0);
            assert_eq!(pick(&mut policy, &short, &[9, 0]).replica, 1);
            assert_eq!(pick(&mut policy, &[7, 7, 7], &[0, 40]).replica, goes);
        }
    }

    #[test]
    fn a_conversation_is_kept_for_an_hour_where_that_is_asked_for() {
        let mut policy = policy(&[("session_ttl", 3600.0)]);
        let mut ask = |seconds, loads: &[u32]| {
            let asked = crate::policy::tools::asked(&[1, 2, 3], 0, seconds);
            policy.route(&Asked { session: Some(4), ..asked }, &in_flight(loads))
        };
        assert_eq!(ask(0.0, &[1, 0]).replica, 1);
        assert_eq!(ask(3599.0, &[0, 900]).reason, Reason::Session);
        assert_eq!(ask(7199.0, &[0, 900]).reason, Reason::GuardFired);
    }
}
