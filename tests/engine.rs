//! The replica under random workloads in tiny pools: every request finishes, every block is
//! accounted for, and no output depends on caching, batching or preemption.
#![cfg(not(target_arch = "wasm32"))]

use std::sync::Arc;

use proptest::prelude::*;
use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Engine, Limits, Modelled, Replica, Request, TinyGptBackend};
use warmroute::kv::blocks::BlockPool;
use warmroute::model::{ModelConfig, TinyGpt};
use warmroute::trace::Token;

/// A prompt and a budget.
type Job = (Vec<Token>, u64);

fn request(id: usize, job: &Job, sampling: &Sampling) -> Request {
    Request {
        id: id as u32,
        tenant: None,
        prompt: job.0.clone().into(),
        max_tokens: job.1,
        output: None,
        sampling: sampling.clone(),
    }
}

/// Prompts over two tokens, so that they often share a start, and short ones so that pools fill.
fn jobs() -> impl Strategy<Value = Vec<Job>> {
    prop::collection::vec((prop::collection::vec(0u32..2, 1..14), 1u64..12), 1..14)
}

/// The smallest pool in which each job could run alone.
fn smallest_pool(jobs: &[Job], block_size: usize) -> usize {
    jobs.iter()
        .map(|(prompt, max)| (prompt.len() + *max as usize - 1).div_ceil(block_size))
        .max()
        .expect("there are jobs")
}

/// Steps a replica until it is done, feeding it a job now and then; returns each job's output.
fn drive(replica: &mut Replica, jobs: &[Job], every: usize, sampling: &Sampling) -> Vec<Vec<Token>> {
    let mut outputs = vec![Vec::new(); jobs.len()];
    let mut next = 0;
    let work: usize = jobs.iter().map(|(prompt, max)| prompt.len() + *max as usize).sum();
    // Without a livelock every step brings a token, and only a preemption loses time.
    let mut left = 20 * (work + jobs.len() * every + 10) * jobs.len();
    while next < jobs.len() || replica.has_work() {
        while next < jobs.len() && (every == 0 || !replica.has_work() || left.is_multiple_of(every)) {
            replica.add_request(request(next, &jobs[next], sampling)).expect("every job fits alone");
            next += 1;
            if every > 0 {
                break;
            }
        }
        let end = replica.step().expect("there is work");
        replica.audit();
        for token in end.emitted {
            let output = &mut outputs[token.request as usize];
            output.push(token.token);
            assert_eq!(token.last, output.len() as u64 == jobs[token.request as usize].1);
        }
        left = left.checked_sub(1).expect("the replica makes progress");
    }
    for (output, (_, max)) in outputs.iter().zip(jobs) {
        assert_eq!(output.len() as u64, *max);
    }
    let pool = replica.pool();
    assert_eq!((pool.held(), pool.free() + pool.cached()), (0, pool.len()));
    assert_eq!(replica.load(), Default::default());
    outputs
}

fn small_model() -> Arc<TinyGpt> {
    let config = ModelConfig {
        vocab_size: 40,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        positions: 64,
        ..ModelConfig::default()
    };
    Arc::new(TinyGpt::random(config, 3))
}

