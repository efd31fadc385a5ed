//! From event to event as step by step: on random workloads the event-driven loop and the plain one
//! have the same decisions on the same loads, times, evictions and figures, to the byte.
#![cfg(not(target_arch = "wasm32"))]

use std::cell::RefCell;
use std::rc::Rc;

use proptest::prelude::*;
use warmroute::cost::{PiecePrice, StepPrice};
use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Backend, BlockUse, Limits, Modelled, Replica, ReplicaStats, Running};
use warmroute::fleet::{Devices, Fleet};
use warmroute::policy::{Decision, Policy, PolicyKind, PolicySettings, ReplicaLoad};
use warmroute::router::Signal;
use warmroute::sim::{self, Objectives, Recorder, Simulation, run_express};
use warmroute::trace::{BlockIds, Prompt, RequestSpec, TenantName, Token, Trace};
use warmroute::units::{Span, Time};

/// The modelled backend as one that is called for every token.
struct EveryToken;

impl Backend for EveryToken {
    fn forward(&mut self, batch: &[Running<'_>], next: &mut Vec<Token>) {
        Modelled.forward(batch, next);
    }
}

/// Whose policy decided what, and on which loads.
type Decisions = Rc<RefCell<Vec<(usize, Vec<ReplicaLoad>, Decision)>>>;

struct Watched {
    router: usize,
    policy: Box<dyn Policy>,
    seen: Decisions,
    /// Round-robin does not look at loads; its loads are compared all the same.
    looks: bool,
}

impl Policy for Watched {
    fn name(&self) -> &'static str {
        self.policy.name()
    }

    fn reads_loads(&self) -> bool {
        self.looks
    }

    fn reads_matches(&self) -> bool {
        self.policy.reads_matches()
    }

    fn select(&mut self, prompt: &[Token], replicas: &[ReplicaLoad]) -> Decision {
        let decision = self.policy.select(prompt, replicas);
        let loads = if self.looks { replicas.to_vec() } else { Vec::new() };
        self.seen.borrow_mut().push((self.router, loads, decision.clone()));
        decision
    }
}

#[derive(Clone, Debug)]
struct Workload {
    trace: Trace,
    limits: Limits,
    replicas: u32,
    chunk: usize,
    price: StepPrice,
    policy: PolicyKind,
    settings: PolicySettings,
    looks: bool,
    routers: usize,
    signal: Signal,
}

impl Workload {
    fn fleet(&self, backend: fn() -> Box<dyn Backend>, seen: &Decisions) -> Fleet {
        let replica = |i| Replica::new(i, self.limits, backend()).with_prefill_chunk(self.chunk);
        let policy = |router| -> Box<dyn Policy> {
            let policy = self.policy.build(&self.settings);
            Box::new(Watched { router, policy, seen: seen.clone(), looks: self.looks })
        };
        let (policies, replicas) = ((0..self.routers).map(policy), (0..self.replicas).map(replica));
        Fleet::behind(policies.collect(), replicas.collect(), Devices::Separate).with_signal(self.signal)
    }

    fn recorder(&self) -> Recorder {
        Recorder::new(self.replicas as usize, self.limits.blocks)
    }

    fn end(&self, fleet: &Fleet, recorder: &Recorder, seen: &Decisions) -> End {
        use warmroute::engine::Engine;
        fleet.replicas().iter().for_each(Replica::audit);
        let objectives = Objectives { ttft: 2e-9, itl: 4e-10 };
        let summary = recorder.summary(&objectives, &self.trace.tenants);
        let records: Vec<_> = recorder.records().collect();
        End {
            json: serde_json::to_string(&(summary, records)).expect("plain data"),
            decisions: seen.take(),
            stats: fleet.replicas().iter().map(Replica::stats).collect(),
            blocks: fleet.replicas().iter().map(|r| r.block_uses().collect()).collect(),
            matched: fleet
                .replicas()
                .iter()
                .map(|r| self.trace.requests.iter().map(|spec| r.matched_blocks(&spec.prompt)).collect())
                .collect(),
        }
    }

    fn plain(&self, backend: fn() -> Box<dyn Backend>) -> End {
        let (seen, mut recorder) = (Decisions::default(), self.recorder());
        let clock = Box::new(sim::Modelled(self.price));
        let fleet = self.fleet(backend, &seen);
        let mut run = Simulation::new(fleet, &self.trace, Sampling::default(), clock);
        run.run(|event| recorder.observe(&event)).expect("it fits the clock");
        self.end(run.engine(), &recorder, &seen)
    }

    fn express(&self) -> End {
        let (seen, mut recorder) = (Decisions::default(), self.recorder());
        let mut fleet = self.fleet(|| Box::new(Modelled), &seen);
        run_express(&mut fleet, &self.trace, &Sampling::default(), &self.price, &mut recorder)
            .expect("it fits the clock");
        self.end(&fleet, &recorder, &seen)
    }
}

