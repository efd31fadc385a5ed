//! Weight matrices, packed once into panels of eight columns.

use super::LANES;
use super::simd::F32x8;

/// A weight matrix packed into panels of eight output columns, so that the inner loop reads memory in order.
///
/// The last panel is filled up with zero columns. Where every weight is a whole number of at most seven bits and a
/// sign times one power of two, a weight takes a byte instead of four; nothing is rounded, so both forms hold the
/// same numbers. At one row a product is bound by how fast its weights arrive, which makes a quarter of the bytes
/// worth their unpacking; for many rows a panel is unpacked once.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    pub(super) panels: Panels,
    pub(super) depth: usize,
    pub(super) columns: usize,
    /// What a sum is multiplied by in the end: a power of two, so that this is exact.
    pub(super) scale: f32,
}

/// The weights of all panels.
#[derive(Clone, Debug)]
pub(super) enum Panels {
    /// (columns / 8 rounded up, depth) of eight columns.
    Floats(Vec<[f32; LANES]>),
    /// (columns / 8 rounded up, depth / 2) of two steps of depth by eight columns, as [`F32x8::from_bytes`] reads them.
    Bytes(Vec<[i8; 2 * LANES]>),
}

impl PackedMatrix {
    /// Packs weights given one row an output, as checkpoints store them: `weights` is (columns, depth).
    ///
    /// # Panics
    ///
    /// If `weights` is not `columns × depth` long, or a size is zero.
    pub fn from_rows(weights: &[f32], depth: usize, columns: usize) -> Self {
        match byte_unit(weights) {
            Some(unit) if depth.is_multiple_of(2) => Self::as_bytes(weights, depth, columns, unit),
            _ => Self::as_floats(weights, depth, columns),
        }
    }

    /// [`from_rows`](Self::from_rows) with four bytes a weight, whatever the weights are.
    ///
    /// # Panics
    ///
    /// If `weights` is not `columns × depth` long, or a size is zero.
    pub fn as_floats(weights: &[f32], depth: usize, columns: usize) -> Self {
        check(weights, depth, columns);
        let mut panels = vec![[0.0; LANES]; columns.div_ceil(LANES) * depth];
        for (rows, panel) in weights.chunks(depth * LANES).zip(panels.chunks_exact_mut(depth)) {
            for (lane, row) in rows.chunks_exact(depth).enumerate() {
                for (lanes, &weight) in panel.iter_mut().zip(row) {
                    lanes[lane] = weight;
                }
            }
        }
        Self { panels: Panels::Floats(panels), depth, columns, scale: 1.0 }
    }

    /// The weights as whole multiples of `unit`, a byte each.
    fn as_bytes(weights: &[f32], depth: usize, columns: usize, unit: f32) -> Self {
        check(weights, depth, columns);
        let per_unit = 1.0 / unit;
        let half = depth / 2;
        let mut panels = vec![[0; 2 * LANES]; columns.div_ceil(LANES) * half];
        for (rows, panel) in weights.chunks(depth * LANES).zip(panels.chunks_exact_mut(half)) {
            for (lane, row) in rows.chunks_exact(depth).enumerate() {
                for (bytes, pair) in panel.iter_mut().zip(row.as_chunks::<2>().0) {
                    for (step, &weight) in pair.iter().enumerate() {
                        bytes[lane % 4 * 4 + 2 * step + lane / 4] = (weight * per_unit) as i8;
                    }
                }
            }
        }
        // What from_bytes gives is 2²⁴ times the byte.
        let scale = unit / 16_777_216.0;
        Self { panels: Panels::Bytes(panels), depth, columns, scale }
    }

    /// Length of an input row.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Length of an output row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of panels: of eight columns each, but for the last.
    pub fn panels(&self) -> usize {
        self.columns.div_ceil(LANES)
    }

    /// Bytes that the panels take.
    pub fn bytes(&self) -> usize {
        match &self.panels {
            Panels::Floats(panels) => size_of_val(panels.as_slice()),
            Panels::Bytes(panels) => size_of_val(panels.as_slice()),
        }
    }
}

