//! The prefix index: from what a block holds, and everything before it, to the block.
//!
//! A key is the parent's entry plus the block's own tokens, *compared*: a hash only finds the
//! candidates, so two prefixes never share a block, whatever their hashes do. The parent's block
//! number is enough to stand for everything before, since a parent is never evicted before its
//! child.

use hashbrown::HashTable;

use super::BlockId;
use crate::trace::Token;

/// What an entry must equal to be found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key<'a> {
    /// The block before this one; `None` for a prompt's first.
    pub parent: Option<BlockId>,
    /// Exactly one block of tokens.
    pub tokens: &'a [Token],
}

#[derive(Clone, Debug)]
struct Entry {
    parent: Option<BlockId>,
    tokens: Box<[Token]>,
    hash: u64,
}

/// How keys are hashed: a parameter so that a test can make every key collide.
pub type HashFn = fn(Option<BlockId>, &[Token]) -> u64;

/// Published blocks by key.
#[derive(Clone, Debug)]
pub struct PrefixIndex {
    entries: Vec<Option<Entry>>,
    table: HashTable<BlockId>,
    hash: HashFn,
}

impl PrefixIndex {
    /// An empty index over a pool of `blocks`.
    pub fn new(blocks: usize) -> PrefixIndex {
        PrefixIndex::with_hash(blocks, hash_key)
    }

    /// The same with a hash of the caller's.
    pub fn with_hash(blocks: usize, hash: HashFn) -> PrefixIndex {
        PrefixIndex { entries: vec![None; blocks], table: HashTable::new(), hash }
    }

    /// The published block of a key.
    pub fn find(&self, key: Key<'_>) -> Option<BlockId> {
        let hash = (self.hash)(key.parent, key.tokens);
        self.table
            .find(hash, |&id| {
                self.entries[id as usize]
                    .as_ref()
                    .is_some_and(|e| e.parent == key.parent && *e.tokens == *key.tokens)
            })
            .copied()
    }

    /// Publishes a block under a key that is not there yet.
    pub fn insert(&mut self, id: BlockId, key: Key<'_>) {
        debug_assert!(self.find(key).is_none(), "a key is published once");
        let hash = (self.hash)(key.parent, key.tokens);
        self.entries[id as usize] = Some(Entry { parent: key.parent, tokens: key.tokens.into(), hash });
        let entries = &self.entries;
        self.table.insert_unique(hash, id, |&id| {
            entries[id as usize].as_ref().expect("what the table holds is published").hash
        });
    }

    /// Takes a block out again.
    pub fn remove(&mut self, id: BlockId) {
        let entry = self.entries[id as usize].take().expect("only published blocks are removed");
        self.table
            .find_entry(entry.hash, |&other| other == id)
            .expect("what is published is in the table")
            .remove();
    }

    /// The block before a published one.
    pub fn parent(&self, id: BlockId) -> Option<BlockId> {
        self.entries[id as usize].as_ref().and_then(|e| e.parent)
    }

    /// Whether a block is published.
    pub fn contains(&self, id: BlockId) -> bool {
        self.entries[id as usize].is_some()
    }

    /// How many blocks are published.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether nothing is published.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

/// Multiply-rotate over the tokens, starting from the parent.
fn hash_key(parent: Option<BlockId>, tokens: &[Token]) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut h = parent.map_or(K, |p| u64::from(p).wrapping_add(1).wrapping_mul(K));
    for &t in tokens {
        h = (h.rotate_left(23) ^ u64::from(t)).wrapping_mul(K);
    }
    h ^ (h >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(parent: Option<BlockId>, tokens: &[Token]) -> Key<'_> {
        Key { parent, tokens }
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
        index.remove(1);
        assert_eq!(index.find(key(None, &[1, 3])), None);
        assert_eq!(index.find(key(None, &[1, 2])), Some(0));
    }
}
