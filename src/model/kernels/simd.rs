//! Eight floats or whole numbers at once: simd128 registers in wasm, a lane array elsewhere; the same bits from both.
//!
//! Every operation is one IEEE operation in each lane, so that the two can only differ in speed. Natively the arrays
//! become SSE registers, or AVX ones inside [`wide`]; no operation is ever fused with another.

#[cfg(all(target_arch = "wasm32", target_feature = "simd128"))]
#[path = "simd/wasm.rs"]
mod lanes;

#[cfg(not(all(target_arch = "wasm32", target_feature = "simd128")))]
#[path = "simd/portable.rs"]
mod lanes;

pub use lanes::{F32x8, I16x16, I32x8};

/// Something to compute with as wide registers as the machine has; see [`wide`].
///
/// A trait instead of a closure, because `run` must be inlined to be compiled for those registers.
pub trait Kernel {
    /// What it computes.
    type Output;

    /// Computes it; implementations are `#[inline(always)]`, down to the operations on [`F32x8`].
    ///
    /// `AVX2` says that the processor has that, for operations that compilers do not find by themselves.
    fn run<const AVX2: bool>(self) -> Self::Output;
}

/// Runs a kernel with 256-bit registers where the processor has them; the bits are the same without.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a function compiled for AVX2 may be called only where there is AVX2")]
pub fn wide<K: Kernel>(kernel: K) -> K::Output {
    /// The same kernel, compiled for AVX2.
    #[target_feature(enable = "avx2")]
    fn with_avx2<K: Kernel>(kernel: K) -> K::Output {
        kernel.run::<true>()
    }
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has just said that it has AVX2.
        unsafe { with_avx2(kernel) }
    } else {
        kernel.run::<false>()
    }
}

/// Runs a kernel; on this target there is one width.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub fn wide<K: Kernel>(kernel: K) -> K::Output {
    kernel.run::<false>()
}

#[cfg(test)]
mod tests {
    use super::super::testing::floats;
    use super::*;

    fn eight(seed: u64) -> [f32; 8] {
        floats(seed, 8).try_into().expect("eight were asked for")
    }

    fn array(lanes: F32x8) -> [f32; 8] {
        let mut out = [0.0; 8];
        lanes.store(&mut out);
        out
    }

    #[test]
    fn arithmetic_is_that_of_each_lane() {
        let (a, b) = (eight(1), eight(2));
        let (x, y) = (F32x8::load(&a), F32x8::load(&b));
        assert_eq!(array(x), a);
        assert_eq!(array(F32x8::splat(3.5)), [3.5; 8]);
        assert_eq!(array(x + y), core::array::from_fn(|i| a[i] + b[i]));
        assert_eq!(array(x - y), core::array::from_fn(|i| a[i] - b[i]));
        assert_eq!(array(x * y), core::array::from_fn(|i| a[i] * b[i]));
        assert_eq!(array(x / y), core::array::from_fn(|i| a[i] / b[i]));
        assert_eq!(array(x.max(y)), core::array::from_fn(|i| a[i].max(b[i])));
        assert_eq!(array(x.min(y)), core::array::from_fn(|i| a[i].min(b[i])));
        assert_eq!(array(x.swap_halves()), [a[4], a[5], a[6], a[7], a[0], a[1], a[2], a[3]]);
        let four = [a[0] + a[4], a[1] + a[5], a[2] + a[6], a[3] + a[7]];
        assert_eq!(x.sum(), (four[0] + four[2]) + (four[1] + four[3]));
    }

    #[test]
    fn comparisons_keep_what_is_no_number() {
        let nan = F32x8::splat(f32::NAN);
        assert!(array(nan.max(F32x8::splat(1.0))).iter().all(|x| x.is_nan()));
        assert!(array(nan.min(F32x8::splat(1.0))).iter().all(|x| x.is_nan()));
        let chosen = nan.below(F32x8::splat(1.0), F32x8::splat(2.0), F32x8::splat(3.0));
        assert_eq!(array(chosen), [3.0; 8]);
        let x = F32x8::load(&[-1.0, 0.0, 1.0, 2.0, f32::NEG_INFINITY, f32::INFINITY, 0.5, 3.0]);
        let chosen = x.below(F32x8::splat(1.0), F32x8::splat(7.0), x);
        assert_eq!(array(chosen), [7.0, 7.0, 1.0, 2.0, 7.0, f32::INFINITY, 7.0, 3.0]);
    }

    #[test]
    fn powers_of_two_come_from_the_low_bits() {
        let rounder = 12_582_912.0;
        for n in [-126.0, -3.0, 0.0, 1.0, 127.0f32] {
            let power = F32x8::splat(n + rounder).power_of_two(rounder);
            assert_eq!(array(power)[3], libm::exp2f(n), "{n}");
        }
    }

    #[test]
    fn the_larger_bits_are_kept() {
        let x = F32x8::load(&[-1.0, 2.0, -3.0, f32::NAN, 0.0, -0.0, 1e-40, f32::NEG_INFINITY]).abs();
        let kept = array(x.max_bits(F32x8::splat(2.5)));
        assert_eq!(
            (kept[..3].to_vec(), kept[4..].to_vec()),
            (vec![2.5, 2.5, 3.0], vec![2.5, 2.5, 2.5, f32::INFINITY])
        );
        assert!(kept[3].is_nan());
        assert!(array(F32x8::splat(f32::INFINITY).max_bits(x))[3].is_nan());
    }

    #[test]
    fn low_halves_stand_beside_each_other() {
        let numbers = [0x1234_0001u32, 0xFFFF_8000, 0x0000_7FFF, 5, 0x4B40_FFFF, 0x4B40_8001, 7, 0xFFFF_0008];
        let mut pairs = [[0; 2]; 4];
        let halves = numbers.map(f32::from_bits);
        let (first, second) = halves.split_at(4);
        let both = F32x8::from_halves(first.as_array().expect("four"), second.as_array().expect("four"));
        both.low_pairs(&mut pairs);
        assert_eq!(pairs, [[1, -1], [-32768, -32767], [32767, 7], [5, 8]]);
    }

    #[test]
    fn products_of_pairs_are_added() {
        let bytes: [[i8; 2]; 8] = core::array::from_fn(|i| [i as i8 * 17 - 127, 127 - i as i8 * 18]);
        for pair in [[1, 0], [0, -1], [32767, 32767], [-32768, 32767], [-32768, -32768], [123, -4567]] {
            let start = I32x8::ZERO.add_products::<false>(&[7, -9], I16x16::load(&bytes));
            let sums = start.add_products::<false>(&pair, I16x16::load(&bytes)).to_floats();
            let want = bytes.map(|[a, b]| {
                let times = |[x, y]: [i16; 2]| i32::from(a) * i32::from(x) + i32::from(b) * i32::from(y);
                (times([7, -9]) + times(pair)) as f32
            });
            assert_eq!(array(sums), want);
        }
    }

    #[test]
    fn four_rows_of_eight_become_eight_rows_of_four() {
        let rows: [[f32; 8]; 4] = core::array::from_fn(|r| core::array::from_fn(|c| (r * 8 + c) as f32));
        let turned = F32x8::transpose(rows.map(|row| F32x8::load(&row))).map(array);
        for (i, value) in turned.as_flattened().iter().enumerate() {
            assert_eq!(*value, rows[i % 4][i / 4]);
        }
    }
}
