//! The scheduler: admission in order of arrival, continuous batching, preemption of the newest.
//!
//! Prompts may be computed in chunks, so that a step's length is bounded. At most one prompt is then
//! partly computed: the newest running one. Nobody is admitted before it is complete, so whoever is
//! admitted finds all that was computed before, as without chunks.
//!
//! A step in which nothing but decoding happens changes three sums; how many of them follow on one
//! another is known beforehand ([`Replica::quiet_steps`]), and they can be passed at once
//! ([`Replica::pass`]).

use core::ops::Range;

use super::sequence::{NEVER, Place, Sequence};
use super::{Admitted, Continued, Emitted, Piece, Replica, RequestId, Running};

impl Replica {
    /// Decides a step, and computes it where there are tensors; what it decided is in `start`.
    pub(crate) fn begin(&mut self) {
        assert!(!self.stepping, "a running step is not interrupted");
        self.stepping = true;
        self.stats.steps += 1;
        let evictions = self.pool.evictions();
        self.start.continued = None;
        self.start.admitted.clear();
        self.start.preempted.clear();
        self.start.work.prefills.clear();
        self.joined.clear();
        self.rested = 0;
        self.make_room();
        let mut left = self.prefill_chunk;
        let decoding = self.decoding;
        if self.running.len() > decoding {
            let (continued, piece) = self.prefill(&mut left);
            self.start.continued = Some(continued);
            self.start.work.prefills.push(piece);
        }
        if self.start.preempted.is_empty() {
            while let Some((one, piece)) = self.admit(&mut left) {
                self.start.admitted.push(one);
                self.start.work.prefills.push(piece);
            }
        }
        self.start.work.decode =
            (decoding > 0).then_some(Piece { tokens: decoding as u64, pairs: self.pairs });
        if self.computes {
            self.decode();
        }
        self.start.evicted = (self.pool.evictions() - evictions) as u32;
        self.start.held = self.pool.held() as u32;
        self.stats.peak_held = self.stats.peak_held.max(self.pool.held() as u64);
    }

    /// How many steps, counted from the one that has begun, nothing but decoding happens in: what was
    /// decided for it holds for all of them, but that each request is one token longer in each.
    pub(crate) fn quiet_steps(&self) -> u64 {
        if self.computes || !self.start.work.prefills.is_empty() || !self.start.preempted.is_empty() {
            return 1;
        }
        self.next_finish.min(self.next_block) - self.ended
    }

    /// Ends so many steps and begins as many. They and the step that is then under way are
    /// [quiet](Replica::quiet_steps).
    pub(crate) fn pass(&mut self, steps: u64) {
        debug_assert!(self.stepping && steps < self.quiet_steps());
        self.stats.steps += steps;
        self.grow(steps);
    }

    /// The batch's decodes are out, so many times.
    fn grow(&mut self, steps: u64) {
        let tokens = self.decoding as u64 * steps;
        self.ended += steps;
        self.pairs += tokens;
        self.outstanding_tokens -= tokens;
    }

    /// Ends the step that runs. Whose prefill it completed is in `joined`, whom it finished in
    /// `finished`; every token goes to `emitted`, where they are asked for.
    pub(crate) fn end(&mut self, emitted: Option<&mut Vec<Emitted>>) {
        assert!(core::mem::take(&mut self.stepping), "only a step that began can end");
        self.grow(1);
        self.outstanding_tokens -= self.joined.len() as u64;
        let joined = self.decoding..self.decoding + self.joined.len();
        self.pairs += self.running[joined.clone()].iter().map(|p| p.len(self.ended) as u64).sum::<u64>();
        self.decoding = joined.end;
        if self.computes {
            let tokens = self.decoded_tokens.drain(..).chain(self.joined_tokens.drain(..));
            for (place, token) in self.running.iter().zip(tokens) {
                self.seqs[place.slot as usize].tokens.push(token);
            }
        }
        if let Some(emitted) = emitted {
            emitted.extend(self.running[..self.decoding].iter().map(|place| {
                let seq = &self.seqs[place.slot as usize];
                let token = seq.token(place.len(self.ended) - 1);
                Emitted { request: seq.id, token, last: place.finish == self.ended }
            }));
        }
        // What a decode has just filled can be shared from now on; prefills published theirs.
        if self.next_block <= self.ended {
            for at in 0..self.decoding {
                let Place { slot, block_due, .. } = self.running[at];
                if block_due == self.ended {
                    let last = self.seqs[slot as usize].blocks.len() - 1;
                    self.publish(slot, last..last + 1);
                }
            }
        }
        self.finished.clear();
        if self.next_finish <= self.ended {
            self.finish();
        }
    }