/// Each job alone on a replica that has never seen anything: no sharing, no batch, no preemption.
fn alone(model: &Arc<TinyGpt>, limits: Limits, jobs: &[Job], sampling: &Sampling) -> Vec<Vec<Token>> {
    let roomy = Limits { blocks: 64, ..limits };
    let run = |(id, job): (usize, &Job)| {
        let mut replica = Replica::new(0, roomy, Box::new(TinyGptBackend::new(model.clone(), &roomy)));
        replica.add_request(request(id, job, sampling)).expect("it fits");
        let mut output = Vec::new();
        while let Some(end) = replica.step() {
            output.extend(end.emitted.iter().map(|e| e.token));
        }
        output
    };
    jobs.iter().enumerate().map(run).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

    #[test]
    fn every_request_finishes_in_the_smallest_pool(
        jobs in jobs(), block_size in 1usize..5, max_batch in 1usize..6, every in 0usize..4, spare in 0usize..4,
        chunk in 0usize..6,
    ) {
        let blocks = smallest_pool(&jobs, block_size) + spare;
        let limits = Limits { blocks, block_size, max_batch, positions: 64 };
        let mut replica = Replica::new(0, limits, Box::new(Modelled)).with_prefill_chunk(chunk);
        drive(&mut replica, &jobs, every, &Sampling::default());
        prop_assert!(replica.stats().peak_held <= blocks as u64);
    }

    #[test]
    fn what_is_shared_is_computed_once_in_chunks_as_in_whole(
        jobs in jobs(), block_size in 1usize..5, max_batch in 1usize..6, chunk in 1usize..6,
    ) {
        // Nothing is evicted, and all are there from the beginning: what each finds is what those
        // before it had in their prompts.
        let limits = Limits { blocks: 400, block_size, max_batch, positions: 64 };
        let found = |chunk: usize| {
            let mut replica = Replica::new(0, limits, Box::new(Modelled)).with_prefill_chunk(chunk);
            for (id, job) in jobs.iter().enumerate() {
                replica.add_request(request(id, job, &Sampling::default())).expect("it fits");
            }
            let (mut cached, mut computed) = (Vec::new(), 0);
            while replica.has_work() {
                let start = replica.begin_step(0);
                let in_step: u64 = start.work.prefills.iter().map(|piece| piece.tokens).sum();
                assert!(chunk == 0 || in_step <= chunk as u64, "{in_step} tokens in chunks of {chunk}");
                computed += in_step;
                cached.extend(start.admitted.iter().map(|one| one.cached));
                replica.end_step(0);
                replica.audit();
            }
            (cached, computed)
        };
        prop_assert_eq!(found(chunk), found(0));
    }

    #[test]
    fn a_hash_that_always_collides_changes_nothing(
        jobs in jobs(), block_size in 1usize..4, max_batch in 1usize..6, every in 0usize..4,
    ) {
        let limits = Limits { blocks: smallest_pool(&jobs, block_size) + 2, block_size, max_batch, positions: 64 };
        let mut logs = [false, true].map(|collide| {
            let pool = if collide {
                BlockPool::with_hash(limits.blocks, block_size, |_, _| 7)
            } else {
                BlockPool::new(limits.blocks, block_size)
            };
            let mut replica = Replica::with_pool(0, limits, pool, Box::new(Modelled));
            let outputs = drive(&mut replica, &jobs, every, &Sampling::default());
            (outputs, replica.stats())
        }).into_iter();
        prop_assert_eq!(logs.next(), logs.next());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..Default::default() })]

    #[test]
    fn outputs_do_not_depend_on_cache_batch_chunks_or_preemption(
        jobs in jobs(), block_size in 1usize..5, max_batch in 1usize..6, every in 0usize..4, warm in 0u32..2,
        chunk in 0usize..6,
    ) {
        let sampling = Sampling { temperature: warm as f32, seed: 5, ..Sampling::default() };
        let model = small_model();
        let limits = Limits { blocks: smallest_pool(&jobs, block_size), block_size, max_batch, positions: 64 };
        let expected = alone(&model, limits, &jobs, &sampling);
        let backend = Box::new(TinyGptBackend::new(model, &limits));
        let mut replica = Replica::new(0, limits, backend).with_prefill_chunk(chunk);
        prop_assert_eq!(drive(&mut replica, &jobs, every, &sampling), expected);
    }
}

/// One workload by hand, so that preemption, eviction and reuse are known to have been there.
#[test]
fn a_tight_pool_preempts_evicts_and_reuses_and_the_outputs_stay() {
    let jobs: Vec<Job> = (0..6u32).map(|i| (vec![1, 2, 3, 4, 5, 6, 7, 8, i, i + 1, i], 12)).collect();
    let limits = Limits { blocks: 14, block_size: 2, max_batch: 4, positions: 64 };
    let model = small_model();
    let expected = alone(&model, limits, &jobs, &Sampling::default());
    let mut replica = Replica::new(0, limits, Box::new(TinyGptBackend::new(model, &limits)));
    assert_eq!(drive(&mut replica, &jobs, 0, &Sampling::default()), expected);
    let stats = replica.stats();
    assert!(stats.preemptions > 0 && stats.evictions > 0, "{stats:?}");
    assert!(replica.kv_bytes() > 0);
}

#[test]
fn a_shared_middle_is_never_reused_and_a_shared_start_is() {
    let limits = Limits { blocks: 32, block_size: 4, max_batch: 4, positions: 64 };
    let middle = [10, 11, 12, 13, 14, 15, 16, 17];
    let prompt = |start: &[Token]| [start, &middle, &[1]].concat();
    let mut replica = Replica::new(0, limits, Box::new(Modelled));
    let mut cached = |prompt: Vec<Token>| {
        replica.add_request(request(0, &(prompt, 1), &Sampling::default())).expect("it fits");
        let start = replica.begin_step(0);
        replica.end_step(0);
        start.admitted[0].cached
    };
    assert_eq!(cached(prompt(&[1, 2, 3, 4])), 0);
    assert_eq!(cached(prompt(&[5, 6, 7, 8])), 0, "the middle is the same, what is before it is not");
    assert_eq!(cached(prompt(&[1, 2, 3, 4])), 12);
    assert_eq!(cached(prompt(&[1, 2, 3, 4, 5, 6, 7, 8])), 4);
}

