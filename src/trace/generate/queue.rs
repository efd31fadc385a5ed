//! `queue`: Poisson arrivals of requests that have nothing in common, fixed or exponential in length.
//!
//! What queueing theory has formulas for: with no prefix to share and one request at a time, a replica
//! is a server, and a request's length is its service.

use super::Draw;
use crate::trace::{Prompt, RequestSpec, Trace};
use crate::units::Time;

/// How long a prompt or an output is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Length {
    /// Always so many tokens.
    Fixed(u32),
    /// Exponential with this mean, rounded up: at least one token.
    Exponential(f64),
}

impl Length {
    fn draw(self, draw: &mut Draw) -> u32 {
        match self {
            Length::Fixed(tokens) => tokens,
            // The cast saturates: no length is beyond what a length can be.
            Length::Exponential(mean) => ((mean * draw.exponential()).ceil() as u32).max(1),
        }
    }

    /// The mean number of tokens. Rounding up makes an exponential geometric.
    pub fn mean(self) -> f64 {
        match self {
            Length::Fixed(tokens) => tokens.into(),
            Length::Exponential(mean) => -1.0 / libm::expm1(-1.0 / mean),
        }
    }
}

/// The parameters of such a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// How many requests.
    pub requests: usize,
    /// Arrivals a second.
    pub rate: f64,
    /// Tokens of a prompt.
    pub prompt: Length,
    /// Tokens of an output.
    pub output: Length,
    /// Everything is drawn from this.
    pub seed: u64,
}

impl Queue {
    /// Draws the trace. Arrivals that would not fit the clock are left out.
    pub fn generate(&self) -> Trace {
        let mut draw = Draw::new(self.seed);
        let mut seconds = 0.0;
        let mut requests = Vec::with_capacity(self.requests);
        for _ in 0..self.requests {
            seconds += draw.exponential() / self.rate;
            let Some(arrival) = Time::from_seconds(seconds) else { break };
            let prompt = Prompt::of_length(self.prompt.draw(&mut draw));
            let max_tokens = self.output.draw(&mut draw).into();
            requests.push(RequestSpec { arrival, prompt, max_tokens, tenant: None, output: None });
        }
        Trace { requests, tenants: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_their_mean_and_their_spread() {
        let (prompt, output) = (Length::Exponential(200.0), Length::Fixed(7));
        let trace = Queue { requests: 20_000, rate: 5.0, prompt, output, seed: 1 }.generate();
        let lengths: Vec<f64> = trace.requests.iter().map(|r| r.prompt.len() as f64).collect();
        let mean = lengths.iter().sum::<f64>() / 20_000.0;
        let variance = lengths.iter().map(|l| (l - mean) * (l - mean)).sum::<f64>() / 20_000.0;
        assert!((mean / prompt.mean() - 1.0).abs() < 0.02, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.03, "{variance}");
        assert!((prompt.mean() - 200.5).abs() < 0.01, "half a token is what rounding up adds");
        assert!(trace.requests.iter().all(|r| r.max_tokens == 7 && !r.prompt.is_empty()));
        let last = trace.requests.last().expect("20,000 requests").arrival.seconds();
        assert!((3900.0..4100.0).contains(&last), "20,000 requests at 5 a second took {last} s");
    }
}
