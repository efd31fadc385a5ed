//! Charts over time or over any number, as functions over a plotters `DrawingBackend`: a canvas while the page lives,
//! [`svg`] before it does, on paper and in files.
//!
//! Nothing here asks how wide a text is: only what shows it can say, and plotters' own guess counts
//! bytes. Every text has a place of its own, wide enough for its number of characters.

mod draw;
pub mod export;
mod layout;
mod lines;
pub mod svg;
#[cfg(test)]
mod tests;
mod theme;
mod ticks;

pub use draw::draw;
pub use layout::{Frame, Rect};
pub use theme::{Mark, Rgb, Role, Theme};
pub use ticks::Scale;

use crate::units::significant;

/// Everything that is drawn, without a place or a colour.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Its heading; may be empty.
    pub title: String,
    /// What goes to the right, usually time.
    pub x: Axis,
    /// What goes up.
    pub y: Axis,
    /// The lines.
    pub series: Vec<Series>,
    /// Moments worth a vertical line.
    pub markers: Vec<Marker>,
    /// Whether only the points tell something, and not what lies between them: then they alone are read,
    /// and lines are named at their ends, where there is room, rather than in a legend.
    pub discrete: bool,
}

/// One axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures.
    pub title: String,
    /// In which unit; empty for pure numbers.
    pub unit: String,
    /// From where to where; by default where the points are (and zero, if they are all above it).
    pub range: Option<(f64, f64)>,
    /// How its numbers are written.
    pub format: Format,
    /// What stands at 0, 1, 2 … in place of numbers; empty for an axis of numbers.
    pub names: Vec<String>,
}

/// How an axis writes its numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As they are.
    #[default]
    Number,
    /// Fractions, as percent.
    Percent,
}

/// One line.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// What it stands for: that settles its colour, its dashes and its marks.
    pub role: Role,
    /// Its points, in the order of x. One that is not finite is a gap.
    pub points: Vec<(f64, f64)>,
    /// Whether a value holds until the next point, rather than leading to it in a straight line.
    pub step: bool,
    /// How far what is drawn spreads: at an x the low and the high end. May be empty.
    pub band: Vec<(f64, f64, f64)>,
}

/// A moment worth a vertical line.
#[derive(Clone, Debug, PartialEq)]
pub struct Marker {
    /// When.
    pub x: f64,
    /// What happened; left out where there is no room.
    pub label: String,
}

/// Numbers beyond this are treated as infinite, so that differences of two stay finite.
const FAR: f64 = 1e300;

fn finite(&(x, y): &(f64, f64)) -> bool {
    x.abs() <= FAR && y.abs() <= FAR
}

impl Axis {
    /// An axis that finds its own range.
    pub fn new(title: &str, unit: &str, format: Format) -> Axis {
        Axis { title: title.to_owned(), unit: unit.to_owned(), range: None, format, names: Vec::new() }
    }

    /// An axis of names.
    pub fn named(title: &str, names: Vec<String>) -> Axis {
        Axis { names, ..Axis::new(title, "", Format::Number) }
    }

    /// Title and unit.
    pub fn label(&self) -> String {
        if self.unit.is_empty() { self.title.clone() } else { format!("{} ({})", self.title, self.unit) }
    }

    /// A value for reading, with its unit.
    pub fn value_text(&self, value: f64) -> String {
        if !self.names.is_empty() {
            return self.names.get(value.round().max(0.0) as usize).cloned().unwrap_or_default();
        }
        match self.format {
            Format::Percent => format!("{:.1} %", 100.0 * value),
            Format::Number if self.unit.is_empty() => significant(value, 3),
            Format::Number => format!("{} {}", significant(value, 3), self.unit),
        }
    }
}

impl Chart {
    /// Whether there is anything to draw beside the axes.
    pub fn is_empty(&self) -> bool {
        !self.series.iter().any(|s| s.points.iter().any(finite))
    }

    /// What each line says at a place: the value that holds there (for steps), or that of the
    /// nearest point.
    pub fn at(&self, x: f64) -> Vec<(&str, Option<f64>)> {
        self.series.iter().map(|s| (s.name.as_str(), s.at(x))).collect()
    }

    /// The same in words, with how far each spreads where that is known.
    pub fn reading(&self, x: f64) -> String {
        let one = |s: &Series| {
            let value = s.at(x).map_or_else(|| "–".to_owned(), |v| self.y.value_text(v));
            let spread =
                s.band.iter().find(|band| band.0 == x).map_or_else(String::new, |&(_, low, high)| {
                    format!(" ({} to {})", self.y.value_text(low), self.y.value_text(high))
                });
            format!("{} {value}{spread}", s.name)
        };
        let values = self.series.iter().map(one).collect::<Vec<_>>().join(", ");
        let place = match self.discrete && self.x.names.is_empty() {
            // Values that somebody chose are said as they are.
            true => format!("{x} {}", self.x.unit).trim_end().to_owned(),
            false => self.x.value_text(x),
        };
        format!("{} {place}: {values}", self.x.title)
    }

    /// The place that is read where one points: for a discrete chart the nearest that has a point.
    pub fn nearest(&self, x: f64) -> f64 {
        if !self.discrete {
            return x;
        }
        let stops = self.series.iter().flat_map(|s| s.points.iter().filter(|p| finite(p))).map(|p| p.0);
        stops.min_by(|a, b| (a - x).abs().total_cmp(&(b - x).abs())).unwrap_or(x)
    }

    /// The places where some line has a point, in order: what a keyboard steps through. At most
    /// `most` of them, evenly thinned.
    pub fn stops(&self, most: usize) -> Vec<f64> {
        let points = self.series.iter().flat_map(|s| s.points.iter().filter(|p| finite(p)));
        let mut xs: Vec<f64> = points.map(|p| p.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        if xs.len() <= most {
            return xs;
        }
        (0..most).map(|i| xs[i * (xs.len() - 1) / (most - 1).max(1)]).collect()
    }
}

impl Series {
    fn at(&self, x: f64) -> Option<f64> {
        // Of a discrete chart a gap is read as one.
        if let Some(own) = self.points.iter().find(|p| p.0 == x && !self.band.is_empty()) {
            return Some(own.1).filter(|y| y.is_finite());
        }
        let mut known = self.points.iter().filter(|p| finite(p));
        if self.step {
            return known.take_while(|p| p.0 <= x).last().map(|p| p.1);
        }
        let first = known.next()?;
        let nearest =
            known.fold(first, |best, p| if (p.0 - x).abs() < (best.0 - x).abs() { p } else { best });
        Some(nearest.1)
    }
}
