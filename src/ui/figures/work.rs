//! How unequal requests are: their work alone, dealt out evenly by number.

use crate::cost::roofline::{Accelerator, ServedModel};
use crate::cost::{AnyPrice, Price};
use crate::engine::{Piece, Work};
use crate::params::Config;
use crate::trace::generate::Draw;

/// Mean prompt and output, in tokens: those of a public trace of conversations (Azure, 2023; AzurePublicDataset,
/// AzureLLMInferenceTrace_conv).
pub const MEAN: (f64, f64) = (1155.0, 211.0);

/// Requests in the picture.
pub const REQUESTS: usize = 24;

/// Where they are dealt to, in turn.
pub const REPLICAS: usize = 4;

/// A request by its lengths, and what it costs alone on Llama 3.1 8B on an H100.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Prompt tokens.
    pub prompt: usize,
    /// Output tokens.
    pub output: usize,
    /// Seconds for the prompt.
    pub prefill: f64,
    /// Seconds for the tokens after the first.
    pub decode: f64,
}

impl Cost {
    /// Of lengths.
    pub fn of(prompt: usize, output: usize, price: &AnyPrice) -> Cost {
        let step = |prefills, decode| price.of(&Work { prefills, decode }).seconds();
        let prefill = step(vec![Piece::range(0, prompt)], None);
        let steps = prompt + 1..prompt + output;
        let decode = steps.map(|len| step(Vec::new(), Some(Piece { tokens: 1, pairs: len as u64 }))).sum();
        Cost { prompt, output, prefill, decode }
    }

    /// Both.
    pub fn seconds(&self) -> f64 {
        self.prefill + self.decode
    }
}

/// The price that the picture goes by.
pub fn price() -> AnyPrice {
    Config::on(Some(Accelerator::H100), ServedModel::Llama8B).price()
}

/// Requests whose lengths are lognormal about [`MEAN`]; `spread` is the deviation of the logarithm: 0 for requests
/// that are all alike.
pub fn requests(spread: f64, seed: u64) -> Vec<Cost> {
    let price = price();
    let mut draw = Draw::new(seed);
    let mut length = |mean: f64| {
        // Box and Muller's normal.
        let (radius, turn) = (libm::sqrt(2.0 * draw.exponential()), draw.unit());
        let normal = radius * libm::cos(core::f64::consts::TAU * turn);
        (mean * libm::exp(spread * normal - spread * spread / 2.0)).round().clamp(1.0, 16_384.0) as usize
    };
    (0..REQUESTS).map(|_| Cost::of(length(MEAN.0), length(MEAN.1), &price)).collect()
}

/// Seconds of work of each replica, dealt out in turn.
pub fn dealt(requests: &[Cost]) -> [f64; REPLICAS] {
    let mut seconds = [0.0; REPLICAS];
    for (i, request) in requests.iter().enumerate() {
        seconds[i % REPLICAS] += request.seconds();
    }
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_spread_every_replica_has_the_same_work() {
        let all = requests(0.0, 3);
        assert!(all.iter().all(|r| (r.prompt, r.output) == (1155, 211)), "{all:?}");
        let dealt = dealt(&all);
        assert!(dealt.iter().all(|&s| (s - dealt[0]).abs() < 1e-9));
    }

    #[test]
    fn with_it_the_same_numbers_are_very_different_work() {
        let all = requests(1.2, 3);
        let seconds: Vec<f64> = all.iter().map(Cost::seconds).collect();
        let (least, most) =
            (seconds.iter().copied().fold(f64::MAX, f64::min), seconds.iter().copied().fold(0.0, f64::max));
        assert!(most > 10.0 * least, "{least} {most}");
        let dealt = dealt(&all);
        let busiest = dealt.iter().copied().fold(0.0, f64::max);
        assert!(busiest > 1.3 * dealt.iter().copied().fold(f64::MAX, f64::min), "{dealt:?}");
        assert!((dealt.iter().sum::<f64>() - seconds.iter().sum::<f64>()).abs() < 1e-9);
    }

    #[test]
    fn a_cost_is_its_prefill_and_its_decodes() {
        let price = price();
        let (one, two) = (Cost::of(100, 1, &price), Cost::of(100, 2, &price));
        assert_eq!((one.decode, one.prefill), (0.0, two.prefill));
        assert!(
            two.decode > 0.004 && two.decode < 0.02,
            "an H100 reads 16 GB of weights for a token: {two:?}"
        );
    }
}
