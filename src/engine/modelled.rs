//! The backend without tensors: it says which token follows, and nothing is computed.

use super::{Backend, Running};
use crate::trace::Token;

/// Outputs lie above this: no prompt token does.
pub const FIRST_OUTPUT: Token = 1 << 31;

/// Answers with the trace's own output, or with a token that no other request shares, so that one
/// request's answer is never another's prefix.
#[derive(Clone, Copy, Debug, Default)]
pub struct Modelled;

impl Backend for Modelled {
    fn forward(&mut self, batch: &[Running<'_>], next: &mut Vec<Token>) {
        next.clear();
        next.extend(batch.iter().map(|seq| {
            let at = seq.tokens.len().checked_sub(seq.prompt_len);
            let given = at.and_then(|at| seq.output?.get(at).copied());
            given.unwrap_or(FIRST_OUTPUT | seq.id)
        }));
    }
}
