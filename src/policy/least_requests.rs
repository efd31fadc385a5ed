//! `least-requests`: fewest requests waiting and running, the generic balancer's
//! least-connections. A request is not a unit of work; it is here as the contrast.

use super::{Decision, Policy, ReplicaLoad, least_loaded};
use crate::trace::Token;

/// Balances requests in flight; ties to the lowest index.
#[derive(Clone, Copy, Debug, Default)]
pub struct LeastRequests;

impl Policy for LeastRequests {
    fn name(&self) -> &'static str {
        "least-requests"
    }

    fn select(&mut self, _prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        least_loaded(replicas.iter().map(|r| u64::from(r.waiting + r.running)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_requests_not_tokens() {
        let one_long = ReplicaLoad { running: 1, outstanding_tokens: 100_000, ..Default::default() };
        let two_short = ReplicaLoad { waiting: 1, running: 1, outstanding_tokens: 20, ..Default::default() };
        let decision = LeastRequests.select(&[1], &[two_short, one_long]);
        assert_eq!((decision.replica, decision.loads, decision.tied), (1, vec![2, 1], 1));
    }
}
