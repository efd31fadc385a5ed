//! `power-of-two`: of two that are drawn, the one with less to do. Envoy's LEAST_REQUEST with
//! `choice_count` 2, Ray Serve's default router, SMG's `power_of_two`; a tie goes to the first drawn.

use super::tools::Dice;
use super::{Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad};
use crate::trace::Token;

/// Draws two and compares them.
#[derive(Clone, Debug)]
pub struct PowerOfTwo {
    dice: Dice,
    by_tokens: bool,
}

impl PowerOfTwo {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> PowerOfTwo {
        let by_tokens = settings.tuning.of(PolicyKind::PowerOfTwo).is_on("by");
        PowerOfTwo { dice: Dice::new(settings.seed), by_tokens }
    }
}

impl Policy for PowerOfTwo {
    fn name(&self) -> &'static str {
        "power-of-two"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.by_tokens = PowerOfTwo::new(settings).by_tokens;
    }

    fn select(&mut self, _prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        let load = |replica: &ReplicaLoad| {
            if self.by_tokens { replica.outstanding_tokens } else { replica.requests() }
        };
        let loads: Vec<u64> = replicas.iter().map(load).collect();
        let (first, second) = self.dice.two(replicas.len());
        let (a, b) = (loads[first as usize], loads[second as usize]);
        Decision {
            replica: if b < a { second } else { first },
            reason: Reason::LeastLoaded,
            mean: Some(super::mean(&loads)),
            tied: 1 + u32::from(a == b && first != second),
            candidates: vec![first, second],
            loads,
            ..Decision::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lesser_of_two_wins_and_the_busiest_never_does() {
        let mut policy = PowerOfTwo::new(&PolicySettings::default());
        let fleet = super::super::tools::in_flight(&[3, 9, 1, 3]);
        for _ in 0..200 {
            let decision = policy.select(&[1], &fleet);
            let [a, b] = decision.candidates[..] else { panic!("two are drawn") };
            let other = if decision.replica == a { b } else { a };
            let load = |replica: u32| fleet[replica as usize].running;
            assert!(load(decision.replica) <= load(other));
            assert_ne!(decision.replica, 1, "somebody else is always drawn beside it");
            if load(a) == load(b) {
                assert_eq!((decision.replica, decision.tied), (a, 2), "a tie goes to the first drawn");
            }
        }
        let one = policy.select(&[1], &fleet[..1]);
        assert_eq!((one.replica, one.tied), (0, 1));
    }
}
