//! Matrix products over weights packed once into panels of eight columns.

use super::{LANES, Lanes};

/// Rows of the largest register block: 4 × 8 sums take half of the sixteen 128-bit registers.
const BLOCK_ROWS: usize = 4;

/// What a product does with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Overwrites the destination.
    Set,
    /// Adds each finished sum to the destination (a residual connection).
    Add,
}

/// A weight matrix packed into panels of eight output columns, so that the inner loop reads memory in order.
///
/// The last panel is filled up with zero columns.
#[derive(Clone, Debug)]
pub struct PackedMatrix {
    panels: Vec<Lanes>, // (columns / 8 rounded up, depth, 8)
    depth: usize,
    columns: usize,
}

impl PackedMatrix {
    /// Packs weights given one row an output, as checkpoints store them: `weights` is (columns, depth).
    ///
    /// # Panics
    ///
    /// If `weights` is not `columns × depth` long, or a size is zero.
    pub fn from_rows(weights: &[f32], depth: usize, columns: usize) -> Self {
        assert!(depth > 0 && columns > 0, "a matrix has at least one row and one column");
        assert_eq!(weights.len(), depth * columns, "the weights should be (columns, depth)");
        let mut panels = vec![[0.0; LANES]; columns.div_ceil(LANES) * depth];
        for (rows, panel) in weights.chunks(depth * LANES).zip(panels.chunks_exact_mut(depth)) {
            for (lane, row) in rows.chunks_exact(depth).enumerate() {
                for (lanes, &weight) in panel.iter_mut().zip(row) {
                    lanes[lane] = weight;
                }
            }
        }
        Self { panels, depth, columns }
    }

    /// Length of an input row.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Length of an output row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Bytes that the panels take.
    pub fn bytes(&self) -> usize {
        size_of_val(self.panels.as_slice())
    }

    /// Multiplies `input`, (rows, depth), into `out`, (rows, columns).
    ///
    /// Each output is the sum over the depth in order, whatever the number of rows, so that a row's result is the
    /// same to the bit alone and in any batch.
    ///
    /// # Panics
    ///
    /// If the slices do not have the shapes above for one number of rows.
    pub fn multiply(&self, input: &[f32], out: &mut [f32], output: Output) {
        let rows = input.len() / self.depth;
        assert_eq!(input.len(), rows * self.depth, "the input should be (rows, depth)");
        assert_eq!(out.len(), rows * self.columns, "the output should be (rows, columns)");
        let whole = rows / BLOCK_ROWS * BLOCK_ROWS;
        let (blocks, rest) = input.split_at(whole * self.depth);
        let (out_blocks, out_rest) = out.split_at_mut(whole * self.columns);
        if whole > 0 {
            // One panel stays in the first-level cache while every block of rows passes over it.
            self.block::<BLOCK_ROWS, 1>(blocks, out_blocks, output);
        }
        // Fewer rows leave registers free: more panels at once keep as many sums in flight.
        match rows - whole {
            0 => {}
            1 => self.block::<1, 4>(rest, out_rest, output),
            2 => self.block::<2, 2>(rest, out_rest, output),
            _ => self.block::<3, 1>(rest, out_rest, output),
        }
    }

    /// Runs every panel, `P` at a time, over every `R` rows of `input`, whose rows are a multiple of `R`.
    fn block<const R: usize, const P: usize>(&self, input: &[f32], out: &mut [f32], output: Output) {
        let depth = self.depth;
        let wide = P * depth;
        let mut column = 0;
        for panels in self.panels.chunks(wide) {
            let rows = input.chunks_exact(R * depth).zip(out.chunks_exact_mut(R * self.columns));
            for (rows, out) in rows {
                let rows: [&[f32]; R] = std::array::from_fn(|r| &rows[r * depth..][..depth]);
                if panels.len() == wide {
                    let panels: [&[Lanes]; P] = std::array::from_fn(|p| &panels[p * depth..][..depth]);
                    self.store(out, column, &sums(rows, panels), output);
                } else {
                    for (p, panel) in panels.chunks_exact(depth).enumerate() {
                        self.store(out, column + p * LANES, &sums(rows, [panel]), output);
                    }
                }
            }
            column += P * LANES;
        }
    }

