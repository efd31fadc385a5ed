//! A replica: a queue, a batch, a block pool and what computes, driven as an [`Engine`]. How it decides
//! is in `schedule`.

use std::collections::VecDeque;

use super::sequence::{NEVER, Place, Sequence};
use super::{
    Backend, Emitted, Engine, Limits, Placement, Rejection, Request, RequestId, StepEnd, StepStart, Work,
};
use crate::kv::BlockId;
use crate::kv::blocks::BlockPool;
use crate::policy::ReplicaLoad;
use crate::trace::{Prompt, Token};

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
    pub(super) index: u32,
    pub(super) limits: Limits,
    /// Prompt tokens computed in one step at most.
    pub(super) prefill_chunk: usize,
    pub(super) pool: BlockPool,
    pub(super) backend: Box<dyn Backend>,
    /// Whether tokens come from the backend, and are kept.
    pub(super) computes: bool,
    /// Every request inside, by slot; and the slots that are empty.
    pub(super) seqs: Vec<Sequence>,
    pub(super) vacant: Vec<u32>,
    /// Slots, the next to be admitted first.
    pub(super) waiting: VecDeque<u32>,
    /// The batch, oldest first. Only the newest may have a prompt that is not complete.
    pub(super) running: Vec<Place>,
    /// How many of them decode.
    pub(super) decoding: usize,
    /// The lengths of those, summed: the pairs of the next decode.
    pub(super) pairs: u64,
    pub(super) stepping: bool,
    /// Steps that have ended.
    pub(super) ended: u64,
    /// When, in steps ended, the first of the batch is finished.
    pub(super) next_finish: u64,
    /// When the first of the batch needs another block; at the latest.
    pub(super) next_block: u64,
    /// The head of the queue found too few blocks, and nothing has happened since that could help.
    pub(super) blocked: bool,
    pub(super) outstanding_tokens: u64,
    pub(super) stats: ReplicaStats,
    /// What the latest step decided. This and the lists below are kept so that steps do not allocate.
    pub(super) start: StepStart,
    pub(super) joined: Vec<RequestId>,
    pub(super) finished: Vec<RequestId>,
    pub(super) rested: usize,
    pub(super) decoded_tokens: Vec<Token>,
    pub(super) joined_tokens: Vec<Token>,
    pub(super) scratch: Vec<Token>,
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
            computes: backend.computes(),
            backend,
            seqs: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            running: Vec::new(),
            decoding: 0,
            pairs: 0,
            stepping: false,
            ended: 0,
            next_finish: NEVER,
            next_block: NEVER,
            blocked: false,
            outstanding_tokens: 0,
            stats: ReplicaStats::default(),
            start: StepStart {
                replica: index,
                continued: None,
                admitted: Vec::new(),
                preempted: Vec::new(),
                evicted: 0,
                held: 0,
                work: Work::default(),
            },
            joined: Vec::new(),
            finished: Vec::new(),
            rested: 0,
            decoded_tokens: Vec::new(),
            joined_tokens: Vec::new(),
            scratch: Vec::new(),
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
            ..ReplicaLoad::default()
        }
    }

    /// The same with what its own metrics tell besides.
    pub fn load_in_detail(&self) -> ReplicaLoad {
        let waiting = self.waiting.iter().map(|&slot| self.seqs[slot as usize].len as u64);
        let partly = self.running[self.decoding..].iter().map(|place| {
            let seq = &self.seqs[place.slot as usize];
            (seq.len - seq.computed) as u64
        });
        ReplicaLoad {
            waiting_tokens: waiting.chain(partly).sum(),
            held_blocks: self.pool.held() as u32,
            pool_blocks: self.pool.len() as u32,
            ..self.load()
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
            let tenant = self.pool.owner(id);
            if self.pool.holders(id) > 0 {
                BlockUse::Held(tenant)
            } else if self.pool.is_published(id) {
                BlockUse::Cached(tenant)
            } else {
                BlockUse::Free
            }
        })
    }

    /// What the latest step decided.
    pub(crate) fn started(&self) -> &StepStart {
        &self.start
    }

    /// Whether the head of the queue, if anybody joins it now, could be admitted before a block or a
    /// place in the batch is given up.
    pub(crate) fn may_admit(&self) -> bool {
        !self.blocked && self.running.len() < self.limits.max_batch
    }

    /// Every request inside with the tokens that are computed of it: those that run, oldest first, then
    /// those that wait, the next to be admitted first, of which nothing is.
    pub fn requests(&self) -> impl Iterator<Item = (RequestId, u32)> {
        let running = self.running.iter().map(|place| {
            let seq = &self.seqs[place.slot as usize];
            (seq.id, if place.decodes() { place.len(self.ended) } else { seq.computed } as u32)
        });
        running.chain(self.waiting.iter().map(|&slot| (self.seqs[slot as usize].id, 0)))
    }

    /// Tokens that must be computed before those that wait have their first: whatever may be cached.
    pub fn queued_tokens(&self) -> u64 {
        self.waiting.iter().map(|&slot| self.seqs[slot as usize].len as u64).sum()
    }

    /// Blocks that those that wait will need to be admitted, whatever may be cached.
    pub fn queued_blocks(&self) -> u64 {
        let blocks = |&slot: &u32| self.pool.blocks_for(self.seqs[slot as usize].room()) as u64;
        self.waiting.iter().map(blocks).sum()
    }

    /// Full blocks of a prompt that it has published, from the beginning on.
    pub fn matched_blocks(&self, prompt: &Prompt) -> usize {
        let (mut parent, mut matched) = (None, 0);
        for content in prompt.contents(0, self.limits.block_size) {
            let Some(id) = self.pool.find(parent, content) else { break };
            (parent, matched) = (Some(id), matched + 1);
        }
        matched
    }

    /// Checks every count against what the requests inside hold: panics where they differ.
    pub fn audit(&self) {
        let seq = |slot: u32| &self.seqs[slot as usize];
        self.pool.audit(self.running.iter().map(|place| &seq(place.slot).blocks[..]));
        assert!(self.waiting.iter().all(|&slot| seq(slot).blocks.is_empty()), "who waits holds nothing");
        let decoding = self.running.iter().take_while(|place| place.decodes()).count();
        assert!(decoding + 1 >= self.running.len(), "only the newest prompt is partly computed");
        if self.stepping {
            return;
        }
        let lengths = self.running[..decoding].iter().map(|place| place.len(self.ended));
        assert_eq!((decoding, lengths.sum::<usize>() as u64), (self.decoding, self.pairs));
        let waiting = self.waiting.iter().map(|&slot| seq(slot).outstanding(seq(slot).len));
        let running = self.running.iter().map(|place| {
            let seq = seq(place.slot);
            seq.outstanding(if place.decodes() { place.len(self.ended) } else { seq.len })
        });
        assert_eq!(waiting.chain(running).sum::<u64>(), self.outstanding_tokens);
    }
}

