//! `round-robin`: each replica in turn, the default of every load balancer.

use super::{Decision, Policy, Reason, ReplicaLoad};
use crate::trace::Token;

/// Balances counts of requests, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct RoundRobin {
    turn: u64,
}

impl Policy for RoundRobin {
    fn name(&self) -> &'static str {
        "round-robin"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn select(&mut self, _prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        let replica = (self.turn % replicas.len() as u64) as u32;
        self.turn += 1;
        Decision { replica, reason: Reason::NextInTurn, ..Decision::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_turns_whatever_the_load() {
        let busy = ReplicaLoad { waiting: 9, running: 9, outstanding_tokens: 9000, ..Default::default() };
        let fleet = [busy, ReplicaLoad::default(), ReplicaLoad::default()];
        let mut policy = RoundRobin::default();
        let picks: Vec<u32> = (0..7).map(|_| policy.select(&[1], &fleet).replica).collect();
        assert_eq!(picks, [0, 1, 2, 0, 1, 2, 0]);
    }
}