    /// Writes a block of sums from `column` on, leaving out the columns that only fill up the last panel.
    #[inline(always)]
    fn store<const R: usize, const P: usize>(
        &self,
        out: &mut [f32],
        column: usize,
        sums: &[[Lanes; P]; R],
        output: Output,
    ) {
        for (row, sums) in out.chunks_exact_mut(self.columns).zip(sums) {
            let targets = row[column..].chunks_mut(LANES);
            for (target, sums) in targets.zip(sums) {
                match (output, target.as_mut_array::<LANES>()) {
                    (Output::Set, Some(target)) => *target = *sums,
                    (Output::Add, Some(target)) => target.iter_mut().zip(sums).for_each(|(t, s)| *t += s),
                    (Output::Set, None) => target.iter_mut().zip(sums).for_each(|(t, s)| *t = *s),
                    (Output::Add, None) => target.iter_mut().zip(sums).for_each(|(t, s)| *t += s),
                }
            }
        }
    }
}

/// The sums of `R` rows with `P` panels, from zero.
#[inline(always)]
fn sums<const R: usize, const P: usize>(rows: [&[f32]; R], panels: [&[Lanes]; P]) -> [[Lanes; P]; R] {
    let mut acc = [[[0.0; LANES]; P]; R];
    accumulate(&mut acc, rows, panels);
    acc
}

/// Adds to `acc` the products of `R` rows with `P` panels, element by element in order.
///
/// Every row should be at least as long as the panels, and the panels equally long.
#[inline(always)]
pub(in crate::model) fn accumulate<const R: usize, const P: usize>(
    acc: &mut [[Lanes; P]; R],
    rows: [&[f32]; R],
    panels: [&[Lanes]; P],
) {
    let depth = panels[0].len();
    let rows = rows.map(|row| &row[..depth]);
    let panels = panels.map(|panel| &panel[..depth]);
    let mut local = *acc; // A copy that the optimiser can keep in registers.
    for i in 0..depth {
        for p in 0..P {
            let weights = panels[p][i];
            for r in 0..R {
                let value = rows[r][i];
                for (sum, weight) in local[r][p].iter_mut().zip(weights) {
                    *sum += value * weight;
                }
            }
        }
    }
    *acc = local;
}

#[cfg(test)]
mod tests {
    use super::super::testing::floats;
    use super::*;

    fn naive(input: &[f32], weights: &[f32], depth: usize, columns: usize) -> Vec<f64> {
        let mut out = Vec::new();
        for row in input.chunks_exact(depth) {
            for weights in weights.chunks_exact(depth).take(columns) {
                out.push(row.iter().zip(weights).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum());
            }
        }
        out
    }

    #[test]
    fn odd_shapes_agree_with_a_plain_product() {
        for (rows, depth, columns) in [
            (1, 1, 1),
            (1, 5, 9),
            (2, 33, 17),
            (3, 8, 8),
            (4, 64, 260),
            (5, 7, 31),
            (7, 40, 33),
            (13, 129, 40),
        ] {
            let input = floats(1, rows * depth);
            let weights = floats(2, columns * depth);
            let packed = PackedMatrix::from_rows(&weights, depth, columns);
            let mut out = vec![f32::NAN; rows * columns];
            packed.multiply(&input, &mut out, Output::Set);
            let expected = naive(&input, &weights, depth, columns);
            for (got, want) in out.iter().zip(&expected) {
                assert!((f64::from(*got) - want).abs() < 2e-6 * depth as f64, "{rows}×{depth}×{columns}");
            }
            let mut added = vec![3.0; rows * columns];
            packed.multiply(&input, &mut added, Output::Add);
            assert!(added.iter().zip(&out).all(|(added, sum)| *added == 3.0 + sum));
        }
    }

    #[test]
    fn a_row_has_the_same_bits_in_every_batch() {
        let (depth, columns) = (67, 43);
        let input = floats(3, 11 * depth);
        let packed = PackedMatrix::from_rows(&floats(4, columns * depth), depth, columns);
        let mut alone = vec![0.0; 11 * columns];
        for (row, out) in input.chunks_exact(depth).zip(alone.chunks_exact_mut(columns)) {
            packed.multiply(row, out, Output::Set);
        }
        for rows in 1..=11 {
            let mut out = vec![0.0; rows * columns];
            packed.multiply(&input[..rows * depth], &mut out, Output::Set);
            let same = out.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{rows} rows");
        }
    }
}
