//! The block pool: reference counts, prefix sharing, and eviction.
//!
//! A block is *free*, *held* by one or more running requests, or *cached*: published, held by
//! nobody, and kept until its memory is needed. Cached blocks are evicted least recently used
//! first. A request holds a whole chain of blocks and lets go of all of it at once, so a parent's
//! last use is never before its child's; with ties broken towards the deepest, the order of
//! eviction alone keeps a parent from going before its child.

use std::collections::BTreeSet;

use super::BlockId;
use super::prefix::{HashFn, Key, PrefixIndex};
use crate::trace::Token;

/// Where a cached block stands in the order of eviction: last use, then deepest, then lowest id.
type EvictionKey = (u64, core::cmp::Reverse<u32>, BlockId);

#[derive(Clone, Copy, Debug, Default)]
struct Block {
    holders: u32,
    /// Blocks before it in its chain.
    depth: u32,
    /// The moment (a count of the owner's choosing) of the last release.
    last_use: u64,
}

/// A fixed pool of blocks with prefix sharing.
#[derive(Clone, Debug)]
pub struct BlockPool {
    block_size: usize,
    blocks: Vec<Block>,
    /// Free blocks; the next to be used is at the end.
    free: Vec<BlockId>,
    cached: BTreeSet<EvictionKey>,
    index: PrefixIndex,
    evictions: u64,
}

impl BlockPool {
    /// A pool of `blocks` blocks of `block_size` tokens, all free; lowest numbers are used first.
    pub fn new(blocks: usize, block_size: usize) -> BlockPool {
        assert!(block_size > 0 && u32::try_from(blocks).is_ok(), "parameters are validated before");
        BlockPool {
            block_size,
            blocks: vec![Block::default(); blocks],
            free: (0..blocks as BlockId).rev().collect(),
            cached: BTreeSet::new(),
            index: PrefixIndex::new(blocks),
            evictions: 0,
        }
    }

    /// The same with a hash of the caller's, for tests of collisions.
    pub fn with_hash(blocks: usize, block_size: usize, hash: HashFn) -> BlockPool {
        BlockPool { index: PrefixIndex::with_hash(blocks, hash), ..BlockPool::new(blocks, block_size) }
    }

    /// Tokens a block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Blocks in all.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether the pool has no blocks at all.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Blocks that nobody holds and nothing is kept in.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// Published blocks that nobody holds.
    pub fn cached(&self) -> usize {
        self.cached.len()
    }

    /// Blocks that running requests hold.
    pub fn held(&self) -> usize {
        self.blocks.len() - self.free.len() - self.cached.len()
    }

    /// Blocks evicted so far.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// How many requests hold a block.
    pub fn holders(&self, id: BlockId) -> u32 {
        self.blocks[id as usize].holders
    }

    /// Whether a block can be found by its key.
    pub fn is_published(&self, id: BlockId) -> bool {
        self.index.contains(id)
    }

