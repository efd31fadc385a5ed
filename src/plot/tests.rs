//! Charts drawn onto a backend that remembers what it was asked for.

use core::cell::RefCell;
use std::rc::Rc;

use plotters::prelude::{DrawingBackend, IntoDrawingArea};
use plotters::style::text_anchor::HPos;
use plotters_backend::{BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingErrorKind};

use super::layout::room;
use super::*;
use crate::policy::PolicyKind;

/// A text with the box that it has room in.
#[derive(Clone, Debug)]
struct Written {
    text: String,
    size: f64,
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
}

#[derive(Default)]
struct Record {
    texts: Vec<Written>,
    points: Vec<BackendCoord>,
    colours: Vec<Rgb>,
    strokes: Vec<u32>,
}

struct Recorder {
    size: (u32, u32),
    record: Rc<RefCell<Record>>,
}

type Drawn = Result<(), DrawingErrorKind<core::fmt::Error>>;

impl Recorder {
    fn keep<S: BackendStyle>(&mut self, points: impl IntoIterator<Item = BackendCoord>, style: &S) -> Drawn {
        let mut record = self.record.borrow_mut();
        record.points.extend(points);
        record.colours.push(style.color().rgb);
        record.strokes.push(style.stroke_width());
        Ok(())
    }
}

impl DrawingBackend for Recorder {
    type ErrorType = core::fmt::Error;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }
    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }
    fn present(&mut self) -> Drawn {
        Ok(())
    }
    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Drawn {
        self.keep([point], &colour)
    }
    fn draw_line<S: BackendStyle>(&mut self, from: BackendCoord, to: BackendCoord, style: &S) -> Drawn {
        self.keep([from, to], style)
    }
    fn draw_rect<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
        _: bool,
    ) -> Drawn {
        self.keep([from, to], style)
    }
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.keep(path, style)
    }
    fn draw_circle<S: BackendStyle>(&mut self, at: BackendCoord, r: u32, style: &S, _: bool) -> Drawn {
        let r = r as i32;
        self.keep([(at.0 - r, at.1 - r), (at.0 + r, at.1 + r)], style)
    }
    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        self.keep(path, style)
    }
    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        let (x, y) = (f64::from(at.0), f64::from(at.1));
        let (width, half) = (room(text, style.size()), style.size() / 2.0);
        let left = match style.anchor().h_pos {
            HPos::Left => x,
            HPos::Center => x - width / 2.0,
            HPos::Right => x - width,
        };
        let written = Written {
            text: text.to_owned(),
            size: style.size(),
            left,
            right: left + width,
            top: y - half,
            bottom: y + half,
        };
        self.record.borrow_mut().texts.push(written);
        Ok(())
    }
}

fn record(chart: &Chart, size: (u32, u32), scale: f64) -> Record {
    let record = Rc::new(RefCell::new(Record::default()));
    let backend = Recorder { size, record: Rc::clone(&record) };
    draw(&backend.into_drawing_area(), chart, &Theme::LIGHT, scale).expect("a recorder takes everything");
    Rc::into_inner(record).expect("the backend is gone").into_inner()
}

fn goodput() -> Chart {
    let series = PolicyKind::ALL.iter().enumerate().map(|(n, &policy)| Series {
        name: policy.name().to_owned(),
        role: Role::Policy(policy),
        points: (0..60).map(|i| (f64::from(i) / 2.0, f64::from(i % (5 + n as i32)) / 3.0)).collect(),
        step: n % 2 == 0,
        band: vec![],
    });
    Chart {
        title: "Goodput over time".into(),
        x: Axis::new("Simulated time", "s", Format::Number),
        y: Axis::new("Goodput", "requests/s", Format::Number),
        series: series.collect(),
        markers: vec![
            Marker { x: 10.0, label: "a guard fired".into() },
            Marker { x: 10.5, label: "replica 2 → ready".into() },
        ],
        discrete: false,
    }
}

/// Everything drawn is within the size (half a stroke of slack), and no two texts overlap.
fn check(record: &Record, (width, height): (u32, u32), scale: f64, what: &str) {
    let (width, height) = (f64::from(width), f64::from(height));
    for &(x, y) in &record.points {
        let (x, y) = (f64::from(x), f64::from(y));
        let slack = 2.0 * scale;
        assert!(x >= -slack && x <= width + slack && y >= -slack && y <= height + slack, "{what}: {x}, {y}");
    }
    for (i, one) in record.texts.iter().enumerate() {
        // Rounding to whole pixels moves a text by up to one.
        let inside = one.left >= -1.0 && one.right <= width + 1.0 && one.top >= 0.0 && one.bottom <= height;
        assert!(inside, "{what}: {one:?}");
        for other in &record.texts[i + 1..] {
            let apart = one.right <= other.left + 1.0
                || other.right <= one.left + 1.0
                || one.bottom <= other.top + 1.0
                || other.bottom <= one.top + 1.0;
            assert!(apart, "{what}: {one:?} and {other:?}");
        }
    }
}

