//! The shape of a model: every size that the weights, the kernels and the paged store agree on.

use std::fmt;

use super::kernels::LANES;

/// The shape of a Llama-style decoder: grouped-query attention, RMSNorm, rotary positions and a gated MLP.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Rows of the embedding and columns of the head, in tokens.
    pub vocab_size: usize,
    /// Decoder layers.
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; each serves `heads / kv_heads` query heads.
    pub kv_heads: usize,
    /// Floats in one head; a multiple of 8, so that values fill whole lanes.
    pub head_dim: usize,
    /// Width of the MLP, in multiples of the hidden size.
    pub ffn_mult: usize,
    /// Added to the mean square before RMSNorm's root.
    pub norm_eps: f32,
    /// Base of the rotary wavelengths.
    pub rope_theta: f64,
    /// Longest sequence, in tokens.
    pub positions: usize,
}

impl Default for ModelConfig {
    /// TinyGPT: 5.8 million parameters over bytes and four special tokens.
    fn default() -> Self {
        Self {
            vocab_size: 260,
            layers: 6,
            heads: 8,
            kv_heads: 2,
            head_dim: 32,
            ffn_mult: 4,
            norm_eps: 1e-5,
            rope_theta: 10_000.0,
            positions: 2048,
        }
    }
}

impl ModelConfig {
    /// Width of the residual stream, in floats.
    pub fn hidden(&self) -> usize {
        self.heads * self.head_dim
    }

    /// Width of one token's keys (or values) in one layer, in floats.
    pub fn kv_width(&self) -> usize {
        self.kv_heads * self.head_dim
    }

    /// Width of the MLP's inner activations, in floats.
    pub fn ffn(&self) -> usize {
        self.ffn_mult * self.hidden()
    }

    /// Query heads that share one key and value head.
    pub fn group(&self) -> usize {
        self.heads / self.kv_heads
    }

    /// Number of weights, with a head of its own (not tied to the embedding).
    pub fn parameters(&self) -> usize {
        let hidden = self.hidden();
        let attention = 2 * hidden * hidden + 2 * hidden * self.kv_width();
        let mlp = 3 * hidden * self.ffn();
        let norms = 2 * hidden;
        self.layers * (attention + mlp + norms) + 2 * self.vocab_size * hidden + hidden
    }

    /// Floating-point operations of one token's matrix products in every layer, the head left out.
    ///
    /// A multiply and an add count as two; attention over the context is not in it (see
    /// [`ModelConfig::attention_flops`]).
    pub fn flops_per_token(&self) -> u64 {
        let hidden = self.hidden();
        let weights = 2 * hidden * hidden + 2 * hidden * self.kv_width() + 3 * hidden * self.ffn();
        2 * (self.layers * weights) as u64
    }

    /// Floating-point operations with which one query attends to `context` tokens, in every layer.
    pub fn attention_flops(&self, context: usize) -> u64 {
        4 * (self.layers * self.hidden() * context) as u64
    }

    /// Bytes of keys and values that one token holds over all layers.
    pub fn kv_bytes_per_token(&self) -> usize {
        2 * self.layers * self.kv_width() * size_of::<f32>()
    }

    /// Checks that the sizes are possible and fit each other.
    pub fn validate(&self) -> Result<(), ConfigError> {
        // Far above any model that fits a page, and low enough that no product of sizes overflows a u64.
        const MOST: usize = 1 << 20;
        for (field, value, most) in [
            ("vocab_size", self.vocab_size, MOST),
            ("layers", self.layers, 1 << 10),
            ("heads", self.heads, 1 << 10),
            ("kv_heads", self.kv_heads, 1 << 10),
            ("head_dim", self.head_dim, 1 << 10),
            ("ffn_mult", self.ffn_mult, 1 << 6),
            ("positions", self.positions, MOST),
        ] {
            if value == 0 || value > most {
                return Err(ConfigError::Size { field, value, most });
            }
        }
        if !self.heads.is_multiple_of(self.kv_heads) {
            return Err(ConfigError::Heads { heads: self.heads, kv_heads: self.kv_heads });
        }
        if !self.head_dim.is_multiple_of(LANES) {
            return Err(ConfigError::HeadDim(self.head_dim));
        }
        if !(self.norm_eps.is_finite() && self.norm_eps > 0.0) {
            return Err(ConfigError::Positive { field: "norm_eps", value: f64::from(self.norm_eps) });
        }
        if !(self.rope_theta.is_finite() && self.rope_theta > 0.0) {
            return Err(ConfigError::Positive { field: "rope_theta", value: self.rope_theta });
        }
        Ok(())
    }
}

/// Why a configuration cannot be a model.
#[derive(Clone, Debug, PartialEq)]
pub enum ConfigError {
    /// A size is zero or beyond what the engine takes.
    Size {
        /// The field's name.
        field: &'static str,
        /// What it was given.
        value: usize,
        /// The largest value taken.
        most: usize,
    },
    /// Query heads do not divide evenly among the key and value heads.
    Heads {
        /// Query heads given.
        heads: usize,
        /// Key and value heads given.
        kv_heads: usize,
    },
    /// A head is not a whole number of lanes.
    HeadDim(usize),
    /// A constant must be finite and above zero.
    Positive {
        /// The field's name.
        field: &'static str,
        /// What it was given.
        value: f64,
    },
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Size { field, value, most } => {
                write!(f, "the model's {field} is {value}; it should be from 1 to {most}")
            }
            Self::Heads { heads, kv_heads } => {
                write!(
                    f,
                    "{heads} heads cannot share {kv_heads} kv_heads evenly; heads should be a multiple of kv_heads"
                )
            }
            Self::HeadDim(value) => write!(f, "head_dim is {value}; it should be a multiple of {LANES}"),
            Self::Positive { field, value } => {
                write!(f, "{field} is {value}; it should be finite and above zero")
            }
        }
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tinygpt_has_the_published_number_of_parameters() {
        let config = ModelConfig::default();
        assert_eq!(config.hidden(), 256);
        assert_eq!(config.parameters(), 5_838_080);
        assert_eq!(config.kv_bytes_per_token(), 3072);
        assert_eq!(config.validate(), Ok(()));
    }

    #[test]
    fn impossible_sizes_are_named() {
        let error = |change: fn(&mut ModelConfig)| {
            let mut config = ModelConfig::default();
            change(&mut config);
            config.validate().expect_err("the change makes it impossible").to_string()
        };
        assert!(error(|c| c.layers = 0).contains("layers is 0; it should be from 1"));
        assert!(error(|c| c.vocab_size = usize::MAX).contains("vocab_size"));
        assert!(error(|c| c.kv_heads = 3).contains("8 heads cannot share 3 kv_heads"));
        assert!(error(|c| c.head_dim = 12).contains("head_dim is 12; it should be a multiple of 8"));
        assert!(error(|c| c.norm_eps = f32::NAN).contains("norm_eps is NaN"));
        assert!(error(|c| c.rope_theta = 0.0).contains("rope_theta is 0"));
    }
}
