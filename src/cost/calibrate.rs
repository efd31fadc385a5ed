//! The price of a step, measured: TinyGPT's own passes under a stop-watch, and the constants that
//! explain them best.
//!
//! A stop-watch may be coarse (browsers blur theirs), so each pass is repeated until the total is
//! [`REPEAT`] times the stop-watch's grain. The fit is least squares of the *relative* error with no
//! constant below zero: a price of −3 ns a token would make long prompts free.

use serde::{Deserialize, Serialize};

use super::{PiecePrice, StepPrice};
use crate::engine::Piece;
use crate::kv::BlockId;
use crate::kv::store::KvStore;
use crate::model::{Scratch, Slice, TinyGpt};
use crate::trace::Token;

/// How many grains of the stop-watch one measurement lasts at least.
pub const REPEAT: f64 = 100.0;

/// One measurement: what was computed, and how long it took on average.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// What was computed.
    pub piece: Piece,
    /// Seconds a pass.
    pub seconds: f64,
    /// How many passes that is the mean of.
    pub passes: u32,
}

/// Constants, and how well they explain what was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The constants.
    pub price: PiecePrice,
    /// The largest relative error over the samples.
    pub worst: f64,
}

/// What a calibration found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The stop-watch's grain, in seconds.
    pub grain: f64,
    /// Prefills of several lengths.
    pub prefill: Vec<Sample>,
    /// Decodes of several batch sizes and contexts.
    pub decode: Vec<Sample>,
    /// The constants that explain them.
    pub price: StepPrice,
    /// The largest relative error of the prefills.
    pub prefill_worst: f64,
    /// The largest relative error of the decodes.
    pub decode_worst: f64,
}

const PREFILLS: [usize; 6] = [16, 48, 112, 224, 352, 480];
const DECODES: [(usize, usize); 9] =
    [(1, 64), (1, 448), (2, 256), (3, 448), (4, 64), (4, 448), (6, 256), (8, 64), (8, 448)];
const BLOCK_SIZE: usize = 16;

/// The shortest time that a stop-watch can tell from none, seen over a few of its ticks.
pub fn grain(seconds: &mut dyn FnMut() -> f64) -> f64 {
    let mut finest = f64::INFINITY;
    let mut before = seconds();
    for _ in 0..20 {
        let mut now = seconds();
        // A stop-watch that never moves would be asked for ever.
        for _ in 0..50_000_000 {
            if now > before {
                break;
            }
            now = seconds();
        }
        if now > before {
            finest = finest.min(now - before);
        }
        before = now;
    }
    finest
}

/// Runs `pass` until it has taken [`REPEAT`] grains in all; the mean seconds and how often it ran.
pub fn repeat(seconds: &mut dyn FnMut() -> f64, grain: f64, pass: &mut dyn FnMut()) -> (f64, u32) {
    pass();
    let mut batch = 1;
    loop {
        let start = seconds();
        for _ in 0..batch {
            pass();
        }
        let total = seconds() - start;
        if total >= REPEAT * grain || batch >= 1 << 20 {
            return (total / f64::from(batch), batch);
        }
        batch *= 2;
    }
}

