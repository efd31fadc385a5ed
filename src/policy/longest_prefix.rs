//! `longest-prefix`: whoever has most of the prompt already, by looking instead of by hashing.
//!
//! Without a guard it has a trap: where nobody has anything, the lowest index gets the request, and
//! from then on has something. A fleet whose prompts share a beginning becomes a fleet of one.

use super::{Decision, Policy, PolicySettings, Reason, ReplicaLoad, guarded};
use crate::trace::Token;

/// Sends a prompt to the replica that holds the most of its leading blocks, ties to the lowest index,
/// unless that replica's load is over `max_imbalance` times the mean: then to the least loaded.
#[derive(Clone, Copy, Debug)]
pub struct LongestPrefix {
    /// The guard, as a factor of the mean load; infinite for none.
    pub max_imbalance: f64,
}

impl Policy for LongestPrefix {
    fn name(&self) -> &'static str {
        "longest-prefix"
    }

    fn reads_matches(&self) -> bool {
        true
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.max_imbalance = settings.longest_prefix_guard;
    }

    fn select(&mut self, _prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        let matched: Vec<u32> = replicas.iter().map(|r| r.matched_blocks).collect();
        let most = matched.iter().copied().max().expect("a fleet has at least one replica");
        let preferred = matched.iter().position(|&m| m == most).expect("the maximum is one of them") as u32;
        let tied = matched.iter().filter(|&&m| m == most).count() as u32;
        let decision = guarded(preferred, replicas, self.max_imbalance);
        match decision.reason {
            Reason::GuardFired => Decision { matched, ..decision },
            _ => Decision { reason: Reason::LongestMatch, tied, matched, ..decision },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(of: &[(u32, u64)]) -> Vec<ReplicaLoad> {
        of.iter()
            .map(|&(matched_blocks, outstanding_tokens)| ReplicaLoad {
                matched_blocks,
                outstanding_tokens,
                ..Default::default()
            })
            .collect()
    }

    fn choice(guard: f64, of: &[(u32, u64)]) -> Decision {
        LongestPrefix { max_imbalance: guard }.select(&[1], &fleet(of))
    }

    #[test]
    fn the_most_blocks_win_and_ties_go_low_whatever_the_load() {
        let decision = choice(f64::INFINITY, &[(2, 0), (5, 9000), (5, 10), (0, 0)]);
        assert_eq!((decision.replica, decision.reason, decision.tied), (1, Reason::LongestMatch, 2));
        assert_eq!((decision.matched, decision.loads), (vec![2, 5, 5, 0], vec![0, 9000, 10, 0]));
        assert_eq!((decision.preferred, decision.guard_limit), (Some(1), None));
    }

    #[test]
    fn where_nobody_has_anything_the_first_gets_it() {
        let decision = choice(f64::INFINITY, &[(0, 700), (0, 0), (0, 0)]);
        assert_eq!((decision.replica, decision.tied), (0, 3));
    }

    #[test]
    fn the_guard_fires_above_the_limit_and_not_at_it() {
        let at = choice(2.0, &[(0, 50), (0, 30), (0, 20), (3, 100)]);
        assert_eq!((at.replica, at.reason, at.guard_limit), (3, Reason::LongestMatch, Some(100.0)));
        let above = choice(2.0, &[(0, 50), (0, 30), (0, 20), (3, 101)]);
        assert_eq!((above.replica, above.reason, above.preferred), (2, Reason::GuardFired, Some(3)));
        assert_eq!((above.tied, above.matched), (1, vec![0, 0, 0, 3]), "the tie is of loads here");
    }
}
