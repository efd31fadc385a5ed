//! Small ids for blocks, by what they hold and all that is before them.
//!
//! What a block holds is told by a chained hash of 128 bits: two different beginnings among a billion meet with a
//! probability below 10⁻¹⁹. No text is kept.

use hashbrown::HashTable;

use crate::trace::{BlockIds, Prompt};

/// A running hash of everything up to a place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chain(u64, u64);

fn mix(mut x: u64) -> u64 {
    // splitmix64's finaliser (Steele, Lea, Flood 2014).
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl Chain {
    /// What comes after a word.
    pub fn then(self, word: u64) -> Chain {
        Chain(
            mix(self.0 ^ word).wrapping_add(0x9e37_79b9_7f4a_7c15),
            mix(self.1.rotate_left(23).wrapping_add(word) ^ 0xd1b5_4a32_d192_ed03),
        )
    }

    /// Half of its bits.
    pub fn low(self) -> u64 {
        self.0
    }

    /// What comes after bytes.
    pub fn then_bytes(self, bytes: &[u8]) -> Chain {
        let word = |part: &[u8]| part.iter().rev().fold(0u64, |word, &b| word << 8 | u64::from(b));
        bytes.chunks(8).fold(self.then(bytes.len() as u64), |chain, part| chain.then(word(part)))
    }
}

/// Ids from 0 on, in the order in which blocks are first seen.
#[derive(Default)]
pub struct Interner {
    table: HashTable<(Chain, u32)>,
}

impl Interner {
    /// The id of a chain; `None`: there are 2³² already.
    pub fn id(&mut self, chain: Chain) -> Option<u32> {
        let new = u32::try_from(self.table.len()).ok()?;
        let entry = self.table.entry(chain.0, |(own, _)| *own == chain, |(own, _)| own.0);
        Some(entry.or_insert((chain, new)).get().1)
    }

    /// A prompt of a text, so many of whose bytes are a token, told by its whole blocks; `None`: there are 2³² already.
    pub fn prompt(&mut self, text: &str, block: u32, bytes_per_token: u32) -> Option<Prompt> {
        let per_block = block as usize * bytes_per_token as usize;
        let mut chain = Chain::default();
        let mut ids = Vec::with_capacity(text.len() / per_block);
        for part in text.as_bytes().chunks_exact(per_block) {
            chain = chain.then_bytes(part);
            ids.push(self.id(chain)?);
        }
        // A line is at most 64 MiB.
        let tokens = text.len().div_ceil(bytes_per_token as usize) as u32;
        Some(Prompt::Blocks(BlockIds { tokens, block, ids: ids.into() }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_of_what_is_before_too() {
        let mut ids = Interner::default();
        let (a, b) = (Chain::default().then_bytes(b"abc"), Chain::default().then_bytes(b"abd"));
        assert_eq!((ids.id(a), ids.id(b), ids.id(a)), (Some(0), Some(1), Some(0)));
        assert_eq!(ids.id(a.then_bytes(b"abd")), Some(2));
        assert_ne!(Chain::default().then_bytes(b"a\0"), Chain::default().then_bytes(b"a"));
        assert_eq!(ids.len(), 3);
    }
}
