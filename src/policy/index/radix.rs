//! A radix tree of the prompts that were sent, with whom they were sent to: what SMG, SGLang, Ray, AIBrix's
//! Preble variant and Preble itself keep.
//!
//! Edges are pieces of a store of items that only grows, so that a split moves nothing; a node knows one
//! of its children itself, the others are in one table for the whole tree. With a page of `n`, edges part
//! only at multiples of `n` items (a KV page of the engines); with 1 anywhere (a tree of characters).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hashbrown::HashTable;

use crate::trace::Token;

const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// Items that a segment of the store holds, unless one edge has more.
const SEGMENT: usize = 1 << 15;

#[derive(Clone, Copy, Debug)]
struct Holder {
    replica: u32,
    /// Its last use here.
    at: u64,
}

#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    segment: u32,
    offset: u32,
    len: u32,
    /// One of its children.
    child: u32,
    /// How many others it has.
    others: u32,
    /// Whoever holds it, by number: the first, unless there is none, and the others.
    first: Holder,
    more: Vec<Holder>,
}

/// How far a prompt is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The deepest node that has some of it; the root where nothing is.
    pub node: u32,
    /// Items that match.
    pub items: usize,
    /// Of those, items of the node itself.
    within: u32,
}

/// The tree.
#[derive(Clone, Debug)]
pub struct RadixIndex {
    page: usize,
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    table: HashTable<u32>,
    segments: Vec<Vec<Token>>,
    /// Items in edges, and in the store.
    live: usize,
    stored: usize,
    /// Items that each replica holds.
    sizes: Vec<u64>,
}

/// Puts items at the end of a store: into which segment, and where in it.
fn append(segments: &mut Vec<Vec<Token>>, items: &[Token]) -> (u32, u32) {
    let last = segments.last().expect("there is always a segment");
    if last.capacity() - last.len() < items.len() {
        segments.push(Vec::with_capacity(SEGMENT.max(items.len())));
    }
    let segment = segments.len() - 1;
    let offset = segments[segment].len() as u32;
    segments[segment].extend_from_slice(items);
    (segment as u32, offset)
}

impl RadixIndex {
    /// An empty tree with pages of so many items.
    pub fn new(page: usize) -> RadixIndex {
        RadixIndex {
            page: page.max(1),
            nodes: vec![Node::EMPTY],
            vacant: Vec::new(),
            table: HashTable::new(),
            segments: vec![Vec::new()],
            live: 0,
            stored: 0,
            sizes: Vec::new(),
        }
    }

    /// Items in all, each counted once.
    pub fn items(&self) -> usize {
        self.live
    }

    /// Items that a replica holds.
    pub fn size_of(&self, replica: u32) -> u64 {
        self.sizes.get(replica as usize).copied().unwrap_or(0)
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        let segments: usize = self.segments.iter().map(|segment| 4 * segment.capacity()).sum();
        let more: usize = self.nodes.iter().map(|node| node.more.capacity() * size_of::<Holder>()).sum();
        segments + more + self.nodes.capacity() * size_of::<Node>() + self.table.capacity() * 5
    }

    /// Nodes that there have been at once, the root included: their numbers are below.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    /// The node before one; `None` for the root.
    pub fn parent(&self, node: u32) -> Option<u32> {
        Some(self.nodes[node as usize].parent).filter(|&parent| parent != NONE)
    }

    /// Items of a node's own edge.
    pub fn edge_len(&self, node: u32) -> usize {
        self.nodes[node as usize].len as usize
    }

