//! Where everything goes: a place for every text before anything is drawn.

use super::ticks::Scale;
use super::{Axis, Chart, finite};

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub left: f64,
    /// Upper edge.
    pub top: f64,
    /// Right edge.
    pub right: f64,
    /// Lower edge.
    pub bottom: f64,
}

/// Which point of a text is at its position: left, middle or right, at half its height.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Middle,
    Right,
}

/// A text with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    pub text: String,
    pub x: f64,
    pub y: f64,
    pub size: f64,
    pub anchor: Anchor,
    pub weight: Weight,
}

/// How much a text wants to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    Heading,
    Plain,
    Muted,
}

/// A series in the legend: where its stroke begins, and its name.
#[derive(Clone, Debug, PartialEq)]
pub struct LegendEntry {
    pub series: usize,
    pub x: f64,
    pub y: f64,
    pub label: Label,
}

/// The layout of a chart in a size.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// Where the lines are.
    pub plot: Rect,
    /// The horizontal axis.
    pub x: Scale,
    /// The vertical axis.
    pub y: Scale,
    pub(super) scale: f64,
    pub(super) labels: Vec<Label>,
    pub(super) legend: Vec<LegendEntry>,
    /// Lines that are named at their ends: where the line ends, and its name.
    pub(super) ends: Vec<LegendEntry>,
    pub(super) markers: Vec<f64>,
}

/// Size of the small texts, in CSS pixels.
const TEXT: f64 = 12.0;
/// Size of the heading.
const HEADING: f64 = 14.0;
/// Height of a row of text.
const ROW: f64 = 18.0;
/// Between things.
const GAP: f64 = 6.0;
/// Length of a stroke in the legend.
pub(super) const SWATCH: f64 = 26.0;
/// The least plot that is worth drawing.
const LEAST: (f64, f64) = (60.0, 36.0);
/// The least plot beside which lines are named at their ends.
const LEAST_NAMED: f64 = 240.0;
/// Between the end of a line and its name: a stroke that leads there, and a mark.
pub(super) const LEAD: f64 = 22.0;

/// A width that a text of a size certainly fits in: characters, not bytes, each wider than a
/// sans-serif's average.
pub(super) fn room(text: &str, size: f64) -> f64 {
    0.62 * size * text.chars().count() as f64
}

/// Where lines have their names.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    Ends,
    Legend,
    None,
}

/// The text, or as much of it as fits.
fn fitted(text: &str, size: f64, width: f64) -> String {
    if room(text, size) <= width {
        return text.to_owned();
    }
    let fits = (width / (0.62 * size)).floor().max(1.0) as usize - 1;
    if fits == 0 { String::new() } else { text.chars().take(fits).chain(['…']).collect() }
}

