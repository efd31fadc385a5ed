//! A stream of entries in order of time, as bytes, with checkpoints of the state that they lead to.
//!
//! An entry is a byte that says what it is, then the picoseconds since the entry before, then the rest.
//! The first byte's highest bit says that no time has passed; then the picoseconds are left out.
//!
//! A checkpoint is a copy of the state, taken whenever as many bytes have been written since the last one
//! as a copy takes, and no fewer than [`LEAST`]. So all checkpoints together are no larger than the
//! entries, and a state is found by copying one and reading no more bytes than it has, or than [`LEAST`].

use super::varint::{Reader, put};

/// The fewest bytes from one checkpoint to the next.
pub(super) const LEAST: usize = 4096;

/// The highest bit of an entry's first byte.
const SAME_INSTANT: u8 = 0x80;

/// A state that entries lead to, one after the other.
pub(super) trait Fold: Clone {
    /// What changes it.
    type Entry;

    /// Writes an entry as this state's next: a byte below 128 that says what it is, then the rest.
    fn write(&self, entry: &Self::Entry, out: &mut Vec<u8>);

    /// Reads one whose first byte was `head`; `None`: nothing like it was ever written.
    fn read(&self, head: u8, from: &mut Reader<'_>) -> Option<Self::Entry>;

    /// Takes it in; `None`: in this state it cannot be.
    fn apply(&mut self, at: u64, entry: &Self::Entry) -> Option<()>;

    /// About how many bytes a copy takes.
    fn size(&self) -> usize;
}

#[derive(Clone, Debug)]
struct Checkpoint<S> {
    /// The time of the latest entry in it.
    at: u64,
    /// The first byte that is not.
    offset: usize,
    state: S,
}

/// Entries as bytes, and what they lead to.
#[derive(Clone, Debug)]
pub(super) struct Stream<S> {
    bytes: Vec<u8>,
    /// The first one is before all entries.
    checkpoints: Vec<Checkpoint<S>>,
    /// Time and state after the last entry.
    at: u64,
    state: S,
    /// The entry that is being written.
    scratch: Vec<u8>,
}

impl<S: Fold> Stream<S> {
    /// No entries, before which there is this state.
    pub fn new(state: S) -> Stream<S> {
        let first = Checkpoint { at: 0, offset: 0, state: state.clone() };
        Stream { bytes: Vec::new(), checkpoints: vec![first], at: 0, state, scratch: Vec::new() }
    }

    /// Entries that were written before, read from the first to the last: `None` if they are not such as
    /// could have been.
    pub fn from_bytes(bytes: Vec<u8>, state: S) -> Option<Stream<S>> {
        let mut stream = Stream::new(state);
        let mut reader = Reader::new(&bytes, 0);
        while !reader.is_done() {
            let (at, head) = time(&mut reader, stream.at)?;
            let entry = stream.state.read(head, &mut reader)?;
            stream.take(at, &entry, reader.position())?;
        }
        stream.bytes = bytes;
        Some(stream)
    }

    /// Appends an entry.
    ///
    /// # Panics
    ///
    /// If it is earlier than the last one, or cannot follow on it.
    pub fn push(&mut self, at: u64, entry: &S::Entry) {
        self.scratch.clear();
        self.state.write(entry, &mut self.scratch);
        let (head, rest) = self.scratch.split_first().expect("an entry begins with what it is");
        let since = at.checked_sub(self.at).expect("entries come in order of time");
        if since == 0 {
            self.bytes.push(head | SAME_INSTANT);
        } else {
            self.bytes.push(*head);
            put(&mut self.bytes, since);
        }
        self.bytes.extend_from_slice(rest);
        let written = self.bytes.len();
        self.take(at, entry, written).expect("what a run does can be done");
    }

    fn take(&mut self, at: u64, entry: &S::Entry, offset: usize) -> Option<()> {
        self.state.apply(at, entry)?;
        self.at = at;
        let last = self.checkpoints.last().map_or(0, |checkpoint| checkpoint.offset);
        if offset - last >= LEAST && offset - last >= self.state.size() {
            self.checkpoints.push(Checkpoint { at, offset, state: self.state.clone() });
        }
        Some(())
    }

    /// The state after the last entry.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// The time of the last entry.
    pub fn end(&self) -> u64 {
        self.at
    }

    /// The entries as they are written.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Bytes that the checkpoints take.
    pub fn checkpoint_bytes(&self) -> usize {
        self.checkpoints.iter().map(|checkpoint| checkpoint.state.size()).sum()
    }

    /// The state after everything until `at`, and how many bytes of entries were read for it.
    pub fn seek(&self, at: u64) -> (S, usize) {
        if at >= self.at {
            return (self.state.clone(), 0);
        }
        // The first one is before everything.
        let mut cursor = self.from(self.checkpoints.partition_point(|c| c.at <= at) - 1);
        let start = cursor.reader.position();
        while cursor.next_until(at).is_some() {}
        (cursor.state, cursor.reader.position() - start)
    }

