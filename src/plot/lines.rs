//! A series made into strokes: gaps, fewer points, steps, clipping, dashes.

use super::finite;

/// A point in pixels, not yet rounded.
pub type Pixel = (f64, f64);

/// Above so many points a series is thinned.
pub const MOST_POINTS: usize = 2000;

/// The pieces of a series between its gaps.
pub fn runs(points: &[(f64, f64)]) -> impl Iterator<Item = &[(f64, f64)]> {
    points.split(|p| !finite(p)).filter(|run| !run.is_empty())
}

/// Keeps the first and the last point, and of each of many equal parts the lowest and the highest:
/// every peak stays.
pub fn decimated(run: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if run.len() <= most.max(4) {
        return run.to_vec();
    }
    let parts = (most / 2 - 1).max(1);
    let mut kept = vec![run[0]];
    for part in 0..parts {
        let part = &run[part * run.len() / parts..(part + 1) * run.len() / parts];
        let by_height = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let low = (0..part.len()).min_by(by_height).expect("a part is not empty");
        let high = (0..part.len()).max_by(by_height).expect("a part is not empty");
        kept.push(part[low.min(high)]);
        if low != high {
            kept.push(part[low.max(high)]);
        }
    }
    kept.push(run[run.len() - 1]);
    kept
}

/// A value that holds until the next: a corner in front of every point but the first.
pub fn stepped(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let corners = run.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    run.first().copied().into_iter().chain(corners).collect()
}

/// The parts of a path that are within a rectangle from `low` to `high`.
pub fn clipped(path: &[Pixel], low: Pixel, high: Pixel) -> Vec<Vec<Pixel>> {
    let mut pieces: Vec<Vec<Pixel>> = Vec::new();
    for pair in path.windows(2) {
        let Some((from, to)) = clip(pair[0], pair[1], low, high) else { continue };
        match pieces.last_mut() {
            Some(piece) if piece.last() == Some(&from) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// The part of a segment that is within a rectangle (Liang and Barsky's way: narrow the range of
/// the parameter by each side in turn).
fn clip(from: Pixel, to: Pixel, low: Pixel, high: Pixel) -> Option<(Pixel, Pixel)> {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (mut start, mut end) = (0.0_f64, 1.0_f64);
    for (toward, room) in
        [(-dx, from.0 - low.0), (dx, high.0 - from.0), (-dy, from.1 - low.1), (dy, high.1 - from.1)]
    {
        if toward == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if toward < 0.0 {
            start = start.max(room / toward);
        } else {
            end = end.min(room / toward);
        }
    }
    let at = |t: f64| (from.0 + t * dx, from.1 + t * dy);
    // The very ends are kept as they are, so that pieces join.
    let first = if start == 0.0 { from } else { at(start) };
    let last = if end == 1.0 { to } else { at(end) };
    (start <= end).then_some((first, last))
}

/// A path cut into strokes: lengths of strokes and gaps in turn; all of it for no pattern.
pub fn dashed(path: &[Pixel], pattern: &[f64]) -> Vec<Vec<Pixel>> {
    if pattern.iter().sum::<f64>() <= 0.0 {
        return vec![path.to_vec()];
    }
    let mut strokes = Vec::new();
    let mut stroke: Vec<Pixel> = path.first().copied().into_iter().collect();
    let (mut turn, mut left) = (0, pattern[0]);
    for pair in path.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = libm::hypot(to.0 - from.0, to.1 - from.1);
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let at = (from.0 + (to.0 - from.0) * done / length, from.1 + (to.1 - from.1) * done / length);
            if turn % 2 == 0 {
                stroke.push(at);
                strokes.push(core::mem::take(&mut stroke));
            } else {
                stroke = vec![at];
            }
            turn = (turn + 1) % pattern.len();
            left = pattern[turn].max(0.5);
        }
        left -= length - done;
        if turn % 2 == 0 {
            stroke.push(to);
        }
    }
    if stroke.len() > 1 {
        strokes.push(stroke);
    }
    strokes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_finite_is_a_gap() {
        let points =
            [(f64::NAN, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, f64::INFINITY), (4.0, 4.0), (5.0, f64::NAN)];
        let runs: Vec<_> = runs(&points).collect();
        assert_eq!(runs, [&points[1..3], &points[4..5]]);
    }

    #[test]
    fn thinning_keeps_the_ends_and_every_peak() {
        let mut run: Vec<(f64, f64)> = (0..100_000).map(|i| (f64::from(i), f64::from(i % 7))).collect();
        run[54_321].1 = 99.0;
        run[12_345].1 = -99.0;
        let few = decimated(&run, MOST_POINTS);
        assert!(few.len() <= MOST_POINTS, "{}", few.len());
        assert!(few.contains(&run[54_321]) && few.contains(&run[12_345]));
        assert_eq!((few[0], few[few.len() - 1]), (run[0], run[99_999]));
        assert!(few.is_sorted_by(|a, b| a.0 <= b.0));
        assert_eq!(decimated(&run[..3], 2), run[..3]);
    }

    #[test]
    fn a_step_holds_until_the_next_point() {
        assert_eq!(stepped(&[(0.0, 1.0), (2.0, 3.0)]), [(0.0, 1.0), (2.0, 1.0), (2.0, 3.0)]);
        assert_eq!(stepped(&[(0.0, 1.0)]), [(0.0, 1.0)]);
    }

    #[test]
    fn what_is_outside_is_cut_where_it_leaves() {
        let path = [(0.0, 5.0), (10.0, 5.0), (10.0, 25.0), (20.0, 25.0), (20.0, 5.0)];
        let pieces = clipped(&path, (5.0, 0.0), (20.0, 10.0));
        assert_eq!(pieces, [vec![(5.0, 5.0), (10.0, 5.0), (10.0, 10.0)], vec![(20.0, 10.0), (20.0, 5.0)]]);
    }

    #[test]
    fn dashes_go_on_around_corners() {
        let path = [(0.0, 0.0), (3.0, 0.0), (3.0, 4.0)];
        assert_eq!(
            dashed(&path, &[4.0, 2.0]),
            [vec![(0.0, 0.0), (3.0, 0.0), (3.0, 1.0)], vec![(3.0, 3.0), (3.0, 4.0)]]
        );
        assert_eq!(dashed(&path, &[]), [path.to_vec()]);
    }
}
