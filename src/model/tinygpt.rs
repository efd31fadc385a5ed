//! The forward pass: slices of sequences in, keys and values to the paged store, logits out.

use std::borrow::Cow;

use crate::kv::BlockId;
use crate::kv::store::KvStore;

use super::attention::Context;
use super::kernels::{Output, RopeTable, rms_norm, silu_mul};
use super::safetensors::{Checkpoint, SafetensorsError};
use super::scratch::{Row, Scratch, sized};
use super::weights::{LayerWeights, Weights};
use super::{ModelConfig, Token};

/// Tokens taken through all layers together: enough to use each weight often while it is cached, few enough that
/// their activations stay cached too.
const TILE_ROWS: usize = 64;

/// The tokens of one sequence to compute in a pass.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'a> {
    /// The tokens at positions `start..start + tokens.len()`; at least one.
    pub tokens: &'a [Token],
    /// Position of the first; the keys and values of all earlier ones are already in the store.
    pub start: usize,
    /// The sequence's block table, covering at least `start + tokens.len()` tokens.
    pub blocks: &'a [BlockId],
}

/// A decoder with its weights, read-only once made: any number of replicas can share one.
#[derive(Clone, Debug)]
pub struct TinyGpt {
    config: ModelConfig,
    weights: Weights,
    rope: RopeTable,
}

impl TinyGpt {
    /// A model of random weights, the same bits for the same seed on every target.
    ///
    /// # Panics
    ///
    /// If the configuration is not valid; see [`ModelConfig::validate`].
    pub fn random(config: ModelConfig, seed: u64) -> Self {
        config.validate().expect("the caller gives a valid configuration");
        let weights = Weights::random(&config, seed);
        Self::new(config, weights)
    }

    /// A model of a checkpoint's weights, under their Llama names; without `lm_head.weight` the embedding serves.
    pub fn from_safetensors(bytes: &[u8], config: ModelConfig) -> Result<Self, SafetensorsError> {
        config.validate().map_err(SafetensorsError::Config)?;
        let checkpoint = Checkpoint::parse(bytes)?;
        checkpoint.check_layers(&config)?;
        let weights = Weights::load(&config, |id| checkpoint.tensor(id, &config).map(Cow::Owned))?;
        Ok(Self::new(config, weights))
    }

    fn new(config: ModelConfig, weights: Weights) -> Self {
        let rope = RopeTable::new(config.head_dim, config.positions, config.rope_theta);
        Self { config, weights, rope }
    }

    /// The model's shape.
    pub fn config(&self) -> &ModelConfig {
        &self.config
    }

