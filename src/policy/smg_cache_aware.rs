//! `smg-cache-aware`: SMG's rule with a gate for each candidate
//! (`model_gateway/src/policies/cache_aware.rs` @f8daa883; defaults of its Python command line).
//!
//! A radix tree remembers what was sent where, in pages of 16 tokens. If more than 0.3 of the prompt is
//! found, the least loaded of the deepest node's holders (at most eight) is the candidate, ties drawn; if
//! not, the replica with the fewest requests, then with the fewest sent so far, then of the lowest index.
//! A candidate whose requests are above both 1.5 times the mean and the mean and 64 is left for that one.
//! Whatever was decided is put into the tree. Each replica's part of it is cut to size every 60 s.
//!
//! With `page_size` 1 it is the character tree of its HTTP mode. Where prompts are told by ids of blocks,
//! an id is the least that can be told apart.

use super::index::RadixIndex;
use super::tools::{Dice, all_least, requests};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, mean};

/// The tree, and what the rule is tuned by.
#[derive(Clone, Debug)]
pub struct SmgCacheAware {
    dice: Dice,
    knobs: Knobs,
    tree: Option<RadixIndex>,
    /// Requests sent to each replica so far.
    processed: Vec<u64>,
    evicted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    cache_threshold: f64,
    abs: f64,
    rel: f64,
    page: f64,
    holders: usize,
    interval: u64,
    max_tree: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::SmgCacheAware);
        Knobs {
            cache_threshold: own.real("cache_threshold"),
            abs: own.real("balance_abs_threshold"),
            rel: own.real("balance_rel_threshold"),
            page: own.real("page_size"),
            holders: own.whole("holders"),
            interval: own.picos("eviction_interval"),
            max_tree: own.whole("max_tree_size") as u64,
        }
    }
}

impl SmgCacheAware {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> SmgCacheAware {
        SmgCacheAware {
            dice: Dice::new(settings.seed),
            knobs: Knobs::new(settings),
            tree: None,
            processed: Vec::new(),
            evicted: 0,
        }
    }

    /// Its tree, once it has decided anything.
    pub fn tree(&self) -> Option<&RadixIndex> {
        self.tree.as_ref()
    }
}

