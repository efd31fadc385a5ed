//! What products read: rows of floats, and the whole numbers of sixteen bits that stand for them where the weights are
//! whole numbers too.

use super::matrix::{PackedMatrix, Panels};
use super::rows::{BLOCK_ROWS, sized};
use super::simd::{F32x8, Kernel, wide};

/// Elements of a row that share a scale, so that one large element makes few others coarse.
///
/// Over 700 positions of three default models the logits' deviation from f64 is 1.6e-5 with 16 for the MLP's inner
/// activations and 32 for the other rows, 1.5e-5 with 16 everywhere and 1.8e-5 with 32 everywhere, and the largest error
/// 8.2e-5, 8.4e-5 and 1.03e-4.
pub const SPAN: usize = 16;
/// The same in [even](Input::round_even_for) rows.
pub const EVEN_SPAN: usize = 32;
/// The largest whole number that stands for an element.
const LARGEST: f32 = 32_767.0;
/// Adding this to a float of at most ±2¹⁵ leaves its nearest integer, of two halfway the even one, in the low sixteen
/// bits (1.5 · 2²³).
const ROUNDER: f32 = 12_582_912.0;
/// What a span's largest element is taken to be if it is smaller, so that its scale has an inverse.
const SMALLEST: f32 = 1e-30;

/// A product's input: rows in blocks (see [`rows`](super::rows)), kept between products so that room is taken once.
///
/// For a matrix of bytes each row is cut into spans of [`SPAN`] or `EVEN_SPAN` elements, and an element becomes the
/// nearest whole multiple of a 32,767th of its span's largest: an error of at most 1.6e-5 of that. What is rounded
/// depends on the row alone, never on rows beside it. A span that holds NaN or an infinity makes every output of its row NaN.
#[derive(Clone, Debug, Default)]
pub struct Input {
    floats: Vec<f32>,     // (rows, depth) in blocks
    pairs: Vec<[i16; 2]>, // (rows, depth / 2) in blocks: of each eight elements, i with i + 4
    scales: Vec<f32>,     // (rows, depth / SPAN) in blocks
    rows: usize,
    depth: usize,
    /// Whether the whole numbers are those of the floats.
    rounded: bool,
    /// Elements of a row that share a scale.
    span: usize,
}

impl Input {
    /// Room for `rows` rows of `depth` floats, in blocks; what they hold is left from earlier use.
    pub fn floats_mut(&mut self, rows: usize, depth: usize) -> &mut [f32] {
        (self.rows, self.depth, self.rounded) = (rows, depth, false);
        sized(&mut self.floats, rows * depth, 0.0)
    }

    /// Rounds the floats to whole numbers, once, if it is those that `matrix` is multiplied by.
    ///
    /// # Panics
    ///
    /// If the rows are of another length than the matrix wants.
    pub fn round_for(&mut self, matrix: &PackedMatrix) {
        self.round(matrix, SPAN);
    }

    /// [`round_for`](Self::round_for) of rows whose elements are of like size: twice as many share a scale, where
    /// rows are long enough.
    ///
    /// # Panics
    ///
    /// If the rows are of another length than the matrix wants.
    pub fn round_even_for(&mut self, matrix: &PackedMatrix) {
        self.round(matrix, if matrix.depth().is_multiple_of(EVEN_SPAN) { EVEN_SPAN } else { SPAN });
    }

    fn round(&mut self, matrix: &PackedMatrix, span: usize) {
        assert_eq!(self.depth, matrix.depth(), "rows are as long as the matrix is deep");
        if let Panels::Bytes(_) = matrix.panels
            && !self.rounded
        {
            (self.rounded, self.span) = (true, span);
            let (rows, depth) = (self.rows, self.depth);
            wide(Rounding {
                floats: &self.floats[..rows * depth],
                depth,
                span,
                pairs: sized(&mut self.pairs, rows * depth / 2, [0; 2]),
                scales: sized(&mut self.scales, rows * depth / span, 0.0),
            });
        }
    }

    /// Rows, and elements of each.
    pub(super) fn shape(&self) -> (usize, usize) {
        (self.rows, self.depth)
    }

    /// The rows as floats.
    pub(super) fn floats(&self) -> &[f32] {
        &self.floats[..self.rows * self.depth]
    }

    /// The rows as whole numbers, what each span's are multiples of, and how many elements a span has.
    ///
    /// # Panics
    ///
    /// If they have not been rounded since the floats were written.
    pub(super) fn whole(&self) -> (&[[i16; 2]], &[f32], usize) {
        assert!(self.rounded, "rows are rounded for a matrix of bytes before they are multiplied by it");
        let elements = self.rows * self.depth;
        (&self.pairs[..elements / 2], &self.scales[..elements / self.span], self.span)
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.floats.capacity() * size_of::<f32>()
            + self.pairs.capacity() * size_of::<[i16; 2]>()
            + self.scales.capacity() * size_of::<f32>()
    }
}

/// Rows about to be rounded.
struct Rounding<'a> {
    floats: &'a [f32],
    depth: usize,
    span: usize,
    pairs: &'a mut [[i16; 2]],
    scales: &'a mut [f32],
}

