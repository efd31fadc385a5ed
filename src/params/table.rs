//! The table of parameters.

use super::{BackendKind, ClockKind, Config, Field, Group, Kind, Param};
use crate::cost::roofline::{Accelerator, MOST_BLOCKS, ServedModel, Shape};
use crate::fleet::Devices;

const fn integer(min: u64, max: u64) -> Kind {
    Kind::Integer { min, max }
}

const fn real(min: f64, max: f64) -> Kind {
    Kind::Real { min, max, infinite: false }
}

macro_rules! param {
    ($group:ident, $key:ident, $label:literal, $unit:literal, $kind:expr, $field:ident, $help:literal) => {
        Param {
            key: stringify!($key),
            label: $label,
            unit: $unit,
            help: $help,
            group: Group::$group,
            kind: $kind,
            optional: matches!(Field::<Config>::$field(|c| &mut c.$key), Field::OptU32(_) | Field::OptF64(_)),
            field: Field::$field(|c| &mut c.$key),
        }
    };
}

/// A choice between the values of an enum, in the order of `$name`.
macro_rules! choice {
    ($group:ident, $key:ident, $label:literal, $help:literal, [$($value:expr => $name:literal, $means:literal;)+]) => {
        Param {
            key: stringify!($key),
            label: $label,
            unit: "",
            help: $help,
            group: Group::$group,
            kind: Kind::Choice(&[$(($name, $means)),+]),
            optional: false,
            field: Field::Choice(
                |c| [$($value),+].iter().position(|v| *v == c.$key).expect("every value is listed"),
                |c, i| c.$key = [$($value),+][i],
            ),
        }
    };
}

