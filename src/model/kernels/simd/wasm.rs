//! Eight floats, or whole numbers, in two simd128 registers.
#![expect(unsafe_code, reason = "simd128 loads and stores take raw pointers")]

use core::arch::wasm32::*;
use core::ops::{Add, Div, Mul, Sub};

/// Eight floats.
#[derive(Clone, Copy, Debug)]
pub struct F32x8(v128, v128);

impl F32x8 {
    /// Eight zeros.
    pub const ZERO: Self = Self(f32x4(0.0, 0.0, 0.0, 0.0), f32x4(0.0, 0.0, 0.0, 0.0));

    /// Eight times the same.
    #[inline(always)]
    pub fn splat(x: f32) -> Self {
        Self(f32x4_splat(x), f32x4_splat(x))
    }

    /// From memory.
    #[inline(always)]
    pub fn load(from: &[f32; 8]) -> Self {
        let at: *const v128 = from.as_ptr().cast();
        // SAFETY: `from` is 32 bytes long, and simd128 loads need no alignment.
        unsafe { Self(v128_load(at), v128_load(at.add(1))) }
    }

    /// To memory.
    #[inline(always)]
    pub fn store(self, to: &mut [f32; 8]) {
        let at: *mut v128 = to.as_mut_ptr().cast();
        // SAFETY: `to` is 32 bytes long, and simd128 stores need no alignment.
        unsafe {
            v128_store(at, self.0);
            v128_store(at.add(1), self.1);
        }
    }

    /// The larger of each two; its own where the two do not compare.
    #[inline(always)]
    pub fn max(self, other: Self) -> Self {
        Self(f32x4_pmax(self.0, other.0), f32x4_pmax(self.1, other.1))
    }

    /// The smaller of each two; its own where the two do not compare.
    #[inline(always)]
    pub fn min(self, other: Self) -> Self {
        Self(f32x4_pmin(self.0, other.0), f32x4_pmin(self.1, other.1))
    }

    /// `then` where a lane is below `limit`, else `otherwise`.
    #[inline(always)]
    pub fn below(self, limit: Self, then: Self, otherwise: Self) -> Self {
        Self(
            v128_bitselect(then.0, otherwise.0, f32x4_lt(self.0, limit.0)),
            v128_bitselect(then.1, otherwise.1, f32x4_lt(self.1, limit.1)),
        )
    }

    /// 2ⁿ, where each lane is n + `rounder` and `rounder` is 1.5 · 2²³, so that n is in its low bits.
    #[inline(always)]
    pub fn power_of_two(self, rounder: f32) -> Self {
        let bias = i32x4_splat(127i32.wrapping_sub(rounder.to_bits() as i32));
        Self(i32x4_shl(i32x4_add(self.0, bias), 23), i32x4_shl(i32x4_add(self.1, bias), 23))
    }

    /// The upper four lanes before the lower four.
    #[inline(always)]
    pub fn swap_halves(self) -> Self {
        Self(self.1, self.0)
    }

    /// The sum of the lanes as a fixed tree: `i` with `i + 4`, then with `i + 2`, then with `i + 1`.
    #[inline(always)]
    pub fn sum(self) -> f32 {
        let four = f32x4_add(self.0, self.1);
        let two = f32x4_add(four, i64x2_shuffle::<1, 0>(four, four));
        f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
    }

    /// The first half from one place, the second from another.
    #[inline(always)]
    pub fn from_halves(first: &[f32; 4], second: &[f32; 4]) -> Self {
        // SAFETY: both are 16 bytes long, and simd128 loads need no alignment.
        unsafe { Self(v128_load(first.as_ptr().cast()), v128_load(second.as_ptr().cast())) }
    }

    /// Without signs.
    #[inline(always)]
    pub fn abs(self) -> Self {
        Self(f32x4_abs(self.0), f32x4_abs(self.1))
    }

    /// The larger of each two that have no sign, by their bits: infinity is above every number, and NaN above that.
    #[inline(always)]
    pub fn max_bits(self, other: Self) -> Self {
        Self(i32x4_max(self.0, other.0), i32x4_max(self.1, other.1))
    }

