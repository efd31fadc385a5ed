//! Decode steps by the stretch: what many of them take together, without taking them one by one.
//!
//! A batch that only decodes attends to as many more pairs in each step as it has requests, so a price
//! that is linear in its work, in whole picoseconds, grows from step to step by one and the same
//! amount. Sums and crossings of such a line are exact.

use super::StepPrice;
use crate::engine::{Piece, Work};
use crate::units::Span;

/// What the event loop asks of a price.
pub trait Price {
    /// How long a step takes: at least one unit of time.
    fn of(&self, work: &Work) -> Span;

    /// What a step that only decodes `first` takes, and each of the steps after it in which every
    /// request is a token longer, for as far as that is one line. A price that is the larger of several
    /// lines ends it where another of them takes over.
    fn decode_line(&self, first: Piece) -> Line;
}

/// Prices of consecutive steps: `first`, `first + slope`, `first + 2 · slope` …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// The first step's, in picoseconds; at least 1.
    pub first: u64,
    /// What each step takes more than the one before it, in picoseconds.
    pub slope: u64,
    /// Steps for which this holds; at least 1.
    pub steps: u64,
}

impl Line {
    /// Of one step.
    pub fn of_one(span: Span) -> Line {
        Line { first: span.0, slope: 0, steps: 1 }
    }

    /// `fixed + step · slope` picoseconds for step 0, 1, 2 …, but never less than the least a step
    /// takes.
    pub fn new(fixed: Span, slope: Span) -> Line {
        match (fixed, slope) {
            // Past the end of the clock nothing has to be exact, but nothing may wrap.
            (Span(u64::MAX), _) | (_, Span(u64::MAX)) => Line::of_one(fixed),
            (Span::ZERO, Span::ZERO) => Line { first: Span::GRAIN.0, slope: 0, steps: u64::MAX },
            (Span::ZERO, _) => Line::of_one(Span::GRAIN),
            (first, slope) => Line { first: first.0, slope: slope.0, steps: u64::MAX },
        }
    }

    /// What step `at`, counted from 0, takes; `None` beyond what the clock can hold.
    pub fn step(&self, at: u64) -> Option<Span> {
        self.slope.checked_mul(at)?.checked_add(self.first).map(Span)
    }

    /// What the first `steps` take together; `None` beyond what the clock can hold.
    pub fn sum(&self, steps: u64) -> Option<Span> {
        let (first, slope, n) = (u128::from(self.first), u128::from(self.slope), u128::from(steps));
        let growth = slope.checked_mul(n * n.saturating_sub(1) / 2)?;
        u64::try_from(first.checked_mul(n)?.checked_add(growth)?).ok().map(Span)
    }

    /// How many whole steps pass within a time.
    pub fn steps_within(&self, span: Span) -> u64 {
        let fits = |steps: u64| self.sum(steps).is_some_and(|sum| sum <= span);
        // No step takes less than the first.
        let (mut fit, mut too_many) = (0, span.0 / self.first + 1);
        // First ever longer strides, since it is mostly few.
        let mut stride = 1;
        while fit + stride < too_many {
            if !fits(fit + stride) {
                too_many = fit + stride;
                break;
            }
            fit += stride;
            stride *= 2;
        }
        while fit + 1 < too_many {
            let middle = fit + (too_many - fit) / 2;
            if fits(middle) { fit = middle } else { too_many = middle }
        }
        fit
    }

    /// The line from step `at` on.
    pub fn from(&self, at: u64) -> Option<Line> {
        Some(Line { first: self.step(at)?.0, slope: self.slope, steps: self.steps.checked_sub(at)? })
    }
}

impl Price for StepPrice {
    fn of(&self, work: &Work) -> Span {
        StepPrice::of(self, work)
    }

    fn decode_line(&self, first: Piece) -> Line {
        Line::new(self.decode.of(&first), Span(self.decode.per_pair).times(first.tokens))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PiecePrice;

    fn decode(first: Piece, step: u64) -> Work {
        let piece = Piece { pairs: first.pairs + step * first.tokens, ..first };
        Work { prefills: Vec::new(), decode: Some(piece) }
    }

    #[test]
    fn a_line_is_its_steps_one_by_one() {
        for (base, per_token, per_pair) in
            [(500, 5, 2), (0, 0, 0), (0, 0, 3), (7, 0, 0), (1 << 50, 1 << 40, 9)]
        {
            let price = StepPrice {
                prefill: PiecePrice { base: 1, per_token: 1, per_pair: 1 },
                decode: PiecePrice { base, per_token, per_pair },
            };
            for first in [Piece { tokens: 1, pairs: 1 }, Piece { tokens: 3, pairs: 4_000 }] {
                let line = price.decode_line(first);
                let mut total = 0;
                for step in 0..line.steps.min(200) {
                    let span = price.of(&decode(first, step));
                    assert_eq!(line.step(step), Some(span), "step {step} of {line:?}");
                    assert_eq!(line.sum(step), Some(Span(total)));
                    assert_eq!(line.steps_within(Span(total)), step);
                    assert_eq!(line.steps_within(Span(total + span.0 - 1)), step);
                    total += span.0;
                }
            }
        }
    }

    #[test]
    fn what_the_clock_cannot_hold_does_not_wrap() {
        let line = Line { first: u64::MAX / 2, slope: u64::MAX / 2, steps: u64::MAX };
        assert_eq!((line.sum(1), line.sum(3)), (Some(Span(u64::MAX / 2)), None));
        assert_eq!(
            (line.step(1).is_some(), line.step(4), line.steps_within(Span(u64::MAX))),
            (true, None, 1)
        );
        assert_eq!(Line::new(Span(u64::MAX), Span(1)).steps, 1);
    }
}
