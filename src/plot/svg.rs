//! A plotters backend that writes SVG whose colours are classes, so that one picture serves both themes, paper and a
//! page whose policy allows no inline styles.

use core::convert::Infallible;
use core::fmt::Write;

use plotters::prelude::{DrawingBackend, IntoDrawingArea};
use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind, FontStyle,
};

use super::{Chart, Rgb, Role, Theme, draw};
use crate::policy::PolicyKind;

/// So many of the picture's units make a CSS pixel: coordinates are whole numbers.
pub const UNITS: u32 = 4;

/// The theme whose colours are places in [`CLASSES`].
const INDEX: Theme = Theme::numbered();

/// What the colours of [`INDEX`] are called, and the last what is none of them.
const CLASSES: [&str; 12] = [
    "ink",
    "muted",
    "grid",
    "round-robin",
    "least-requests",
    "least-tokens",
    "prefix-affinity",
    "longest-prefix",
    "modulo-hash",
    "consistent-hash",
    "rendezvous-hash",
    "ink",
];

/// The elements of a chart in so many CSS pixels, for an `svg` with a view box of [`UNITS`] times as many. Empty where
/// there is no room for one.
pub fn svg(chart: &Chart, (width, height): (u32, u32)) -> String {
    let mut out = String::new();
    let backend = Svg { size: (width * UNITS, height * UNITS), out: &mut out, open: None };
    // Writing to a text does not fail.
    let _ = draw(&backend.into_drawing_area(), chart, &INDEX, f64::from(UNITS));
    out
}

/// What gives the classes their colours, the light theme's, where no page does.
pub(super) fn style() -> String {
    let mut text = String::from(
        "text,path{fill:currentColor}.line{fill:none;stroke:currentColor;stroke-linejoin:round}",
    );
    text += "text{font-family:system-ui,sans-serif}";
    let light = Theme::LIGHT;
    let plain = [("ink", light.foreground), ("muted", light.muted), ("grid", light.grid)];
    let policies = PolicyKind::ALL.map(|policy| (policy.name(), light.colour(Role::Policy(policy))));
    for (class, (r, g, b)) in plain.into_iter().chain(policies) {
        text += &format!(".{class}{{color:#{r:02x}{g:02x}{b:02x}}}");
    }
    text + ".paper{fill:#fff}"
}

/// What one `path` element has in common; what follows with the same look joins it.
#[derive(Clone, Copy, PartialEq)]
struct Look {
    class: &'static str,
    /// Of a line; `None`: an area.
    width: Option<u32>,
    alpha: f64,
}

struct Svg<'a> {
    size: (u32, u32),
    out: &'a mut String,
    /// The look of the element that is still open.
    open: Option<Look>,
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

fn class((_, _, index): Rgb) -> &'static str {
    CLASSES[usize::from(index).min(CLASSES.len() - 1)]
}

impl Svg<'_> {
    fn write(&mut self, text: core::fmt::Arguments<'_>) {
        self.out.write_fmt(text).expect("a text takes all that is written");
    }

    fn close(&mut self) {
        if self.open.take().is_some() {
            self.out.push_str("\"/>");
        }
    }

    /// A path element of a look: the one that is open, or a new one.
    fn path<S: BackendStyle>(&mut self, style: &S, filled: bool) {
        let BackendColor { alpha, rgb } = style.color();
        let look = Look { class: class(rgb), width: (!filled).then(|| style.stroke_width()), alpha };
        if self.open == Some(look) {
            return;
        }
        self.close();
        let class = look.class;
        match look.width {
            Some(width) => self.write(format_args!("<path class=\"{class} line\" stroke-width=\"{width}\"")),
            None => self.write(format_args!("<path class=\"{class} area\"")),
        }
        if alpha < 1.0 {
            self.write(format_args!(" opacity=\"{alpha}\""));
        }
        self.out.push_str(" d=\"");
        self.open = Some(look);
    }

    fn points(&mut self, points: impl IntoIterator<Item = BackendCoord>, closed: bool) {
        for (at, (x, y)) in points.into_iter().enumerate() {
            let letter = if at == 0 { 'M' } else { 'L' };
            self.write(format_args!("{letter}{x} {y}"));
        }
        if closed {
            self.out.push('z');
        }
    }
}

