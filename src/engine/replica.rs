//! The scheduler: admission in order of arrival, continuous batching, preemption of the newest.
//!
//! Prompts may be computed in chunks, so that a step's length is bounded. At most one prompt is then
//! partly computed: the newest running one. Nobody is admitted before it is complete, so whoever is
//! admitted finds all that was computed before, as without chunks.

use std::collections::VecDeque;

use super::request::Sequence;
use super::{
    Admitted, Backend, Continued, Emitted, Engine, Limits, Piece, Placement, Rejection, Request, RequestId,
    Running, StepEnd, StepStart, Work,
};
use crate::kv::BlockId;
use crate::kv::blocks::BlockPool;
use crate::policy::ReplicaLoad;
use crate::trace::Token;

/// What a replica counted since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicaStats {
    /// Steps begun.
    pub steps: u64,
    /// Times a running request lost its blocks.
    pub preemptions: u64,
    /// Cached blocks evicted.
    pub evictions: u64,
    /// The most blocks that running requests held at once.
    pub peak_held: u64,
}

/// What a block is used for, for drawing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockUse {
    /// Nothing.
    Free,
    /// Kept, held by nobody; the tenant whose request computed it.
    Cached(Option<u32>),
    /// Held by running requests; the tenant whose request computed it.
    Held(Option<u32>),
}

/// One engine: a queue, a batch, a block pool and a backend.
pub struct Replica {
    index: u32,
    limits: Limits,
    /// Prompt tokens computed in one step at most.
    prefill_chunk: usize,
    pool: BlockPool,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    backend: Box<dyn Backend>,
    /// What follows each sequence of the latest pass; kept, so that it is allocated once.
    next: Vec<Token>,
    stepping: bool,
    outstanding_tokens: u64,
    stats: ReplicaStats,
    /// The tenant that each block was last computed for.
    painted: Vec<Option<u32>>,
}

impl Replica {
    /// An empty replica.
    pub fn new(index: u32, limits: Limits, backend: Box<dyn Backend>) -> Replica {
        Replica::with_pool(index, limits, BlockPool::new(limits.blocks, limits.block_size), backend)
    }

    /// The same over a pool of the caller's, for tests of its hash.
    pub fn with_pool(index: u32, limits: Limits, pool: BlockPool, backend: Box<dyn Backend>) -> Replica {
        Replica {
            index,
            limits,
            prefill_chunk: usize::MAX,
            pool,
            waiting: VecDeque::new(),
            running: Vec::new(),
            backend,
            next: Vec::new(),
            stepping: false,
            outstanding_tokens: 0,
            stats: ReplicaStats::default(),
            painted: vec![None; limits.blocks],
        }
    }

    /// The same with prompts computed in chunks: at most so many prompt tokens in a step; 0: whole
    /// prompts.
    pub fn with_prefill_chunk(self, tokens: usize) -> Replica {
        Replica { prefill_chunk: if tokens == 0 { usize::MAX } else { tokens }, ..self }
    }

    /// What it can hold.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What a router sees of it now.
    pub fn load(&self) -> ReplicaLoad {
        ReplicaLoad {
            waiting: self.waiting.len() as u32,
            running: self.running.len() as u32,
            outstanding_tokens: self.outstanding_tokens,
        }
    }

    /// Its counters.
    pub fn stats(&self) -> ReplicaStats {
        ReplicaStats { evictions: self.pool.evictions(), ..self.stats }
    }

    /// The block pool.
    pub fn pool(&self) -> &BlockPool {
        &self.pool
    }

    /// Bytes of keys and values that the backend holds.
    pub fn kv_bytes(&self) -> usize {
        self.backend.kv_bytes()
    }

    /// What each block is used for.
    pub fn block_uses(&self) -> impl Iterator<Item = BlockUse> {
        (0..self.pool.len() as BlockId).map(|id| {
            let tenant = self.painted[id as usize];
            if self.pool.holders(id) > 0 {
                BlockUse::Held(tenant)
            } else if self.pool.is_published(id) {
                BlockUse::Cached(tenant)
            } else {
                BlockUse::Free
            }
        })
    }