/// Every parameter, in the order of controls and help.
pub static PARAMS: [Param; 36] = [
    param!(Trace, requests, "Requests", "requests", integer(1, 1_000_000), U32, "How many requests arrive."),
    param!(
        Trace,
        rate,
        "Arrival rate",
        "requests/s",
        real(0.001, 100_000.0),
        F64,
        "Mean arrivals a second; the gaps are exponential (Poisson arrivals)."
    ),
    param!(
        Trace,
        tenants,
        "Tenants",
        "tenants",
        integer(1, 1024),
        U32,
        "How many tenants, each with a system prompt of its own."
    ),
    param!(
        Trace,
        skew,
        "Skew",
        "",
        real(0.0, 5.0),
        F64,
        "Zipf exponent of the tenants' shares of the traffic: 0 is uniform."
    ),
    param!(
        Trace,
        hot_share,
        "Hot tenant's share",
        "fraction",
        real(0.0, 1.0),
        OptF64,
        "The first tenant's share of the traffic, in place of what the skew gives it."
    ),
    param!(
        Trace,
        repeat,
        "System prompt repeats",
        "times",
        integer(1, 1024),
        U32,
        "How often a system prompt of 60 to 80 bytes is repeated in front of each question."
    ),
    param!(
        Trace,
        user_min,
        "Question, shortest",
        "tokens",
        integer(1, 131_072),
        U32,
        "Fewest tokens of a user's own question."
    ),
    param!(
        Trace,
        user_max,
        "Question, longest",
        "tokens",
        integer(1, 131_072),
        U32,
        "Most tokens of a user's own question."
    ),
    param!(
        Trace,
        output_min,
        "Output, shortest",
        "tokens",
        integer(1, 131_072),
        U32,
        "Fewest tokens that a request generates."
    ),
    param!(
        Trace,
        output_max,
        "Output, longest",
        "tokens",
        integer(1, 131_072),
        U32,
        "Most tokens that a request generates."
    ),
    param!(Fleet, replicas, "Replicas", "replicas", integer(1, 1024), U32, "How many replicas serve."),
    Param {
        key: "accelerator",
        label: "Accelerator",
        unit: "",
        help: "What replicas run on: their steps are priced by its roofline, the backend is modelled, and devices (separate), batch limit (256), KV blocks (auto) and positions (the model's) start from other defaults.",
        group: Group::Fleet,
        kind: Kind::Choice(&[
            ("none", "the price of a step is the parameter cost"),
            ("a100", "NVIDIA A100, SXM, 80 GB"),
            ("h100", "NVIDIA H100, SXM, 80 GB"),
            ("h200", "NVIDIA H200, SXM, 141 GB"),
            ("b200", "NVIDIA B200, as in a DGX, 180 GB"),
            ("l40s", "NVIDIA L40S, PCIe, 48 GB"),
        ]),
        optional: false,
        field: Field::Choice(
            |c| c.accelerator.map_or(0, |own| 1 + own as usize),
            |c, i| c.set_accelerator(i.checked_sub(1).map(|i| Accelerator::ALL[i])),
        ),
    },
    Param {
        key: "model",
        label: "Model",
        unit: "",
        help: "What the accelerators serve, in bf16.",
        group: Group::Fleet,
        kind: Kind::Choice(&[
            ("llama-3-8b", "Llama 3.1 8B"),
            ("llama-3-70b", "Llama 3.1 70B"),
            ("qwen3-32b", "Qwen3 32B"),
            ("qwen3-30b-a3b", "Qwen3 30B-A3B, a mixture of experts"),
            ("tinygpt", "the page's own model, 5.8 million weights"),
        ]),
        optional: false,
        field: Field::Choice(|c| c.model as usize, |c, i| c.set_model(ServedModel::ALL[i])),
    },
    param!(
        Fleet,
        tp,
        "GPUs a replica",
        "GPUs",
        integer(1, Shape::MOST as u64),
        U32,
        "How many accelerators share each replica's model (tensor parallelism)."
    ),
    param!(
        Fleet,
        blocks,
        "KV blocks",
        "blocks a replica",
        integer(1, MOST_BLOCKS),
        Blocks,
        "KV blocks in each replica's pool; auto: as many as the accelerators' memory holds beside weights and activations."
    ),
    param!(
        Fleet,
        block_size,
        "Block size",
        "tokens",
        integer(1, 512),
        U32,
        "Tokens a KV block holds; prefixes are shared by whole blocks."
    ),
    param!(
        Fleet,
        positions,
        "Positions",
        "tokens",
        integer(1, 1_048_576),
        U32,
        "Tokens that the model takes, prompt and output together; a longer request is rejected."
    ),
    param!(
        Fleet,
        max_batch,
        "Batch limit",
        "requests",
        integer(1, 256),
        U32,
        "Most requests that a replica runs at once."
    ),
    param!(
        Fleet,
        prefill_chunk,
        "Prefill chunk",
        "tokens a step",
        integer(0, 65_536),
        U32,
        "Most prompt tokens that a replica computes in one step, so that a long prompt holds up the others' next tokens less; 0: whole prompts."
    ),
    choice!(Fleet, devices, "Devices", "Whether replicas share one processor, as in the chapter's experiment, or each have their own.", [
        Devices::Shared => "shared", "one processor steps every replica in turn";
        Devices::Separate => "separate", "each replica has a processor of its own";
    ]),
    param!(
        Policy,
        policy,
        "Policies",
        "",
        Kind::Policies,
        Policies,
        "The routing policies that run over the same trace."
    ),
    param!(
        Policy,
        prefix_length,
        "Prefix length",
        "tokens",
        integer(1, 65_536),
        U32,
        "How many leading tokens prefix-affinity hashes."
    ),
    param!(
        Policy,
        max_imbalance,
        "Guard",
        "× mean load",
        Kind::Real { min: 0.0, max: 1000.0, infinite: true },
        F64,
        "prefix-affinity leaves a preferred replica whose load is above this many times the mean; inf: never."
    ),
    param!(
        Policy,
        longest_prefix_guard,
        "Guard of longest-prefix",
        "× mean load",
        Kind::Real { min: 0.0, max: 1000.0, infinite: true },
        F64,
        "longest-prefix leaves the replica with the longest match if its load is above this many times the mean; inf: never."
    ),
    param!(
        Policy,
        signal_period,
        "Load signal every",
        "s",
        real(0.0, 30.0),
        F64,
        "How often routers get to see loads: they decide on those of the latest refresh, at multiples of this time; 0: on those of the moment."
    ),
    choice!(Policy, signal_own, "Own requests since", "Whether a router adds what it sent itself since that refresh to what it sees.", [
        false => "off", "only the refresh counts, as for metrics that are scraped";
        true => "on", "prompt and budget of each, as vLLM's data-parallel client does with its counts";
    ]),
    param!(
        Policy,
        routers,
        "Routers",
        "routers",
        integer(1, 64),
        U32,
        "How many routers decide, in turn. One sees the replicas; of several each has a policy of its own and sees only its own requests in flight, with their whole budgets."
    ),
    param!(
        Objectives,
        slo_ttft,
        "TTFT objective",
        "s",
        real(0.0, 3600.0),
        F64,
        "A good request has its first token within this time of its arrival."
    ),
    param!(
        Objectives,
        slo_itl,
        "ITL objective",
        "s",
        real(0.0, 60.0),
        F64,
        "A good request takes at most this long a token after the first."
    ),
    choice!(Run, backend, "Backend", "Whether tokens are computed or only priced.", [
        BackendKind::TinyGpt => "tinygpt", "a real transformer computes every token";
        BackendKind::Modelled => "modelled", "the same scheduler, without tensors";
    ]),
    choice!(Run, clock, "Clock", "What says how long a step takes.", [
        ClockKind::Modelled => "modelled", "its price: the same on every machine";
        ClockKind::Measured => "measured", "a stop-watch on this machine";
    ]),
    param!(Run, cost, "Price of a step", "", Kind::Cost, Cost, "What a step costs under the modelled clock."),
    param!(
        Run,
        temperature,
        "Temperature",
        "",
        real(0.0, 10.0),
        F64,
        "Sampling temperature: 0 takes the likeliest token."
    ),
    param!(
        Run,
        top_k,
        "Top-k",
        "tokens",
        integer(1, 260),
        OptU32,
        "Sample among so many likeliest tokens only."
    ),
    param!(
        Run,
        top_p,
        "Top-p",
        "fraction",
        real(0.0, 1.0),
        OptF64,
        "Sample among the likeliest tokens that together reach this probability."
    ),
    param!(
        Run,
        seed,
        "Seed",
        "",
        integer(0, u64::MAX),
        U64,
        "Everything random is drawn from it: arrivals, tenants, questions, budgets, samples."
    ),
];
