//! What computes a step, or says what its tokens would have been.

use std::sync::Arc;

use super::RequestId;
use super::sampling::Sampling;
use crate::kv::BlockId;
use crate::trace::Token;

/// One sequence of a step, as a backend sees it.
#[derive(Clone, Copy, Debug)]
pub struct Running<'a> {
    /// Whose it is.
    pub id: RequestId,
    /// Prompt and output so far; of a prompt that is computed in chunks, all up to this chunk's end.
    pub tokens: &'a [Token],
    /// How many tokens the whole prompt has.
    pub prompt_len: usize,
    /// Tokens before this one have their keys and values in the blocks already.
    pub start: usize,
    /// The block table; covers at least all of `tokens`.
    pub blocks: &'a [BlockId],
    /// How to choose the next token.
    pub sampling: &'a Sampling,
    /// The answer, where the trace gives it.
    pub output: Option<&'a Arc<[Token]>>,
}

/// Computes (or prices) what the scheduler decided.
pub trait Backend {
    /// Computes each sequence's tokens from `start` on, and puts the token that follows each in `next`.
    /// A prefill is one sequence; a decode is any number, each with one token to compute. What follows
    /// a chunk that is not a prompt's last is not looked at.
    fn forward(&mut self, batch: &[Running<'_>], next: &mut Vec<Token>);

    /// Whether tokens come from [`forward`](Backend::forward). Where not, it is never called: a request
    /// generates what its trace says, or else tokens of its own, and a step over any batch is free.
    fn computes(&self) -> bool {
        true
    }

    /// Bytes of keys and values held in memory, where there are any.
    fn kv_bytes(&self) -> usize {
        0
    }
}