impl DrawingBackend for Svg<'_> {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }
    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }
    fn present(&mut self) -> Drawn {
        self.close();
        Ok(())
    }
    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Drawn {
        self.draw_rect((x, y), (x + 1, y + 1), &colour, true)
    }
    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.draw_path([from, to], style)
    }
    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        filled: bool,
    ) -> Drawn {
        self.path(style, filled);
        self.write(format_args!("M{left} {top}H{right}V{bottom}H{left}z"));
        Ok(())
    }
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.path(style, false);
        self.points(path, false);
        Ok(())
    }
    fn draw_circle<S: BackendStyle>(
        &mut self,
        (x, y): BackendCoord,
        radius: u32,
        style: &S,
        filled: bool,
    ) -> Drawn {
        self.path(style, filled);
        let (r, across) = (radius, 2 * radius);
        self.write(format_args!("M{x} {y}m-{r} 0a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0-{across} 0"));
        Ok(())
    }
    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        self.path(style, true);
        self.points(corners, true);
        Ok(())
    }
    fn draw_text<T: BackendTextStyle>(&mut self, text: &str, style: &T, (x, y): BackendCoord) -> Drawn {
        self.close();
        let class = class(style.color().rgb);
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let weight = if matches!(style.style(), FontStyle::Bold) { " font-weight=\"bold\"" } else { "" };
        // The middle of what is tall in a text is about a third of its size above its line.
        let (size, line) = (style.size(), y + (0.35 * style.size()).round() as i32);
        self.write(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{line}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{weight}>"
        ));
        for letter in text.chars() {
            match letter {
                '<' => self.out.push_str("&lt;"),
                '&' => self.out.push_str("&amp;"),
                _ => self.out.push(letter),
            }
        }
        self.out.push_str("</text>");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::{Axis, Format, Series};

    fn chart(title: &str) -> Chart {
        let series = |policy: PolicyKind| Series {
            name: policy.name().into(),
            role: Role::Policy(policy),
            points: (0..50).map(|i| (f64::from(i), f64::from(i % 7))).collect(),
            step: false,
            band: vec![(3.0, 1.0, 2.0), (4.0, 1.0, 3.0)],
        };
        Chart {
            title: title.into(),
            x: Axis::new("time", "s", Format::Number),
            y: Axis::new("good", "1/s", Format::Number),
            series: PolicyKind::ALL.map(series).into(),
            ..Chart::default()
        }
    }

    #[test]
    fn every_colour_is_a_class_and_nothing_is_styled_inline() {
        let drawn = svg(&chart("Goodput"), (600, 300));
        let absent = PolicyKind::HASHES.map(PolicyKind::name);
        for class in CLASSES.iter().filter(|class| !absent.contains(class)) {
            assert!(drawn.contains(&format!("class=\"{class}")), "{class}: {drawn}");
        }
        assert!(!drawn.contains("style") && !drawn.contains('#') && !drawn.contains("rgb"), "{drawn}");
        for policy in PolicyKind::of_changing_fleets() {
            assert_eq!(class(INDEX.colour(Role::Policy(policy))), policy.name());
        }
    }

    #[test]
    fn strokes_of_one_look_are_one_element_and_every_element_is_closed() {
        let drawn = svg(&chart("Goodput"), (600, 300));
        // A dashed line is dozens of strokes.
        assert!(drawn.matches("<path").count() < 150, "{}", drawn.matches("<path").count());
        assert_eq!(drawn.matches("<path").count(), drawn.matches("\"/>").count());
        assert_eq!(drawn.matches("<text").count(), drawn.matches("</text>").count());
    }

    #[test]
    fn texts_are_no_markup() {
        let drawn = svg(&chart("<script>&amp;"), (600, 300));
        assert!(drawn.contains(">&lt;script>&amp;amp;</text>"), "{drawn}");
    }

    #[test]
    fn where_there_is_no_room_nothing_is_drawn() {
        assert_eq!(svg(&chart("Goodput"), (10, 10)), "");
        assert_eq!(svg(&chart("Goodput"), (0, 0)), "");
    }
}