/// The range of an axis: the one it is given, or one that holds all values.
fn range(axis: &Axis, values: impl Iterator<Item = f64>) -> ((f64, f64), bool) {
    if let Some((low, high)) = axis.range
        && finite(&(low, high))
        && low < high
    {
        return ((low, high), true);
    }
    let all = values.fold(None, |all: Option<(f64, f64)>, v| {
        Some(all.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
    });
    (all.unwrap_or((0.0, 1.0)), false)
}

impl Frame {
    /// Lays a chart out in so many pixels; `scale` is how many of them a CSS pixel has. `None` where
    /// there is no room for a chart.
    pub fn new(chart: &Chart, (width, height): (u32, u32), scale: f64) -> Option<Frame> {
        let scale = if scale.is_finite() { scale.clamp(0.25, 16.0) } else { 1.0 };
        // In CSS pixels; what is small does without its heading, then without its legend.
        let size = (f64::from(width) / scale, f64::from(height) / scale);
        [(true, Names::Ends), (true, Names::Legend), (false, Names::Legend), (false, Names::None)]
            .into_iter()
            .filter(|(_, names)| *names != Names::Ends || chart.discrete && !chart.is_empty())
            .find_map(|(heading, names)| Frame::lay_out(chart, size, heading, names))
            .map(|frame| frame.scaled(scale))
    }

    fn lay_out(chart: &Chart, (width, height): (f64, f64), heading: bool, names: Names) -> Option<Frame> {
        let mut labels = Vec::new();
        let mut entries = Vec::new();
        let mut top = GAP;
        let mut row = |labels: &mut Vec<Label>, text: &str, size: f64, weight| {
            let text = fitted(text, size, width - 2.0 * GAP);
            labels.push(Label { text, x: GAP, y: top + ROW / 2.0, size, anchor: Anchor::Left, weight });
            top += ROW;
        };
        if heading && !chart.title.is_empty() {
            row(&mut labels, &chart.title, HEADING, Weight::Heading);
        }
        if names == Names::Legend {
            top = legend_rows(chart, width, top, &mut entries);
        }
        let y_title = fitted(&chart.y.label(), TEXT, width - 2.0 * GAP);
        labels.push(Label {
            text: y_title,
            x: GAP,
            y: top + ROW / 2.0,
            size: TEXT,
            anchor: Anchor::Left,
            weight: Weight::Plain,
        });
        // Half a row more: the topmost number is centred on the plot's upper edge.
        top += 1.5 * ROW;
        let bottom = height - 2.0 * ROW - GAP;
        let points = || chart.series.iter().flat_map(|s| s.points.iter().copied()).filter(finite);
        let spreads = chart.series.iter().flat_map(|s| &s.band).flat_map(|b| [(b.0, b.1), (b.0, b.2)]);

        let heights = points().chain(spreads.filter(finite)).map(|p| p.1);
        let ((low, high), fixed) = range(&chart.y, heights);
        let (low, high) = if fixed { (low, high) } else { (low.min(0.0), high) };
        let y = Scale::new((low, high), ((bottom - top) / 34.0) as usize, !fixed, chart.y.format);
        let widest = |scale: &Scale| scale.ticks.iter().map(|(_, text)| room(text, TEXT)).fold(0.0, f64::max);

        let markers = chart.markers.iter().map(|m| m.x).filter(|x| finite(&(*x, 0.0)));
        let (x_range, _) = range(&chart.x, points().map(|p| p.0).chain(markers.clone()));
        // The numbers' width depends on the ticks, and the ticks on the width: a first guess, then
        // the answer.
        let scale = |most| match chart.x.names.len() {
            0 => Scale::new(x_range, most, false, chart.x.format),
            _ => Scale::named(&chart.x.names),
        };
        let guess = scale(6);
        let left = (GAP + widest(&y) + GAP).max(GAP + widest(&guess) / 2.0);
        let named = chart.series.iter().map(|s| room(&s.name, TEXT)).fold(0.0, f64::max);
        let beside = if names == Names::Ends { LEAD + named } else { 0.0 };
        let right = width - (GAP + (widest(&guess) / 2.0).max(beside)).max(2.0 * GAP);
        let each = widest(&guess) + 3.0 * GAP;
        let x = scale(((right - left) / each).clamp(1.0, 10.0) as usize);
        let plot = Rect { left, top, right, bottom };
        if right - left < LEAST.0 || bottom - top < LEAST.1 {
            return None;
        }
        let (markers, ends) = (markers.collect(), Vec::new());
        let mut frame = Frame { plot, x, y, scale: 1.0, labels, legend: entries, ends, markers };
        if names == Names::Ends && !(right - left >= LEAST_NAMED && frame.name_ends(chart)) {
            return None;
        }
        frame.label_axes(chart, width);
        frame.label_markers(chart);
        if chart.is_empty() {
            frame.labels.push(Label {
                text: fitted("no data yet", TEXT, right - left),
                x: (left + right) / 2.0,
                y: (top + bottom) / 2.0,
                size: TEXT,
                anchor: Anchor::Middle,
                weight: Weight::Muted,
            });
        }
        Some(frame)
    }

    /// Names lines beside their ends, moved apart where they would touch; whether there is room for all.
    fn name_ends(&mut self, chart: &Chart) -> bool {
        let (low, high) = (self.plot.top + ROW / 2.0, self.plot.bottom - ROW / 2.0);
        let mut ends: Vec<(usize, f64, f64)> = Vec::new();
        for (series, s) in chart.series.iter().enumerate() {
            if let Some(&(x, y)) = s.points.iter().rev().find(|p| finite(p)) {
                let y = self.y_of(y).clamp(self.plot.top, self.plot.bottom);
                ends.insert(ends.partition_point(|end| end.2 <= y), (series, self.x_of(x), y));
            }
        }
        if ends.len() as f64 * ROW > high - low + ROW {
            return false;
        }
        // Downwards as far as needed, then back up from the bottom.
        let mut places: Vec<f64> = ends.iter().map(|end| end.2.clamp(low, high)).collect();
        for i in 1..places.len() {
            places[i] = places[i].max(places[i - 1] + ROW);
        }
        let mut free = high;
        for place in places.iter_mut().rev() {
            *place = place.min(free);
            free = *place - ROW;
        }
        for ((series, x, y), place) in ends.into_iter().zip(places) {
            let text = chart.series[series].name.clone();
            let x_text = self.plot.right + LEAD;
            let label =
                Label { text, x: x_text, y: place, size: TEXT, anchor: Anchor::Left, weight: Weight::Plain };
            self.ends.push(LegendEntry { series, x, y, label });
        }
        true
    }

    fn label_axes(&mut self, chart: &Chart, width: f64) {
        let Rect { left, right, bottom, .. } = self.plot;
        let muted = |text: &str, x, y, anchor| Label {
            text: text.to_owned(),
            x,
            y,
            size: TEXT,
            anchor,
            weight: Weight::Muted,
        };
        for (value, text) in &self.y.ticks {
            self.labels.push(muted(text, left - GAP, self.y_of(*value), Anchor::Right));
        }
        // Where a second guess at the numbers came out wider, some are left out.
        let mut free = f64::NEG_INFINITY;
        for (value, text) in &self.x.ticks {
            let (x, half) = (self.x_of(*value), room(text, TEXT) / 2.0);
            if x - half >= free && x - half >= 0.0 && x + half <= width {
                self.labels.push(muted(text, x, bottom + GAP + ROW / 2.0, Anchor::Middle));
                free = x + half + GAP;
            }
        }
        let title = fitted(&chart.x.label(), TEXT, right - GAP);
        self.labels.push(Label {
            weight: Weight::Plain,
            ..muted(&title, right, bottom + 1.5 * ROW + GAP, Anchor::Right)
        });
    }

    /// Puts markers' names beside their lines, in up to three rows; those that fit in none stay
    /// unnamed.
    fn label_markers(&mut self, chart: &Chart) {
        const ROWS: usize = 3;
        let rows = (((self.plot.bottom - self.plot.top) / ROW) as usize / 2).min(ROWS);
        let mut free = [self.plot.left; ROWS];
        for marker in &chart.markers {
            if !finite(&(marker.x, 0.0)) || !(0.0..=1.0).contains(&self.x.fraction(marker.x)) {
                continue;
            }
            let x = self.x_of(marker.x) + 4.0;
            let end = x + room(&marker.label, TEXT);
            let Some(row) = (0..rows).find(|&r| x >= free[r] && end <= self.plot.right) else { continue };
            free[row] = end + GAP;
            self.labels.push(Label {
                text: marker.label.clone(),
                x,
                y: self.plot.top + (row as f64 + 0.75) * ROW,
                size: TEXT,
                anchor: Anchor::Left,
                weight: Weight::Muted,
            });
        }
    }

    /// The pixel column of a value.
    pub fn x_of(&self, value: f64) -> f64 {
        self.plot.left + self.x.fraction(value) * (self.plot.right - self.plot.left)
    }

    /// The pixel row of a value.
    pub fn y_of(&self, value: f64) -> f64 {
        self.plot.bottom - self.y.fraction(value) * (self.plot.bottom - self.plot.top)
    }

    /// The value at a pixel column; the nearest end's outside the plot.
    pub fn x_at(&self, column: f64) -> f64 {
        let fraction = (column - self.plot.left) / (self.plot.right - self.plot.left);
        self.x.value(fraction.clamp(0.0, 1.0))
    }

    fn scaled(mut self, scale: f64) -> Frame {
        self.scale = scale;
        let Rect { left, top, right, bottom } = &mut self.plot;
        for edge in [left, top, right, bottom] {
            *edge *= scale;
        }
        let entries = self.legend.iter_mut().chain(&mut self.ends).map(|entry| {
            entry.x *= scale;
            entry.y *= scale;
            &mut entry.label
        });
        for label in self.labels.iter_mut().chain(entries) {
            label.x *= scale;
            label.y *= scale;
            label.size *= scale;
        }
        self
    }
}

/// Sets the legend in rows of equal columns and returns where they end.
fn legend_rows(chart: &Chart, width: f64, top: f64, entries: &mut Vec<LegendEntry>) -> f64 {
    let inner = width - 2.0 * GAP;
    let widest = chart.series.iter().map(|s| room(&s.name, TEXT)).fold(0.0, f64::max);
    let column = (SWATCH + GAP + widest + 2.0 * GAP).min(inner);
    let columns = ((inner / column).floor() as usize).max(1);
    for (series, s) in chart.series.iter().enumerate() {
        let x = GAP + (series % columns) as f64 * column;
        let y = top + ((series / columns) as f64 + 0.5) * ROW;
        let text = fitted(&s.name, TEXT, column - SWATCH - GAP);
        let label =
            Label { text, x: x + SWATCH + GAP, y, size: TEXT, anchor: Anchor::Left, weight: Weight::Plain };
        entries.push(LegendEntry { series, x, y, label });
    }
    top + chart.series.len().div_ceil(columns) as f64 * ROW
}
