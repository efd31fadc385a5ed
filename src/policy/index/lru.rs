//! Which of some keys were used least recently: capped by number, by age or both.
//!
//! Every use is put at the end of a queue, and what stands there for a key that was used again since is
//! skipped when its turn comes. The queue is gone through once where it has grown to twice the keys.

use std::collections::VecDeque;

use hashbrown::HashTable;

/// Keys in the order of their last use.
#[derive(Clone, Debug, Default)]
pub struct Lru {
    /// Key, and when it was used, as a number that only grows.
    uses: VecDeque<(u64, u64, u64)>,
    /// The latest use of each key.
    latest: HashTable<(u64, u64)>,
    count: u64,
}

/// Keys are hashes already; their upper half tells them apart in a table.
fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Lru {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.latest.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.latest.is_empty()
    }

    /// A key is used at a time.
    pub fn touch(&mut self, key: u64, now: u64) {
        self.count += 1;
        let count = self.count;
        match self.latest.find_mut(spread(key), |own| own.0 == key) {
            Some(own) => own.1 = count,
            None => {
                self.latest.insert_unique(spread(key), (key, count), |own| spread(own.0));
            }
        }
        self.uses.push_back((key, count, now));
        if self.uses.len() > 64 && self.uses.len() > 2 * self.latest.len() {
            let latest = &self.latest;
            self.uses.retain(|&(key, count, _)| is_latest(latest, key, count));
        }
    }

    /// Takes out the key that was used least recently, if there are more than `cap` or it was used before
    /// `since`.
    pub fn pop(&mut self, cap: usize, since: u64) -> Option<u64> {
        loop {
            let &(key, count, at) = self.uses.front()?;
            let stands = is_latest(&self.latest, key, count);
            if stands && self.latest.len() <= cap && at >= since {
                return None;
            }
            self.uses.pop_front();
            if stands {
                let found = self.latest.find_entry(spread(key), |own| own.0 == key);
                found.expect("it was just found").remove();
                return Some(key);
            }
        }
    }
}

fn is_latest(latest: &HashTable<(u64, u64)>, key: u64, count: u64) -> bool {
    latest.find(spread(key), |own| own.0 == key).is_some_and(|own| own.1 == count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_goes_first_by_number_and_by_age() {
        let mut lru = Lru::default();
        for (key, now) in [(1, 10), (2, 20), (3, 30), (1, 40)] {
            lru.touch(key, now);
        }
        assert_eq!(lru.pop(3, 0), None);
        assert_eq!(lru.pop(2, 0), Some(2));
        assert_eq!(lru.pop(9, 35), Some(3));
        assert_eq!((lru.pop(9, 35), lru.len()), (None, 1));
        for now in 0..1000 {
            lru.touch(1, now);
        }
        assert!(lru.uses.len() < 200, "{}", lru.uses.len());
    }
}
