//! Routers that are configured by flags or in a program of one's own.

use super::{command, notes, workers};
use crate::params::Config;
use crate::policy::PolicyKind;

/// SMG (smg-project/smg, `model_gateway`), by its Python command line.
pub fn smg(config: &Config, policy: PolicyKind) -> String {
    let own = config.tuning.of(policy);
    let real = |name: &str| own.real(name).to_string();
    let mut options = vec![("--worker-urls", workers(config))];
    let mut said = Vec::new();
    match policy {
        PolicyKind::SmgCacheAware => {
            options.extend([
                ("--policy", "cache_aware".to_owned()),
                ("--cache-threshold", real("cache_threshold")),
                ("--balance-abs-threshold", real("balance_abs_threshold")),
                ("--balance-rel-threshold", real("balance_rel_threshold")),
                ("--eviction-interval", real("eviction_interval")),
                ("--max-tree-size", real("max_tree_size")),
                ("--block-size", real("page_size")),
            ]);
            said.push(
                "balance_abs_threshold is a gateway's own count of requests: divide it by their number.",
            );
            said.push("Over HTTP the tree is of characters, page_size 1 here; over gRPC of pages of tokens.");
            said.push("holders (8) is a constant of kv-index, no option.");
        }
        PolicyKind::SmgPrefixHash => {
            options.extend([
                ("--policy", "prefix_hash".to_owned()),
                ("--prefix-token-count", real("prefix_tokens")),
                ("--prefix-hash-load-factor", real("load_factor")),
                ("--balance-abs-threshold", real("balance_abs_threshold")),
            ]);
            said.push("vnodes was not read from its sources; leave the ring as it is.");
        }
        PolicyKind::SmgLeastLoad => {
            options.extend([
                ("--policy", "least_load".to_owned()),
                ("--kv-pressure-weight", real("kv_pressure_weight")),
                ("--default-throughput", real("throughput")),
                ("--mean-prefill-tokens", real("mean_prefill_tokens")),
                ("--load-check-interval-secs", real("poll")),
                ("--max-waiting-requests", real("max_waiting_requests")),
            ]);
            said.push("default-throughput is only used where an engine reports no rate of its own.");
        }
        PolicyKind::PowerOfTwo => {
            options.push(("--policy", "power_of_two".to_owned()));
            said.push(
                "SMG compares expected waits of the two; here it was compared by requests or by tokens.",
            );
        }
        PolicyKind::Random => options.push(("--policy", "random".to_owned())),
        _ => options.push(("--policy", "round_robin".to_owned())),
    }
    notes(&said) + &command("smg launch", &options)
}

/// SGLang's original gateway and vLLM's router: the same rule and the same names.
pub fn sglang(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::SglangCacheAware);
    let real = |name: &str| own.real(name).to_string();
    let options = |urls: &'static str| {
        vec![
            (urls, workers(config)),
            ("--policy", "cache_aware".to_owned()),
            ("--cache-threshold", real("cache_threshold")),
            ("--balance-abs-threshold", real("balance_abs_threshold")),
            ("--balance-rel-threshold", real("balance_rel_threshold")),
            ("--eviction-interval", real("eviction_interval")),
            ("--max-tree-size", real("max_tree_size")),
        ]
    };
    notes(&[
        "miss = smallest-tree is only in versions before gh:sgl-project/sglang/pull/14305.",
        "page_size is 1 there: the tree is of characters.",
        "session_ttl: vLLM's router keeps a session for an hour, SGLang's gateway has none; neither is an option.",
        "SGLang:",
    ]) + &command("python -m sglang_router.launch_router", &options("--worker-urls"))
        + &notes(&["vLLM:"])
        + &command("vllm-router", &options("--worker-urls"))
}

/// vLLM production-stack's router.
pub fn stack(config: &Config, policy: PolicyKind) -> String {
    let own = config.tuning.of(policy);
    let backends = workers(config).replace(' ', ",");
    let mut options = vec![("--service-discovery", "static".to_owned()), ("--static-backends", backends)];
    let said = if policy == PolicyKind::SessionHash {
        options.push(("--routing-logic", "session".to_owned()));
        options.push(("--session-key", "x-user-id".to_owned()));
        notes(&[
            "A tenant stood in for the session: send its id in the header x-user-id.",
            "vnodes is uhashring's own there, no option.",
        ])
    } else {
        options.push(("--routing-logic", "prefixaware".to_owned()));
        options.push(("--prefix-min-match-length", own.real("min_match").to_string()));
        options.push(("--request-stats-window", own.real("qps_window").to_string()));
        notes(&[
            "chunk_chars (128) is HashTrie's default, no option.",
            "insert_on_fallback = on needs gh:vllm-project/production-stack/pull/990.",
            "A length is in characters; here a token stood for chars_per_token of them.",
        ])
    };
    said + &command("vllm-router", &options)
}

