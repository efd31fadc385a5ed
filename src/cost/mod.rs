//! What a step costs, in simulated time.
//!
//! A forward pass is priced as `base + per_token · tokens + per_pair · attended pairs`, in whole
//! picoseconds, with one set of constants for a prefill and one for a decode step. A pair is a
//! query token and a key that it attends to. On an accelerator the whole step is one pass, priced by
//! a [roofline].

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::engine::{Piece, Work};
use crate::units::Span;

pub mod calibrate;
mod line;
mod presets;
pub mod roofline;
mod upper;

pub use line::{Line, Price};
pub use presets::{CHAPTER_CPU, TINYGPT_WASM};
pub use roofline::Roofline;
pub use upper::Upper;

/// The price of one forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PiecePrice {
    /// Whatever the pass computes, in picoseconds.
    pub base: u64,
    /// For each token, in picoseconds.
    pub per_token: u64,
    /// For each attended pair, in picoseconds.
    pub per_pair: u64,
}

/// The price of a step: its prefills, one by one, and its decode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepPrice {
    /// Each prefill.
    pub prefill: PiecePrice,
    /// The decode of everything that runs.
    pub decode: PiecePrice,
}

impl PiecePrice {
    /// What a pass costs.
    pub fn of(&self, piece: &Piece) -> Span {
        Span(self.base) + Span(self.per_token).times(piece.tokens) + Span(self.per_pair).times(piece.pairs)
    }
}

impl StepPrice {
    /// How long a step takes: at least one unit of time.
    pub fn of(&self, work: &Work) -> Span {
        let mut span = Span::ZERO;
        for piece in &work.prefills {
            span += self.prefill.of(piece);
        }
        if let Some(piece) = &work.decode {
            span += self.decode.of(piece);
        }
        span.max(Span::GRAIN)
    }

    /// What one request alone costs: its prefill with nothing cached, and its decode steps.
    pub fn of_request_alone(&self, prompt: usize, output: usize) -> Span {
        let mut span = self.prefill.of(&Piece::range(0, prompt));
        for len in prompt + 1..prompt + output {
            span += self.decode.of(&Piece { tokens: 1, pairs: len as u64 });
        }
        span
    }
}

/// A price of whichever kind a configuration asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnyPrice {
    /// Pass by pass, from six constants.
    Step(StepPrice),
    /// One fused forward pass on an accelerator.
    Roofline(Roofline),
}

impl Price for AnyPrice {
    fn of(&self, work: &Work) -> Span {
        match self {
            AnyPrice::Step(price) => price.of(work),
            AnyPrice::Roofline(price) => price.of(work),
        }
    }

    fn decode_line(&self, first: Piece) -> Line {
        match self {
            AnyPrice::Step(price) => price.decode_line(first),
            AnyPrice::Roofline(price) => price.decode_line(first),
        }
    }
}

/// A step's price by name, or by its own six constants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cost {
    /// Fitted to the published rows of the chapter's experiment.
    #[default]
    ChapterCpu,
    /// This project's own engine, measured in a browser.
    TinygptWasm,
    /// Constants of the reader's own, as measured on the reader's machine.
    Custom(StepPrice),
}

impl Cost {
    /// The constants.
    pub fn price(&self) -> StepPrice {
        match self {
            Cost::ChapterCpu => CHAPTER_CPU,
            Cost::TinygptWasm => TINYGPT_WASM,
            Cost::Custom(price) => *price,
        }
    }

    /// Reads a preset's name or six whole numbers of picoseconds.
    pub fn parse(text: &str) -> Option<Cost> {
        match text {
            "chapter-cpu" => return Some(Cost::ChapterCpu),
            "tinygpt-wasm" => return Some(Cost::TinygptWasm),
            _ => {}
        }
        let numbers: Vec<u64> = text.split(',').map(|n| n.trim().parse().ok()).collect::<Option<_>>()?;
        let [base, per_token, per_pair, d_base, d_token, d_pair] = numbers[..] else { return None };
        Some(Cost::Custom(StepPrice {
            prefill: PiecePrice { base, per_token, per_pair },
            decode: PiecePrice { base: d_base, per_token: d_token, per_pair: d_pair },
        }))
    }
}

impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cost::ChapterCpu => f.write_str("chapter-cpu"),
            Cost::TinygptWasm => f.write_str("tinygpt-wasm"),
            Cost::Custom(StepPrice { prefill: p, decode: d }) => write!(
                f,
                "{},{},{},{},{},{}",
                p.base, p.per_token, p.per_pair, d.base, d.per_token, d.per_pair
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_the_sum_of_its_pieces_and_never_nothing() {
        let price = Cost::parse("1000,10,1,500,5,2").expect("six numbers").price();
        let work = Work {
            prefills: vec![Piece { tokens: 3, pairs: 6 }, Piece { tokens: 1, pairs: 4 }],
            decode: Some(Piece { tokens: 2, pairs: 20 }),
        };
        assert_eq!(price.of(&work), Span(1000 + 30 + 6 + 1000 + 10 + 4 + 500 + 10 + 40));
        assert_eq!(Cost::parse("0,0,0,0,0,0").expect("six numbers").price().of(&work), Span(1));
    }

    #[test]
    fn text_round_trips_and_nonsense_is_refused() {
        for text in ["chapter-cpu", "tinygpt-wasm", "1,2,3,4,5,6"] {
            assert_eq!(Cost::parse(text).expect("valid").to_string(), text);
        }
        for text in ["", "h100", "1,2,3", "1,2,3,4,5,6,7", "1,2,3,4,5,-6"] {
            assert_eq!(Cost::parse(text), None, "{text}");
        }
    }
}
