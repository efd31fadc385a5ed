//! What several policies share: seeded draws, hashes and rings, a softmax, and who has least.

use super::{ReplicaLoad, mix};
use crate::trace::Token;

mod own;
mod xxhash;

pub use own::{Flight, Own};
pub use xxhash::xxh64;

/// Seeded draws that cost next to nothing: SplitMix64, the same everywhere. Where a router draws from
/// its process's own randomness, this stands in.
#[derive(Clone, Copy, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Draws from a seed.
    pub fn new(seed: u64) -> Dice {
        Dice(seed ^ 0x005E_ED0F_D1CE_0001)
    }

    fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        drawn
    }

    /// Uniform below `n`, which is not 0.
    pub fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.next()) * n as u128) >> 64) as usize
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// One of these; without a draw where there is one.
    pub fn one_of(&mut self, of: &[u32]) -> u32 {
        if let [only] = of { *only } else { of[self.below(of.len())] }
    }

    /// Two different numbers below `n`, in the order drawn; the same twice where there is only one.
    pub fn two(&mut self, n: usize) -> (u32, u32) {
        let first = self.below(n);
        let second = if n == 1 { 0 } else { (first + 1 + self.below(n - 1)) % n };
        (first as u32, second as u32)
    }

    /// A place drawn by a softmax over costs that are stretched to [0, 1]: the lower the likelier.
    ///
    /// The formula is NVIDIA Dynamo's (`lib/kv-router/src/scheduling/selector/reference.rs`), which vLLM
    /// router's temperature follows.
    pub fn by_cost(&mut self, costs: &[f64], temperature: f64) -> usize {
        let least = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let most = costs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if least == most {
            return self.below(costs.len());
        }
        let weight = |cost: &f64| libm::exp((least - cost) / ((most - least) * temperature));
        self.by_weight(costs.iter().map(weight))
    }

    /// A place drawn with a probability proportional to its weight.
    pub fn by_weight(&mut self, weights: impl Iterator<Item = f64> + Clone) -> usize {
        let mut left = self.unit() * weights.clone().sum::<f64>();
        let mut last = 0;
        for (at, weight) in weights.enumerate() {
            last = at;
            left -= weight;
            if left < 0.0 {
                break;
            }
        }
        last
    }
}

/// Requests in flight on each replica, as the router knows them.
pub fn requests(replicas: &[ReplicaLoad]) -> Vec<u64> {
    replicas.iter().map(ReplicaLoad::requests).collect()
}

/// All that have the least of something, by index.
pub fn all_least<T: PartialOrd + Copy>(of: impl Iterator<Item = (u32, T)>) -> Vec<u32> {
    let mut best: Option<T> = None;
    let mut least = Vec::new();
    for (index, value) in of {
        match best {
            Some(so_far) if value > so_far => {}
            Some(so_far) if value == so_far => least.push(index),
            _ => {
                best = Some(value);
                least.clear();
                least.push(index);
            }
        }
    }
    least
}

/// The most of a prompt that a replica can have cached, in tokens: whole blocks, and not its last token,
/// which is always computed.
pub fn usable(blocks: u32, block_size: u32, tokens: u32) -> u32 {
    let most = tokens.saturating_sub(1) / block_size.max(1) * block_size.max(1);
    blocks.saturating_mul(block_size).min(most)
}

/// Items as the bytes that a router would hash: a text's own where each is a byte, else four a token.
pub fn bytes_of(items: &[Token]) -> Vec<u8> {
    if items.iter().all(|&item| item < 256) {
        items.iter().map(|&item| item as u8).collect()
    } else {
        items.iter().flat_map(|item| item.to_le_bytes()).collect()
    }
}

/// A ring of hashes on which each replica has some points.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    points: Vec<(u64, u32)>,
    replicas: usize,
    vnodes: usize,
}

