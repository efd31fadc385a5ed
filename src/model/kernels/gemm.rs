//! Matrix products: blocks of up to four rows against panels of eight columns.

use core::ops::Range;

use super::LANES;
use super::elementwise::silu_mul;
use super::input::{EVEN_SPAN, Input, SPAN};
use super::matrix::{PackedMatrix, Panels};
use super::rows::{self, BLOCK_ROWS};
use super::simd::{F32x8, I16x16, I32x8, Kernel, wide};

/// Rows times panels whose sums fit the registers together: sixteen of 128 bits in wasm, of 256 natively.
const AT_ONCE: usize = if cfg!(target_arch = "wasm32") { BLOCK_ROWS } else { 2 * BLOCK_ROWS };

impl PackedMatrix {
    /// Multiplies the rows of `input`, [rounded](Input::round_for) for this matrix, by the columns of some panels, and
    /// writes (rows, columns of those panels) to `out`.
    ///
    /// Each output is the sum over the depth in order, whatever the number of rows, so that a row's result is the
    /// same to the bit alone and in any batch. In a matrix of bytes that is a sum of spans, each of them exact.
    ///
    /// # Panics
    ///
    /// If `input` or `out` has another shape, there are no such panels, or the rows have not been rounded.
    pub fn multiply(&self, panels: Range<usize>, input: &Input, out: &mut [f32]) {
        let rows = input.shape().0;
        let columns = (panels.end * LANES).min(self.columns) - panels.start * LANES;
        assert_eq!(out.len(), rows * columns, "the output should be (rows, columns)");
        self.product(panels, input, Rows { out, columns, add: false });
    }

    /// [`multiply`](Self::multiply) by all columns, added to `out` instead: a residual connection.
    ///
    /// # Panics
    ///
    /// If a slice has another length.
    pub fn multiply_add(&self, input: &Input, out: &mut [f32]) {
        assert_eq!(out.len(), input.shape().0 * self.columns, "the output should be (rows, columns)");
        self.product(0..self.panels(), input, Rows { out, columns: self.columns, add: true });
    }

    /// The gated MLP's first half: of panels that take turns between the gate's and what it opens, writes
    /// SiLU(gate) · up, in blocks of rows again, half as many columns.
    ///
    /// # Panics
    ///
    /// If a slice has another length, or the columns are no pairs of whole panels.
    pub fn multiply_gated(&self, input: &Input, out: &mut [f32]) {
        assert!(self.columns.is_multiple_of(2 * LANES), "gate and up take turns, a panel each");
        assert_eq!(
            out.len(),
            input.shape().0 * self.columns / 2,
            "the output should be half of (rows, columns)"
        );
        self.product(0..self.panels(), input, Gated { out, columns: self.columns / 2 });
    }

    fn product(&self, panels: Range<usize>, input: &Input, sink: impl Sink) {
        assert!(panels.start < panels.end && panels.end <= self.panels(), "there are such panels");
        assert_eq!(input.shape().1, self.depth, "the input's rows are as long as the matrix is deep");
        wide(Product { matrix: self, panels, input, rows: input.shape().0, sink });
    }
}

/// What becomes of a product's sums.
trait Sink {
    /// Whether it takes two neighbouring panels together.
    const PAIRS: bool;

    /// Takes the sums of `R` rows, from `row` on, with `G` panels, from `panel` on (counted from the product's first).
    fn put<const R: usize, const G: usize>(&mut self, row: usize, panel: usize, sums: [[F32x8; R]; G]);
}

/// Rows one after the other.
struct Rows<'a> {
    out: &'a mut [f32],
    columns: usize,
    add: bool,
}

impl Sink for Rows<'_> {
    const PAIRS: bool = false;

    #[inline(always)]
    fn put<const R: usize, const G: usize>(&mut self, row: usize, panel: usize, sums: [[F32x8; R]; G]) {
        for (g, sums) in sums.into_iter().enumerate() {
            let column = (panel + g) * LANES;
            for (r, sums) in sums.into_iter().enumerate() {
                let out = &mut self.out[(row + r) * self.columns..][..self.columns][column..];
                if let Some(out) = out.first_chunk_mut::<LANES>() {
                    let sums = if self.add { F32x8::load(out) + sums } else { sums };
                    sums.store(out);
                    continue;
                }
                // The columns that only fill up the last panel are left out.
                let mut lanes = [0.0; LANES];
                sums.store(&mut lanes);
                for (out, sum) in out.iter_mut().zip(lanes) {
                    *out = if self.add { *out + sum } else { sum };
                }
            }
        }
    }
}

