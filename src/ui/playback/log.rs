//! What a worker told, in the order in which it came: chunks that are shared and never changed.

use std::rc::Rc;

use crate::sim::Event;

/// What was told: a copy of the page's state copies pointers only.
#[derive(Clone, Debug)]
pub struct Chunks<T> {
    /// Each with how many came before it.
    chunks: Vec<(usize, Rc<[T]>)>,
    len: usize,
}

/// A run's events.
pub type Log = Chunks<Event>;

impl<T> Default for Chunks<T> {
    fn default() -> Self {
        Chunks { chunks: Vec::new(), len: 0 }
    }
}

impl<T> Chunks<T> {
    /// Appends what was told.
    pub fn push(&mut self, told: Vec<T>) {
        if !told.is_empty() {
            let before = self.len;
            self.len += told.len();
            self.chunks.push((before, told.into()));
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing has been told yet.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The latest.
    pub fn last(&self) -> Option<&T> {
        self.chunks.last()?.1.last()
    }

    /// The one that so many came before.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.from(index).next()
    }

    /// All of them, in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.from(0)
    }

    /// Those that at least so many came before, in order.
    pub fn from(&self, index: usize) -> impl Iterator<Item = &T> {
        let first = self.chunks.partition_point(|(before, chunk)| before + chunk.len() <= index);
        let chunks = &self.chunks[first..];
        let skipped = index - chunks.first().map_or(index, |(before, _)| *before);
        chunks.iter().flat_map(|(_, chunk)| chunk.iter()).skip(skipped)
    }
}

impl Log {
    /// When the last of them happened.
    pub fn end(&self) -> u64 {
        self.last().map_or(0, |event| event.at)
    }

    /// How many of them happened before `at`.
    pub fn before(&self, at: u64) -> usize {
        let chunk = self.chunks.partition_point(|(_, chunk)| chunk.last().is_some_and(|last| last.at < at));
        let Some((before, chunk)) = self.chunks.get(chunk) else { return self.len };
        before + chunk.partition_point(|event| event.at < at)
    }

    /// How many of them had happened at `at`, those of that instant included.
    pub fn until(&self, at: u64) -> usize {
        at.checked_add(1).map_or(self.len, |next| self.before(next))
    }

    /// The first instant after `at` at which anything happened.
    pub fn next_instant(&self, at: u64) -> Option<u64> {
        self.get(self.until(at)).map(|event| event.at)
    }

    /// The last instant before `at` at which anything happened.
    pub fn instant_before(&self, at: u64) -> Option<u64> {
        self.get(self.before(at).checked_sub(1)?).map(|event| event.at)
    }

    /// What happened at one instant.
    pub fn instant(&self, at: u64) -> impl Iterator<Item = &Event> {
        self.from(self.before(at)).take_while(move |event| event.at == at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::StepEnd;
    use crate::sim::What;

    fn event(at: u64, replica: u32) -> Event {
        let end = StepEnd { replica, emitted: Vec::new() };
        Event { at, what: What::StepEnded { end, blocks: Vec::new() } }
    }

    #[test]
    fn an_instant_is_found_also_where_it_is_told_in_two_parts() {
        let mut log = Log::default();
        assert_eq!((log.until(5), log.next_instant(0), log.instant_before(9)), (0, None, None));
        log.push(vec![event(0, 0), event(3, 1), event(7, 2)]);
        log.push(Vec::new());
        log.push(vec![event(7, 3), event(9, 4)]);
        assert_eq!([0, 2, 3, 7, 8, 9, 20].map(|at| log.until(at)), [1, 1, 2, 4, 4, 5, 5]);
        assert_eq!([0, 3, 7, 8, 9, 20].map(|at| log.before(at)), [0, 1, 2, 4, 4, 5]);
        assert_eq!([0, 3, 7, 9].map(|at| log.next_instant(at)), [Some(3), Some(7), Some(9), None]);
        assert_eq!(
            [0, 1, 7, 8, 20].map(|at| log.instant_before(at)),
            [None, Some(0), Some(3), Some(7), Some(9)]
        );
        assert_eq!((log.instant(7).count(), log.instant(8).count(), log.until(u64::MAX)), (2, 0, 5));
        assert_eq!((log.from(3).count(), log.from(5).count(), log.from(9).count()), (2, 0, 0));
    }
}
