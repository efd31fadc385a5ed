//! The block pool: reference counts, prefix sharing, and eviction.
//!
//! A block is *free*, *held* by one or more running requests, or *cached*: published, held by
//! nobody, and kept until its memory is needed. Cached blocks are evicted least recently used
//! first. A request holds a whole chain of blocks and lets go of all of it at once, so a parent's
//! last use is never before its child's; with ties broken towards the deepest, the order of
//! eviction alone keeps a parent from going before its child.

use super::BlockId;
use super::block::{Block, UNPUBLISHED};
use super::eviction::Queue;
use super::prefix::{HashFn, Key, PrefixIndex};
use crate::trace::Content;

/// A fixed pool of blocks with prefix sharing.
#[derive(Clone, Debug)]
pub struct BlockPool {
    block_size: usize,
    blocks: Vec<Block>,
    /// Free blocks; the next to be used is at the end.
    free: Vec<BlockId>,
    cached: Queue,
    index: PrefixIndex,
    evictions: u64,
}

impl BlockPool {
    /// A pool of `blocks` blocks of `block_size` tokens, all free; lowest numbers are used first.
    pub fn new(blocks: usize, block_size: usize) -> BlockPool {
        assert!(block_size > 0 && blocks < UNPUBLISHED as usize, "parameters are validated before");
        BlockPool {
            block_size,
            blocks: vec![Block::FREE; blocks],
            free: (0..blocks as BlockId).rev().collect(),
            cached: Queue::default(),
            index: PrefixIndex::default(),
            evictions: 0,
        }
    }

    /// The same with a hash of the caller's, for tests of collisions.
    pub fn with_hash(blocks: usize, block_size: usize, hash: HashFn) -> BlockPool {
        BlockPool { index: PrefixIndex::with_hash(hash), ..BlockPool::new(blocks, block_size) }
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
        self.blocks[id as usize].is_published()
    }

    /// The blocks that `tokens` needs.
    pub fn blocks_for(&self, tokens: usize) -> usize {
        tokens.div_ceil(self.block_size)
    }

    /// The published block that holds `content` after the block `parent`.
    pub fn find(&self, parent: Option<BlockId>, content: Content<'_>) -> Option<BlockId> {
        self.index.find(&self.blocks, Key { parent, content })
    }

    /// How many blocks a request that reuses `matched` could still be given: free ones and cached
    /// ones, less those that it will itself hold.
    pub fn available(&self, matched: &[BlockId]) -> usize {
        let own = matched.iter().filter(|&&id| self.holders(id) == 0).count();
        self.free.len() + self.cached.len() - own
    }

    /// Whom a block was last taken for.
    pub fn owner(&self, id: BlockId) -> Option<u32> {
        Some(self.blocks[id as usize].owner).filter(|&owner| owner != u32::MAX)
    }

    /// Holds one more time a published block.
    pub fn hold(&mut self, id: BlockId) {
        let block = &mut self.blocks[id as usize];
        if block.holders == 0 {
            self.cached.leave();
        }
        block.holders += 1;
    }

    /// So many blocks are about to be allocated.
    pub fn expect(&self, wanted: usize) {
        touch(&self.blocks, self.cached.next(wanted.saturating_sub(self.free.len())));
    }

    /// A block of one's own: a free one, else the least recently used cached one. `None` when
    /// everything is held.
    pub fn allocate(&mut self, owner: Option<u32>) -> Option<BlockId> {
        let id = match self.free.pop() {
            Some(id) => id,
            None => self.evict()?,
        };
        let block = &mut self.blocks[id as usize];
        block.holders = 1;
        block.owner = owner.unwrap_or(u32::MAX);
        Some(id)
    }

    fn evict(&mut self) -> Option<BlockId> {
        let id = self.cached.pop(&mut self.blocks)?;
        self.index.remove(&mut self.blocks, id);
        self.evictions += 1;
        Some(id)
    }

