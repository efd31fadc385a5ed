//! Which replicas were sent which blocks. A block is known by the hash of itself and of all that leads to
//! it, so that a prompt's holders are found by going through its hashes once.
//!
//! Most blocks have one holder, whose number then stands in the entry itself; those with more have a row
//! of bits. Sixteen bytes an entry, and a row where it is needed.

use hashbrown::HashTable;

use crate::trace::Token;

/// The hash before a prompt's first block.
const START: u64 = 0x243F_6A88_85A3_08D3;
const K: u64 = 0x9E37_79B9_7F4A_7C15;

/// The hash of a block, from that of all before it. Four lanes, so that a block of sixteen tokens takes
/// four multiplications one after the other instead of sixteen.
#[inline]
pub fn chained(before: u64, block: &[Token]) -> u64 {
    let mut lanes = [before ^ K, before.rotate_left(16), before.rotate_left(32) ^ K, before.rotate_left(48)];
    let mut eights = block.chunks_exact(8);
    for eight in &mut eights {
        for (lane, pair) in lanes.iter_mut().zip(eight.chunks_exact(2)) {
            let pair = u64::from(pair[0]) | u64::from(pair[1]) << 32;
            *lane = (lane.rotate_left(29) ^ pair).wrapping_mul(K);
        }
    }
    for (at, &item) in eights.remainder().iter().enumerate() {
        let lane = &mut lanes[at % 4];
        *lane = (lane.rotate_left(29) ^ u64::from(item) ^ (1 << 40)).wrapping_mul(K);
    }
    let [a, b, c, d] = lanes;
    let hash = (a ^ b.rotate_left(17)).wrapping_mul(K) ^ (c ^ d.rotate_left(31)).wrapping_mul(START | 1);
    (hash ^ (hash >> 29)).wrapping_mul(K) ^ block.len() as u64
}

