//! Spreading arrivals that a trace tells only by the bucket.
//!
//! Some public traces round their timestamps (Mooncake's to 3 s): taken as they are, every bucket arrives at
//! once, a burst that nobody saw. Spread out, each bucket's requests arrive somewhere in it, in their order.

use super::Trace;
use super::generate::Draw;
use crate::units::Time;

impl Trace {
    /// The time between two timestamps that meet most often (of several, the shortest), where any two requests
    /// share a timestamp; `None` where none do: then nothing is rounded.
    pub fn bucket(&self) -> Option<u64> {
        let mut gaps: Vec<u64> =
            self.requests.windows(2).map(|pair| pair[1].arrival.0 - pair[0].arrival.0).collect();
        let all = gaps.len();
        gaps.retain(|&gap| gap > 0);
        if gaps.len() == all {
            return None;
        }
        gaps.sort_unstable();
        // The first of the longest runs.
        let longest = gaps.chunk_by(|a, b| a == b).rev().max_by_key(|run| run.len());
        longest.map(|run| run[0])
    }

    /// Draws for each request a time within its timestamp's bucket, uniformly, in the order of the trace. A
    /// timestamp that the next one follows sooner than a whole bucket has only the time until then.
    ///
    /// Requests must be in order of arrival. Where no two share a timestamp, or all do, nothing changes.
    pub fn spread(mut self, seed: u64) -> Trace {
        let Some(width) = self.bucket() else { return self };
        let mut draw = Draw::new(seed);
        let mut from = 0;
        while from < self.requests.len() {
            let start = self.requests[from].arrival;
            let count = self.requests[from..].iter().take_while(|r| r.arrival == start).count();
            let next = self.requests.get(from + count).map_or(u64::MAX, |next| next.arrival.0);
            let width = width.min(next - start.0).min(u64::MAX - start.0);
            let mut within: Vec<u64> = (0..count).map(|_| draw.between(0, width - 1)).collect();
            within.sort_unstable();
            for (request, within) in self.requests[from..].iter_mut().zip(within) {
                request.arrival = Time(start.0 + within);
            }
            from += count;
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Prompt, RequestSpec};

    fn at(times: &[u64]) -> Trace {
        let request = |(i, &time): (usize, &u64)| RequestSpec {
            arrival: Time(time),
            prompt: Prompt::of_length(1 + i as u32),
            max_tokens: 1,
            tenant: None,
            output: None,
        };
        Trace { requests: times.iter().enumerate().map(request).collect(), tenants: Vec::new() }
    }

    fn times(trace: &Trace) -> Vec<u64> {
        trace.requests.iter().map(|r| r.arrival.0).collect()
    }

    #[test]
    fn the_bucket_is_the_gap_that_meets_most_often() {
        assert_eq!(at(&[0, 0, 3000, 3000, 6000, 15_000, 18_001]).bucket(), Some(3000));
        assert_eq!(at(&[0, 0, 9, 13]).bucket(), Some(4), "of several, the shortest");
        assert_eq!(at(&[0, 3000, 6000]).bucket(), None, "nothing is shared");
        assert_eq!(at(&[7, 7, 7]).bucket(), None, "nothing tells a width");
        assert_eq!(at(&[]).bucket(), None);
    }

    #[test]
    fn requests_stay_in_their_bucket_and_in_order() {
        let before: Vec<u64> = (0..400).map(|i| i / 10 * 3000).collect();
        let spread = at(&before).spread(5);
        let after = times(&spread);
        assert!(after.is_sorted());
        assert!(spread.requests.iter().map(|r| r.prompt.len()).eq(1..=400), "the order of the trace is kept");
        assert!(before.iter().zip(&after).all(|(b, a)| (*b..b + 3000).contains(a)));
        let mean = after.iter().zip(&before).map(|(a, b)| (a - b) as f64).sum::<f64>() / 400.0;
        assert!((1350.0..1650.0).contains(&mean), "half a bucket, about: {mean}");
        assert_eq!(times(&at(&before).spread(5)), after);
        assert_ne!(times(&at(&before).spread(6)), after);
    }

    #[test]
    fn a_shorter_gap_bounds_what_is_before_it() {
        for seed in 0..50 {
            let after = times(&at(&[0, 0, 100, 200, 203, 303]).spread(seed));
            assert!(after[1] < 100 && (200..203).contains(&after[3]) && (303..403).contains(&after[5]));
        }
    }

    #[test]
    fn what_is_not_rounded_stays() {
        assert_eq!(times(&at(&[1, 5, 9]).spread(1)), [1, 5, 9]);
        assert_eq!(times(&at(&[4, 4]).spread(1)), [4, 4]);
    }
}
