//! `aibrix-prefix-cache`: AIBrix's prefix cache (`pkg/plugins/gateway/algorithms/prefix_cache.go` and
//! `pkg/utils/prefixcacheindexer/hash.go` @e3e10f9e).
//!
//! Chained hashes over blocks of four characters say to whom each prefix was sent, for up to 200,000
//! blocks and 20 minutes. If the most and the fewest requests in flight differ by more than eight, only
//! replicas with the fewest are looked at. Of those with any match the longest (in whole percent) comes
//! first, then the fewest requests, then whoever is drawn; the first whose requests are at most the mean
//! and one standard deviation (n − 1 in the divisor) gets the request, and if none is, the fewest requests
//! of all, ties drawn. Whatever was decided is put into the index.
//!
//! A later version asks for the gate that the most be above twice the mean and one as well.

use super::index::{BlockIndex, Lru, chain};
use super::tools::{Dice, all_least, requests};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, mean};

/// The index with its limits.
#[derive(Clone, Debug)]
pub struct AibrixPrefixCache {
    dice: Dice,
    knobs: Knobs,
    index: BlockIndex,
    lru: Lru,
    hashes: Vec<u64>,
    matched: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Knobs {
    gap: f64,
    deviations: f64,
    block: f64,
    capacity: usize,
    ttl: u64,
}

impl Knobs {
    fn new(settings: &PolicySettings) -> Knobs {
        let own = settings.tuning.of(PolicyKind::AibrixPrefixCache);
        Knobs {
            gap: own.real("imbalance_gap"),
            deviations: own.real("deviations"),
            block: own.real("block_chars") / own.real("chars_per_token"),
            capacity: own.whole("capacity"),
            ttl: own.picos("ttl"),
        }
    }
}

/// The standard deviation of a sample.
fn deviation(loads: &[u64], mean: f64) -> f64 {
    if loads.len() < 2 {
        return 0.0;
    }
    let squares: f64 = loads.iter().map(|&load| (load as f64 - mean) * (load as f64 - mean)).sum();
    libm::sqrt(squares / (loads.len() - 1) as f64)
}

impl AibrixPrefixCache {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> AibrixPrefixCache {
        AibrixPrefixCache {
            dice: Dice::new(settings.seed),
            knobs: Knobs::new(settings),
            index: BlockIndex::default(),
            lru: Lru::default(),
            hashes: Vec::new(),
            matched: Vec::new(),
        }
    }
}

impl Policy for AibrixPrefixCache {
    fn name(&self) -> &'static str {
        "aibrix-prefix-cache"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.knobs = Knobs::new(settings);
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let (n, knobs, now) = (replicas.len() as u32, self.knobs, asked.now.0);
        while let Some(block) = self.lru.pop(knobs.capacity, now.saturating_sub(knobs.ttl)) {
            self.index.forget(block);
        }
        let block = asked.items_in(knobs.block);
        chain(asked.items, block, false, &mut self.hashes);
        self.matched.resize(n as usize, 0);
        self.index.leading(&self.hashes, &mut self.matched);
        let loads = requests(replicas);
        let (mean, load) = (mean(&loads), |replica: u32| loads[replica as usize]);
        let idlest = all_least((0..n).map(|replica| (replica, load(replica))));
        let most = *loads.iter().max().expect("a fleet has at least one replica");
        let gated = (most - load(idlest[0])) as f64 > knobs.gap;
        let looked_at: Vec<u32> = if gated { idlest.clone() } else { (0..n).collect() };
        let matched = |replica: u32| self.matched[replica as usize];
        let percent = |replica: u32| 100 * u64::from(matched(replica)) / self.hashes.len().max(1) as u64;
        let limit = mean + knobs.deviations * deviation(&loads, mean);
        let fits = |&replica: &u32| matched(replica) > 0 && load(replica) as f64 <= limit;
        let order = |replica: u32| (core::cmp::Reverse(percent(replica)), load(replica));
        let best = all_least(looked_at.iter().copied().filter(fits).map(|replica| (replica, order(replica))));
        let longest = looked_at.iter().copied().filter(|&r| matched(r) > 0).min_by_key(|&r| order(r));
        let (replica, reason, tied) = match (best.is_empty(), longest) {
            (false, _) => (self.dice.one_of(&best), Reason::LongestMatch, best.len()),
            (true, Some(_)) => (self.dice.one_of(&idlest), Reason::GuardFired, idlest.len()),
            (true, None) => (self.dice.one_of(&idlest), Reason::ShortMatch, idlest.len()),
        };
        let predicted = asked.tokens_in(matched(replica) as usize * block);
        for &hash in &self.hashes {
            self.index.add(hash, replica);
            self.lru.touch(hash, now);
        }
        Decision {
            replica,
            reason,
            mean: Some(mean),
            preferred: longest,
            guard_limit: Some(limit).filter(|limit| limit.is_finite()),
            tied: tied as u32,
            candidates: if gated { looked_at } else { Vec::new() },
            predicted: Some(predicted),
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::{asked, in_flight, tuned};

    fn policy(knobs: &[(&str, f64)]) -> AibrixPrefixCache {
        AibrixPrefixCache::new(&tuned(PolicyKind::AibrixPrefixCache, knobs))
    }

    fn prompt(shared: usize, own: u32) -> Vec<u32> {
        (0..40).map(|at| if at < shared { 7 } else { 100 + own }).collect()
    }

    fn send(policy: &mut AibrixPrefixCache, prompt: &[u32], loads: &[u32]) -> Decision {
        policy.route(&asked(prompt, 0, 0.0), &in_flight(loads))
    }

    /// Of loads 3, 2, 1 the mean is 2 and σ = 1: three are just within; of 4, 2, 0 σ = 2 and four too;
    /// of 6, 2, 1 the mean is 3 and σ = √7 = 2.6: six are not.
    #[test]
    fn a_match_counts_within_a_deviation_of_the_mean() {
        let mut policy = policy(&[]);
        assert_eq!(send(&mut policy, &prompt(20, 0), &[0, 5, 5]).replica, 0);
        let within = send(&mut policy, &prompt(20, 1), &[3, 2, 1]);
        assert_eq!((within.replica, within.guard_limit, within.predicted), (0, Some(3.0), Some(20)));
        assert_eq!(send(&mut policy, &prompt(20, 2), &[4, 2, 0]).replica, 0);
        let beyond = send(&mut policy, &prompt(20, 3), &[6, 2, 1]);
        assert_eq!((beyond.replica, beyond.reason, beyond.preferred), (2, Reason::GuardFired, Some(0)));
    }

    #[test]
    fn a_difference_above_eight_leaves_only_the_idlest() {
        let mut policy = policy(&[("deviations", f64::INFINITY)]);
        send(&mut policy, &prompt(20, 0), &[0, 5, 5]);
        assert_eq!(send(&mut policy, &prompt(20, 1), &[8, 0, 4]).replica, 0);
        let gated = send(&mut policy, &prompt(20, 2), &[9, 0, 4]);
        assert_eq!((gated.replica, gated.reason, gated.candidates), (1, Reason::ShortMatch, vec![1]));
    }

    #[test]
    fn the_longest_match_comes_first_then_the_fewest_requests() {
        let mut policy = policy(&[("deviations", f64::INFINITY)]);
        send(&mut policy, &prompt(8, 0), &[0, 5, 5]);
        send(&mut policy, &prompt(20, 1), &[9, 0, 9]);
        assert_eq!(send(&mut policy, &prompt(20, 2), &[0, 7, 0]).replica, 1, "20 of 40 against 8");
        send(&mut policy, &prompt(40, 3), &[9, 9, 0]);
        assert_eq!(send(&mut policy, &prompt(20, 4), &[0, 3, 2]).replica, 2, "both have 20");
        assert_eq!(send(&mut policy, &prompt(3, 5), &[0, 1, 1]).reason, Reason::ShortMatch, "no whole block");
    }

    #[test]
    fn blocks_go_by_number_and_by_age() {
        let mut policy = policy(&[("capacity", 10.0), ("ttl", 100.0)]);
        let mut at =
            |prompt: &[u32], seconds| policy.route(&asked(prompt, 0, seconds), &in_flight(&[0])).predicted;
        assert_eq!(at(&prompt(40, 0), 0.0), Some(0));
        assert_eq!(at(&prompt(40, 0), 99.0), Some(40));
        assert_eq!(at(&prompt(40, 0), 200.0), Some(0), "101 s without being used");
        assert_eq!(at(&prompt(0, 9), 201.0), Some(0));
        assert_eq!(at(&prompt(40, 0), 202.0), Some(0), "ten other blocks came since");
    }
}