impl Ring {
    /// Makes it one of so many replicas with so many points each, unless it is already. A replica's name
    /// is `replica-` and its number, and a point is the hash of that and the point's number, as KubeAI
    /// names them (`balance_chwbl.go`).
    pub fn resize(&mut self, replicas: usize, vnodes: usize) {
        if (self.replicas, self.vnodes) == (replicas, vnodes) {
            return;
        }
        (self.replicas, self.vnodes) = (replicas, vnodes);
        self.points.clear();
        for replica in 0..replicas as u32 {
            let point = |at| xxh64(format!("replica-{replica}{at}").as_bytes(), 0);
            self.points.extend((0..vnodes).map(|at| (point(at), replica)));
        }
        self.points.sort_unstable();
        // Of two that fall together the one that was added last is found.
        self.points.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 = later.1;
            }
            same
        });
    }

    /// The replicas from a hash on, once around, a replica as often as it has points.
    pub fn from(&self, hash: u64) -> impl Iterator<Item = u32> + '_ {
        let first = self.points.partition_point(|point| point.0 < hash);
        let (before, after) = self.points.split_at(first);
        after.iter().chain(before).map(|point| point.1)
    }
}

/// Replicas with so many requests in flight, for tests.
#[cfg(test)]
pub fn in_flight(requests: &[u32]) -> Vec<ReplicaLoad> {
    requests.iter().map(|&running| ReplicaLoad { running, ..ReplicaLoad::default() }).collect()
}

/// A replica's conversation's request at a time in seconds, for tests.
#[cfg(test)]
pub fn asked(items: &[Token], request: u32, seconds: f64) -> super::Asked<'_> {
    let now = crate::units::Time::from_seconds(seconds).expect("it fits the clock");
    super::Asked { request, now, ..super::Asked::of(items) }
}

/// Settings with some of a policy's knobs turned, for tests.
#[cfg(test)]
pub fn tuned(policy: super::PolicyKind, knobs: &[(&str, f64)]) -> super::PolicySettings {
    let own = policy.name().replace('-', "_");
    let with =
        |tuning: super::Tuning, (key, value): &(&str, f64)| tuning.with(&format!("{own}.{key}"), *value);
    super::PolicySettings { tuning: knobs.iter().fold(Default::default(), with), ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_are_seeded_and_even() {
        let mut dice = Dice::new(3);
        let mut counts = [0; 5];
        (0..5000).for_each(|_| counts[dice.below(5)] += 1);
        assert!(counts.iter().all(|&n| (850..1150).contains(&n)), "{counts:?}");
        for n in 1..6 {
            for _ in 0..100 {
                let (a, b) = dice.two(n);
                assert!(a < n as u32 && b < n as u32 && (a != b || n == 1));
            }
        }
        let mut other = Dice::new(3);
        let mut again = Dice::new(3);
        assert!((0..10).all(|_| other.below(1 << 30) == again.below(1 << 30)));
    }

    #[test]
    fn a_low_temperature_takes_the_least_cost_and_a_high_one_anybody() {
        let mut dice = Dice::new(1);
        assert!((0..100).all(|_| dice.by_cost(&[5.0, 1.0, 9.0], 0.001) == 1));
        let hits = (0..3000).filter(|_| dice.by_cost(&[5.0, 1.0, 9.0], 1000.0) == 1).count();
        assert!((900..1100).contains(&hits), "{hits}");
    }

    #[test]
    fn a_ring_goes_once_around_and_moves_few_keys_when_it_grows() {
        let mut ring = Ring::default();
        ring.resize(8, 256);
        assert_eq!(ring.from(7).count(), 8 * 256);
        let owner = |ring: &Ring, key: u64| ring.from(xxh64(&key.to_le_bytes(), 0)).next();
        let before: Vec<_> = (0..2000).map(|key| owner(&ring, key)).collect();
        let mut counts = [0; 8];
        before.iter().flatten().for_each(|&replica| counts[replica as usize] += 1);
        assert!(counts.iter().all(|&n| (175..325).contains(&n)), "{counts:?}");
        ring.resize(9, 256);
        let moved = (0..2000).filter(|&key| owner(&ring, key) != before[key as usize]).count();
        assert!((150..300).contains(&moved), "a ninth of the keys move: {moved}");
    }

    #[test]
    fn what_is_usable_is_whole_blocks_without_the_last_token() {
        assert_eq!(
            [usable(4, 16, 64), usable(4, 16, 65), usable(2, 16, 65), usable(9, 1, 4)],
            [48, 64, 32, 3]
        );
    }
}
