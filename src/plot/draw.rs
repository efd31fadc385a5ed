//! The drawing itself: a [`Frame`]'s places filled with a theme's colours.

use plotters::coord::Shift;
use plotters::prelude::{
    Circle, Color, DrawingArea, DrawingAreaErrorKind, DrawingBackend, FontDesc, FontFamily, FontStyle,
    PathElement, Polygon, RGBColor, Rectangle, ShapeStyle, TextStyle,
};
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::layout::{Anchor, LEAD, Label, SWATCH, Weight};
use super::lines::{MOST_POINTS, Pixel, clipped, dashed, decimated, runs, stepped};
use super::{Chart, Frame, Mark, Rgb, Role, Series, Theme, finite};

/// How much of a line's colour the area of its spread has.
const BAND: f64 = 0.16;

type Result<DB> = core::result::Result<(), DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// Draws a chart onto all of an area. `scale` is how many of its pixels a CSS pixel has: texts,
/// strokes and margins grow with it. An area too small for a chart stays empty.
pub fn draw<DB: DrawingBackend>(
    area: &DrawingArea<DB, Shift>,
    chart: &Chart,
    theme: &Theme,
    scale: f64,
) -> Result<DB> {
    if let Some(background) = theme.background {
        area.fill(&rgb(background))?;
    }
    let Some(frame) = Frame::new(chart, area.dim_in_pixel(), scale) else { return Ok(()) };
    let painter = Painter { area, theme, frame: &frame, discrete: chart.discrete };
    painter.grid()?;
    for series in &chart.series {
        painter.band(series)?;
    }
    for (turn, series) in chart.series.iter().enumerate() {
        painter.series(series, turn)?;
    }
    for entry in &frame.legend {
        let role = chart.series[entry.series].role;
        let end = entry.x + SWATCH * frame.scale;
        painter.stroke(&[(entry.x, entry.y), (end, entry.y)], role)?;
        painter.mark(((entry.x + end) / 2.0, entry.y), role)?;
        painter.label(&entry.label)?;
    }
    for entry in &frame.ends {
        let role = chart.series[entry.series].role;
        let mark = (entry.label.x - 0.4 * LEAD * frame.scale, entry.label.y);
        painter.line(&[(entry.x, entry.y), mark], role, 1.0)?;
        painter.mark(mark, role)?;
        painter.label(&entry.label)?;
    }
    for label in &frame.labels {
        painter.label(label)?;
    }
    area.present()
}

fn rgb((r, g, b): Rgb) -> RGBColor {
    RGBColor(r, g, b)
}

fn whole((x, y): Pixel) -> (i32, i32) {
    (x.round() as i32, y.round() as i32)
}

struct Painter<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    theme: &'a Theme,
    frame: &'a Frame,
    discrete: bool,
}