#[test]
fn everything_has_its_place_at_every_size_and_scale() {
    for (width, height) in [(320, 220), (360, 260), (640, 300), (1200, 420)] {
        for scale in [1.0, 2.0, 3.0] {
            let size = (width * scale as u32, height * scale as u32);
            let drawn = record(&goodput(), size, scale);
            check(&drawn, size, scale, &format!("{width}×{height} @{scale}"));
            let texts: Vec<&str> = drawn.texts.iter().map(|t| t.text.as_str()).collect();
            for text in ["Simulated time (s)", "Goodput (requests/s)"] {
                assert!(texts.contains(&text), "{width}×{height}: {texts:?}");
            }
            for policy in PolicyKind::ALL {
                let colour = Theme::LIGHT.colour(Role::Policy(policy));
                assert!(texts.contains(&policy.name()) && drawn.colours.contains(&colour));
            }
            assert!(drawn.texts.iter().all(|t| t.size >= 12.0 * scale));
            assert_eq!(drawn.strokes.iter().max(), Some(&(2 * scale as u32)));
        }
    }
}

#[test]
fn a_wide_chart_has_everything() {
    let texts = record(&goodput(), (900, 400), 1.0).texts;
    for text in ["Goodput over time", "a guard fired", "replica 2 → ready", "0.0", "25"] {
        assert!(texts.iter().any(|t| t.text == text), "{text}: {texts:?}");
    }
}

#[test]
fn no_data_is_said() {
    let mut chart = goodput();
    chart.markers.clear();
    for series in &mut chart.series {
        series.points = vec![(f64::NAN, 1.0), (0.0, f64::INFINITY)];
    }
    let drawn = record(&chart, (640, 300), 1.0);
    check(&drawn, (640, 300), 1.0, "empty");
    assert!(drawn.texts.iter().any(|t| t.text == "no data yet"));
    assert!(drawn.texts.iter().any(|t| t.text == "Goodput (requests/s)"));
    assert!(record(&Chart::default(), (640, 300), 1.0).texts.iter().any(|t| t.text == "no data yet"));
}

#[test]
fn odd_points_and_odd_sizes_do_no_harm() {
    let odd = [
        vec![(1.0, 1.0)],
        vec![(1.0, 1.0), (f64::NAN, 2.0), (3.0, f64::NEG_INFINITY), (4.0, 4.0)],
        vec![(0.0, -1e300), (1.0, 1e300), (2.0, f64::MAX)],
        vec![(5.0, 5.0), (5.0, 5.0), (5.0, 6.0)],
        (0..5_000).map(|i| (f64::from(i), libm::sin(f64::from(i)))).collect(),
    ];
    for points in odd {
        for step in [false, true] {
            for role in [Role::Neutral, Role::Policy(PolicyKind::RoundRobin)] {
                let series =
                    vec![Series { name: "s".into(), role, points: points.clone(), step, band: vec![] }];
                let chart = Chart { series, ..goodput() };
                for size in [(0, 0), (1, 1), (1, 500), (500, 1), (90, 70), (640, 300)] {
                    check(&record(&chart, size, 1.0), size, 1.0, &format!("{size:?}"));
                }
                for scale in [0.0, -1.0, f64::NAN, f64::INFINITY] {
                    record(&chart, (640, 300), scale);
                }
            }
        }
    }
}

#[test]
fn a_single_point_is_seen() {
    for role in [Role::Neutral, Role::Policy(PolicyKind::LeastTokens)] {
        let points = vec![(0.0, f64::NAN), (1.0, 1.0), (2.0, f64::NAN), (2.0, 2.0), (3.0, 3.0)];
        let series = vec![Series { name: String::new(), role, points, step: false, band: vec![] }];
        let drawn = record(&Chart { series, ..Chart::default() }, (640, 300), 1.0);
        let frame_colour = Theme::LIGHT.colour(role);
        assert!(drawn.colours.iter().filter(|c| **c == frame_colour).count() >= 3, "legend, mark, line");
    }
}

#[test]
fn many_points_are_thinned() {
    let points = (0..100_000).map(|i| (f64::from(i), f64::from(i % 97))).collect();
    let series = vec![Series { name: "s".into(), role: Role::Neutral, points, step: false, band: vec![] }];
    let drawn = record(&Chart { series, ..Chart::default() }, (640, 300), 1.0);
    assert!(drawn.points.len() < 2_200, "{}", drawn.points.len());
}

#[test]
fn a_given_range_cuts_what_is_outside() {
    let mut chart = goodput();
    chart.y.range = Some((0.0, 0.5));
    chart.x.range = Some((5.0, 8.0));
    let size = (640, 300);
    let frame = Frame::new(&chart, size, 1.0).expect("room enough");
    assert_eq!((frame.x.low, frame.x.high, frame.y.high), (5.0, 8.0, 0.5));
    check(&record(&chart, size, 1.0), size, 1.0, "cut");
}

#[test]
fn a_pixel_leads_back_to_its_value() {
    let frame = Frame::new(&goodput(), (1280, 600), 2.0).expect("room enough");
    assert!((frame.x_at(frame.x_of(7.25)) - 7.25).abs() < 1e-9);
    assert_eq!((frame.x_at(-100.0), frame.x_at(1e9)), (frame.x.low, frame.x.high));
}

