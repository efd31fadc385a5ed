//! Attention of one token to its sequence, reading keys and values in place through the block table.

use crate::kv::BlockId;
use crate::kv::store::KvStore;

use super::ModelConfig;
use super::kernels::{LANES, accumulate, softmax};

/// Query heads computed at once over the same keys.
const HEADS_AT_ONCE: usize = 4;

/// What one query attends to.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub store: &'a KvStore,
    pub layer: usize,
    /// The sequence's block table.
    pub blocks: &'a [BlockId],
    /// Tokens attended to: the query's position and all before it.
    pub tokens: usize,
}

impl Context<'_> {
    /// Lets every head of `query`, (heads, head_dim), rotated and scaled, attend; the result goes to `out`, of the
    /// same shape. `scores` is room that grows to the longest context.
    pub fn attend(&self, config: &ModelConfig, query: &[f32], scores: &mut Vec<f32>, out: &mut [f32]) {
        let covered = self.tokens.div_ceil(self.store.block_size()) * self.store.block_size();
        if scores.len() < HEADS_AT_ONCE * covered {
            scores.resize(HEADS_AT_ONCE * covered, 0.0);
        }
        let shared = config.group() * config.head_dim;
        let at_once = HEADS_AT_ONCE * config.head_dim;
        for (head, (query, out)) in query.chunks_exact(shared).zip(out.chunks_exact_mut(shared)).enumerate() {
            for (query, out) in query.chunks(at_once).zip(out.chunks_mut(at_once)) {
                match query.len() / config.head_dim {
                    4 => self.heads::<4>(head, query, scores, out),
                    3 => self.heads::<3>(head, query, scores, out),
                    2 => self.heads::<2>(head, query, scores, out),
                    _ => self.heads::<1>(head, query, scores, out),
                }
            }
        }
    }

    /// `R` query heads over one key and value head.
    ///
    /// A score is a sum over the head's elements in order and an output a sum over the tokens in order, however the
    /// blocks cut them, so that neither the block size nor the table changes a bit.
    fn heads<const R: usize>(&self, head: usize, query: &[f32], scores: &mut [f32], out: &mut [f32]) {
        let head_dim = query.len() / R;
        let block_size = self.store.block_size();
        let blocks = &self.blocks[..self.tokens.div_ceil(block_size)];
        let stride = blocks.len() * block_size;
        let queries: [&[f32]; R] = std::array::from_fn(|r| &query[r * head_dim..][..head_dim]);

        for (start, &block) in (0..).step_by(block_size).zip(blocks) {
            let keys = self.store.planes(block, self.layer, head).keys;
            let wanted = block_size.min(self.tokens - start);
            for first in (0..wanted).step_by(LANES) {
                // Scores of tokens beyond the context, in the last panel, are computed and never read.
                let lanes = LANES.min(block_size - first);
                let panel = &keys[first * head_dim..][..lanes * head_dim];
                let mut sums = [[[0.0; LANES]; 1]; R];
                if lanes == LANES {
                    accumulate(&mut sums, queries, [panel.as_chunks().0]);
                } else {
                    narrow(&mut sums, queries, panel, lanes);
                }
                for (r, [sums]) in sums.iter().enumerate() {
                    scores[r * stride + start + first..][..lanes].copy_from_slice(&sums[..lanes]);
                }
            }
        }

        for scores in scores.chunks_exact_mut(stride).take(R) {
            softmax(&mut scores[..self.tokens]);
        }

        for panel in 0..head_dim / LANES {
            let mut sums = [[[0.0; LANES]; 1]; R];
            for (start, &block) in (0..).step_by(block_size).zip(blocks) {
                let values = self.store.planes(block, self.layer, head).values;
                let wanted = block_size.min(self.tokens - start);
                let shares: [&[f32]; R] = std::array::from_fn(|r| &scores[r * stride + start..][..wanted]);
                accumulate(&mut sums, shares, [&values[panel * block_size..][..wanted]]);
            }
            for (out, [sums]) in out.chunks_exact_mut(head_dim).zip(&sums) {
                out[panel * LANES..][..LANES].copy_from_slice(sums);
            }
        }
    }
}

/// [`accumulate`] over a panel of fewer than eight lanes: the same products in the same order.
fn narrow<const R: usize>(acc: &mut [[[f32; LANES]; 1]; R], rows: [&[f32]; R], panel: &[f32], lanes: usize) {
    for ([sums], row) in acc.iter_mut().zip(rows) {
        for (value, panel) in row.iter().zip(panel.chunks_exact(lanes)) {
            for (sum, weight) in sums.iter_mut().zip(panel) {
                *sum += value * weight;
            }
        }
    }
}
