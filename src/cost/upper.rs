//! The larger of several lines: what consecutive decode steps cost where more than one thing can be
//! the bottleneck.
//!
//! Every line grows with the step, so their maximum is convex: one of them holds, until a steeper one
//! takes over for good. Between two such crossings sums are those of a [`Line`], exactly.

use super::Line;
use crate::units::Span;

/// The largest of `N` lines over steps 0, 1, 2 …, and of the least that a step takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Upper<const N: usize> {
    /// What each line says of step 0, and how much more of every further step; picoseconds.
    lines: [(u64, u64); N],
}

impl<const N: usize> Upper<N> {
    /// Of lines given by their value at step 0 and their slope.
    pub fn new(lines: [(Span, Span); N]) -> Upper<N> {
        Upper { lines: lines.map(|(first, slope)| (first.0, slope.0)) }
    }

    /// The line that holds at step `at`, from there on, for as many steps as it does.
    pub fn from(&self, at: u64) -> Line {
        let grain = (Span::GRAIN.0, 0);
        let here =
            |&(first, slope): &(u64, u64)| (u128::from(first) + u128::from(slope) * u128::from(at), slope);
        let lines = || self.lines.iter().chain([&grain]).map(here);
        // Of those that meet here, the steepest holds from here on.
        let (value, slope) = lines().max().unwrap_or((1, 0));
        let Ok(first) = u64::try_from(value) else { return Line::of_one(Span(u64::MAX)) };
        if first == u64::MAX {
            // Past the end of the clock nothing has to be exact, but nothing may wrap.
            return Line::of_one(Span(u64::MAX));
        }
        let overtaken = lines()
            .filter(|&(_, other)| other > slope)
            .map(|(below, other)| (value - below) / u128::from(other - slope) + 1)
            .min();
        let steps = overtaken.map_or(u64::MAX, |steps| u64::try_from(steps).unwrap_or(u64::MAX));
        Line { first, slope, steps }
    }

    /// What the first `steps` steps take together; `None` beyond what the clock can hold.
    pub fn sum(&self, steps: u64) -> Option<Span> {
        let (mut at, mut sum) = (0_u64, 0_u64);
        while at < steps {
            let line = self.from(at);
            let stretch = line.steps.min(steps - at);
            sum = sum.checked_add(line.sum(stretch)?.0)?;
            at += stretch;
        }
        Some(Span(sum))
    }

    /// How many whole steps, from step 0 on, pass within a time.
    pub fn steps_within(&self, span: Span) -> u64 {
        let (mut at, mut left) = (0_u64, span);
        loop {
            let line = self.from(at);
            let fit = line.steps_within(left);
            if fit < line.steps {
                return at + fit;
            }
            match line.sum(line.steps) {
                Some(sum) if sum <= left => left = left - sum,
                _ => return at + line.steps,
            }
            at += line.steps;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::generate::Draw;

    fn plain<const N: usize>(lines: &[(Span, Span); N], step: u64) -> u64 {
        lines.iter().map(|(first, slope)| first.0 + slope.0 * step).max().unwrap_or(0).max(1)
    }

    /// Random lines that cross one another, meet, coincide, or are nothing at all.
    fn random(draw: &mut Draw) -> [(Span, Span); 3] {
        let mut below = |limit: f64| Span((draw.unit() * limit) as u64);
        [(400.0, 3.0), (250.0, 6.0), (90.0, 12.0)].map(|(first, slope)| (below(first), below(slope)))
    }

    #[test]
    fn sums_and_counts_are_those_of_the_steps_one_by_one() {
        let mut draw = Draw::new(7);
        let mut crossings = 0;
        for _ in 0..300 {
            let lines = random(&mut draw);
            let upper = Upper::new(lines);
            let mut total = 0;
            for step in 0..150 {
                let span = plain(&lines, step);
                assert_eq!(upper.from(step).first, span, "step {step} of {lines:?}");
                assert_eq!(upper.sum(step), Some(Span(total)), "{step} steps of {lines:?}");
                assert_eq!(upper.steps_within(Span(total)), step, "{lines:?}");
                assert_eq!(upper.steps_within(Span(total + span - 1)), step, "{lines:?}");
                total += span;
            }
            crossings += u32::from(upper.from(0).steps < 150);
        }
        assert!(crossings > 100, "{crossings} of 300 cross within the steps that were looked at");
    }

    #[test]
    fn a_line_ends_exactly_where_another_exceeds_it() {
        let mut draw = Draw::new(8);
        for _ in 0..300 {
            let lines = random(&mut draw);
            let mut at = 0;
            while at < 150 {
                let line = Upper::new(lines).from(at);
                for step in 0..line.steps.min(150) {
                    assert_eq!(line.step(step), Some(Span(plain(&lines, at + step))), "{lines:?} from {at}");
                }
                if line.steps < 150 {
                    assert!(line.step(line.steps).is_some_and(|s| s.0 < plain(&lines, at + line.steps)));
                }
                at = at.saturating_add(line.steps);
            }
        }
    }

    #[test]
    fn what_the_clock_cannot_hold_does_not_wrap() {
        let huge = Upper::new([(Span(u64::MAX), Span(1)), (Span(5), Span(u64::MAX))]);
        assert_eq!(huge.from(0), Line::of_one(Span(u64::MAX)));
        assert_eq!((huge.sum(1), huge.sum(2)), (Some(Span(u64::MAX)), None));
        assert_eq!(Upper::new([(Span(5), Span(u64::MAX))]).from(3).steps, 1);
        let nothing = Upper::new([(Span::ZERO, Span::ZERO)]);
        assert_eq!((nothing.sum(1000), nothing.steps_within(Span(77))), (Some(Span(1000)), 77));
    }
}
