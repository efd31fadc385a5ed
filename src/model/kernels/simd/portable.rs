//! Eight floats in an array, which rustc turns into the registers that a target has.

// Loops over indices, since an array's own methods are functions that need not be inlined, and without that not
// compiled for the registers that their caller may use.
#![allow(clippy::needless_range_loop)]

use core::ops::{Add, Div, Mul, Sub};

/// 2²⁴ times a byte.
#[inline(always)]
fn top(byte: i8) -> f32 {
    (i32::from(byte) << 24) as f32
}

/// Eight floats.
#[derive(Clone, Copy, Debug)]
pub struct F32x8([f32; 8]);

impl F32x8 {
    /// Eight zeros.
    pub const ZERO: Self = Self([0.0; 8]);

    /// Eight times the same.
    #[inline(always)]
    pub fn splat(x: f32) -> Self {
        Self([x; 8])
    }

    /// From memory.
    #[inline(always)]
    pub fn load(from: &[f32; 8]) -> Self {
        Self(*from)
    }

    /// To memory.
    #[inline(always)]
    pub fn store(self, to: &mut [f32; 8]) {
        *to = self.0;
    }

    /// The larger of each two; its own where the two do not compare.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { b } else { a })
    }

    /// The smaller of each two; its own where the two do not compare.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if b < a { b } else { a })
    }

    /// `then` where a lane is below `limit`, else `otherwise`.
    #[inline(always)]
    pub fn below(self, limit: Self, then: Self, otherwise: Self) -> Self {
        Self(core::array::from_fn(|i| if self.0[i] < limit.0[i] { then.0[i] } else { otherwise.0[i] }))
    }

    /// Half of 2ⁿ, where each lane is n + `rounder` and `rounder` is 1.5 · 2²³, so that n is in its low bits.
    #[inline(always)]
    pub fn half_power_of_two(self, rounder: f32) -> Self {
        let bias = 126u32.wrapping_sub(rounder.to_bits());
        let mut out = self.0;
        for x in &mut out {
            *x = f32::from_bits(x.to_bits().wrapping_add(bias) << 23);
        }
        Self(out)
    }

    /// The upper four lanes before the lower four.
    #[inline(always)]
    pub fn swap_halves(self) -> Self {
        let [a, b, c, d, e, f, g, h] = self.0;
        Self([e, f, g, h, a, b, c, d])
    }

    /// The sum of the lanes as a fixed tree: `i` with `i + 4`, then with `i + 2`, then with `i + 1`.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        let [a, b, c, d, e, f, g, h] = self.0;
        ((a + e) + (c + g)) + ((b + f) + (d + h))
    }

    /// Two times eight floats, 2²⁴ times what sixteen bytes hold: byte 4·l + 2·s + h is lane l + 4·h of result s.
    #[inline(always)]
    pub fn from_bytes(from: &[i8; 16]) -> (Self, Self) {
        let (mut first, mut second) = ([0.0; 8], [0.0; 8]);
        for l in 0..4 {
            let [a, b, c, d] = [from[4 * l], from[4 * l + 1], from[4 * l + 2], from[4 * l + 3]];
            first[l] = top(a);
            first[l + 4] = top(b);
            second[l] = top(c);
            second[l + 4] = top(d);
        }
        (Self(first), Self(second))
    }

    /// Four rows of eight as eight rows of four, two to a result.
    #[inline(always)]
    pub fn transpose(rows: [Self; 4]) -> [Self; 4] {
        let mut out = rows;
        for pair in 0..4 {
            for i in 0..8 {
                out[pair].0[i] = rows[i % 4].0[2 * pair + i / 4];
            }
        }
        out
    }

    #[inline(always)]
    fn zip(self, other: Self, operation: impl Fn(f32, f32) -> f32) -> Self {
        let mut out = self.0;
        for i in 0..8 {
            out[i] = operation(self.0[i], other.0[i]);
        }
        Self(out)
    }
}

/// Implements an operator by the same in every lane.
macro_rules! operator {
    ($trait:ident, $method:ident, $symbol:tt) => {
        impl $trait for F32x8 {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                self.zip(other, |a, b| a $symbol b)
            }
        }
    };
}

operator!(Add, add, +);
operator!(Sub, sub, -);
operator!(Mul, mul, *);
operator!(Div, div, /);
