//! The scheduler: admission in order of arrival, continuous batching, preemption of the newest.

use std::collections::VecDeque;

use super::request::Sequence;
use super::{
    Admitted, Backend, Emitted, Engine, Limits, Piece, Placement, Rejection, Request, RequestId, Running,
    StepEnd, StepStart, Work,
};
use crate::kv::BlockId;
use crate::kv::blocks::BlockPool;
use crate::policy::ReplicaLoad;

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
    pool: BlockPool,
    waiting: VecDeque<Sequence>,
    running: Vec<Sequence>,
    backend: Box<dyn Backend>,
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
            pool,
            waiting: VecDeque::new(),
            running: Vec::new(),
            backend,
            stepping: false,
            outstanding_tokens: 0,
            stats: ReplicaStats::default(),
            painted: vec![None; limits.blocks],
        }
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
                    newest.blocks.clear();
                    preempted.push(newest.id);
                    self.waiting.push_front(newest);
                }
            }
        }
        self.stats.preemptions += preempted.len() as u64;
        preempted
    }

    /// Admits the head of the queue and computes its prefill, or leaves it where it is.
    fn admit(&mut self) -> Option<(Admitted, Piece)> {
        if self.running.len() >= self.limits.max_batch {
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
        let len = seq.tokens.len();
        seq.pending = Some(self.backend.forward(&[seq.view(start)])[0]);
        for at in 0..len / self.pool.block_size() {
            self.pool.publish(&mut seq.blocks, at, &seq.tokens);
        }
        let admitted = Admitted {
            request: seq.id,
            cached: start as u32,
            computed: (len - start) as u32,
            // The newest token had not been computed when it was preempted.
            recomputed: if seq.admitted { (len - 1 - start) as u32 } else { 0 },
            first: !seq.admitted,
        };
        seq.admitted = true;
        self.running.push(seq);
        Some((admitted, Piece::range(start, len)))
    }
}

impl Sequence {
    fn view(&self, start: usize) -> Running<'_> {
        Running {
            id: self.id,
            tokens: &self.tokens,
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
        let before = self.running.len();
        let (mut admitted, mut prefills) = (Vec::new(), Vec::new());
        if preempted.is_empty() {
            while let Some((one, piece)) = self.admit() {
                admitted.push(one);
                prefills.push(piece);
            }
        }
        let decode = (before > 0).then(|| {
            let batch: Vec<Running<'_>> =
                self.running[..before].iter().map(|seq| seq.view(seq.tokens.len() - 1)).collect();
            let tokens = self.backend.forward(&batch);
            let mut piece = Piece::default();
            for (seq, token) in self.running.iter_mut().zip(tokens) {
                seq.pending = Some(token);
                piece.tokens += 1;
                piece.pairs += seq.tokens.len() as u64;
            }
            piece
        });
        self.stats.peak_held = self.stats.peak_held.max(self.pool.held() as u64);
        StepStart {
            replica: self.index,
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
            // What a decode has just filled can be shared from now on; prefills published theirs.
            let len = seq.tokens.len();
            if len.is_multiple_of(block_size) {
                self.pool.publish(&mut seq.blocks, len / block_size - 1, &seq.tokens);
            }
            let token = seq.pending.take().expect("every running request was computed in this step");
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