    /// The blocks that `tokens` needs.
    pub fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_size)
    }

    /// The published blocks that `tokens` begins with; never all of it, since the last token must
    /// be computed.
    pub fn lookup(&self, tokens: &[Token]) -> Vec<BlockId> {
        let most = tokens.len().saturating_sub(1) / self.block_size;
        let mut found = Vec::new();
        for block in tokens.chunks_exact(self.block_size).take(most) {
            match self.index.find(Key { parent: found.last().copied(), tokens: block }) {
                Some(id) => found.push(id),
                None => break,
            }
        }
        found
    }

    /// How many blocks a request that reuses `matched` could still be given: free ones and cached
    /// ones, less those that it will itself hold.
    pub fn available(&self, matched: &[BlockId]) -> usize {
        let own = matched.iter().filter(|&&id| self.holders(id) == 0).count();
        self.free.len() + self.cached.len() - own
    }

    /// Holds one more time a published block.
    pub fn hold(&mut self, id: BlockId) {
        debug_assert!(self.index.contains(id), "only published blocks are shared");
        let key = self.eviction_key(id);
        let block = &mut self.blocks[id as usize];
        if block.holders == 0 {
            self.cached.remove(&key);
        }
        block.holders += 1;
    }

    /// A block of one's own: a free one, else the least recently used cached one. `None` when
    /// everything is held.
    pub fn allocate(&mut self) -> Option<BlockId> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.evict()?,
        };
        self.blocks[id as usize] = Block { holders: 1, depth: 0, last_use: 0 };
        Some(id)
    }

    fn evict(&mut self) -> Option<BlockId> {
        let (_, _, id) = self.cached.pop_first()?;
        self.index.remove(id);
        self.evictions += 1;
        Some(id)
    }

    /// Publishes block `at` of a request whose chain is `chain` and whose tokens are `tokens`, once
    /// it is full. Where another block is already published for the same prefix, the request takes
    /// that one and its own becomes free.
    pub fn publish(&mut self, chain: &mut [BlockId], at: usize, tokens: &[Token]) {
        let own = chain[at];
        if self.index.contains(own) {
            return;
        }
        let parent = at.checked_sub(1).map(|before| chain[before]);
        debug_assert!(parent.is_none_or(|p| self.index.contains(p)), "parents are published first");
        let content = &tokens[at * self.block_size..(at + 1) * self.block_size];
        let key = Key { parent, tokens: content };
        match self.index.find(key) {
            Some(published) => {
                self.hold(published);
                chain[at] = published;
                self.blocks[own as usize].holders = 0;
                self.free.push(own);
            }
            None => {
                self.index.insert(own, key);
                self.blocks[own as usize].depth = at as u32;
            }
        }
    }

    /// Lets go of a whole chain at one moment: what is published stays cached, the rest is free.
    pub fn release(&mut self, chain: &[BlockId], moment: u64) {
        // From the end, so that free blocks come out in the order of the chain.
        for &id in chain.iter().rev() {
            let block = &mut self.blocks[id as usize];
            block.holders = block.holders.checked_sub(1).expect("a chain is released once");
            block.last_use = moment;
            if block.holders > 0 {
                continue;
            }
            if self.index.contains(id) {
                self.cached.insert(self.eviction_key(id));
            } else {
                self.free.push(id);
            }
        }
    }

    fn eviction_key(&self, id: BlockId) -> EvictionKey {
        let block = &self.blocks[id as usize];
        (block.last_use, core::cmp::Reverse(block.depth), id)
    }

    /// Checks every count against the chains that are held, for tests: panics where they differ.
    pub fn audit<'a>(&self, chains: impl Iterator<Item = &'a [BlockId]>) {
        let mut holders = vec![0; self.blocks.len()];
        for chain in chains {
            for &id in chain {
                holders[id as usize] += 1;
            }
        }
        let mut seen = vec![false; self.blocks.len()];
        for &id in &self.free {
            assert!(!seen[id as usize] && holders[id as usize] == 0 && !self.index.contains(id));
            seen[id as usize] = true;
        }
        for &(last_use, depth, id) in &self.cached {
            assert!(!seen[id as usize] && holders[id as usize] == 0 && self.index.contains(id));
            assert_eq!((last_use, depth, id), self.eviction_key(id));
            seen[id as usize] = true;
        }
        for (id, &count) in holders.iter().enumerate() {
            assert_eq!(self.blocks[id].holders, count, "block {id}");
            assert_eq!(seen[id], count == 0, "block {id} is free, cached or held, and only one of them");
            if self.index.contains(id as BlockId)
                && let Some(parent) = self.index.parent(id as BlockId)
            {
                assert!(self.index.contains(parent), "block {id} outlived its parent {parent}");
                assert!(holders[parent as usize] >= count, "who holds a child holds its parent");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes, fills and publishes a chain for `tokens`, reusing what is there.
    fn fill(pool: &mut BlockPool, tokens: &[Token]) -> Vec<BlockId> {
        let mut chain = pool.lookup(tokens);
        chain.iter().for_each(|&id| pool.hold(id));
        while chain.len() < pool.blocks_for(tokens.len()) {
            chain.push(pool.allocate().expect("the test's pool is large enough"));
        }
        for at in 0..tokens.len() / pool.block_size() {
            pool.publish(&mut chain, at, tokens);
        }
        chain
    }

    #[test]
    fn the_last_token_is_always_computed() {
        let mut pool = BlockPool::new(8, 2);
        let chain = fill(&mut pool, &[1, 2, 3, 4]);
        assert_eq!(
            pool.lookup(&[1, 2, 3, 4]),
            chain[..1],
            "all four are there, but one block is left to compute"
        );
        assert_eq!(pool.lookup(&[1, 2, 3, 4, 5]), chain[..2]);
        assert!(pool.lookup(&[1, 2]).is_empty() && pool.lookup(&[]).is_empty());
    }

    #[test]
    fn publishing_what_exists_switches_to_it() {
        let mut pool = BlockPool::new(8, 2);
        let first = fill(&mut pool, &[1, 2]);
        let second = fill(&mut pool, &[1, 2]);
        assert_eq!(first, second);
        assert_eq!((pool.holders(first[0]), pool.held(), pool.free()), (2, 1, 7));
        pool.audit([&first[..], &second[..]].into_iter());
    }

    #[test]
    fn eviction_is_least_recently_used_then_deepest_then_lowest() {
        let mut pool = BlockPool::new(6, 1);
        let old = fill(&mut pool, &[1, 2]);
        let new = fill(&mut pool, &[3, 4]);
        let same = fill(&mut pool, &[5, 6]);
        pool.release(&same, 2);
        pool.release(&new, 2);
        pool.release(&old, 1);
        let order: Vec<BlockId> = (0..6).map(|_| pool.allocate().expect("all are cached")).collect();
        assert_eq!(order, [old[1], old[0], new[1], same[1], new[0], same[0]]);
        assert_eq!((pool.evictions(), pool.allocate()), (6, None));
    }

    #[test]
    fn a_held_block_is_never_evicted_and_cached_ones_count_as_available() {
        let mut pool = BlockPool::new(4, 1);
        let a = fill(&mut pool, &[1, 2]);
        let b = fill(&mut pool, &[1, 2, 3]);
        assert_eq!(a, b[..2]);
        pool.release(&a, 1);
        assert_eq!((pool.held(), pool.cached(), pool.free()), (3, 0, 1));
        pool.release(&b, 2);
        assert_eq!((pool.held(), pool.cached(), pool.free()), (0, 3, 1));
        assert_eq!((pool.available(&[]), pool.available(&b[..2])), (4, 2));
        pool.audit(core::iter::empty());
    }
}
