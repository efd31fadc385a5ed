//! The kernels: matrix products, norms, exponentials, rotary positions and SiLU, and the rules that make them
//! repeatable.
//!
//! Every kernel is written once, over [`simd::F32x8`]: simd128 in wasm, lane arrays (SSE or AVX registers) natively.
//! Three rules keep the bits the same on every target and in every batch:
//!
//! 1. Only IEEE additions, multiplications, divisions and square roots, and integer operations; no fused
//!    multiply-add and no transcendental of the standard library.
//! 2. A matrix product runs along its inner dimension in order, one accumulator an output, whatever the number of
//!    rows computed beside it. The lanes are neighbouring outputs, never parts of one sum. Where weights are bytes,
//!    what is accumulated are spans at fixed places, each an exact sum of whole numbers.
//! 3. A sum within a row (norms) takes element `i` in lane `i % 8` and adds the lanes as one fixed tree; softmax is
//!    over tiles at fixed positions (see `model/attention.rs`).

mod elementwise;
mod gemm;
mod input;
mod matrix;
mod rope;
pub mod rows;
pub mod simd;

pub use elementwise::{exp, rms_norm};
pub(super) use gemm::accumulate;
pub use input::{Input, SPAN};
pub use matrix::PackedMatrix;
pub use rope::RopeTable;

/// Floats computed at once.
pub const LANES: usize = 8;

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