    /// Checks every block count against what the running requests hold: panics where they differ.
    pub fn audit(&self) {
        self.pool.audit(self.running.iter().map(|seq| &seq.blocks[..]));
        assert!(self.waiting.iter().all(|seq| seq.blocks.is_empty()), "who waits holds nothing");
        let older = self.running.split_last().map_or(&[][..], |(_, older)| older);
        assert!(older.iter().all(|seq| !seq.prefilling), "only the newest prompt is partly computed");
        let outstanding: u64 = self.waiting.iter().chain(&self.running).map(Sequence::outstanding).sum();
        assert_eq!(outstanding, self.outstanding_tokens);
    }

    /// Makes room for the key and value that each running request computes next, oldest first;
    /// where there is none, the newest gives up its blocks and goes back to the head of the queue.
    fn make_room(&mut self) -> Vec<RequestId> {
        let mut preempted = Vec::new();
        let mut at = 0;
        while at < self.running.len() {
            let needed = self.pool.blocks_for(self.running[at].tokens.len());
            if self.running[at].blocks.len() >= needed {
                at += 1;
                continue;
            }
            match self.pool.allocate() {
                Some(id) => {
                    self.painted[id as usize] = self.running[at].tenant;
                    self.running[at].blocks.push(id);
                }
                None => {
                    self.stats.peak_held = self.pool.held() as u64;
                    let mut newest = self.running.pop().expect("the one that needs a block is running");
                    self.pool.release(&newest.blocks, self.stats.steps);
                    newest.reset();
                    preempted.push(newest.id);
                    self.waiting.push_front(newest);
                }
            }
        }
        self.stats.preemptions += preempted.len() as u64;
        preempted
    }

    /// Admits the head of the queue and computes its prefill, or as much of it as `left` has tokens
    /// for; or leaves it where it is.
    fn admit(&mut self, left: &mut usize) -> Option<(Admitted, Piece)> {
        if *left == 0 || self.running.len() >= self.limits.max_batch {
            return None;
        }
        let head = self.waiting.front()?;
        let matched = self.pool.lookup(&head.tokens);
        let wanted = self.pool.blocks_for(head.room()) - matched.len();
        if wanted > self.pool.available(&matched) {
            return None;
        }
        let mut seq = self.waiting.pop_front().expect("it was at the front a moment ago");
        matched.iter().for_each(|&id| self.pool.hold(id));
        let start = matched.len() * self.pool.block_size();
        seq.blocks = matched;
        for _ in 0..wanted {
            let id = self.pool.allocate().expect("what is available can be had");
            self.painted[id as usize] = seq.tenant;
            seq.blocks.push(id);
        }
        seq.computed = start;
        let first = !core::mem::replace(&mut seq.admitted, true);
        self.running.push(seq);
        let (Continued { request, computed, recomputed }, piece) = self.prefill(left);
        Some((Admitted { request, cached: start as u32, computed, recomputed, first }, piece))
    }

    /// Computes the newest request's prompt from where it stands, to its end or as far as `left` goes,
    /// and publishes what is full.
    fn prefill(&mut self, left: &mut usize) -> (Continued, Piece) {
        let seq = self.running.last_mut().expect("it was just admitted, or is known to be there");
        let (start, len) = (seq.computed, seq.tokens.len());
        let end = len.min(start.saturating_add(*left));
        *left -= end - start;
        self.backend.forward(&[seq.view(start, end)], &mut self.next);
        let follows = self.next[0];
        seq.prefilling = end < len;
        seq.pending = (!seq.prefilling).then_some(follows);
        seq.computed = end;
        let block_size = self.pool.block_size();
        for at in start / block_size..end / block_size {
            self.pool.publish(&mut seq.blocks, at, &seq.tokens);
        }
        let recomputed = end.min(seq.lost).saturating_sub(start) as u32;
        (Continued { request: seq.id, computed: (end - start) as u32, recomputed }, Piece::range(start, end))
    }