impl Policy for SmgCacheAware {
    fn name(&self) -> &'static str {
        "smg-cache-aware"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs, items) = (replicas.len() as u32, self.knobs, asked.items);
        self.processed.resize(self.processed.len().max(n as usize), 0);
        let tree = self.tree.get_or_insert_with(|| RadixIndex::new(asked.items_in(knobs.page)));
        if knobs.interval > 0 && asked.now.0 - self.evicted >= knobs.interval {
            self.evicted = asked.now.0;
            let most = knobs.max_tree / u64::from(asked.per_item.max(1));
            (0..n).for_each(|replica| tree.evict(replica, most));
        }
        let loads = requests(replicas);
        let mean = mean(&loads);
        let processed = &self.processed;
        let idlest = all_least((0..n).map(|r| (r, (loads[r as usize], processed[r as usize]))));
        let found = tree.find(items);
        let rate = found.items as f64 / items.len().max(1) as f64;
        let holders: Vec<u32> = match rate > knobs.cache_threshold {
            true => tree.holders(found.node).filter(|&r| r < n).take(knobs.holders).collect(),
            false => Vec::new(),
        };
        let limit = (knobs.rel * mean).max(mean + knobs.abs);
        let best = all_least(holders.iter().map(|&r| (r, loads[r as usize])));
        let preferred = (!best.is_empty()).then(|| self.dice.one_of(&best));
        let (replica, reason, tied) = match preferred {
            None => (idlest[0], Reason::ShortMatch, idlest.len()),
            Some(holder) if loads[holder as usize] as f64 > limit => {
                (idlest[0], Reason::GuardFired, idlest.len())
            }
            Some(holder) => (holder, Reason::LongestMatch, best.len()),
        };
        let own = tree.among(found, |r| r == replica);
        tree.insert(found, items, replica, asked.now.0);
        self.processed[replica as usize] += 1;
        Decision {
            replica,
            reason,
            mean: Some(mean),
            preferred,
            guard_limit: Some(limit).filter(|limit| limit.is_finite()),
            tied: tied as u32,
            candidates: holders,
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

    fn policy(knobs: &[(&str, f64)]) -> SmgCacheAware {
        SmgCacheAware::new(&tuned(PolicyKind::SmgCacheAware, knobs))
    }

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..100).map(|at| if at < shared { at as u32 } else { 1000 * own + at as u32 }).collect()
    }

    fn pick(policy: &mut SmgCacheAware, prompt: &[u32], loads: &[u32]) -> Decision {
        policy.route(&Asked::of(prompt), &in_flight(loads))
    }

    /// Pages of 16: of 100 tokens 96 are kept, and of 40 shared ones 32, which are 0.32 of the prompt.
    #[test]
    fn a_match_above_the_threshold_is_followed_and_one_below_is_not() {
        let mut policy = policy(&[]);
        let first = pick(&mut policy, &prompt(0, 1), &[0, 0, 0]);
        assert_eq!((first.replica, first.reason, first.predicted), (0, Reason::ShortMatch, Some(0)));
        let same = pick(&mut policy, &prompt(0, 1), &[9, 0, 0]);
        assert_eq!((same.replica, same.reason, same.predicted), (0, Reason::LongestMatch, Some(96)));
        pick(&mut policy, &prompt(40, 2), &[0, 9, 9]);
        let above = pick(&mut policy, &prompt(40, 3), &[9, 0, 0]);
        assert_eq!((above.replica, above.predicted), (0, Some(32)));
        pick(&mut policy, &prompt(31, 4), &[5, 9, 0]);
        let below = pick(&mut policy, &prompt(31, 5), &[5, 0, 9]);
        assert_eq!((below.replica, below.reason), (1, Reason::ShortMatch), "16 of 100 are too few");
    }

    /// With a mean of 30 the gate is at max(45, 94): 94 stay, 95 go.
    #[test]
    fn a_candidate_above_both_gates_is_left_for_the_idlest() {
        let mut policy = policy(&[]);
        pick(&mut policy, &prompt(0, 1), &[0, 1, 1]);
        let at = pick(&mut policy, &prompt(0, 1), &[94, 0, 0]);
        let limit = 94.0 / 3.0 + 64.0;
        assert_eq!((at.replica, at.guard_limit), (0, Some(limit)));
        let above = pick(&mut policy, &prompt(0, 1), &[97, 0, 0]);
        assert_eq!((above.replica, above.reason, above.preferred), (1, Reason::GuardFired, Some(0)));
        // It was put into the tree there too; now both hold it and the less loaded has it.
        let next = pick(&mut policy, &prompt(0, 1), &[97, 3, 0]);
        assert_eq!((next.replica, next.reason, next.candidates), (1, Reason::LongestMatch, vec![0, 1]));
    }

    #[test]
    fn the_idlest_is_by_requests_then_by_how_many_it_was_sent() {
        let mut policy = policy(&[]);
        let picks: Vec<u32> =
            (0..4).map(|own| pick(&mut policy, &prompt(0, own), &[0, 0, 0]).replica).collect();
        assert_eq!(picks, [0, 1, 2, 0]);
    }

    #[test]
    fn with_pages_of_a_token_it_matches_anywhere() {
        let mut policy = policy(&[("page_size", 1.0)]);
        pick(&mut policy, &prompt(40, 2), &[0, 0]);
        assert_eq!(pick(&mut policy, &prompt(33, 3), &[9, 0]).predicted, Some(33));
    }

    #[test]
    fn what_is_too_much_is_forgotten_when_eviction_is_due() {
        let mut policy = policy(&[("max_tree_size", 50.0), ("eviction_interval", 60.0)]);
        let at = |seconds| crate::policy::tools::asked(&[], 0, seconds).now;
        let ask = |policy: &mut SmgCacheAware, prompt: &[u32], seconds| {
            policy.route(&Asked { now: at(seconds), ..Asked::of(prompt) }, &in_flight(&[0]))
        };
        ask(&mut policy, &prompt(0, 1), 0.0);
        assert_eq!(ask(&mut policy, &prompt(0, 1), 59.0).predicted, Some(96));
        assert_eq!(ask(&mut policy, &prompt(0, 1), 60.0).predicted, Some(0));
    }
}
