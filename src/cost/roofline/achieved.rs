//! What a step achieves: operations computed and bytes moved, against what the accelerator could.
//!
//! The counts are those of the [price](super::Roofline), without its efficiencies: what a profiler would
//! report as compute and memory-bandwidth utilisation, not what `nvidia-smi` calls GPU utilisation (which
//! is 100 % whenever any kernel runs).

use super::{BYTES, Datasheet, Mlp, ONE, Shape, context, taken};
use crate::engine::Work;

/// Operations and bytes of one GPU of those that share a replica.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Achieved {
    /// Floating-point operations.
    pub operations: f64,
    /// Bytes read from and written to its memory: weights, keys and values.
    pub bytes: f64,
}

/// Counts what steps achieve on one GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Counter {
    per_token: f64,
    per_sequence: f64,
    per_pair: f64,
    matrices: f64,
    experts: f64,
    missed: u64,
    head: f64,
    per_key: f64,
    /// Operations a second at most.
    peak: f64,
    /// Bytes a second at most.
    bandwidth: f64,
}

impl Counter {
    /// For a model's share on each of `tp` devices.
    pub fn new(shape: &Shape, tp: u32, sheet: &Datasheet) -> Counter {
        let share = shape.share(tp);
        let bytes = |numbers: u64| (BYTES * numbers) as f64;
        let missed = match shape.mlp {
            Mlp::Dense(_) => 0,
            Mlp::Experts { experts, active, .. } => ONE - ONE * active / experts,
        };
        Counter {
            per_token: (2 * (share.matrices + share.active_experts)) as f64,
            per_sequence: (2 * share.head) as f64,
            per_pair: (4 * share.queries) as f64,
            matrices: bytes(share.matrices),
            experts: bytes(share.experts),
            missed,
            head: bytes(share.head),
            per_key: bytes(share.kv),
            peak: sheet.flops,
            bandwidth: sheet.bandwidth,
        }
    }

    /// What a step achieves.
    pub fn of(&self, work: &Work) -> Achieved {
        let decode = work.decode.unwrap_or_default();
        let (mut tokens, mut pairs, mut keys) = (decode.tokens, decode.pairs, decode.pairs);
        for piece in &work.prefills {
            tokens += piece.tokens;
            pairs += piece.pairs;
            keys += context(piece);
        }
        if tokens == 0 {
            return Achieved::default();
        }
        let sequences = (decode.tokens + work.prefills.len() as u64) as f64;
        let touched = taken(self.missed, tokens) as f64 / ONE as f64;
        Achieved {
            operations: self.per_token * tokens as f64
                + self.per_sequence * sequences
                + self.per_pair * pairs as f64,
            bytes: self.matrices + self.experts * touched + self.head + self.per_key * (keys + tokens) as f64,
        }
    }

    /// Operations ÷ what the peak could have computed in so many seconds.
    pub fn compute(&self, achieved: &Achieved, seconds: f64) -> f64 {
        achieved.operations / (self.peak * seconds)
    }

    /// Bytes ÷ what the memory could have moved in so many seconds.
    pub fn memory(&self, achieved: &Achieved, seconds: f64) -> f64 {
        achieved.bytes / (self.bandwidth * seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Price;
    use crate::cost::roofline::{Accelerator, Deployment, LLAMA_3_8B, QWEN3_30B_A3B, ServedModel};
    use crate::engine::Piece;

    #[test]
    fn a_decode_uses_the_memory_and_a_prompt_the_cores_and_neither_more_than_there_is() {
        let sheet = Accelerator::H100.datasheet();
        let counter = Counter::new(&LLAMA_3_8B, 1, &sheet);
        let price = Deployment { model: ServedModel::Llama8B, accelerator: Accelerator::H100, tp: 1 }.price();
        let used = |work: &Work| {
            let (achieved, seconds) = (counter.of(work), price.of(work).seconds());
            (counter.compute(&achieved, seconds), counter.memory(&achieved, seconds))
        };
        let decode = Work { prefills: vec![], decode: Some(Piece { tokens: 32, pairs: 32 * 1000 }) };
        let (compute, memory) = used(&decode);
        assert!((0.02..0.2).contains(&compute) && (0.6..0.9).contains(&memory), "{compute} {memory}");
        let prompt = Work { prefills: vec![Piece::range(0, 4096)], decode: None };
        let (compute, memory) = used(&prompt);
        assert!((0.5..0.7).contains(&compute) && (0.02..0.2).contains(&memory), "{compute} {memory}");
        assert_eq!(counter.of(&Work::default()), Achieved::default());
    }

    #[test]
    fn by_hand() {
        let sheet = Accelerator::H100.datasheet();
        let counter = Counter::new(&LLAMA_3_8B, 1, &sheet);
        // 32 layers of 4,096 × (2 × 4,096 + 2 × 1,024 + 3 × 14,336) numbers; a head of 128,256 × 4,096.
        let matrices = 32.0 * 4096.0 * (2.0 * 4096.0 + 2.0 * 1024.0 + 3.0 * 14_336.0);
        let head = 128_256.0 * 4096.0;
        let one = Work { prefills: vec![], decode: Some(Piece { tokens: 1, pairs: 10 }) };
        let achieved = counter.of(&one);
        assert_eq!(achieved.operations, 2.0 * matrices + 2.0 * head + 4.0 * (32.0 * 32.0 * 128.0) * 10.0);
        assert_eq!(achieved.bytes, 2.0 * matrices + 2.0 * head + 131_072.0 * 11.0);
        let moe = Counter::new(&QWEN3_30B_A3B, 1, &sheet);
        let (few, many) = (
            moe.of(&one).bytes,
            moe.of(&Work { decode: Some(Piece { tokens: 256, pairs: 2560 }), ..one }).bytes,
        );
        assert!(many > 5.0 * few, "more tokens touch more experts: {few} {many}");
    }
}