    /// Entries from the last checkpoint of which `before` holds, where it does of none that comes after.
    pub fn after(&self, before: impl Fn(&S) -> bool) -> Cursor<'_, S> {
        let index = self.checkpoints.partition_point(|checkpoint| before(&checkpoint.state));
        self.from(index.saturating_sub(1))
    }

    /// Entries from the first on.
    pub fn iter(&self) -> Cursor<'_, S> {
        self.from(0)
    }

    fn from(&self, checkpoint: usize) -> Cursor<'_, S> {
        let Checkpoint { at, offset, ref state } = self.checkpoints[checkpoint];
        Cursor { reader: Reader::new(&self.bytes, offset), at, state: state.clone() }
    }
}

/// Reads entries one after the other, with the state that they lead to.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a, S> {
    reader: Reader<'a>,
    at: u64,
    pub state: S,
}

impl<S: Fold> Cursor<'_, S> {
    /// The next entry that is no later than `limit`, and when.
    fn next_until(&mut self, limit: u64) -> Option<(u64, S::Entry)> {
        if self.reader.is_done() {
            return None;
        }
        let mut reader = self.reader.clone();
        let (at, head) = time(&mut reader, self.at).expect(CHECKED);
        if at > limit {
            return None;
        }
        let entry = self.state.read(head, &mut reader).expect(CHECKED);
        self.state.apply(at, &entry).expect(CHECKED);
        (self.reader, self.at) = (reader, at);
        Some((at, entry))
    }
}

impl<S: Fold> Iterator for Cursor<'_, S> {
    type Item = (u64, S::Entry);

    fn next(&mut self) -> Option<(u64, S::Entry)> {
        self.next_until(u64::MAX)
    }
}

const CHECKED: &str = "entries were taken in when they were written or read";

/// When the next entry is, and its first byte.
fn time(reader: &mut Reader<'_>, last: u64) -> Option<(u64, u8)> {
    let head = reader.byte()?;
    let since = if head & SAME_INSTANT == 0 { reader.number()? } else { 0 };
    Some((last.checked_add(since)?, head & !SAME_INSTANT))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds up what it is told; as large as it is told to be.
    #[derive(Clone, Debug, PartialEq)]
    struct Sum {
        sum: u64,
        size: usize,
    }

    impl Fold for Sum {
        type Entry = u64;

        fn write(&self, entry: &u64, out: &mut Vec<u8>) {
            out.push(7);
            put(out, *entry);
        }

        fn read(&self, head: u8, from: &mut Reader<'_>) -> Option<u64> {
            (head == 7).then(|| from.number())?
        }

        fn apply(&mut self, _at: u64, entry: &u64) -> Option<()> {
            self.sum = self.sum.checked_add(*entry)?;
            Some(())
        }

        fn size(&self) -> usize {
            self.size
        }
    }

    /// Entries 0, 1, 2, … at 0, 0, 0, 3, 3, 3, 6, …
    fn stream(entries: u64, size: usize) -> Stream<Sum> {
        let mut stream = Stream::new(Sum { sum: 0, size });
        (0..entries).for_each(|n| stream.push(n / 3 * 3, &n));
        stream
    }

    #[test]
    fn every_instant_is_found_with_little_reading() {
        for size in [0, 3 * LEAST] {
            let stream = stream(20_000, size);
            assert!(stream.checkpoint_bytes() <= stream.bytes().len() + size, "the first is of nothing");
            for at in (0..20_000u64).step_by(37).chain([19_997, 19_998, 19_999, u64::MAX]) {
                let (found, read) = stream.seek(at);
                let entries = (at.saturating_add(3) / 3 * 3).min(20_000);
                assert_eq!(found.sum, entries * (entries - 1) / 2, "at {at}");
                assert!(read <= size.max(LEAST) + 16, "{read} bytes");
            }
        }
    }

    #[test]
    fn what_was_written_is_read_and_garbage_is_not() {
        let stream = stream(5_000, 0);
        let bytes = stream.bytes().to_vec();
        let copy = Stream::from_bytes(bytes.clone(), Sum { sum: 0, size: 0 }).expect("it was written");
        assert_eq!(copy.state(), stream.state());
        assert_eq!(copy.checkpoints.len(), stream.checkpoints.len());
        assert!(copy.iter().eq(stream.iter()));
        for (garbage, why) in [
            (&bytes[..bytes.len() - 1], "it ends too soon"),
            (&[0x86, 1][..], "no such entry"),
            (&[7, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0x87, 1][..], "it overflows"),
        ] {
            assert!(Stream::from_bytes(garbage.to_vec(), Sum { sum: 0, size: 0 }).is_none(), "{why}");
        }
    }

    #[test]
    fn entries_follow_a_checkpoint_that_is_looked_for() {
        let stream = stream(20_000, 0);
        let mut cursor = stream.after(|state| state.sum <= 1_000_000);
        assert!(cursor.state.sum > 0, "it does not begin at the beginning");
        assert!(cursor.find(|(_, n)| n * (n + 1) / 2 > 1_000_000).is_some());
        assert_eq!(cursor.state.sum, 1414 * 1415 / 2, "the state is the one after it");
    }
}
