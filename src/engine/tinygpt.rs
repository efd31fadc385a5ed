//! The backend that computes: TinyGPT over this replica's own paged keys and values.

use std::sync::Arc;

use super::sampling::{Candidate, sample};
use super::{Backend, Limits, Running};
use crate::kv::store::KvStore;
use crate::model::{AsSlice, Scratch, Slice, TinyGpt};
use crate::trace::Token;

/// The weights, once, for every replica of a fleet.
pub type SharedModel = Arc<TinyGpt>;

/// One replica's tensors.
pub struct TinyGptBackend {
    model: SharedModel,
    store: KvStore,
    scratch: Scratch,
    candidates: Vec<Candidate>,
}

impl TinyGptBackend {
    /// A replica of `model` with a pool of its own; memory is taken as blocks are first used.
    pub fn new(model: SharedModel, limits: &Limits) -> TinyGptBackend {
        let store = KvStore::new(model.config(), limits.block_size);
        TinyGptBackend { model, store, scratch: Scratch::default(), candidates: Vec::new() }
    }
}

impl AsSlice for Running<'_> {
    /// What a step computes of a sequence; a prompt's last chunk is sampled, those before it are not.
    fn as_slice(&self) -> Slice<'_> {
        let sampled = self.tokens.len() >= self.prompt_len;
        Slice { tokens: &self.tokens[self.start..], start: self.start, blocks: self.blocks, sampled }
    }
}

impl Backend for TinyGptBackend {
    fn forward(&mut self, batch: &[Running<'_>], next: &mut Vec<Token>) {
        self.model.forward(&mut self.store, &mut self.scratch, batch);
        next.clear();
        for (i, seq) in batch.iter().enumerate() {
            let position = seq.tokens.len() as u64;
            next.push(match seq.as_slice().sampled {
                true => {
                    let logits = self.scratch.logits(i);
                    sample(logits, seq.sampling, u64::from(seq.id), position, &mut self.candidates)
                }
                false => 0,
            });
        }
    }

    fn kv_bytes(&self) -> usize {
        self.store.bytes_used()
    }
}