    /// Whoever holds a node, by number.
    pub fn holders(&self, node: u32) -> impl Iterator<Item = u32> + '_ {
        self.nodes[node as usize].holders().map(|holder| holder.replica)
    }

    /// Whether a replica holds a node.
    pub fn holds(&self, node: u32, replica: u32) -> bool {
        let node = &self.nodes[node as usize];
        node.first.replica == replica || node.more.binary_search_by_key(&replica, |h| h.replica).is_ok()
    }

    fn edge(&self, node: &Node) -> &[Token] {
        &self.segments[node.segment as usize][node.offset as usize..][..node.len as usize]
    }

    /// The child that goes on as `rest` does, for a page at least, and for how many items.
    #[inline]
    fn child(&self, parent: u32, rest: &[Token]) -> Option<(u32, usize)> {
        if rest.len() < self.page {
            return None;
        }
        let node = &self.nodes[parent as usize];
        if node.child != NONE {
            let common = common(self.edge(&self.nodes[node.child as usize]), rest);
            if common >= self.page {
                return Some((node.child, common));
            }
        }
        if node.others == 0 {
            return None;
        }
        let first = &rest[..self.page];
        let is = |&id: &u32| {
            let node = &self.nodes[id as usize];
            node.parent == parent && self.edge(node)[..self.page] == *first
        };
        let id = *self.table.find(hash(parent, first), is)?;
        Some((id, common(self.edge(&self.nodes[id as usize]), rest)))
    }

    /// How far a prompt is known, and where that ends.
    pub fn find(&self, items: &[Token]) -> Match {
        let mut found = Match { node: ROOT, items: 0, within: 0 };
        while let Some((child, common)) = self.child(found.node, &items[found.items..]) {
            let common = common - common % self.page;
            found = Match { node: child, items: found.items + common, within: common as u32 };
            if found.within < self.nodes[child as usize].len {
                break;
            }
        }
        found
    }

    /// What is left of a match if only some replicas count: up to the deepest node that one of them holds.
    pub fn among(&self, mut found: Match, wanted: impl Fn(u32) -> bool) -> Match {
        while found.node != ROOT && !self.holders(found.node).any(&wanted) {
            let parent = self.nodes[found.node as usize].parent;
            let within = self.nodes[parent as usize].len;
            found = Match { node: parent, items: found.items - found.within as usize, within };
        }
        found
    }

    /// Nobody holds a node any longer, though it stays.
    pub fn disown(&mut self, id: u32) {
        let node = &mut self.nodes[id as usize];
        let len = u64::from(node.len);
        for holder in core::iter::once(node.first).chain(core::mem::take(&mut node.more)) {
            if holder.replica != NONE {
                self.sizes[holder.replica as usize] -= len;
            }
        }
        node.first = Node::EMPTY.first;
    }

    /// A node and all that follows it are one replica's alone.
    pub fn hand_over(&mut self, node: u32, replica: u32, at: u64) {
        let is_below = |tree: &RadixIndex, mut id: u32| loop {
            match tree.nodes[id as usize].parent {
                _ if id == node => break true,
                NONE => break false,
                parent => id = parent,
            }
        };
        for id in 1..self.nodes.len() as u32 {
            if self.nodes[id as usize].len > 0 && is_below(self, id) {
                self.disown(id);
                self.hold(id, replica, at);
            }
        }
    }

    /// A prompt, known as far as `found` says, was sent to a replica; the node where it ends is returned.
    /// What is no whole page at its end is left out.
    pub fn insert(&mut self, found: Match, items: &[Token], replica: u32, at: u64) -> u32 {
        let end = items.len() - items.len() % self.page;
        let mut node = found.node;
        if found.within < self.nodes[node as usize].len {
            node = self.split(node, found.within);
        }
        if found.items < end {
            node = self.grow(node, &items[found.items..end]);
        }
        self.share(node, replica, at);
        node
    }

    /// Everything that leads to a node is a replica's too.
    pub fn share(&mut self, node: u32, replica: u32, at: u64) {
        let mut on = node;
        while on != NONE {
            self.hold(on, replica, at);
            on = self.nodes[on as usize].parent;
        }
    }

    fn hold(&mut self, id: u32, replica: u32, at: u64) {
        let node = &mut self.nodes[id as usize];
        let new = Holder { replica, at };
        if node.first.replica == replica {
            node.first.at = at;
            return;
        }
        if node.first.replica == NONE {
            node.first = new;
        } else if replica < node.first.replica {
            let second = core::mem::replace(&mut node.first, new);
            node.more.insert(0, second);
        } else {
            match node.more.binary_search_by_key(&replica, |holder| holder.replica) {
                Ok(place) => {
                    node.more[place].at = at;
                    return;
                }
                Err(place) => node.more.insert(place, new),
            }
        }
        let (replica, len) = (replica as usize, u64::from(node.len));
        self.sizes.resize(self.sizes.len().max(replica + 1), 0);
        self.sizes[replica] += len;
    }

    /// Cuts a node's edge in two; the node keeps the rest of it, and what is new comes before.
    fn split(&mut self, id: u32, at: u32) -> u32 {
        let Node { parent, segment, offset, first, .. } = self.nodes[id as usize];
        let more = self.nodes[id as usize].more.clone();
        let upper = Node { parent, segment, offset, len: at, child: id, others: 0, first, more };
        self.unlink(id);
        let new = self.place(upper);
        let lower = &mut self.nodes[id as usize];
        lower.parent = new;
        lower.offset += at;
        lower.len -= at;
        self.link(new);
        new
    }

    /// Puts items below a node.
    fn grow(&mut self, parent: u32, items: &[Token]) -> u32 {
        let (segment, offset) = append(&mut self.segments, items);
        self.stored += items.len();
        self.live += items.len();
        let len = items.len() as u32;
        let new = self.place(Node { parent, segment, offset, len, ..Node::EMPTY });
        self.link(new);
        new
    }

    fn place(&mut self, node: Node) -> u32 {
        match self.vacant.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        }
    }

    /// Makes a node its parent's child.
    fn link(&mut self, id: u32) {
        let parent = self.nodes[id as usize].parent;
        let before = &mut self.nodes[parent as usize];
        if before.child == NONE {
            before.child = id;
            return;
        }
        before.others += 1;
        let (nodes, segments, page) = (&self.nodes, &self.segments, self.page);
        let hash_of = |&id: &u32| {
            let node = &nodes[id as usize];
            hash(node.parent, &segments[node.segment as usize][node.offset as usize..][..page])
        };
        self.table.insert_unique(hash_of(&id), id, hash_of);
    }

    fn unlink(&mut self, id: u32) {
        let node = &self.nodes[id as usize];
        let parent = node.parent as usize;
        if self.nodes[parent].child == id {
            self.nodes[parent].child = NONE;
            return;
        }
        let key = hash(node.parent, &self.edge(node)[..self.page]);
        let found = self.table.find_entry(key, |&other| other == id);
        found.expect("what its parent does not know is in the table").remove();
        self.nodes[parent].others -= 1;
    }

    /// Takes from a replica what it used least recently, from the leaves on, until it holds at most
    /// `most` items.
    pub fn evict(&mut self, replica: u32, most: u64) {
        if self.size_of(replica) <= most {
            return;
        }
        // How many children of each node the replica holds.
        let mut below = vec![0u32; self.nodes.len()];
        let held: Vec<u32> = (1..self.nodes.len() as u32).filter(|&id| self.holds(id, replica)).collect();
        held.iter().for_each(|&id| below[self.nodes[id as usize].parent as usize] += 1);
        let last = |tree: &RadixIndex, id: u32| {
            let mut holders = tree.nodes[id as usize].holders();
            holders.find(|holder| holder.replica == replica).map_or(0, |holder| holder.at)
        };
        let leaves = held.iter().filter(|&&id| below[id as usize] == 0);
        let mut leaves: BinaryHeap<_> = leaves.map(|&id| Reverse((last(self, id), id))).collect();
        while self.size_of(replica) > most {
            let Some(Reverse((_, id))) = leaves.pop() else { break };
            let parent = self.nodes[id as usize].parent;
            self.release(id, replica);
            below[parent as usize] -= 1;
            if parent != ROOT && below[parent as usize] == 0 {
                leaves.push(Reverse((last(self, parent), parent)));
            }
        }
        if self.stored > 2 * self.live + SEGMENT {
            self.compact();
        }
    }

    /// A replica holds a node no longer; nobody's node goes.
    fn release(&mut self, id: u32, replica: u32) {
        let node = &mut self.nodes[id as usize];
        if node.first.replica == replica {
            node.first = if node.more.is_empty() { Node::EMPTY.first } else { node.more.remove(0) };
        } else if let Ok(place) = node.more.binary_search_by_key(&replica, |holder| holder.replica) {
            node.more.remove(place);
        }
        let len = node.len;
        self.sizes[replica as usize] -= u64::from(len);
        if node.first.replica == NONE && node.child == NONE && node.others == 0 {
            self.unlink(id);
            self.live -= len as usize;
            self.nodes[id as usize] = Node::EMPTY;
            self.vacant.push(id);
        }
    }

    /// Writes the store anew without what is of no node.
    fn compact(&mut self) {
        let mut segments = vec![Vec::with_capacity(SEGMENT)];
        for at in 1..self.nodes.len() {
            let node = &self.nodes[at];
            if node.len == 0 {
                continue;
            }
            let (segment, offset) = append(&mut segments, self.edge(node));
            (self.nodes[at].segment, self.nodes[at].offset) = (segment, offset);
        }
        (self.segments, self.stored) = (segments, self.live);
    }
}

impl Node {
    const EMPTY: Node = Node {
        parent: NONE,
        segment: 0,
        offset: 0,
        len: 0,
        child: NONE,
        others: 0,
        first: Holder { replica: NONE, at: 0 },
        more: Vec::new(),
    };

    fn holders(&self) -> impl Iterator<Item = &Holder> {
        let first = (self.first.replica != NONE).then_some(&self.first);
        first.into_iter().chain(&self.more)
    }
}

/// Items that two begin with alike.
#[inline]
fn common(a: &[Token], b: &[Token]) -> usize {
    let most = a.len().min(b.len());
    let (a, b) = (&a[..most], &b[..most]);
    let (left, _) = a.as_chunks::<16>();
    let (right, _) = b.as_chunks::<16>();
    let mut at = 0;
    for (left, right) in left.iter().zip(right) {
        if left != right {
            break;
        }
        at += 16;
    }
    while at < most && a[at] == b[at] {
        at += 1;
    }
    at
}

/// Where a child with this first page is in the table.
fn hash(parent: u32, first: &[Token]) -> u64 {
    super::chained(u64::from(parent), first)
}

#[cfg(test)]
#[path = "radix_tests.rs"]
mod tests;
