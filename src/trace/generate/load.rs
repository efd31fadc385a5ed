//! `load`: arrivals whose rate changes over time, of prompts that are told by their blocks.
//!
//! The shapes that a fleet's size has to follow. Arrivals are a Poisson process with a rate that is a function of
//! time, by thinning: candidates come at the highest rate, and each is kept with the probability that its
//! moment's rate has of it. Prompts are those of [`MultiTenant`] in shape (a tenant's system
//! prompt of 60 to 80 tokens, repeated, and a question), without texts: two hours of a busy fleet fit in memory.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Draw, MultiTenant};
use crate::trace::{BlockIds, Prompt, RequestSpec, TenantName, Trace};
use crate::units::Time;

/// How the rate goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// As it is.
    Constant,
    /// Up at once, and down at once after it has held.
    #[default]
    Step,
    /// Up in a straight line, held, down in one.
    Ramp,
    /// One day, from its night to its noon and back: a cosine.
    Diurnal,
    /// Up in a straight line, held, then dying down exponentially.
    Flash,
}

impl Shape {
    /// Every shape.
    pub const ALL: [Shape; 5] = [Shape::Constant, Shape::Step, Shape::Ramp, Shape::Diurnal, Shape::Flash];
}

/// A rate over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// How it goes.
    pub shape: Shape,
    /// Arrivals a second at first.
    pub rate: f64,
    /// The highest rate ÷ the first.
    pub factor: f64,
    /// When it begins to rise, in seconds.
    pub at: f64,
    /// How long a ramp or a flash crowd rises (and a ramp falls), in seconds.
    pub rise: f64,
    /// How long it stays up, in seconds; a flash crowd then dies down with this as its time constant.
    pub hold: f64,
    /// How long requests arrive, in seconds; a diurnal load's day.
    pub duration: f64,
}

impl Load {
    /// What the rate at a moment is, as a multiple of the first.
    fn multiple(&self, t: f64) -> f64 {
        let more = self.factor - 1.0;
        let since = t - self.at;
        // How far up, where it rises in a straight line from `at` on.
        let up =
            |rise: f64| if rise > 0.0 { (since / rise).clamp(0.0, 1.0) } else { f64::from(since >= 0.0) };
        let after = since - self.rise - self.hold;
        match self.shape {
            Shape::Constant => 1.0,
            Shape::Step => 1.0 + more * f64::from((0.0..self.hold).contains(&since)),
            Shape::Ramp if after > 0.0 => {
                let left = if self.rise > 0.0 { (1.0 - after / self.rise).max(0.0) } else { 0.0 };
                1.0 + more * left
            }
            Shape::Flash if after > 0.0 => 1.0 + more * libm::exp(-after / self.hold.max(1e-9)),
            Shape::Ramp | Shape::Flash => 1.0 + more * up(self.rise),
            Shape::Diurnal => {
                let turn = core::f64::consts::TAU * t / self.duration;
                1.0 + more * (1.0 - libm::cos(turn)) / 2.0
            }
        }
    }

    /// Arrivals a second, `t` seconds into the run.
    pub fn rate_at(&self, t: f64) -> f64 {
        self.rate * self.multiple(t)
    }

    /// The highest rate.
    pub fn most(&self) -> f64 {
        self.rate * self.factor.max(1.0)
    }

    /// Arrivals that are expected at most.
    pub fn most_requests(&self) -> f64 {
        self.most() * self.duration
    }

    /// Draws the arrivals.
    fn arrivals(&self, draw: &mut Draw) -> Vec<Time> {
        let most = self.most();
        let mut times = Vec::new();
        let mut seconds = 0.0;
        loop {
            seconds += draw.exponential() / most;
            if seconds >= self.duration {
                return times;
            }
            // Drawn for every candidate, so that a factor changes who is kept and not who might be.
            if draw.unit() * most < self.rate_at(seconds) {
                times.extend(Time::from_seconds(seconds));
            }
        }
    }
}

