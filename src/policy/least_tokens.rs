//! `least-tokens`: fewest outstanding tokens. A token is nearly a unit of work.

use super::{Decision, Policy, ReplicaLoad, least_loaded};
use crate::trace::Token;

/// Balances prompt plus remaining budget over everything in flight; ties to the lowest index.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastTokens;

impl Policy for LeastTokens {
    fn name(&self) -> &'static str {
        "least-tokens"
    }

    fn select(&mut self, _prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        least_loaded(replicas.iter().map(|r| r.outstanding_tokens).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loads(tokens: &[u64]) -> Vec<ReplicaLoad> {
        tokens.iter().map(|&t| ReplicaLoad { outstanding_tokens: t, ..Default::default() }).collect()
    }

    #[test]
    fn picks_the_least_work_and_breaks_ties_low() {
        let decision = LeastTokens.select(&[1], &loads(&[700, 20, 20, 900]));
        assert_eq!((decision.replica, decision.tied, decision.mean), (1, 2, Some(410.0)));
    }

    #[test]
    fn an_idle_fleet_is_a_tie_of_all() {
        let decision = LeastTokens.select(&[1], &loads(&[0, 0, 0, 0]));
        assert_eq!((decision.replica, decision.tied), (0, 4));
    }
}
