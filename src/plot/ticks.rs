//! Where an axis has its numbers.

use super::Format;

/// The range of an axis, and the round numbers in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The least value.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Round numbers from `low` to `high`, each with its text.
    pub ticks: Vec<(f64, String)>,
}

impl Scale {
    /// A scale over a range with at most about `most` ticks; `round` widens the range to whole
    /// steps.
    pub fn new((low, high): (f64, f64), most: usize, round: bool, format: Format) -> Scale {
        let (mut low, mut high) = widened(low, high);
        let step = nice_step((high - low) / most.max(1) as f64);
        if round {
            low = (low / step).floor() * step;
            high = (high / step).ceil() * step;
        }
        // A little slack, so that the ends count in spite of rounding.
        let first = (low / step - 1e-6).ceil();
        let count = ((high / step + 1e-6).floor() - first).clamp(0.0, 100.0) as u32;
        let ticks = (0..=count).map(|i| {
            // Adding zero makes −0 plain 0.
            let value = (first + f64::from(i)) * step + 0.0;
            (value, tick_text(value, step, format))
        });
        Scale { low, high, ticks: ticks.collect() }
    }

    /// A scale with names at 0, 1, 2 …, and a little room on both sides.
    pub fn named(names: &[String]) -> Scale {
        let ticks: Vec<(f64, String)> = (0..).map(f64::from).zip(names.iter().cloned()).collect();
        Scale { low: -0.25, high: names.len() as f64 - 0.75, ticks }
    }

    /// Where a value is: 0 at `low`, 1 at `high`.
    pub fn fraction(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// The value at such a place.
    pub fn value(&self, fraction: f64) -> f64 {
        self.low + fraction * (self.high - self.low)
    }
}

/// The range made wide enough to divide.
fn widened(low: f64, high: f64) -> (f64, f64) {
    let size = low.abs().max(high.abs());
    if high - low > size * 1e-9 {
        return (low, high);
    }
    if size == 0.0 { (0.0, 1.0) } else { (low - 0.1 * size, high + 0.1 * size) }
}

/// The least of 1, 2, 5, 10, 20 … that is not below `raw`.
fn nice_step(raw: f64) -> f64 {
    let power = libm::pow(10.0, libm::log10(raw).floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= raw * (1.0 - 1e-9)).unwrap_or(10.0);
    // A number so small that its power of ten is none has no better step than itself.
    if power > 0.0 { factor * power } else { raw }
}

fn tick_text(value: f64, step: f64, format: Format) -> String {
    let (value, step, sign) = match format {
        Format::Number => (value, step, ""),
        Format::Percent => (100.0 * value, 100.0 * step, " %"),
    };
    let most = value.abs();
    if most >= 1e7 || (most > 0.0 && step < 1e-6) {
        return format!("{value:.1e}{sign}");
    }
    let decimals = (-libm::log10(step * (1.0 + 1e-9)).floor()).max(0.0) as usize;
    format!("{value:.decimals$}{sign}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(range: (f64, f64), most: usize, round: bool, format: Format) -> Vec<String> {
        Scale::new(range, most, round, format).ticks.into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round() {
        assert_eq!(texts((0.0, 1.0), 5, true, Format::Number), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(texts((0.0, 1.0), 4, true, Format::Percent), ["0 %", "50 %", "100 %"]);
        assert_eq!(texts((0.3, 7.2), 4, false, Format::Number), ["2", "4", "6"]);
        assert_eq!(texts((-1.2, 1.2), 4, true, Format::Number), ["-2", "-1", "0", "1", "2"]);
        assert_eq!(
            texts((0.0, 0.05), 5, true, Format::Number),
            ["0.00", "0.01", "0.02", "0.03", "0.04", "0.05"]
        );
    }

    #[test]
    fn names_stand_at_whole_numbers() {
        let scale = Scale::named(&["shared".into(), "separate".into()]);
        assert_eq!(scale.ticks, [(0.0, "shared".into()), (1.0, "separate".into())]);
        assert!(scale.fraction(0.0) > 0.0 && scale.fraction(1.0) < 1.0);
    }

    #[test]
    fn no_range_is_too_odd() {
        for range in [
            (0.0, 0.0),
            (5.0, 5.0),
            (-3.0, -3.0),
            (1e300, 1e300),
            (-1e300, 1e300),
            (0.0, 1e-320),
            (1e15, 1e15 + 0.25),
        ] {
            let scale = Scale::new(range, 5, true, Format::Number);
            assert!(scale.high > scale.low && (1..=101).contains(&scale.ticks.len()), "{range:?}: {scale:?}");
            assert!((0.0..=1.0).contains(&scale.fraction(range.0)), "{range:?}: {scale:?}");
        }
    }
}
