//! The model's bits are the same natively and in wasm: one checksum, asserted on both.

use warmroute::engine::sampling::{Sampling, sample};
use warmroute::kv::store::KvStore;
use warmroute::model::{ModelConfig, Scratch, Slice, TinyGpt, Token};

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

/// FNV-1a over the bits of what TinyGPT computes from a few prompts.
const CHECKSUM: u64 = 0x2e4c48bedad23dfb;
/// The tokens drawn after them.
const DRAWN: [Token; 6] = [140, 132, 235, 114, 217, 9];

/// Hashes floats by their bits.
fn hash(state: u64, floats: &[f32]) -> u64 {
    floats.iter().fold(state, |hash, x| (hash ^ u64::from(x.to_bits())).wrapping_mul(0x0000_0100_0000_01B3))
}

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn logits_keys_and_draws_have_pinned_bits() {
    let model = TinyGpt::random(ModelConfig::default(), 1);
    let mut store = KvStore::new(model.config(), 16);
    let mut scratch = Scratch::new();
    let tokens: Vec<Token> = (0..19).map(|i| (i * 37 + 11) % 260).collect();
    let slices = [
        Slice { tokens: &tokens, start: 0, blocks: &[3, 1], sampled: true },
        Slice { tokens: &tokens[7..10], start: 0, blocks: &[0], sampled: true },
    ];
    model.forward(&mut store, &mut scratch, &slices);

    let warm = Sampling { temperature: 0.9, top_k: Some(40), top_p: Some(0.95), seed: 5 };
    let mut state = 0xCBF2_9CE4_8422_2325;
    let mut drawn = Vec::new();
    for step in 0..3 {
        let mut next = [0; 2];
        for (request, token) in next.iter_mut().enumerate() {
            state = hash(state, scratch.logits(request));
            *token = sample(scratch.logits(request), &warm, request as u64, step, &mut Vec::new());
            drawn.push(*token);
        }
        let step = step as usize;
        let slices = [
            Slice { tokens: &next[..1], start: 19 + step, blocks: &[3, 1], sampled: true },
            Slice { tokens: &next[1..], start: 3 + step, blocks: &[0], sampled: true },
        ];
        model.forward(&mut store, &mut scratch, &slices);
    }
    for layer in 0..6 {
        let (keys, values) = store.read(1, layer, 5).expect("position 21 was written");
        state = hash(hash(state, &keys), &values);
    }
    assert_eq!(drawn, DRAWN);
    assert_eq!(state, CHECKSUM, "{state:#018x}");
}