#[test]
fn a_place_is_read_from_every_line() {
    let mut chart = goodput();
    chart.series.truncate(2);
    chart.series[0].points = vec![(0.0, 1.0), (2.0, 3.0)];
    chart.series[1].points = vec![(0.5, 1.0), (2.0, 3.0), (3.0, f64::NAN)];
    let read = |x| chart.at(x).into_iter().map(|(_, v)| v).collect::<Vec<_>>();
    assert_eq!(read(1.9), [Some(1.0), Some(3.0)]);
    assert_eq!(read(-1.0), [None, Some(1.0)]);
    assert_eq!(read(9.0), [Some(3.0), Some(3.0)]);
    assert_eq!(chart.stops(200), [0.0, 0.5, 2.0]);
    assert_eq!(chart.stops(2), [0.0, 2.0]);
    assert_eq!(chart.y.value_text(1.0 / 3.0), "0.333 requests/s");
}

/// Five policies over a rate, with spreads; two of them end at the same height.
fn knee(x: Axis) -> Chart {
    let series = PolicyKind::ALL.iter().enumerate().map(|(n, &policy)| {
        let value = |i: u32| (1.2 - 0.1 * f64::from(i) * n.max(1) as f64).clamp(0.0, 1.0);
        Series {
            name: policy.name().to_owned(),
            role: Role::Policy(policy),
            points: (0..8).map(|i| (f64::from(i), value(i))).collect(),
            step: false,
            band: (0..8).map(|i| (f64::from(i), value(i) * 0.9, (value(i) * 1.1).min(1.0))).collect(),
        }
    });
    Chart {
        title: "Good requests".into(),
        x,
        y: Axis { range: Some((0.0, 1.0)), ..Axis::new("good", "", Format::Percent) },
        series: series.collect(),
        markers: vec![],
        discrete: true,
    }
}

#[test]
fn lines_over_a_number_are_named_at_their_ends_where_there_is_room() {
    let names = (0..8).map(|i| format!("llama-{i}")).collect();
    for x in [Axis::new("Arrival rate", "requests/s", Format::Number), Axis::named("Model", names)] {
        let chart = knee(x);
        for (width, height) in [(296, 256), (360, 260), (480, 300), (640, 300), (1200, 420)] {
            for scale in [1.0, 2.0, 3.0] {
                let size = (width * scale as u32, height * scale as u32);
                let drawn = record(&chart, size, scale);
                check(&drawn, size, scale, &format!("{width}×{height} @{scale}"));
                for policy in PolicyKind::ALL {
                    let written = drawn.texts.iter().filter(|t| t.text == policy.name()).count();
                    assert_eq!(written, 1, "{width}×{height}: {}", policy.name());
                }
                let frame = Frame::new(&chart, size, scale).expect("room enough");
                assert_eq!(frame.ends.len(), if width >= 480 { 5 } else { 0 }, "{width}");
                assert_eq!(frame.legend.is_empty(), width >= 480);
            }
        }
    }
}

#[test]
fn a_spread_is_drawn_and_widens_the_axis() {
    let mut chart = knee(Axis::new("Arrival rate", "requests/s", Format::Number));
    chart.series.truncate(1);
    let shapes = |chart: &Chart| record(chart, (640, 300), 1.0).colours.len();
    let plain = Series { band: vec![], ..chart.series[0].clone() };
    let before = shapes(&Chart { series: vec![plain], ..chart.clone() });
    chart.series[0].band[3] = (3.0, f64::NAN, 1.0);
    chart.series[0].band[5].2 = 2.5;
    assert_eq!(shapes(&chart), before + 2, "an area on either side of the gap");
    check(&record(&chart, (640, 300), 1.0), (640, 300), 1.0, "cut by the range");
    chart.y.range = None;
    check(&record(&chart, (640, 300), 1.0), (640, 300), 1.0, "spread");
    assert!(Frame::new(&chart, (640, 300), 1.0).is_some_and(|frame| frame.y.high >= 2.5));
    chart.y.range = Some((0.0, 1.0));
    chart.series[0].band.truncate(1);
    assert_eq!(shapes(&chart), before + 1, "one alone is a rule");
}

#[test]
fn only_points_are_read_of_a_chart_over_a_number() {
    let mut chart = knee(Axis::new("Arrival rate", "requests/s", Format::Number));
    chart.series.truncate(2);
    chart.series[1].points[5].1 = f64::NAN;
    assert_eq!((chart.nearest(4.6), chart.nearest(-9.0), chart.nearest(99.0)), (5.0, 0.0, 7.0));
    assert_eq!(
        chart.reading(5.0),
        "Arrival rate 5 requests/s: round-robin 70.0 % (63.0 % to 77.0 %), least-requests – (63.0 % to 77.0 %)"
    );
    let chart = knee(Axis::named("Devices", vec!["shared".into(), "separate".into()]));
    assert!(chart.reading(1.0).starts_with("Devices separate: "), "{}", chart.reading(1.0));
    assert_eq!(goodput().nearest(4.6), 4.6);
}
