//! The forward pass: slices of sequences in, keys and values to the paged store, logits out.

use std::borrow::Cow;
use std::fmt;

use crate::kv::BlockId;
use crate::kv::store::KvStore;

use super::attention::{Attention, QUAD, query_place, query_width};
use super::kernels::{LANES, RopeTable, rms_norm};
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
    /// Whether the last token's logits are wanted.
    pub sampled: bool,
}

/// Why a pass cannot compute a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InputError {
    /// Index of the slice.
    pub slice: usize,
    /// What is wrong with it.
    pub fault: InputFault,
}

/// What can be wrong with a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFault {
    /// There is no token to compute.
    Empty,
    /// The sequence is longer than the model's positions.
    TooLong {
        /// Tokens up to the slice's end.
        tokens: usize,
        /// What the model has.
        positions: usize,
    },
    /// The block table ends before the slice does.
    Uncovered {
        /// Tokens up to the slice's end.
        tokens: usize,
        /// Tokens that the table has room for.
        covered: usize,
    },
    /// A token is beyond the vocabulary.
    Unknown {
        /// Which.
        token: Token,
        /// Where, in the sequence.
        position: usize,
        /// Tokens that the model knows.
        vocab_size: usize,
    },
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sequence {} of the pass: ", self.slice)?;
        match self.fault {
            InputFault::Empty => f.write_str("there is no token to compute; it should have at least one"),
            InputFault::TooLong { tokens, positions } => {
                write!(f, "{tokens} tokens are more than the model's {positions} positions")
            }
            InputFault::Uncovered { tokens, covered } => {
                write!(f, "its block table has room for {covered} tokens; it should cover all {tokens}")
            }
            InputFault::Unknown { token, position, vocab_size } => {
                write!(
                    f,
                    "token {token} at position {position} is unknown; tokens go from 0 to {}",
                    vocab_size - 1
                )
            }
        }
    }
}

impl std::error::Error for InputError {}

/// What a pass can compute as a [`Slice`].
pub trait AsSlice {
    /// The tokens to compute, and where.
    fn as_slice(&self) -> Slice<'_>;
}

