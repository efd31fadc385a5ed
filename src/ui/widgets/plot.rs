//! A chart on a canvas: sharp at every pixel density, in the reader's theme, with a crosshair that
//! pointer and keyboard move.

use std::rc::Rc;

use plotters::prelude::IntoDrawingArea;
use plotters_canvas::CanvasBackend;
use web_sys::HtmlCanvasElement;
use yew::prelude::*;

use super::said::use_said;
use super::surroundings::{use_dark, use_pixel_ratio, use_size};
use crate::plot::{Chart, Frame, Theme, draw};

/// What a [`Plot`] is given.
#[derive(Properties)]
pub struct PlotProps {
    /// The chart; the same `Rc` or an equal chart is not drawn again.
    pub chart: Rc<Chart>,
    /// What the chart shows, for those who do not see it.
    pub label: AttrValue,
}

impl PartialEq for PlotProps {
    fn eq(&self, other: &Self) -> bool {
        same(&self.chart, &other.chart) && self.label == other.label
    }
}

fn same(one: &Rc<Chart>, other: &Rc<Chart>) -> bool {
    Rc::ptr_eq(one, other) || one == other
}

/// Everything that a picture depends on.
#[derive(Clone)]
struct Picture {
    chart: Rc<Chart>,
    size: (f64, f64),
    ratio: f64,
    dark: bool,
}

impl PartialEq for Picture {
    fn eq(&self, other: &Self) -> bool {
        same(&self.chart, &other.chart)
            && (self.size, self.ratio, self.dark) == (other.size, other.ratio, other.dark)
    }
}

impl Picture {
    fn draw(&self, canvas: HtmlCanvasElement) {
        let pixels = |css: f64| (css * self.ratio).round().max(0.0) as u32;
        // Also clears what was there.
        canvas.set_width(pixels(self.size.0));
        canvas.set_height(pixels(self.size.1));
        let mut theme = if self.dark { Theme::DARK } else { Theme::LIGHT };
        // The page's own background shows through.
        theme.background = None;
        if let Some(backend) = CanvasBackend::with_canvas_object(canvas) {
            // A canvas that cannot draw stays empty; the label still says what would be there.
            let _ = draw(&backend.into_drawing_area(), &self.chart, &theme, self.ratio);
        }
    }

    /// The layout in CSS pixels, for the crosshair.
    fn frame(&self) -> Option<Frame> {
        Frame::new(&self.chart, (self.size.0.round() as u32, self.size.1.round() as u32), 1.0)
    }
}

/// How many places the arrow keys stop at.
const STOPS: usize = 200;

const HINT: &str = "Point at the chart, or focus it and use the left and right arrow keys, to read values.";

/// The stop that a key leads to from `at`.
fn moved(key: &str, at: Option<f64>, stops: &[f64]) -> Option<f64> {
    let (first, last) = (*stops.first()?, *stops.last()?);
    match (key, at) {
        ("Home", _) | ("ArrowRight", None) => Some(first),
        ("End", _) | ("ArrowLeft", None) => Some(last),
        ("ArrowRight", Some(x)) => Some(stops.iter().copied().find(|s| *s > x).unwrap_or(last)),
        ("ArrowLeft", Some(x)) => Some(stops.iter().rev().copied().find(|s| *s < x).unwrap_or(first)),
        _ => None,
    }
}

/// A chart in a figure.
#[component]
pub fn Plot(props: &PlotProps) -> Html {
    let node = use_node_ref();
    let picture = Picture {
        chart: Rc::clone(&props.chart),
        size: use_size(&node),
        ratio: use_pixel_ratio(),
        dark: use_dark(),
    };
    let at = use_state_eq(|| None::<f64>);
    {
        let node = node.clone();
        use_effect_with(picture.clone(), move |picture| {
            if let Some(canvas) = node.cast() {
                picture.draw(canvas);
            }
        });
    }
    let frame = use_memo(picture.clone(), Picture::frame);

    let onpointermove = {
        let (at, frame, chart) = (at.setter(), Rc::clone(&frame), Rc::clone(&props.chart));
        Callback::from(move |event: PointerEvent| {
            let x = (*frame).as_ref().map(|frame| frame.x_at(f64::from(event.offset_x())));
            at.set(x.map(|x| chart.nearest(x)));
        })
    };
    let clear = {
        let at = at.setter();
        move || at.set(None)
    };
    let onpointerleave = {
        let clear = clear.clone();
        Callback::from(move |_: PointerEvent| clear())
    };
    let onblur = {
        let clear = clear.clone();
        Callback::from(move |_: FocusEvent| clear())
    };
    let onkeydown = {
        let (at, chart) = (at.clone(), Rc::clone(&props.chart));
        Callback::from(move |event: KeyboardEvent| {
            if event.key() == "Escape" {
                return at.set(None);
            }
            if let Some(next) = moved(&event.key(), *at, &chart.stops(STOPS)) {
                event.prevent_default();
                at.set(Some(next));
            }
        })
    };

    let cross = (*frame).as_ref().zip(*at).filter(|(frame, x)| (frame.x.low..=frame.x.high).contains(x));
    // Always there, so that the canvas never changes its place among its siblings: yew would make a
    // new one, which nobody has drawn on.
    let line = cross.map_or_else(
        || "display:none".to_owned(),
        |(frame, x)| {
            let (left, plot) = (frame.x_of(x), frame.plot);
            format!("left:{left}px;top:{}px;height:{}px", plot.top, plot.bottom - plot.top)
        },
    );
    let text = cross.map_or_else(|| HINT.to_owned(), |(_, x)| props.chart.reading(x));
    use_said(cross.map_or_else(AttrValue::default, |_| text.clone().into()));
    // The surface has a height of its own and the canvas fills it: a canvas without a given size
    // would take its backing store's, and grow with every measurement.
    html! {
        <figure class="plot">
            <div class="plot-surface" style="position:relative;height:var(--plot-height,18rem)">
                <canvas
                    ref={node}
                    role="img"
                    aria-label={props.label.clone()}
                    tabindex="0"
                    style="display:block;width:100%;height:100%"
                    {onpointermove}
                    {onpointerleave}
                    {onkeydown}
                    {onblur}
                />
                <div class="plot-cross" aria-hidden="true" style={line}></div>
            </div>
            <p class="plot-readout">{ text }</p>
        </figure>
    }
}
