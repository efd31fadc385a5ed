//! The weights: which tensors a model has, seeded random ones, and the packing both sources share.

use std::borrow::Cow;
use std::convert::Infallible;
use std::fmt;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use super::ModelConfig;
use super::kernels::{LANES, PackedMatrix};

/// What a tensor is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// (vocab_size, hidden): a row for every token.
    Embedding,
    /// (hidden): the scale of the norm before attention.
    AttentionNorm,
    /// (hidden, hidden): queries.
    Query,
    /// (kv_width, hidden): keys.
    Key,
    /// (kv_width, hidden): values.
    Value,
    /// (hidden, hidden): from the heads back to the residual stream.
    AttentionOut,
    /// (hidden): the scale of the norm before the MLP.
    MlpNorm,
    /// (ffn, hidden): what SiLU opens.
    Gate,
    /// (ffn, hidden): what the gate lets through.
    Up,
    /// (hidden, ffn): from the MLP back to the residual stream.
    Down,
    /// (hidden): the scale of the last norm.
    FinalNorm,
    /// (vocab_size, hidden): from the residual stream to logits.
    Head,
}

/// One tensor of a model; displays as its name in a Llama checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TensorId {
    /// The layer, for the roles that every layer has; otherwise 0.
    pub layer: usize,
    /// What it is for.
    pub role: Role,
}

impl TensorId {
    /// The tensor's shape: (outputs, inputs) for a matrix, one length for a norm.
    pub fn shape(self, config: &ModelConfig) -> Vec<usize> {
        let (hidden, kv, ffn) = (config.hidden(), config.kv_width(), config.ffn());
        match self.role {
            Role::Embedding | Role::Head => vec![config.vocab_size, hidden],
            Role::AttentionNorm | Role::MlpNorm | Role::FinalNorm => vec![hidden],
            Role::Query | Role::AttentionOut => vec![hidden, hidden],
            Role::Key | Role::Value => vec![kv, hidden],
            Role::Gate | Role::Up => vec![ffn, hidden],
            Role::Down => vec![hidden, ffn],
        }
    }
}

impl fmt::Display for TensorId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.role {
            Role::Embedding => return f.write_str("model.embed_tokens.weight"),
            Role::FinalNorm => return f.write_str("model.norm.weight"),
            Role::Head => return f.write_str("lm_head.weight"),
            Role::AttentionNorm => "input_layernorm",
            Role::Query => "self_attn.q_proj",
            Role::Key => "self_attn.k_proj",
            Role::Value => "self_attn.v_proj",
            Role::AttentionOut => "self_attn.o_proj",
            Role::MlpNorm => "post_attention_layernorm",
            Role::Gate => "mlp.gate_proj",
            Role::Up => "mlp.up_proj",
            Role::Down => "mlp.down_proj",
        };
        write!(f, "model.layers.{}.{part}.weight", self.layer)
    }
}

/// One layer's weights, packed.
#[derive(Clone, Debug)]
pub(super) struct LayerWeights {
    pub attention_norm: Vec<f32>,      // (hidden)
    pub query_key_value: PackedMatrix, // hidden → queries, keys, values: hidden + 2 × kv_width
    pub attention_out: PackedMatrix,
    pub mlp_norm: Vec<f32>,    // (hidden)
    pub gate_up: PackedMatrix, // hidden → gate and up by turns, a panel each: 2 × ffn
    pub down: PackedMatrix,    // ffn → hidden
}

/// A whole model's weights, packed.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub embedding: Vec<f32>, // (vocab_size, hidden)
    pub layers: Vec<LayerWeights>,
    pub final_norm: Vec<f32>, // (hidden)
    pub head: PackedMatrix,   // hidden → vocab_size
}