    /// Computes every slice's tokens, writes their keys and values to the store, and leaves the logits of each
    /// slice's last token in [`Scratch::logits`].
    ///
    /// Results are the same to the bit however a sequence is cut into slices, passes, batches and blocks. A slice may
    /// attend to tokens that an *earlier* slice of the same pass computes, through blocks that both tables name.
    ///
    /// # Panics
    ///
    /// If the store has another model's shape, or a slice is empty, goes beyond its block table or the model's
    /// positions, or has a token beyond the vocabulary.
    pub fn forward(&self, store: &mut KvStore, scratch: &mut Scratch, slices: &[Slice<'_>]) {
        assert!(store.fits(&self.config), "the store is made for this model");
        for slice in slices {
            let end = slice.start + slice.tokens.len();
            assert!(!slice.tokens.is_empty(), "a slice has at least one token");
            assert!(end <= self.config.positions, "position {end} is beyond the model's");
            assert!(end <= slice.blocks.len() * store.block_size(), "the block table covers the slice");
        }
        scratch.begin(&self.config, slices.len());
        let mut rows = slices.iter().enumerate().flat_map(|(index, slice)| {
            slice.tokens.iter().enumerate().map(move |(i, &token)| Row {
                token,
                position: slice.start + i,
                slice: index,
                sampled: i + 1 == slice.tokens.len(),
            })
        });
        loop {
            scratch.rows.clear();
            scratch.rows.extend(rows.by_ref().take(TILE_ROWS));
            if scratch.rows.is_empty() {
                break;
            }
            self.tile(store, scratch, slices);
        }
    }

    /// Takes the rows in `scratch.rows` through all layers.
    fn tile(&self, store: &mut KvStore, scratch: &mut Scratch, slices: &[Slice<'_>]) {
        let width = self.config.hidden();
        let hidden = sized(&mut scratch.hidden, scratch.rows.len() * width);
        for (row, hidden) in scratch.rows.iter().zip(hidden.chunks_exact_mut(width)) {
            let start = row.token as usize * width;
            let embedding = self.weights.embedding.get(start..start + width);
            hidden.copy_from_slice(embedding.expect("every token is in the vocabulary"));
        }
        for (layer, weights) in self.weights.layers.iter().enumerate() {
            self.keys_and_values(layer, weights, store, scratch, slices);
            if layer + 1 == self.config.layers {
                keep_sampled(scratch, width);
                if scratch.rows.is_empty() {
                    return;
                }
            }
            self.attention(layer, weights, store, scratch, slices);
            self.mlp(weights, scratch);
        }
        self.head(scratch);
    }

    /// Norms the residual stream, and computes and stores the rows' keys and values.
    fn keys_and_values(
        &self,
        layer: usize,
        weights: &LayerWeights,
        store: &mut KvStore,
        scratch: &mut Scratch,
        slices: &[Slice<'_>],
    ) {
        let (rows, width, kv) = (scratch.rows.len(), self.config.hidden(), self.config.kv_width());
        let normed = sized(&mut scratch.normed, rows * width);
        rms_norm(&scratch.hidden[..rows * width], &weights.attention_norm, self.config.norm_eps, normed);
        let key_value = sized(&mut scratch.key_value, rows * 2 * kv);
        weights.key_value.multiply(normed, key_value, Output::Set);
        for (row, key_value) in scratch.rows.iter().zip(key_value.chunks_exact_mut(2 * kv)) {
            let (keys, values) = key_value.split_at_mut(kv);
            self.rope.rotate(keys, row.position, 1.0);
            let block = slices[row.slice].blocks[row.position / store.block_size()];
            store.write(block, layer, row.position % store.block_size(), keys, values);
        }
    }

    /// Lets the normed rows attend, and adds the result to the residual stream.
    fn attention(
        &self,
        layer: usize,
        weights: &LayerWeights,
        store: &KvStore,
        scratch: &mut Scratch,
        slices: &[Slice<'_>],
    ) {
        let (rows, width) = (scratch.rows.len(), self.config.hidden());
        let query = sized(&mut scratch.query, rows * width);
        let attended = sized(&mut scratch.attended, rows * width);
        weights.query.multiply(&scratch.normed[..rows * width], query, Output::Set);
        let scale = 1.0 / (self.config.head_dim as f32).sqrt();
        let pairs = query.chunks_exact_mut(width).zip(attended.chunks_exact_mut(width));
        for (row, (query, attended)) in scratch.rows.iter().zip(pairs) {
            self.rope.rotate(query, row.position, scale);
            let blocks = slices[row.slice].blocks;
            let context = Context { store, layer, blocks, tokens: row.position + 1 };
            context.attend(&self.config, query, &mut scratch.scores, attended);
        }
        weights.attention_out.multiply(attended, &mut scratch.hidden[..rows * width], Output::Add);
    }

    /// Adds the gated MLP of the residual stream to it.
    fn mlp(&self, weights: &LayerWeights, scratch: &mut Scratch) {
        let (rows, width, ffn) = (scratch.rows.len(), self.config.hidden(), self.config.ffn());
        let hidden = &mut scratch.hidden[..rows * width];
        let normed = &mut scratch.normed[..rows * width];
        rms_norm(hidden, &weights.mlp_norm, self.config.norm_eps, normed);
        let gate = sized(&mut scratch.gate, rows * ffn);
        let up = sized(&mut scratch.up, rows * ffn);
        weights.gate.multiply(normed, gate, Output::Set);
        weights.up.multiply(normed, up, Output::Set);
        silu_mul(gate, up);
        weights.down.multiply(gate, hidden, Output::Add);
    }

    /// Computes the logits of the rows left, which are all sampled.
    fn head(&self, scratch: &mut Scratch) {
        let (rows, width) = (scratch.rows.len(), self.config.hidden());
        let normed = &mut scratch.normed[..rows * width];
        let hidden = &scratch.hidden[..rows * width];
        rms_norm(hidden, &self.weights.final_norm, self.config.norm_eps, normed);
        let vocab_size = self.config.vocab_size;
        let logits = sized(&mut scratch.tile_logits, rows * vocab_size);
        self.weights.head.multiply(normed, logits, Output::Set);
        for i in 0..rows {
            let slice = scratch.rows[i].slice;
            scratch.place_logits(i, slice);
        }
    }
}

/// Drops all rows but the sampled ones from the tile, its residual stream and its normed copy.
fn keep_sampled(scratch: &mut Scratch, width: usize) {
    let mut kept = 0;
    for i in 0..scratch.rows.len() {
        if scratch.rows[i].sampled {
            scratch.rows[kept] = scratch.rows[i];
            for buffer in [&mut scratch.hidden, &mut scratch.normed] {
                buffer.copy_within(i * width..(i + 1) * width, kept * width);
            }
            kept += 1;
        }
    }
    scratch.rows.truncate(kept);
}

#[cfg(test)]
mod tests;
