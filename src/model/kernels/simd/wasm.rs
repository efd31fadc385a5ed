//! Eight floats in two simd128 registers.
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

    /// Half of 2ⁿ, where each lane is n + `rounder` and `rounder` is 1.5 · 2²³, so that n is in its low bits.
    #[inline(always)]
    pub fn half_power_of_two(self, rounder: f32) -> Self {
        let bias = i32x4_splat(126i32.wrapping_sub(rounder.to_bits() as i32));
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

    /// Two times eight floats, 2²⁴ times what sixteen bytes hold: byte 4·l + 2·s + h is lane l + 4·h of result s.
    #[inline(always)]
    pub fn from_bytes(from: &[i8; 16]) -> (Self, Self) {
        let at: *const v128 = from.as_ptr().cast();
        // SAFETY: `from` is 16 bytes long, and simd128 loads need no alignment.
        let bytes = unsafe { v128_load(at) };
        let top = i32x4_splat(0xFF00_0000u32 as i32);
        let float = |bits: v128| f32x4_convert_i32x4(bits);
        (
            Self(float(i32x4_shl(bytes, 24)), float(v128_and(i32x4_shl(bytes, 16), top))),
            Self(float(v128_and(i32x4_shl(bytes, 8), top)), float(v128_and(bytes, top))),
        )
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
