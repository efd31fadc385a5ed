//! Times the forward pass by hand: `cargo run --release --example forward`.
//!
//! In wasm, under node: build the example with `--target wasm32-unknown-unknown`, then
//! `wasm-bindgen --target nodejs --out-dir /tmp/forward target/wasm32-unknown-unknown/release/examples/forward.wasm`
//! and `node /tmp/forward/forward.js`.

use warmroute::kv::BlockId;
use warmroute::kv::store::KvStore;
use warmroute::model::{ModelConfig, Scratch, Slice, TinyGpt, Token};

/// Repetitions of each measurement; the fastest is printed.
const TIMES: usize = 10;
const CONTEXT: usize = 432;

fn main() {
    let config = ModelConfig::default();
    let start = now();
    let model = TinyGpt::random(config.clone(), 1);
    print(&format!("random weights: {:.0} ms", (now() - start) * 1e3));

    let mut store = KvStore::new(&config, 16);
    let mut scratch = Scratch::new();
    let tokens: Vec<Token> = (0..CONTEXT as u32 + 1).map(|i| (i * 37 + 11) % 260).collect();
    let table = |sequence: u32| -> Vec<BlockId> { (0..32).map(|block| sequence * 32 + block).collect() };
    let head = 2 * (config.vocab_size * config.hidden()) as u64;

    for length in [1, 16, 64, CONTEXT] {
        let blocks = table(0);
        let slice = Slice { tokens: &tokens[..length], start: 0, blocks: &blocks, sampled: true };
        let seconds = fastest(|| model.forward(&mut store, &mut scratch, &[slice]));
        let attention: u64 = (1..=length).map(|context| config.attention_flops(context)).sum();
        let flops = length as u64 * config.flops_per_token() + attention + head;
        report(&format!("prefill {length}"), seconds, flops, length);
    }
    for batch in [1u32, 2, 3, 4, 8, 16] {
        let tables: Vec<_> = (0..batch).map(table).collect();
        for blocks in &tables {
            let slice = Slice { tokens: &tokens[..CONTEXT], start: 0, blocks, sampled: true };
            model.forward(&mut store, &mut scratch, &[slice]);
        }
        let slices: Vec<_> = tables
            .iter()
            .map(|blocks| Slice { tokens: &tokens[CONTEXT..], start: CONTEXT, blocks, sampled: true })
            .collect();
        let seconds = fastest(|| model.forward(&mut store, &mut scratch, &slices));
        let row = config.flops_per_token() + config.attention_flops(CONTEXT + 1) + head;
        report(&format!("decode {batch} at {CONTEXT}"), seconds, u64::from(batch) * row, batch as usize);
    }
    print(&format!("store: {} bytes, scratch: {} bytes", store.bytes_used(), scratch.bytes()));
}

/// Seconds since some moment, by the best clock at hand.
#[cfg(not(target_arch = "wasm32"))]
#[allow(clippy::disallowed_methods, reason = "a stop-watch outside the core")]
fn now() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// Seconds since some moment, by the JavaScript host's `performance`.
#[cfg(target_arch = "wasm32")]
fn now() -> f64 {
    let ms = js_sys::eval("performance.now()").expect("every host has performance");
    ms.as_f64().expect("a time is a number") * 1e-3
}

#[cfg(not(target_arch = "wasm32"))]
fn print(line: &str) {
    println!("{line}");
}

#[cfg(target_arch = "wasm32")]
fn print(line: &str) {
    js_sys::eval(&format!("console.log({line:?})")).expect("every host has a console");
}

/// Seconds of the fastest of several runs.
fn fastest(mut run: impl FnMut()) -> f64 {
    let times = (0..TIMES).map(|_| {
        let start = now();
        run();
        now() - start
    });
    times.fold(f64::INFINITY, f64::min)
}

/// Prints one measurement. The last layer of a prefill computes one row, so its rate counts work that is not done.
fn report(what: &str, seconds: f64, flops: u64, tokens: usize) {
    let (ms, rate) = (seconds * 1e3, flops as f64 / seconds * 1e-9);
    print(&format!("{what:16} {ms:8.2} ms {:8.3} ms/token {rate:6.1} GFLOP/s", ms / tokens as f64));
}
