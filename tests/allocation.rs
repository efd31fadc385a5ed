//! A step in a steady state allocates nothing: an allocator that counts says so.
#![cfg(not(target_arch = "wasm32"))]
#![expect(unsafe_code, reason = "an allocator can only be written with unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Backend, Limits, Running, TinyGptBackend};
use warmroute::kv::BlockId;
use warmroute::model::{ModelConfig, TinyGpt, Token};

/// The system's allocator, counting what this thread asks for.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations that `run` makes.
fn allocations(run: impl FnOnce()) -> u64 {
    let before = ASKED.get();
    run();
    ASKED.get() - before
}

/// One sequence of a batch: its tokens so far, and its blocks.
struct Sequence {
    id: u32,
    tokens: Vec<Token>,
    blocks: Vec<BlockId>,
}

impl Sequence {
    fn view<'a>(&'a self, start: usize, sampling: &'a Sampling) -> Running<'a> {
        let tokens = &self.tokens[..];
        let prompt_len = self.tokens.len().min(LONGEST);
        Running { id: self.id, tokens, prompt_len, start, blocks: &self.blocks, sampling, output: None }
    }
}

const LONGEST: usize = 150;

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))), 1);
    assert_eq!(allocations(|| _ = std::hint::black_box(7)), 0);
}

#[test]
fn a_warm_step_allocates_nothing() {
    let model = Arc::new(TinyGpt::random(ModelConfig { layers: 2, ..ModelConfig::default() }, 1));
    let limits = Limits { blocks: 64, block_size: 16, max_batch: 8, positions: 2048 };
    let mut backend = TinyGptBackend::new(model, &limits);
    let sampling = Sampling { temperature: 0.8, top_k: Some(40), top_p: Some(0.9), seed: 3 };
    let mut sequences: Vec<Sequence> = (0..5)
        .map(|id| Sequence {
            id,
            tokens: (0..LONGEST as u32 - 20 * id).map(|i| (i * 7 + id) % 256).collect(),
            blocks: (id * 12..id * 12 + 12).collect(),
        })
        .collect();
    let mut next = Vec::new();
    // The first round takes the pool's chunks and the buffers; the longest prompt and the largest batch are in it.
    let mut round = |sequences: &mut Vec<Sequence>, backend: &mut TinyGptBackend| {
        let mut asked = 0;
        for sequence in sequences.iter() {
            let batch = [sequence.view(0, &sampling)];
            asked += allocations(|| backend.forward(&batch, &mut next));
        }
        for _ in 0..20 {
            for sequence in sequences.iter_mut() {
                sequence.tokens.push(sequence.id + 1);
            }
            let batch: Vec<Running<'_>> =
                sequences.iter().map(|s| s.view(s.tokens.len() - 1, &sampling)).collect();
            asked += allocations(|| backend.forward(&batch, &mut next));
        }
        for sequence in sequences.iter_mut() {
            sequence.tokens.truncate(sequence.tokens.len() - 20);
        }
        asked
    };
    assert!(round(&mut sequences, &mut backend) > 0, "a first round takes its memory");
    assert_eq!(round(&mut sequences, &mut backend), 0);
    let used = backend.kv_bytes();
    assert!(used > 0 && used <= 64 * 16 * 2 * 2 * 64 * 4, "{used} bytes of keys and values");
}
