//! The values of every parameter, and what is built from them.

use crate::cost::Cost;
use crate::cost::roofline::{Accelerator, ServedModel};
use crate::engine::Limits;
use crate::engine::sampling::Sampling;
use crate::fleet::Devices;
use crate::model::ModelConfig;
use crate::policy::{PolicyKind, PolicySettings, Tuning};
use crate::router::Signal;
use crate::sim::Objectives;
use crate::trace::Trace;
use crate::trace::generate::{Arrivals, MultiTenant, Shape, ShapeKind};
use crate::units::Span;

use super::{Blocks, Problem};

/// What computes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BackendKind {
    /// TinyGPT's tensors.
    #[default]
    TinyGpt,
    /// Nothing: only the price of it.
    Modelled,
}

/// What says how long a step took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockKind {
    /// Its price.
    #[default]
    Modelled,
    /// A stop-watch.
    Measured,
}

/// A named starting point.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// The chapter's experiment on the chapter's CPU.
    #[default]
    Chapter,
    /// The same offered load on this project's own engine.
    TinygptWasm,
}

/// Every parameter's value; see [`PARAMS`](super::PARAMS) for what each means.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table of parameters documents each, once")]
pub struct Config {
    pub requests: u32,
    pub rate: f64,
    pub tenants: u32,
    pub skew: f64,
    pub hot_share: Option<f64>,
    pub repeat: u32,
    pub user_min: u32,
    pub user_max: u32,
    pub output_min: u32,
    pub output_max: u32,
    pub shape: Shape,
    pub arrivals: Arrivals,
    pub replicas: u32,
    pub accelerator: Option<Accelerator>,
    pub model: ServedModel,
    pub tp: u32,
    pub blocks: Blocks,
    pub block_size: u32,
    pub positions: u32,
    pub max_batch: u32,
    pub prefill_chunk: u32,
    pub devices: Devices,
    pub policy: Vec<PolicyKind>,
    pub prefix_length: u32,
    pub max_imbalance: f64,
    pub signal_period: f64,
    pub signal_own: bool,
    pub routers: u32,
    pub longest_prefix_guard: f64,
    pub slo_ttft: f64,
    pub slo_itl: f64,
    pub backend: BackendKind,
    pub clock: ClockKind,
    pub cost: Cost,
    pub temperature: f64,
    pub top_k: Option<u32>,
    pub top_p: Option<f64>,
    pub seed: u64,
    /// The knobs of the routers people run.
    pub tuning: Tuning,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            requests: 24,
            rate: 8.0,
            tenants: 6,
            skew: 0.0,
            hot_share: None,
            repeat: 6,
            user_min: 8,
            user_max: 32,
            output_min: 16,
            output_max: 32,
            shape: Shape::default(),
            arrivals: Arrivals::default(),
            replicas: 4,
            accelerator: None,
            model: ServedModel::Llama8B,
            tp: 1,
            blocks: Blocks::Number(384),
            block_size: 16,
            positions: 2048,
            max_batch: 8,
            prefill_chunk: 0,
            devices: Devices::Shared,
            policy: PolicyKind::RACE.to_vec(),
            prefix_length: 64,
            max_imbalance: 2.0,
            signal_period: 0.0,
            // The bare delay: what it costs is what one wants to see first.
            signal_own: false,
            routers: 1,
            longest_prefix_guard: f64::INFINITY,
            slo_ttft: 1.0,
            slo_itl: 0.05,
            backend: BackendKind::TinyGpt,
            clock: ClockKind::Modelled,
            cost: Cost::ChapterCpu,
            temperature: 0.0,
            top_k: None,
            top_p: None,
            // A draw whose reuse is near the chapter's published rows; how it compares with other
            // seeds is shown beside it (`--seeds`).
            seed: 85,
            tuning: Tuning::default(),
        }
    }
}

