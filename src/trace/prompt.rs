//! A prompt: its tokens, or only the ids of the blocks that they fill.
//!
//! Public traces do not tell what was asked; they tell which blocks of tokens were the same. That is
//! all that a scheduler without tensors needs, and a million such requests fit in memory.

use std::sync::Arc;

use super::Token;

/// What a request asks.
#[derive(Clone, Debug, PartialEq)]
pub enum Prompt {
    /// Token by token.
    Tokens(Arc<[Token]>),
    /// By its length and the ids of its blocks.
    Blocks(BlockIds),
}

/// A prompt of which only the length and the identity of its blocks are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockIds {
    /// Tokens in all.
    pub tokens: u32,
    /// Tokens that an id stands for; the last id may stand for fewer.
    pub block: u32,
    /// One id a block, equal where the block and all before it are equal. Empty: nothing is known of
    /// the prompt but its length, and nothing of it is ever shared.
    pub ids: Arc<[u32]>,
}

/// What a KV block of a prompt holds, so that it can be told from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content<'a> {
    /// These tokens.
    Tokens(&'a [Token]),
    /// Part `j` of the block with this id, as `id · 2³² + j`.
    Part(u64),
}

impl Prompt {
    /// A prompt of so many tokens, of which nothing else is known.
    pub fn of_length(tokens: u32) -> Prompt {
        Prompt::Blocks(BlockIds { tokens, block: 1, ids: Arc::new([]) })
    }

    /// Tokens.
    pub fn len(&self) -> usize {
        match self {
            Prompt::Tokens(tokens) => tokens.len(),
            Prompt::Blocks(blocks) => blocks.tokens as usize,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens, where they are known.
    pub fn tokens(&self) -> Option<&[Token]> {
        match self {
            Prompt::Tokens(tokens) => Some(tokens),
            Prompt::Blocks(_) => None,
        }
    }

    /// What tells this prompt's beginning from another's: its tokens, or else the ids of its blocks.
    pub fn items(&self) -> &[u32] {
        match self {
            Prompt::Tokens(tokens) => tokens,
            Prompt::Blocks(blocks) => &blocks.ids,
        }
    }

    /// Tokens that each of those items stands for.
    pub fn tokens_per_item(&self) -> usize {
        match self {
            Prompt::Tokens(_) => 1,
            Prompt::Blocks(blocks) => blocks.block as usize,
        }
    }

    /// What each KV block of `size` tokens holds, from block `from` on, for as far as the prompt fills
    /// them and anything is known of it. `size` divides what an id stands for.
    pub fn contents(&self, from: usize, size: usize) -> Contents<'_> {
        match self {
            Prompt::Tokens(tokens) => {
                let rest = tokens.get(from * size..).unwrap_or_default();
                Contents::Tokens(rest.chunks_exact(size))
            }
            Prompt::Blocks(blocks) => {
                let parts = (blocks.block as usize / size).max(1);
                Contents::Parts {
                    ids: blocks.ids.get(from / parts..).unwrap_or_default(),
                    part: (from % parts) as u32,
                    parts: parts as u32,
                    left: (blocks.tokens as usize / size).saturating_sub(from),
                }
            }
        }
    }
}

/// What one KV block after the other holds; see [`Prompt::contents`].
#[derive(Clone, Debug)]
pub enum Contents<'a> {
    /// Tokens, a block at a time.
    Tokens(core::slice::ChunksExact<'a, Token>),
    /// Parts of what ids stand for.
    Parts {
        /// The id that the next part is of, and those after it.
        ids: &'a [u32],
        /// Which part of it is next.
        part: u32,
        /// Parts that each has.
        parts: u32,
        /// Blocks that the prompt still fills.
        left: usize,
    },
}

impl<'a> Iterator for Contents<'a> {
    type Item = Content<'a>;

    fn next(&mut self) -> Option<Content<'a>> {
        match self {
            Contents::Tokens(blocks) => blocks.next().map(Content::Tokens),
            Contents::Parts { ids, part, parts, left } => {
                *left = left.checked_sub(1)?;
                let (id, rest) = ids.split_first()?;
                let content = Content::Part(u64::from(*id) << 32 | u64::from(*part));
                *part += 1;
                if part == parts {
                    (*ids, *part) = (rest, 0);
                }
                Some(content)
            }
        }
    }
}

impl From<Vec<Token>> for Prompt {
    fn from(tokens: Vec<Token>) -> Prompt {
        Prompt::Tokens(tokens.into())
    }
}

impl From<Arc<[Token]>> for Prompt {
    fn from(tokens: Arc<[Token]>) -> Prompt {
        Prompt::Tokens(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_its_ids_and_its_place_in_it_and_covers_only_what_the_prompt_does() {
        let prompt = Prompt::Blocks(BlockIds { tokens: 13, block: 8, ids: [7, 9].into() });
        let part = |at| prompt.contents(at, 4).next();
        assert_eq!([part(0), part(1)], [7 << 32, 7 << 32 | 1].map(|key| Some(Content::Part(key))));
        assert_eq!([part(2), part(3)], [Some(Content::Part(9 << 32)), None], "one token of part 3 is there");
        assert_eq!(
            prompt.contents(0, 4).collect::<Vec<_>>(),
            [0, 1, 2].map(|at| part(at).expect("it is full"))
        );
        assert_eq!((prompt.len(), prompt.items(), prompt.tokens_per_item()), (13, &[7, 9][..], 8));
    }

    #[test]
    fn of_a_length_alone_nothing_is_shared() {
        let prompt = Prompt::of_length(100);
        assert_eq!((prompt.len(), prompt.contents(0, 16).next(), prompt.items()), (100, None, &[][..]));
    }

    #[test]
    fn tokens_are_cut_into_whole_blocks() {
        let prompt = Prompt::from(vec![1, 2, 3, 4, 5]);
        assert_eq!(prompt.contents(1, 2).next(), Some(Content::Tokens(&[3, 4])));
        assert_eq!(prompt.contents(2, 2).next(), None);
    }
}
