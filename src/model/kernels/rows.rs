//! How a product's input lies in memory: rows in blocks of four, so that one pointer walks through all four.
//!
//! A block of R rows (four, or fewer at the end) is (depth, R): element `i` of its rows side by side.

use super::simd::F32x8;

/// Rows in a whole block: 4 × 8 sums take half of sixteen 128-bit registers.
pub const BLOCK_ROWS: usize = 4;

/// Where `row` of `rows` lies among rows of `depth` elements: the index of its first element, and the distance from
/// one to the next.
#[inline(always)]
pub fn place(row: usize, rows: usize, depth: usize) -> (usize, usize) {
    let first = row / BLOCK_ROWS * BLOCK_ROWS;
    (first * depth + row - first, BLOCK_ROWS.min(rows - first))
}

/// The first `length` elements of a buffer, which grows if it is shorter; what they hold is left from earlier use.
pub(in crate::model) fn sized<T: Clone>(buffer: &mut Vec<T>, length: usize, filling: T) -> &mut [T] {
    if buffer.len() < length {
        buffer.resize(length, filling);
    }
    &mut buffer[..length]
}

/// Writes eight neighbouring columns, from `column` on, of a block: `out` is (depth, R), `columns` one a row.
#[inline(always)]
pub(super) fn store<const R: usize>(out: &mut [f32], column: usize, columns: [F32x8; R]) {
    if let Some(four) = columns.as_slice().as_array::<BLOCK_ROWS>() {
        let (eights, _) = out[column * BLOCK_ROWS..].as_chunks_mut::<8>();
        for (out, pair) in eights.iter_mut().zip(F32x8::transpose(*four)) {
            pair.store(out);
        }
        return;
    }
    for (r, columns) in columns.into_iter().enumerate() {
        let mut row = [0.0; 8];
        columns.store(&mut row);
        for (i, x) in row.into_iter().enumerate() {
            out[(column + i) * R + r] = x;
        }
    }
}

/// Rows one after the other, (rows, depth), brought into blocks.
#[cfg(test)]
pub fn in_blocks(rows: &[f32], depth: usize) -> Vec<f32> {
    let count = rows.len() / depth;
    let mut out = vec![0.0; rows.len()];
    for (row, elements) in rows.chunks_exact(depth).enumerate() {
        let (first, step) = place(row, count, depth);
        for (i, x) in elements.iter().enumerate() {
            out[first + i * step] = *x;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_lie_side_by_side_in_blocks_of_four() {
        let rows: Vec<f32> = (0..6 * 2).map(|x| x as f32).collect();
        let want = [0., 2., 4., 6., 1., 3., 5., 7., 8., 10., 9., 11.];
        assert_eq!(in_blocks(&rows, 2), want);
    }

    #[test]
    fn eight_columns_are_written_as_one_by_one() {
        fn check<const R: usize>() {
            let rows: Vec<f32> = (0..R * 16).map(|x| x as f32).collect();
            let mut out = vec![0.0; R * 16];
            for column in [0, 8] {
                let columns = core::array::from_fn(|r| {
                    F32x8::load(rows[r * 16 + column..][..8].as_array().expect("eight"))
                });
                store::<R>(&mut out, column, columns);
            }
            assert_eq!(out, in_blocks(&rows, 16));
        }
        check::<1>();
        check::<2>();
        check::<3>();
        check::<4>();
    }
}
