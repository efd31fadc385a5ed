//! `modulo-hash`: a prompt's prefix belongs to replica number hash mod n. It is as simple as it gets, and the
//! wrong thing for a fleet whose size changes: from n to n + 1 replicas, n of n + 1 prefixes move.

use super::prefix_affinity::prefix_hash;
use super::{Decision, Policy, PolicySettings, ReplicaLoad, belongs};
use crate::trace::Token;

/// Sends a prompt to the replica that its first tokens hash to, whatever the load: `prefix-affinity` without a
/// guard.
#[derive(Clone, Copy, Debug)]
pub struct ModuloHash {
    /// How many leading tokens are hashed.
    pub prefix_length: usize,
}

impl Policy for ModuloHash {
    fn name(&self) -> &'static str {
        "modulo-hash"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.prefix_length = settings.prefix_length;
    }

    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        belongs(prefix_hash(prompt, self.prefix_length).rem_euclid(replicas.len() as i64) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::Reason;

    #[test]
    fn it_is_prefix_affinity_without_a_guard() {
        let fleet = [ReplicaLoad::default(), ReplicaLoad { outstanding_tokens: 9, ..Default::default() }];
        let mut policy = ModuloHash { prefix_length: 3 };
        let mut guarded = crate::policy::PrefixAffinity { prefix_length: 3, max_imbalance: f64::INFINITY };
        for first in 0..50 {
            let prompt = [first, 2, 3, 99];
            let decision = policy.select(&prompt, &fleet);
            assert_eq!(decision.replica, guarded.select(&prompt, &fleet).replica);
            assert_eq!((decision.reason, decision.preferred), (Reason::Preferred, Some(decision.replica)));
        }
    }
}