impl<DB: DrawingBackend> Painter<'_, DB> {
    /// A width in CSS pixels as whole pixels, at least one.
    fn thick(&self, width: f64) -> u32 {
        (width * self.frame.scale).round().max(1.0) as u32
    }

    /// A straight line as a filled rectangle: crisp, where a canvas would blur a stroke over two
    /// rows.
    fn rule(&self, from: Pixel, to: Pixel, colour: Rgb) -> Result<DB> {
        let thick = self.thick(1.0) as i32;
        let ((left, top), (right, bottom)) = (whole(from), whole(to));
        let corners = [(left, top), (right.max(left + thick), bottom.max(top + thick))];
        self.area.draw(&Rectangle::new(corners, rgb(colour).filled()))
    }

    fn grid(&self) -> Result<DB> {
        let (plot, frame) = (self.frame.plot, self.frame);
        for (value, _) in &frame.y.ticks {
            let y = frame.y_of(*value);
            self.rule((plot.left, y), (plot.right, y), self.theme.grid)?;
        }
        for (value, _) in &frame.x.ticks {
            let x = frame.x_of(*value);
            self.rule((x, plot.top), (x, plot.bottom), self.theme.grid)?;
        }
        self.rule((plot.left, plot.bottom), (plot.right, plot.bottom), self.theme.muted)?;
        let inside = frame.markers.iter().filter(|x| (0.0..=1.0).contains(&frame.x.fraction(**x)));
        for marker in inside {
            let x = frame.x_of(*marker);
            for stroke in dashed(&[(x, plot.top), (x, plot.bottom)], &[3.0 * frame.scale, 3.0 * frame.scale])
            {
                self.rule(stroke[0], stroke[stroke.len() - 1], self.theme.muted)?;
            }
        }
        Ok(())
    }

    fn series(&self, series: &Series, turn: usize) -> Result<DB> {
        let plot = self.frame.plot;
        let all: usize = runs(&series.points).map(<[_]>::len).sum();
        let place = |&(x, y): &(f64, f64)| (self.frame.x_of(x), self.frame.y_of(y));
        let inside =
            |p: &Pixel| (plot.left..=plot.right).contains(&p.0) && (plot.top..=plot.bottom).contains(&p.1);
        for run in runs(&series.points) {
            let few = decimated(run, (MOST_POINTS * run.len()).div_ceil(all));
            let path: Vec<Pixel> =
                if series.step { stepped(&few) } else { few.clone() }.iter().map(place).collect();
            for piece in clipped(&path, (plot.left, plot.top), (plot.right, plot.bottom)) {
                self.stroke(&piece, series.role)?;
            }
            // A point between two gaps has no line: its mark (or a disc) shows it.
            let single = run.len() == 1;
            let every = if self.discrete { 0.0 } else { (plot.right - plot.left) / 7.0 };
            // Lines that run together have their marks in different places.
            let mut next = if single || self.discrete {
                f64::NEG_INFINITY
            } else {
                plot.left + every * (0.25 + 0.2 * (turn % 4) as f64)
            };
            for point in few.iter().map(place).filter(inside) {
                if point.0 >= next {
                    self.mark(point, series.role)?;
                    next = point.0 + every;
                }
            }
            if single && series.role.mark().is_none() {
                for point in path.iter().filter(|p| inside(p)) {
                    self.shape(*point, Mark::Circle, series.role)?;
                }
            }
        }
        Ok(())
    }

    /// How far a series spreads: a pale area between its low ends and its high ones, or where it has no
    /// neighbour a rule.
    fn band(&self, series: &Series) -> Result<DB> {
        let plot = self.frame.plot;
        let place = |x: f64, y: f64| {
            let y = self.frame.y_of(y).clamp(plot.top, plot.bottom);
            (self.frame.x_of(x), y)
        };
        let pale = rgb(self.theme.colour(series.role)).mix(BAND);
        for run in series.band.split(|&(x, low, high)| !finite(&(x, low)) || !finite(&(x, high))) {
            if let [(x, low, high)] = run {
                self.line(&[place(*x, *low), place(*x, *high)], series.role, 1.0)?;
            }
            let upper = run.iter().map(|&(x, _, high)| place(x, high));
            let lower = run.iter().rev().map(|&(x, low, _)| place(x, low));
            let inside = |p: &Pixel| (plot.left - 0.5..=plot.right + 0.5).contains(&p.0);
            let outline: Vec<(i32, i32)> = upper.chain(lower).filter(inside).map(whole).collect();
            if run.len() > 1 {
                self.area.draw(&Polygon::new(outline, pale.filled()))?;
            }
        }
        Ok(())
    }

    /// A plain line in a role's colour, so many CSS pixels wide.
    fn line(&self, path: &[Pixel], role: Role, width: f64) -> Result<DB> {
        let color = rgb(self.theme.colour(role)).to_rgba();
        let style = ShapeStyle { color, filled: false, stroke_width: self.thick(width) };
        let points: Vec<(i32, i32)> = path.iter().copied().map(whole).collect();
        self.area.draw(&PathElement::new(points, style))
    }

    /// A line in a role's colour and dashes.
    fn stroke(&self, path: &[Pixel], role: Role) -> Result<DB> {
        let dash: Vec<f64> = role.dash().iter().map(|length| length * self.frame.scale).collect();
        let colour = rgb(self.theme.colour(role)).to_rgba();
        let style = ShapeStyle { color: colour, filled: false, stroke_width: self.thick(2.0) };
        for stroke in dashed(path, &dash) {
            let points: Vec<(i32, i32)> = stroke.into_iter().map(whole).collect();
            self.area.draw(&PathElement::new(points, style))?;
        }
        Ok(())
    }

    fn mark(&self, at: Pixel, role: Role) -> Result<DB> {
        role.mark().map_or(Ok(()), |mark| self.shape(at, mark, role))
    }

    fn shape(&self, at: Pixel, mark: Mark, role: Role) -> Result<DB> {
        let r = 4.0 * self.frame.scale;
        let style = rgb(self.theme.colour(role)).filled();
        let corners: &[Pixel] = match mark {
            Mark::Circle => return self.area.draw(&Circle::new(whole(at), r.round() as i32, style)),
            Mark::Triangle => &[(0.0, -1.1), (1.0, 0.8), (-1.0, 0.8)],
            Mark::Square => &[(-0.85, -0.85), (0.85, -0.85), (0.85, 0.85), (-0.85, 0.85)],
            Mark::Wedge => &[(0.0, 1.1), (1.0, -0.8), (-1.0, -0.8)],
            Mark::Bar => &[(-0.4, -1.2), (0.4, -1.2), (0.4, 1.2), (-0.4, 1.2)],
            Mark::Beam => &[(-1.2, -0.4), (1.2, -0.4), (1.2, 0.4), (-1.2, 0.4)],
            Mark::Hexagon => &[(-1.0, 0.0), (-0.5, -0.9), (0.5, -0.9), (1.0, 0.0), (0.5, 0.9), (-0.5, 0.9)],
            Mark::Diamond => &[(0.0, -1.2), (1.2, 0.0), (0.0, 1.2), (-1.2, 0.0)],
        };
        let points: Vec<(i32, i32)> =
            corners.iter().map(|(x, y)| whole((at.0 + r * x, at.1 + r * y))).collect();
        self.area.draw(&Polygon::new(points, style))
    }

    fn label(&self, label: &Label) -> Result<DB> {
        if label.text.is_empty() {
            return Ok(());
        }
        let (colour, style) = match label.weight {
            Weight::Heading => (self.theme.foreground, FontStyle::Bold),
            Weight::Plain => (self.theme.foreground, FontStyle::Normal),
            Weight::Muted => (self.theme.muted, FontStyle::Normal),
        };
        let horizontal = match label.anchor {
            Anchor::Left => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::Right => HPos::Right,
        };
        let font = FontDesc::new(FontFamily::Name("system-ui, sans-serif"), label.size, style);
        let colour = rgb(colour);
        let style =
            TextStyle { pos: Pos::new(horizontal, VPos::Center), ..TextStyle::from(font).color(&colour) };
        self.area.draw_text(&label.text, &style, whole((label.x, label.y)))
    }
}
