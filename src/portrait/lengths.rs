//! How long prompts and outputs are.

use serde::Serialize;

use crate::sim::quantile;

/// Lengths in tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lengths {
    /// All of them together.
    pub total: u64,
    /// The mean; null without any.
    pub mean: Option<f64>,
    /// How they are spread; null without any.
    pub percentiles: Option<Percentiles>,
    /// How many have at least 2ⁱ tokens and fewer than 2ⁱ⁺¹ (the first: fewer than 2).
    pub octaves: Vec<u64>,
}

/// Percentiles, interpolated as everywhere (rank p·(n − 1)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs, reason = "their names are what they are")]
pub struct Percentiles {
    pub min: f64,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
}

impl Lengths {
    /// Of lengths in any order.
    pub fn of(lengths: impl Iterator<Item = u64>) -> Lengths {
        let mut values: Vec<f64> = Vec::new();
        let mut octaves = Vec::new();
        let mut total = 0u64;
        for length in lengths {
            total = total.saturating_add(length);
            values.push(length as f64);
            let octave = length.max(1).ilog2() as usize;
            if octaves.len() <= octave {
                octaves.resize(octave + 1, 0);
            }
            octaves[octave] += 1;
        }
        values.sort_by(f64::total_cmp);
        let at = |p| quantile(&values, p);
        let percentiles = at(0.0).map(|min| {
            let known = |p| at(p).expect("there are values");
            Percentiles {
                min,
                p10: known(0.1),
                p50: known(0.5),
                p90: known(0.9),
                p95: known(0.95),
                p99: known(0.99),
                max: known(1.0),
            }
        });
        let mean = (!values.is_empty()).then(|| total as f64 / values.len() as f64);
        Lengths { total, mean, percentiles, octaves }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_summed_up() {
        let lengths = Lengths::of([0, 1, 2, 3, 4, 1000].into_iter());
        assert_eq!((lengths.total, lengths.octaves.clone()), (1010, vec![2, 2, 1, 0, 0, 0, 0, 0, 0, 1]));
        assert_eq!(lengths.percentiles.map(|p| (p.min, p.p50, p.max)), Some((0.0, 2.5, 1000.0)));
        let none = Lengths::of([].into_iter());
        assert_eq!((none.mean, none.percentiles), (None, None));
    }
}