    /// Publishes block `at` of a request whose chain is `chain`, once it is full. Where another block
    /// is already published for the same prefix, the request takes that one and its own becomes free.
    #[inline]
    pub fn publish(&mut self, chain: &mut [BlockId], at: usize, content: Content<'_>) {
        let own = chain[at];
        if self.is_published(own) {
            return;
        }
        let parent = at.checked_sub(1).map(|before| chain[before]);
        debug_assert!(parent.is_none_or(|p| self.is_published(p)), "parents are published first");
        let key = Key { parent, content };
        match self.index.find(&self.blocks, key) {
            Some(published) => {
                self.hold(published);
                chain[at] = published;
                self.blocks[own as usize].holders = 0;
                self.free.push(own);
            }
            None => self.index.insert(&mut self.blocks, own, key),
        }
    }

    /// Lets go of a whole chain at one moment (a count of the owner's choosing that never goes back):
    /// what is published stays cached, the rest is free.
    pub fn release(&mut self, chain: &[BlockId], moment: u64) {
        touch(&self.blocks, chain.iter().copied());
        self.cached.reserve(&mut self.blocks, chain.len());
        // From the end, so that free blocks come out in the order of the chain.
        for (depth, &id) in chain.iter().enumerate().rev() {
            let block = &mut self.blocks[id as usize];
            block.holders = block.holders.checked_sub(1).expect("a chain is released once");
            if block.is_cached() {
                self.cached.push(&mut self.blocks, id, depth as u32, moment);
            } else if block.holders == 0 {
                self.free.push(id);
            }
        }
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
            assert!(!seen[id as usize] && holders[id as usize] == 0 && !self.is_published(id));
            seen[id as usize] = true;
        }
        let mut latest = 0;
        for (id, last_use) in self.cached.iter(&self.blocks) {
            assert!(!seen[id as usize] && holders[id as usize] == 0 && self.is_published(id));
            assert!(last_use >= latest, "block {id} is in its place");
            (seen[id as usize], latest) = (true, last_use);
        }
        assert_eq!(self.cached.len(), self.cached.iter(&self.blocks).count());
        for (id, &count) in holders.iter().enumerate() {
            assert_eq!(self.blocks[id].holders, count, "block {id}");
            assert_eq!(seen[id], count == 0, "block {id} is free, cached or held, and only one of them");
            let parent = self.blocks[id].parent;
            if parent < UNPUBLISHED {
                assert!(self.is_published(parent), "block {id} outlived its parent {parent}");
                assert!(holders[parent as usize] >= count, "who holds a child holds its parent");
            }
        }
    }
}

/// Looks at blocks that are needed in a moment, all at once: where they are far from the processor, it
/// waits for all of them together and not for one after the other.
fn touch(blocks: &[Block], ids: impl Iterator<Item = BlockId>) {
    let seen = ids.fold(0, |seen: u32, id| seen.wrapping_add(blocks[id as usize].queued));
    core::hint::black_box(seen);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Token;

    /// The published blocks that tokens begin with; never all of them.
    fn lookup(pool: &BlockPool, tokens: &[Token]) -> Vec<BlockId> {
        let mut found: Vec<BlockId> = Vec::new();
        for block in tokens[..tokens.len().saturating_sub(1)].chunks_exact(pool.block_size()) {
            match pool.find(found.last().copied(), Content::Tokens(block)) {
                Some(id) => found.push(id),
                None => break,
            }
        }
        found
    }

    /// Takes, fills and publishes a chain for `tokens`, reusing what is there.
    fn fill(pool: &mut BlockPool, tokens: &[Token]) -> Vec<BlockId> {
        let mut chain = lookup(pool, tokens);
        chain.iter().for_each(|&id| pool.hold(id));
        while chain.len() < pool.blocks_for(tokens.len()) {
            chain.push(pool.allocate(None).expect("the test's pool is large enough"));
        }
        for (at, block) in tokens.chunks_exact(pool.block_size()).enumerate() {
            pool.publish(&mut chain, at, Content::Tokens(block));
        }
        chain
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
        pool.release(&old, 1);
        pool.release(&same, 2);
        pool.release(&new, 2);
        let order: Vec<BlockId> = (0..6).map(|_| pool.allocate(None).expect("all are cached")).collect();
        assert_eq!(order, [old[1], old[0], new[1], same[1], new[0], same[0]]);
        assert_eq!((pool.evictions(), pool.allocate(None)), (6, None));
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
