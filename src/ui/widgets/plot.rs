//! A chart: live on a canvas, sharp at every pixel density and in the reader's theme; before any script runs and on paper
//! as SVG. A crosshair that pointer and keyboard move lies over both.

use std::rc::Rc;

use gloo_events::EventListener;
use gloo_timers::callback::Timeout;
use yew::prelude::*;

use super::canvas::paint;
use super::figure_tools::{FigureTools, Taken};
use super::said::use_said;
use super::surroundings::{Screen, use_screen, use_size};
use crate::plot::svg::{UNITS, svg};
use crate::plot::{Chart, Frame, Theme};
use crate::ui::dom;

/// What a [`Plot`] is given.
#[derive(Properties)]
pub struct PlotProps {
    /// The chart; the same `Rc` or an equal chart is not drawn again.
    pub chart: Rc<Chart>,
    /// What the chart shows, for those who do not see it.
    pub label: AttrValue,
    /// As what it can be taken along, if it can.
    #[prop_or_default]
    pub taken: Option<Taken>,
}

impl PartialEq for PlotProps {
    fn eq(&self, other: &Self) -> bool {
        same(&self.chart, &other.chart) && self.label == other.label && self.taken == other.taken
    }
}

/// Whether two charts are one.
pub(super) fn same(one: &Rc<Chart>, other: &Rc<Chart>) -> bool {
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

impl Picture {
    /// The elements of its SVG.
    fn still(&self) -> AttrValue {
        svg(&self.chart, self.size).into()
    }

    /// Whether it could be drawn.
    fn draw(&self, canvas: &NodeRef, screen: Screen) -> bool {
        let mut theme = if screen.dark { Theme::DARK } else { Theme::LIGHT };
        // The page's own shows through.
        theme.background = None;
        canvas.cast().is_some_and(|canvas| paint(&canvas, &self.chart, &theme, self.size, screen.ratio))
    }
}

/// How long a chart must stand before its SVG follows it, in milliseconds.
const SETTLED: u32 = 500;

/// Draws a picture on a canvas whenever it changes. What the SVG shows meanwhile, and whether the canvas has it: once it
/// does, the SVG follows only what has settled, and what is about to be printed.
#[hook]
fn use_canvas(canvas: &NodeRef, picture: &Picture, measured: bool) -> (Picture, bool) {
    let screen = use_screen();
    let live = use_state_eq(|| false);
    let still = use_state_eq(|| picture.clone());
    {
        let (canvas, live, still) = (canvas.clone(), live.clone(), still.setter());
        use_effect_with((picture.clone(), screen, measured), move |(picture, screen, measured)| {
            // Where it has no size it is not seen either.
            let drawn = *measured && picture.draw(&canvas, *screen);
            if *measured && drawn != *live {
                still.set(picture.clone());
                live.set(drawn);
            }
        });
    }
    {
        let still = still.setter();
        use_effect_with(picture.clone(), move |picture| {
            let (settled, printed) = (picture.clone(), picture.clone());
            let set = still.clone();
            let later = Timeout::new(SETTLED, move || set.set(settled));
            let print =
                EventListener::new(&dom::window(), "beforeprint", move |_| still.set(printed.clone()));
            move || drop((later, print))
        });
    }
    (if *live { (*still).clone() } else { picture.clone() }, *live)
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
    let canvas = use_node_ref();
    let (size, measured) = match use_size(&node) {
        (0.0, _) | (_, 0.0) => (UNMEASURED, false),
        (width, height) => ((width.round() as u32, height.round() as u32), true),
    };
    let picture = Picture { chart: Rc::clone(&props.chart), size };
    let at = use_state_eq(|| None::<f64>);
    let (still, live) = use_canvas(&canvas, &picture, measured);
    let still = use_memo(still, Picture::still);
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
    let id = props.taken.as_ref().map(|taken| taken.id.clone());
    html! {
        <figure class="plot" {id}>
            <div class={classes!("plot-stage", live.then_some("drawn"))}>
                <canvas ref={canvas} class="plot-canvas" aria-hidden="true"></canvas>
                <svg ref={node} class="plot-surface" role="img" aria-label={props.label.clone()} tabindex="0"
                    viewBox={format!("0 0 {} {}", size.0 * UNITS, size.1 * UNITS)}
                    {onpointermove} {onpointerleave} {onkeydown} {onblur}>
                    <g class="still">{ Html::from_html_unchecked((*still).clone()) }</g>
                    <path class="plot-cross" d={line} />
                </svg>
            </div>
            <p class="plot-readout">{ text }</p>
            if let Some(taken) = &props.taken {
                <FigureTools chart={props.chart.clone()} taken={taken.clone()} />
            }
        </figure>
    }
}
