//! `random`: a replica is drawn. LiteLLM's simple-shuffle without weights, and SMG's `random`.

use super::tools::Dice;
use super::{Decision, Policy, PolicySettings, Reason, ReplicaLoad};
use crate::trace::Token;

/// Draws evenly, from a seed.
#[derive(Clone, Debug)]
pub struct Random {
    dice: Dice,
}

impl Random {
    /// Fresh, with the settings' seed.
    pub fn new(settings: &PolicySettings) -> Random {
        Random { dice: Dice::new(settings.seed) }
    }
}

impl Policy for Random {
    fn name(&self) -> &'static str {
        "random"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn select(&mut self, _prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        let replica = self.dice.below(replicas.len()) as u32;
        Decision { replica, reason: Reason::Drawn, ..Decision::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_decides_and_the_load_does_not() {
        let picks = |seed, busy| {
            let mut policy = Random::new(&PolicySettings { seed, ..PolicySettings::default() });
            let fleet = super::super::tools::in_flight(&[busy, 0, 0]);
            (0..50).map(|_| policy.select(&[1], &fleet).replica).collect::<Vec<_>>()
        };
        assert_eq!(picks(1, 0), picks(1, 99));
        assert_ne!(picks(1, 0), picks(2, 0));
        assert!((0..3).all(|replica| picks(1, 0).contains(&replica)));
    }
}
