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
    ) {
        let blocks = smallest_pool(&jobs, block_size) + spare;
        let limits = Limits { blocks, block_size, max_batch, positions: 64 };
        let mut replica = Replica::new(0, limits, Box::new(Modelled));
        drive(&mut replica, &jobs, every, &Sampling::default());
        prop_assert!(replica.stats().peak_held <= blocks as u64);
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
    fn outputs_do_not_depend_on_cache_batch_or_preemption(
        jobs in jobs(), block_size in 1usize..5, max_batch in 1usize..6, every in 0usize..4, warm in 0u32..2,
    ) {
        let sampling = Sampling { temperature: warm as f32, seed: 5, ..Sampling::default() };
        let model = small_model();
        let limits = Limits { blocks: smallest_pool(&jobs, block_size), block_size, max_batch, positions: 64 };
        let expected = alone(&model, limits, &jobs, &sampling);
        let mut replica = Replica::new(0, limits, Box::new(TinyGptBackend::new(model, &limits)));
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