impl Kernel for Rounding<'_> {
    type Output = ();

    #[inline(always)]
    fn run<const AVX2: bool>(self) {
        if self.span == EVEN_SPAN {
            self.blocks::<EVEN_SPAN>();
        } else {
            self.blocks::<SPAN>();
        }
    }
}

impl Rounding<'_> {
    #[inline(always)]
    fn blocks<const SPAN: usize>(self) {
        let block = BLOCK_ROWS * self.depth;
        let blocks = self.floats.chunks(block).zip(self.pairs.chunks_mut(block / 2));
        for ((floats, pairs), scales) in blocks.zip(self.scales.chunks_mut(block / SPAN)) {
            match floats.len() / self.depth {
                1 => rounded::<1, SPAN>(floats, pairs, scales),
                2 => rounded::<2, SPAN>(floats, pairs, scales),
                3 => rounded::<3, SPAN>(floats, pairs, scales),
                _ => rounded::<BLOCK_ROWS, SPAN>(floats, pairs, scales),
            }
        }
    }
}

/// One block of `R` rows: `floats` is (depth, R), `pairs` (depth / 2, R), `scales` (depth / SPAN, R).
///
/// Of each eight elements the first four and the last four are `R` times four floats: lane `l` of the `k`th four is of
/// row (4·k + l) % R in both halves.
#[inline(always)]
fn rounded<const R: usize, const SPAN: usize>(floats: &[f32], pairs: &mut [[i16; 2]], scales: &mut [f32]) {
    let spans = floats.chunks_exact(SPAN * R).zip(pairs.chunks_exact_mut(SPAN / 2 * R));
    for ((floats, pairs), scales) in spans.zip(scales.as_chunks_mut::<R>().0) {
        let (floats, _) = floats.as_chunks::<4>();
        let fours = |eight: usize, k: usize| {
            F32x8::from_halves(&floats[(2 * eight) * R + k], &floats[(2 * eight + 1) * R + k])
        };
        let mut largest = [F32x8::splat(SMALLEST); R];
        for eight in 0..SPAN / 8 {
            for (k, largest) in largest.iter_mut().enumerate() {
                *largest = fours(eight, k).abs().max_bits(*largest);
            }
        }
        let mut lanes = [[0.0; 8]; R];
        for (lanes, largest) in lanes.iter_mut().zip(largest) {
            largest.max_bits(largest.swap_halves()).store(lanes);
        }
        let mut most = [0.0f32; R];
        for k in 0..R {
            for l in 0..4 {
                let most = &mut most[(4 * k + l) % R];
                *most = f32::from_bits(most.to_bits().max(lanes[k][l].to_bits()));
            }
        }
        let mut inverse = [[0.0; 8]; R];
        for r in 0..R {
            scales[r] = most[r] * (1.0 / LARGEST);
            most[r] = LARGEST / most[r];
        }
        for (k, inverse) in inverse.iter_mut().enumerate() {
            for (l, inverse) in inverse.iter_mut().enumerate() {
                *inverse = most[(4 * k + l % 4) % R];
            }
        }
        let inverse = inverse.map(|inverse| F32x8::load(&inverse));
        let (pairs, _) = pairs.as_chunks_mut::<4>();
        for eight in 0..SPAN / 8 {
            for (k, inverse) in inverse.iter().enumerate() {
                let scaled = fours(eight, k) * *inverse + F32x8::splat(ROUNDER);
                scaled.low_pairs(&mut pairs[eight * R + k]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rows::{in_blocks, place};
    use super::super::testing::floats;
    use super::*;

    #[test]
    fn an_element_becomes_the_nearest_multiple_of_its_spans_unit() {
        let (depth, columns) = (96, 8);
        let matrix = PackedMatrix::from_rows(&vec![1.0; depth * columns], depth, columns);
        for (rows, even) in (1..=9).flat_map(|rows| [(rows, false), (rows, true)]) {
            let given: Vec<f32> =
                floats(rows as u64, rows * depth).iter().map(|x| x * x * x * 50.0).collect();
            let mut input = Input::default();
            input.floats_mut(rows, depth).copy_from_slice(&in_blocks(&given, depth));
            if even {
                input.round_even_for(&matrix);
            } else {
                input.round_for(&matrix);
            }
            let (pairs, scales, span_length) = input.whole();
            assert_eq!(span_length, if even { EVEN_SPAN } else { SPAN });
            for row in 0..rows {
                let (first_pair, step) = place(row, rows, depth / 2);
                let (first_scale, _) = place(row, rows, depth / span_length);
                for (span, elements) in given[row * depth..][..depth].chunks(span_length).enumerate() {
                    let largest = elements.iter().fold(0.0f32, |most, x| most.max(x.abs()));
                    let scale = scales[first_scale + span * step];
                    assert!((scale * LARGEST / largest - 1.0).abs() < 1e-6);
                    for (i, x) in elements.iter().enumerate() {
                        let pair = (span * span_length + i) / 8 * 4 + i % 4;
                        let got = pairs[first_pair + pair * step][i % 8 / 4];
                        assert!(got.unsigned_abs() <= 32_767);
                        let error = f64::from(got) - f64::from(*x) / f64::from(scale);
                        assert!(error.abs() < 0.51, "{x} became {got} of {scale}");
                    }
                }
            }
        }
    }
}