impl Preset {
    /// Every preset with its name on the command line and on the page.
    pub const ALL: [(&'static str, Preset); 2] =
        [("chapter", Preset::Chapter), ("tinygpt-wasm", Preset::TinygptWasm)];

    /// The preset of a name.
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|(own, _)| *own == name).map(|(_, preset)| preset)
    }

    /// The configuration it stands for.
    pub fn config(self) -> Config {
        let chapter = Config::default();
        match self {
            Preset::Chapter => chapter,
            Preset::TinygptWasm => {
                let cost = Cost::TinygptWasm;
                let alone = |cost: Cost| cost.price().of_request_alone(452, 24).seconds();
                let faster = alone(chapter.cost) / alone(cost);
                // Rounded to a tenth of a request a second, so that it reads as a parameter.
                Config { rate: (10.0 * chapter.rate * faster).round() / 10.0, cost, ..chapter }
            }
        }
    }
}

impl Config {
    /// What no single parameter can see: values that do not go together.
    pub fn validate(&self) -> Result<(), Problem> {
        let problem = |key: &str, problem: String| Err(Problem { key: key.into(), problem });
        for (key, low, high) in
            [("user_max", self.user_min, self.user_max), ("output_max", self.output_min, self.output_max)]
        {
            if low > high {
                let least = key.replace("max", "min");
                return problem(
                    key,
                    format!("found {high}, which is below {least} = {low}; it is at least that"),
                );
            }
        }
        if self.shape.kind() == ShapeKind::Batch && self.arrivals != Arrivals::Poisson {
            return problem(
                "arrivals",
                "a batch arrives at once, or in waves (--shape batch:wave=100,gap=60)".into(),
            );
        }
        let days = f64::from(self.requests) / self.rate / 86_400.0;
        if days > MAX_DAYS {
            return problem(
                "rate",
                format!(
                    "{} requests at {} a second take {days:.0} days; the simulated clock is good for {MAX_DAYS:.0} (and steps come on top)",
                    self.requests, self.rate
                ),
            );
        }
        let (longest, tokens) = (self.longest_prompt(), self.most_trace_tokens());
        if tokens > MAX_TRACE_TOKENS {
            return problem(
                "requests",
                format!(
                    "{} prompts of up to {longest} tokens are {tokens} tokens; a generated trace has at most {MAX_TRACE_TOKENS} {}",
                    self.requests,
                    if cfg!(target_arch = "wasm32") {
                        "in the page (the command line takes more)"
                    } else {
                        "(2 GiB)"
                    },
                ),
            );
        }
        self.validate_replica()?;
        let positions = ModelConfig::default().positions;
        if self.backend == BackendKind::TinyGpt && self.positions as usize > positions {
            return problem(
                "positions",
                format!(
                    "found {}; the tensors' model has {positions} (the modelled backend has no such limit)",
                    self.positions
                ),
            );
        }
        let pool = u64::from(self.pool_blocks()) * u64::from(self.block_size);
        if self.backend == BackendKind::TinyGpt && pool > MAX_TINYGPT_POOL {
            return problem(
                "blocks",
                format!(
                    "{} blocks of {} tokens are {pool} tokens; with real tensors a replica holds at most {MAX_TINYGPT_POOL} (the modelled backend has no such limit)",
                    self.pool_blocks(),
                    self.block_size
                ),
            );
        }
        let all = pool * u64::from(self.replicas);
        if self.backend == BackendKind::TinyGpt && all > MAX_TINYGPT_POOLS {
            return problem(
                "replicas",
                format!(
                    "{} replicas of {pool} tokens each are {all} tokens; with real tensors they are at most {MAX_TINYGPT_POOLS} (the modelled backend has no such limit)",
                    self.replicas
                ),
            );
        }
        Ok(())
    }

    /// Tokens that the prompts of the generated trace have at most, together.
    pub fn most_trace_tokens(&self) -> u64 {
        u64::from(self.requests) * self.longest_prompt()
    }

