//! `chwbl`: consistent hashing with bounded loads, KubeAI's PrefixHash strategy
//! (`internal/loadbalancer/balance_chwbl.go` @2f32ef49).
//!
//! The first 100 characters are hashed (xxHash, 64 bits) onto a ring on which each replica has 256
//! points; from there the ring is walked to the first replica that has room:
//! `in flight + 1 ≤ 1.25 × (all in flight + 1) ÷ replicas`. With nothing in flight everybody has; if
//! nobody has, it is the first after all. There are no adapters here, and a replica's name stands in for
//! its address, so that a prefix's owner is another than in any real cluster.

use super::tools::{Ring, bytes_of, requests, xxh64};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, mean};

/// A ring, and a bound on how far above the mean a replica may be.
#[derive(Clone, Debug)]
pub struct Chwbl {
    ring: Ring,
    vnodes: usize,
    load_factor: f64,
    prefix_tokens: f64,
}

impl Chwbl {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> Chwbl {
        let own = settings.tuning.of(PolicyKind::Chwbl);
        Chwbl {
            ring: Ring::default(),
            vnodes: own.whole("vnodes"),
            load_factor: own.real("load_factor"),
            prefix_tokens: own.real("prefix_chars") / own.real("chars_per_token"),
        }
    }
}

impl Policy for Chwbl {
    fn name(&self) -> &'static str {
        "chwbl"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        let ring = core::mem::take(&mut self.ring);
        *self = Chwbl { ring, ..Chwbl::new(settings) };
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        self.ring.resize(replicas.len(), self.vnodes);
        let loads = requests(replicas);
        let total: u64 = loads.iter().sum();
        let limit = (total + 1) as f64 / replicas.len() as f64 * self.load_factor;
        let prefix = &asked.items[..asked.items.len().min(asked.items_in(self.prefix_tokens))];
        let hash = xxh64(&bytes_of(prefix), 0);
        let owner = self.ring.from(hash).next().expect("a ring has points");
        let has_room = |&replica: &u32| total == 0 || (loads[replica as usize] + 1) as f64 <= limit;
        let found = self.ring.from(hash).find(has_room);
        let replica = found.unwrap_or(owner);
        Decision {
            replica,
            reason: if replica == owner { Reason::Preferred } else { Reason::NextOnRing },
            preferred: Some(owner),
            guard_limit: (total > 0).then_some(limit - 1.0),
            mean: Some(mean(&loads)),
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::in_flight;

    fn pick(policy: &mut Chwbl, loads: &[u32]) -> Decision {
        let prompt: Vec<u32> = b"You are a helpful assistant.".iter().map(|&b| b.into()).collect();
        policy.route(&Asked::of(&prompt), &in_flight(loads))
    }

    /// Of four replicas with 12 in flight the bound is 1.25 × 13 ÷ 4 = 4.0625: three and this one fit,
    /// four and this one do not.
    #[test]
    fn the_owner_gets_it_up_to_the_bound_and_then_the_next_with_room() {
        let mut policy = Chwbl::new(&PolicySettings::default());
        let calm = pick(&mut policy, &[0; 4]);
        let owner = calm.replica;
        assert_eq!(
            (calm.reason, calm.guard_limit),
            (Reason::Preferred, None),
            "with nothing in flight all have room"
        );
        let with = |own: u32, others: u32| {
            let mut loads = [others; 4];
            loads[owner as usize] = own;
            loads
        };
        let at = pick(&mut policy, &with(3, 3));
        assert_eq!((at.replica, at.guard_limit), (owner, Some(3.0625)));
        let above = pick(&mut policy, &with(6, 2));
        assert_eq!((above.reason, above.preferred), (Reason::NextOnRing, Some(owner)));
        assert_ne!(above.replica, owner);
        let mut loads = with(6, 0);
        loads[above.replica as usize] = 6;
        let further = pick(&mut policy, &loads);
        assert!(further.replica != owner && further.replica != above.replica, "the ring is walked on");
    }

    #[test]
    fn where_nobody_has_room_it_is_the_owner_after_all() {
        let tuning = PolicySettings::default().tuning.with("chwbl.load_factor", 1.0);
        let mut policy = Chwbl::new(&PolicySettings { tuning, ..PolicySettings::default() });
        let owner = pick(&mut policy, &[0; 4]).replica;
        let full = pick(&mut policy, &[5; 4]);
        assert_eq!((full.replica, full.reason), (owner, Reason::Preferred));
    }

    #[test]
    fn only_the_first_hundred_characters_count() {
        let mut policy = Chwbl::new(&PolicySettings::default());
        let prompt: Vec<u32> = (0..300).map(|at| 32 + at % 90).collect();
        let (a, b) = (&prompt[..150], &[&prompt[..100], &[7; 200][..]].concat());
        let fleet = in_flight(&[0; 16]);
        assert_eq!(policy.route(&Asked::of(a), &fleet).replica, policy.route(&Asked::of(b), &fleet).replica);
    }
}
