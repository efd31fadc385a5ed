//! `rag`: questions behind passages that were found for them, of which some are found often; in the order in which
//! they were found, which is another each time, or sorted.

use super::frame::{Draft, Frame};
use super::{Draw, printable};
use crate::trace::{Token, Trace};

/// The passages.
#[derive(Clone, Copy, Debug)]
pub struct Passages {
    /// How many there are.
    pub pool: usize,
    /// How many a prompt has.
    pub top: usize,
    /// Tokens of each.
    pub tokens: u64,
    /// Zipf exponent over them: 0 is uniform.
    pub skew: f64,
    /// Whether a prompt has them in one order.
    pub sorted: bool,
}

/// A passage's tokens: a stream of its own, so that none has to be kept.
fn passage(at: usize, tokens: u64, seed: u64) -> impl Iterator<Item = Token> {
    let mut draw = Draw::new(seed ^ 0x5261_6750_6173_7361 ^ (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    printable(&mut draw, tokens).into_iter().map(Token::from)
}

/// Makes the trace.
pub fn generate(frame: &Frame<'_>, passages: Passages) -> Trace {
    let mut draft = Draft::new(frame);
    let mut sum = 0.0;
    let ends: Vec<f64> = (1..=passages.pool)
        .map(|rank| {
            sum += libm::pow(rank as f64, -passages.skew);
            sum
        })
        .collect();
    draft.sessions(frame.base.rate, |draft, time| {
        let tenant = draft.tenant();
        let mut found: Vec<usize> = Vec::with_capacity(passages.top);
        while found.len() < passages.top.min(passages.pool) {
            let drawn = draft.draw.unit() * sum;
            let mut at = ends.partition_point(|end| *end <= drawn).min(passages.pool - 1);
            // One that is there already gives way to the next that is not.
            while found.contains(&at) {
                at = (at + 1) % passages.pool;
            }
            found.push(at);
        }
        if passages.sorted {
            found.sort_unstable();
        } else {
            // A fair shuffle (Fisher and Yates): popular passages are drawn first.
            for last in (1..found.len()).rev() {
                let other = draft.draw.between(0, last as u64) as usize;
                found.swap(last, other);
            }
        }
        let mut prompt = draft.system(tenant).to_vec();
        found.iter().for_each(|&at| prompt.extend(passage(at, passages.tokens, frame.base.seed)));
        prompt.extend(draft.question());
        let answer = draft.answer();
        draft.push(time, tenant, prompt, answer);
    });
    draft.trace([])
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{base, frame};
    use super::*;
    use crate::portrait::Portrait;
    use crate::trace::Log;

    #[test]
    fn sorted_passages_are_reused_more_than_shuffled_ones() {
        let base = base(800);
        let ideal = |sorted| {
            let passages = Passages { pool: 40, top: 4, tokens: 128, skew: 1.0, sorted };
            let trace = generate(&frame(&base), passages);
            let system = trace.requests[0].prompt.len() - 4 * 128;
            assert!((300..600).contains(&system), "{system}");
            Portrait::of(&Log::from(trace)).reuse.ideal.expect("it has tokens")
        };
        let (shuffled, sorted) = (ideal(false), ideal(true));
        assert!(sorted > shuffled + 0.03, "{shuffled} {sorted}");
    }
}