#[test]
fn requests_admitted_in_one_step_share_what_the_first_computes() {
    let limits = Limits { blocks: 32, block_size: 4, max_batch: 4, positions: 64 };
    let mut replica = Replica::new(0, limits, Box::new(Modelled));
    for id in 0..2 {
        let job = (vec![1, 2, 3, 4, 5, 6, 7, 8, id as u32], 2);
        replica.add_request(request(id, &job, &Sampling::default())).expect("it fits");
    }
    let start = replica.begin_step(0);
    let cached: Vec<u32> = start.admitted.iter().map(|a| a.cached).collect();
    assert_eq!((cached, start.held), (vec![0, 8], 4), "two shared blocks and one of each one's own");
}

#[test]
fn a_prompt_in_chunks_takes_its_first_token_with_the_last_and_the_others_go_on() {
    let limits = Limits { blocks: 32, block_size: 4, max_batch: 4, positions: 64 };
    let mut replica = Replica::new(0, limits, Box::new(Modelled)).with_prefill_chunk(5);
    let long: Vec<Token> = (0..12).collect();
    let jobs = [(vec![90, 91], 9), (long.clone(), 2), ([&long[..], &[50]].concat(), 1)];
    for (id, job) in jobs.iter().enumerate() {
        replica.add_request(request(id, job, &Sampling::default())).expect("it fits");
    }
    let mut step = || {
        let start = replica.begin_step(0);
        let pieces: Vec<(u64, u64)> = start.work.prefills.iter().map(|p| (p.tokens, p.pairs)).collect();
        let decoded = start.work.decode.map_or(0, |piece| piece.tokens);
        let end = replica.end_step(0);
        replica.audit();
        (pieces, decoded, end.emitted.iter().map(|e| e.request).collect::<Vec<_>>(), start)
    };
    let (pieces, decoded, emitted, _) = step();
    assert_eq!((pieces, decoded, emitted), (vec![(2, 3), (3, 6)], 0, vec![0]), "2 tokens, and 3 of 12");
    let (pieces, decoded, emitted, start) = step();
    assert_eq!((pieces, decoded, emitted), (vec![(5, 30)], 1, vec![0]));
    assert_eq!(start.continued.map(|c| (c.request, c.computed, c.recomputed)), Some((1, 5, 0)));
    let (pieces, decoded, emitted, start) = step();
    assert_eq!((pieces, decoded, emitted), (vec![(4, 42), (1, 13)], 1, vec![0, 1, 2]));
    assert_eq!(start.admitted[0].cached, 12, "the third finds all that the second has just computed");
}

#[test]
fn what_a_preempted_chunk_computed_is_counted_as_computed_again() {
    // The older request takes the last block while the younger one's prompt is half computed.
    let limits = Limits { blocks: 7, block_size: 2, max_batch: 2, positions: 64 };
    let mut replica = Replica::new(0, limits, Box::new(Modelled)).with_prefill_chunk(2);
    let jobs = [(vec![1, 2], 8), ((10..20).collect(), 2)];
    for (id, job) in jobs.iter().enumerate() {
        replica.add_request(request(id, job, &Sampling::default())).expect("it fits");
    }
    let (mut computed, mut recomputed, mut cached) = (0, 0, Vec::new());
    while replica.has_work() {
        let start = replica.begin_step(0);
        for one in start.admitted.iter().filter(|one| one.request == 1) {
            (computed, recomputed) = (computed + one.computed, recomputed + one.recomputed);
            cached.push(one.cached);
        }
        if let Some(one) = start.continued {
            assert_eq!(one.request, 1);
            (computed, recomputed) = (computed + one.computed, recomputed + one.recomputed);
        }
        replica.end_step(0);
        replica.audit();
    }
    assert_eq!((replica.stats().preemptions, cached.len()), (1, 2));
    assert_eq!(computed - recomputed, 10, "each token of the prompt is new once");
    assert!(cached[0] == 0 && recomputed > 0 || cached[1] > 0, "{cached:?}, {recomputed}");
}
