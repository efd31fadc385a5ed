//! A value over a sliding window of time: its mean, its most, its trend.

use std::collections::VecDeque;

use crate::units::{Span, Time};

/// Values of the latest `window`, by the time they were taken at.
#[derive(Clone, Debug)]
pub struct Series {
    window: Span,
    values: VecDeque<(Time, f64)>,
}

impl Series {
    /// An empty one over a window.
    pub fn new(window: Span) -> Series {
        Series { window, values: VecDeque::new() }
    }

    /// Adds a value; times do not go back.
    pub fn push(&mut self, at: Time, value: f64) {
        self.values.push_back((at, value));
        self.forget(at);
    }

    /// Lets go of what is as old as the window or older, as seen at `now`.
    pub fn forget(&mut self, now: Time) {
        while self.values.front().is_some_and(|(at, _)| now.since(*at) >= self.window) {
            self.values.pop_front();
        }
    }

    /// The latest value.
    pub fn last(&self) -> Option<f64> {
        self.values.back().map(|(_, value)| *value)
    }

    /// The mean of what the window holds.
    pub fn mean(&self) -> Option<f64> {
        let n = self.values.len();
        (n > 0).then(|| self.values.iter().map(|(_, value)| value).sum::<f64>() / n as f64)
    }

    /// The largest of what the window holds.
    pub fn most(&self) -> Option<f64> {
        self.values.iter().map(|(_, value)| *value).reduce(f64::max)
    }

    /// The line of least squares through what the window holds: its value at the latest point, and what it
    /// changes a second. Through one point it is level.
    pub fn trend(&self) -> Option<(f64, f64)> {
        let (latest, _) = *self.values.back()?;
        let mean = self.mean()?;
        // Seconds before the latest point: small numbers.
        let x = |at: Time| -latest.since(at).seconds();
        let n = self.values.len() as f64;
        let middle = self.values.iter().map(|(at, _)| x(*at)).sum::<f64>() / n;
        let (mut covariance, mut variance) = (0.0, 0.0);
        for (at, value) in &self.values {
            let dx = x(*at) - middle;
            covariance += dx * (value - mean);
            variance += dx * dx;
        }
        let slope = if variance > 0.0 { covariance / variance } else { 0.0 };
        Some((mean - slope * middle, slope))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::seconds;

    #[test]
    fn what_is_older_than_the_window_is_gone() {
        let mut series = Series::new(Span::from_seconds(10.0).expect("short"));
        for (second, value) in [(0, 1.0), (5, 3.0), (9, 8.0)] {
            series.push(seconds(second), value);
        }
        assert_eq!((series.mean(), series.most(), series.last()), (Some(4.0), Some(8.0), Some(8.0)));
        series.push(seconds(10), 4.0);
        assert_eq!(series.mean(), Some(5.0), "the one of second 0 is ten seconds old");
        series.forget(seconds(30));
        assert_eq!((series.mean(), series.trend()), (None, None));
    }

    #[test]
    fn the_trend_of_a_line_is_the_line() {
        let mut series = Series::new(Span::from_seconds(100.0).expect("short"));
        series.push(seconds(0), 5.0);
        assert_eq!(series.trend(), Some((5.0, 0.0)));
        for second in 1..=10 {
            series.push(seconds(second), 5.0 + 2.0 * second as f64);
        }
        let (last, slope) = series.trend().expect("it has points");
        assert!((last - 25.0).abs() < 1e-9 && (slope - 2.0).abs() < 1e-9, "{last} {slope}");
    }
}
