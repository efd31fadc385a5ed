//! The f32 kernels: matrix products, norms, softmax, rotary positions and SiLU, and the rules that make them repeatable.
//!
//! Every kernel is safe code over arrays of eight lanes, which rustc turns into SIMD (SSE2 natively, simd128 in
//! wasm). Three rules keep the bits the same on every target and in every batch:
//!
//! 1. Only IEEE additions, multiplications, divisions and square roots, and integer operations; no fused
//!    multiply-add and no transcendental of the standard library.
//! 2. A matrix product runs along its inner dimension in order, one accumulator an output, whatever the number of
//!    rows computed beside it. The lanes are neighbouring outputs, never parts of one sum.
//! 3. A sum within a row (norms, softmax) takes element `i` in lane `i % 8` and adds the lanes as one fixed tree.

mod elementwise;
mod gemm;
mod rope;

pub use elementwise::{exp, rms_norm, silu_mul, softmax};
pub(super) use gemm::accumulate;
pub use gemm::{Output, PackedMatrix};
pub use rope::RopeTable;

/// Floats in one lane array; two 128-bit registers.
pub const LANES: usize = 8;

/// Eight neighbouring floats.
pub type Lanes = [f32; LANES];

/// Adds the lanes as a fixed tree: `i` with `i + 4`, then with `i + 2`, then with `i + 1`.
#[inline(always)]
fn sum_lanes(v: Lanes) -> f32 {
    let four = [v[0] + v[4], v[1] + v[5], v[2] + v[6], v[3] + v[7]];
    (four[0] + four[2]) + (four[1] + four[3])
}

/// Up to eight elements as lanes, filled up with `fill`.
#[inline(always)]
fn padded(tail: &[f32], fill: f32) -> Lanes {
    let mut lanes = [fill; LANES];
    lanes[..tail.len()].copy_from_slice(tail);
    lanes
}

#[cfg(test)]
pub(crate) mod testing {
    //! What the kernels' tests share.

    /// A repeatable stream of floats in −1..1, from a multiplicative congruential generator.
    pub fn floats(seed: u64, count: usize) -> Vec<f32> {
        let mut state = seed.wrapping_mul(2).wrapping_add(0x9E37_79B9_7F4A_7C15) | 1;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(0xD134_2543_DE82_EF95);
                ((state >> 40) as f32 / (1u64 << 23) as f32) - 1.0
            })
            .collect()
    }
}
