//! Products against plain ones in f64, and to the bit in every batch and form of the weights.

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

fn set(packed: &PackedMatrix, input: &[f32]) -> Vec<f32> {
    let rows = input.len() / packed.depth;
    let mut out = vec![f32::NAN; rows * packed.columns];
    let input = in_blocks(input, packed.depth);
    packed.multiply(0..packed.panels(), &input, rows, &mut Vec::new(), &mut out);
    out
}

const SHAPES: [(usize, usize, usize); 9] = [
    (1, 1, 1),
    (1, 6, 9),
    (2, 34, 17),
    (3, 8, 8),
    (4, 64, 260),
    (5, 7, 31),
    (7, 40, 33),
    (9, 16, 24),
    (13, 130, 40),
];

#[test]
fn odd_shapes_agree_with_a_plain_product() {
    for (rows, depth, columns) in SHAPES {
        let input = floats(1, rows * depth);
        for weights in [floats(2, columns * depth), whole(2, columns * depth)] {
            let packed = PackedMatrix::from_rows(&weights, depth, columns);
            let out = set(&packed, &input);
            for (got, want) in out.iter().zip(naive(&input, &weights, depth)) {
                assert!((f64::from(*got) - want).abs() < 2e-6 * depth as f64, "{rows}×{depth}×{columns}");
            }
            let mut added = vec![3.0; rows * columns];
            packed.multiply_add(&in_blocks(&input, depth), rows, &mut Vec::new(), &mut added);
            assert!(added.iter().zip(&out).all(|(added, sum)| *added == 3.0 + sum));
        }
    }
}

#[test]
fn some_panels_give_those_columns() {
    let (rows, depth, columns) = (6, 10, 43);
    let input = floats(5, rows * depth);
    let packed = PackedMatrix::from_rows(&floats(6, columns * depth), depth, columns);
    let all = set(&packed, &input);
    let input = in_blocks(&input, depth);
    for panels in [0..1, 0..6, 2..4, 1..6, 5..6] {
        let (first, end) = (panels.start * LANES, (panels.end * LANES).min(columns));
        let mut out = vec![f32::NAN; rows * (end - first)];
        packed.multiply(panels, &input, rows, &mut Vec::new(), &mut out);
        for (out, all) in out.chunks_exact(end - first).zip(all.chunks_exact(columns)) {
            assert_eq!(out, &all[first..end]);
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
        let input = floats(9, rows * depth);
        let mut out = vec![f32::NAN; rows * columns];
        packed.multiply_gated(&in_blocks(&input, depth), rows, &mut Vec::new(), &mut out);
        let want: Vec<f32> = naive(&input, &gate, depth)
            .into_iter()
            .zip(naive(&input, &up, depth))
            .map(|(gate, up)| (gate / (1.0 + libm::exp(-gate)) * up) as f32)
            .collect();
        for (got, want) in out.iter().zip(in_blocks(&want, columns)) {
            assert!((got - want).abs() < 1e-5, "{rows} rows: {got} against {want}");
        }
    }
}

#[test]
fn a_row_has_the_same_bits_in_every_batch_and_form() {
    let (depth, columns) = (66, 43);
    let input = floats(3, 11 * depth);
    let weights = whole(4, columns * depth);
    let bytes = PackedMatrix::from_rows(&weights, depth, columns);
    let plain = PackedMatrix::as_floats(&weights, depth, columns);
    assert!(bytes.bytes() < plain.bytes());
    let mut alone = Vec::new();
    for row in input.chunks_exact(depth) {
        alone.extend(set(&bytes, row));
    }
    for packed in [&bytes, &plain] {
        for rows in 1..=11 {
            let out = set(packed, &input[..rows * depth]);
            let same = out.iter().zip(&alone).all(|(a, b)| a.to_bits() == b.to_bits());
            assert!(same, "{rows} rows");
        }
    }
}