    /// Computes one token of each of the oldest `count` requests.
    fn decode(&mut self, count: usize) -> Option<Piece> {
        let running = self.running.get_mut(..count).filter(|running| !running.is_empty())?;
        let batch: Vec<Running<'_>> =
            running.iter().map(|seq| seq.view(seq.computed, seq.tokens.len())).collect();
        self.backend.forward(&batch, &mut self.next);
        let mut piece = Piece::default();
        for (seq, &token) in running.iter_mut().zip(&self.next) {
            seq.pending = Some(token);
            seq.computed += 1;
            piece.tokens += 1;
            piece.pairs += seq.tokens.len() as u64;
        }
        Some(piece)
    }
}

impl Sequence {
    fn view(&self, start: usize, end: usize) -> Running<'_> {
        Running {
            id: self.id,
            tokens: &self.tokens[..end],
            prompt_len: self.prompt_len,
            start,
            blocks: &self.blocks,
            sampling: &self.sampling,
            output: self.output.as_ref(),
        }
    }
}

impl Engine for Replica {
    fn add_request(&mut self, request: Request) -> Result<Placement, Rejection> {
        self.limits.check(request.prompt.len(), request.max_tokens)?;
        let seq = Sequence::new(request);
        self.outstanding_tokens += seq.outstanding();
        self.waiting.push_back(seq);
        Ok(Placement { replica: self.index, decision: None })
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    fn device_has_work(&self, _device: usize) -> bool {
        !self.stepping && self.has_work()
    }

    fn begin_step(&mut self, _device: usize) -> StepStart {
        assert!(!self.stepping, "a running step is not interrupted");
        self.stepping = true;
        self.stats.steps += 1;
        let evictions = self.pool.evictions();
        let preempted = self.make_room();
        let (mut admitted, mut prefills) = (Vec::new(), Vec::new());
        let mut left = self.prefill_chunk;
        let partial = self.running.last().is_some_and(|seq| seq.prefilling);
        let decoding = self.running.len() - usize::from(partial);
        let continued = partial.then(|| {
            let (continued, piece) = self.prefill(&mut left);
            prefills.push(piece);
            continued
        });
        if preempted.is_empty() {
            while let Some((one, piece)) = self.admit(&mut left) {
                admitted.push(one);
                prefills.push(piece);
            }
        }
        let decode = self.decode(decoding);
        self.stats.peak_held = self.stats.peak_held.max(self.pool.held() as u64);
        StepStart {
            replica: self.index,
            continued,
            admitted,
            preempted,
            evicted: (self.pool.evictions() - evictions) as u32,
            held: self.pool.held() as u32,
            work: Work { prefills, decode },
        }
    }

    fn end_step(&mut self, _device: usize) -> StepEnd {
        assert!(core::mem::take(&mut self.stepping), "only a step that began can end");
        let block_size = self.pool.block_size();
        let mut emitted = Vec::with_capacity(self.running.len());
        for seq in &mut self.running {
            let Some(token) = seq.pending.take() else {
                debug_assert!(seq.prefilling, "whatever runs was computed in this step");
                continue;
            };
            // What a decode has just filled can be shared from now on; prefills published theirs.
            let len = seq.tokens.len();
            if len.is_multiple_of(block_size) {
                self.pool.publish(&mut seq.blocks, len / block_size - 1, &seq.tokens);
            }
            seq.tokens.push(token);
            self.outstanding_tokens -= 1;
            emitted.push(Emitted { request: seq.id, token, last: seq.generated() == seq.max_tokens });
        }
        let (pool, steps, outstanding) = (&mut self.pool, self.stats.steps, &mut self.outstanding_tokens);
        self.running.retain(|seq| {
            let unfinished = seq.generated() < seq.max_tokens;
            if !unfinished {
                pool.release(&seq.blocks, steps);
                *outstanding -= seq.outstanding();
            }
            unfinished
        });
        StepEnd { replica: self.index, emitted }
    }

    fn replicas(&self) -> &[Replica] {
        core::slice::from_ref(self)
    }
}
