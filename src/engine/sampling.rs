//! From logits to a token: the best one, or one drawn with a temperature, top-k and top-p.
//!
//! A draw depends on the seed, the request and the position alone. There is no generator whose state could differ
//! when requests are batched, preempted or moved, so a request's tokens are the same in every schedule.

use std::fmt;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::model::Token;

/// How a token is chosen from its logits.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits before they become probabilities; 0 takes the best token.
    pub temperature: f32,
    /// Keeps only this many of the best tokens.
    pub top_k: Option<u32>,
    /// Keeps only the best tokens whose probabilities reach this sum, after temperature and top-k.
    pub top_p: Option<f32>,
    /// Seeds every draw, together with the request and the position.
    pub seed: u64,
}

impl Default for Sampling {
    /// Greedy.
    fn default() -> Self {
        Self { temperature: 0.0, top_k: None, top_p: None, seed: 0 }
    }
}

impl Sampling {
    /// Checks that every setting is in its range.
    pub fn validate(&self) -> Result<(), SamplingError> {
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return Err(SamplingError::Temperature(self.temperature));
        }
        if self.top_k == Some(0) {
            return Err(SamplingError::TopK);
        }
        match self.top_p {
            Some(p) if !(p > 0.0 && p <= 1.0) => Err(SamplingError::TopP(p)),
            _ => Ok(()),
        }
    }
}

/// Why sampling settings cannot be used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SamplingError {
    /// The temperature is negative or not finite.
    Temperature(f32),
    /// Top-k keeps no token.
    TopK,
    /// Top-p is not a share above zero.
    TopP(f32),
}

impl fmt::Display for SamplingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Temperature(value) => {
                write!(
                    f,
                    "temperature is {value}; it should be 0 (take the best token) or a finite number above"
                )
            }
            Self::TopK => f.write_str("top_k is 0; it should be at least 1, or left out to keep every token"),
            Self::TopP(value) => {
                write!(
                    f,
                    "top_p is {value}; it should be above 0 and at most 1, or left out to keep every token"
                )
            }
        }
    }
}

impl std::error::Error for SamplingError {}

/// A token that may be drawn, and its probability times some constant.
pub type Candidate = (Token, f64);

/// Chooses the token of one position of a request.
///
/// Greedy where the temperature is 0 (or out of its range); ties go to the lowest id. A logit that is not a number
/// is never chosen; if none is a number, the token is 0.
///
/// `candidates` is room that is kept between calls; what it holds means nothing.
///
/// # Panics
///
/// If there are no logits.
pub fn sample(
    logits: &[f32],
    sampling: &Sampling,
    request_id: u64,
    position: u64,
    candidates: &mut Vec<Candidate>,
) -> Token {
    assert!(!logits.is_empty(), "there is at least one token to choose");
    let best = greedy(logits);
    let warm = sampling.temperature > 0.0;
    if !warm || sampling.top_k == Some(1) {
        return best;
    }
    let largest = logits[best as usize];
    let temperature = f64::from(sampling.temperature);
    // The unnormalised probability; the best has 1, and equal infinities are as likely as each other.
    let weight = |logit: f32| {
        if logit == largest { 1.0 } else { libm::exp((f64::from(logit) - f64::from(largest)) / temperature) }
    };
    let ids = 0..logits.len() as Token;
    candidates.clear();
    candidates
        .extend(ids.zip(logits).filter(|(_, logit)| !logit.is_nan()).map(|(id, &logit)| (id, weight(logit))));
    if sampling.top_k.is_some() || sampling.top_p.is_some() {
        // Equal weights stay in the order of their ids.
        candidates.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    }
    if let Some(k) = sampling.top_k {
        candidates.truncate((k as usize).max(1));
    }
    let mut total: f64 = candidates.iter().map(|(_, weight)| weight).sum();
    if let Some(p) = sampling.top_p {
        let wanted = f64::from(p) * total;
        let mut sum = 0.0;
        let reached = candidates.iter().position(|(_, weight)| {
            sum += weight;
            sum >= wanted
        });
        if let Some(last) = reached {
            candidates.truncate(last + 1);
            total = sum;
        }
    }
    let mut left = uniform(sampling.seed, request_id, position) * total;
    for &(id, weight) in candidates.iter() {
        if left < weight {
            return id;
        }
        left -= weight;
    }
    // Rounding may leave a little; the best token takes it.
    best
}

