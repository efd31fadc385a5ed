//! When requests (or the sessions that they belong to) begin: Poisson, gamma, diurnal, or as in another trace.

use core::fmt;
use std::sync::Arc;

use super::Draw;
use crate::units::Time;

/// When they begin.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Arrivals {
    /// Gaps are exponential.
    #[default]
    Poisson,
    /// Gaps are gamma-distributed with this standard deviation over their mean: below 1 more even than Poisson, above
    /// it in bursts.
    Gamma {
        /// That ratio.
        variation: f64,
    },
    /// Poisson at a rate that goes up and down as a sine, from its mean at time 0 upwards.
    Diurnal {
        /// Seconds from one top to the next.
        period: f64,
        /// How far it goes up and down, over its mean: 0 to 1.
        swing: f64,
    },
    /// At these times, as far as they go.
    Given(Arc<[Time]>),
}

impl Arrivals {
    /// What a text is of, in words.
    pub const WANTED: &'static str =
        "poisson, gamma:VARIATION (0.05 to 20; above 1 in bursts) or diurnal:PERIOD,SWING (seconds, 0 to 1)";

    /// Reads `poisson`, `gamma:VARIATION` or `diurnal:PERIOD,SWING`.
    pub fn parse(text: &str) -> Option<Arrivals> {
        let (name, values) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let number =
            |text: &str, low: f64, high: f64| text.trim().parse().ok().filter(|x| (low..=high).contains(x));
        match name {
            "poisson" if values.is_empty() => Some(Arrivals::Poisson),
            "gamma" => Some(Arrivals::Gamma { variation: number(values, 0.05, 20.0)? }),
            "diurnal" => {
                let (period, swing) = values.split_once(',')?;
                Some(Arrivals::Diurnal { period: number(period, 1.0, 1e7)?, swing: number(swing, 0.0, 1.0)? })
            }
            _ => None,
        }
    }

    /// Begins at so many a second in the mean.
    pub fn at(&self, rate: f64) -> Process<'_> {
        Process { arrivals: self, rate, now: 0.0, given: 0 }
    }
}

impl fmt::Display for Arrivals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Arrivals::Poisson => f.write_str("poisson"),
            Arrivals::Gamma { variation } => write!(f, "gamma:{variation}"),
            Arrivals::Diurnal { period, swing } => write!(f, "diurnal:{period},{swing}"),
            Arrivals::Given(times) => write!(f, "given:{}", times.len()),
        }
    }
}

/// One time after the other.
pub struct Process<'a> {
    arrivals: &'a Arrivals,
    rate: f64,
    now: f64,
    given: usize,
}

impl Process<'_> {
    /// The next time, in seconds; `None`: there is none.
    pub fn next(&mut self, draw: &mut Draw) -> Option<f64> {
        match self.arrivals {
            Arrivals::Poisson => self.now += draw.exponential() / self.rate,
            Arrivals::Gamma { variation } => {
                let shape = 1.0 / (variation * variation);
                self.now += gamma(draw, shape) / shape / self.rate;
            }
            Arrivals::Diurnal { period, swing } => {
                // Thinning (Lewis and Shedler 1979): at the highest rate, each kept with the part that the rate is of it.
                let most = self.rate * (1.0 + swing);
                loop {
                    self.now += draw.exponential() / most;
                    let phase = core::f64::consts::TAU * (self.now / period);
                    if draw.unit() * (1.0 + swing) < 1.0 + swing * libm::sin(phase) {
                        break;
                    }
                }
            }
            Arrivals::Given(times) => {
                self.now = times.get(self.given)?.seconds();
                self.given += 1;
            }
        }
        Some(self.now)
    }
}

/// A standard normal draw (Box and Muller 1958).
fn normal(draw: &mut Draw) -> f64 {
    let radius = libm::sqrt(2.0 * draw.exponential());
    radius * libm::cos(core::f64::consts::TAU * draw.unit())
}

/// A gamma draw of this shape, its mean (Marsaglia and Tsang 2000; below 1 with their power of a uniform draw).
fn gamma(draw: &mut Draw, shape: f64) -> f64 {
    if shape < 1.0 {
        let power = libm::exp(-draw.exponential() / shape);
        return gamma(draw, shape + 1.0) * power;
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(draw);
        let v = 1.0 + c * x;
        if v <= 0.0 {
            continue;
        }
        let v = v * v * v;
        // An exponential draw is minus the logarithm of a uniform one.
        if -draw.exponential() < 0.5 * x * x + d - d * v + d * libm::log(v) {
            return d * v;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean and standard deviation over mean of the gaps.
    fn gaps(arrivals: &Arrivals, n: usize) -> (f64, f64) {
        let (mut draw, mut process, mut before) = (Draw::new(3), arrivals.at(4.0), 0.0);
        let gaps: Vec<f64> = (0..n)
            .map(|_| {
                let now = process.next(&mut draw).expect("there is no end");
                now - core::mem::replace(&mut before, now)
            })
            .collect();
        let mean = gaps.iter().sum::<f64>() / n as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / n as f64;
        (mean, variance.sqrt() / mean)
    }

    #[test]
    fn gaps_have_the_mean_and_the_variation_that_are_asked_for() {
        for (arrivals, wanted) in [
            (Arrivals::Poisson, 1.0),
            (Arrivals::Gamma { variation: 1.0 }, 1.0),
            (Arrivals::Gamma { variation: 0.25 }, 0.25),
            (Arrivals::Gamma { variation: 3.0 }, 3.0),
        ] {
            let (mean, variation) = gaps(&arrivals, 100_000);
            assert!((mean / 0.25 - 1.0).abs() < 0.04, "{arrivals}: {mean}");
            assert!((variation / wanted - 1.0).abs() < 0.04, "{arrivals}: {variation}");
        }
    }

    #[test]
    fn a_day_has_a_top_and_a_bottom() {
        let arrivals = Arrivals::Diurnal { period: 100.0, swing: 0.8 };
        let (mut draw, mut process) = (Draw::new(5), arrivals.at(20.0));
        let mut quarters = [0u32; 4];
        for _ in 0..40_000 {
            let now = process.next(&mut draw).expect("there is no end");
            quarters[(now.rem_euclid(100.0) / 25.0) as usize] += 1;
        }
        let part = |q: usize| f64::from(quarters[q]) / 40_000.0;
        // The mean of 1 + 0.8 sin over the first quarter: 1 + 0.8 · 2/π.
        assert!(
            (part(0) - 0.25 * 1.509).abs() < 0.01 && (part(3) - 0.25 * 0.491).abs() < 0.01,
            "{quarters:?}"
        );
    }

    #[test]
    fn texts_read_back_and_others_are_none() {
        for text in ["poisson", "gamma:2.5", "diurnal:3600,0.5"] {
            assert_eq!(Arrivals::parse(text).expect(text).to_string(), text);
        }
        for bad in [
            "",
            "gamma",
            "gamma:0",
            "gamma:nan",
            "diurnal:3600",
            "diurnal:0,0.5",
            "diurnal:9,2",
            "poisson:1",
            "given:3",
        ] {
            assert_eq!(Arrivals::parse(bad), None, "{bad}");
        }
        let given = Arrivals::Given([Time(5), Time(7)].into());
        let mut process = given.at(1.0);
        let mut draw = Draw::new(0);
        assert!(process.next(&mut draw).is_some() && process.next(&mut draw).is_some());
        assert_eq!(process.next(&mut draw), None);
    }
}
