//! Attention over paged keys and values, read in place through the block table: tiles of queries against tiles of
//! keys, with online softmax.
//!
//! A tile of keys begins at a multiple of [`TILE`] *positions*, whatever the blocks, the batch or the cached prefix,
//! and a query meets its tiles in order: so its sums have one order, in a prefill as in a decode, and their bits
//! depend on nothing else. The four lanes of a quad are four query heads that share one head of keys and values; each
//! key is loaded once for all four, and softmax runs down the lanes with nothing to add across them.

use core::ops::Range;

use crate::kv::BlockId;
use crate::kv::store::{KvStore, Plane};

use super::ModelConfig;
use super::kernels::rows::place;
use super::kernels::simd::{F32x8, Kernel, wide};
use super::kernels::{LANES, accumulate, exp};

// The three loops inside are functions of their own in wasm, where a smaller function has its sums in registers: its
// compilers allocate them for a whole function at once. Natively they are inlined, to be compiled for AVX.

/// Query heads computed together over the same keys.
pub(super) const QUAD: usize = 4;
/// Tokens whose scores are held at once: with their keys and values, what fits the first-level cache.
const TILE: usize = 64;
/// Queries that pass over a tile of keys and values while it is in that cache.
const QUERIES: usize = 16;

/// Floats of one token's queries, (kv_heads, quads, head_dim, 4), where a group is filled up to whole quads.
pub(super) fn query_width(config: &ModelConfig) -> usize {
    config.kv_heads * quads(config) * config.head_dim * QUAD
}

fn quads(config: &ModelConfig) -> usize {
    config.group().div_ceil(QUAD)
}

/// Where element 0 of a query head lies in a token's queries; the next element is [`QUAD`] floats on.
pub(super) fn query_place(config: &ModelConfig, head: usize) -> usize {
    let (kv_head, in_group) = (head / config.group(), head % config.group());
    (kv_head * quads(config) + in_group / QUAD) * config.head_dim * QUAD + in_group % QUAD
}

/// Working memory, kept between calls.
#[derive(Clone, Debug, Default)]
pub(super) struct AttentionScratch {
    scores: Vec<f32>, // (TILE + LANES, 4): of one query, and room for the last panel's spare lanes
    segments: Vec<Segment>, // of the tile of keys
    states: Vec<State>, // one a query
    sums: Vec<Sums>,  // (queries, head_dim / 8)
}

impl AttentionScratch {
    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.scores.capacity() * size_of::<f32>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.states.capacity() * size_of::<State>()
            + self.sums.capacity() * size_of::<Sums>()
    }
}

/// Weighted sums of four heads' values, eight elements each.
type Sums = [F32x8; QUAD];

/// What softmax has seen of a query's scores so far; both halves are the same four heads.
#[derive(Clone, Copy, Debug)]
struct State {
    largest: F32x8,
    total: F32x8,
}

/// A part of a tile that lies in one block.
#[derive(Clone, Copy, Debug)]
struct Segment {
    /// Its first token, counted from the tile's first.
    start: usize,
    /// That token's slot in its block.
    slot: usize,
    /// Tokens.
    count: usize,
    /// Where its keys and values are.
    plane: Plane,
}

/// Queries of one sequence at neighbouring positions, about to attend to all that is before them and themselves.
pub(super) struct Attention<'a> {
    pub config: &'a ModelConfig,
    pub store: &'a KvStore,
    pub layer: usize,
    /// The sequence's block table.
    pub blocks: &'a [BlockId],
    /// Positions of the queries.
    pub positions: Range<usize>,
    /// Rotated and scaled, one after the other; see [`query_width`].
    pub queries: &'a [f32],
    pub scratch: &'a mut AttentionScratch,
    /// What attends goes here, in blocks of rows of (heads, head_dim).
    pub out: &'a mut [f32],
    /// The first query's row in `out`, and how many rows `out` has.
    pub first_row: usize,
    pub rows: usize,
}

impl Attention<'_> {
    /// Computes it.
    pub fn attend(self) {
        wide(self);
    }
}

