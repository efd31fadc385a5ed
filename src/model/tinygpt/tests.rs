//! Tests that results are the same to the bit however a sequence is cut into slices, passes, batches and blocks.

use super::*;
use crate::model::weights::{Role, TensorId};

const LENGTHS: [usize; 6] = [1, 15, 16, 17, 100, 433];
const BLOCK_SIZES: [usize; 3] = [1, 7, 16];

/// Small enough for an unoptimised build; heads of 8 in groups of `heads / 2`.
fn small(heads: usize) -> ModelConfig {
    ModelConfig {
        vocab_size: 29,
        layers: 2,
        heads,
        kv_heads: 2,
        head_dim: 8,
        ffn_mult: 2,
        positions: 512,
        ..ModelConfig::default()
    }
}

/// A repeatable prompt; different seeds differ from the first token on.
fn prompt(config: &ModelConfig, seed: u32, length: usize) -> Vec<Token> {
    let size = config.vocab_size as u32;
    (0..length as u32).map(|i| (seed * 5 + i * i * 7 + i * 11 + 3) % size).collect()
}

/// A block table for 440 tokens: blocks of a common pool, scattered; tables of different sequences share none.
fn table(block_size: usize, sequence: usize) -> Vec<BlockId> {
    let count = 440usize.div_ceil(block_size);
    // 3001 is prime and more than six tables need, so the multiples do not repeat.
    (0..count).map(|i| ((sequence * count + i) * 7 % 3001) as BlockId).collect()
}

/// What a sequence leaves behind, as bits: its last logits, and every layer's keys and values at every position.
#[derive(PartialEq)]
struct Trace {
    logits: Vec<u32>,
    cache: Vec<u32>,
}

fn bits(floats: &[f32]) -> impl Iterator<Item = u32> {
    floats.iter().map(|x| x.to_bits())
}

fn trace(model: &TinyGpt, store: &KvStore, logits: &[f32], blocks: &[BlockId], length: usize) -> Trace {
    let mut cache = Vec::new();
    for position in 0..length {
        let (block, slot) = (blocks[position / store.block_size()], position % store.block_size());
        for layer in 0..model.config.layers {
            let (keys, values) = store.read(block, layer, slot).expect("it was written");
            cache.extend(bits(&keys).chain(bits(&values)));
        }
    }
    Trace { logits: bits(logits).collect(), cache }
}

/// Computes one sequence alone, in passes of the given lengths.
fn in_passes(
    model: &TinyGpt,
    tokens: &[Token],
    block_size: usize,
    sequence: usize,
    passes: &[usize],
) -> Trace {
    let mut store = KvStore::new(&model.config, block_size);
    let mut scratch = Scratch::new();
    let blocks = table(block_size, sequence);
    let mut start = 0;
    for &length in passes {
        let slice = Slice { tokens: &tokens[start..start + length], start, blocks: &blocks, sampled: true };
        model.forward(&mut store, &mut scratch, &[slice]);
        start += length;
    }
    assert_eq!(start, tokens.len(), "the passes cover the prompt");
    trace(model, &store, scratch.logits(0), &blocks, start)
}

fn at_once(model: &TinyGpt, tokens: &[Token]) -> Trace {
    in_passes(model, tokens, 16, 0, &[tokens.len()])
}

#[test]
fn block_size_and_table_change_nothing() {
    for heads in [2, 4, 6, 8, 10] {
        let model = TinyGpt::random(small(heads), 3);
        // Every length with one grouping; the others differ only in how many heads are computed at once.
        let lengths = if heads == 8 { &LENGTHS[..] } else { &[17, 40] };
        for &length in lengths {
            let tokens = prompt(&model.config, 0, length);
            let want = at_once(&model, &tokens);
            for block_size in BLOCK_SIZES {
                let got = in_passes(&model, &tokens, block_size, 2, &[length]);
                assert!(got == want, "{heads} heads, {length} tokens, blocks of {block_size}");
            }
        }
    }
}

#[test]
fn a_cached_prefix_changes_nothing() {
    let model = TinyGpt::random(small(4), 4);
    for length in LENGTHS {
        let tokens = prompt(&model.config, 1, length);
        let want = at_once(&model, &tokens);
        for block_size in BLOCK_SIZES {
            // Every block boundary of a short prompt, a few of a long one.
            let boundaries = (length - 1) / block_size;
            for boundary in (1..=boundaries).step_by(boundaries.div_ceil(4).max(1)) {
                let prefix = boundary * block_size;
                let got = in_passes(&model, &tokens, block_size, 1, &[prefix, length - prefix]);
                assert!(got == want, "{length} tokens, blocks of {block_size}, {prefix} of them cached");
            }
        }
    }
}

