//! The floor under the engine's time: the matrix products that it cannot do without, alone.
//!
//! Everything here that knows the kernels is in this file.

use warmroute::model::ModelConfig;
use warmroute::model::kernels::{Output, PackedMatrix};

use super::common::Work;

/// Rows taken through a matrix at once, as the engine does it.
const TILE_ROWS: usize = 64;

/// One layer's matrices.
struct Layer {
    query: PackedMatrix,
    key_value: PackedMatrix,
    attention_out: PackedMatrix,
    gate: PackedMatrix,
    up: PackedMatrix,
    down: PackedMatrix,
}

/// Matrices of the model's shapes, and somewhere to read rows from and write them to.
pub struct Floor {
    config: ModelConfig,
    layers: Vec<Layer>,
    head: PackedMatrix,
    input: Vec<f32>,
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
                query: matrix(hidden, hidden),
                key_value: matrix(hidden, 2 * kv),
                attention_out: matrix(hidden, hidden),
                gate: matrix(hidden, ffn),
                up: matrix(hidden, ffn),
                down: matrix(ffn, hidden),
            })
            .collect();
        let widest = ffn.max(config.vocab_size);
        Floor {
            config: config.clone(),
            layers,
            head: matrix(hidden, config.vocab_size),
            input: floats(0, TILE_ROWS * widest),
            output: vec![0.0; TILE_ROWS * widest],
        }
    }

    /// Bytes of the model's weights: these matrices, and the embedding and the norms beside them.
    pub fn weight_bytes(&self) -> usize {
        let hidden = self.config.hidden();
        let plain = (self.config.vocab_size + 2 * self.config.layers + 1) * hidden * size_of::<f32>();
        let layers = self.layers.iter().flat_map(Layer::all).map(PackedMatrix::bytes);
        plain + self.head.bytes() + layers.sum::<usize>()
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
        let mut sum = multiplied(&self.head) * sampled as f64;
        for (i, layer) in self.layers.iter().enumerate() {
            let last = i + 1 == self.layers.len();
            let keys_and_values = multiplied(&layer.key_value);
            let rest = layer.all().map(multiplied).iter().sum::<f64>() - keys_and_values;
            sum += keys_and_values * rows as f64 + rest * if last { sampled } else { rows } as f64;
        }
        2.0 * sum
    }

    fn tile(&mut self, rows: usize, sampled: usize) {
        for (i, layer) in self.layers.iter().enumerate() {
            multiply(&layer.key_value, rows, &self.input, &mut self.output, Output::Set);
            let rows = if i + 1 == self.layers.len() { sampled } else { rows };
            for (matrix, output) in [
                (&layer.query, Output::Set),
                (&layer.attention_out, Output::Add),
                (&layer.gate, Output::Set),
                (&layer.up, Output::Set),
                (&layer.down, Output::Add),
            ] {
                multiply(matrix, rows, &self.input, &mut self.output, output);
            }
        }
        multiply(&self.head, sampled, &self.input, &mut self.output, Output::Set);
    }
}

impl Layer {
    fn all(&self) -> [&PackedMatrix; 6] {
        [&self.query, &self.key_value, &self.attention_out, &self.gate, &self.up, &self.down]
    }
}

fn multiply(matrix: &PackedMatrix, rows: usize, input: &[f32], out: &mut [f32], output: Output) {
    if rows > 0 {
        matrix.multiply(&input[..rows * matrix.depth()], &mut out[..rows * matrix.columns()], output);
    }
}

/// Floats in −0.1..0.1: what they are does not matter, as long as none is so small that it is slow.
fn floats(seed: u64, count: usize) -> Vec<f32> {
    let mut state = 2 * seed + 1;
    let mut next = || {
        state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x9E37_79B9);
        ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * 0.1
    };
    (0..count).map(|_| next()).collect()
}
