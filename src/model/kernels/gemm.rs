//! Matrix products: blocks of up to four rows against panels of eight columns.

use core::ops::Range;

use super::LANES;
use super::elementwise::silu_mul;
use super::matrix::{PackedMatrix, Panels, unpack};
use super::rows::{self, BLOCK_ROWS};
use super::simd::{F32x8, Kernel, wide};

/// Rows times panels whose sums fit the registers together: sixteen of 128 bits in wasm, of 256 natively.
const AT_ONCE: usize = if cfg!(target_arch = "wasm32") { BLOCK_ROWS } else { 2 * BLOCK_ROWS };

/// Room for the panels that a product unpacks; kept, so that it is taken once.
pub type Unpacked = Vec<[f32; LANES]>;

impl PackedMatrix {
    /// Multiplies `rows` rows of `input`, in blocks (see [`rows`]), by the columns of some panels, and writes
    /// (rows, columns of those panels) to `out`.
    ///
    /// Each output is the sum over the depth in order, whatever the number of rows, so that a row's result is the
    /// same to the bit alone and in any batch.
    ///
    /// # Panics
    ///
    /// If a slice has another length, or there are no such panels.
    pub fn multiply(
        &self,
        panels: Range<usize>,
        input: &[f32],
        rows: usize,
        room: &mut Unpacked,
        out: &mut [f32],
    ) {
        let columns = (panels.end * LANES).min(self.columns) - panels.start * LANES;
        assert_eq!(out.len(), rows * columns, "the output should be (rows, columns)");
        self.product(panels, input, rows, room, Rows { out, columns, add: false });
    }

    /// [`multiply`](Self::multiply) by all columns, added to `out` instead: a residual connection.
    ///
    /// # Panics
    ///
    /// If a slice has another length.
    pub fn multiply_add(&self, input: &[f32], rows: usize, room: &mut Unpacked, out: &mut [f32]) {
        assert_eq!(out.len(), rows * self.columns, "the output should be (rows, columns)");
        self.product(0..self.panels(), input, rows, room, Rows { out, columns: self.columns, add: true });
    }

    /// The gated MLP's first half: of panels that take turns between the gate's and what it opens, writes
    /// SiLU(gate) · up, in blocks of rows again, half as many columns.
    ///
    /// # Panics
    ///
    /// If a slice has another length, or the columns are no pairs of whole panels.
    pub fn multiply_gated(&self, input: &[f32], rows: usize, room: &mut Unpacked, out: &mut [f32]) {
        assert!(self.columns.is_multiple_of(2 * LANES), "gate and up take turns, a panel each");
        assert_eq!(out.len(), rows * self.columns / 2, "the output should be half of (rows, columns)");
        self.product(0..self.panels(), input, rows, room, Gated { out, columns: self.columns / 2 });
    }

    fn product(
        &self,
        panels: Range<usize>,
        input: &[f32],
        rows: usize,
        room: &mut Unpacked,
        sink: impl Sink,
    ) {
        assert!(panels.start < panels.end && panels.end <= self.panels(), "there are such panels");
        assert_eq!(input.len(), rows * self.depth, "the input should be (rows, depth), in blocks");
        wide(Product { matrix: self, panels, input, rows, room, sink });
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
    input: &'a [f32],
    rows: usize,
    room: &'a mut Unpacked,
    sink: S,
}

impl<S: Sink> Kernel for Product<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        // One row leaves registers free: two panels at once keep enough sums in flight.
        if S::PAIRS || self.rows == 1 || AT_ONCE > BLOCK_ROWS {
            self.panels_by::<2>();
        } else {
            self.panels_by::<1>();
        }
    }
}

