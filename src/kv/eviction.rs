//! The order in which cached blocks are evicted: least recently used first, then the deepest, then
//! the lowest number.
//!
//! Blocks are let go of in the order of time, so a list that grows at its end is in order but for
//! those that were let go of at the same moment. These are put in order when the first of them is
//! asked for, once for most moments; a block joins or leaves the list in constant time.

use core::cmp::Reverse;

use super::BlockId;

const NONE: BlockId = BlockId::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    last_use: u64,
    depth: u32,
    before: BlockId,
    after: BlockId,
}

/// Blocks that nobody holds, in the order of their eviction.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    nodes: Vec<Node>,
    first: BlockId,
    last: BlockId,
    len: usize,
    /// The moment of which all blocks are in order, if it is the first's.
    ordered: Option<u64>,
    scratch: Vec<BlockId>,
}

impl Queue {
    /// An empty one, over a pool of `blocks`.
    pub fn new(blocks: usize) -> Queue {
        let node = Node { last_use: 0, depth: 0, before: NONE, after: NONE };
        Queue {
            nodes: vec![node; blocks],
            first: NONE,
            last: NONE,
            len: 0,
            ordered: None,
            scratch: Vec::new(),
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Blocks before a block in its chain.
    pub fn set_depth(&mut self, id: BlockId, depth: u32) {
        self.nodes[id as usize].depth = depth;
    }

    /// Adds a block whose last use was at `moment`.
    pub fn push(&mut self, id: BlockId, moment: u64) {
        // Moments do not go back but in tests.
        let mut before = self.last;
        while before != NONE && self.nodes[before as usize].last_use > moment {
            before = self.nodes[before as usize].before;
        }
        let after = if before == NONE { self.first } else { self.nodes[before as usize].after };
        let node = &mut self.nodes[id as usize];
        (node.last_use, node.before, node.after) = (moment, before, after);
        self.link(before, id);
        self.link(id, after);
        self.len += 1;
        if self.ordered == Some(moment) {
            self.ordered = None;
        }
    }

    /// Takes a block out that is in it.
    pub fn remove(&mut self, id: BlockId) {
        let Node { before, after, .. } = self.nodes[id as usize];
        self.link(before, after);
        self.len -= 1;
    }

    /// Takes the next one out.
    pub fn pop(&mut self) -> Option<BlockId> {
        if self.first == NONE {
            return None;
        }
        let moment = self.nodes[self.first as usize].last_use;
        if self.ordered != Some(moment) {
            self.order(moment);
        }
        let id = self.first;
        self.remove(id);
        Some(id)
    }

    /// Every block with its last use, those of one moment in no order.
    pub fn iter(&self) -> impl Iterator<Item = (BlockId, u64)> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            let item = (at, node.last_use);
            at = node.after;
            Some(item)
        })
    }

    fn link(&mut self, before: BlockId, after: BlockId) {
        match self.nodes.get_mut(before as usize) {
            Some(node) => node.after = after,
            None => self.first = after,
        }
        match self.nodes.get_mut(after as usize) {
            Some(node) => node.before = before,
            None => self.last = before,
        }
    }

    /// Puts the first blocks, all of which were last used at `moment`, in order.
    fn order(&mut self, moment: u64) {
        self.ordered = Some(moment);
        let nodes = &self.nodes;
        let key = |id: &BlockId| (Reverse(nodes[*id as usize].depth), *id);
        let mut group = core::mem::take(&mut self.scratch);
        group.clear();
        let mut after = self.first;
        while let Some(node) = nodes.get(after as usize).filter(|node| node.last_use == moment) {
            group.push(after);
            after = node.after;
        }
        if !group.is_sorted_by_key(key) {
            group.sort_unstable_by_key(key);
            let mut before = NONE;
            for &id in &group {
                self.link(before, id);
                before = id;
            }
            self.link(before, after);
        }
        self.scratch = group;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Against a sorted set, over a long random life.
    #[test]
    fn the_order_is_that_of_a_sorted_set() {
        let mut state = 7u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let (mut queue, mut set) = (Queue::new(40), BTreeSet::new());
        let mut inside: Vec<Option<(u64, Reverse<u32>, BlockId)>> = vec![None; 40];
        for at in 0..20_000u64 {
            let id = draw(40) as BlockId;
            match (draw(3), inside[id as usize]) {
                (0, _) => {
                    let expected: Option<(_, _, BlockId)> = set.pop_first();
                    assert_eq!(queue.pop(), expected.map(|(_, _, id)| id));
                    if let Some((_, _, id)) = expected {
                        inside[id as usize] = None;
                    }
                }
                (_, Some(key)) => {
                    queue.remove(id);
                    set.remove(&key);
                    inside[id as usize] = None;
                }
                (_, None) => {
                    let key = (at / 9, Reverse(draw(4) as u32), id);
                    queue.set_depth(id, key.1.0);
                    queue.push(id, key.0);
                    set.insert(key);
                    inside[id as usize] = Some(key);
                }
            }
            assert_eq!(queue.len(), set.len());
        }
    }
}
