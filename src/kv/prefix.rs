//! The prefix index: from what a block holds, and everything before it, to the block.
//!
//! A key is the parent's entry plus what the block itself holds, *compared*: a hash only finds the
//! candidates, so two prefixes never share a block, whatever their hashes do. The parent's block
//! number is enough to stand for everything before, since a parent is never evicted before its
//! child.

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

/// Stands for a prompt's first block, which has none before it.
const ROOT: BlockId = BlockId::MAX;

#[derive(Clone, Debug)]
enum Held {
    /// Not published.
    Nothing,
    Tokens(Box<[Token]>),
    Part(u64),
}

#[derive(Clone, Debug)]
struct Entry {
    held: Held,
    parent: BlockId,
    hash: u32,
}

impl Entry {
    fn is(&self, parent: BlockId, content: Content<'_>) -> bool {
        self.parent == parent
            && match (&self.held, content) {
                (Held::Part(own), Content::Part(other)) => *own == other,
                (Held::Tokens(own), Content::Tokens(other)) => **own == *other,
                _ => false,
            }
    }
}

/// How keys are hashed: a parameter so that a test can make every key collide.
pub type HashFn = fn(Option<BlockId>, Content<'_>) -> u64;

/// Published blocks by key.
#[derive(Clone, Debug)]
pub struct PrefixIndex {
    entries: Vec<Entry>,
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
        let nothing = Entry { held: Held::Nothing, parent: ROOT, hash: 0 };
        PrefixIndex { entries: vec![nothing; blocks], table: HashTable::new(), hash }
    }

    /// The published block of a key.
    pub fn find(&self, key: Key<'_>) -> Option<BlockId> {
        let parent = key.parent.unwrap_or(ROOT);
        let hash = spread(self.hash_of(key));
        self.table.find(hash, |&id| self.entries[id as usize].is(parent, key.content)).copied()
    }

    /// Publishes a block under a key that is not there yet.
    pub fn insert(&mut self, id: BlockId, key: Key<'_>) {
        debug_assert!(self.find(key).is_none(), "a key is published once");
        let hash = self.hash_of(key);
        let held = match key.content {
            Content::Tokens(tokens) => Held::Tokens(tokens.into()),
            Content::Part(part) => Held::Part(part),
        };
        self.entries[id as usize] = Entry { held, parent: key.parent.unwrap_or(ROOT), hash };
        let entries = &self.entries;
        self.table.insert_unique(spread(hash), id, |&id| spread(entries[id as usize].hash));
    }

    /// Takes a block out again.
    pub fn remove(&mut self, id: BlockId) {
        let entry = &mut self.entries[id as usize];
        entry.held = Held::Nothing;
        self.table
            .find_entry(spread(entry.hash), |&other| other == id)
            .expect("only published blocks are removed, and what is published is in the table")
            .remove();
    }

    /// The block before a published one.
    pub fn parent(&self, id: BlockId) -> Option<BlockId> {
        let entry = &self.entries[id as usize];
        (self.contains(id) && entry.parent != ROOT).then_some(entry.parent)
    }

    /// Whether a block is published.
    pub fn contains(&self, id: BlockId) -> bool {
        !matches!(self.entries[id as usize].held, Held::Nothing)
    }

    /// How many blocks are published.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether nothing is published.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Half of a key's hash: enough for any pool, and half the memory.
    fn hash_of(&self, key: Key<'_>) -> u32 {
        (self.hash)(key.parent, key.content) as u32
    }
}

/// The table looks at both ends of a hash.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

/// Multiply-rotate over what the block holds, starting from the parent.
fn hash_key(parent: Option<BlockId>, content: Content<'_>) -> u64 {
    const K: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |h: u64, x: u64| (h.rotate_left(23) ^ x).wrapping_mul(K);
    let start = parent.map_or(K, |p| u64::from(p).wrapping_add(1).wrapping_mul(K));
    let h = match content {
        Content::Tokens(tokens) => tokens.iter().fold(start, |h, &t| mix(h, u64::from(t))),
        Content::Part(part) => mix(start, part),
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
}
