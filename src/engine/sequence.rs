//! A request inside a replica: what it holds, and how far it has come.
//!
//! Everything that runs grows by one token a step. So a running request's length is not counted up
//! but known: a constant of its own plus the steps that the replica has ended. A step over a batch of
//! any size then costs nothing a request, unless tensors are computed.

use core::ops::Range;
use std::sync::Arc;

use super::modelled::made_up;
use super::sampling::Sampling;
use super::{Request, RequestId, Running};
use crate::kv::BlockId;
use crate::trace::{Content, Prompt, Token};

/// A request that waits or runs.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub id: RequestId,
    pub tenant: Option<u32>,
    pub prompt: Prompt,
    /// Tokens to generate in all.
    pub max_tokens: usize,
    /// Tokens so far, prompt and output, as of its latest prefill or preemption.
    pub len: usize,
    /// Those tokens, where they are computed; empty where they follow from the request.
    pub tokens: Vec<Token>,
    pub output: Option<Arc<[Token]>>,
    pub sampling: Sampling,
    /// The block table.
    pub blocks: Vec<BlockId>,
    /// Tokens whose keys and values are in those blocks, while its prompt is computed.
    pub computed: usize,
    /// The most tokens that were computed before a preemption.
    pub lost: usize,
    /// Whether it has been admitted before.
    pub admitted: bool,
}

/// A place in the batch. Times are in steps that the replica has ended; [`NEVER`] while the prompt is
/// only partly computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// The sequence's number in the replica.
    pub slot: u32,
    /// Its length less the steps ended, in wrapping arithmetic.
    pub offset: u64,
    /// When its last token is out.
    pub finish: u64,
    /// When its next token needs another block.
    pub block_due: u64,
}

/// A time that does not come.
pub(super) const NEVER: u64 = u64::MAX;

impl Place {
    /// The length of its sequence.
    pub fn len(&self, ended: u64) -> usize {
        self.offset.wrapping_add(ended) as usize
    }

    /// Whether the prompt is computed.
    pub fn decodes(&self) -> bool {
        self.finish != NEVER
    }
}

impl Sequence {
    /// A request that has just come. `computes`: its tokens will be computed, and are kept.
    ///
    /// # Panics
    ///
    /// If they are to be computed and the request does not say what they are.
    pub fn new(request: Request, computes: bool) -> Sequence {
        let max_tokens = usize::try_from(request.max_tokens).expect("budgets were checked against positions");
        let len = request.prompt.len();
        let mut tokens = Vec::new();
        if computes {
            tokens.reserve_exact(len + max_tokens);
            tokens.extend_from_slice(request.prompt.tokens().expect("tensors are computed from tokens"));
        }
        Sequence {
            id: request.id,
            tenant: request.tenant,
            prompt: request.prompt,
            max_tokens,
            len,
            tokens,
            output: request.output,
            sampling: request.sampling,
            blocks: Vec::new(),
            computed: 0,
            lost: 0,
            admitted: false,
        }
    }

    /// How many tokens admission must find room for: all there are and, after a preemption, the
    /// next one too, or it would be preempted again at once. Never more than the request can come
    /// to hold, or one that only just fits the pool would wait for ever.
    pub fn room(&self) -> usize {
        if self.admitted { (self.len + 1).min(self.prompt.len() + self.max_tokens - 1) } else { self.len }
    }

    /// Gives up everything that was computed; the blocks are let go by the caller.
    pub fn reset(&mut self) {
        self.lost = self.lost.max(self.computed);
        self.computed = 0;
        self.blocks.clear();
    }

    /// Prompt plus remaining budget, with so many tokens in all.
    pub fn outstanding(&self, len: usize) -> u64 {
        (2 * self.prompt.len() + self.max_tokens - len) as u64
    }

    /// The token at an index, prompt and output counted together.
    pub fn token(&self, index: usize) -> Token {
        if let Some(&token) = self.tokens.get(index) {
            return token;
        }
        match self.prompt.tokens().and_then(|prompt| prompt.get(index)) {
            Some(&token) => token,
            None => made_up(self.id, self.output.as_ref(), index - self.prompt.len()),
        }
    }

    /// What its blocks of `size` tokens hold once they are full, one after the other, until `take` says
    /// that it is enough (`false`), or until one that nobody could ever share: of a prompt that is known
    /// by its block ids, all that follows it.
    pub fn contents(
        &self,
        which: Range<usize>,
        size: usize,
        scratch: &mut Vec<Token>,
        mut take: impl FnMut(usize, Content<'_>) -> bool,
    ) {
        let mut rest = which.start;
        if self.tokens.is_empty() {
            for content in self.prompt.contents(which.start, size).take(which.len()) {
                if !take(rest, content) {
                    return;
                }
                rest += 1;
            }
            if let Prompt::Blocks(_) = self.prompt {
                return;
            }
        }
        for at in rest..which.end {
            let range = at * size..(at + 1) * size;
            let tokens = match self.tokens.get(range.clone()) {
                Some(tokens) => tokens,
                None => {
                    scratch.clear();
                    scratch.extend(range.map(|index| self.token(index)));
                    &scratch[..]
                }
            };
            if !take(at, Content::Tokens(tokens)) {
                return;
            }
        }
    }

    /// The request as a backend sees it, with `end` tokens of which those before `start` are computed.
    pub fn view(&self, start: usize, end: usize) -> Running<'_> {
        Running {
            id: self.id,
            tokens: &self.tokens[..end],
            prompt_len: self.prompt.len(),
            start,
            blocks: &self.blocks,
            sampling: &self.sampling,
            output: self.output.as_ref(),
        }
    }
}
