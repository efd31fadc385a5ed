//! Working memory of a forward pass, kept between passes so that a steady state allocates nothing.

use super::attention::AttentionScratch;
use super::kernels::Input;
use super::kernels::rows;
use super::{ModelConfig, Token};

/// One token to compute.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub token: Token,
    /// Absolute position in its sequence.
    pub position: usize,
    /// Which slice it belongs to.
    pub slice: usize,
    /// Whether its logits are wanted: it is its slice's last.
    pub sampled: bool,
}

/// Buffers of a forward pass and its results.
///
/// One serves any number of models and replicas, one pass at a time. Buffers grow to the largest pass seen.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pub(super) rows: Vec<Row>,
    pub(super) hidden: Vec<f32>,      // (rows, hidden): the residual stream
    pub(super) normed: Input,         // (rows, hidden)
    pub(super) projected: Vec<f32>,   // (rows, queries, keys and values)
    pub(super) query: Vec<f32>,       // (rows, as attention wants them)
    pub(super) attended: Input,       // (rows, heads, head_dim)
    pub(super) activated: Input,      // (rows, ffn)
    pub(super) tile_logits: Vec<f32>, // (sampled rows of the tile, vocab_size)
    pub(super) attention: AttentionScratch,
    logits: Vec<f32>, // (slices, vocab_size)
    vocab_size: usize,
    slices: usize,
}

impl Scratch {
    /// Empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The logits, (vocab_size), of the last token of slice `index` of the latest pass.
    ///
    /// # Panics
    ///
    /// If the latest pass had no such slice.
    pub fn logits(&self, index: usize) -> &[f32] {
        assert!(index < self.slices, "the latest pass had {} slices, not {}", self.slices, index + 1);
        &self.logits[index * self.vocab_size..][..self.vocab_size]
    }

    /// Bytes that all buffers hold.
    pub fn bytes(&self) -> usize {
        let floats = [&self.hidden, &self.projected, &self.query, &self.tile_logits, &self.logits];
        self.rows.capacity() * size_of::<Row>()
            + floats.iter().map(|buffer| buffer.capacity() * size_of::<f32>()).sum::<usize>()
            + [&self.normed, &self.attended, &self.activated].map(Input::bytes).iter().sum::<usize>()
            + self.attention.bytes()
    }

    /// Makes room for the logits of a pass.
    pub(super) fn begin(&mut self, config: &ModelConfig, slices: usize) {
        self.vocab_size = config.vocab_size;
        self.slices = slices;
        sized(&mut self.logits, slices * config.vocab_size);
    }

    /// Copies the logits of the tile's row `row` to where those of slice `index` belong.
    pub(super) fn place_logits(&mut self, row: usize, index: usize) {
        let size = self.vocab_size;
        self.logits[index * size..][..size].copy_from_slice(&self.tile_logits[row * size..][..size]);
    }
}

/// The first `length` floats of a buffer, which grows if it is shorter; what they hold is left from earlier use.
pub(super) fn sized(buffer: &mut Vec<f32>, length: usize) -> &mut [f32] {
    rows::sized(buffer, length, 0.0)
}
