//! Kernels within one row: exp, RMSNorm and the gated SiLU.

use super::LANES;
use super::rows::{self, BLOCK_ROWS};
use super::simd::{F32x8, Kernel, wide};

/// Above this the result of [`exp`] is infinite; it is the largest float whose exponential is finite.
const OVERFLOW: f32 = 88.722_83;
/// Below this the result of [`exp`] is zero; the smallest result is about 2.4e-38, so no result is subnormal.
const UNDERFLOW: f32 = -86.6;
/// Adding this to a float below 2^22 leaves its nearest integer in the low bits (1.5 · 2^23).
const ROUNDER: f32 = 12_582_912.0;
/// The natural logarithm of two in two parts; the first has few bits, so that small multiples of it are exact.
const LN2_HIGH: f32 = 0.693_359_4;
const LN2_LOW: f32 = -2.121_944_4e-4;

/// The exponential of eight lanes, within 1 ulp of the true value at the half million points that its test samples.
///
/// Splits x into n·ln 2 + r with |r| ≤ ln 2 / 2, sums the Taylor series of r to the seventh power, and scales by 2^n
/// through the exponent's bits. Zero below −86.6, infinite above 88.72, NaN for NaN.
#[inline(always)]
pub fn exp(x: F32x8) -> F32x8 {
    let (underflow, overflow) = (F32x8::splat(UNDERFLOW), F32x8::splat(OVERFLOW));
    // NaN passes both comparisons, into the polynomial.
    let clamped = x.max(underflow).min(overflow);
    let shifted = clamped * F32x8::splat(std::f32::consts::LOG2_E) + F32x8::splat(ROUNDER);
    let n = shifted - F32x8::splat(ROUNDER);
    let r = (clamped - n * F32x8::splat(LN2_HIGH)) - n * F32x8::splat(LN2_LOW);
    let mut poly = F32x8::splat(1.0 / 5040.0);
    for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
        poly = poly * r + F32x8::splat(coefficient);
    }
    let mantissa = F32x8::splat(1.0) + (r + (r * r) * poly);
    // Half of 2^n first, so that n = 128 still has an exponent; n is at least −125 here.
    let value = mantissa * shifted.half_power_of_two(ROUNDER) * F32x8::splat(2.0);
    let value = overflow.below(x, F32x8::splat(f32::INFINITY), value);
    x.below(underflow, F32x8::ZERO, value)
}

/// SiLU(gate) · up; SiLU(x) is x ÷ (1 + exp(−x)).
#[inline(always)]
pub fn silu_mul(gate: F32x8, up: F32x8) -> F32x8 {
    gate / (F32x8::splat(1.0) + exp(F32x8::ZERO - gate)) * up
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
    fn run(self) {
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

    /// Distance in units in the last place of the true value's float.
    fn ulps(got: f32, want: f64) -> f64 {
        let near = want as f32;
        let ulp = f64::from(f32::from_bits(near.to_bits() + 1)) - f64::from(near);
        (f64::from(got) - want).abs() / ulp
    }

    #[test]
    fn exp_is_within_one_ulp_over_its_whole_range() {
        let mut worst = (0.0, 0.0);
        let steps = 400_000;
        for step in 0..=steps {
            let x = UNDERFLOW + (OVERFLOW - UNDERFLOW) * (step as f32 / steps as f32);
            let error = ulps(exp([x; LANES])[0], libm::exp(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        for x in floats(5, 100_000) {
            let error = ulps(exp([x; LANES])[3], libm::exp(f64::from(x)));
            if error > worst.0 {
                worst = (error, x);
            }
        }
        assert!(worst.0 < 1.0, "{} ulp at {}", worst.0, worst.1);
    }

    #[test]
    fn exp_handles_its_edges() {
        let out = exp([f32::NEG_INFINITY, -1e30, -86.7, f32::INFINITY, 88.73, f32::NAN, 0.0, -0.0]);
        assert_eq!(out[..5], [0.0, 0.0, 0.0, f32::INFINITY, f32::INFINITY]);
        assert!(out[5].is_nan());
        assert_eq!(out[6..], [1.0, 1.0]);
        let edges = exp([OVERFLOW, 88.4, 88.3, 0.35, 0.34, -0.35, -86.5, UNDERFLOW]);
        assert!(edges.iter().all(|x| x.is_finite() && x.is_normal() && *x > 0.0), "{edges:?}");
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
        assert_eq!(extreme, [0.0, 1000.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
