//! How many requests the simulator serves in a second of processor time, on one core.
//!
//! `cargo run --release --example simulate -- [WHAT …]`, where WHAT is `shared` (300,000 requests that share half
//! of their prompts), `mooncake` (a public trace, if it is there: `WARMROUTE_TRACES` names its folder),
//! `requests` (the same shape from 10³ to 10⁶ requests) or `replicas` (up to 1,024 of them). Without
//! any, the first two. Replicas are Llama 3.1 8B on an H100 each, by the roofline. Reading or drawing a trace is not counted; the summary is.

use warmroute::cost::roofline::{Accelerator, ServedModel};
use warmroute::engine::sampling::Sampling;
use warmroute::engine::{Modelled, Replica};
use warmroute::fleet::{Devices, Fleet};
use warmroute::params::Config;
use warmroute::policy::{PolicyKind, PolicySettings};
use warmroute::sim::{Objectives, Recorder, Summary, run_express};
use warmroute::trace::{BlockIds, Prompt, RequestSpec, Trace};
use warmroute::units::Time;

mod host;

struct Setup {
    replicas: u32,
    block_size: usize,
    policy: PolicyKind,
    /// Tokens that prefix-affinity goes by: what the groups share; of the public trace, whose prompts all
    /// begin with the same block, a few blocks more.
    prefix: usize,
}

impl Setup {
    fn serve(&self, trace: &Trace) -> (Summary, u64) {
        let block_size = self.block_size as u32;
        let config = Config { block_size, ..Config::on(Some(Accelerator::H100), ServedModel::Llama8B) };
        config.validate().expect("the model fits the accelerator");
        let limits = config.limits();
        let replica = |index| Replica::new(index, limits, Box::new(Modelled));
        let settings = PolicySettings {
            prefix_length: self.prefix.div_ceil(trace.tokens_per_item()),
            ..config.policy_settings()
        };
        let replicas = (0..self.replicas).map(replica).collect();
        let mut fleet = Fleet::new(replicas, self.policy.build(&settings), Devices::Separate);
        let mut recorder = Recorder::new(self.replicas as usize, limits.blocks);
        run_express(&mut fleet, trace, &Sampling::default(), &config.price(), &mut recorder)
            .expect("the run fits the clock");
        let steps = warmroute::engine::Engine::replicas(&fleet).iter().map(|r| r.stats().steps).sum();
        (recorder.summary(&Objectives { ttft: 1.0, itl: 0.05 }, &trace.tenants), steps)
    }

    /// Serves a trace and prints a row of the table.
    fn measure(&self, name: &str, trace: &Trace) {
        let start = host::processor_seconds();
        let (summary, steps) = self.serve(trace);
        let seconds = host::processor_seconds() - start;
        let reuse = 100.0 * summary.reuse.unwrap_or(0.0);
        host::print(&format!(
            "| {name:<10} | {:>9} | {:>8} | {:>5} | {:<15} | {:>7.3} | {:>10.0} | {:>6.1} | {:>5.1} % | {:>8} | {:>6} |",
            trace.requests.len(),
            self.replicas,
            self.block_size,
            self.policy.name(),
            seconds,
            trace.requests.len() as f64 / seconds,
            steps as f64 / seconds / 1e6,
            reuse,
            summary.preemptions,
            host::peak_megabytes().map_or_else(|| "–".to_owned(), |mb| format!("{mb:.0}")),
        ));
        assert_eq!(summary.completed + summary.rejected, trace.requests.len());
    }
}

/// Poisson arrivals of prompts of 1,155 tokens, the first 576 of which are one of 64 groups', and
/// outputs of 211: the means of a public trace of conversations (Azure, 2023).
fn shared(requests: u32, rate: f64) -> Trace {
    const BLOCK: u32 = 64;
    let mut state = 20_261_130u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let (mut at, mut fresh) = (0.0, 64 * 9);
    let request = |_| {
        at -= libm::log(1.0 - draw()) / rate;
        let group = (draw() * 64.0) as u32;
        let ids =
            (0..1155u32.div_ceil(BLOCK)).map(|i| if i < 9 { group * 9 + i } else { fresh + i }).collect();
        fresh += 19;
        let prompt = Prompt::Blocks(BlockIds { tokens: 1155, block: BLOCK, ids });
        let arrival = Time::from_seconds(at).expect("it fits the clock");
        RequestSpec { arrival, prompt, max_tokens: 211, tenant: None, output: None }
    };
    Trace { requests: (0..requests).map(request).collect(), tenants: Vec::new() }
}

fn mooncake() -> Option<Trace> {
    let text = host::read_trace("mooncake_conversation_trace.jsonl")?;
    Some(warmroute::trace::import::read_mooncake(&text, 512).expect("a good trace"))
}

fn main() {
    let mut wanted = host::arguments();
    if wanted.is_empty() {
        wanted = vec!["shared".into(), "mooncake".into()];
    }
    host::print(
        "| workload   |  requests | replicas | block | policy          | CPU s   | requests/s | Msteps | reuse   | preempt. | MB     |",
    );
    host::print(
        "|------------|-----------|----------|-------|-----------------|---------|------------|--------|---------|----------|--------|",
    );
    let policies = [PolicyKind::RoundRobin, PolicyKind::PrefixAffinity];
    for what in &wanted {
        match what.as_str() {
            "shared" => {
                let trace = shared(300_000, 160.0);
                for policy in policies {
                    Setup { replicas: 16, block_size: 64, policy, prefix: 512 }.measure(what, &trace);
                }
            }
            "mooncake" => match mooncake() {
                Some(trace) => {
                    for block_size in [512, 64, 16] {
                        for policy in policies {
                            Setup { replicas: 16, block_size, policy, prefix: 2048 }.measure(what, &trace);
                        }
                    }
                }
                None => host::print(
                    "(mooncake skipped: the trace is not there; WARMROUTE_TRACES names its folder)",
                ),
            },
            "requests" => {
                for requests in [1_000, 10_000, 100_000, 1_000_000] {
                    let trace = shared(requests, 160.0);
                    for policy in policies {
                        Setup { replicas: 16, block_size: 64, policy, prefix: 512 }.measure(what, &trace);
                    }
                }
            }
            "replicas" => {
                for replicas in [16, 64, 256, 1024] {
                    let trace = shared(100_000, 10.0 * f64::from(replicas));
                    for policy in
                        [PolicyKind::RoundRobin, PolicyKind::LeastTokens, PolicyKind::PrefixAffinity]
                    {
                        Setup { replicas, block_size: 64, policy, prefix: 512 }.measure(what, &trace);
                    }
                }
            }
            other => host::print(&format!("({other}: there are shared, mooncake, requests, replicas)")),
        }
    }
}