impl Kernel for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const AVX2: bool>(mut self) {
        self.scratch.scores.resize((TILE + LANES) * QUAD, 0.0);
        let count = self.positions.len();
        for first in (0..count).step_by(QUERIES) {
            self.tile_of_queries(first..(first + QUERIES).min(count));
        }
    }
}

impl Attention<'_> {
    /// Some of the queries, all heads. A tile of keys and values is read head by head: one block's heads are
    /// neighbours in memory.
    #[inline(always)]
    fn tile_of_queries(&mut self, queries: Range<usize>) {
        let (config, head_dim) = (self.config, self.config.head_dim);
        let (width, panels) = (query_width(config), head_dim / LANES);
        let every = config.kv_heads * quads(config);
        let scratch = core::mem::take(self.scratch);
        let AttentionScratch { mut scores, mut segments, mut states, mut sums } = scratch;
        states.clear();
        states.resize(
            every * queries.len(),
            State { largest: F32x8::splat(f32::NEG_INFINITY), total: F32x8::ZERO },
        );
        sums.clear();
        sums.resize(every * queries.len() * panels, [F32x8::ZERO; QUAD]);

        let mut touched = 0;
        let end = self.positions.start + queries.end;
        for tile in (0..end).step_by(TILE) {
            for quad in 0..every {
                if quad % quads(config) == 0 {
                    self.segments(quad / quads(config), tile..(tile + TILE).min(end), &mut segments);
                    for segment in &segments {
                        touched ^= touch(self.store.keys(segment.plane));
                        touched ^= touch(self.store.values(segment.plane));
                    }
                }
                for (i, query) in queries.clone().enumerate() {
                    let position = self.positions.start + query;
                    if position < tile {
                        continue;
                    }
                    let tokens = TILE.min(position + 1 - tile);
                    let at = i * every + quad;
                    let start = query * width + quad * head_dim * QUAD;
                    let query = self.queries[start..][..head_dim * QUAD].as_chunks().0;
                    self.score(query, &segments, tokens, &mut scores);
                    let shrink = softmax(&mut scores, tokens, &mut states[at]);
                    self.weigh(&segments, tokens, &scores, shrink, &mut sums[at * panels..][..panels]);
                }
            }
        }

        for (i, query) in queries.enumerate() {
            for quad in 0..every {
                let at = i * every + quad;
                let (head, in_group) = (quad / quads(config), quad % quads(config) * QUAD);
                let shares = lanes(F32x8::splat(1.0) / states[at].total);
                for r in 0..QUAD.min(config.group() - in_group) {
                    let element = (head * config.group() + in_group + r) * head_dim;
                    let share = F32x8::splat(shares[r]);
                    self.put(
                        query,
                        element,
                        sums[at * panels..][..panels].iter().map(|sums| sums[r] * share),
                    );
                }
            }
        }
        core::hint::black_box(touched); // Else the reads would be left out.
        *self.scratch = AttentionScratch { scores, segments, states, sums };
    }

    /// Writes elements of one query's result, from `element` on.
    #[inline(always)]
    fn put(&mut self, query: usize, element: usize, values: impl Iterator<Item = F32x8>) {
        let (first, step) = place(self.first_row + query, self.rows, self.config.hidden());
        for (panel, values) in values.enumerate() {
            let out = &mut self.out[first + (element + panel * LANES) * step..];
            for (i, value) in lanes(values).into_iter().enumerate() {
                out[i * step] = value;
            }
        }
    }

    /// Finds the parts of a tile of tokens in their blocks.
    #[inline(always)]
    fn segments(&self, head: usize, tokens: Range<usize>, segments: &mut Vec<Segment>) {
        let block_size = self.store.block_size();
        segments.clear();
        let mut at = tokens.start;
        while at < tokens.end {
            let (block, slot) = (at / block_size, at % block_size);
            let count = (block_size - slot).min(tokens.end - at);
            let plane = self.store.plane(self.blocks[block], self.layer, head);
            segments.push(Segment { start: at - tokens.start, slot, count, plane });
            at += count;
        }
    }

    /// Scores of the tile's first `tokens` tokens, (tokens, 4); a score is a sum over the head's elements in order.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn score(&self, query: &[[f32; QUAD]], segments: &[Segment], tokens: usize, scores: &mut [f32]) {
        let head_dim = query.len();
        for segment in segments.iter().take_while(|segment| segment.start < tokens) {
            let keys = self.store.keys(segment.plane).as_chunks::<LANES>().0;
            let end = segment.slot + segment.count.min(tokens - segment.start);
            for panel in segment.slot / LANES..end.div_ceil(LANES) {
                let mut sums = [F32x8::ZERO; QUAD];
                accumulate(&mut sums, query, &keys[panel * head_dim..][..head_dim]);
                let turned = F32x8::transpose(sums);
                // Lanes before the segment (of the tile before) are left out; those after it are overwritten or
                // never read.
                let skipped = segment.slot.saturating_sub(panel * LANES);
                let start = (segment.start + panel * LANES + skipped - segment.slot) * QUAD;
                if skipped == 0 {
                    let (out, _) = scores[start..].as_chunks_mut::<LANES>();
                    for (out, turned) in out.iter_mut().zip(turned) {
                        turned.store(out);
                    }
                } else {
                    let turned = turned.map(lanes);
                    let kept = &turned.as_flattened()[skipped * QUAD..];
                    scores[start..][..kept.len()].copy_from_slice(kept);
                }
            }
        }
    }

    /// Shrinks the sums to the new largest score, and adds the tile's values, each times its share, in order.
    #[cfg_attr(target_arch = "wasm32", inline(never))]
    #[cfg_attr(not(target_arch = "wasm32"), inline(always))]
    fn weigh(&self, segments: &[Segment], tokens: usize, shares: &[f32], shrink: F32x8, sums: &mut [Sums]) {
        let shrink = lanes(shrink);
        let (shares, _) = shares.as_chunks::<QUAD>();
        let block_size = self.store.block_size();
        for (panel, sums) in sums.iter_mut().enumerate() {
            let mut local: Sums = core::array::from_fn(|r| sums[r] * F32x8::splat(shrink[r]));
            for segment in segments.iter().take_while(|segment| segment.start < tokens) {
                let count = segment.count.min(tokens - segment.start);
                let values = self.store.values(segment.plane).as_chunks::<LANES>().0;
                let values = &values[panel * block_size + segment.slot..][..count];
                accumulate(&mut local, &shares[segment.start..][..count], values);
            }
            *sums = local;
        }
    }
}

