//! How an entry of a replica is written.
//!
//! The low four bits of an entry's first byte are its kind; three bits above them make common cases
//! short. A request is named by its place, not its number: in the queue from its head, in the batch from
//! the newest (who finishes: from the oldest). `AT_0`: that place is 0, and is left out.
//!
//! | kind | entry | after the first byte and the time |
//! |---|---|---|
//! | 0 | queued | its number less one more than the last one queued (a change) |
//! | 1 | admitted | place; cached; computed; recomputed, unless `NONE_AGAIN`. `FIRST`: for the first time |
//! | 2 | prefill continued | place; computed; recomputed, unless `NONE_AGAIN` |
//! | 3 | preempted | place |
//! | 4 | blocks evicted | how many |
//! | 5 | prefill complete, a token is out | place. `FIRST`: the request's first token |
//! | 6 | finished | place |
//! | 7 | a step began | picoseconds until it ends |
//! | 8 | a step ended | |
//! | 9 | a block is used otherwise | its number; state + 4 × (tenant + 1, or 0) |
//!
//! The last three are only in a detailed log.

use super::{ReplicaEntry, ReplicaState};
use crate::runlog::varint::{Reader, put, put_change};
use crate::sim::{BlockChange, BlockState};

const AT_0: u8 = 0x10;
const FIRST: u8 = 0x20;
const NONE_AGAIN: u8 = 0x40;

/// Writes an entry's first byte and a place.
fn put_place(out: &mut Vec<u8>, head: u8, place: usize) {
    if place == 0 {
        out.push(head | AT_0);
    } else {
        out.push(head);
        put(out, place as u64);
    }
}

impl ReplicaState {
    pub(super) fn write_entry(&self, entry: &ReplicaEntry, out: &mut Vec<u8>) {
        let flag = |flag: u8, set: bool| if set { flag } else { 0 };
        match *entry {
            ReplicaEntry::Queued { request } => {
                out.push(0);
                put_change(out, self.next_queued(), request.into());
            }
            ReplicaEntry::Admitted { request, cached, computed, recomputed, first } => {
                let place = self.queue.iter().take_while(|&&queued| queued != request).count();
                put_place(out, 1 | flag(FIRST, first) | flag(NONE_AGAIN, recomputed == 0), place);
                put(out, cached.into());
                put(out, computed.into());
                if recomputed > 0 {
                    put(out, recomputed.into());
                }
            }
            ReplicaEntry::Continued { request, computed, recomputed } => {
                put_place(out, 2 | flag(NONE_AGAIN, recomputed == 0), self.place_in_batch(request));
                put(out, computed.into());
                if recomputed > 0 {
                    put(out, recomputed.into());
                }
            }
            ReplicaEntry::Preempted { request } => put_place(out, 3, self.place_in_batch(request)),
            ReplicaEntry::Evicted { blocks } => {
                out.push(4);
                put(out, blocks.into());
            }
            ReplicaEntry::Prefilled { request, first } => {
                put_place(out, 5 | flag(FIRST, first), self.place_in_batch(request));
            }
            ReplicaEntry::Finished { request } => {
                put_place(out, 6, self.running.iter().take_while(|one| one.request != request).count());
            }
            ReplicaEntry::StepBegan { takes } => {
                out.push(7);
                put(out, takes);
            }
            ReplicaEntry::StepEnded => out.push(8),
            ReplicaEntry::Block(BlockChange { block, state, tenant }) => {
                out.push(9);
                put(out, block.into());
                let state = match state {
                    BlockState::Free => 0,
                    BlockState::Cached => 1,
                    BlockState::Held => 2,
                };
                put(out, state + 4 * tenant.map_or(0, |tenant| u64::from(tenant) + 1));
            }
        }
    }

