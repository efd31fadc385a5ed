//! The sizes of models that accelerators serve, and a GPU's share of them under tensor parallelism.
//!
//! Source: each model's published `config.json` (huggingface.co, the repository named at each), read
//! as vocab_size, hidden_size, num_hidden_layers, num_attention_heads, num_key_value_heads, head_dim,
//! intermediate_size (or moe_intermediate_size, num_experts, num_experts_per_tok) and
//! max_position_embeddings. Embedding and head are apart in all of them. Weights, keys and values
//! take [`BYTES`] each.

use crate::model::ModelConfig;

/// Bytes of a weight, of an activation, and of a number of a key or value: bf16.
pub const BYTES: u64 = 2;

/// What follows attention in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mlp {
    /// One gated MLP of so many inner activations.
    Dense(u64),
    /// A router before gated MLPs, of which every token takes a few.
    Experts {
        /// How many there are.
        experts: u64,
        /// How many a token takes.
        active: u64,
        /// Inner activations of each.
        width: u64,
    },
}

/// The shape of a Llama-style decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its name on the command line and in tables.
    pub name: &'static str,
    /// Rows of the embedding and of the head, tokens.
    pub vocabulary: u64,
    /// Width of the residual stream.
    pub hidden: u64,
    /// Layers.
    pub layers: u64,
    /// Query heads.
    pub heads: u64,
    /// Key and value heads.
    pub kv_heads: u64,
    /// Numbers a head.
    pub head_dim: u64,
    /// What follows attention.
    pub mlp: Mlp,
    /// Whether queries and keys are normalised head by head (Qwen3), which has weights of its own.
    pub qk_norm: bool,
    /// Longest sequence, tokens.
    pub positions: u32,
}

/// Llama 3.1 8B (meta-llama/Llama-3.1-8B).
pub const LLAMA_3_8B: Shape = Shape {
    name: "llama-3-8b",
    vocabulary: 128_256,
    hidden: 4096,
    layers: 32,
    heads: 32,
    kv_heads: 8,
    head_dim: 128,
    mlp: Mlp::Dense(14_336),
    qk_norm: false,
    positions: 131_072,
};

/// Llama 3.1 70B (meta-llama/Llama-3.1-70B).
pub const LLAMA_3_70B: Shape =
    Shape { name: "llama-3-70b", hidden: 8192, layers: 80, heads: 64, mlp: Mlp::Dense(28_672), ..LLAMA_3_8B };

/// Qwen3 32B (Qwen/Qwen3-32B).
pub const QWEN3_32B: Shape = Shape {
    name: "qwen3-32b",
    vocabulary: 151_936,
    hidden: 5120,
    layers: 64,
    heads: 64,
    kv_heads: 8,
    head_dim: 128,
    mlp: Mlp::Dense(25_600),
    qk_norm: true,
    positions: 40_960,
};

/// Qwen3 30B-A3B, a mixture of experts (Qwen/Qwen3-30B-A3B).
pub const QWEN3_30B_A3B: Shape = Shape {
    name: "qwen3-30b-a3b",
    hidden: 2048,
    layers: 48,
    heads: 32,
    kv_heads: 4,
    mlp: Mlp::Experts { experts: 128, active: 8, width: 768 },
    ..QWEN3_32B
};

/// Llama 2 7B (meta-llama/Llama-2-7b-hf): only compared with, not offered.
pub const LLAMA_2_7B: Shape = Shape {
    name: "llama-2-7b",
    vocabulary: 32_000,
    kv_heads: 32,
    mlp: Mlp::Dense(11_008),
    positions: 4096,
    ..LLAMA_3_8B
};

/// Llama 2 70B (meta-llama/Llama-2-70b-hf): only compared with, not offered.
pub const LLAMA_2_70B: Shape =
    Shape { name: "llama-2-70b", vocabulary: 32_000, positions: 4096, ..LLAMA_3_70B };

/// The model that the page runs, as if in bf16.
fn tinygpt() -> Shape {
    let config = ModelConfig::default();
    Shape {
        name: "tinygpt",
        vocabulary: config.vocab_size as u64,
        hidden: config.hidden() as u64,
        layers: config.layers as u64,
        heads: config.heads as u64,
        kv_heads: config.kv_heads as u64,
        head_dim: config.head_dim as u64,
        mlp: Mlp::Dense(config.ffn() as u64),
        qk_norm: false,
        positions: config.positions as u32,
    }
}

/// A model that an accelerator can serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServedModel {
    /// [`LLAMA_3_8B`].
    #[default]
    Llama8B,
    /// [`LLAMA_3_70B`].
    Llama70B,
    /// [`QWEN3_32B`].
    Qwen32B,
    /// [`QWEN3_30B_A3B`].
    Qwen30BA3B,
    /// The model that the page runs.
    TinyGpt,
}

impl ServedModel {
    /// Every model, in the order of help and controls.
    pub const ALL: [ServedModel; 5] = [
        ServedModel::Llama8B,
        ServedModel::Llama70B,
        ServedModel::Qwen32B,
        ServedModel::Qwen30BA3B,
        ServedModel::TinyGpt,
    ];

    /// Its sizes.
    pub fn shape(self) -> Shape {
        match self {
            ServedModel::Llama8B => LLAMA_3_8B,
            ServedModel::Llama70B => LLAMA_3_70B,
            ServedModel::Qwen32B => QWEN3_32B,
            ServedModel::Qwen30BA3B => QWEN3_30B_A3B,
            ServedModel::TinyGpt => tinygpt(),
        }
    }