impl Weights {
    /// Asks `source` for every tensor, in its natural (outputs, inputs) order, and packs it.
    pub fn load<'a, E>(
        config: &ModelConfig,
        mut source: impl FnMut(TensorId) -> Result<Cow<'a, [f32]>, E>,
    ) -> Result<Self, E> {
        let (hidden, kv, ffn) = (config.hidden(), config.kv_width(), config.ffn());
        let mut tensor = |layer, role| source(TensorId { layer, role });
        let embedding = tensor(0, Role::Embedding)?.into_owned();
        let mut layers = Vec::with_capacity(config.layers);
        for layer in 0..config.layers {
            let mut packed = |role, depth, columns| {
                tensor(layer, role).map(|weights| PackedMatrix::from_rows(&weights, depth, columns))
            };
            let attention_out = packed(Role::AttentionOut, hidden, hidden)?;
            let down = packed(Role::Down, ffn, hidden)?;
            let mut query_key_value = tensor(layer, Role::Query)?.into_owned();
            query_key_value.extend_from_slice(&tensor(layer, Role::Key)?);
            query_key_value.extend_from_slice(&tensor(layer, Role::Value)?);
            let (gate, up) = (tensor(layer, Role::Gate)?, tensor(layer, Role::Up)?);
            let panel = LANES * hidden;
            let gate_up: Vec<f32> = gate
                .chunks(panel)
                .zip(up.chunks(panel))
                .flat_map(|(gate, up)| [gate, up])
                .flatten()
                .copied()
                .collect();
            layers.push(LayerWeights {
                attention_norm: tensor(layer, Role::AttentionNorm)?.into_owned(),
                query_key_value: PackedMatrix::from_rows(&query_key_value, hidden, hidden + 2 * kv),
                attention_out,
                mlp_norm: tensor(layer, Role::MlpNorm)?.into_owned(),
                gate_up: PackedMatrix::from_rows(&gate_up, hidden, 2 * ffn),
                down,
            });
        }
        let final_norm = tensor(0, Role::FinalNorm)?.into_owned();
        // Nothing comes after the head to even its error out, and it takes few of a pass's operations.
        let head = PackedMatrix::as_floats(&tensor(0, Role::Head)?, hidden, config.vocab_size);
        Ok(Self { embedding, layers, final_norm, head })
    }

    /// Bytes that all of it takes.
    pub fn bytes(&self) -> usize {
        let floats = |list: &Vec<f32>| size_of_val(&list[..]);
        let layers = self.layers.iter().map(|layer| {
            floats(&layer.attention_norm)
                + floats(&layer.mlp_norm)
                + layer.query_key_value.bytes()
                + layer.attention_out.bytes()
                + layer.gate_up.bytes()
                + layer.down.bytes()
        });
        floats(&self.embedding) + floats(&self.final_norm) + self.head.bytes() + layers.sum::<usize>()
    }

    /// Random weights; see [`random_tensor`].
    pub fn random(config: &ModelConfig, seed: u64) -> Self {
        let source = |id| Ok::<_, Infallible>(Cow::Owned(random_tensor(config, seed, id)));
        match Self::load(config, source) {
            Ok(weights) => weights,
            Err(never) => match never {},
        }
    }
}

