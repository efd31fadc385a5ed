//! How the next token is chosen from logits.
use crate::trace::Token;
/// Sampling parameters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sampling {
    /// 0: greedy.
    pub temperature: f32,
    /// Among so many likeliest only.
    pub top_k: Option<u32>,
    /// Among the likeliest that reach this probability.
    pub top_p: Option<f32>,
    /// Draws come from it.
    pub seed: u64,
}
/// The next token.
pub fn sample(logits: &[f32], _sampling: &Sampling, _request: u64, _position: u64) -> Token {
    logits.iter().enumerate().fold(0, |best, (i, &l)| if l > logits[best] { i } else { best }) as Token
}