fn check(weights: &[f32], depth: usize, columns: usize) {
    assert!(depth > 0 && columns > 0, "a matrix has at least one row and one column");
    assert_eq!(weights.len(), depth * columns, "the weights should be (columns, depth)");
}

/// Unpacks one panel of bytes to floats, (depth, 8).
#[inline(always)]
pub(super) fn unpack(panel: &[[i8; 2 * LANES]], out: &mut [[f32; LANES]]) {
    for (bytes, out) in panel.iter().zip(out.as_chunks_mut::<2>().0) {
        let (first, second) = F32x8::from_bytes(bytes);
        first.store(&mut out[0]);
        second.store(&mut out[1]);
    }
}

/// The largest power of two of which every weight is a whole multiple, if no multiple is beyond ±127.
fn byte_unit(weights: &[f32]) -> Option<f32> {
    let (mut lowest, mut largest) = (i32::MAX, 0.0f32);
    for weight in weights {
        if *weight == 0.0 {
            continue;
        }
        if !weight.is_normal() {
            return None;
        }
        let bits = weight.to_bits();
        let exponent = (bits >> 23 & 0xFF) as i32 - 127;
        // The lowest bit that is set, the implicit one before the mantissa if no other is.
        lowest = lowest.min(exponent - 23 + (bits | 1 << 23).trailing_zeros().min(23) as i32);
        largest = largest.max(weight.abs());
    }
    // Far from both ends, so that neither the unit's inverse nor a scaled sum leaves the normal numbers.
    let unit = match lowest {
        i32::MAX => 1.0,
        -60..=60 => libm::exp2f(lowest as f32),
        _ => return None,
    };
    (largest / unit <= 127.0).then_some(unit)
}

#[cfg(test)]
mod tests {
    use super::super::testing::floats;
    use super::*;

    #[test]
    fn the_unit_is_the_largest_power_that_divides_all() {
        assert_eq!(byte_unit(&[0.5, -0.75, 0.0]), Some(0.25));
        assert_eq!(byte_unit(&[127.0, -127.0, 1.0]), Some(1.0));
        assert_eq!(byte_unit(&[128.0, 64.0]), Some(64.0));
        assert_eq!(byte_unit(&[0.0, -0.0]), Some(1.0));
        assert_eq!(byte_unit(&[254.0, 1.0]), None);
        assert_eq!(byte_unit(&[0.1]), None);
        assert_eq!(byte_unit(&[1.0, f32::NAN]), None);
        assert_eq!(byte_unit(&[1.0, f32::INFINITY]), None);
        assert_eq!(byte_unit(&[1e-30]), None);
    }

    #[test]
    fn bytes_are_taken_where_nothing_is_lost() {
        let whole: Vec<f32> = floats(1, 24 * 10).iter().map(|x| (x * 100.0).round() / 1024.0).collect();
        let packed = PackedMatrix::from_rows(&whole, 24, 10);
        assert_eq!((packed.bytes(), packed.panels()), (24 * 16, 2));
        assert_eq!(PackedMatrix::as_floats(&whole, 24, 10).bytes(), 4 * 24 * 16);
        assert_eq!(PackedMatrix::from_rows(&floats(2, 24 * 10), 24, 10).bytes(), 4 * 24 * 16);
        // An odd depth has no whole pairs of steps.
        assert_eq!(PackedMatrix::from_rows(&whole, 15, 16).bytes(), 4 * 15 * 16);
    }

    #[test]
    fn unpacked_bytes_are_the_panel_of_floats() {
        let weights: Vec<f32> = floats(3, 6 * 11).iter().map(|x| (x * 127.0).round() / 64.0).collect();
        let (bytes, floats) =
            (PackedMatrix::from_rows(&weights, 6, 11), PackedMatrix::as_floats(&weights, 6, 11));
        let (Panels::Bytes(packed), Panels::Floats(plain)) = (&bytes.panels, &floats.panels) else {
            panic!("one of each");
        };
        let mut out = vec![[f32::NAN; LANES]; 6];
        for (packed, plain) in packed.chunks_exact(3).zip(plain.chunks_exact(6)) {
            unpack(packed, &mut out);
            for (out, plain) in out.iter().zip(plain) {
                assert_eq!(out.map(|x| x * bytes.scale), *plain);
            }
        }
    }
}
