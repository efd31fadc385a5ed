//! TinyGPT against a slow model in f64, written here from its definition; and to the bit against itself, however a
//! prompt is split, batched and laid out in blocks.
#![cfg(not(target_arch = "wasm32"))]

use proptest::prelude::*;
use warmroute::kv::BlockId;
use warmroute::kv::store::KvStore;
use warmroute::model::weights::{Role, TensorId, random_tensor};
use warmroute::model::{ModelConfig, Scratch, Slice, TinyGpt, Token};

/// The same decoder in f64, one token at a time, with lists of keys and values that only grow.
struct Plain {
    config: ModelConfig,
    seed: u64,
}

type Matrix = Vec<Vec<f64>>;

impl Plain {
    fn tensor(&self, layer: usize, role: Role) -> Vec<f64> {
        random_tensor(&self.config, self.seed, TensorId { layer, role }).into_iter().map(f64::from).collect()
    }

    fn matrix(&self, layer: usize, role: Role) -> Matrix {
        let columns = TensorId { layer, role }.shape(&self.config)[1];
        self.tensor(layer, role).chunks_exact(columns).map(<[f64]>::to_vec).collect()
    }

    fn norm(&self, x: &[f64], weight: &[f64]) -> Vec<f64> {
        let mean = x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64;
        let root = (mean + f64::from(self.config.norm_eps)).sqrt();
        x.iter().zip(weight).map(|(x, w)| x / root * w).collect()
    }

    fn rotate(&self, head: &mut [f64], position: usize) {
        let half = head.len() / 2;
        for i in 0..half {
            let wavelength = libm::pow(self.config.rope_theta, 2.0 * i as f64 / head.len() as f64);
            let angle = position as f64 / wavelength;
            let (x, y) = (head[i], head[i + half]);
            head[i] = x * libm::cos(angle) - y * libm::sin(angle);
            head[i + half] = y * libm::cos(angle) + x * libm::sin(angle);
        }
    }

    /// The logits after every token.
    fn logits(&self, tokens: &[Token]) -> Matrix {
        let config = &self.config;
        let embedding = self.matrix(0, Role::Embedding);
        let mut stream: Matrix = tokens.iter().map(|&token| embedding[token as usize].clone()).collect();
        for layer in 0..config.layers {
            let [query, key, value, out, gate, up, down] =
                [Role::Query, Role::Key, Role::Value, Role::AttentionOut, Role::Gate, Role::Up, Role::Down]
                    .map(|role| self.matrix(layer, role));
            let attention_norm = self.tensor(layer, Role::AttentionNorm);
            let mlp_norm = self.tensor(layer, Role::MlpNorm);
            let (mut keys, mut values) = (Matrix::new(), Matrix::new());
            for (position, x) in stream.iter_mut().enumerate() {
                let normed = self.norm(x, &attention_norm);
                let (mut queries, mut own_keys) = (times(&query, &normed), times(&key, &normed));
                for head in queries.chunks_exact_mut(config.head_dim) {
                    self.rotate(head, position);
                }
                for head in own_keys.chunks_exact_mut(config.head_dim) {
                    self.rotate(head, position);
                }
                keys.push(own_keys);
                values.push(times(&value, &normed));
                let mut attended = Vec::new();
                for (head, query) in queries.chunks_exact(config.head_dim).enumerate() {
                    let shared = head / (config.heads / config.kv_heads) * config.head_dim;
                    let part = shared..shared + config.head_dim;
                    let scale = (config.head_dim as f64).sqrt();
                    let powers: Vec<f64> =
                        keys.iter().map(|k| libm::exp(dot(query, &k[part.clone()]) / scale)).collect();
                    let total: f64 = powers.iter().sum();
                    attended.extend(part.map(|i| {
                        powers.iter().zip(&values).map(|(power, v)| power * v[i]).sum::<f64>() / total
                    }));
                }
                add(x, &times(&out, &attended));
                let normed = self.norm(x, &mlp_norm);
                let (gate, up) = (times(&gate, &normed), times(&up, &normed));
                let opened: Vec<f64> =
                    gate.iter().zip(&up).map(|(g, u)| g / (1.0 + libm::exp(-g)) * u).collect();
                add(x, &times(&down, &opened));
            }
        }
        let (final_norm, head) = (self.tensor(0, Role::FinalNorm), self.matrix(0, Role::Head));
        stream.iter().map(|x| times(&head, &self.norm(x, &final_norm))).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn times(matrix: &Matrix, x: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, x)).collect()
}

fn add(x: &mut [f64], y: &[f64]) {
    x.iter_mut().zip(y).for_each(|(x, y)| *x += y);
}

fn tokens(config: &ModelConfig, seed: u32, count: usize) -> Vec<Token> {
    (0..count as u32).map(|i| (seed * 31 + i * i * 7 + i * 13 + 5) % config.vocab_size as u32).collect()
}