impl AsSlice for Slice<'_> {
    fn as_slice(&self) -> Slice<'_> {
        *self
    }
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

    /// Bytes that the weights take, packed, with the table of rotations.
    pub fn bytes(&self) -> usize {
        self.weights.bytes() + self.rope.bytes()
    }

    /// Computes every slice's tokens, writes their keys and values to the store, and leaves the logits of the last
    /// token of each sampled slice in [`Scratch::logits`].
    ///
    /// Slices may come as anything that is seen as one, so that a caller need not make a list of them. Once the
    /// scratch has grown to the pass and the store to its blocks, nothing is allocated.
    ///
    /// Results are the same to the bit however a sequence is cut into slices, passes, batches and blocks. A slice may
    /// attend to tokens that an *earlier* slice of the same pass computes, through blocks that both tables name.
    ///
    /// # Panics
    ///
    /// If [`check`](Self::check) finds a fault, with its text, or the store has another model's shape.
    pub fn forward<S: AsSlice>(&self, store: &mut KvStore, scratch: &mut Scratch, slices: &[S]) {
        assert!(store.fits(&self.config), "the store is made for this model");
        if let Err(fault) = self.check(store.block_size(), slices) {
            panic!("{fault}");
        }
        scratch.begin(&self.config, slices.len());
        let mut rows = slices.iter().map(AsSlice::as_slice).enumerate().flat_map(|(index, slice)| {
            slice.tokens.iter().enumerate().map(move |(i, &token)| Row {
                token,
                position: slice.start + i,
                slice: index,
                sampled: slice.sampled && i + 1 == slice.tokens.len(),
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

    /// Whether a pass over blocks of `block_size` tokens can compute these slices; if not, the first fault.
    pub fn check<S: AsSlice>(&self, block_size: usize, slices: &[S]) -> Result<(), InputError> {
        for (index, slice) in slices.iter().map(AsSlice::as_slice).enumerate() {
            let fault = |fault| Err(InputError { slice: index, fault });
            let end = slice.start + slice.tokens.len();
            let covered = slice.blocks.len() * block_size;
            let known = |&token: &Token| (token as usize) < self.config.vocab_size;
            if slice.tokens.is_empty() {
                return fault(InputFault::Empty);
            }
            if end > self.config.positions {
                return fault(InputFault::TooLong { tokens: end, positions: self.config.positions });
            }
            if end > covered {
                return fault(InputFault::Uncovered { tokens: end, covered });
            }
            if let Some(at) = slice.tokens.iter().position(|token| !known(token)) {
                let (token, position) = (slice.tokens[at], slice.start + at);
                return fault(InputFault::Unknown { token, position, vocab_size: self.config.vocab_size });
            }
        }
        Ok(())
    }

    /// Takes the rows in `scratch.rows` through all layers.
    fn tile<S: AsSlice>(&self, store: &mut KvStore, scratch: &mut Scratch, slices: &[S]) {
        let width = self.config.hidden();
        let hidden = sized(&mut scratch.hidden, scratch.rows.len() * width);
        for (row, hidden) in scratch.rows.iter().zip(hidden.chunks_exact_mut(width)) {
            let start = row.token as usize * width;
            let embedding = self.weights.embedding.get(start..start + width);
            hidden.copy_from_slice(embedding.expect("every token is in the vocabulary"));
        }
        let last = self.config.layers - 1;
        for (layer, weights) in self.weights.layers.iter().enumerate() {
            // After the last layer only sampled rows are read: of the others it computes keys and values alone.
            if layer == last && scratch.rows.iter().any(|row| !row.sampled) {
                self.project(layer, weights, store, scratch, slices, Part::KeysAndValues);
                keep_sampled(scratch, width);
                if scratch.rows.is_empty() {
                    return;
                }
                self.project(layer, weights, store, scratch, slices, Part::Queries);
            } else {
                self.project(layer, weights, store, scratch, slices, Part::All);
            }
            self.attention(layer, weights, store, scratch, slices);
            self.mlp(weights, scratch);
        }
        self.head(scratch);
    }

    /// Norms the residual stream and projects it: keys go to the store, rotated, with their values; queries, rotated
    /// and scaled, to the scratch.
    fn project<S: AsSlice>(
        &self,
        layer: usize,
        weights: &LayerWeights,
        store: &mut KvStore,
        scratch: &mut Scratch,
        slices: &[S],
        part: Part,
    ) {
        let (rows, width, kv) = (scratch.rows.len(), self.config.hidden(), self.config.kv_width());
        let normed = scratch.normed.floats_mut(rows, width);
        rms_norm(&scratch.hidden[..rows * width], &weights.attention_norm, self.config.norm_eps, normed);

        let all = &weights.query_key_value;
        let queries = width / LANES;
        let (panels, columns) = match part {
            Part::All => (0..all.panels(), width + 2 * kv),
            Part::Queries => (0..queries, width),
            Part::KeysAndValues => (queries..all.panels(), 2 * kv),
        };
        let projected = sized(&mut scratch.projected, rows * columns);
        scratch.normed.round_even_for(all);
        all.multiply(panels, &scratch.normed, projected);

        let (query_width, head_dim) = (query_width(&self.config), self.config.head_dim);
        let scale = 1.0 / (head_dim as f32).sqrt();
        let query = sized(&mut scratch.query, rows * query_width);
        let projected = projected.chunks_exact(columns).zip(query.chunks_exact_mut(query_width));
        for (row, (projected, query)) in scratch.rows.iter().zip(projected) {
            let (own, keys_values) = projected.split_at(if part == Part::KeysAndValues { 0 } else { width });
            for (head, own) in own.chunks_exact(head_dim).enumerate() {
                let out = &mut query[query_place(&self.config, head)..];
                self.rope.rotate(own, row.position, scale, out, QUAD);
            }
            if part != Part::Queries {
                let (keys, values) = keys_values.split_at(kv);
                let block = slices[row.slice].as_slice().blocks[row.position / store.block_size()];
                store.write(block, layer, row.position % store.block_size(), values, |head, out| {
                    let keys = &keys[head * head_dim..][..head_dim];
                    self.rope.rotate(keys, row.position, 1.0, out, LANES);
                });
            }
        }
    }

    /// Lets the projected rows attend, and adds the result to the residual stream.
    fn attention<S: AsSlice>(
        &self,
        layer: usize,
        weights: &LayerWeights,
        store: &KvStore,
        scratch: &mut Scratch,
        slices: &[S],
    ) {
        let (rows, width) = (scratch.rows.len(), self.config.hidden());
        let attended = scratch.attended.floats_mut(rows, width);
        let query_width = query_width(&self.config);
        let mut first_row = 0;
        // Rows of one slice are neighbours, at neighbouring positions.
        for run in scratch.rows.chunk_by(|a, b| a.slice == b.slice) {
            Attention {
                config: &self.config,
                store,
                layer,
                blocks: slices[run[0].slice].as_slice().blocks,
                positions: run[0].position..run[0].position + run.len(),
                queries: &scratch.query[first_row * query_width..][..run.len() * query_width],
                scratch: &mut scratch.attention,
                out: attended,
                first_row,
                rows,
            }
            .attend();
            first_row += run.len();
        }
        let hidden = &mut scratch.hidden[..rows * width];
        scratch.attended.round_even_for(&weights.attention_out);
        weights.attention_out.multiply_add(&scratch.attended, hidden);
    }

    /// Adds the gated MLP of the residual stream to it.
    fn mlp(&self, weights: &LayerWeights, scratch: &mut Scratch) {
        let (rows, width, ffn) = (scratch.rows.len(), self.config.hidden(), self.config.ffn());
        let hidden = &mut scratch.hidden[..rows * width];
        let normed = scratch.normed.floats_mut(rows, width);
        rms_norm(hidden, &weights.mlp_norm, self.config.norm_eps, normed);
        scratch.normed.round_even_for(&weights.gate_up);
        weights.gate_up.multiply_gated(&scratch.normed, scratch.activated.floats_mut(rows, ffn));
        // A few of these are far larger than those beside them, so that the rows are not even.
        scratch.activated.round_for(&weights.down);
        weights.down.multiply_add(&scratch.activated, hidden);
    }

    /// Computes the logits of the rows left, which are all sampled.
    fn head(&self, scratch: &mut Scratch) {
        let (rows, width) = (scratch.rows.len(), self.config.hidden());
        let normed = scratch.normed.floats_mut(rows, width);
        let hidden = &scratch.hidden[..rows * width];
        rms_norm(hidden, &self.weights.final_norm, self.config.norm_eps, normed);
        let vocab_size = self.config.vocab_size;
        let logits = sized(&mut scratch.tile_logits, rows * vocab_size);
        let head = &self.weights.head;
        scratch.normed.round_even_for(head);
        head.multiply(0..head.panels(), &scratch.normed, logits);
        for i in 0..rows {
            let slice = scratch.rows[i].slice;
            scratch.place_logits(i, slice);
        }
    }
}

/// Which of a layer's projections to compute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    Queries,
    KeysAndValues,
}

/// Drops all rows but the sampled ones from the tile and its residual stream.
fn keep_sampled(scratch: &mut Scratch, width: usize) {
    let mut kept = 0;
    for i in 0..scratch.rows.len() {
        if scratch.rows[i].sampled {
            scratch.rows[kept] = scratch.rows[i];
            scratch.hidden.copy_within(i * width..(i + 1) * width, kept * width);
            kept += 1;
        }
    }
    scratch.rows.truncate(kept);
}

#[cfg(test)]
mod tests;
