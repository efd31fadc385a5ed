//! The backend that computes: TinyGPT over this replica's own paged keys and values.

use std::sync::Arc;

use super::sampling::sample;
use super::{Backend, Limits, Running};
use crate::kv::store::KvStore;
use crate::model::{Scratch, Slice, TinyGpt};
use crate::trace::Token;

/// The weights, once, for every replica of a fleet.
pub type SharedModel = Arc<TinyGpt>;

/// One replica's tensors.
pub struct TinyGptBackend {
    model: SharedModel,
    store: KvStore,
    scratch: Scratch,
}

impl TinyGptBackend {
    /// A replica of `model` with a pool of its own; memory is taken as blocks are first used.
    pub fn new(model: SharedModel, limits: &Limits) -> TinyGptBackend {
        let store = KvStore::new(model.config(), limits.block_size);
        TinyGptBackend { model, store, scratch: Scratch::default() }
    }
}

impl Backend for TinyGptBackend {
    fn forward(&mut self, batch: &[Running<'_>]) -> Vec<Token> {
        let slices: Vec<Slice<'_>> = batch
            .iter()
            .map(|seq| Slice { tokens: &seq.tokens[seq.start..], start: seq.start, blocks: seq.blocks })
            .collect();
        self.model.forward(&mut self.store, &mut self.scratch, &slices);
        batch
            .iter()
            .enumerate()
            .map(|(i, seq)| {
                sample(self.scratch.logits(i), seq.sampling, u64::from(seq.id), seq.tokens.len() as u64)
            })
            .collect()
    }

    fn kv_bytes(&self) -> usize {
        self.store.bytes_used()
    }
}
