//! What both sides of the benchmark share: the work that is measured, the stop-watch, and the way a driver asks.

mod clock;
mod door;

pub use clock::seconds;
pub use door::serve;

/// Tokens of a model's vocabulary; both sides have the same.
const VOCABULARY: u32 = 260;

/// One side of the comparison: it answers what a driver asks.
pub trait Side {
    /// The number that `words` ask for, or `None` where they mean nothing here.
    ///
    /// A time is in seconds and the mean of `passes` passes; what a pass finds ready is made before, untimed, and
    /// kept for the next question about the same work.
    fn ask(&mut self, words: &[&str], passes: u32) -> Option<f64>;
}

/// One forward pass, as both sides can do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// A prompt of so many tokens, nothing of it computed before.
    Prefill(usize),
    /// One more token for each of `batch` sequences that are all `context` tokens long.
    Decode {
        /// Sequences.
        batch: usize,
        /// Tokens that each already has.
        context: usize,
    },
}

impl Work {
    /// Reads `prefill TOKENS` or `decode BATCH CONTEXT`.
    pub fn read(words: &[&str]) -> Option<Work> {
        match *words {
            ["prefill", tokens] => Some(Work::Prefill(tokens.parse().ok()?)),
            ["decode", batch, context] => {
                Some(Work::Decode { batch: batch.parse().ok()?, context: context.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// `count` tokens of a text, the same on both sides.
pub fn text(count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| (i * 37 + 11) % VOCABULARY).collect()
}