/// The largest difference from the f64 model over the logits of every position.
fn worst(config: &ModelConfig, seed: u64, count: usize) -> f64 {
    let model = TinyGpt::random(config.clone(), seed);
    let tokens = tokens(config, seed as u32, count);
    let blocks: Vec<BlockId> = (0..count.div_ceil(16) as BlockId).rev().collect();
    let slices: Vec<Slice<'_>> = (0..count)
        .map(|i| Slice { tokens: &tokens[i..=i], start: i, blocks: &blocks, sampled: true })
        .collect();
    let (mut store, mut scratch) = (KvStore::new(config, 16), Scratch::new());
    model.forward(&mut store, &mut scratch, &slices);
    let want = Plain { config: config.clone(), seed }.logits(&tokens);
    let differences = want.iter().enumerate().flat_map(|(i, want)| {
        scratch.logits(i).iter().zip(want).map(|(got, want)| (f64::from(*got) - want).abs())
    });
    differences.fold(0.0, f64::max)
}

#[test]
fn the_default_model_agrees_with_f64() {
    let worst = worst(&ModelConfig::default(), 1, 250);
    assert!(worst < 1e-4, "{worst}");
}

#[test]
fn other_shapes_agree_with_f64() {
    let shape = |heads, kv_heads, head_dim, layers| ModelConfig {
        vocab_size: 37,
        layers,
        heads,
        kv_heads,
        head_dim,
        ffn_mult: 3,
        positions: 256,
        ..ModelConfig::default()
    };
    for config in [shape(1, 1, 8, 1), shape(6, 2, 8, 3), shape(10, 2, 16, 2), shape(5, 5, 24, 2)] {
        let worst = worst(&config, 7, 150);
        assert!(worst < 1e-4, "{config:?}: {worst}");
    }
}

/// A small model; its prompts are long enough to cross tiles of attention and of rows.
fn small() -> ModelConfig {
    ModelConfig {
        vocab_size: 41,
        layers: 2,
        heads: 4,
        kv_heads: 2,
        head_dim: 8,
        ffn_mult: 2,
        positions: 256,
        ..ModelConfig::default()
    }
}

fn bits(logits: &[f32]) -> Vec<u32> {
    logits.iter().map(|x| x.to_bits()).collect()
}

/// One sequence of a random case: its prompt's length, where it is cut into passes, and which blocks it has.
#[derive(Clone, Debug)]
struct Case {
    length: usize,
    cuts: Vec<usize>,
    blocks: Vec<BlockId>,
}

fn cases() -> impl Strategy<Value = (usize, Vec<Case>)> {
    (1usize..=20, 1usize..=5).prop_flat_map(|(block_size, count)| {
        let needed = 200usize.div_ceil(block_size);
        let table = Just((0..(needed * count) as BlockId).collect::<Vec<_>>()).prop_shuffle();
        let sequences =
            prop::collection::vec((1usize..=200, prop::collection::vec(0usize..200, 0..4)), count);
        (table, sequences).prop_map(move |(table, sequences)| {
            let tables = table.chunks(needed).map(<[BlockId]>::to_vec);
            let cases = sequences.into_iter().zip(tables).map(|((length, mut cuts), blocks)| {
                cuts.retain(|&cut| cut > 0 && cut < length);
                cuts.push(length);
                cuts.sort_unstable();
                cuts.dedup();
                Case { length, cuts, blocks }
            });
            (block_size, cases.collect())
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Any split of a prompt into cached prefix and rest, any batch, any block table: the same bits.
    #[test]
    fn no_split_batch_or_table_changes_a_bit((block_size, cases) in cases()) {
        let config = small();
        let model = TinyGpt::random(config.clone(), 3);
        let prompts: Vec<_> = (0..cases.len()).map(|i| tokens(&config, i as u32, cases[i].length)).collect();
        let mut store = KvStore::new(&config, block_size);
        let mut scratch = Scratch::new();
        let mut got = vec![Vec::new(); cases.len()];
        let passes = cases.iter().map(|case| case.cuts.len()).max().unwrap_or(0);
        for pass in 0..passes {
            // Every sequence that still has a part, in one batch.
            let batch: Vec<usize> = (0..cases.len()).filter(|&i| pass < cases[i].cuts.len()).collect();
            let slices: Vec<Slice<'_>> = batch
                .iter()
                .map(|&i| {
                    let start = if pass == 0 { 0 } else { cases[i].cuts[pass - 1] };
                    let end = cases[i].cuts[pass];
                    Slice {
                        tokens: &prompts[i][start..end],
                        start,
                        blocks: &cases[i].blocks,
                        sampled: end == cases[i].length,
                    }
                })
                .collect();
            model.forward(&mut store, &mut scratch, &slices);
            for (index, &i) in batch.iter().enumerate() {
                got[i] = bits(scratch.logits(index));
            }
        }
        for (i, prompt) in prompts.iter().enumerate() {
            let mut store = KvStore::new(&config, 16);
            let blocks: Vec<BlockId> = (0..13).collect();
            let slice = Slice { tokens: prompt, start: 0, blocks: &blocks, sampled: true };
            model.forward(&mut store, &mut scratch, &[slice]);
            prop_assert_eq!(&got[i], &bits(scratch.logits(0)), "sequence {}", i);
        }
    }
}