/// SiLU of one panel times the next, in blocks of rows.
struct Gated<'a> {
    out: &'a mut [f32],
    columns: usize,
}

impl Sink for Gated<'_> {
    const PAIRS: bool = true;

    #[inline(always)]
    fn put<const R: usize, const G: usize>(&mut self, row: usize, panel: usize, sums: [[F32x8; R]; G]) {
        let [gate, up] = *sums.as_slice() else { unreachable!("panels come in pairs") };
        let out = &mut self.out[row * self.columns..][..R * self.columns];
        rows::store::<R>(out, panel / 2 * LANES, core::array::from_fn(|r| silu_mul(gate[r], up[r])));
    }
}

/// A product about to be computed.
struct Product<'a, S> {
    matrix: &'a PackedMatrix,
    panels: Range<usize>,
    input: &'a Input,
    rows: usize,
    sink: S,
}

impl<S: Sink> Kernel for Product<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<const AVX2: bool>(self) {
        // One row leaves registers free: two panels at once keep enough sums in flight.
        if S::PAIRS || self.rows == 1 || AT_ONCE > BLOCK_ROWS {
            self.panels_by::<2, AVX2>();
        } else {
            self.panels_by::<1, AVX2>();
        }
    }
}

impl<S: Sink> Product<'_, S> {
    /// All panels, `G` at a time; a last one that is left over alone.
    #[inline(always)]
    fn panels_by<const G: usize, const AVX2: bool>(mut self) {
        let (mut panel, count) = (0, self.panels.len());
        while panel + G <= count {
            self.group::<G, AVX2>(panel);
            panel += G;
        }
        if panel < count {
            self.group::<1, AVX2>(panel);
        }
    }

    /// `G` neighbouring panels with all rows: the panels stay in the first-level cache while the rows pass.
    #[inline(always)]
    fn group<const G: usize, const AVX2: bool>(&mut self, panel: usize) {
        for first in (0..self.rows).step_by(BLOCK_ROWS) {
            match self.rows - first {
                1 => self.block::<1, G, AVX2>(first, panel),
                2 => self.block::<2, G, AVX2>(first, panel),
                3 => self.block::<3, G, AVX2>(first, panel),
                _ => self.block::<BLOCK_ROWS, G, AVX2>(first, panel),
            }
        }
    }

    /// One block of rows, from `row` on, with `G` panels.
    #[inline(always)]
    fn block<const R: usize, const G: usize, const AVX2: bool>(&mut self, row: usize, panel: usize) {
        let (matrix, depth) = (self.matrix, self.matrix.depth);
        let first = self.panels.start + panel;
        let mut sums = [[F32x8::ZERO; R]; G];
        match &matrix.panels {
            Panels::Floats(panels) => {
                let input = self.input.floats()[row * depth..][..R * depth].as_chunks().0;
                for (g, sums) in sums.iter_mut().enumerate() {
                    accumulate(sums, input, &panels[(first + g) * depth..][..depth]);
                }
            }
            Panels::Bytes(panels) => {
                if self.input.whole().2 == EVEN_SPAN {
                    self.whole_block::<R, G, { EVEN_SPAN / 2 }, AVX2>(&mut sums, row, first, panels);
                } else {
                    self.whole_block::<R, G, { SPAN / 2 }, AVX2>(&mut sums, row, first, panels);
                }
                let unit = F32x8::splat(matrix.unit);
                sums = sums.map(|sums| sums.map(|sum| sum * unit));
            }
        }
        self.sink.put(row, panel, sums);
    }

    /// One block of rows, from `row` on, with `G` panels of bytes, from `first` on.
    #[inline(always)]
    fn whole_block<const R: usize, const G: usize, const HALF: usize, const AVX2: bool>(
        &self,
        sums: &mut [[F32x8; R]; G],
        row: usize,
        first: usize,
        panels: &[[[i8; 2]; LANES]],
    ) {
        let half = self.matrix.depth / 2;
        let (pairs, scales, _) = self.input.whole();
        let pairs = pairs[row * half..][..R * half].as_chunks().0;
        let scales = scales[row * half / HALF..][..R * half / HALF].as_chunks().0;
        let panel = |g| &panels[(first + g) * half..][..half];
        if R * G <= AT_ONCE {
            accumulate_whole::<R, G, HALF, AVX2>(sums, pairs, scales, core::array::from_fn(panel));
        } else {
            for (g, sums) in sums.iter_mut().enumerate() {
                let sums = core::array::from_mut(sums);
                accumulate_whole::<R, 1, HALF, AVX2>(sums, pairs, scales, [panel(g)]);
            }
        }
    }
}

