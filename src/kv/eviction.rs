//! The order in which cached blocks are evicted: least recently used first, then the deepest, then
//! the lowest number.
//!
//! Blocks are let go of in the order of time, so a queue that grows at its end is in order but for
//! those that were let go of at the same moment. These are put in order when the first of them is
//! asked for, which is seldom any work: most moments have one request's blocks, and these come
//! deepest first. A block that is held again leaves its place empty, to be passed over.

use core::cmp::Reverse;
use std::collections::VecDeque;

use super::BlockId;
use super::block::Block;

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: BlockId,
    /// Blocks before it in its chain.
    depth: u32,
    /// When it was let go of.
    moment: u64,
}

/// Blocks that nobody holds, in the order of their eviction.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    entries: VecDeque<Entry>,
    /// The place of the first entry; a block knows the place of its own. Wraps.
    first: u32,
    len: usize,
    /// The moment of which all blocks are in order.
    ordered: Option<u64>,
}

impl Queue {
    /// Blocks in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// So many blocks are about to be added.
    pub fn reserve(&mut self, blocks: &mut [Block], more: usize) {
        if self.entries.len() > 2 * self.len + 64 {
            self.compact(blocks);
        }
        self.entries.reserve(more);
    }

    /// Adds a published block that nobody holds any more since `moment`; moments do not go back.
    #[inline]
    pub fn push(&mut self, blocks: &mut [Block], id: BlockId, depth: u32, moment: u64) {
        debug_assert!(self.entries.back().is_none_or(|last| last.moment <= moment));
        blocks[id as usize].queued = self.first.wrapping_add(self.entries.len() as u32);
        self.entries.push_back(Entry { id, depth, moment });
        self.len += 1;
        if self.ordered == Some(moment) {
            self.ordered = None;
        }
    }

    /// A block in it is about to be held.
    pub fn leave(&mut self) {
        self.len -= 1;
    }

    /// About those that so many evictions would take.
    pub fn next(&self, count: usize) -> impl Iterator<Item = BlockId> {
        self.entries.iter().take(count).map(|entry| entry.id)
    }

    /// Takes the next one out.
    #[inline]
    pub fn pop(&mut self, blocks: &mut [Block]) -> Option<BlockId> {
        loop {
            let Entry { moment, .. } = *self.entries.front()?;
            if self.ordered != Some(moment) {
                self.order(blocks, moment);
                continue;
            }
            let Entry { id, .. } = self.entries.pop_front()?;
            let place = self.first;
            self.first = self.first.wrapping_add(1);
            let block = &blocks[id as usize];
            if block.queued == place && block.is_cached() {
                self.len -= 1;
                return Some(id);
            }
        }
    }

    /// The blocks in it and when they were let go of, those of one moment in no order.
    pub fn iter<'a>(&'a self, blocks: &'a [Block]) -> impl Iterator<Item = (BlockId, u64)> + 'a {
        self.live(blocks).map(|entry| (entry.id, entry.moment))
    }

    fn live<'a>(&'a self, blocks: &'a [Block]) -> impl Iterator<Item = Entry> + 'a {
        self.entries.iter().enumerate().filter_map(|(at, entry)| {
            let block = &blocks[entry.id as usize];
            let place = self.first.wrapping_add(at as u32);
            (block.queued == place && block.is_cached()).then_some(*entry)
        })
    }

    /// Puts the first entries, all those of `moment`, in order.
    fn order(&mut self, blocks: &mut [Block], moment: u64) {
        self.ordered = Some(moment);
        let group = self.entries.iter().take_while(|entry| entry.moment == moment);
        let key = |entry: &Entry| (Reverse(entry.depth), entry.id);
        if group.clone().is_sorted_by_key(key) {
            return;
        }
        let all = group.count();
        let mut group: Vec<Entry> = self.live(blocks).take_while(|entry| entry.moment == moment).collect();
        group.sort_unstable_by_key(key);
        let empty = all - group.len();
        self.entries.drain(..empty);
        self.first = self.first.wrapping_add(empty as u32);
        self.place(blocks, group);
    }

    /// Takes the empty places out.
    fn compact(&mut self, blocks: &mut [Block]) {
        let live: Vec<Entry> = self.live(blocks).collect();
        self.entries.truncate(live.len());
        self.place(blocks, live);
    }

    /// Makes these the first entries.
    fn place(&mut self, blocks: &mut [Block], entries: Vec<Entry>) {
        for (at, entry) in entries.into_iter().enumerate() {
            blocks[entry.id as usize].queued = self.first.wrapping_add(at as u32);
            self.entries[at] = entry;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Against a sorted set, over a long random life that begins just before places wrap.
    #[test]
    fn the_order_is_that_of_a_sorted_set() {
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let mut blocks = vec![Block { parent: 0, ..Block::FREE }; 40];
        let mut queue = Queue { first: u32::MAX - 500, ..Queue::default() };
        let mut set = BTreeSet::new();
        let mut inside: Vec<Option<(u64, Reverse<u32>, BlockId)>> = vec![None; 40];
        for at in 0..40_000u64 {
            let id = draw(40) as BlockId;
            match (draw(3 + at / 20_000 * 9), inside[id as usize]) {
                (0, _) => {
                    let expected: Option<(_, _, BlockId)> = set.pop_first();
                    assert_eq!(queue.pop(&mut blocks), expected.map(|(_, _, id)| id));
                    if let Some((_, _, id)) = expected {
                        blocks[id as usize].holders = 1;
                        inside[id as usize] = None;
                    }
                }
                (_, Some(key)) => {
                    queue.leave();
                    blocks[id as usize].holders = 1;
                    set.remove(&key);
                    inside[id as usize] = None;
                }
                (_, None) => {
                    let key = (at / 9, Reverse(draw(4) as u32), id);
                    blocks[id as usize].holders = 0;
                    queue.reserve(&mut blocks, 1);
                    queue.push(&mut blocks, id, key.1.0, key.0);
                    set.insert(key);
                    inside[id as usize] = Some(key);
                }
            }
            assert_eq!((queue.len(), queue.iter(&blocks).count()), (set.len(), set.len()));
            assert!(queue.entries.len() <= 2 * 40 + 66, "empty places do not pile up");
        }
    }
}
