//! Kernels within one row: exp, RMSNorm and the gated SiLU.

use super::LANES;
use super::rows::{self, BLOCK_ROWS};
use super::simd::{F32x8, Kernel, wide};

/// What [`exp`] takes a smaller argument for; the exponential of this, about 2.4e-38, is still a normal number.
const LEAST: f32 = -86.6;
/// Adding this to a float below 2^22 leaves its nearest integer in the low bits (1.5 · 2^23).
const ROUNDER: f32 = 12_582_912.0;
/// 2^f for |f| ≤ ½ is 1 + f · (the sum of these times powers of f, the highest first), within 5e-9 of itself: the
/// coefficients of Cephes' `exp2f`.
const POWER: [f32; 6] =
    [1.535_336_2e-4, 1.339_887_4e-3, 9.618_437e-3, 5.550_332_5e-2, 2.402_264_8e-1, 6.931_472e-1];

/// The exponential of eight lanes that are not above zero: of 0 it is 1, of NaN it is NaN.
///
/// Its relative error is below (2 + |x|) · 2^-23: an argument is multiplied by log2 e and rounded as one float, so
/// that the error grows with it, while what is left of the exponential shrinks faster. Within 1.2e-7 of the true value.
#[inline(always)]
pub fn exp(x: F32x8) -> F32x8 {
    // NaN passes the comparison, into the polynomial.
    let scaled = x.max(F32x8::splat(LEAST)) * F32x8::splat(std::f32::consts::LOG2_E);
    let shifted = scaled + F32x8::splat(ROUNDER);
    let f = scaled - (shifted - F32x8::splat(ROUNDER));
    let mut sum = F32x8::splat(POWER[0]);
    for coefficient in &POWER[1..] {
        sum = sum * f + F32x8::splat(*coefficient);
    }
    (F32x8::splat(1.0) + sum * f) * shifted.power_of_two(ROUNDER)
}

/// SiLU(gate) · up; SiLU(x) is x ÷ (1 + exp(−x)), or below zero, where that might overflow, x · exp(x) ÷ (1 + exp(x)).
#[inline(always)]
pub fn silu_mul(gate: F32x8, up: F32x8) -> F32x8 {
    let power = exp(F32x8::ZERO - gate.abs());
    let numerator = gate.below(F32x8::ZERO, gate * power, gate);
    numerator / (F32x8::splat(1.0) + power) * up
}

/// Divides each row of `input`, (rows, width), by the root of its mean square (plus `eps`), scales it by `weight`,
/// (width), and writes it to `out` in blocks of rows (see [`rows`]), as a product wants its input.
///
/// # Panics
///
/// If the shapes disagree, or `width` is no multiple of eight.
pub fn rms_norm(input: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    assert_eq!(input.len(), out.len(), "input and output should have the same shape");
    assert!(width.is_multiple_of(LANES), "a row should be whole lanes");
    assert!(input.len().is_multiple_of(width), "the input should be (rows, width)");
    wide(RmsNorm { input, weight, eps, out });
}

/// A norm about to be computed.
struct RmsNorm<'a> {
    input: &'a [f32],
    weight: &'a [f32],
    eps: f32,
    out: &'a mut [f32],
}

impl Kernel for RmsNorm<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const AVX2: bool>(self) {
        let width = self.weight.len();
        let blocks = self.input.chunks(BLOCK_ROWS * width).zip(self.out.chunks_mut(BLOCK_ROWS * width));
        for (input, out) in blocks {
            match input.len() / width {
                1 => normed::<1>(input, self.weight, self.eps, out),
                2 => normed::<2>(input, self.weight, self.eps, out),
                3 => normed::<3>(input, self.weight, self.eps, out),
                _ => normed::<BLOCK_ROWS>(input, self.weight, self.eps, out),
            }
        }
    }
}

