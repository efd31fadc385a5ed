//! `smg-prefix-hash`: SMG's lightweight alternative to its tree
//! (`model_gateway/src/policies/prefix_hash.rs`).
//!
//! The first 256 tokens are hashed onto a ring; its replica gets the request unless its load is above both
//! margins, `max(1.25 × average, average + 10)` with the average over all in flight and this one. Then it
//! is the least loaded, lowest index first, of those that are not; and the ring's own if all are. SMG
//! hashes with XXH3, here it is xxHash: which replica a key falls to differs, how keys spread does not.

use super::tools::{Ring, requests, xxh64};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, least, mean};

/// A ring, and a fallback to the least loaded.
#[derive(Clone, Debug)]
pub struct SmgPrefixHash {
    ring: Ring,
    vnodes: usize,
    prefix_tokens: f64,
    load_factor: f64,
    margin: f64,
}

impl SmgPrefixHash {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> SmgPrefixHash {
        let own = settings.tuning.of(PolicyKind::SmgPrefixHash);
        SmgPrefixHash {
            ring: Ring::default(),
            vnodes: own.whole("vnodes"),
            prefix_tokens: own.real("prefix_tokens"),
            load_factor: own.real("load_factor"),
            margin: own.real("balance_abs_threshold"),
        }
    }
}

impl Policy for SmgPrefixHash {
    fn name(&self) -> &'static str {
        "smg-prefix-hash"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        let ring = core::mem::take(&mut self.ring);
        *self = SmgPrefixHash { ring, ..SmgPrefixHash::new(settings) };
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        self.ring.resize(replicas.len(), self.vnodes);
        let loads = requests(replicas);
        let total: u64 = loads.iter().sum();
        let average = (total + 1) as f64 / replicas.len() as f64;
        let limit = (average * self.load_factor).max(average + self.margin);
        let prefix = &asked.items[..asked.items.len().min(asked.items_in(self.prefix_tokens))];
        let bytes: Vec<u8> = prefix.iter().flat_map(|item| item.to_le_bytes()).collect();
        let owner = self.ring.from(xxh64(&bytes, 0)).next().expect("a ring has points");
        let fits = |load: u64| total == 0 || load as f64 <= limit;
        // The least loaded fits if anybody does.
        let (lowest, tied) = least(&loads);
        let (replica, reason, tied) = if fits(loads[owner as usize]) || !fits(loads[lowest as usize]) {
            (owner, Reason::Preferred, 0)
        } else {
            (lowest, Reason::GuardFired, tied)
        };
        Decision {
            replica,
            reason,
            preferred: Some(owner),
            guard_limit: (total > 0).then_some(limit),
            mean: Some(mean(&loads)),
            tied,
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::in_flight;

    /// With 15 elsewhere the average is (15 + own + 1) ÷ 4, and ten above it is the wider margin.
    #[test]
    fn both_margins_must_be_passed() {
        let mut policy = SmgPrefixHash::new(&PolicySettings::default());
        let mut pick = |loads: &[u32]| policy.route(&Asked::of(&[1, 2, 3]), &in_flight(loads));
        let owner = pick(&[0; 4]).replica as usize;
        let lowest = usize::from(owner == 0);
        let with = |own| {
            let mut loads = [5; 4];
            loads[owner] = own;
            loads
        };
        // 18: (33 + 1) ÷ 4 = 8.5, and 18 ≤ 18.5; 19: 8.75, and 19 > 18.75.
        let at = pick(&with(18));
        assert_eq!((at.replica as usize, at.guard_limit, at.reason), (owner, Some(18.5), Reason::Preferred));
        let above = pick(&with(19));
        assert_eq!((above.replica as usize, above.reason, above.tied), (lowest, Reason::GuardFired, 3));
        assert_eq!(above.preferred, Some(owner as u32));
    }
}
