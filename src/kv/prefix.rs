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
use crate::trace::{Content, Token};

/// What an entry must equal to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The block before this one; `None` for a prompt's first.
    pub parent: Option<BlockId>,
    /// What exactly one block holds.
    pub content: Content<'a>,
}

/// In the place of a block: there is none.
const NONE: BlockId = BlockId::MAX;
/// In the place of a parent: the block is not published.
const UNPUBLISHED: BlockId = BlockId::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// What it holds, or the hash of what it holds where that is tokens.
    part: u64,
    parent: BlockId,
    /// The block after it that is not in the table.
    child: BlockId,
    /// Blocks after it that are.
    branches: u32,
}

/// How keys are hashed: a parameter so that a test can make every key collide.
pub type HashFn = fn(Option<BlockId>, Content<'_>) -> u64;

/// Published blocks by key.
#[derive(Clone, Debug)]
pub struct PrefixIndex {
    entries: Vec<Entry>,
    /// The tokens of each block, once any has some.
    tokens: Vec<Box<[Token]>>,
    table: HashTable<BlockId>,
    hash: HashFn,
    len: usize,
}

impl PrefixIndex {
    /// An empty index over a pool of `blocks`.
    pub fn new(blocks: usize) -> PrefixIndex {
        PrefixIndex::with_hash(blocks, hash_key)
    }

    /// The same with a hash of the caller's.
    pub fn with_hash(blocks: usize, hash: HashFn) -> PrefixIndex {
        assert!(blocks < UNPUBLISHED as usize, "parameters are validated before");
        let entry = Entry { part: 0, parent: UNPUBLISHED, child: NONE, branches: 0 };
        PrefixIndex {
            entries: vec![entry; blocks],
            tokens: Vec::new(),
            table: HashTable::new(),
            hash,
            len: 0,
        }
    }

    /// The published block of a key.
    pub fn find(&self, key: Key<'_>) -> Option<BlockId> {
        let parent = key.parent.unwrap_or(NONE);
        if let Some(before) = self.entries.get(parent as usize) {
            if before.child != NONE && self.holds(before.child, key) {
                return Some(before.child);
            }
            if before.branches == 0 {
                return None;
            }
        }
        let hash = (self.hash)(key.parent, key.content);
        self.table
            .find(hash, |&id| self.entries[id as usize].parent == parent && self.holds(id, key))
            .copied()
    }

    /// Publishes a block under a key that is not there yet.
    pub fn insert(&mut self, id: BlockId, key: Key<'_>) {
        debug_assert!(self.find(key).is_none(), "a key is published once");
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
                    self.tokens.resize(self.entries.len(), Box::default());
                }
                self.tokens[id as usize] = tokens.into();
                (self.hash)(key.parent, key.content)
            }
        };
        self.entries[id as usize] = Entry { part, parent, child: NONE, branches: 0 };
        self.len += 1;
        if let Some(before) = self.entries.get_mut(parent as usize) {
            if before.child == NONE {
                before.child = id;
                return;
            }
            before.branches += 1;
        }
        let (entries, tokens, hash) = (&self.entries, &self.tokens, self.hash);
        let hash_of = |&id: &BlockId| entry_hash(entries, tokens, hash, id);
        self.table.insert_unique(hash_of(&id), id, hash_of);
    }

    /// Takes a block out again; nothing that is published follows it.
    pub fn remove(&mut self, id: BlockId) {
        let Entry { parent, child, branches, .. } = self.entries[id as usize];
        debug_assert!(parent != UNPUBLISHED && child == NONE && branches == 0, "the deepest go first");
        self.len -= 1;
        let inside = self.entries.get_mut(parent as usize).is_some_and(|before| {
            let inside = before.child == id;
            if inside {
                before.child = NONE;
            } else {
                before.branches -= 1;
            }
            inside
        });
        if !inside {
            let hash = entry_hash(&self.entries, &self.tokens, self.hash, id);
            let found = self.table.find_entry(hash, |&other| other == id);
            found.expect("what its parent does not remember is in the table").remove();
        }
        self.entries[id as usize].parent = UNPUBLISHED;
    }

    /// The block before a published one.
    pub fn parent(&self, id: BlockId) -> Option<BlockId> {
        let parent = self.entries[id as usize].parent;
        (parent < UNPUBLISHED).then_some(parent)
    }

    /// Whether a block is published.
    pub fn contains(&self, id: BlockId) -> bool {
        self.entries[id as usize].parent != UNPUBLISHED
    }

    /// How many blocks are published.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is published.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a published block holds what a key says; its parent is compared by the caller.
    fn holds(&self, id: BlockId, key: Key<'_>) -> bool {
        let own = self.tokens.get(id as usize).filter(|own| !own.is_empty());
        match (own, key.content) {
            (None, Content::Part(part)) => self.entries[id as usize].part == part,
            (Some(own), Content::Tokens(tokens)) => **own == *tokens,
            _ => false,
        }
    }
}