/// One block of `R` rows: `input` is (R, width), `out` is (width, R).
#[inline(always)]
fn normed<const R: usize>(input: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    let input: [&[[f32; LANES]]; R] = core::array::from_fn(|r| input[r * width..][..width].as_chunks().0);
    let scales = input.map(|row| {
        let squares = row.iter().map(F32x8::load).fold(F32x8::ZERO, |sum, x| sum + x * x);
        F32x8::splat(1.0 / (squares.sum() / width as f32 + eps).sqrt())
    });
    for (i, weight) in weight.as_chunks().0.iter().map(F32x8::load).enumerate() {
        let columns = core::array::from_fn(|r| F32x8::load(&input[r][i]) * scales[r] * weight);
        rows::store::<R>(out, i * LANES, columns);
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::in_blocks;
    use super::super::testing::floats;
    use super::*;

    /// [`exp`](super::exp) of eight floats.
    fn exp(x: [f32; 8]) -> [f32; 8] {
        let mut out = [0.0; 8];
        super::exp(F32x8::load(&x)).store(&mut out);
        out
    }

    #[test]
    fn exp_is_as_near_as_it_says() {
        let steps = 400_000;
        let grid = (0..=steps).map(|step| LEAST * (step as f32 / steps as f32));
        for x in grid.chain(floats(5, 100_000).iter().map(|x| -x.abs())) {
            let (got, want) = (f64::from(exp([x; LANES])[3]), libm::exp(f64::from(x)));
            let relative = (got - want).abs() / want * f64::from(1 << 23);
            assert!(relative < 2.0 + f64::from(x.abs()), "{relative} ulp at {x}");
            assert!((got - want).abs() < 1.2e-7, "{got} at {x}");
        }
    }

    #[test]
    fn exp_handles_its_edges() {
        let out = exp([f32::NEG_INFINITY, -1e30, -86.7, LEAST, f32::NAN, 0.0, -0.0, -1e-30]);
        assert!(out[..4].iter().all(|x| x.is_normal() && *x > 0.0 && *x < 2.5e-38), "{out:?}");
        assert!(out[4].is_nan());
        assert_eq!(out[5..], [1.0; 3]);
    }

    #[test]
    fn rms_norm_agrees_with_f64() {
        for (rows, width) in [(1, 8), (3, 16), (2, 64), (5, 32), (11, 256)] {
            let input = floats(7, rows * width);
            let weight = floats(8, width);
            let mut out = vec![0.0; rows * width];
            rms_norm(&input, &weight, 1e-5, &mut out);
            let mut all = Vec::new();
            for row in input.chunks_exact(width) {
                let mean = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / width as f64;
                let scale = 1.0 / (mean + 1e-5).sqrt();
                all.extend(
                    row.iter().zip(&weight).map(|(x, w)| (f64::from(*x) * scale * f64::from(*w)) as f32),
                );
            }
            for (got, want) in out.iter().zip(in_blocks(&all, width)) {
                assert!((got - want).abs() < 1e-6, "{rows}×{width}");
            }
        }
    }

    #[test]
    fn a_row_is_normed_to_the_same_bits_in_every_block() {
        let (width, weight) = (24, floats(12, 24));
        let input = floats(13, 7 * width);
        let mut alone = Vec::new();
        for row in input.chunks_exact(width) {
            let mut out = vec![0.0; width];
            rms_norm(row, &weight, 1e-5, &mut out);
            alone.extend(out);
        }
        for rows in 1..=7 {
            let mut out = vec![0.0; rows * width];
            rms_norm(&input[..rows * width], &weight, 1e-5, &mut out);
            assert_eq!(out, in_blocks(&alone[..rows * width], width));
        }
    }

    #[test]
    fn silu_mul_agrees_with_f64() {
        let input: Vec<f32> = floats(9, 160).iter().map(|x| x * 20.0).collect();
        let up = floats(10, 160);
        for (gate, up) in input.as_chunks::<8>().0.iter().zip(up.as_chunks::<8>().0) {
            let mut got = [0.0; 8];
            silu_mul(F32x8::load(gate), F32x8::load(up)).store(&mut got);
            for i in 0..8 {
                let x = f64::from(gate[i]);
                let want = x / (1.0 + libm::exp(-x)) * f64::from(up[i]);
                assert!((f64::from(got[i]) - want).abs() < 1e-5 * want.abs().max(0.1));
            }
        }
        let mut extreme = [0.0; 8];
        silu_mul(F32x8::load(&[-1000.0, 1000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), F32x8::splat(1.0))
            .store(&mut extreme);
        assert!(extreme[0].abs() < 1e-34);
        assert_eq!(extreme[1..], [1000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
