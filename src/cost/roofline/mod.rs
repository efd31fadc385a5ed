//! What a step costs on an accelerator: a roofline, in whole picoseconds.
//!
//! A step is one fused forward pass, as in an engine that batches chunks of prompts with decodes: the
//! tokens of its prefills and of its decode are computed together, and weights are read once. With
//! *T* tokens in all, *S* sequences that get a token, and per GPU of the `tp` that share the model:
//!
//! ```text
//! step   = overhead + S · per sequence + layers · per layer
//!        + product(weights of the layers, T) + product(weights of the head, S)
//!        + attention + 2 · layers · all-reduce(T)            (the last only where tp > 1)
//! product(weights, n) = max(read + exposed · n · compute, n · compute + exposed · read)
//! attention = max(bytes of the keys and values read, and of T tokens' written; operations of the pairs)
//! all-reduce(T) = latency + 2 · (tp − 1) ÷ tp · bytes of T activations ÷ bandwidth of the link
//! ```
//!
//! - *read* is bytes of weights ÷ (bandwidth × efficiency), *compute* is 2 operations a weight and
//!   token ÷ (peak × efficiency); *exposed* is the part of the shorter that the longer does not hide:
//!   0 would be the plain roofline, 1 no overlap at all.
//! - In a mixture of experts a token computes with the experts it takes; read are those that anybody
//!   takes: of *E* experts, *k* a token, *E* · (1 − (1 − *k*/*E*)^T) are expected if tokens choose
//!   independently and evenly. (Real routers are less even, and touch fewer.)
//! - A decoding request reads all keys and values before it; a prefill reads those of its whole
//!   context once, whatever part of it was cached, and writes its own.
//! - Operations of attention: 4 a pair, query head and number of a head.
//! - Left out: the embedding's look-up, sampling beyond the per-sequence figure, anything that
//!   crosses machines.
//!
//! Constants become whole picoseconds once; all that follows is integer arithmetic. In consecutive
//! decode steps only the pairs grow, so such steps lie on the [larger of lines](Upper).

use serde::{Deserialize, Serialize};

use super::{Line, Price, Upper};
use crate::engine::{Piece, Work};
use crate::units::{PICOS_PER_SECOND, Span};

mod accelerator;
mod achieved;
pub mod fit;
mod memory;
mod shape;

pub use accelerator::{AMPERE, Accelerator, Datasheet, Efficiency, HOPPER};
pub use achieved::{Achieved, Counter};
pub use memory::{Deployment, KvPool, MOST_BLOCKS, Misfit, Running, UTILISATION};
pub use shape::{
    BYTES, LLAMA_2_7B, LLAMA_2_70B, LLAMA_3_8B, LLAMA_3_70B, Mlp, QWEN3_30B_A3B, QWEN3_32B, ServedModel,
    Shape, Share,
};

/// Every step: scheduling and preparing inputs, on the processor. As fitted to vLLM by BLIS
/// (inference-sim, f90a1e3), in seconds.
const STEP: f64 = 126e-6;

/// Every sequence that gets a token in a step: sampling and bookkeeping. Same source, in seconds.
const SEQUENCE: f64 = 4.4e-6;

/// The price of a step on one kind of accelerator; every figure in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Roofline {
    /// Every step.
    pub step: u64,
    /// Every sequence that gets a token.
    pub sequence: u64,
    /// What the layers' kernels take whatever they compute.
    pub kernels: u64,
    /// The matrices of all layers, for every token.
    pub matrices: Product,
    /// Reading experts, beside that.
    pub experts: Option<Experts>,
    /// The head, for every sequence that gets a token.
    pub head: Product,
    /// Attention.
    pub attention: Attention,
    /// All all-reduces of a step: every step, and every token.
    pub all_reduce: (u64, u64),
}

/// A product of weights with some vectors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Product {
    /// Reading the weights.
    pub read: u64,
    /// What of that is not hidden behind computing.
    pub read_exposed: u64,
    /// Computing one vector.
    pub compute: u64,
    /// What of that is not hidden behind reading.
    pub compute_exposed: u64,
}

/// Reading the experts that a step's tokens take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experts {
    /// Reading all of them.
    pub read: u64,
    /// What of that is not hidden behind computing.
    pub read_exposed: u64,
    /// How likely a token is not to take a given one, in parts of 2³².
    pub missed: u64,
}

/// Attention: reading and writing keys and values, or computing with them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attention {
    /// Reading (or writing) one token's keys and values.
    pub token: u64,
    /// Computing one pair of query and key.
    pub pair: u64,
}

const ONE: u64 = 1 << 32;

/// The part of all experts that `tokens` tokens are expected to take, in parts of 2³².
fn taken(missed: u64, tokens: u64) -> u64 {
    let times = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> 32) as u64;
    let (mut power, mut base, mut left) = (ONE, missed, tokens);
    while left > 0 && power > 0 {
        if left & 1 == 1 {
            power = times(power, base);
        }
        base = times(base, base);
        left >>= 1;
    }
    ONE - power
}

fn part(picos: u64, parts: u64) -> u64 {
    ((u128::from(picos) * u128::from(parts)) >> 32) as u64
}

fn picos(seconds: f64) -> u64 {
    (seconds * PICOS_PER_SECOND as f64).round() as u64
}