    /// The low sixteen bits of each lane: those of lane `i` beside those of lane `i + 4`.
    #[inline(always)]
    pub fn low_pairs(self, to: &mut [[i16; 2]; 4]) {
        let pairs = v128_or(v128_and(self.0, i32x4_splat(0xFFFF)), i32x4_shl(self.1, 16));
        // SAFETY: `to` is 16 bytes long, and simd128 stores need no alignment.
        unsafe { v128_store(to.as_mut_ptr().cast(), pairs) };
    }

    /// Four rows of eight as eight rows of four, two to a result.
    #[inline(always)]
    pub fn transpose(rows: [Self; 4]) -> [Self; 4] {
        let turn = |a, b, c, d| {
            let (ab_low, ab_high) = (i32x4_shuffle::<0, 4, 1, 5>(a, b), i32x4_shuffle::<2, 6, 3, 7>(a, b));
            let (cd_low, cd_high) = (i32x4_shuffle::<0, 4, 1, 5>(c, d), i32x4_shuffle::<2, 6, 3, 7>(c, d));
            [
                Self(i64x2_shuffle::<0, 2>(ab_low, cd_low), i64x2_shuffle::<1, 3>(ab_low, cd_low)),
                Self(i64x2_shuffle::<0, 2>(ab_high, cd_high), i64x2_shuffle::<1, 3>(ab_high, cd_high)),
            ]
        };
        let [a, b, c, d] = rows;
        let ([first, second], [third, fourth]) = (turn(a.0, b.0, c.0, d.0), turn(a.1, b.1, c.1, d.1));
        [first, second, third, fourth]
    }
}

/// Implements an operator by the same in both registers.
macro_rules! operator {
    ($trait:ident, $method:ident, $instruction:ident) => {
        impl $trait for F32x8 {
            type Output = Self;

            #[inline(always)]
            fn $method(self, other: Self) -> Self {
                Self($instruction(self.0, other.0), $instruction(self.1, other.1))
            }
        }
    };
}

operator!(Add, add, f32x4_add);
operator!(Sub, sub, f32x4_sub);
operator!(Mul, mul, f32x4_mul);
operator!(Div, div, f32x4_div);

/// Eight whole numbers of 32 bits: sums of products.
#[derive(Clone, Copy, Debug)]
pub struct I32x8(v128, v128);

impl I32x8 {
    /// Eight zeros.
    pub const ZERO: Self = Self(i32x4(0, 0, 0, 0), i32x4(0, 0, 0, 0));

    /// Adds to each lane what a pair of numbers and the lane's own pair multiply to.
    #[inline(always)]
    pub fn add_products<const AVX2: bool>(self, pair: &[i16; 2], pairs: I16x16) -> Self {
        // SAFETY: `pair` is 4 bytes long, and simd128 loads need no alignment.
        let pair = unsafe { v128_load32_splat(pair.as_ptr().cast()) };
        Self(
            i32x4_add(self.0, i32x4_dot_i16x8(pair, pairs.0)),
            i32x4_add(self.1, i32x4_dot_i16x8(pair, pairs.1)),
        )
    }

    /// The nearest floats; halfway between two, the even one.
    #[inline(always)]
    pub fn to_floats(self) -> F32x8 {
        F32x8(f32x4_convert_i32x4(self.0), f32x4_convert_i32x4(self.1))
    }
}

/// Eight pairs of whole numbers of 16 bits.
#[derive(Clone, Copy, Debug)]
pub struct I16x16(v128, v128);

impl I16x16 {
    /// From bytes in memory.
    #[inline(always)]
    pub fn load(from: &[[i8; 2]; 8]) -> Self {
        let at: *const i8 = from.as_ptr().cast();
        // SAFETY: `from` is 16 bytes long, and simd128 loads need no alignment.
        unsafe { Self(i16x8_load_extend_i8x8(at), i16x8_load_extend_i8x8(at.add(8))) }
    }
}
