//! A chart as SVG: the same before any script runs, on paper and in both themes, with a crosshair that pointer and
//! keyboard move.

use std::rc::Rc;

use yew::prelude::*;

use super::said::use_said;
use super::surroundings::use_size;
use crate::plot::svg::{UNITS, svg};
use crate::plot::{Chart, Frame};

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
    /// In CSS pixels.
    size: (u32, u32),
}

impl PartialEq for Picture {
    fn eq(&self, other: &Self) -> bool {
        self.size == other.size && same(&self.chart, &other.chart)
    }
}

/// The size of a picture that nobody has measured, in CSS pixels.
pub const UNMEASURED: (u32, u32) = (480, 256);

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
    let size = match use_size(&node) {
        (0.0, _) | (_, 0.0) => UNMEASURED,
        (width, height) => (width.round() as u32, height.round() as u32),
    };
    let picture = Picture { chart: Rc::clone(&props.chart), size };
    let at = use_state_eq(|| None::<f64>);
    let drawn = use_memo(picture.clone(), |picture| AttrValue::from(svg(&picture.chart, picture.size)));
    let frame = use_memo(picture, |picture| Frame::new(&picture.chart, picture.size, 1.0));

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
    // Always there, so that nothing changes its place among its siblings.
    let line = cross.map_or_else(String::new, |(frame, x)| {
        let (units, plot) = (f64::from(UNITS), frame.plot);
        format!("M{} {}V{}", frame.x_of(x) * units, plot.top * units, plot.bottom * units)
    });
    let text = cross.map_or_else(|| HINT.to_owned(), |(_, x)| props.chart.reading(x));
    use_said(cross.map_or_else(AttrValue::default, |_| text.clone().into()));
    html! {
        <figure class="plot">
            <svg ref={node} class="plot-surface" role="img" aria-label={props.label.clone()} tabindex="0"
                viewBox={format!("0 0 {} {}", size.0 * UNITS, size.1 * UNITS)}
                {onpointermove} {onpointerleave} {onkeydown} {onblur}>
                <g>{ Html::from_html_unchecked((*drawn).clone()) }</g>
                <path class="plot-cross" d={line} />
            </svg>
            <p class="plot-readout">{ text }</p>
        </figure>
    }
}