    pub(super) fn read_entry(&self, head: u8, from: &mut Reader<'_>) -> Option<ReplicaEntry> {
        let kind = head & 0x0f;
        let place = |from: &mut Reader<'_>| {
            if head & AT_0 != 0 { Some(0) } else { usize::try_from(from.number()?).ok() }
        };
        let again = |from: &mut Reader<'_>| if head & NONE_AGAIN != 0 { Some(0) } else { from.small() };
        let first = head & FIRST != 0;
        Some(match kind {
            0 => ReplicaEntry::Queued { request: from.change(self.next_queued())?.try_into().ok()? },
            1 => {
                let request = *self.queue.get(place(from)?)?;
                let (cached, computed, recomputed) = (from.small()?, from.small()?, again(from)?);
                ReplicaEntry::Admitted { request, cached, computed, recomputed, first }
            }
            2 => {
                let request = self.who(place(from)?)?;
                let (computed, recomputed) = (from.small()?, again(from)?);
                ReplicaEntry::Continued { request, computed, recomputed }
            }
            3 => ReplicaEntry::Preempted { request: self.who(place(from)?)? },
            4 => ReplicaEntry::Evicted { blocks: from.small()? },
            5 => ReplicaEntry::Prefilled { request: self.who(place(from)?)?, first },
            6 => ReplicaEntry::Finished { request: self.running.get(place(from)?)?.request },
            7 => ReplicaEntry::StepBegan { takes: from.number()? },
            8 => ReplicaEntry::StepEnded,
            9 => {
                let (block, coded) = (from.small()?, from.number()?);
                let state = match coded % 4 {
                    0 => BlockState::Free,
                    1 => BlockState::Cached,
                    2 => BlockState::Held,
                    _ => return None,
                };
                let tenant = (coded / 4).checked_sub(1).map(u32::try_from).transpose().ok()?;
                ReplicaEntry::Block(BlockChange { block, state, tenant })
            }
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runlog::stream::{Fold, Stream};

    /// A life of two requests, one of them preempted, as it is told and in how many bytes each.
    const STORY: [(u64, ReplicaEntry, usize); 16] = [
        (5, ReplicaEntry::Queued { request: 0 }, 3),
        (5, ReplicaEntry::Queued { request: 7 }, 2),
        (5, ReplicaEntry::StepBegan { takes: 100 }, 2),
        (5, admitted(0, 0, 33, 0, true), 3),
        (5, ReplicaEntry::Block(BlockChange { block: 3, state: BlockState::Held, tenant: Some(1) }), 3),
        (105, ReplicaEntry::StepEnded, 2),
        (105, ReplicaEntry::Prefilled { request: 0, first: true }, 1),
        (105, admitted(7, 16, 8, 0, true), 3),
        (205, ReplicaEntry::Continued { request: 7, computed: 9, recomputed: 0 }, 3),
        (305, ReplicaEntry::Prefilled { request: 7, first: true }, 2),
        (305, ReplicaEntry::StepEnded, 1),
        (305, ReplicaEntry::Preempted { request: 7 }, 1),
        (305, ReplicaEntry::Evicted { blocks: 2 }, 2),
        (405, ReplicaEntry::Finished { request: 0 }, 2),
        (405, admitted(7, 16, 18, 18, false), 4),
        (505, ReplicaEntry::Prefilled { request: 7, first: false }, 2),
    ];

    const fn admitted(
        request: u32,
        cached: u32,
        computed: u32,
        recomputed: u32,
        first: bool,
    ) -> ReplicaEntry {
        ReplicaEntry::Admitted { request, cached, computed, recomputed, first }
    }

    #[test]
    fn entries_are_read_as_they_were_written_and_are_short() {
        let mut stream = Stream::new(ReplicaState::new(Some(4)));
        for (at, entry, bytes) in STORY {
            let before = stream.bytes().len();
            stream.push(at, &entry);
            assert_eq!(stream.bytes().len() - before, bytes, "{entry:?}");
        }
        assert!(stream.iter().eq(STORY.map(|(at, entry, _)| (at, entry))));
        let copy = Stream::from_bytes(stream.bytes().to_vec(), ReplicaState::new(Some(4)));
        assert_eq!(copy.as_ref().map(Stream::state), Some(stream.state()));
        let state = stream.state();
        let [one] = state.running[..] else { panic!("{:?}", state.running) };
        assert_eq!((one.request, one.first_token, one.prefilled), (7, Some(305), Some(505)));
        assert_eq!((one.generated, one.preemptions, one.computed), (Some(3), 1, 18));
        assert_eq!((state.counts.cached_tokens, state.counts.cached_again_tokens), (16, 16));
        assert_eq!((state.counts.computed_tokens, state.counts.recomputed_tokens), (33 + 17 + 18, 18));
        assert_eq!(state.blocks[3], (BlockState::Held, Some(1)));
        assert_eq!(stream.seek(104).0.step_ends, Some(105));
    }

    #[test]
    fn places_other_than_the_nearest_are_told() {
        let mut stream = Stream::new(ReplicaState::new(None));
        for request in [300, 4, 9] {
            stream.push(1, &ReplicaEntry::Queued { request });
        }
        for request in [9, 300, 4] {
            stream.push(2, &admitted(request, 0, 1, 0, true));
        }
        for request in [9, 300] {
            stream.push(3, &ReplicaEntry::Prefilled { request, first: true });
        }
        stream.push(4, &ReplicaEntry::Finished { request: 300 });
        let copy =
            Stream::from_bytes(stream.bytes().to_vec(), ReplicaState::new(None)).expect("it was written");
        assert_eq!(copy.state(), stream.state());
        assert_eq!(copy.state().running.iter().map(|one| one.request).collect::<Vec<_>>(), [9, 4]);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let mut state = ReplicaState::new(Some(1));
        for bytes in [&[1, 0, 0][..], &[3 | AT_0], &[6 | AT_0], &[15], &[9, 0, 3], &[4]] {
            assert_eq!(state.read(bytes[0], &mut Reader::new(bytes, 1)), None, "{bytes:?}");
        }
        let block = BlockChange { block: 1, state: BlockState::Held, tenant: None };
        assert_eq!(state.apply(0, &ReplicaEntry::Block(block)), None);
        assert_eq!(state.apply(u64::MAX, &ReplicaEntry::StepBegan { takes: 1 }), None);
    }
}
