//! Products against plain ones in f64 and in whole numbers, and to the bit in every batch.

use super::super::rows::in_blocks;
use super::super::testing::floats;
use super::*;

fn naive(input: &[f32], weights: &[f32], depth: usize) -> Vec<f64> {
    let mut out = Vec::new();
    for row in input.chunks_exact(depth) {
        for weights in weights.chunks_exact(depth) {
            out.push(row.iter().zip(weights).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum());
        }
    }
    out
}

/// Weights that fit a byte each.
fn whole(seed: u64, count: usize) -> Vec<f32> {
    floats(seed, count).iter().map(|x| (x * 127.0).round() / 128.0).collect()
}

/// Rows as a matrix wants them.
fn input(rows: &[f32], matrix: &PackedMatrix) -> Input {
    let mut input = Input::default();
    let floats = input.floats_mut(rows.len() / matrix.depth, matrix.depth);
    floats.copy_from_slice(&in_blocks(rows, matrix.depth));
    input.round_for(matrix);
    input
}

fn set(packed: &PackedMatrix, rows: &[f32]) -> Vec<f32> {
    let mut out = vec![f32::NAN; rows.len() / packed.depth * packed.columns];
    packed.multiply(0..packed.panels(), &input(rows, packed), &mut out);
    out
}

/// (rows, depth, columns); the depths of the last four are whole spans.
const SHAPES: [(usize, usize, usize); 11] = [
    (1, 1, 1),
    (1, 6, 9),
    (2, 34, 17),
    (3, 8, 8),
    (5, 7, 31),
    (7, 40, 33),
    (9, 16, 24),
    (1, 32, 16),
    (4, 64, 260),
    (7, 96, 31),
    (13, 128, 40),
];

#[test]
fn odd_shapes_agree_with_a_plain_product() {
    for (rows, depth, columns) in SHAPES {
        let given = floats(1, rows * depth);
        for weights in [floats(2, columns * depth), whole(2, columns * depth)] {
            let packed = PackedMatrix::from_rows(&weights, depth, columns);
            let out = set(&packed, &given);
            // Half a multiple an element, each of a 32,767th of its span's largest, at most one here.
            let rounded = if let Panels::Bytes(_) = packed.panels { 0.5 / 32_767.0 } else { 0.0 };
            let most = (2e-6 + rounded) * depth as f64;
            for (got, want) in out.iter().zip(naive(&given, &weights, depth)) {
                assert!((f64::from(*got) - want).abs() < most, "{rows}×{depth}×{columns}");
            }
            let mut added = vec![3.0; rows * columns];
            packed.multiply_add(&input(&given, &packed), &mut added);
            assert!(added.iter().zip(&out).all(|(added, sum)| *added == 3.0 + sum));
        }
    }
}

#[test]
fn whole_numbers_are_multiplied_exactly() {
    // Multiples of the same in both, the largest in every span, so that nothing is rounded before the sums.
    let (rows, depth, columns) = (6, 96, 19);
    let elements: Vec<i64> = floats(10, rows * depth).iter().map(|x| (x * 32_767.0) as i64).collect();
    let elements: Vec<i64> =
        elements.iter().enumerate().map(|(i, x)| if i % SPAN == 7 { -32_767 } else { *x }).collect();
    let weights: Vec<i64> = floats(11, columns * depth).iter().map(|x| (x * 127.0).round() as i64).collect();
    let given: Vec<f32> = elements.iter().map(|x| *x as f32).collect();
    let packed =
        PackedMatrix::from_rows(&weights.iter().map(|x| *x as f32).collect::<Vec<_>>(), depth, columns);
    let out = set(&packed, &given);
    let mut want = Vec::new();
    for row in elements.chunks_exact(depth) {
        for weights in weights.chunks_exact(depth) {
            // Each span is exact, then rounded to a float; the spans are added as floats.
            let spans = row.chunks(SPAN).zip(weights.chunks(SPAN));
            let spans = spans.map(|(row, weights)| row.iter().zip(weights).map(|(a, b)| a * b).sum::<i64>());
            want.push(spans.fold(0.0f32, |sum, span| sum + span as f32));
        }
    }
    assert_eq!(out, want);
}

