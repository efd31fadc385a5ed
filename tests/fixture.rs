//! A small checkpoint and the outputs expected of it: ours should agree.
#![cfg(not(target_arch = "wasm32"))]

use serde_json::Value;
use warmroute::kv::BlockId;
use warmroute::kv::store::KvStore;
use warmroute::model::{ModelConfig, Scratch, Slice, TinyGpt, Token};

/// The expected outputs, as the fixture's JSON gives them.
struct Expected {
    config: ModelConfig,
    tokens: Vec<Token>,
    last_logits: Vec<f64>,
    norms: Vec<f64>,
    best: Vec<Token>,
    greedy: Vec<Token>,
}

fn floats(value: &Value) -> Vec<f64> {
    let list = value.as_array().expect("a list of numbers");
    list.iter().map(|x| x.as_f64().expect("a number")).collect()
}

fn tokens(value: &Value) -> Vec<Token> {
    floats(value).into_iter().map(|x| x as Token).collect()
}

fn load() -> (TinyGpt, Expected) {
    let json: Value =
        serde_json::from_str(include_str!("fixtures/tinygpt/expected.json")).expect("the fixture is JSON");
    let size = |field: &str| json["config"][field].as_u64().expect("a size") as usize;
    let config = ModelConfig {
        vocab_size: size("vocab_size"),
        layers: size("n_layers"),
        heads: size("n_heads"),
        kv_heads: size("n_kv_heads"),
        head_dim: size("head_dim"),
        ffn_mult: size("ffn_mult"),
        norm_eps: json["config"]["norm_eps"].as_f64().expect("a number") as f32,
        rope_theta: json["config"]["rope_theta"].as_f64().expect("a number"),
        positions: 128,
    };
    let bytes = include_bytes!("fixtures/tinygpt/model.safetensors");
    let model = TinyGpt::from_safetensors(bytes, config.clone()).expect("the fixture loads");
    let expected = Expected {
        config,
        tokens: tokens(&json["tokens"]),
        last_logits: floats(&json["last_logits"]),
        norms: floats(&json["logits_l2_per_position"]),
        best: tokens(&json["argmax_per_position"]),
        greedy: tokens(&json["greedy_continuation"]),
    };
    (model, expected)
}

fn best(logits: &[f32]) -> Token {
    let mut best = 0;
    for (i, logit) in logits.iter().enumerate() {
        if *logit > logits[best] {
            best = i;
        }
    }
    best as Token
}

/// Continues a sequence greedily whose last token's logits are in `scratch`.
fn continue_greedily(
    model: &TinyGpt,
    store: &mut KvStore,
    scratch: &mut Scratch,
    blocks: &[BlockId],
    start: usize,
    count: usize,
) -> Vec<Token> {
    let mut out = vec![best(scratch.logits(0))];
    while out.len() < count {
        let position = start + out.len() - 1;
        let slice = Slice { tokens: &out[out.len() - 1..], start: position, blocks, sampled: true };
        model.forward(store, scratch, &[slice]);
        out.push(best(scratch.logits(0)));
    }
    out
}

#[test]
fn the_last_logits_match() {
    let (model, expected) = load();
    let mut store = KvStore::new(&expected.config, 16);
    let mut scratch = Scratch::new();
    let slice = Slice { tokens: &expected.tokens, start: 0, blocks: &[0, 1, 2, 3], sampled: true };
    model.forward(&mut store, &mut scratch, &[slice]);
    let worst = scratch
        .logits(0)
        .iter()
        .zip(&expected.last_logits)
        .map(|(got, want)| (f64::from(*got) - want).abs())
        .fold(0.0, f64::max);
    assert_eq!(scratch.logits(0).len(), expected.last_logits.len());
    assert!(worst < 1e-4, "worst difference {worst}");
}

#[test]
fn every_position_matches() {
    let (model, expected) = load();
    let mut store = KvStore::new(&expected.config, 7);
    let mut scratch = Scratch::new();
    let blocks: Vec<BlockId> = (0..10).rev().collect();
    // One slice a token, all over one table: each attends to those before it in the same pass.
    let slices: Vec<Slice<'_>> = (0..expected.tokens.len())
        .map(|i| Slice { tokens: &expected.tokens[i..=i], start: i, blocks: &blocks, sampled: true })
        .collect();
    model.forward(&mut store, &mut scratch, &slices);
    for i in 0..slices.len() {
        let logits = scratch.logits(i);
        let norm = logits.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>().sqrt();
        assert_eq!(best(logits), expected.best[i], "position {i}");
        assert!(
            (norm - expected.norms[i]).abs() < 1e-4,
            "position {i}: {norm} against {}",
            expected.norms[i]
        );
    }
}

#[test]
fn greedy_decoding_matches_after_a_whole_prefill() {
    let (model, expected) = load();
    let mut store = KvStore::new(&expected.config, 16);
    let mut scratch = Scratch::new();
    let blocks = [3, 0, 4, 1, 2];
    let slice = Slice { tokens: &expected.tokens, start: 0, blocks: &blocks, sampled: true };
    model.forward(&mut store, &mut scratch, &[slice]);
    let (start, count) = (expected.tokens.len(), expected.greedy.len());
    let out = continue_greedily(&model, &mut store, &mut scratch, &blocks, start, count);
    assert_eq!(out, expected.greedy);
}

#[test]
fn greedy_decoding_matches_after_a_cached_prefix() {
    let (model, expected) = load();
    let mut store = KvStore::new(&expected.config, 16);
    let mut scratch = Scratch::new();
    // Another sequence computes the first 32 tokens; this one holds its two blocks and computes the rest.
    let (prefix, rest) = expected.tokens.split_at(32);
    model.forward(
        &mut store,
        &mut scratch,
        &[Slice { tokens: prefix, start: 0, blocks: &[5, 6], sampled: true }],
    );
    let blocks = [5, 6, 0, 1, 2];
    model.forward(
        &mut store,
        &mut scratch,
        &[Slice { tokens: rest, start: 32, blocks: &blocks, sampled: true }],
    );
    let (start, count) = (expected.tokens.len(), expected.greedy.len());
    let out = continue_greedily(&model, &mut store, &mut scratch, &blocks, start, count);
    assert_eq!(out, expected.greedy);
}