/// Measures and fits. `progress` hears how many of how many measurements are done.
pub fn calibrate(
    model: &TinyGpt,
    seconds: &mut dyn FnMut() -> f64,
    progress: &mut dyn FnMut(usize, usize),
) -> Calibration {
    let of = PREFILLS.len() + DECODES.len();
    let grain = grain(seconds);
    let mut scratch = Scratch::default();
    let mut done = 0;
    let mut tick = || {
        done += 1;
        progress(done, of);
    };
    let mut prefill = Vec::new();
    for length in PREFILLS {
        let mut store = KvStore::new(model.config(), BLOCK_SIZE);
        let tokens = text(length);
        let blocks = chain(0, length);
        let (mean, passes) = repeat(seconds, grain, &mut || {
            model.forward(
                &mut store,
                &mut scratch,
                &[Slice { tokens: &tokens, start: 0, blocks: &blocks, sampled: true }],
            );
        });
        prefill.push(Sample { piece: Piece::range(0, length), seconds: mean, passes });
        tick();
    }
    let mut decode = Vec::new();
    for (batch, context) in DECODES {
        let mut store = KvStore::new(model.config(), BLOCK_SIZE);
        let tokens = text(context);
        let chains: Vec<Vec<BlockId>> = (0..batch).map(|i| chain(i, context + 1)).collect();
        for blocks in &chains {
            model.forward(
                &mut store,
                &mut scratch,
                &[Slice { tokens: &tokens, start: 0, blocks, sampled: true }],
            );
        }
        let slices: Vec<Slice<'_>> = chains
            .iter()
            .map(|blocks| Slice { tokens: &tokens[..1], start: context, blocks, sampled: true })
            .collect();
        let (mean, passes) = repeat(seconds, grain, &mut || model.forward(&mut store, &mut scratch, &slices));
        let (tokens, pairs) = (batch as u64, (batch * (context + 1)) as u64);
        decode.push(Sample { piece: Piece { tokens, pairs }, seconds: mean, passes });
        tick();
    }
    let (of_prefill, of_decode) = (fit(&prefill), fit(&decode));
    Calibration {
        grain,
        price: StepPrice { prefill: of_prefill.price, decode: of_decode.price },
        prefill_worst: of_prefill.worst,
        decode_worst: of_decode.worst,
        prefill,
        decode,
    }
}

fn text(length: usize) -> Vec<Token> {
    (0..length).map(|i| 32 + (i as Token * 7) % 95).collect()
}

fn chain(index: usize, tokens: usize) -> Vec<BlockId> {
    let blocks = tokens.div_ceil(BLOCK_SIZE);
    (index * blocks..(index + 1) * blocks).map(|id| id as BlockId).collect()
}

/// Least squares of the relative error over `base + per_token · tokens + per_pair · pairs`, no
/// constant below zero: of all choices of which constants are zero, the best whose others are not
/// negative.
pub fn fit(samples: &[Sample]) -> Fit {
    let row = |s: &Sample| {
        let weight = 1.0 / s.seconds.max(1e-12);
        [weight, s.piece.tokens as f64 * weight, s.piece.pairs as f64 * weight]
    };
    let mut best: Option<(f64, [f64; 3])> = None;
    for used in 1_u32..8 {
        let columns: Vec<usize> = (0..3).filter(|c| used & (1 << c) != 0).collect();
        let Some(solution) = solve(samples, &columns, row) else { continue };
        if solution.iter().any(|&x| x < 0.0) {
            continue;
        }
        let error: f64 = samples
            .iter()
            .map(|s| {
                let off = row(s).iter().zip(&solution).map(|(a, x)| a * x).sum::<f64>() - 1.0;
                off * off
            })
            .sum();
        // A constant more must explain more than rounding does.
        if best.is_none_or(|(least, _)| error < least * (1.0 - 1e-9)) {
            best = Some((error, solution));
        }
    }
    let [base, per_token, per_pair] = best.map_or([0.0; 3], |(_, x)| x).map(|x| (x * 1e12).round() as u64);
    let price = PiecePrice { base, per_token, per_pair };
    let worst = samples
        .iter()
        .map(|s| (price.of(&s.piece).seconds() / s.seconds.max(1e-12) - 1.0).abs())
        .fold(0.0, f64::max);
    Fit { price, worst }
}

