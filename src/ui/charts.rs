//! The three plots of the race, from the points that its workers told.

use std::rc::Rc;

use super::fork::Fork;
use super::playback::Chunks;
use super::state::{Lane, State};
use crate::plot::{Axis, Chart, Format, Marker, Role, Series};
use crate::units::PICOS_PER_SECOND;
use crate::worker::Point;

/// More points than pixels say nothing more.
const MOST_POINTS: usize = 1500;

/// What one plot shows.
struct Figure {
    title: &'static str,
    axis: (&'static str, &'static str, Format),
    value: fn(&Point) -> Option<f64>,
}

const FIGURES: [Figure; 3] = [
    Figure { title: "Reuse", axis: ("prompt tokens found cached", "", Format::Percent), value: |p| p.reuse },
    Figure {
        title: "Imbalance", axis: ("busiest ÷ even share", "", Format::Number), value: |p| p.imbalance
    },
    Figure {
        title: "Goodput",
        axis: ("good requests a second", "1/s", Format::Number),
        value: |p| (p.at > 0.0).then(|| f64::from(p.good) / p.at),
    },
];

/// Plots are drawn anew at so many moments of a race, and not at every frame.
const MOMENTS: u64 = 150;

/// The moment up to which the plots are drawn, in picoseconds.
pub fn moment(state: &State) -> u64 {
    let step = (state.reach() / MOMENTS).max(1);
    if state.over() { state.at } else { state.at / step * step }
}

/// Every how-manieth point is drawn, so that they are not more than can be told apart.
fn thinned(points: &Chunks<Point>, until: f64) -> Vec<Point> {
    let every = points.len().div_ceil(MOST_POINTS).max(1);
    points.iter().take_while(|p| p.at <= until).step_by(every).copied().collect()
}

fn series(lane: &Lane, points: &[Point], value: fn(&Point) -> Option<f64>, until: f64) -> Series {
    let mut drawn: Vec<(f64, f64)> = points.iter().filter_map(|p| Some((p.at, value(p)?))).collect();
    // What held last holds up to the moment shown, and not beyond the run's own end.
    let end = until.min(lane.progress.at as f64 / PICOS_PER_SECOND as f64);
    if let Some(&(at, last)) = drawn.last()
        && at < end
    {
        drawn.push((end, last));
    }
    Series {
        name: lane.policy.name().to_owned(),
        role: Role::Policy(lane.policy),
        points: drawn,
        step: true,
        band: Vec::new(),
    }
}

fn seconds(picos: u64) -> f64 {
    picos as f64 / PICOS_PER_SECOND as f64
}

/// One plot over a race's time.
fn over_time(figure: &Figure, reach: f64, series: Vec<Series>, markers: Vec<Marker>) -> Rc<Chart> {
    let (title, unit, format) = figure.axis;
    let x = Axis::new("simulated time", "s", Format::Number);
    Rc::new(Chart {
        title: figure.title.to_owned(),
        // The scale of time does not grow while time goes on.
        x: Axis { range: (reach > 0.0).then_some((0.0, reach)), ..x },
        y: Axis::new(title, unit, format),
        series,
        markers,
        discrete: false,
    })
}

/// Both futures of a lane that was forked, as far as they are known: reuse, imbalance and goodput.
pub fn futures(state: &State, fork: &Fork) -> Vec<Rc<Chart>> {
    let reach = seconds(state.reach());
    let Some(lane) = state.lanes.get(fork.of.0) else { return Vec::new() };
    let other =
        if fork.future.policy == fork.of.1 { Role::Neutral } else { Role::Policy(fork.future.policy) };
    let lines = [(lane, "as it was", Role::Policy(fork.of.1)), (&fork.future, "the fork", other)]
        .map(|(lane, name, role)| (lane, name, role, thinned(&lane.points, reach)));
    let draw = |figure: &Figure| {
        let drawn = lines.iter().map(|(lane, name, role, points)| Series {
            name: (*name).to_owned(),
            role: *role,
            ..series(lane, points, figure.value, reach)
        });
        let marker = Marker { x: seconds(fork.at), label: "fork".to_owned() };
        over_time(figure, reach, drawn.collect(), vec![marker])
    };
    FIGURES.iter().map(draw).collect()
}

/// The plots at the moment shown: reuse, imbalance and goodput, one line a policy.
pub fn charts(state: &State) -> Vec<Rc<Chart>> {
    let (until, reach) = (seconds(moment(state)), seconds(state.reach()));
    let points: Vec<Vec<Point>> = state.lanes.iter().map(|lane| thinned(&lane.points, until)).collect();
    let draw = |figure: &Figure| {
        let lanes = state.lanes.iter().zip(&points);
        let drawn = lanes.map(|(lane, points)| series(lane, points, figure.value, until)).collect();
        over_time(figure, reach, drawn, Vec::new())
    };
    FIGURES.iter().map(draw).collect()
}