/// vLLM's router with KV events.
pub fn vllm_kv(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::VllmKvAware);
    notes(&[
        "Engines must publish KV events: vllm serve … --kv-events-config '{\"enable_kv_cache_events\": true}'.",
        "The block size must be the engines', and PYTHONHASHSEED the same on both sides.",
        "temperature was not found as an option; other values than 0 may need a build of one's own.",
    ]) + &command(
        "vllm-router",
        &[
            ("--worker-urls", workers(config)),
            ("--policy", "kv_aware".to_owned()),
            ("--kv-block-size", config.block_size.to_string()),
            ("# temperature", own.real("temperature").to_string()),
        ],
    )
    .replace(" \\\n  # temperature", "\n# temperature")
}

/// NVIDIA Dynamo's frontend.
pub fn dynamo(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::Dynamo);
    let real = |name: &str| own.real(name).to_string();
    let mut options = vec![
        ("--router-mode", "kv".to_owned()),
        ("--kv-cache-block-size", config.block_size.to_string()),
        ("--router-kv-overlap-score-credit", real("overlap_credit")),
        ("--router-kv-overlap-score-credit-decay", real("credit_decay")),
        ("--router-prefill-load-scale", real("prefill_scale")),
        ("--router-temperature", real("temperature")),
    ];
    let mut said = vec![
        "request_weight is decode_active_request_weight of its configuration; its flag was not read.",
        "Some versions refuse an overlap credit above 1.",
    ];
    if own.is_on("events") {
        options.push(("--router-kv-events", String::new()));
        said.push("ttl only matters with --no-router-kv-events. Workers must publish KV events.");
    } else {
        options.push(("--no-router-kv-events", String::new()));
        options.push(("--router-ttl-secs", real("ttl")));
    }
    if config.routers > 1 {
        said.push("Several routers only see each other's requests with --router-replica-sync, which was not simulated.");
    }
    notes(&said) + &command("python -m dynamo.frontend", &options)
}

/// Ray Serve LLM, in Python.
pub fn ray(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::RayPrefix);
    let guard = match own.real("imbalanced_threshold") {
        f64::INFINITY => "float(\"inf\")".to_owned(),
        guard => guard.to_string(),
    };
    let eviction = if own.is_on("do_eviction") { "True" } else { "False" };
    format!(
        "from ray.serve.llm import LLMConfig
from ray.serve.llm.request_router import PrefixCacheAffinityRouter

llm_config = LLMConfig(
    # model_loading_config=…,
    deployment_config=dict(
        num_replicas={},
        request_router_config=dict(
            request_router_class=PrefixCacheAffinityRouter,
            request_router_kwargs={{
                \"imbalanced_threshold\": {guard},
                \"match_rate_threshold\": {},
                \"do_eviction\": {eviction},
                \"eviction_threshold_chars\": {},
                \"eviction_target_chars\": {},
                \"eviction_interval_secs\": {},
            }},
        ),
    ),
)
",
        config.replicas,
        own.real("match_rate_threshold"),
        own.real("eviction_threshold"),
        own.real("eviction_target"),
        own.real("eviction_interval"),
    )
}

/// LiteLLM's proxy.
pub fn litellm(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::LiteLlm);
    let strategy = if own.is_on("strategy") { "least-busy" } else { "simple-shuffle" };
    let mut text = notes(&[
        "pin_tokens (1024) and pin_ttl (300 s) are constants of the check prompt_caching, no options.",
        "strategy and prompt_cache_pin as simulated:",
    ]);
    text += "model_list:\n";
    for worker in workers(config).split(' ') {
        text += &format!(
            "  - model_name: model\n    litellm_params:\n      model: hosted_vllm/model\n      api_base: {worker}/v1\n"
        );
    }
    text += &format!("router_settings:\n  routing_strategy: {strategy}\n");
    if own.is_on("prompt_cache_pin") {
        text += "  optional_pre_call_checks: [\"prompt_caching\"]\n";
    }
    text
}