impl MultiTenant {
    /// Draws a trace of the same requests, told by blocks of `block` tokens, that arrive as `load` says;
    /// [`requests`](MultiTenant::requests) and [`rate`](MultiTenant::rate) do not matter.
    pub fn generate_under(&self, load: &Load, block: u32) -> Trace {
        let mut draw = Draw::new(self.seed);
        let times = load.arrivals(&mut draw);
        let weights = self.weights();
        let system: Vec<u64> = (0..self.tenants).map(|_| draw.between(60, 80) * self.repeat as u64).collect();
        // Ids of the tenants' blocks, one after the other; then those of everybody's own.
        let blocks = |tokens: u64| (tokens / u64::from(block)) as u32;
        let first: Vec<u32> = system
            .iter()
            .scan(0, |next, &tokens| Some(core::mem::replace(next, *next + blocks(tokens))))
            .collect();
        let mut own: u32 = system.iter().map(|&tokens| blocks(tokens)).sum();
        let request = |arrival| {
            let tenant = draw.weighted(&weights);
            let tokens = system[tenant] + draw.between(self.user_bytes.0, self.user_bytes.1);
            let shared = first[tenant]..first[tenant] + blocks(system[tenant]);
            let rest = tokens.div_ceil(block.into()) as u32 - shared.len() as u32;
            let ids: Arc<[u32]> = shared.chain(own..own + rest).collect();
            own += rest;
            RequestSpec {
                arrival,
                prompt: Prompt::Blocks(BlockIds { tokens: tokens as u32, block, ids }),
                max_tokens: draw.between(self.output_tokens.0, self.output_tokens.1),
                tenant: Some(tenant as u32),
                output: None,
            }
        };
        let requests = times.into_iter().map(request).collect();
        Trace { requests, tenants: (0..self.tenants).map(|t| TenantName::Number(t as i64)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(shape: Shape) -> Load {
        Load { shape, rate: 10.0, factor: 3.0, at: 100.0, rise: 50.0, hold: 200.0, duration: 1000.0 }
    }

    #[test]
    fn rates_by_hand() {
        let at = |shape, t| load(shape).rate_at(t);
        assert_eq!(
            [0.0, 99.0, 100.0, 299.0, 300.0].map(|t| at(Shape::Step, t)),
            [10.0, 10.0, 30.0, 30.0, 10.0]
        );
        assert_eq!(
            [99.0, 125.0, 150.0, 350.0, 375.0, 400.0, 900.0].map(|t| at(Shape::Ramp, t)),
            [10.0, 20.0, 30.0, 30.0, 20.0, 10.0, 10.0]
        );
        assert_eq!([99.0, 125.0, 350.0].map(|t| at(Shape::Flash, t)), [10.0, 20.0, 30.0]);
        let later = at(Shape::Flash, 550.0);
        assert!((later - (10.0 + 20.0 * libm::exp(-1.0))).abs() < 1e-9, "{later}");
        for (t, rate) in [(0.0, 10.0), (250.0, 20.0), (500.0, 30.0), (1000.0, 10.0)] {
            assert!((at(Shape::Diurnal, t) - rate).abs() < 1e-9);
        }
        assert_eq!((at(Shape::Constant, 500.0), load(Shape::Step).most()), (10.0, 30.0));
    }

    fn shape() -> MultiTenant {
        MultiTenant {
            requests: 1,
            rate: 1.0,
            tenants: 5,
            skew: 0.0,
            hot_share: None,
            repeat: 6,
            user_bytes: (8, 100),
            output_tokens: (16, 32),
            seed: 7,
        }
    }

    #[test]
    fn arrivals_follow_the_rate() {
        for kind in Shape::ALL {
            let load = load(kind);
            let trace = shape().generate_under(&load, 16);
            assert!(trace.requests.is_sorted_by_key(|r| r.arrival));
            for from in (0..1000).step_by(100) {
                let within = |r: &&RequestSpec| (from..from + 100).contains(&(r.arrival.seconds() as u64));
                let count = trace.requests.iter().filter(within).count() as f64;
                let mean =
                    (0..1000).map(|i| load.rate_at(from as f64 + f64::from(i) / 10.0)).sum::<f64>() / 10.0;
                // Five standard deviations.
                assert!(
                    (count - mean).abs() < 5.0 * mean.sqrt(),
                    "{kind:?} from {from}: {count}, not {mean}"
                );
            }
        }
    }

    #[test]
    fn tenants_share_their_blocks_and_nobody_else_does() {
        let trace = shape().generate_under(&load(Shape::Constant), 16);
        assert_eq!(trace, shape().generate_under(&load(Shape::Constant), 16));
        let ids = |r: &RequestSpec| r.prompt.items().to_vec();
        let (a, rest) = trace.requests.split_first().expect("thousands");
        for b in rest {
            let same = ids(a).iter().zip(ids(b)).take_while(|(x, y)| **x == *y).count();
            assert_eq!(same > 0, a.tenant == b.tenant);
            assert!(same < ids(a).len().min(ids(b).len()), "a question is one's own");
            assert!((368..=580).contains(&b.prompt.len()), "{}", b.prompt.len());
            assert_eq!(ids(b).len(), b.prompt.len().div_ceil(16));
        }
    }
}
