//! `rendezvous-hash`: each replica draws a number for a prompt's prefix, and the highest gets it. When a replica
//! goes, only its own prefixes move, each to whoever drew the second highest, so they spread over all others; when
//! one comes, it takes one of n + 1 from each.
//!
//! Source: Thaler and Ravishankar, "Using Name-Based Mappings to Increase Hit Rates", 1998 (highest random weight).
//! There is no ring to keep, and shares are even, for a look at every replica.

use super::prefix_affinity::prefix_hash;
use super::{Decision, Policy, PolicySettings, ReplicaLoad, belongs, mix};
use crate::trace::Token;

/// Sends a prompt to the replica that draws the highest number for its prefix, whatever the load.
#[derive(Clone, Debug)]
pub struct RendezvousHash {
    /// How many leading tokens are hashed.
    pub prefix_length: usize,
    ids: Vec<u32>,
}

impl RendezvousHash {
    /// With so many leading tokens.
    pub fn new(prefix_length: usize) -> RendezvousHash {
        RendezvousHash { prefix_length, ids: Vec::new() }
    }
}

impl Policy for RendezvousHash {
    fn name(&self) -> &'static str {
        "rendezvous-hash"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.prefix_length = settings.prefix_length;
    }

    fn candidates(&mut self, ids: &[u32]) {
        self.ids = ids.to_vec();
    }

    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        if self.ids.len() != replicas.len() {
            self.ids = (0..replicas.len() as u32).collect();
        }
        let prefix = mix(prefix_hash(prompt, self.prefix_length) as u64);
        let drawn = |id: u32| mix(prefix ^ mix(id.into()));
        let highest = self.ids.iter().enumerate().max_by_key(|(_, id)| (drawn(**id), **id));
        belongs(highest.expect("a fleet has at least one replica").0 as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_and_what_moves_spreads() {
        let fleet = [ReplicaLoad::default(); 5];
        let mut policy = RendezvousHash::new(1);
        let mut owners = |ids: &[u32]| -> Vec<u32> {
            policy.candidates(ids);
            let pick = |p| ids[policy.select(&[p], &fleet[..ids.len()]).replica as usize];
            (0..20_000).map(pick).collect()
        };
        let before = owners(&[0, 1, 2, 3, 4]);
        let share = |of: &[u32], id| of.iter().filter(|&&owner| owner == id).count();
        for id in 0..5 {
            assert!((3800..4200).contains(&share(&before, id)), "{}", share(&before, id));
        }
        let after = owners(&[0, 1, 3, 4]);
        assert!(before.iter().zip(&after).all(|(before, after)| before == after || *before == 2));
        for id in [0, 1, 3, 4] {
            let more = share(&after, id) - share(&before, id);
            assert!((850..1150).contains(&more), "a quarter of replica 2's, not {more}");
        }
    }
}