impl Product {
    fn new(read: f64, compute: f64, exposed: f64) -> Product {
        Product {
            read: picos(read),
            read_exposed: picos(exposed * read),
            compute: picos(compute),
            compute_exposed: picos(exposed * compute),
        }
    }

    /// What it takes for `n` vectors.
    pub fn of(&self, n: u64) -> Span {
        let bound_by_reading = Span(self.read) + Span(self.compute_exposed).times(n);
        let bound_by_computing = Span(self.compute).times(n) + Span(self.read_exposed);
        bound_by_reading.max(bound_by_computing)
    }
}

impl Attention {
    /// The two sides: bytes of so many tokens' keys and values, operations of so many pairs.
    fn sides(&self, tokens: u64, pairs: u64) -> [Span; 2] {
        [Span(self.token).times(tokens), Span(self.pair).times(pairs)]
    }
}

/// How many keys a prefill's last token attends to: all of its context.
fn context(piece: &Piece) -> u64 {
    // Tokens s..s + t of a sequence make t · s + t · (t + 1) ÷ 2 pairs.
    let ends = piece.pairs.saturating_mul(2).checked_div(piece.tokens);
    ends.map_or(0, |ends| ends.saturating_add(piece.tokens - 1) / 2)
}

impl Roofline {
    /// Of a model's share on each of `tp` devices that it [divides](Shape::divides) among.
    pub fn new(shape: &Shape, tp: u32, sheet: &Datasheet, have: &Efficiency) -> Roofline {
        let share = shape.share(tp);
        let bandwidth = sheet.bandwidth * have.bandwidth;
        let reading = |numbers: u64| (BYTES * numbers) as f64 / bandwidth;
        let computing = |numbers: u64| (2 * numbers) as f64 / (sheet.flops * have.compute);
        let experts = match shape.mlp {
            Mlp::Dense(_) => None,
            Mlp::Experts { experts, active, .. } => Some(Experts {
                read: picos(reading(share.experts)),
                read_exposed: picos(have.exposed * reading(share.experts)),
                missed: ONE - ONE * active / experts,
            }),
        };
        let all_reduces = if tp > 1 { 2.0 * shape.layers as f64 } else { 0.0 };
        let ring = 2.0 * f64::from(tp - 1) / f64::from(tp);
        let sent = ring * (BYTES * shape.hidden) as f64 / (sheet.link * have.link);
        Roofline {
            step: picos(STEP),
            sequence: picos(SEQUENCE),
            kernels: picos(have.layer * shape.layers as f64),
            matrices: Product::new(
                reading(share.matrices),
                computing(share.matrices + share.active_experts),
                have.exposed,
            ),
            experts,
            head: Product::new(reading(share.head), computing(share.head), have.exposed),
            attention: Attention {
                token: picos(reading(share.kv)),
                pair: picos((4 * share.queries) as f64 / (sheet.flops * have.attention)),
            },
            all_reduce: (picos(all_reduces * have.all_reduce), picos(all_reduces * sent)),
        }
    }

    /// The layers' matrix products and small kernels for so many tokens: what profiles of a model's
    /// operations without attention, head and communication measure.
    pub fn layers(&self, tokens: u64) -> Span {
        let mut product = self.matrices;
        if let Some(Experts { read, read_exposed, missed }) = self.experts {
            let taken = taken(missed, tokens);
            product.read += part(read, taken);
            product.read_exposed += part(read_exposed, taken);
        }
        Span(self.kernels) + product.of(tokens)
    }

    /// All of a step but its attention.
    fn but_attention(&self, tokens: u64, sequences: u64) -> Span {
        let (every_step, every_token) = self.all_reduce;
        Span(self.step)
            + Span(self.sequence).times(sequences)
            + self.layers(tokens)
            + self.head.of(sequences)
            + Span(every_step)
            + Span(every_token).times(tokens)
    }

    /// What decode steps take, from one that decodes `first` on, as long as nobody joins or leaves.
    pub fn decodes(&self, first: Piece) -> Upper<2> {
        let rest = self.but_attention(first.tokens, first.tokens);
        let begin = self.attention.sides(first.pairs.saturating_add(first.tokens), first.pairs);
        let slope = self.attention.sides(first.tokens, first.tokens);
        Upper::new([(rest + begin[0], slope[0]), (rest + begin[1], slope[1])])
    }
}

impl Price for Roofline {
    fn of(&self, work: &Work) -> Span {
        let decode = work.decode.unwrap_or_default();
        let (mut tokens, mut pairs, mut keys) = (decode.tokens, decode.pairs, decode.pairs);
        for piece in &work.prefills {
            tokens = tokens.saturating_add(piece.tokens);
            pairs = pairs.saturating_add(piece.pairs);
            keys = keys.saturating_add(context(piece));
        }
        let sequences = decode.tokens.saturating_add(work.prefills.len() as u64);
        let [bytes, operations] = self.attention.sides(keys.saturating_add(tokens), pairs);
        (self.but_attention(tokens, sequences) + bytes.max(operations)).max(Span::GRAIN)
    }

    fn decode_line(&self, first: Piece) -> Line {
        self.decodes(first).from(0)
    }
}

#[cfg(test)]
mod tests;