#[test]
fn token_by_token_changes_nothing() {
    let model = TinyGpt::random(small(4), 5);
    for length in LENGTHS {
        let tokens = prompt(&model.config, 2, length);
        let want = at_once(&model, &tokens);
        for block_size in BLOCK_SIZES {
            let got = in_passes(&model, &tokens, block_size, 0, &vec![1; length]);
            assert!(got == want, "{length} tokens, blocks of {block_size}");
        }
    }
}

#[test]
fn a_batch_changes_nothing() {
    let model = TinyGpt::random(small(4), 6);
    let prompts: Vec<_> = (0..6).map(|i| prompt(&model.config, i as u32, LENGTHS[i])).collect();
    let wanted: Vec<_> = prompts.iter().map(|prompt| at_once(&model, prompt)).collect();
    for block_size in BLOCK_SIZES {
        let tables: Vec<_> = (0..6).map(|i| table(block_size, i)).collect();
        // Batches of all sequences, in both orders: prefill all but the last two tokens, then decode both.
        for reversed in [false, true] {
            let mut order: Vec<usize> = (0..6).collect();
            if reversed {
                order.reverse();
            }
            let mut store = KvStore::new(&model.config, block_size);
            let mut scratch = Scratch::new();
            let cut = |i: usize| prompts[i].len().saturating_sub(2);
            let prefill: Vec<_> = order
                .iter()
                .filter(|&&i| cut(i) > 0)
                .map(|&i| Slice {
                    tokens: &prompts[i][..cut(i)],
                    start: 0,
                    blocks: &tables[i],
                    sampled: true,
                })
                .collect();
            model.forward(&mut store, &mut scratch, &prefill);
            for step in 0..2 {
                let decode: Vec<_> = order
                    .iter()
                    .filter(|&&i| cut(i) + step < prompts[i].len())
                    .map(|&i| {
                        let start = cut(i) + step;
                        Slice { tokens: &prompts[i][start..=start], start, blocks: &tables[i], sampled: true }
                    })
                    .collect();
                model.forward(&mut store, &mut scratch, &decode);
                let running = order.iter().filter(|&&i| cut(i) + step < prompts[i].len());
                for (index, &i) in running.enumerate() {
                    if cut(i) + step + 1 < prompts[i].len() {
                        continue;
                    }
                    let length = prompts[i].len();
                    let got = trace(&model, &store, scratch.logits(index), &tables[i], length);
                    assert!(
                        got == wanted[i],
                        "{length} tokens, blocks of {block_size}, reversed: {reversed}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_slice_may_attend_to_what_an_earlier_one_computes() {
    let model = TinyGpt::random(small(8), 7);
    let tokens = prompt(&model.config, 3, 200);
    let want = at_once(&model, &tokens);
    let mut store = KvStore::new(&model.config, 16);
    let mut scratch = Scratch::new();
    // The second sequence shares the first ten blocks of the first and computes its own from there.
    let first = table(16, 0);
    let mut second = table(16, 1);
    second[..10].copy_from_slice(&first[..10]);
    let slices = [
        Slice { tokens: &tokens[..170], start: 0, blocks: &first, sampled: true },
        Slice { tokens: &tokens[160..], start: 160, blocks: &second, sampled: true },
    ];
    model.forward(&mut store, &mut scratch, &slices);
    assert!(trace(&model, &store, scratch.logits(1), &second, 200) == want);
}

#[test]
fn the_default_model_is_batch_invariant_too() {
    let model = TinyGpt::random(ModelConfig::default(), 1);
    let tokens = prompt(&model.config, 4, 18);
    let want = at_once(&model, &tokens);
    assert!(in_passes(&model, &tokens, 7, 1, &[7, 8, 1, 2]) == want);
    assert!(want.logits.iter().all(|&logit| f32::from_bits(logit).is_finite()));
    let spread = want.logits.iter().map(|&l| f32::from_bits(l) * f32::from_bits(l)).sum::<f32>() / 260.0;
    assert!((0.5..2.0).contains(&spread), "logits have about unit variance: {spread}");
}

#[test]
fn a_steady_state_allocates_nothing() {
    let model = TinyGpt::random(small(8), 8);
    let tokens = prompt(&model.config, 5, 100);
    let blocks = table(16, 0);
    let mut store = KvStore::new(&model.config, 16);
    let mut scratch = Scratch::new();
    let mut run = || {
        let prefill = Slice { tokens: &tokens[..99], start: 0, blocks: &blocks, sampled: true };
        model.forward(&mut store, &mut scratch, &[prefill]);
        let decode = Slice { tokens: &tokens[99..], start: 99, blocks: &blocks, sampled: true };
        model.forward(&mut store, &mut scratch, &[decode]);
        (store.bytes_used(), scratch.bytes())
    };
    let first = run();
    assert_eq!(run(), first);
}

#[test]
fn seeds_and_prompts_matter() {
    let config = small(8);
    let model = TinyGpt::random(config.clone(), 1);
    let tokens = prompt(&config, 0, 20);
    let want = at_once(&model, &tokens);
    assert!(at_once(&TinyGpt::random(config.clone(), 2), &tokens).logits != want.logits);
    let mut changed = tokens.clone();
    changed[0] = (changed[0] + 1) % 29;
    assert!(at_once(&model, &changed).logits != want.logits, "the first token reaches the last logits");
}

#[test]
fn what_cannot_be_computed_is_named() {
    let model = TinyGpt::random(small(2), 1);
    let good = Slice { tokens: &[1, 2], start: 0, blocks: &[0], sampled: true };
    let long = vec![1; 513];
    let blocks: Vec<BlockId> = (0..200).collect();
    let refused = |slice: Slice<'_>| {
        let error = model.check(4, &[good, slice]).expect_err("it cannot be computed");
        assert_eq!(error.slice, 1);
        error.to_string()
    };
    assert_eq!(model.check(4, &[good, good]), Ok(()));
    let said = refused(Slice { tokens: &[], ..good });
    assert_eq!(said, "sequence 1 of the pass: there is no token to compute; it should have at least one");
    let said = refused(Slice { tokens: &[3, 29], start: 2, ..good });
    assert_eq!(said, "sequence 1 of the pass: token 29 at position 3 is unknown; tokens go from 0 to 28");
    let said = refused(Slice { tokens: &long, blocks: &blocks, ..good });
    assert_eq!(said, "sequence 1 of the pass: 513 tokens are more than the model's 512 positions");
    let said = refused(Slice { tokens: &[1, 2, 3], start: 2, ..good });
    assert_eq!(said, "sequence 1 of the pass: its block table has room for 4 tokens; it should cover all 5");
}

#[test]
#[should_panic(expected = "token 29 at position 0 is unknown")]
fn a_pass_refuses_what_it_cannot_compute() {
    let model = TinyGpt::random(small(2), 1);
    let mut store = KvStore::new(&model.config, 4);
    let slice = Slice { tokens: &[29], start: 0, blocks: &[0], sampled: true };
    model.forward(&mut store, &mut Scratch::new(), &[slice]);
}

#[test]
fn a_checkpoint_of_random_tensors_is_the_random_model() {
    let config = small(4);
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    let source = |id: TensorId| {
        let tensor = crate::model::weights::random_tensor(&config, 6, id);
        let begin = data.len();
        data.extend(tensor.iter().flat_map(|x| x.to_le_bytes()));
        let entry = serde_json::json!({
            "dtype": "F32", "shape": id.shape(&config), "data_offsets": [begin, data.len()],
        });
        header.insert(id.to_string(), entry);
        Ok::<_, std::convert::Infallible>(Cow::Owned(tensor))
    };
    Weights::load(&config, source).expect("the source cannot fail");
    let header = serde_json::to_vec(&header).expect("a map is JSON");
    let file = [&(header.len() as u64).to_le_bytes()[..], &header, &data].concat();
    let loaded = TinyGpt::from_safetensors(&file, config.clone()).expect("the file is whole");
    let tokens = prompt(&config, 0, 30);
    assert!(at_once(&loaded, &tokens) == at_once(&TinyGpt::random(config, 6), &tokens));
    assert_eq!(TensorId { layer: 3, role: Role::Down }.to_string(), "model.layers.3.mlp.down_proj.weight");
}
