//! Eight floats, or whole numbers, in an array, which rustc turns into the registers that a target has.

// Loops over indices, since an array's own methods are functions that need not be inlined, and without that not
// compiled for the registers that their caller may use.
#![allow(clippy::needless_range_loop)]

use core::ops::{Add, Div, Mul, Sub};

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

    /// 2ⁿ, where each lane is n + `rounder` and `rounder` is 1.5 · 2²³, so that n is in its low bits.
    #[inline(always)]
    pub fn power_of_two(self, rounder: f32) -> Self {
        let bias = 127u32.wrapping_sub(rounder.to_bits());
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

    /// The first half from one place, the second from another.
    #[inline(always)]
    pub fn from_halves(first: &[f32; 4], second: &[f32; 4]) -> Self {
        let ([a, b, c, d], [e, f, g, h]) = (*first, *second);
        Self([a, b, c, d, e, f, g, h])
    }

    /// Without signs.
    #[inline(always)]
    pub fn abs(self) -> Self {
        let mut out = self.0;
        for x in &mut out {
            *x = x.abs();
        }
        Self(out)
    }

    /// The larger of each two that have no sign, by their bits: infinity is above every number, and NaN above that.
    #[inline(always)]
    pub fn max_bits(self, other: Self) -> Self {
        self.zip(other, |a, b| if (a.to_bits() as i32) < b.to_bits() as i32 { b } else { a })
    }

    /// The low sixteen bits of each lane: those of lane `i` beside those of lane `i + 4`.
    #[inline(always)]
    pub fn low_pairs(self, to: &mut [[i16; 2]; 4]) {
        for i in 0..4 {
            to[i] = [self.0[i].to_bits() as i16, self.0[i + 4].to_bits() as i16];
        }
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

/// Eight whole numbers of 32 bits: sums of products.
#[derive(Clone, Copy, Debug)]
pub struct I32x8([i32; 8]);

impl I32x8 {
    /// Eight zeros.
    pub const ZERO: Self = Self([0; 8]);

    /// Adds to each lane what a pair of numbers and the lane's own pair multiply to.
    ///
    /// `AVX2` promises a caller that is compiled for a processor with AVX2, and called only there (see
    /// [`Kernel`](super::Kernel)).
    #[inline(always)]
    pub fn add_products<const AVX2: bool>(self, pair: &[i16; 2], pairs: I16x16) -> Self {
        #[cfg(target_arch = "x86_64")]
        if AVX2 {
            return self.add_products_avx2(pair, pairs);
        }
        let mut out = self.0;
        for i in 0..8 {
            let [a, b] = [pairs.0[2 * i], pairs.0[2 * i + 1]];
            out[i] += i32::from(pair[0]) * i32::from(a) + i32::from(pair[1]) * i32::from(b);
        }
        Self(out)
    }

    /// The same in the one instruction for it, which rustc does not find in the loop.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    #[expect(unsafe_code, reason = "AVX2 is not in every x86-64, and its loads and stores take raw pointers")]
    fn add_products_avx2(self, pair: &[i16; 2], pairs: I16x16) -> Self {
        use core::arch::x86_64::*;
        let mut out = self.0;
        let both = i32::from(pair[0]) & 0xFFFF | i32::from(pair[1]) << 16;
        // SAFETY: the caller promises AVX2; each pointer is to the 32 bytes of an array, and need not be aligned.
        unsafe {
            let pairs = _mm256_loadu_si256(pairs.0.as_ptr().cast());
            let products = _mm256_madd_epi16(_mm256_set1_epi32(both), pairs);
            let sums = _mm256_add_epi32(_mm256_loadu_si256(out.as_ptr().cast()), products);
            _mm256_storeu_si256(out.as_mut_ptr().cast(), sums);
        }
        Self(out)
    }

    /// The nearest floats; halfway between two, the even one.
    #[inline(always)]
    pub fn to_floats(self) -> F32x8 {
        let mut out = [0.0; 8];
        for i in 0..8 {
            out[i] = self.0[i] as f32;
        }
        F32x8(out)
    }
}

/// Eight pairs of whole numbers of 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct I16x16([i16; 16]);

impl I16x16 {
    /// From bytes in memory.
    #[inline(always)]
    pub fn load(from: &[[i8; 2]; 8]) -> Self {
        let mut out = [0; 16];
        for i in 0..8 {
            out[2 * i] = i16::from(from[i][0]);
            out[2 * i + 1] = i16::from(from[i][1]);
        }
        Self(out)
    }
}