/// The lowest id among the largest logits; 0 if none is a number.
fn greedy(logits: &[f32]) -> Token {
    let mut best = None;
    for (id, &logit) in logits.iter().enumerate() {
        if !logit.is_nan() && best.is_none_or(|(_, largest)| logit > largest) {
            best = Some((id, logit));
        }
    }
    best.map_or(0, |(id, _)| id as Token)
}

/// A float in 0..1 that the three numbers determine: the first 53 bits of a ChaCha8 stream whose key they are.
fn uniform(seed: u64, request_id: u64, position: u64) -> f64 {
    let mut key = [0; 32];
    for (bytes, number) in key.chunks_exact_mut(8).zip([seed, request_id, position]) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    let bits = ChaCha8Rng::from_seed(key).next_u64() >> 11;
    bits as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::{Sampling, Token, uniform};

    fn sample(logits: &[f32], sampling: &Sampling, request_id: u64, position: u64) -> Token {
        super::sample(logits, sampling, request_id, position, &mut Vec::new())
    }

    fn warm(temperature: f32) -> Sampling {
        Sampling { temperature, seed: 7, ..Sampling::default() }
    }

    /// How often each of four tokens is drawn in 4000 positions.
    fn counts(logits: &[f32; 4], sampling: &Sampling) -> [u32; 4] {
        let mut counts = [0; 4];
        for position in 0..4000 {
            counts[sample(logits, sampling, 3, position) as usize] += 1;
        }
        counts
    }

    /// Whether counts of 4000 draws are within five standard deviations of the probabilities.
    fn near(counts: [u32; 4], probabilities: [f64; 4]) -> bool {
        counts.iter().zip(probabilities).all(|(&count, p)| {
            let (mean, deviation) = (4000.0 * p, (4000.0 * p * (1.0 - p)).sqrt());
            (f64::from(count) - mean).abs() <= 5.0 * deviation
        })
    }

    const NUMBERS: [f32; 50] = {
        let mut numbers = [0.0; 50];
        let mut i = 0;
        while i < 50 {
            numbers[i] = ((i * 29) % 50) as f32 * 0.1;
            i += 1;
        }
        numbers
    };

    #[test]
    fn draws_follow_the_probabilities() {
        let logits = [1.0f32, 2.0, 4.0, 1.0].map(|p| libm::log(f64::from(p)) as f32);
        assert!(near(counts(&logits, &warm(1.0)), [0.125, 0.25, 0.5, 0.125]));
        // A temperature of a half squares the odds: 1, 4, 16, 1.
        assert!(near(counts(&logits, &warm(0.5)), [1.0 / 22.0, 4.0 / 22.0, 16.0 / 22.0, 1.0 / 22.0]));
        // Top-k of three keeps the first of the two that tie.
        let top_k = Sampling { top_k: Some(3), ..warm(1.0) };
        assert!(near(counts(&logits, &top_k), [1.0 / 7.0, 2.0 / 7.0, 4.0 / 7.0, 0.0]));
        // 0.5 and 0.25 reach 0.7 together.
        let top_p = Sampling { top_p: Some(0.7), ..warm(1.0) };
        assert!(near(counts(&logits, &top_p), [0.0, 1.0 / 3.0, 2.0 / 3.0, 0.0]));
        // Of top-k's two, the better has two thirds already.
        let both = Sampling { top_k: Some(2), top_p: Some(0.6), ..warm(1.0) };
        assert_eq!(counts(&logits, &both), [0, 0, 4000, 0]);
        let everything = Sampling { top_k: Some(100), top_p: Some(1.0), ..warm(1.0) };
        assert!(near(counts(&logits, &everything), [0.125, 0.25, 0.5, 0.125]));
    }

    #[test]
    fn narrow_settings_are_greedy() {
        let settings = [
            Sampling::default(),
            Sampling { top_k: Some(1), ..warm(2.0) },
            Sampling { top_p: Some(1e-9), ..warm(2.0) },
            warm(1e-30),
        ];
        for sampling in &settings {
            for position in 0..200 {
                assert_eq!(sample(&NUMBERS, sampling, 1, position), 31, "{sampling:?}");
            }
            assert_eq!(sample(&[0.5, 2.0, 2.0, 1.0], &Sampling::default(), 1, 1), 1, "ties go to the lowest");
        }
    }

    #[test]
    fn a_draw_depends_on_seed_request_and_position_alone() {
        let draws = |seed, request| -> Vec<Token> {
            let sampling = Sampling { seed, ..warm(1.0) };
            (0..64).map(|position| sample(&NUMBERS, &sampling, request, position)).collect()
        };
        let base = draws(1, 1);
        assert_eq!(draws(1, 1), base);
        assert_ne!(draws(2, 1), base);
        assert_ne!(draws(1, 2), base);
        assert!(base.iter().any(|token| *token != base[0]), "positions differ");
        let backwards: Vec<Token> =
            (0..64).rev().map(|p| sample(&NUMBERS, &Sampling { seed: 1, ..warm(1.0) }, 1, p)).collect();
        assert!(backwards.iter().rev().eq(&base), "the order of calls does not matter");
    }

    #[test]
    fn uniform_bits_are_pinned() {
        assert_eq!(uniform(1, 2, 3).to_bits(), 0x3FE9_A500_00BF_7C6E);
    }

    #[test]
    fn odd_logits_are_survived() {
        let nan = f32::NAN;
        for sampling in [Sampling::default(), warm(1.0), Sampling { top_p: Some(0.9), ..warm(1.0) }] {
            assert_eq!(sample(&[nan, 1.0, nan], &sampling, 0, 0), 1);
            assert_eq!(sample(&[nan, nan], &sampling, 0, 0), 0);
            assert_eq!(sample(&[f32::NEG_INFINITY, -3.0], &sampling, 0, 0), 1);
            assert_eq!(sample(&[f32::NEG_INFINITY, nan], &sampling, 0, 0), 0);
            assert_eq!(sample(&[1.0, f32::INFINITY, f32::MAX], &sampling, 0, 0), 1);
            assert_eq!(sample(&[5.0], &sampling, 0, 0), 0);
        }
        let both = counts(&[f32::INFINITY, 0.0, f32::INFINITY, nan], &warm(1.0));
        assert!(near(both, [0.5, 0.0, 0.5, 0.0]), "{both:?}");
    }

    #[test]
    fn settings_out_of_range_are_explained() {
        let error = |sampling: Sampling| sampling.validate().expect_err("it is out of range").to_string();
        assert!(error(warm(-1.0)).contains("temperature is -1; it should be 0"));
        assert!(error(warm(f32::NAN)).contains("temperature is NaN"));
        assert!(
            error(Sampling { top_k: Some(0), ..warm(1.0) }).contains("top_k is 0; it should be at least 1")
        );
        assert!(
            error(Sampling { top_p: Some(0.0), ..warm(1.0) }).contains("top_p is 0; it should be above 0")
        );
        assert!(error(Sampling { top_p: Some(1.5), ..warm(1.0) }).contains("at most 1"));
        assert!(error(Sampling { top_p: Some(f32::NAN), ..warm(1.0) }).contains("top_p is NaN"));
        assert_eq!(Sampling { top_k: Some(1), top_p: Some(1.0), ..warm(0.7) }.validate(), Ok(()));
    }
}
