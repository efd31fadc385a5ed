//! Kernels within one row: exp, softmax, RMSNorm and the gated SiLU.

use super::{LANES, Lanes, padded, sum_lanes};

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
pub fn exp(x: Lanes) -> Lanes {
    let mut out = [0.0; LANES];
    for (out, &x) in out.iter_mut().zip(&x) {
        // The comparisons let NaN through, into the polynomial.
        let clamped = if x < UNDERFLOW { UNDERFLOW } else { x };
        let clamped = if clamped > OVERFLOW { OVERFLOW } else { clamped };
        let shifted = clamped * std::f32::consts::LOG2_E + ROUNDER;
        let n = shifted - ROUNDER;
        let r = (clamped - n * LN2_HIGH) - n * LN2_LOW;
        let mut poly = 1.0 / 5040.0;
        for coefficient in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5] {
            poly = poly * r + coefficient;
        }
        let mantissa = 1.0 + (r + (r * r) * poly);
        // Half of 2^n first, so that n = 128 still has an exponent; n is at least −125 here.
        let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
        let half_scale = f32::from_bits((n.wrapping_add(126) << 23) as u32);
        let value = mantissa * half_scale * 2.0;
        let value = if x > OVERFLOW { f32::INFINITY } else { value };
        *out = if x < UNDERFLOW { 0.0 } else { value };
    }
    out
}

/// Replaces a row by its softmax: exponentials of the distance to the largest, divided by their sum.
///
/// The row should have at least one finite element and no infinite one; an empty row stays empty.
pub fn softmax(row: &mut [f32]) {
    let (whole, tail) = row.as_chunks_mut::<LANES>();
    let mut largest = padded(tail, f32::NEG_INFINITY);
    for lanes in whole.iter() {
        for (largest, &x) in largest.iter_mut().zip(lanes) {
            *largest = if x > *largest { x } else { *largest };
        }
    }
    let largest = largest.iter().fold(f32::NEG_INFINITY, |a, &b| if b > a { b } else { a });
    let mut total = [0.0; LANES];
    for lanes in whole.iter_mut() {
        *lanes = exp(lanes.map(|x| x - largest));
        for (total, x) in total.iter_mut().zip(lanes) {
            *total += *x;
        }
    }
    // The lanes beyond the row count for exp(−∞), which is zero.
    let last = exp(padded(tail, f32::NEG_INFINITY).map(|x| x - largest));
    for (total, x) in total.iter_mut().zip(last) {
        *total += x;
    }
    let scale = 1.0 / sum_lanes(total);
    for lanes in whole.iter_mut() {
        for x in lanes {
            *x *= scale;
        }
    }
    for (x, exponential) in tail.iter_mut().zip(last) {
        *x = exponential * scale;
    }
}

/// Divides each row of `input` by the root of its mean square (plus `eps`) and scales it by `weight`.
///
/// `input` and `out` are (rows, width), `weight` is (width).
///
/// # Panics
///
/// If the shapes disagree.
pub fn rms_norm(input: &[f32], weight: &[f32], eps: f32, out: &mut [f32]) {
    let width = weight.len();
    assert_eq!(input.len(), out.len(), "input and output should have the same shape");
    assert!(input.len().is_multiple_of(width), "the input should be (rows, width)");
    for (row, out) in input.chunks_exact(width).zip(out.chunks_exact_mut(width)) {
        let (whole, tail) = row.as_chunks::<LANES>();
        let mut squares = padded(tail, 0.0).map(|x| x * x);
        for lanes in whole {
            for (square, x) in squares.iter_mut().zip(lanes) {
                *square += x * x;
            }
        }
        let scale = 1.0 / (sum_lanes(squares) / width as f32 + eps).sqrt();
        for ((out, x), weight) in out.iter_mut().zip(row).zip(weight) {
            *out = x * scale * weight;
        }
    }
}

/// Replaces `gate` by SiLU(gate) · up, element by element; SiLU(x) is x ÷ (1 + exp(−x)).
///
/// # Panics
///
/// If the two differ in length.
pub fn silu_mul(gate: &mut [f32], up: &[f32]) {
    assert_eq!(gate.len(), up.len(), "gate and up should have the same shape");
    let silu = |gate: &Lanes, up: &Lanes| -> Lanes {
        let powers = exp(gate.map(|x| -x));
        std::array::from_fn(|i| gate[i] / (1.0 + powers[i]) * up[i])
    };
    let (whole, tail) = gate.as_chunks_mut::<LANES>();
    let (up_whole, up_tail) = up.as_chunks::<LANES>();
    for (gate, up) in whole.iter_mut().zip(up_whole) {
        *gate = silu(gate, up);
    }
    let last = silu(&padded(tail, 0.0), &padded(up_tail, 0.0));
    tail.copy_from_slice(&last[..tail.len()]);
}

#[cfg(test)]
mod tests {
    use super::super::testing::floats;
    use super::*;

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
    fn softmax_agrees_with_f64() {
        for length in [1, 2, 7, 8, 9, 15, 16, 17, 100, 433] {
            let input: Vec<f32> = floats(6, length).iter().map(|x| x * 12.0).collect();
            let mut row = input.clone();
            softmax(&mut row);
            let largest = input.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            let powers: Vec<f64> =
                input.iter().map(|x| libm::exp(f64::from(*x) - f64::from(largest))).collect();
            let total: f64 = powers.iter().sum();
            for (got, want) in row.iter().zip(&powers) {
                assert!((f64::from(*got) - want / total).abs() < 1e-6, "length {length}");
            }
        }
        softmax(&mut []);
    }

    #[test]
    fn rms_norm_agrees_with_f64() {
        for (rows, width) in [(1, 1), (3, 7), (2, 64), (5, 33), (1, 256)] {
            let input = floats(7, rows * width);
            let weight = floats(8, width);
            let mut out = vec![0.0; rows * width];
            rms_norm(&input, &weight, 1e-5, &mut out);
            for (row, out) in input.chunks_exact(width).zip(out.chunks_exact(width)) {
                let mean = row.iter().map(|x| f64::from(*x) * f64::from(*x)).sum::<f64>() / width as f64;
                let scale = 1.0 / (mean + 1e-5).sqrt();
                for ((got, x), w) in out.iter().zip(row).zip(&weight) {
                    let want = f64::from(*x) * scale * f64::from(*w);
                    assert!((f64::from(*got) - want).abs() < 1e-6, "{rows}×{width}");
                }
            }
        }
    }

    #[test]
    fn silu_mul_agrees_with_f64() {
        for length in [1, 8, 13, 64, 97] {
            let input: Vec<f32> = floats(9, length).iter().map(|x| x * 20.0).collect();
            let up = floats(10, length);
            let mut gate = input.clone();
            silu_mul(&mut gate, &up);
            for ((got, x), up) in gate.iter().zip(&input).zip(&up) {
                let x = f64::from(*x);
                let want = x / (1.0 + libm::exp(-x)) * f64::from(*up);
                assert!((f64::from(*got) - want).abs() < 1e-5 * want.abs().max(0.1), "length {length}");
            }
        }
        let mut extreme = [-1000.0, 1000.0];
        silu_mul(&mut extreme, &[1.0, 1.0]);
        assert_eq!(extreme, [0.0, 1000.0]);
    }
}
