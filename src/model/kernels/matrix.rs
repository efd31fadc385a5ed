//! Weight matrices, packed once into panels of eight columns.

use super::LANES;
use super::input::SPAN;

/// A weight matrix packed into panels of eight output columns, so that the inner loop reads memory in order.
///
/// The last panel is filled up with zero columns. Where every weight is a whole number of at most seven bits and a
/// sign times one power of two, and the depth is whole [spans](super::SPAN), a weight takes a byte instead of
/// four. Nothing of a weight is lost, but the rows are then rounded to whole numbers of sixteen bits too (see
/// [`Input`](super::Input)), and products are summed as such: twice as many at once as floats. Other matrices are
/// multiplied in f32.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    pub(super) panels: Panels,
    pub(super) depth: usize,
    pub(super) columns: usize,
    /// What the weights are multiples of, where they are bytes: a power of two, so that multiplying by it is exact.
    pub(super) unit: f32,
}

/// The weights of all panels.
#[derive(Clone, Debug)]
pub(super) enum Panels {
    /// (columns / 8 rounded up, depth) of eight columns.
    Floats(Vec<[f32; LANES]>),
    /// (columns / 8 rounded up, depth / 2) of eight columns' pairs: of each eight steps of depth, i with i + 4.
    Bytes(Vec<[[i8; 2]; LANES]>),
}

impl PackedMatrix {
    /// Packs weights given one row an output, as checkpoints store them: `weights` is (columns, depth).
    ///
    /// # Panics
    ///
    /// If `weights` is not `columns × depth` long, or a size is zero.
    pub fn from_rows(weights: &[f32], depth: usize, columns: usize) -> Self {
        match byte_unit(weights) {
            Some(unit) if depth.is_multiple_of(SPAN) => Self::as_bytes(weights, depth, columns, unit),
            _ => Self::as_floats(weights, depth, columns),
        }
    }

    /// [`from_rows`](Self::from_rows) with four bytes a weight, whatever the weights are: its products are in f32.
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
        Self { panels: Panels::Floats(panels), depth, columns, unit: 1.0 }
    }

    /// The weights as whole multiples of `unit`, a byte each.
    fn as_bytes(weights: &[f32], depth: usize, columns: usize, unit: f32) -> Self {
        check(weights, depth, columns);
        let per_unit = 1.0 / unit;
        let half = depth / 2;
        let mut panels = vec![[[0; 2]; LANES]; columns.div_ceil(LANES) * half];
        for (rows, panel) in weights.chunks(depth * LANES).zip(panels.chunks_exact_mut(half)) {
            for (lane, row) in rows.chunks_exact(depth).enumerate() {
                for (eight, pairs) in row.as_chunks::<8>().0.iter().zip(panel.as_chunks_mut::<4>().0) {
                    for (i, &weight) in eight.iter().enumerate() {
                        pairs[i % 4][lane][i / 4] = (weight * per_unit) as i8;
                    }
                }
            }
        }
        Self { panels: Panels::Bytes(panels), depth, columns, unit }
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
        let whole: Vec<f32> = floats(1, 64 * 10).iter().map(|x| (x * 100.0).round() / 1024.0).collect();
        let packed = PackedMatrix::from_rows(&whole, 64, 10);
        assert_eq!((packed.bytes(), packed.panels()), (64 * 16, 2));
        assert_eq!(PackedMatrix::as_floats(&whole, 64, 10).bytes(), 4 * 64 * 16);
        assert_eq!(PackedMatrix::from_rows(&floats(2, 64 * 10), 64, 10).bytes(), 4 * 64 * 16);
        // A depth that is no whole number of spans.
        assert_eq!(PackedMatrix::from_rows(&whole[..320], 40, 8).bytes(), 4 * 40 * 8);
    }
}
