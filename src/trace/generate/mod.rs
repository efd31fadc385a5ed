//! Traces made to a shape, one file each, from a seed.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

mod agents;
mod arrivals;
mod batch;
mod chat;
mod completion;
mod frame;
mod load;
mod multi_tenant;
mod noisy;
mod queue;
mod rag;
mod shape;

pub use arrivals::{Arrivals, Process};
pub use load::{Load, Shape as LoadShape};
use multi_tenant::printable;
pub use multi_tenant::{MultiTenant, system_prompt};
pub use queue::{Length, Queue};
pub use shape::{Knob, Shape, ShapeKind};

/// Seeded draws with the same results everywhere: integers only, and `libm` for the logarithm.
pub struct Draw(ChaCha8Rng);

impl Draw {
    /// Draws from a seed.
    pub fn new(seed: u64) -> Draw {
        Draw(ChaCha8Rng::seed_from_u64(seed))
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `low..=high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        let width = u128::from(high - low) + 1;
        low + ((u128::from(self.0.next_u64()) * width) >> 64) as u64
    }

    /// Exponential with a mean of 1.
    pub fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.unit())
    }

    /// An index, each with a probability proportional to its weight.
    pub fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.unit() * weights.iter().sum::<f64>();
        for (i, weight) in weights.iter().enumerate() {
            left -= weight;
            if left < 0.0 {
                return i;
            }
        }
        weights.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_stay_in_range_and_reach_both_ends() {
        let mut draw = Draw::new(1);
        let values: Vec<u64> = (0..1000).map(|_| draw.between(8, 11)).collect();
        assert_eq!((values.iter().min(), values.iter().max()), (Some(&8), Some(&11)));
        assert_eq!(draw.between(5, 5), 5);
    }

    #[test]
    fn weights_are_shares() {
        let mut draw = Draw::new(2);
        let hits = (0..10_000).filter(|_| draw.weighted(&[1.0, 3.0, 0.0]) == 1).count();
        assert!((7300..7700).contains(&hits), "{hits}");
    }
}
