//! `consistent-hash`: replicas have places on a ring, and a prompt's prefix belongs to the first one at or after
//! its own. When a replica comes or goes, only the prefixes between its places and those before them move:
//! about one of n.
//!
//! Each replica has [`PLACES`] places, or some would own far more of the ring than others. Source: Karger et al.,
//! "Consistent Hashing and Random Trees", STOC 1997.

use super::prefix_affinity::prefix_hash;
use super::{Decision, Policy, PolicySettings, ReplicaLoad, belongs, mix};
use crate::trace::Token;

/// Places that each replica has on the ring: shares then differ by about 1 ÷ √100. As in vLLM production-stack's
/// ring of `uhashring` nodes to within a factor of two (from memory); this project's own choice.
pub const PLACES: u64 = 100;

/// Sends a prompt to the replica that owns its prefix's part of the ring, whatever the load.
#[derive(Clone, Debug)]
pub struct ConsistentHash {
    /// How many leading tokens are hashed.
    pub prefix_length: usize,
    /// The ring: places in order, and the index of the candidate that has each.
    ring: Vec<(u64, u32)>,
    /// How many candidates there are.
    candidates: usize,
}

impl ConsistentHash {
    /// With so many leading tokens.
    pub fn new(prefix_length: usize) -> ConsistentHash {
        ConsistentHash { prefix_length, ring: Vec::new(), candidates: 0 }
    }

    /// Who owns a point.
    fn owner(&self, point: u64) -> u32 {
        let at = self.ring.partition_point(|(place, _)| *place < point);
        // Past the last place it goes on at the first.
        self.ring[at % self.ring.len()].1
    }
}

impl Policy for ConsistentHash {
    fn name(&self) -> &'static str {
        "consistent-hash"
    }

    fn reads_loads(&self) -> bool {
        false
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.prefix_length = settings.prefix_length;
    }

    fn candidates(&mut self, ids: &[u32]) {
        self.candidates = ids.len();
        self.ring.clear();
        for (index, &id) in ids.iter().enumerate() {
            let place = |k: u64| (mix(u64::from(id) * PLACES + k), index as u32);
            self.ring.extend((0..PLACES).map(place));
        }
        self.ring.sort_unstable();
    }

    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        if self.candidates != replicas.len() {
            let ids: Vec<u32> = (0..replicas.len() as u32).collect();
            self.candidates(&ids);
        }
        belongs(self.owner(mix(prefix_hash(prompt, self.prefix_length) as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_nearly_even_and_only_those_of_one_that_goes_move() {
        let fleet = vec![ReplicaLoad::default(); 8];
        let mut policy = ConsistentHash::new(2);
        let owners = |policy: &mut ConsistentHash, ids: &[u32]| -> Vec<u32> {
            policy.candidates(ids);
            let pick = |p| ids[policy.select(&[p, 7], &fleet[..ids.len()]).replica as usize];
            (0..20_000).map(pick).collect()
        };
        let all: Vec<u32> = (0..8).collect();
        let before = owners(&mut policy, &all);
        for id in 0..8 {
            let share = before.iter().filter(|&&owner| owner == id).count();
            assert!((1750..3300).contains(&share), "replica {id} owns {share} of 20,000");
        }
        let left = [0, 1, 2, 4, 5, 6, 7];
        let after = owners(&mut policy, &left);
        for (before, after) in before.iter().zip(&after) {
            assert!(before == after || *before == 3, "only what was replica 3's moves");
        }
    }

    #[test]
    fn a_replica_that_comes_back_under_another_id_owns_other_places() {
        let fleet = vec![ReplicaLoad::default(); 2];
        let mut policy = ConsistentHash::new(1);
        let picks = |policy: &mut ConsistentHash| -> Vec<u32> {
            (0..100).map(|p| policy.select(&[p], &fleet).replica).collect()
        };
        let untold = picks(&mut policy);
        policy.candidates(&[0, 1]);
        assert_eq!(picks(&mut policy), untold, "untold, ids are 0, 1, 2 …");
        policy.candidates(&[0, 9]);
        assert_ne!(picks(&mut policy), untold);
    }
}