/// A tensor of random weights, the same bits on every target.
///
/// Norms are ones. Matrices are uniform with mean zero and standard deviation 1 ÷ √inputs, so that activations keep
/// their size; the two projections that write to the residual stream are divided by √(2 · layers) besides, so that
/// the stream keeps its size too. Embeddings have standard deviation 1. Each tensor has a ChaCha8 stream of its own,
/// so a model with more layers begins with the same ones (but for that division).
///
/// Weights are whole multiples, at most 127 of either sign, of one power of two a tensor, as a checkpoint in eight
/// bits has them; so [`PackedMatrix`] keeps a byte each, and loses nothing.
pub fn random_tensor(config: &ModelConfig, seed: u64, id: TensorId) -> Vec<f32> {
    let shape = id.shape(config);
    let count = shape.iter().product();
    let inputs = shape[shape.len() - 1] as f64;
    let deviation = match id.role {
        Role::AttentionNorm | Role::MlpNorm | Role::FinalNorm => return vec![1.0; count],
        Role::Embedding => 1.0,
        Role::AttentionOut | Role::Down => 1.0 / (inputs * (2 * config.layers) as f64).sqrt(),
        Role::Query | Role::Key | Role::Value | Role::Gate | Role::Up | Role::Head => 1.0 / inputs.sqrt(),
    };
    // Whole numbers from −most to most have the deviation √(most · (most + 1) ÷ 3): the finest unit whose number for
    // the wanted deviation is at most 127.
    let (mut unit, mut most) = (1.0, f64::INFINITY);
    for exponent in -40..=4 {
        unit = libm::exp2(f64::from(exponent));
        let square: f64 = 3.0 * (deviation / unit) * (deviation / unit);
        most = ((0.25 + square).sqrt() - 0.5).round();
        if most <= 127.0 {
            break;
        }
    }
    let mut key = [0; 32];
    key[..8].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(((id.layer as u64) << 8) | id.role as u64);
    let (most, unit) = (most as i32, unit as f32);
    // Sixteen bits a weight, scaled to the range: no value is more than 0.4 % likelier than another.
    let weight = |bits: u32| (((bits & 0xFFFF) * (2 * most + 1) as u32) >> 16) as i32 - most;
    let mut weights = Vec::with_capacity(count + 1);
    while weights.len() < count {
        let bits = random.next_u32();
        weights.extend([bits, bits >> 16].map(|bits| weight(bits) as f32 * unit));
    }
    weights.truncate(count);
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    const MATRICES: [Role; 9] = [
        Role::Embedding,
        Role::Query,
        Role::Key,
        Role::Value,
        Role::AttentionOut,
        Role::Gate,
        Role::Up,
        Role::Down,
        Role::Head,
    ];

    #[test]
    fn random_weights_have_pinned_bits() {
        let config = ModelConfig::default();
        // FNV-1a over the bits of one layer and of what all layers share.
        let mut hash = 0xCBF2_9CE4_8422_2325u64;
        for role in MATRICES {
            for weight in random_tensor(&config, 1, TensorId { layer: 0, role }) {
                hash = (hash ^ u64::from(weight.to_bits())).wrapping_mul(0x0000_0100_0000_01B3);
            }
        }
        assert_eq!(hash, 0x953E_BB9B_C6D8_C325, "{hash:#018x}");
    }

    #[test]
    fn random_weights_have_their_mean_and_deviation() {
        let config = ModelConfig::default();
        for role in MATRICES {
            let id = TensorId { layer: 2, role };
            let weights = random_tensor(&config, 9, id);
            let inputs = id.shape(&config)[1] as f64;
            let want = match role {
                Role::Embedding => 1.0,
                Role::AttentionOut | Role::Down => (1.0 / (inputs * 12.0)).sqrt(),
                _ => (1.0 / inputs).sqrt(),
            };
            let count = weights.len() as f64;
            let mean = weights.iter().map(|w| f64::from(*w)).sum::<f64>() / count;
            let deviation =
                (weights.iter().map(|w| f64::from(*w) * f64::from(*w)).sum::<f64>() / count).sqrt();
            assert!((deviation / want - 1.0).abs() < 0.02, "{role:?}: {deviation} against {want}");
            assert!(mean.abs() < 5.0 * want / count.sqrt(), "{role:?}: mean {mean}");
        }
    }

    #[test]
    fn tensors_and_seeds_differ() {
        let config = ModelConfig::default();
        let first = |seed, layer, role| random_tensor(&config, seed, TensorId { layer, role })[..8].to_vec();
        let base = first(1, 0, Role::Key);
        assert_eq!(base, first(1, 0, Role::Key));
        assert_ne!(base, first(2, 0, Role::Key));
        assert_ne!(base, first(1, 1, Role::Key));
        assert_ne!(base, first(1, 0, Role::Value));
    }

    #[test]
    fn the_tensors_add_up_to_the_parameters() {
        let config = ModelConfig::default();
        let mut count = 0;
        Weights::load(&config, |id| {
            let tensor = vec![0.0; id.shape(&config).iter().product()];
            count += tensor.len();
            Ok::<_, Infallible>(Cow::Owned(tensor))
        })
        .expect("the source cannot fail");
        assert_eq!(count, config.parameters());
    }
}
