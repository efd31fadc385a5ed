//! The floor under the engine's time: the matrix products that it cannot do without, alone.
//!
//! Everything here that knows the kernels is in this file.

use std::ops::Range;

use warmroute::model::ModelConfig;
use warmroute::model::kernels::{Input, LANES, PackedMatrix};

use super::common::Work;

/// Rows taken through a matrix at once, as the engine does it.
const TILE_ROWS: usize = 64;

/// One layer's matrices.
struct Layer {
    query_key_value: PackedMatrix,
    attention_out: PackedMatrix,
    gate_up: PackedMatrix,
    down: PackedMatrix,
}

/// Rows to read, ready for a matrix: that they are rounded for it is no part of a product.
#[derive(Default)]
struct Inputs(Vec<((usize, usize), Input)>);

impl Inputs {
    /// `rows` rows for a matrix, made when first asked for; matrices of one depth share them. `even` as the engine
    /// rounds them.
    fn of(&mut self, rows: usize, matrix: &PackedMatrix, even: bool) -> &Input {
        let shape = (rows, matrix.depth());
        let known = self.0.iter().position(|(other, _)| *other == shape);
        let index = known.unwrap_or_else(|| {
            let mut input = Input::default();
            input.floats_mut(rows, matrix.depth()).copy_from_slice(&floats(0, rows * matrix.depth()));
            self.0.push((shape, input));
            self.0.len() - 1
        });
        let input = &mut self.0[index].1;
        if even {
            input.round_even_for(matrix);
        } else {
            input.round_for(matrix);
        }
        input
    }
}

/// Matrices of the model's shapes, and somewhere to read rows from and write them to.
pub struct Floor {
    config: ModelConfig,
    layers: Vec<Layer>,
    head: PackedMatrix,
    inputs: Inputs,
    output: Vec<f32>,
}

impl Floor {
    /// Matrices for a model.
    pub fn new(config: &ModelConfig) -> Floor {
        let (hidden, kv, ffn) = (config.hidden(), config.kv_width(), config.ffn());
        let mut seed = 0;
        let mut matrix = |depth: usize, columns: usize| {
            seed += 1;
            PackedMatrix::from_rows(&floats(seed, depth * columns), depth, columns)
        };
        let layers = (0..config.layers)
            .map(|_| Layer {
                query_key_value: matrix(hidden, hidden + 2 * kv),
                attention_out: matrix(hidden, hidden),
                gate_up: matrix(hidden, 2 * ffn),
                down: matrix(ffn, hidden),
            })
            .collect();
        let head =
            PackedMatrix::as_floats(&floats(seed + 1, hidden * config.vocab_size), hidden, config.vocab_size);
        let widest = (2 * ffn).max(config.vocab_size);
        Floor {
            config: config.clone(),
            layers,
            head,
            inputs: Inputs::default(),
            output: vec![0.0; TILE_ROWS * widest],
        }
    }

    /// The products of one pass.
    ///
    /// The last layer computes keys and values for every row, the rest and the head only for rows that are sampled:
    /// the last of a prompt, every one of a decode.
    pub fn pass(&mut self, work: Work) {
        match work {
            Work::Prefill(tokens) => {
                for start in (0..tokens).step_by(TILE_ROWS) {
                    let rows = TILE_ROWS.min(tokens - start);
                    self.tile(rows, usize::from(start + rows == tokens));
                }
            }
            Work::Decode { batch, .. } => self.tile(batch, batch),
        }
    }

    /// The floating-point operations of such a pass.
    pub fn flops(&self, work: Work) -> f64 {
        let (rows, sampled) = match work {
            Work::Prefill(tokens) => (tokens, 1),
            Work::Decode { batch, .. } => (batch, batch),
        };
        let multiplied = |matrix: &PackedMatrix| (matrix.depth() * matrix.columns()) as f64;
        let keys_and_values = (self.config.hidden() * 2 * self.config.kv_width()) as f64;
        let mut sum = multiplied(&self.head) * sampled as f64;
        for (i, layer) in self.layers.iter().enumerate() {
            let last = i + 1 == self.layers.len();
            let all = [&layer.query_key_value, &layer.attention_out, &layer.gate_up, &layer.down];
            let rest = all.map(multiplied).iter().sum::<f64>() - keys_and_values;
            sum += keys_and_values * rows as f64 + rest * if last { sampled } else { rows } as f64;
        }
        2.0 * sum
    }

    fn tile(&mut self, rows: usize, sampled: usize) {
        let Floor { layers, head, inputs, output, config } = self;
        let queries = config.hidden() / LANES;
        let mut product = |matrix: &PackedMatrix, panels: Range<usize>, rows: usize| {
            let columns = (panels.end * LANES).min(matrix.columns()) - panels.start * LANES;
            if rows > 0 {
                let even = matrix.depth() == config.hidden(); // All but the MLP's inner activations.
                matrix.multiply(panels, inputs.of(rows, matrix, even), &mut output[..rows * columns]);
            }
        };
        for (i, layer) in layers.iter().enumerate() {
            let all = &layer.query_key_value;
            let rows = if i + 1 < config.layers || rows == sampled {
                product(all, 0..all.panels(), rows);
                rows
            } else {
                product(all, queries..all.panels(), rows);
                product(all, 0..queries, sampled);
                sampled
            };
            for matrix in [&layer.attention_out, &layer.gate_up, &layer.down] {
                product(matrix, 0..matrix.panels(), rows);
            }
        }
        product(head, 0..head.panels(), sampled);
    }
}

/// Whole multiples of 2⁻¹⁰ in −0.1..0.1, a byte each like the model's weights; which ones does not matter.
fn floats(seed: u64, count: usize) -> Vec<f32> {
    let mut state = 2 * seed + 1;
    let mut next = || {
        state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x9E37_79B9);
        ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 102.0
    };
    (0..count).map(|_| next().round() / 1024.0).collect()
}