/// Adds to `sums` the products of `R` rows, side by side, with `G` panels: span by span in order, each summed in whole
/// numbers before it becomes a float and is scaled. 127 · 32,767 · [`EVEN_SPAN`] is far below 2³¹.
///
/// A span's steps are written out, each with a way out to where the sums are used. It is never taken, but V8 moves
/// what is only computed down to its use: without it, past the loads of all later steps, which then fill the registers.
#[cfg_attr(target_arch = "wasm32", inline(never))]
#[cfg_attr(not(target_arch = "wasm32"), inline(always))]
fn accumulate_whole<const R: usize, const G: usize, const HALF: usize, const AVX2: bool>(
    sums: &mut [[F32x8; R]; G],
    pairs: &[[[i16; 2]; R]],
    scales: &[[f32; R]],
    panels: [&[[[i8; 2]; LANES]]; G],
) {
    let mut local = *sums;
    let mut panels = panels.map(|panel| panel.as_chunks::<HALF>().0.iter());
    let mut pairs = pairs.iter();
    'depth: for scales in scales {
        let mut spans = [&[[[0; 2]; LANES]; HALF]; G];
        for (span, panel) in spans.iter_mut().zip(&mut panels) {
            let Some(next) = panel.next() else { break 'depth };
            *span = next;
        }
        let mut whole = [[I32x8::ZERO; R]; G];
        'span: {
            macro_rules! steps {
                ($($i:literal)*) => {$(
                    if $i == HALF {
                        break 'span;
                    }
                    let Some(step) = pairs.next() else { break 'span };
                    for (whole, span) in whole.iter_mut().zip(spans) {
                        let weights = I16x16::load(&span[$i % HALF]);
                        for (whole, pair) in whole.iter_mut().zip(step) {
                            *whole = whole.add_products::<AVX2>(pair, weights);
                        }
                    }
                )*};
            }
            steps!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15);
        }
        for (sums, whole) in local.iter_mut().zip(whole) {
            for ((sum, whole), scale) in sums.iter_mut().zip(whole).zip(scales) {
                *sum = *sum + whole.to_floats() * F32x8::splat(*scale);
            }
        }
    }
    *sums = local;
}

/// One element of `R` rows times eight columns.
#[inline(always)]
fn step<const R: usize>(sums: &mut [F32x8; R], values: &[f32; R], weights: F32x8) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum = *sum + F32x8::splat(*value) * weights;
    }
}

/// Adds to `sums` the products of `R` rows, side by side, with eight columns each time, in order.
///
/// The loop calls `next` on the panel instead of zipping it with the input: a zip of slices counts, and makes addresses
/// of the count; so each has a pointer that moves on.
///
/// # Panics
///
/// If there are fewer columns than elements.
#[inline(always)]
pub(in crate::model) fn accumulate<const R: usize>(
    sums: &mut [F32x8; R],
    input: &[[f32; R]],
    panel: &[[f32; LANES]],
) {
    let mut local = *sums; // A copy that stays in registers.
    let mut panel = panel.iter();
    for values in input {
        let Some(weights) = panel.next() else { break };
        step(&mut local, values, F32x8::load(weights));
    }
    *sums = local;
}

#[cfg(test)]
mod tests;