/// Solves the normal equations over some of the columns; the others are zero. `None` where they do
/// not determine them.
fn solve(samples: &[Sample], columns: &[usize], row: impl Fn(&Sample) -> [f64; 3]) -> Option<[f64; 3]> {
    let n = columns.len();
    // Columns differ by orders of magnitude: each is scaled to length one first.
    let scale: Vec<f64> =
        columns.iter().map(|&c| samples.iter().map(|s| row(s)[c] * row(s)[c]).sum::<f64>().sqrt()).collect();
    if scale.contains(&0.0) {
        return None;
    }
    let mut matrix = vec![vec![0.0; n + 1]; n];
    for sample in samples {
        let row = row(sample);
        for i in 0..n {
            let own = row[columns[i]] / scale[i];
            for j in 0..n {
                matrix[i][j] += own * row[columns[j]] / scale[j];
            }
            matrix[i][n] += own;
        }
    }
    for at in 0..n {
        let pivot = (at..n).max_by(|&a, &b| matrix[a][at].abs().total_cmp(&matrix[b][at].abs()))?;
        matrix.swap(at, pivot);
        if matrix[at][at].abs() < 1e-12 {
            return None;
        }
        let pivot = matrix[at].clone();
        for (_, row) in matrix.iter_mut().enumerate().filter(|(other, _)| *other != at) {
            let factor = row[at] / pivot[at];
            row.iter_mut().zip(&pivot).skip(at).for_each(|(own, other)| *own -= factor * other);
        }
    }
    let mut solution = [0.0; 3];
    for (i, &column) in columns.iter().enumerate() {
        solution[column] = matrix[i][n] / matrix[i][i] / scale[i];
    }
    Some(solution)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelConfig;

    fn samples(price: PiecePrice, noise: f64) -> Vec<Sample> {
        PREFILLS
            .iter()
            .enumerate()
            .map(|(i, &length)| {
                let piece = Piece::range(0, length);
                let off = if i % 2 == 0 { 1.0 + noise } else { 1.0 - noise };
                Sample { piece, seconds: price.of(&piece).seconds() * off, passes: 1 }
            })
            .collect()
    }

    #[test]
    fn what_was_put_in_comes_out() {
        let price = PiecePrice { base: 300_000_000, per_token: 600_000_000, per_pair: 300_000 };
        let found = fit(&samples(price, 0.0));
        for (own, put) in [
            (found.price.base, price.base),
            (found.price.per_token, price.per_token),
            (found.price.per_pair, price.per_pair),
        ] {
            assert!(own.abs_diff(put) <= put / 1000, "{found:?}");
        }
        assert!(found.worst < 1e-6);
        assert!(fit(&samples(price, 0.05)).worst < 0.12);
    }

    #[test]
    fn no_constant_is_below_zero() {
        // Shorter prompts cost more a token: a straight line through these would start below zero.
        let falling: Vec<Sample> = PREFILLS
            .iter()
            .map(|&n| Sample { piece: Piece::range(0, n), seconds: 1e-6 * (n * n) as f64, passes: 1 })
            .collect();
        let found = fit(&falling);
        assert!(found.price.per_pair > 0, "{found:?}");
        let flat: Vec<Sample> = falling.iter().map(|s| Sample { seconds: 2e-3, ..*s }).collect();
        assert_eq!(
            fit(&flat).price,
            PiecePrice { base: 2_000_000_000, per_token: 0, per_pair: 0 },
            "what does not depend on length is all base"
        );
        assert_eq!(fit(&[]).price, PiecePrice { base: 0, per_token: 0, per_pair: 0 });
    }

    #[test]
    fn a_coarse_stop_watch_is_asked_about_many_passes() {
        let ticks = std::cell::Cell::new(0.0_f64);
        let mut watch = || {
            ticks.set(ticks.get() + 1.0);
            (ticks.get() * 1e-5 / 1e-3).floor() * 1e-3
        };
        let found = grain(&mut watch);
        assert!((found - 1e-3).abs() < 1e-9, "{found}");
        let (mean, passes) = repeat(&mut watch, 1e-3, &mut || ticks.set(ticks.get() + 100.0));
        assert!(passes >= 100 && (mean - 1e-3).abs() < 1e-4, "{passes} passes of {mean}");
    }

    #[test]
    fn a_small_model_is_measured_from_end_to_end() {
        let model = TinyGpt::random(ModelConfig { layers: 1, ..ModelConfig::default() }, 1);
        // Ticks of one while the grain is looked for, and then of more than a measurement needs.
        let (mut now, mut asked) = (0.0, 0);
        let mut heard = Vec::new();
        let found = calibrate(
            &model,
            &mut || {
                asked += 1;
                now += if asked < 30 { 1.0 } else { 1000.0 };
                now
            },
            &mut |done, of| heard.push((done, of)),
        );
        assert_eq!(heard.last(), Some(&(15, 15)));
        assert_eq!((found.prefill.len(), found.decode.len(), found.grain), (6, 9, 1.0));
    }
}
