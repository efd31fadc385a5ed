//! Routers that are configured in a cluster.

use super::notes;
use crate::params::Config;
use crate::policy::PolicyKind;

/// AIBrix's gateway plugin, by its environment.
pub fn aibrix(config: &Config, policy: PolicyKind) -> String {
    let own = config.tuning.of(policy);
    let real = |name: &str| own.real(name).to_string();
    let (algorithm, said, values) = match policy {
        PolicyKind::AibrixPrefixCache => (
            "prefix-cache",
            notes(&[
                "AIBRIX_PREFIX_CACHE_LOAD_IMBALANCE_MIN_GAP is of a later version, whose gate is ≥ and asks for the most",
                "to be above twice the mean and one as well; before, imbalance_gap was the constant 8.",
                "ttl is told in minutes.",
                "A block is in characters of the character tokenizer; here a token stood for chars_per_token of them.",
            ]),
            vec![
                ("AIBRIX_PREFIX_CACHE_TOKENIZER_TYPE", "character".to_owned()),
                ("AIBRIX_PREFIX_CACHE_BLOCK_SIZE", real("block_chars")),
                ("AIBRIX_PREFIX_CACHE_BLOCK_NUMBER", real("capacity")),
                ("AIBRIX_PREFIX_CACHE_EVICTION_DURATION_MINS", (own.real("ttl") / 60.0).to_string()),
                ("AIBRIX_PREFIX_CACHE_STANDARD_DEVIATION_FACTOR", real("deviations")),
                ("AIBRIX_PREFIX_CACHE_LOAD_IMBALANCE_MIN_GAP", (own.real("imbalance_gap") + 1.0).to_string()),
            ],
        ),
        PolicyKind::AibrixPreble => (
            "prefix-cache-preble",
            notes(&[
                "match_threshold (0.5) is a constant; time_per_token is measured there, 0.15 s until then.",
                "The window is in minutes.",
            ]),
            vec![
                (
                    "AIBRIX_ROUTER_PREBLE_TARGET_GPU",
                    if own.is_on("gpu") { "A6000" } else { "V100" }.to_owned(),
                ),
                ("AIBRIX_ROUTER_PREBLE_DECODING_LENGTH", real("decode_tokens")),
                ("AIBRIX_ROUTER_PREBLE_SLIDING_WINDOW_PERIOD", (own.real("window") / 60.0).to_string()),
            ],
        ),
        _ => ("least-request", String::new(), Vec::new()),
    };
    let mut text = said;
    text += "# kubectl -n aibrix-system edit deployment aibrix-gateway-plugins\nenv:\n";
    let routing = ("ROUTING_ALGORITHM", algorithm.to_owned());
    for (name, value) in core::iter::once(routing).chain(values) {
        text += &format!("  - name: {name}\n    value: \"{value}\"\n");
    }
    text + &format!("# Or with each request, the header routing-strategy: {algorithm}\n")
}

/// llm-d's endpoint picker.
pub fn llm_d(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::LlmD);
    let real = |name: &str| own.real(name).to_string();
    let block = own.real("block_tokens").max(f64::from(config.block_size));
    let mut text = notes(&[
        "autoTune must be off for these values of the prefix index to hold; with it they follow the engines'.",
        "hashes_agree = off is a fault to be shown, no option.",
    ]);
    text += "apiVersion: llm-d.ai/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n";
    text += "- type: queue-scorer\n- type: kv-cache-utilization-scorer\n";
    if own.is_on("precise") {
        text += "- type: precise-prefix-cache-scorer\n  parameters:\n    tokenProcessorConfig:\n";
        text += &format!("      blockSize: {}\n", config.block_size);
        text += "      hashSeed: \"42\"  # the engines' PYTHONHASHSEED\n";
    } else {
        text += "- type: prefix-cache-scorer\n  parameters:\n    autoTune: false\n";
        text += &format!("    blockSizeTokens: {block}\n");
        text += &format!("    maxPrefixBlocksToMatch: {}\n", (own.real("max_prefix_tokens") / block).floor());
        text += &format!("    # max_prefix_tokens = {} ÷ blocks of {block}\n", real("max_prefix_tokens"));
        text += &format!("    lruCapacityPerServer: {}\n", real("capacity"));
    }
    if own.is_on("affinity_filter") {
        text += "- type: prefix-cache-affinity-filter\n  parameters:\n";
        text += &format!("    affinityThreshold: {}\n", real("affinity_threshold"));
        text += &format!("    maxTTFTPenaltyMs: {}\n", 1000.0 * own.real("max_ttft_penalty"));
        text += &format!("    peakPrefillThroughput: {}\n", real("prefill_throughput"));
    } else {
        text += &format!(
            "# affinity_filter is off (affinity_threshold {}, max_ttft_penalty {} s, prefill_throughput {})\n",
            real("affinity_threshold"),
            real("max_ttft_penalty"),
            real("prefill_throughput")
        );
    }
    let picker = if own.is_on("picker") { "weighted-random-picker" } else { "max-score-picker" };
    text += &format!("- type: {picker}\nschedulingProfiles:\n- name: default\n  plugins:\n");
    if own.is_on("affinity_filter") {
        text += "  - pluginRef: prefix-cache-affinity-filter\n";
    }
    let prefix = if own.is_on("precise") { "precise-prefix-cache-scorer" } else { "prefix-cache-scorer" };
    for (plugin, weight) in [
        ("queue-scorer", "queue_weight"),
        ("kv-cache-utilization-scorer", "kv_weight"),
        (prefix, "prefix_weight"),
    ] {
        text += &format!("  - pluginRef: {plugin}\n    weight: {}\n", real(weight));
    }
    text + &format!("  - pluginRef: {picker}\n")
}

/// A model of KubeAI's.
pub fn kubeai(config: &Config) -> String {
    let own = config.tuning.of(PolicyKind::Chwbl);
    notes(&["prefixCharLength is in characters; here a token stood for chars_per_token of them."])
        + &format!(
            "apiVersion: kubeai.org/v1
kind: Model
metadata:
  name: model
spec:
  # url, features, engine, resourceProfile: …
  minReplicas: {replicas}
  maxReplicas: {replicas}
  loadBalancing:
    strategy: PrefixHash
    prefixHash:
      meanLoadFactor: {}  # load_factor {} in percent
      replication: {}     # vnodes
      prefixCharLength: {}
",
            (100.0 * own.real("load_factor")).round(),
            own.real("load_factor"),
            own.real("vnodes"),
            own.real("prefix_chars"),
            replicas = config.replicas,
        )
}