/// Replaces a tile's scores, (tokens, 4), by exponentials of their distance to the largest so far, and adds those to
/// the state; returns what everything before is worth now.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn softmax(scores: &mut [f32], tokens: usize, state: &mut State) -> F32x8 {
    if tokens % 2 == 1 {
        scores[tokens * QUAD..][..QUAD].fill(f32::NEG_INFINITY);
    }
    let pairs = &mut scores.as_chunks_mut::<LANES>().0[..tokens.div_ceil(2)];
    let largest = pairs.iter().map(F32x8::load).fold(state.largest, F32x8::max);
    let largest = largest.max(largest.swap_halves());
    let mut total = F32x8::ZERO;
    for pair in pairs {
        let power = exp(F32x8::load(pair) - largest);
        power.store(pair);
        total = total + power;
    }
    let shrink = exp(state.largest - largest);
    state.largest = largest;
    state.total = state.total * shrink + (total + total.swap_halves());
    shrink
}

#[inline(always)]
fn lanes(lanes: F32x8) -> [f32; LANES] {
    let mut out = [0.0; LANES];
    lanes.store(&mut out);
    out
}

/// Reads a float of every cache line, so that all are asked of memory at once instead of one after the other: a
/// decode reads each key and value only once, and would wait for most of them. What it returns means nothing.
#[inline(always)]
fn touch(floats: &[f32]) -> u32 {
    floats.as_chunks::<16>().0.iter().fold(0, |touched, line| touched ^ line[0].to_bits())
}
