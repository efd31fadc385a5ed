//! The backend without tensors: it says which token follows, and nothing is computed.

use std::sync::Arc;

use super::{Backend, RequestId, Running};
use crate::trace::Token;

/// Outputs lie above this: no prompt token does.
pub const FIRST_OUTPUT: Token = 1 << 31;

/// Answers with the trace's own output, or with a token that no other request shares, so that one
/// request's answer is never another's prefix.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modelled;

/// Token `at` of a request's answer.
pub(super) fn made_up(id: RequestId, output: Option<&Arc<[Token]>>, at: usize) -> Token {
    output.and_then(|output| output.get(at).copied()).unwrap_or(FIRST_OUTPUT | id)
}

impl Backend for Modelled {
    fn forward(&mut self, batch: &[Running<'_>], next: &mut Vec<Token>) {
        let token = |seq: &Running<'_>| {
            // Of a chunk that ends within the prompt, nobody asks what follows.
            let at = seq.tokens.len().saturating_sub(seq.prompt_len);
            made_up(seq.id, seq.output, at)
        };
        next.clear();
        next.extend(batch.iter().map(token));
    }

    fn computes(&self) -> bool {
        false
    }
}
