//! A request as an engine takes it, and the limits that it must fit.

use core::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::RequestId;
use super::sampling::Sampling;
use crate::trace::{Prompt, Token};

/// A request as an engine takes it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its index in the trace; names it in everything that is reported.
    pub id: RequestId,
    /// Index of its tenant.
    pub tenant: Option<u32>,
    /// The prompt.
    pub prompt: Prompt,
    /// The most tokens it may generate; without a stop token it generates exactly these.
    pub max_tokens: u64,
    /// What a modelled replica answers, where that is known.
    pub output: Option<Arc<[Token]>>,
    /// How its tokens are chosen.
    pub sampling: Sampling,
}

/// What a replica can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Blocks in the pool.
    pub blocks: usize,
    /// Tokens a block.
    pub block_size: usize,
    /// Requests that run at once.
    pub max_batch: usize,
    /// Positions of the model: prompt and output together.
    pub positions: usize,
}

/// Why a request can never be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Rejection {
    /// It asks for no token at all.
    NoBudget,
    /// It has no prompt.
    EmptyPrompt,
    /// Prompt and budget do not fit the model.
    TooLongForModel {
        /// Prompt plus budget.
        tokens: u64,
        /// What the model has.
        positions: u64,
    },
    /// Prompt and budget do not fit the pool, even alone.
    TooLongForPool {
        /// Blocks that it would need in the end.
        blocks: u64,
        /// Blocks that there are.
        pool: u64,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rejection::NoBudget => {
                f.write_str("max_tokens is below 1: a request generates at least one token")
            }
            Rejection::EmptyPrompt => f.write_str("the prompt is empty: there must be a token to continue"),
            Rejection::TooLongForModel { tokens, positions } => {
                write!(f, "prompt + max_tokens is {tokens} tokens; the model has {positions} positions")
            }
            Rejection::TooLongForPool { blocks, pool } => {
                write!(f, "prompt + max_tokens needs {blocks} KV blocks; the pool has {pool}")
            }
        }
    }
}

impl Limits {
    /// Whether a request can be served at all, on an empty replica.
    pub fn check(&self, prompt: usize, max_tokens: u64) -> Result<(), Rejection> {
        if max_tokens < 1 {
            return Err(Rejection::NoBudget);
        }
        if prompt == 0 {
            return Err(Rejection::EmptyPrompt);
        }
        let (tokens, positions) = ((prompt as u64).saturating_add(max_tokens), self.positions as u64);
        if tokens > positions {
            return Err(Rejection::TooLongForModel { tokens, positions });
        }
        // The last token's key and value are never needed.
        let (blocks, pool) = ((tokens - 1).div_ceil(self.block_size as u64), self.blocks as u64);
        if blocks > pool {
            return Err(Rejection::TooLongForPool { blocks, pool });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { blocks: 4, block_size: 16, max_batch: 8, positions: 64 };

    #[test]
    fn what_can_never_fit_is_refused_with_its_reason() {
        assert_eq!(LIMITS.check(10, 0), Err(Rejection::NoBudget));
        assert_eq!(LIMITS.check(0, 5), Err(Rejection::EmptyPrompt));
        assert_eq!(LIMITS.check(60, 5), Err(Rejection::TooLongForModel { tokens: 65, positions: 64 }));
        assert_eq!(
            LIMITS.check(60, u64::MAX),
            Err(Rejection::TooLongForModel { tokens: u64::MAX, positions: 64 })
        );
        let small = Limits { blocks: 3, ..LIMITS };
        assert_eq!(small.check(40, 10), Err(Rejection::TooLongForPool { blocks: 4, pool: 3 }));
        assert_eq!(small.check(40, 9), Ok(()), "the last token needs no place");
    }
}