#[test]
fn some_panels_give_those_columns() {
    for (rows, depth, columns) in [(6, 10, 43), (6, 64, 43)] {
        let given = floats(5, rows * depth);
        let packed = PackedMatrix::from_rows(&whole(6, columns * depth), depth, columns);
        let all = set(&packed, &given);
        for panels in [0..1, 0..6, 2..4, 1..6, 5..6] {
            let (first, end) = (panels.start * LANES, (panels.end * LANES).min(columns));
            let mut out = vec![f32::NAN; rows * (end - first)];
            packed.multiply(panels, &input(&given, &packed), &mut out);
            for (out, all) in out.chunks_exact(end - first).zip(all.chunks_exact(columns)) {
                assert_eq!(out, &all[first..end]);
            }
        }
    }
}

#[test]
fn a_gate_is_opened_by_silu() {
    let (depth, columns) = (12, 24);
    let (gate, up) = (floats(7, columns * depth), floats(8, columns * depth));
    let both: Vec<f32> = gate
        .chunks_exact(LANES * depth)
        .zip(up.chunks_exact(LANES * depth))
        .flat_map(|(gate, up)| [gate, up].concat())
        .collect();
    let packed = PackedMatrix::from_rows(&both, depth, 2 * columns);
    for rows in 1..=9 {
        let given = floats(9, rows * depth);
        let mut out = vec![f32::NAN; rows * columns];
        packed.multiply_gated(&input(&given, &packed), &mut out);
        let want: Vec<f32> = naive(&given, &gate, depth)
            .into_iter()
            .zip(naive(&given, &up, depth))
            .map(|(gate, up)| (gate / (1.0 + libm::exp(-gate)) * up) as f32)
            .collect();
        for (got, want) in out.iter().zip(in_blocks(&want, columns)) {
            assert!((got - want).abs() < 1e-5, "{rows} rows: {got} against {want}");
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_every_batch() {
    let (depth, columns) = (96, 43);
    let given = floats(3, 11 * depth);
    let bytes = PackedMatrix::from_rows(&whole(4, columns * depth), depth, columns);
    let plain = PackedMatrix::as_floats(&whole(4, columns * depth), depth, columns);
    assert!(bytes.bytes() < plain.bytes());
    for packed in [&bytes, &plain] {
        let alone: Vec<f32> = given.chunks_exact(depth).flat_map(|row| set(packed, row)).collect();
        for rows in 1..=11 {
            let out = set(packed, &given[..rows * depth]);
            let same = out.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{rows} rows");
        }
    }
}

#[test]
fn both_forms_of_the_weights_agree_within_the_rounding_of_the_rows() {
    let (rows, depth, columns) = (5, 256, 40);
    let given = floats(12, rows * depth);
    let weights = whole(13, columns * depth);
    let bytes = set(&PackedMatrix::from_rows(&weights, depth, columns), &given);
    let plain = set(&PackedMatrix::as_floats(&weights, depth, columns), &given);
    for (bytes, plain) in bytes.iter().zip(&plain) {
        // Errors of at most 1.6e-5 an element, of either sign: six deviations of their sum, weights of about 0.6.
        assert!((bytes - plain).abs() < 6.0 * 0.6 * 16.0 * 0.9e-5, "{bytes} against {plain}");
    }
}

#[test]
fn what_is_no_number_spoils_its_own_row_only() {
    let (depth, columns) = (64, 9);
    let packed = PackedMatrix::from_rows(&whole(14, columns * depth), depth, columns);
    let given = floats(15, 6 * depth);
    let good = set(&packed, &given);
    for bad in [f32::NAN, -f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut spoilt = given.clone();
        spoilt[depth + 37] = bad;
        let out = set(&packed, &spoilt);
        for (row, (out, good)) in out.chunks_exact(columns).zip(good.chunks_exact(columns)).enumerate() {
            assert!(
                if row == 1 { out.iter().all(|x| x.is_nan()) } else { out == good },
                "row {row}: {out:?}"
            );
        }
    }
}

#[test]
fn rows_of_nothing_and_of_extremes_have_a_product() {
    let (depth, columns) = (32, 8);
    let packed = PackedMatrix::from_rows(&vec![1.0; columns * depth], depth, columns);
    for (element, want) in
        [(0.0, 0.0), (-0.0, 0.0), (1e-40, 0.0), (1e-20, 3.2e-19), (3e36, 9.6e37), (-3e36, -9.6e37)]
    {
        for got in set(&packed, &vec![element; 3 * depth]) {
            assert!((got - want).abs() <= 1e-6 * want.abs().max(1e-30), "{element}: {got}");
        }
    }
}