/// The hash that a block is in the table by.
fn entry_hash(entries: &[Entry], tokens: &[Box<[Token]>], hash: HashFn, id: BlockId) -> u64 {
    let Entry { part, parent, .. } = entries[id as usize];
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

    fn key(parent: Option<BlockId>, tokens: &[Token]) -> Key<'_> {
        Key { parent, content: Content::Tokens(tokens) }
    }

    #[test]
    fn a_shared_middle_is_not_a_shared_prefix() {
        let mut index = PrefixIndex::new(8);
        index.insert(0, key(None, &[1, 2]));
        index.insert(1, key(Some(0), &[3, 4]));
        assert_eq!(index.find(key(Some(0), &[3, 4])), Some(1));
        assert_eq!(index.find(key(None, &[3, 4])), None);
        assert_eq!(index.find(key(Some(1), &[3, 4])), None);
    }

    #[test]
    fn keys_are_compared_even_when_every_hash_collides() {
        let mut index = PrefixIndex::with_hash(8, |_, _| 7);
        index.insert(0, key(None, &[1, 2]));
        index.insert(1, key(None, &[1, 3]));
        index.insert(2, key(Some(1), &[1, 2]));
        assert_eq!(index.find(key(None, &[1, 2])), Some(0));
        assert_eq!(index.find(key(None, &[1, 3])), Some(1));
        assert_eq!(index.find(key(Some(1), &[1, 2])), Some(2));
        assert_eq!(index.find(key(Some(0), &[1, 2])), None);
        index.remove(2);
        index.remove(1);
        assert_eq!(index.find(key(None, &[1, 3])), None);
        assert_eq!(index.find(key(None, &[1, 2])), Some(0));
    }

    #[test]
    fn parts_are_told_apart_by_id_place_and_parent() {
        let part = |parent, part| Key { parent, content: Content::Part(part) };
        let mut index = PrefixIndex::new(8);
        index.insert(0, part(None, 5 << 32));
        index.insert(1, part(Some(0), 5 << 32 | 1));
        assert_eq!(index.find(part(Some(0), 5 << 32 | 1)), Some(1));
        assert_eq!(index.find(part(None, 5 << 32 | 1)), None);
        assert_eq!(index.find(part(Some(0), 5 << 32)), None);
        assert_eq!((index.parent(1), index.parent(0)), (Some(0), None));
    }

    #[test]
    fn where_prompts_part_each_branch_is_found_until_it_goes() {
        let mut index = PrefixIndex::new(8);
        index.insert(0, key(None, &[9]));
        (1..5).for_each(|id| index.insert(id, key(Some(0), &[id])));
        for gone in 0..5 {
            let found: Vec<_> = (1..5).map(|id| index.find(key(Some(0), &[id]))).collect();
            let left: Vec<_> = (1..5).map(|id| (id > gone).then_some(id)).collect();
            assert_eq!((found, index.len()), (left, 5 - gone as usize));
            if gone < 4 {
                index.remove(gone + 1);
            }
        }
        index.insert(6, key(Some(0), &[3]));
        assert_eq!(index.find(key(Some(0), &[3])), Some(6));
    }
}