/// The hashes of a prompt's blocks of `size` items, the last one shorter where `partial` has it counted.
pub fn chain(items: &[Token], size: usize, partial: bool, out: &mut Vec<u64>) {
    out.clear();
    let mut hash = START;
    let whole = items.chunks_exact(size.max(1));
    let rest = whole.remainder();
    for block in whole {
        hash = chained(hash, block);
        out.push(hash);
    }
    if partial && !rest.is_empty() {
        out.push(chained(hash, rest));
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    /// A replica, or with [`MANY`] a row of bits.
    holders: u32,
}

const MANY: u32 = 1 << 31;

/// The blocks and who holds them.
#[derive(Clone, Debug, Default)]
pub struct BlockIndex {
    table: HashTable<Entry>,
    /// Words of a row.
    words: usize,
    rows: Vec<u64>,
    /// Rows that are of no block.
    free: Vec<u32>,
    /// Who has had every block so far; kept so that a look-up does not allocate.
    alive: Vec<u64>,
}

impl BlockIndex {
    /// How many blocks it knows.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether it knows none.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.table.capacity() * (size_of::<Entry>() + 1) + 8 * self.rows.capacity() + 4 * self.free.capacity()
    }

    /// Makes room in its rows for so many replicas.
    fn widen(&mut self, replicas: usize) {
        let words = replicas.div_ceil(64).max(1);
        if words <= self.words {
            return;
        }
        if self.words > 0 {
            let rows = self.rows.chunks_exact(self.words);
            let wider =
                rows.flat_map(|row| row.iter().copied().chain(core::iter::repeat_n(0, words - row.len())));
            self.rows = wider.collect();
        }
        self.words = words;
    }

    /// A replica has a block.
    pub fn add(&mut self, hash: u64, replica: u32) {
        self.widen(replica as usize + 1);
        let Some(entry) = self.table.find_mut(hash, |entry| entry.hash == hash) else {
            self.table.insert_unique(hash, Entry { hash, holders: replica }, |entry| entry.hash);
            return;
        };
        if entry.holders == replica {
            return;
        }
        let words = self.words;
        if entry.holders & MANY == 0 {
            let row = match self.free.pop() {
                Some(row) => row,
                None => {
                    self.rows.resize(self.rows.len() + words, 0);
                    (self.rows.len() / words - 1) as u32
                }
            };
            let first = entry.holders as usize;
            self.rows[row as usize * words + first / 64] |= 1 << (first % 64);
            entry.holders = row | MANY;
        }
        let row = (entry.holders & !MANY) as usize * words;
        self.rows[row + replica as usize / 64] |= 1 << (replica % 64);
    }

    /// A replica has a block no longer.
    pub fn remove(&mut self, hash: u64, replica: u32) {
        let Ok(mut found) = self.table.find_entry(hash, |entry| entry.hash == hash) else { return };
        let holders = found.get().holders;
        if holders & MANY == 0 {
            if holders == replica {
                found.remove();
            }
            return;
        }
        let row = (holders & !MANY) as usize * self.words;
        let row = &mut self.rows[row..row + self.words];
        row[replica as usize / 64] &= !(1 << (replica % 64));
        if row.iter().map(|word| word.count_ones()).sum::<u32>() == 1 {
            let word = row.iter().position(|&word| word != 0).expect("one bit is set");
            found.get_mut().holders = (64 * word) as u32 + row[word].trailing_zeros();
            row.fill(0);
            self.free.push(holders & !MANY);
        }
    }

    /// Nobody has a block any longer.
    pub fn forget(&mut self, hash: u64) {
        if let Ok(found) = self.table.find_entry(hash, |entry| entry.hash == hash) {
            let (entry, _) = found.remove();
            if entry.holders & MANY != 0 {
                let row = entry.holders & !MANY;
                let at = row as usize * self.words;
                self.rows[at..at + self.words].fill(0);
                self.free.push(row);
            }
        }
    }

    /// How many leading blocks of these each replica holds, into `out`.
    pub fn leading(&mut self, hashes: &[u64], out: &mut [u32]) {
        out.fill(0);
        self.widen(out.len());
        let words = self.words;
        self.alive.clear();
        self.alive.resize(words, 0);
        let (whole, rest) = (out.len() / 64, out.len() % 64);
        self.alive[..whole].fill(u64::MAX);
        if rest > 0 {
            self.alive[whole] = (1 << rest) - 1;
        }
        for (at, &hash) in hashes.iter().enumerate() {
            let Some(entry) = self.table.find(hash, |entry| entry.hash == hash) else {
                return self.settle(at, out);
            };
            if entry.holders & MANY == 0 {
                let replica = entry.holders as usize;
                let held = replica < out.len() && self.alive[replica / 64] & (1 << (replica % 64)) != 0;
                if held {
                    self.alive[replica / 64] &= !(1 << (replica % 64));
                }
                self.settle(at, out);
                self.alive.fill(0);
                if !held {
                    return;
                }
                self.alive[replica / 64] = 1 << (replica % 64);
                continue;
            }
            let row = (entry.holders & !MANY) as usize * words;
            let mut left = 0;
            for (word, (alive, row)) in self.alive.iter_mut().zip(&self.rows[row..row + words]).enumerate() {
                let mut gone = *alive & !row;
                *alive &= row;
                left |= *alive;
                while gone != 0 {
                    out[64 * word + gone.trailing_zeros() as usize] = at as u32;
                    gone &= gone - 1;
                }
            }
            if left == 0 {
                return;
            }
        }
        self.settle(hashes.len(), out);
    }

    /// Whoever has had every block until now has so many.
    fn settle(&self, blocks: usize, out: &mut [u32]) {
        for (word, &alive) in self.alive.iter().enumerate() {
            let mut alive = alive;
            while alive != 0 {
                out[64 * word + alive.trailing_zeros() as usize] = blocks as u32;
                alive &= alive - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn hashes(items: &[Token], size: usize, partial: bool) -> Vec<u64> {
        let mut out = Vec::new();
        chain(items, size, partial, &mut out);
        out
    }

    #[test]
    fn a_hash_is_of_everything_before_and_of_a_length() {
        let a = hashes(&[1, 2, 3, 4, 5], 2, false);
        assert_eq!(a, hashes(&[1, 2, 3, 4, 9], 2, false));
        assert_eq!((a.len(), hashes(&[1, 2, 3, 4, 5], 2, true).len()), (2, 3));
        let b = hashes(&[9, 2, 3, 4], 2, false);
        assert!(a[0] != b[0] && a[1] != b[1], "a shared middle is no shared prefix");
        assert_ne!(hashes(&[1], 2, true), hashes(&[1, 0], 2, true));
        let all: BTreeSet<u64> = (0..50_000).map(|n| chained(START, &[n, 0, 0, n >> 7])).collect();
        assert_eq!(all.len(), 50_000);
    }

    /// Against a map of sets, with fleets on both sides of a word of bits.
    #[test]
    fn leading_blocks_are_those_of_a_map_of_sets() {
        let mut state = 7u64;
        let mut draw = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        for replicas in [3usize, 64, 65, 130] {
            let mut index = BlockIndex::default();
            let mut slow: BTreeMap<u64, BTreeSet<u32>> = BTreeMap::new();
            for _ in 0..3000 {
                let prompt: Vec<Token> = (0..8).map(|at| (draw(2) * (at < 6) as u64) as Token).collect();
                let hashes = hashes(&prompt, 1, false);
                let replica = draw(replicas as u64) as u32;
                match draw(4) {
                    0 => {
                        let hash = hashes[draw(8) as usize];
                        index.remove(hash, replica);
                        if let Some(set) = slow.get_mut(&hash) {
                            set.remove(&replica);
                            if set.is_empty() {
                                slow.remove(&hash);
                            }
                        }
                    }
                    1 if draw(8) == 0 => {
                        index.forget(hashes[5]);
                        slow.remove(&hashes[5]);
                    }
                    _ => {
                        for &hash in &hashes[..1 + draw(8) as usize] {
                            index.add(hash, replica);
                            slow.entry(hash).or_default().insert(replica);
                        }
                    }
                }
                let mut out = vec![9; replicas];
                index.leading(&hashes, &mut out);
                for (replica, &found) in out.iter().enumerate() {
                    let holds = |hash| slow.get(hash).is_some_and(|set| set.contains(&(replica as u32)));
                    assert_eq!(found as usize, hashes.iter().take_while(|hash| holds(hash)).count());
                }
                assert_eq!(index.len(), slow.len());
            }
        }
    }
}