    /// Lets go of the requests whose last token is out.
    fn finish(&mut self) {
        let mut next = NEVER;
        let (seqs, pool, finished) = (&mut self.seqs, &mut self.pool, &mut self.finished);
        let (ended, moment) = (self.ended, self.stats.steps);
        let (vacant, pairs, outstanding) = (&mut self.vacant, &mut self.pairs, &mut self.outstanding_tokens);
        self.running.retain(|place| {
            if place.finish > ended {
                next = next.min(place.finish);
                return true;
            }
            let seq = &mut seqs[place.slot as usize];
            pool.release(&seq.blocks, moment);
            seq.blocks.clear();
            *pairs -= place.len(ended) as u64;
            *outstanding -= seq.outstanding(place.len(ended));
            finished.push(seq.id);
            vacant.push(place.slot);
            false
        });
        self.decoding -= self.finished.len();
        self.next_finish = next;
        self.blocked = false;
    }

    /// Makes room for the key and value that each running request computes next, oldest first;
    /// where there is none, the newest gives up its blocks and goes back to the head of the queue.
    fn make_room(&mut self) {
        if self.next_block > self.ended {
            return;
        }
        let mut at = 0;
        while at < self.running.len() {
            if self.running[at].block_due > self.ended {
                at += 1;
                continue;
            }
            let place = &mut self.running[at];
            let seq = &mut self.seqs[place.slot as usize];
            match self.pool.allocate(seq.tenant) {
                Some(id) => {
                    seq.blocks.push(id);
                    place.block_due += self.limits.block_size as u64;
                }
                None => self.preempt_newest(),
            }
        }
        self.next_block = self.running.iter().map(|place| place.block_due).min().unwrap_or(NEVER);
        if !self.start.preempted.is_empty() {
            self.next_finish = self.running.iter().map(|place| place.finish).min().unwrap_or(NEVER);
        }
    }

    fn preempt_newest(&mut self) {
        self.stats.peak_held = self.pool.held() as u64;
        let newest = self.running.pop().expect("the one that needs a block is running");
        let seq = &mut self.seqs[newest.slot as usize];
        if newest.decodes() {
            seq.len = newest.len(self.ended);
            seq.computed = seq.len - 1;
            self.pairs -= seq.len as u64;
            self.decoding -= 1;
            self.rested += 1;
        }
        self.pool.release(&seq.blocks, self.stats.steps);
        seq.reset();
        self.start.preempted.push(seq.id);
        self.waiting.push_front(newest.slot);
        self.stats.preemptions += 1;
        self.blocked = false;
    }

    /// Admits the head of the queue and computes its prefill, or as much of it as `left` has tokens
    /// for; or leaves it where it is.
    fn admit(&mut self, left: &mut usize) -> Option<(Admitted, Piece)> {
        if *left == 0 || self.blocked || self.running.len() >= self.limits.max_batch {
            return None;
        }
        let slot = *self.waiting.front()?;
        self.look_up(slot);
        let seq = &mut self.seqs[slot as usize];
        let matched = seq.blocks.len();
        let wanted = self.pool.blocks_for(seq.room()) - matched;
        if wanted > self.pool.available(&seq.blocks) {
            seq.blocks.clear();
            // Until somebody lets go of a block, or publishes one, there will only be fewer.
            self.blocked = true;
            return None;
        }
        self.waiting.pop_front();
        seq.blocks.iter().for_each(|&id| self.pool.hold(id));
        self.pool.expect(wanted);
        for _ in 0..wanted {
            let id = self.pool.allocate(seq.tenant).expect("what is available can be had");
            seq.blocks.push(id);
        }
        seq.computed = matched * self.limits.block_size;
        let cached = seq.computed as u32;
        let first = !core::mem::replace(&mut seq.admitted, true);
        self.running.push(Place { slot, offset: 0, finish: NEVER, block_due: NEVER });
        let (Continued { request, computed, recomputed }, piece) = self.prefill(left);
        Some((Admitted { request, cached, computed, recomputed, first }, piece))
    }