impl Engine for Replica {
    fn add_request(&mut self, request: Request) -> Result<Placement, Rejection> {
        self.limits.check(request.prompt.len(), request.max_tokens)?;
        let seq = Sequence::new(request, self.computes);
        self.outstanding_tokens += seq.outstanding(seq.len);
        let slot = match self.vacant.pop() {
            Some(slot) => {
                let place = &mut self.seqs[slot as usize];
                let blocks = core::mem::take(&mut place.blocks);
                *place = Sequence { blocks, ..seq };
                slot
            }
            None => {
                self.seqs.push(seq);
                (self.seqs.len() - 1) as u32
            }
        };
        self.waiting.push_back(slot);
        Ok(Placement { replica: self.index, decision: None })
    }

    fn has_work(&self) -> bool {
        !self.waiting.is_empty() || !self.running.is_empty()
    }

    fn device_has_work(&self, _device: usize) -> bool {
        !self.stepping && self.has_work()
    }

    fn begin_step(&mut self, _device: usize) -> StepStart {
        self.begin();
        self.start.clone()
    }

    fn end_step(&mut self, _device: usize) -> StepEnd {
        let mut emitted = Vec::<Emitted>::with_capacity(self.running.len());
        self.end(Some(&mut emitted));
        StepEnd { replica: self.index, emitted }
    }

    fn replicas(&self) -> &[Replica] {
        core::slice::from_ref(self)
    }
}
