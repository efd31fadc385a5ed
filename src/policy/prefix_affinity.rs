//! `prefix-affinity`: every prompt prefix has a replica of its own, and a guard against the prefix
//! that is too popular for one.

use super::{Decision, Policy, PolicySettings, ReplicaLoad, guarded};
use crate::trace::Token;

/// Sends a prompt to the replica that its first tokens hash to, unless that replica's load is over
/// `max_imbalance` times the mean: then to the least loaded.
#[derive(Clone, Copy, Debug)]
pub struct PrefixAffinity {
    /// How many leading tokens are hashed.
    pub prefix_length: usize,
    /// The guard, as a factor of the mean load; infinite for none.
    pub max_imbalance: f64,
}

impl Policy for PrefixAffinity {
    fn name(&self) -> &'static str {
        "prefix-affinity"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.prefix_length = settings.prefix_length;
        self.max_imbalance = settings.max_imbalance;
    }

    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        let preferred = prefix_hash(prompt, self.prefix_length).rem_euclid(replicas.len() as i64) as u32;
        guarded(preferred, replicas, self.max_imbalance)
    }
}

/// The hash of a prompt's first so many tokens.
pub(super) fn prefix_hash(prompt: &[Token], length: usize) -> i64 {
    tuple_hash(&prompt[..prompt.len().min(length)])
}

/// The hash that CPython gives a tuple of these integers: a simplified xxHash over the items'
/// hashes (a small integer's hash is itself), so that a few lines of Python agree with ours.
/// Source of the constants: CPython, `Objects/tupleobject.c`, `tuplehash`, 64-bit.
pub fn tuple_hash(items: &[Token]) -> i64 {
    const PRIME_1: u64 = 11_400_714_785_074_694_791;
    const PRIME_2: u64 = 14_029_467_366_897_019_727;
    const PRIME_5: u64 = 2_870_177_450_012_600_261;
    let mut acc = PRIME_5;
    for &item in items {
        acc = acc.wrapping_add(u64::from(item).wrapping_mul(PRIME_2));
        acc = acc.rotate_left(31).wrapping_mul(PRIME_1);
    }
    acc = acc.wrapping_add(items.len() as u64 ^ (PRIME_5 ^ 3_527_539));
    // CPython keeps -1 for errors.
    if acc == u64::MAX { 1_546_275_796 } else { acc as i64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Reason;

    fn loads(tokens: &[u64]) -> Vec<ReplicaLoad> {
        tokens.iter().map(|&t| ReplicaLoad { outstanding_tokens: t, ..Default::default() }).collect()
    }

    /// Printed by CPython 3.11: `hash(t), hash(t) % 4, hash(t) % 7`.
    #[test]
    fn the_hash_is_cpythons() {
        let bytes: Vec<Token> = b"You are a helpful assistant.".iter().map(|&b| Token::from(b)).collect();
        let cases: [(&[Token], i64, i64, i64); 5] = [
            (&[], 5_740_354_900_026_072_187, 3, 1),
            (&[0], -8_753_497_827_991_233_192, 0, 6),
            (&[1, 2, 3], 529_344_067_295_497_451, 3, 4),
            (&(0..64).collect::<Vec<_>>(), 8_814_755_866_189_979_958, 2, 0),
            (&bytes, 1_208_489_209_368_004_703, 3, 6),
        ];
        for (items, hash, mod_4, mod_7) in cases {
            assert_eq!(tuple_hash(items), hash);
            assert_eq!((hash.rem_euclid(4), hash.rem_euclid(7)), (mod_4, mod_7));
        }
    }

    #[test]
    fn only_the_prefix_counts() {
        let mut policy = PrefixAffinity { prefix_length: 3, max_imbalance: 2.0 };
        let idle = loads(&[0, 0, 0, 0]);
        let a = policy.select(&[1, 2, 3, 4], &idle);
        let b = policy.select(&[1, 2, 3, 9, 9], &idle);
        assert_eq!((a.replica, b.replica, a.reason), (3, 3, Reason::Preferred));
        assert_eq!(a.guard_limit, None, "an idle fleet has no mean to be above");
    }

    #[test]
    fn the_guard_fires_above_the_limit_and_not_at_it() {
        let mut policy = PrefixAffinity { prefix_length: 3, max_imbalance: 2.0 };
        let at = policy.select(&[1, 2, 3], &loads(&[50, 30, 20, 100]));
        assert_eq!((at.replica, at.reason, at.guard_limit), (3, Reason::Preferred, Some(100.0)));
        let above = policy.select(&[1, 2, 3], &loads(&[50, 30, 20, 101]));
        assert_eq!((above.replica, above.reason, above.preferred), (2, Reason::GuardFired, Some(3)));
    }

    #[test]
    fn without_a_guard_it_never_moves() {
        let mut policy = PrefixAffinity { prefix_length: 3, max_imbalance: f64::INFINITY };
        let decision = policy.select(&[1, 2, 3], &loads(&[0, 0, 0, u64::from(u32::MAX)]));
        assert_eq!((decision.replica, decision.reason, decision.guard_limit), (3, Reason::Preferred, None));
    }
}
