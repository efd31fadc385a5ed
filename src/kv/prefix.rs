//! The prefix index: from what a block holds, and everything before it, to the block.
//!
//! A key is the parent's entry plus what the block itself holds, *compared*: a hash only finds the
//! candidates, so two prefixes never share a block, whatever their hashes do. The parent's block
//! number is enough to stand for everything before, since a parent is never evicted before its
//! child.
//!
//! Most blocks are followed by one other, if by any, so every block remembers the first that was
//! published after it. Only those that came later, where prompts part, and those that begin one are in
//! a hash table.

use hashbrown::HashTable;

use super::BlockId;
use super::block::{Block, NONE, UNPUBLISHED};
use crate::trace::{Content, Token};

/// What an entry must equal to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The block before this one; `None` for a prompt's first.
    pub parent: Option<BlockId>,
    /// What exactly one block holds.
    pub content: Content<'a>,
}

/// How keys are hashed: a parameter so that a test can make every key collide.
pub type HashFn = fn(Option<BlockId>, Content<'_>) -> u64;

/// Finds published blocks by key. The blocks themselves are the pool's.
#[derive(Clone, Debug)]
pub(super) struct PrefixIndex {
    /// The tokens of each block, once any has some.
    tokens: Vec<Box<[Token]>>,
    table: HashTable<BlockId>,
    hash: HashFn,
}

impl Default for PrefixIndex {
    fn default() -> PrefixIndex {
        PrefixIndex::with_hash(hash_key)
    }
}

impl PrefixIndex {
    /// An empty index with a hash of the caller's.
    pub fn with_hash(hash: HashFn) -> PrefixIndex {
        PrefixIndex { tokens: Vec::new(), table: HashTable::new(), hash }
    }

    /// The published block of a key.
    #[inline]
    pub fn find(&self, blocks: &[Block], key: Key<'_>) -> Option<BlockId> {
        let parent = key.parent.unwrap_or(NONE);
        if let Some(before) = blocks.get(parent as usize) {
            if before.child != NONE && self.holds(blocks, before.child, key) {
                return Some(before.child);
            }
            if before.branches == 0 {
                return None;
            }
        }
        self.find_in_table(blocks, key)
    }

    fn find_in_table(&self, blocks: &[Block], key: Key<'_>) -> Option<BlockId> {
        let parent = key.parent.unwrap_or(NONE);
        let hash = (self.hash)(key.parent, key.content);
        let is = |&id: &BlockId| blocks[id as usize].parent == parent && self.holds(blocks, id, key);
        self.table.find(hash, is).copied()
    }

    /// Publishes a block under a key that is not there yet.
    #[inline]
    pub fn insert(&mut self, blocks: &mut [Block], id: BlockId, key: Key<'_>) {
        debug_assert!(self.find(blocks, key).is_none(), "a key is published once");
        let parent = key.parent.unwrap_or(NONE);
        let part = match key.content {
            Content::Part(part) => {
                if let Some(own) = self.tokens.get_mut(id as usize) {
                    *own = Box::default();
                }
                part
            }
            Content::Tokens(tokens) => {
                if self.tokens.is_empty() {
                    self.tokens.resize(blocks.len(), Box::default());
                }
                self.tokens[id as usize] = tokens.into();
                (self.hash)(key.parent, key.content)
            }
        };
        blocks[id as usize] = Block { part, parent, child: NONE, branches: 0, ..blocks[id as usize] };
        if let Some(before) = blocks.get_mut(parent as usize) {
            if before.child == NONE {
                before.child = id;
                return;
            }
            before.branches += 1;
        }
        self.insert_in_table(blocks, id);
    }

    fn insert_in_table(&mut self, blocks: &[Block], id: BlockId) {
        let (tokens, hash) = (&self.tokens, self.hash);
        let hash_of = |&id: &BlockId| block_hash(blocks, tokens, hash, id);
        self.table.insert_unique(hash_of(&id), id, hash_of);
    }

    /// Takes a block out again; nothing that is published follows it.
    #[inline]
    pub fn remove(&mut self, blocks: &mut [Block], id: BlockId) {
        let Block { parent, child, branches, .. } = blocks[id as usize];
        debug_assert!(parent != UNPUBLISHED && child == NONE && branches == 0, "the deepest go first");
        let remembered = blocks.get_mut(parent as usize).is_some_and(|before| {
            let remembered = before.child == id;
            if remembered {
                before.child = NONE;
            } else {
                before.branches -= 1;
            }
            remembered
        });
        if !remembered {
            self.remove_from_table(blocks, id);
        }
        blocks[id as usize].parent = UNPUBLISHED;
    }

    fn remove_from_table(&mut self, blocks: &[Block], id: BlockId) {
        let hash = block_hash(blocks, &self.tokens, self.hash, id);
        let found = self.table.find_entry(hash, |&other| other == id);
        found.expect("what its parent does not remember is in the table").remove();
    }

    /// Whether a published block holds what a key says; its parent is compared by the caller.
    #[inline]
    fn holds(&self, blocks: &[Block], id: BlockId, key: Key<'_>) -> bool {
        let own = self.tokens.get(id as usize).filter(|own| !own.is_empty());
        match (own, key.content) {
            (None, Content::Part(part)) => blocks[id as usize].part == part,
            (Some(own), Content::Tokens(tokens)) => **own == *tokens,
            _ => false,
        }
    }
}

/// The hash that a block is in the table by.
fn block_hash(blocks: &[Block], tokens: &[Box<[Token]>], hash: HashFn, id: BlockId) -> u64 {
    let Block { part, parent, .. } = blocks[id as usize];
    match tokens.get(id as usize) {
        Some(own) if !own.is_empty() => part,
        _ => hash((parent != NONE).then_some(parent), Content::Part(part)),
    }
}

/// Multiply-rotate over what the block holds, starting from the parent.
fn hash_key(parent: Option<BlockId>, content: Content<'_>) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |h: u64, x: u64| (h.rotate_left(23) ^ x).wrapping_mul(K);
    let start = parent.map_or(K, |p| u64::from(p).wrapping_add(1).wrapping_mul(K));
    let h = match content {
        Content::Tokens(tokens) => tokens.iter().fold(start, |h, &t| mix(h, u64::from(t))),
        Content::Part(part) => mix(mix(start, part >> 32), part),
    };
    h ^ (h >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Published {
        index: PrefixIndex,
        blocks: Vec<Block>,
    }

    impl Published {
        fn new(hash: HashFn) -> Published {
            Published { index: PrefixIndex::with_hash(hash), blocks: vec![Block::FREE; 8] }
        }

        fn find(&self, parent: Option<BlockId>, content: Content<'_>) -> Option<BlockId> {
            self.index.find(&self.blocks, Key { parent, content })
        }

        fn insert(&mut self, id: BlockId, parent: Option<BlockId>, content: Content<'_>) {
            self.index.insert(&mut self.blocks, id, Key { parent, content });
        }

        fn remove(&mut self, id: BlockId) {
            self.index.remove(&mut self.blocks, id);
        }
    }

    use Content::{Part, Tokens};

    #[test]
    fn a_shared_middle_is_not_a_shared_prefix() {
        let mut all = Published::new(hash_key);
        all.insert(0, None, Tokens(&[1, 2]));
        all.insert(1, Some(0), Tokens(&[3, 4]));
        assert_eq!(all.find(Some(0), Tokens(&[3, 4])), Some(1));
        assert_eq!(all.find(None, Tokens(&[3, 4])), None);
        assert_eq!(all.find(Some(1), Tokens(&[3, 4])), None);
    }

    #[test]
    fn keys_are_compared_even_when_every_hash_collides() {
        let mut all = Published::new(|_, _| 7);
        all.insert(0, None, Tokens(&[1, 2]));
        all.insert(1, None, Tokens(&[1, 3]));
        all.insert(2, Some(1), Tokens(&[1, 2]));
        assert_eq!(all.find(None, Tokens(&[1, 2])), Some(0));
        assert_eq!(all.find(None, Tokens(&[1, 3])), Some(1));
        assert_eq!(all.find(Some(1), Tokens(&[1, 2])), Some(2));
        assert_eq!(all.find(Some(0), Tokens(&[1, 2])), None);
        all.remove(2);
        all.remove(1);
        assert_eq!(all.find(None, Tokens(&[1, 3])), None);
        assert_eq!(all.find(None, Tokens(&[1, 2])), Some(0));
    }

    #[test]
    fn parts_are_told_apart_by_id_place_and_parent_and_are_no_tokens() {
        let mut all = Published::new(hash_key);
        all.insert(0, None, Part(5 << 32));
        all.insert(1, Some(0), Part(5 << 32 | 1));
        assert_eq!(all.find(Some(0), Part(5 << 32 | 1)), Some(1));
        assert_eq!(all.find(None, Part(5 << 32 | 1)), None);
        assert_eq!(all.find(Some(0), Part(5 << 32)), None);
        all.insert(2, Some(0), Tokens(&[5]));
        assert_eq!(all.find(Some(0), Tokens(&[5])), Some(2));
        all.remove(2);
        all.insert(2, Some(0), Part(9));
        assert_eq!((all.find(Some(0), Part(9)), all.find(Some(0), Tokens(&[5]))), (Some(2), None));
    }

    #[test]
    fn where_prompts_part_each_branch_is_found_until_it_goes() {
        let mut all = Published::new(hash_key);
        all.insert(0, None, Tokens(&[9]));
        (1..5).for_each(|id| all.insert(id, Some(0), Tokens(&[id])));
        for gone in 0..5 {
            let found: Vec<_> = (1..5).map(|id| all.find(Some(0), Tokens(&[id]))).collect();
            let left: Vec<_> = (1..5).map(|id| (id > gone).then_some(id)).collect();
            assert_eq!(found, left);
            if gone < 4 {
                all.remove(gone + 1);
            }
        }
        all.insert(6, Some(0), Tokens(&[3]));
        assert_eq!(all.find(Some(0), Tokens(&[3])), Some(6));
    }
}
