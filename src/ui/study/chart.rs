//! A sweep's plots: one figure over the first parameter, a line a policy, a plot a value of the second.

use std::rc::Rc;

use super::words::{along, rising, value_text};
use crate::params::param;
use crate::plot::{Axis, Chart, Format, Role, Series};
use crate::policy::PolicyKind;
use crate::report::columns;
use crate::sweep::{Axis as Swept, Results};

/// Where each value of a parameter stands on its axis, and the axis.
fn axis(swept: &Swept) -> (Vec<f64>, Axis) {
    let own = param(&swept.key);
    let (label, unit) = own.map_or((swept.key.as_str(), ""), |p| (p.label, p.unit));
    // What is no number, or in an order of its own, stands side by side.
    if let Some(numbers) = rising(swept) {
        let unit = if unit.eq_ignore_ascii_case(label) { "" } else { unit };
        let ends = numbers.first().copied().zip(numbers.last().copied());
        let x = Axis::new(label, unit, Format::Number);
        return (numbers, Axis { range: ends.filter(|(low, high)| low < high), ..x });
    }
    let places = (0..).map(f64::from).take(swept.values.len()).collect();
    (places, Axis::named(label, swept.values.clone()))
}

fn series(results: &Results, figure: usize, second: usize, policy: PolicyKind, places: &[f64]) -> Series {
    let mut points = Vec::new();
    let mut band = Vec::new();
    for (cell, &x) in along(results, second, policy).into_iter().zip(places) {
        let stat = cell.stats[figure];
        points.push((x, stat.mean.unwrap_or(f64::NAN)));
        if let (Some(low), Some(high)) = (stat.p10, stat.p90)
            && stat.n > 1
        {
            band.push((x, low, high));
        } else {
            band.push((x, f64::NAN, f64::NAN));
        }
    }
    Series { name: policy.name().to_owned(), role: Role::Policy(policy), points, step: false, band }
}

/// The plots of a figure.
pub fn charts(results: &Results, figure: usize) -> Vec<Rc<Chart>> {
    let columns = columns();
    let (Some(column), Some(first)) = (columns.get(figure), results.plan.over.first()) else {
        return Vec::new();
    };
    let (places, x) = axis(first);
    let fraction = ["goodput_fraction", "reuse"].contains(&column.key);
    let title = if column.key == "goodput_fraction" { "good requests" } else { column.title };
    let y = Axis::new(title, column.unit, if fraction { Format::Percent } else { Format::Number });
    let y = Axis { range: fraction.then_some((0.0, 1.0)), ..y };
    let second = results.plan.over.get(1);
    let plots = (0..second.map_or(1, |axis| axis.values.len())).map(|at| {
        let lines = results.plan.policies.iter();
        Rc::new(Chart {
            title: second.map_or_else(String::new, |axis| value_text(&axis.key, &axis.values[at])),
            x: x.clone(),
            y: y.clone(),
            series: lines.map(|&policy| series(results, figure, at, policy, &places)).collect(),
            markers: Vec::new(),
            discrete: true,
        })
    });
    plots.collect()
}