impl<S: Sink> Product<'_, S> {
    /// All panels, `G` at a time; a last one that is left over alone.
    #[inline(always)]
    fn panels_by<const G: usize>(mut self) {
        let (mut panel, count) = (0, self.panels.len());
        while panel + G <= count {
            self.group::<G>(panel);
            panel += G;
        }
        if panel < count {
            self.group::<1>(panel);
        }
    }

    /// `G` neighbouring panels with all rows: the panels stay in the first-level cache while the rows pass.
    #[inline(always)]
    fn group<const G: usize>(&mut self, panel: usize) {
        let (matrix, depth) = (self.matrix, self.matrix.depth);
        let first = self.panels.start + panel;
        match &matrix.panels {
            Panels::Floats(panels) => {
                let panels = &panels[first * depth..][..G * depth];
                self.all_rows(panel, core::array::from_fn::<_, G, _>(|g| &panels[g * depth..][..depth]));
            }
            Panels::Bytes(panels) => {
                let half = depth / 2;
                let panels = &panels[first * half..][..G * half];
                let panels: [_; G] = core::array::from_fn(|g| &panels[g * half..][..half]);
                if self.rows <= BLOCK_ROWS {
                    return self.all_rows(panel, panels);
                }
                let mut room = core::mem::take(self.room);
                room.resize((G * depth).max(room.len()), [0.0; LANES]);
                for (panel, room) in panels.into_iter().zip(room.chunks_exact_mut(depth)) {
                    unpack(panel, room);
                }
                self.all_rows(panel, core::array::from_fn::<_, G, _>(|g| &room[g * depth..][..depth]));
                *self.room = room;
            }
        }
    }

    #[inline(always)]
    fn all_rows<W: Weights, const G: usize>(&mut self, panel: usize, panels: [&[W]; G]) {
        let depth = self.matrix.depth;
        let whole = self.rows / BLOCK_ROWS * BLOCK_ROWS;
        let (blocks, rest) = self.input.split_at(whole * depth);
        for (block, input) in blocks.chunks_exact(BLOCK_ROWS * depth).enumerate() {
            self.rows::<BLOCK_ROWS, W, G>(block * BLOCK_ROWS, panel, input, panels);
        }
        match self.rows - whole {
            0 => {}
            1 => self.rows::<1, W, G>(whole, panel, rest, panels),
            2 => self.rows::<2, W, G>(whole, panel, rest, panels),
            _ => self.rows::<3, W, G>(whole, panel, rest, panels),
        }
    }

    #[inline(always)]
    fn rows<const R: usize, W: Weights, const G: usize>(
        &mut self,
        row: usize,
        panel: usize,
        input: &[f32],
        panels: [&[W]; G],
    ) {
        let mut sums = [[F32x8::ZERO; R]; G];
        let (input, _) = input.as_chunks::<R>();
        if R * G <= AT_ONCE {
            W::accumulate(&mut sums, input, panels);
        } else {
            for (sums, panel) in sums.iter_mut().zip(panels) {
                W::accumulate(core::array::from_mut(sums), input, [panel]);
            }
        }
        let scale = F32x8::splat(self.matrix.scale);
        self.sink.put(row, panel, sums.map(|sums| sums.map(|sum| sum * scale)));
    }
}

/// A panel's weights, in the form that they are stored in.
///
/// The loops call `next` on each panel instead of zipping them with the input: a zip of slices counts, and makes
/// addresses of the count; so each has a pointer that moves on.
trait Weights: Copy {
    /// Adds to `sums` the products of `R` rows, side by side, with `G` panels, element by element in order.
    fn accumulate<const R: usize, const G: usize>(
        sums: &mut [[F32x8; R]; G],
        input: &[[f32; R]],
        panels: [&[Self]; G],
    );
}

impl Weights for [f32; LANES] {
    #[inline(always)]
    fn accumulate<const R: usize, const G: usize>(
        sums: &mut [[F32x8; R]; G],
        input: &[[f32; R]],
        panels: [&[Self]; G],
    ) {
        let mut local = *sums; // A copy that stays in registers.
        let mut panels = panels.map(|panel| panel.iter());
        'depth: for values in input {
            for (sums, panel) in local.iter_mut().zip(&mut panels) {
                let Some(weights) = panel.next() else { break 'depth };
                step(sums, values, F32x8::load(weights));
            }
        }
        *sums = local;
    }
}

impl Weights for [i8; 2 * LANES] {
    #[inline(always)]
    fn accumulate<const R: usize, const G: usize>(
        sums: &mut [[F32x8; R]; G],
        input: &[[f32; R]],
        panels: [&[Self]; G],
    ) {
        let (pairs, _) = input.as_chunks::<2>();
        let mut local = *sums;
        let both = |sums: &mut [F32x8; R], [first, second]: &[[f32; R]; 2], bytes: &Self| {
            let weights = F32x8::from_bytes(bytes);
            step(sums, first, weights.0);
            step(sums, second, weights.1);
        };
        match (&mut local[..], &panels[..]) {
            ([one, other], [panel, next]) => {
                for ((values, bytes), next) in pairs.iter().zip(*panel).zip(*next) {
                    both(one, values, bytes);
                    both(other, values, next);
                }
            }
            ([sums], [panel]) => {
                for (values, bytes) in pairs.iter().zip(*panel) {
                    both(sums, values, bytes);
                }
            }
            _ => unreachable!("a panel alone, or two"),
        }
        *sums = local;
    }
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
/// # Panics
///
/// If there are fewer columns than elements.
#[inline(always)]
pub(in crate::model) fn accumulate<const R: usize>(
    sums: &mut [F32x8; R],
    input: &[[f32; R]],
    panel: &[[f32; LANES]],
) {
    Weights::accumulate(core::array::from_mut(sums), input, [panel]);
}

#[cfg(test)]
mod tests;