/// All that can be seen of a run and of what it left behind.
#[derive(Debug, PartialEq)]
struct End {
    json: String,
    decisions: Vec<(usize, Vec<ReplicaLoad>, Decision)>,
    stats: Vec<ReplicaStats>,
    blocks: Vec<Vec<BlockUse>>,
    matched: Vec<Vec<usize>>,
}

fn tokens() -> impl Strategy<Value = Prompt> {
    prop::collection::vec(0u32..2, 0..20).prop_map(Prompt::from)
}

/// Ids that stand for twice `size` tokens; those of one number always follow the same ones.
fn ids(size: usize) -> impl Strategy<Value = Prompt> {
    (0u32..24, 0u32..3, prop::bool::weighted(0.8)).prop_map(move |(tokens, family, known)| {
        let block = 2 * size as u32;
        let ids = if known {
            (0..tokens.div_ceil(block)).map(|at| at * (1 + family / 2)).collect()
        } else {
            [].into()
        };
        Prompt::Blocks(BlockIds { tokens, block, ids })
    })
}

/// Few prompts and answers that later prompts repeat, arrivals at one instant, tight pools, prices of nothing.
fn workloads(by_id: bool) -> impl Strategy<Value = Workload> {
    let shape = (1usize..6, 1usize..7, 1u32..5, 0usize..8, 0usize..6);
    shape.prop_flat_map(move |(size, max_batch, replicas, chunk, spare)| {
        let prompt = if by_id { ids(size).boxed() } else { tokens().boxed() };
        let output = prop::option::weighted(0.4, prop::collection::vec(0u32..2, 0..12));
        let tenant = prop::option::of(0u32..2);
        let request = (prompt, prop_oneof![Just(0u64), 0u64..3, 0u64..40], 0u64..30, output, tenant);
        let grain = || prop_oneof![Just(0u64), Just(1), Just(7), 0u64..200];
        let price = (grain(), grain(), grain(), grain(), grain(), grain());
        let policy = (
            0usize..PolicyKind::ALL.len(),
            prop_oneof![Just(0.0), Just(1.2), Just(2.0), Just(f64::INFINITY)],
            1usize..20,
        );
        let routers = prop_oneof![Just(1usize), 1usize..5];
        let period = prop_oneof![2 => Just(0u64), 1 => 1u64..8, 3 => 1u64..6000];
        let sight = (any::<bool>(), routers, period, any::<bool>());
        (prop::collection::vec(request, 1..30), 0u64..400, price, policy, sight).prop_map(
            move |(requests, spacing, price, (kind, max_imbalance, prefix_length), sight)| {
                let (looks, routers, period, own) = sight;
                let mut at = 0;
                let mut trace = Trace {
                    tenants: vec![TenantName::Number(4), TenantName::Text("b".into())],
                    ..Trace::default()
                };
                for (prompt, gap, max_tokens, output, tenant) in requests {
                    at += gap * spacing;
                    let output = output.map(Into::into);
                    trace.requests.push(RequestSpec {
                        arrival: Time(at),
                        prompt,
                        max_tokens,
                        tenant,
                        output,
                    });
                }
                let most = trace
                    .requests
                    .iter()
                    .map(|r| (r.prompt.len() + r.max_tokens as usize).div_ceil(size))
                    .max();
                let (base, per_token, per_pair, d_base, d_token, d_pair) = price;
                Workload {
                    trace,
                    // Some are a block too large for the pool.
                    limits: Limits {
                        blocks: (most.unwrap_or(1) + spare).saturating_sub(1).max(1),
                        block_size: size,
                        max_batch,
                        positions: 48,
                    },
                    replicas,
                    chunk,
                    price: StepPrice {
                        prefill: PiecePrice { base, per_token, per_pair },
                        decode: PiecePrice { base: d_base, per_token: d_token, per_pair: d_pair },
                    },
                    policy: PolicyKind::ALL[kind],
                    settings: PolicySettings {
                        prefix_length,
                        max_imbalance,
                        longest_prefix_guard: max_imbalance,
                        ..PolicySettings::default()
                    },
                    looks,
                    routers,
                    signal: Signal { period: Span(period), own },
                }
            },
        )
    })
}

fn same(one: &End, other: &End) -> Result<(), TestCaseError> {
    prop_assert_eq!(&one.decisions, &other.decisions);
    prop_assert_eq!(&one.json, &other.json);
    prop_assert_eq!(&one.stats, &other.stats);
    prop_assert_eq!(&one.blocks, &other.blocks);
    prop_assert_eq!(&one.matched, &other.matched);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn from_event_to_event_is_step_by_step(workload in workloads(false)) {
        let plain = workload.plain(|| Box::new(Modelled));
        same(&workload.express(), &plain)?;
        same(&workload.plain(|| Box::new(EveryToken)), &plain)?;
    }

    #[test]
    fn so_it_is_by_block_ids(workload in workloads(true)) {
        same(&workload.express(), &workload.plain(|| Box::new(Modelled)))?;
    }
}