    /// Its name on the command line and in the URL.
    pub fn name(self) -> &'static str {
        self.shape().name
    }
}

/// What one GPU of several that share a model has of it; counts of numbers, over all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Numbers in the matrices that every token is multiplied with, head and embedding left out.
    pub matrices: u64,
    /// Numbers in all experts, where there are any.
    pub experts: u64,
    /// Numbers in the experts that one token takes.
    pub active_experts: u64,
    /// Numbers in the head (and as many in the embedding).
    pub head: u64,
    /// Numbers in the weights of normalisation, which every GPU has whole.
    pub norms: u64,
    /// Query heads × numbers a head × layers.
    pub queries: u64,
    /// Numbers that one token's keys and values are, over all layers.
    pub kv: u64,
    /// Inner activations of a token in one layer's MLP.
    pub inner: u64,
}

impl Shape {
    /// The most GPUs that share a replica here.
    pub const MOST: u32 = 8;

    /// Inner activations of a token: the MLP's, or of all experts that it takes.
    fn inner(&self) -> u64 {
        match self.mlp {
            Mlp::Dense(width) => width,
            Mlp::Experts { active, width, .. } => active * width,
        }
    }

    /// Whether so many GPUs can share it: every one has as many query heads and as much of every MLP;
    /// key and value heads are divided too, or, where there are fewer of them than GPUs, held by
    /// several.
    pub fn divides(&self, tp: u32) -> bool {
        let tp = u64::from(tp);
        let width = match self.mlp {
            Mlp::Dense(width) | Mlp::Experts { width, .. } => width,
        };
        tp > 0
            && self.heads.is_multiple_of(tp)
            && width.is_multiple_of(tp)
            && (self.kv_heads.is_multiple_of(tp) || tp.is_multiple_of(self.kv_heads))
    }

    /// What each of `tp` GPUs has, of those that [can](Shape::divides) share it.
    pub fn share(&self, tp: u32) -> Share {
        let tp = u64::from(tp);
        let kv_heads = (self.kv_heads / tp).max(1);
        let (heads, hidden, layers) = (self.heads / tp, self.hidden, self.layers);
        let attention = 2 * hidden * heads * self.head_dim + 2 * hidden * kv_heads * self.head_dim;
        let (dense, experts, active_experts) = match self.mlp {
            Mlp::Dense(width) => (3 * hidden * (width / tp), 0, 0),
            Mlp::Experts { experts, active, width } => {
                let one = 3 * hidden * (width / tp);
                // The router is small, and whole on every GPU.
                (hidden * experts, experts * one, active * one)
            }
        };
        let qk_norms = if self.qk_norm { 2 * self.head_dim } else { 0 };
        Share {
            matrices: layers * (attention + dense),
            experts: layers * experts,
            active_experts: layers * active_experts,
            head: self.vocabulary.div_ceil(tp) * hidden,
            norms: layers * (2 * hidden + qk_norms) + hidden,
            queries: layers * heads * self.head_dim,
            kv: 2 * layers * kv_heads * self.head_dim,
            inner: self.inner() / tp,
        }
    }

    /// Its number of weights.
    pub fn parameters(&self) -> u64 {
        self.share(1).weights()
    }
}

impl Share {
    /// All its weights, embedding included.
    pub fn weights(&self) -> u64 {
        self.matrices + self.experts + 2 * self.head + self.norms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_the_published_ones() {
        for (model, parameters) in [
            (ServedModel::Llama8B, 8_030_261_248),
            (ServedModel::Llama70B, 70_553_706_496),
            (ServedModel::Qwen32B, 32_762_123_264),
            (ServedModel::Qwen30BA3B, 30_532_122_624),
            (ServedModel::TinyGpt, ModelConfig::default().parameters() as u64),
        ] {
            assert_eq!(model.shape().parameters(), parameters, "{}", model.name());
        }
        let active = QWEN3_30B_A3B.share(1);
        let active = active.weights() - active.experts + active.active_experts;
        assert!((3.2e9..3.4e9).contains(&(active as f64)), "{active}: 3.3 B of 30.5 B, as published");
    }

    #[test]
    fn keys_and_values_take_the_known_bytes_a_token() {
        for (model, kib) in [
            (ServedModel::Llama8B, 128),
            (ServedModel::Llama70B, 320),
            (ServedModel::Qwen32B, 256),
            (ServedModel::Qwen30BA3B, 96),
        ] {
            assert_eq!(model.shape().share(1).kv * BYTES, kib << 10, "{}", model.name());
        }
    }

    #[test]
    fn shares_add_up_but_for_what_every_gpu_has() {
        for model in ServedModel::ALL {
            let shape = model.shape();
            let whole = shape.share(1);
            for tp in (1..=Shape::MOST).filter(|&tp| shape.divides(tp)) {
                let share = shape.share(tp);
                let tp = u64::from(tp);
                assert_eq!((share.queries * tp, share.experts * tp), (whole.queries, whole.experts));
                assert_eq!(share.norms, whole.norms);
                // Four key heads on eight GPUs: each of them twice.
                assert_eq!(share.kv * tp, whole.kv * (tp / shape.kv_heads).max(1), "{}", shape.name);
                assert!(share.matrices * tp >= whole.matrices);
            }
        }
    }

    #[test]
    fn gpus_share_heads_evenly_or_not_at_all() {
        let can = |model: ServedModel| (1..=8).filter(|&tp| model.shape().divides(tp)).collect::<Vec<_>>();
        for model in ServedModel::ALL {
            assert_eq!(can(model), [1, 2, 4, 8], "{}", model.name());
        }
        assert!(!LLAMA_3_8B.divides(0));
    }
}
