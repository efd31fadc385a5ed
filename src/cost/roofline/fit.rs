//! How near the roofline comes to measured times.
//!
//! Measured are the medians of a model's operations without attention, embedding, head and
//! communication, profiled one by one and summed, times its layers: microsoft/vidur (7d47513),
//! data/profiling/compute/{a100,h100}/…/mlp.csv. With them [`Efficiency`]'s first four figures were
//! fitted, one set an accelerator, all rows of it at once (`cargo run --release --example
//! fit_roofline`). Models keep their own sizes throughout.
//!
//! So the price is checked for 1 to 4,096 tokens a step, bf16, dense models of 7 to 70 billion
//! weights, A100 and H100, and `tp` 1, 4 and 8. Beyond that it is the same formula, not compared with
//! anything: more tokens, a mixture of experts, other accelerators, and attention, head, all-reduce
//! and the processor's overhead, whose constants come from elsewhere.

use super::{Accelerator, Efficiency, LLAMA_2_7B, LLAMA_2_70B, LLAMA_3_8B, LLAMA_3_70B, Roofline, Shape};

/// Tokens of the profiled steps.
pub const TOKENS: [u64; 6] = [1, 32, 128, 512, 2048, 4096];

/// A model on an accelerator as it was profiled.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The model.
    pub shape: Shape,
    /// The accelerator.
    pub accelerator: Accelerator,
    /// How many GPUs share the model.
    pub tp: u32,
    /// Milliseconds a step of each of [`TOKENS`].
    pub milliseconds: [f64; 6],
}

/// What was profiled.
pub const PROFILES: [Profile; 6] = [
    Profile {
        shape: LLAMA_3_8B,
        accelerator: Accelerator::A100,
        tp: 1,
        milliseconds: [9.7, 10.9, 13.2, 34.6, 145.6, 273.6],
    },
    Profile {
        shape: LLAMA_3_70B,
        accelerator: Accelerator::A100,
        tp: 4,
        milliseconds: [24.9, 26.2, 33.5, 89.9, 336.0, 656.0],
    },
    Profile {
        shape: LLAMA_3_70B,
        accelerator: Accelerator::A100,
        tp: 8,
        milliseconds: [14.3, 14.9, 18.9, 52.1, 184.0, 353.0],
    },
    Profile {
        shape: LLAMA_2_7B,
        accelerator: Accelerator::H100,
        tp: 1,
        milliseconds: [5.6, 5.8, 6.4, 12.0, 40.3, 83.5],
    },
    Profile {
        shape: LLAMA_2_70B,
        accelerator: Accelerator::H100,
        tp: 4,
        milliseconds: [14.3, 15.3, 15.9, 30.0, 111.0, 223.0],
    },
    Profile {
        shape: LLAMA_2_70B,
        accelerator: Accelerator::H100,
        tp: 8,
        milliseconds: [8.4, 9.3, 10.0, 17.7, 63.7, 122.0],
    },
];

impl Profile {
    /// What the same steps are priced at with given efficiencies, in milliseconds.
    pub fn priced(&self, have: &Efficiency) -> [f64; 6] {
        let price = Roofline::new(&self.shape, self.tp, &self.accelerator.datasheet(), have);
        TOKENS.map(|tokens| 1e3 * price.layers(tokens).seconds())
    }

    /// Price ÷ measurement − 1 of each step.
    pub fn errors(&self, have: &Efficiency) -> [f64; 6] {
        let mut errors = self.priced(have);
        for (error, measured) in errors.iter_mut().zip(self.milliseconds) {
            *error = *error / measured - 1.0;
        }
        errors
    }

    /// The error that is furthest from none, with its sign.
    pub fn worst(&self, have: &Efficiency) -> f64 {
        self.errors(have).into_iter().max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
    }
}

/// What a fit minimises: the sum, over all profiled steps of an accelerator, of the squared error.
pub fn distance(accelerator: Accelerator, have: &Efficiency) -> f64 {
    PROFILES
        .iter()
        .filter(|profile| profile.accelerator == accelerator)
        .flat_map(|profile| profile.errors(have))
        .map(|error| error * error)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_profiled_step_is_priced_within_15_percent() {
        for profile in &PROFILES {
            let worst = profile.worst(&profile.accelerator.efficiency());
            assert!(worst.abs() <= 0.15, "{} {worst}", profile.shape.name);
        }
    }

    #[test]
    fn the_efficiencies_are_a_local_optimum() {
        for accelerator in Accelerator::ALL.into_iter().filter(|a| a.is_fitted()) {
            let have = accelerator.efficiency();
            let fitted = distance(accelerator, &have);
            for factor in [0.9, 1.1] {
                for change in [
                    Efficiency { compute: have.compute * factor, ..have },
                    Efficiency { bandwidth: have.bandwidth * factor, ..have },
                    Efficiency { exposed: have.exposed * factor, ..have },
                    Efficiency { layer: have.layer * factor, ..have },
                ] {
                    assert!(distance(accelerator, &change) > fitted, "{accelerator:?} {change:?}");
                }
            }
        }
    }
}
