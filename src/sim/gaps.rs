//! The gaps between one token and the next, of every request: as many as tokens, kept as few.
//!
//! In a step every request of a batch waits equally long, and from step to step a little longer: a
//! hundred million gaps are a few hundred thousand runs of evenly growing ones. Their quantiles are
//! those of the whole sample, found by counting the values in ever narrower ranges.

use super::Quantiles;
use crate::units::Span;

/// Gaps of `first`, `first + slope`, … picoseconds, `each` times each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub first: u64,
    pub slope: u64,
    pub steps: u32,
    pub each: u32,
}

/// A sample of gaps.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    runs: Vec<Run>,
    count: u64,
}

impl Gaps {
    /// Adds a gap.
    pub fn push(&mut self, gap: Span) {
        self.count += 1;
        if let Some(last) = self.runs.last_mut()
            && last.steps == 1
            && last.first == gap.0
            && last.each < u32::MAX
        {
            last.each += 1;
            return;
        }
        self.runs.push(Run { first: gap.0, slope: 0, steps: 1, each: 1 });
    }

    /// Adds a run of gaps.
    pub fn push_run(&mut self, run: Run) {
        self.count += u64::from(run.steps) * u64::from(run.each);
        self.runs.push(run);
    }

    /// Their quantiles, interpolated as those of any sample.
    pub fn quantiles(&self) -> Quantiles {
        let at = |p: f64| {
            let last = self.count.checked_sub(1)?;
            let rank = p * last as f64;
            let below = rank as u64;
            let (low, high) = self.at_rank(below, (below + 1).min(last));
            let (low, high) = (Span(low).seconds(), Span(high).seconds());
            Some(low + (high - low) * (rank - below as f64))
        };
        Quantiles { p50: at(0.50), p95: at(0.95), p99: at(0.99) }
    }

    /// The values at a rank and at the same or the next one.
    fn at_rank(&self, rank: u64, next: u64) -> (u64, u64) {
        let mut runs: Vec<Run>;
        let mut all: &[Run] = &self.runs;
        let (mut low, mut high) = (0, all.iter().map(Run::last).max().unwrap_or(0));
        // Gaps below `low`.
        let mut before = 0;
        while low < high {
            let width = (high - low) / BINS + 1;
            let mut bins = [0u64; BINS as usize];
            all.iter().for_each(|run| run.count(low, width, &mut bins));
            let mut bin = 0;
            while before + bins[bin] <= rank {
                before += bins[bin];
                bin += 1;
            }
            low += bin as u64 * width;
            high = high.min(low.saturating_add(width - 1));
            runs = all.iter().filter_map(|run| run.within(low, high)).collect();
            all = &runs;
        }
        let same: u64 = all.iter().map(|run| u64::from(run.steps) * u64::from(run.each)).sum();
        if next < before + same {
            return (low, low);
        }
        (low, self.runs.iter().filter_map(|run| run.above(low)).min().unwrap_or(low))
    }
}

/// Ranges that are counted at once.
const BINS: u64 = 1024;

impl Run {
    fn last(&self) -> u64 {
        self.first + self.slope * u64::from(self.steps - 1)
    }

    /// Index of the first step that is at least `value`, at most `steps`.
    fn reaches(&self, value: u64) -> u32 {
        match value.checked_sub(self.first) {
            None | Some(0) => 0,
            Some(_) if self.slope == 0 => self.steps,
            Some(more) => more.div_ceil(self.slope).min(self.steps.into()) as u32,
        }
    }

    /// The part of it that lies from `low` to `high`.
    fn within(&self, low: u64, high: u64) -> Option<Run> {
        if self.first > high || self.last() < low {
            return None;
        }
        let from = self.reaches(low);
        let to = if self.last() <= high { self.steps } else { self.reaches(high + 1) };
        let first = self.first + self.slope * u64::from(from);
        (from < to).then_some(Run { first, steps: to - from, ..*self })
    }

    /// The least value of it above another.
    fn above(&self, value: u64) -> Option<u64> {
        let at = self.reaches(value.checked_add(1)?);
        (at < self.steps).then(|| self.first + self.slope * u64::from(at))
    }

    /// Counts it, all of which lies in the bins, by bins of `width` from `low` on.
    fn count(&self, low: u64, width: u64, bins: &mut [u64]) {
        let (mut at, end) = (0, self.steps);
        while at < end {
            let bin = (self.first + self.slope * u64::from(at) - low) / width;
            let beyond = low.saturating_add((bin + 1).saturating_mul(width));
            let to = if self.last() < beyond { end } else { self.reaches(beyond) };
            bins[bin as usize] += u64::from(to - at) * u64::from(self.each);
            at = to;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_gaps_one_by_one() {
        let mut state = 11u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for case in 0..400 {
            let (mut gaps, mut values) = (Gaps::default(), Vec::new());
            let grain = [1, 1, 1_000_003, 1 << 40][case % 4];
            for _ in 0..draw(12) {
                let (first, slope) = (draw(50) * grain, draw(4) * (grain / 3 + draw(2)));
                if draw(3) == 0 {
                    gaps.push(Span(first));
                    values.push(Span(first).seconds());
                    continue;
                }
                let run = Run { first, slope, steps: 1 + draw(9) as u32, each: 1 + draw(5) as u32 };
                gaps.push_run(run);
                for step in 0..u64::from(run.steps) {
                    let value = Span(first + slope * step).seconds();
                    values.extend((0..run.each).map(|_| value));
                }
            }
            assert_eq!(gaps.quantiles(), Quantiles::of(values), "case {case}: {gaps:?}");
        }
    }
}
