//! When requests arrive: how many in each part of the time, and how evenly.

use serde::Serialize;

use crate::trace::Trace;

/// Parts that the time is cut into.
const BINS: usize = 60;

/// When requests arrive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Arrivals {
    /// From the first to the last, in seconds.
    pub span: f64,
    /// Requests a second in the mean over that; null where it is no time at all.
    pub rate: Option<f64>,
    /// The gaps' standard deviation over their mean: 1 as in a Poisson stream, less if more even, more in bursts.
    pub gap_variation: Option<f64>,
    /// The variance of the counts in the bins over their mean: 1 as in a Poisson stream, more where the rate itself
    /// changes.
    pub dispersion: Option<f64>,
    /// Requests that arrive at the very time of the one before.
    pub simultaneous: usize,
    /// The width that times seem to be rounded to, in seconds; null where none share a time.
    pub bucket: Option<f64>,
    /// The width of a bin, in seconds.
    pub bin: f64,
    /// Requests in each bin, from the first arrival on.
    pub bins: Vec<u32>,
}

impl Arrivals {
    /// Of a trace in order of arrival.
    pub fn of(trace: &Trace) -> Arrivals {
        let requests = &trace.requests;
        let span = trace.span().seconds();
        let gaps = || requests.windows(2).map(|pair| pair[1].arrival.since(pair[0].arrival).seconds());
        let n = requests.len().saturating_sub(1) as f64;
        let mean = span / n;
        let variance = gaps().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / n;
        let timed = span > 0.0;
        let bin = span / BINS as f64;
        let mut bins = vec![0u32; if timed { BINS } else { 0 }];
        if let (true, Some(first)) = (timed, requests.first()) {
            for request in requests {
                let at = request.arrival.since(first.arrival).seconds() / bin;
                bins[(at as usize).min(BINS - 1)] += 1;
            }
        }
        let each = requests.len() as f64 / BINS as f64;
        let spread =
            bins.iter().map(|&count| (f64::from(count) - each) * (f64::from(count) - each)).sum::<f64>();
        Arrivals {
            span,
            rate: timed.then(|| n / span),
            gap_variation: timed.then(|| libm::sqrt(variance) / mean),
            dispersion: timed.then(|| spread / BINS as f64 / each),
            simultaneous: gaps().filter(|gap| *gap == 0.0).count(),
            bucket: trace.bucket().map(|picos| picos as f64 / 1e12),
            bin,
            bins,
        }
    }

    /// The rate of the busiest bin.
    pub fn peak(&self) -> Option<f64> {
        self.bins.iter().max().map(|&most| f64::from(most) / self.bin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::generate::{Length, Queue};

    #[test]
    fn a_poisson_stream_is_one_by_both_measures() {
        let trace = Queue {
            requests: 20_000,
            rate: 5.0,
            prompt: Length::Fixed(1),
            output: Length::Fixed(1),
            seed: 1,
        }
        .generate();
        let arrivals = Arrivals::of(&trace);
        let near = |x: Option<f64>, to: f64, by: f64| x.is_some_and(|x| (x - to).abs() < by);
        assert!(near(arrivals.rate, 5.0, 0.1) && near(arrivals.gap_variation, 1.0, 0.03), "{arrivals:?}");
        assert!(near(arrivals.dispersion, 1.0, 0.5), "{arrivals:?}");
        assert_eq!(arrivals.bins.iter().sum::<u32>(), 20_000);
        assert!(arrivals.peak().is_some_and(|peak| (5.0..6.5).contains(&peak)));
    }

    #[test]
    fn of_one_instant_nothing_is_a_rate() {
        let batch = Trace { requests: vec![], tenants: vec![] };
        assert_eq!(Arrivals::of(&batch).rate, None);
        let mut trace =
            Queue { requests: 3, rate: 5.0, prompt: Length::Fixed(1), output: Length::Fixed(1), seed: 1 }
                .generate();
        for request in &mut trace.requests {
            request.arrival = crate::units::Time(7);
        }
        let arrivals = Arrivals::of(&trace);
        assert_eq!((arrivals.rate, arrivals.gap_variation, arrivals.simultaneous), (None, None, 2));
        assert!(arrivals.bins.is_empty() && arrivals.peak().is_none());
    }
}