    /// Puts the published blocks that a waiting request begins with into its block table; never all of
    /// it, since the last token must be computed.
    fn look_up(&mut self, slot: u32) {
        let size = self.limits.block_size;
        let seq = &mut self.seqs[slot as usize];
        let mut blocks = core::mem::take(&mut seq.blocks);
        seq.contents(0..(seq.len - 1) / size, size, &mut self.scratch, |_, content| {
            let found = self.pool.find(blocks.last().copied(), content);
            blocks.extend(found);
            found.is_some()
        });
        seq.blocks = blocks;
    }

    /// Computes the newest request's prompt from where it stands, to its end or as far as `left` goes,
    /// and publishes what is full.
    fn prefill(&mut self, left: &mut usize) -> (Continued, Piece) {
        let place = self.running.last_mut().expect("it was just admitted, or is known to be there");
        let seq = &mut self.seqs[place.slot as usize];
        let (start, len) = (seq.computed, seq.len);
        let end = len.min(start.saturating_add(*left));
        *left -= end - start;
        if self.computes {
            self.backend.forward(&[seq.view(start, end)], &mut self.decoded_tokens);
            self.joined_tokens.extend(self.decoded_tokens.drain(..).filter(|_| end == len));
        }
        seq.computed = end;
        let continued = Continued {
            request: seq.id,
            computed: (end - start) as u32,
            recomputed: end.min(seq.lost).saturating_sub(start) as u32,
        };
        let size = self.limits.block_size;
        if end == len {
            // It has one token more when this step ends.
            place.offset = (len as u64).wrapping_sub(self.ended);
            place.finish = ((seq.prompt.len() + seq.max_tokens) as u64).wrapping_sub(place.offset);
            place.block_due = (seq.blocks.len() * size + 1) as u64;
            place.block_due = place.block_due.wrapping_sub(place.offset);
            self.next_finish = self.next_finish.min(place.finish);
            self.next_block = self.next_block.min(place.block_due);
            self.joined.push(seq.id);
        }
        let slot = place.slot;
        self.publish(slot, start / size..end / size);
        (continued, Piece::range(start, end))
    }

    /// Publishes full blocks of a sequence, as far as anybody could share them.
    fn publish(&mut self, slot: u32, which: Range<usize>) {
        let seq = &mut self.seqs[slot as usize];
        let mut blocks = core::mem::take(&mut seq.blocks);
        seq.contents(which, self.limits.block_size, &mut self.scratch, |at, content| {
            self.pool.publish(&mut blocks, at, content);
            self.blocked = false;
            true
        });
        seq.blocks = blocks;
    }

    /// Computes one token of each request that is past its prompt.
    fn decode(&mut self) {
        let seqs = &self.seqs;
        let view = |place: &Place| {
            let seq: &Sequence = &seqs[place.slot as usize];
            seq.view(place.len(self.ended) - 1, place.len(self.ended))
        };
        let decoding = self.start.work.decode.map_or(0, |piece| piece.tokens as usize);
        let batch: Vec<Running<'_>> = self.running[..decoding].iter().map(view).collect();
        if !batch.is_empty() {
            self.backend.forward(&batch, &mut self.decoded_tokens);
        }
    }

    /// Requests whose prefill the latest step completed, in the order of the batch.
    pub(crate) fn joined(&self) -> &[RequestId] {
        &self.joined
    }

    /// Requests that the latest step finished.
    pub(crate) fn finished(&self) -> &[RequestId] {
        &self.finished
    }

    /// Of those that the latest step preempted, those that had their latest token when it began: all
    /// but one whose prompt was only partly computed.
    pub(crate) fn rested(&self) -> &[RequestId] {
        let preempted = &self.start.preempted;
        &preempted[preempted.len() - self.rested..]
    }
}
