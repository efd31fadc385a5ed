//! Rotary positions: each head's halves turned against each other by angles that grow with the position.

/// Cosines and sines of every position, computed once in f64 by libm and rounded.
#[derive(Clone, Debug)]
pub struct RopeTable {
    cosines: Vec<f32>, // (positions, head_dim / 2)
    sines: Vec<f32>,   // (positions, head_dim / 2)
    half: usize,
}

impl RopeTable {
    /// The table for heads of `head_dim` floats, where pair `i` of position `p` turns by p ÷ theta^(2i ÷ head_dim).
    ///
    /// # Panics
    ///
    /// If `head_dim` is odd or zero.
    pub fn new(head_dim: usize, positions: usize, theta: f64) -> Self {
        assert!(head_dim > 0 && head_dim.is_multiple_of(2), "a head has pairs to turn");
        let half = head_dim / 2;
        let frequencies: Vec<f64> =
            (0..half).map(|i| libm::pow(theta, -((2 * i) as f64) / head_dim as f64)).collect();
        let mut cosines = Vec::with_capacity(positions * half);
        let mut sines = Vec::with_capacity(positions * half);
        for position in 0..positions {
            for frequency in &frequencies {
                let angle = position as f64 * frequency;
                cosines.push(libm::cos(angle) as f32);
                sines.push(libm::sin(angle) as f32);
            }
        }
        Self { cosines, sines, half }
    }

    /// Bytes that the table takes.
    pub fn bytes(&self) -> usize {
        size_of_val(&self.cosines[..]) + size_of_val(&self.sines[..])
    }

    /// Turns one head to `position`, multiplies it by `scale`, and writes it to `out`, one element every `step` floats.
    ///
    /// Element `i` of a head pairs with element `i + head_dim / 2` ("rotate half", as Llama checkpoints expect).
    ///
    /// # Panics
    ///
    /// If the position is beyond the table, or the head of another length.
    #[inline]
    pub fn rotate(&self, head: &[f32], position: usize, scale: f32, out: &mut [f32], step: usize) {
        let cosines = &self.cosines[position * self.half..][..self.half];
        let sines = &self.sines[position * self.half..][..self.half];
        assert_eq!(head.len(), 2 * self.half, "a head of the table's size");
        let (first, second) = head.split_at(self.half);
        let out = &mut out[..(2 * self.half - 1) * step + 1];
        for i in 0..self.half {
            let (x, y, cos, sin) = (first[i], second[i], cosines[i], sines[i]);
            out[i * step] = (x * cos - y * sin) * scale;
            out[(i + self.half) * step] = (y * cos + x * sin) * scale;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::floats;
    use super::*;

    #[test]
    fn rotation_agrees_with_f64() {
        for (head_dim, heads, position) in [(2, 1, 0), (8, 3, 1), (32, 2, 433), (32, 8, 2047), (6, 1, 17)] {
            let table = RopeTable::new(head_dim, position + 1, 10_000.0);
            let input = floats(11, head_dim * heads);
            let half = head_dim / 2;
            for (step, input) in (1..).zip(input.chunks_exact(head_dim)) {
                let mut out = vec![0.0; head_dim * step];
                table.rotate(input, position, 0.5, &mut out, step);
                let got: Vec<f32> = out.into_iter().step_by(step).collect();
                for i in 0..half {
                    let angle = position as f64 / libm::pow(10_000.0, 2.0 * i as f64 / head_dim as f64);
                    let (x, y) = (f64::from(input[i]), f64::from(input[i + half]));
                    let (sin, cos) = (libm::sin(angle), libm::cos(angle));
                    let want = (0.5 * (x * cos - y * sin), 0.5 * (y * cos + x * sin));
                    assert!((f64::from(got[i]) - want.0).abs() < 2e-7);
                    assert!((f64::from(got[i + half]) - want.1).abs() < 2e-7);
                }
            }
        }
    }

    #[test]
    fn position_zero_turns_nothing() {
        let input = floats(12, 32);
        let mut row = vec![0.0; 32];
        RopeTable::new(32, 1, 10_000.0).rotate(&input, 0, 1.0, &mut row, 1);
        assert_eq!(row, input);
    }
}