    /// The same of one prompt.
    fn longest_prompt(&self) -> u64 {
        self.shape.longest_prompt(&self.generator())
    }

    /// The trace that it generates.
    pub fn trace(&self) -> Trace {
        self.shape.generate(&self.generator(), &self.arrivals)
    }

    /// Sets one of [`SHAPE_KEYS`].
    pub fn set_shape(&mut self, key: &str, text: &str) -> Result<(), Problem> {
        let problem = |problem| Problem { key: key.into(), problem };
        match key {
            "shape" => self.shape = Shape::parse(text).map_err(problem)?,
            _ => {
                self.arrivals = Arrivals::parse(text)
                    .ok_or_else(|| problem(format!("found `{text}`; it is {}", Arrivals::WANTED)))?;
            }
        }
        Ok(())
    }

    /// What a trace of any shape is made from: requests, rate, tenants, lengths.
    pub fn generator(&self) -> MultiTenant {
        MultiTenant {
            requests: self.requests as usize,
            rate: self.rate,
            tenants: self.tenants as usize,
            skew: self.skew,
            hot_share: self.hot_share,
            repeat: self.repeat as usize,
            user_bytes: (self.user_min.into(), self.user_max.into()),
            output_tokens: (self.output_min.into(), self.output_max.into()),
            seed: self.seed,
        }
    }

    /// What a replica can hold.
    pub fn limits(&self) -> Limits {
        Limits {
            blocks: self.pool_blocks() as usize,
            block_size: self.block_size as usize,
            max_batch: self.max_batch as usize,
            positions: self.positions as usize,
        }
    }

    /// What the policies are tuned by.
    pub fn policy_settings(&self) -> PolicySettings {
        PolicySettings {
            prefix_length: self.prefix_length as usize,
            max_imbalance: self.max_imbalance,
            longest_prefix_guard: self.longest_prefix_guard,
            tuning: self.tuning,
            seed: self.seed,
        }
    }

    /// The same for a trace: a prefix is so many of what its prompts are told by.
    pub fn policy_settings_for(&self, trace: &Trace) -> PolicySettings {
        let own = self.policy_settings();
        PolicySettings { prefix_length: own.prefix_length.div_ceil(trace.tokens_per_item()), ..own }
    }

    /// How late routers see loads.
    pub fn signal(&self) -> Signal {
        // The parameter's range is well within the clock.
        let period = Span::from_seconds(self.signal_period).unwrap_or(Span::ZERO);
        Signal { period, own: self.signal_own }
    }

    /// What counts as good.
    pub fn objectives(&self) -> Objectives {
        Objectives { ttft: self.slo_ttft, itl: self.slo_itl }
    }

    /// How tokens are chosen.
    pub fn sampling(&self) -> Sampling {
        Sampling {
            temperature: self.temperature as f32,
            top_k: self.top_k,
            top_p: self.top_p.map(|p| p as f32),
            seed: self.seed,
        }
    }
}

/// Keys of a configuration that are texts of their own kind and no parameters: what shape a generated trace has, and
/// how its requests (or sessions) arrive.
pub const SHAPE_KEYS: [&str; 2] = ["shape", "arrivals"];

/// Days of arrivals that a generated trace may take: well within the clock's 213.
const MAX_DAYS: f64 = 100.0;

/// Tokens of keys and values that a replica with real tensors holds at most: 3 KiB each, so 192 MiB.
const MAX_TINYGPT_POOL: u64 = 65_536;

/// The same of all replicas together: 1.5 GiB, which a page's memory of 4 GiB has room for.
const MAX_TINYGPT_POOLS: u64 = 1 << 19;

/// Tokens of a generated trace's prompts, four bytes each: 2 GiB natively, 512 MiB in each of a page's workers.
pub const MAX_TRACE_TOKENS: u64 = if cfg!(target_arch = "wasm32") { 1 << 27 } else { 1 << 29 };
