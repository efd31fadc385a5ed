//! A comparison as people and programs read it.

use serde::Serialize;

use super::{Comparison, Curve, Parting, Side};
use crate::policy::grouped;
use crate::report::{Prediction, columns, markdown};

/// The table of figures, what each expected, and where policies first decide otherwise.
pub fn table(comparison: &Comparison) -> String {
    let columns = columns();
    let mut rows = vec![vec!["policy".to_owned()]];
    rows[0].extend(columns.iter().map(|column| column.heading()));
    rows[0].extend(["busiest".to_owned(), "assignments".to_owned()]);
    for side in &comparison.sides {
        let mut row = vec![side.policy.name().to_owned()];
        row.extend(columns.iter().map(|column| column.text(&side.summary)));
        row.push(percent(side.busiest_share()));
        row.push(assignments(&side.summary.assignments));
        rows.push(row);
    }
    markdown(&rows) + &expectations(&comparison.sides) + &partings(&comparison.partings)
}

fn assignments(of: &[u64]) -> String {
    if of.len() > 16 {
        let (low, high) = (of.iter().min(), of.iter().max());
        return format!("{} to {}", low.copied().unwrap_or(0), high.copied().unwrap_or(0));
    }
    of.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "–".to_owned(), crate::report::percent)
}

/// What the policies expected to be cached, and what was.
fn expectations(sides: &[Side]) -> String {
    let told: Vec<(&Side, &Prediction)> =
        sides.iter().filter_map(|side| Some((side, side.prediction.as_ref()?))).collect();
    if told.is_empty() {
        return String::new();
    }
    let headings = [
        "tokens cached",
        "expected",
        "found",
        "evicted",
        "never there",
        "no whole block",
        "expired",
        "never sent",
        "index too coarse",
    ];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    for (side, p) in told {
        let numbers = [
            p.predicted,
            p.found,
            p.over.evicted,
            p.over.never,
            p.over.mismatch,
            p.under.expired,
            p.under.never,
            p.under.mismatch,
        ];
        let mut row = vec![side.policy.name().to_owned()];
        row.extend(numbers.map(grouped));
        rows.push(row);
    }
    format!("\n{}", markdown(&rows))
}

fn partings(partings: &[Parting]) -> String {
    let mut text = String::new();
    for Parting { policies: [a, b], first } in partings {
        match first {
            None => text += &format!("\n{a} and {b} decide alike throughout.\n"),
            Some(parted) => {
                text += &format!("\n{a} and {b} part at request {} ({:.3} s):\n", parted.request, parted.at);
                for pick in &parted.picks {
                    text += &format!("  {}: {}\n", pick.policy, pick.why);
                }
            }
        }
    }
    text
}

/// Curves as tables, the default marked.
pub fn curve_table(curve: &Curve) -> String {
    let unit = if curve.unit.is_empty() { String::new() } else { format!(" ({})", curve.unit) };
    let mut rows = vec![vec![
        format!("{}{unit}", curve.key),
        "reuse".to_owned(),
        "busiest".to_owned(),
        "TTFT p50 s".to_owned(),
    ]];
    for point in &curve.points {
        let mark = match (point.default, point.set) {
            (true, _) => " (default)",
            (false, true) => " (set)",
            (false, false) => "",
        };
        rows.push(vec![
            format!("{}{mark}", point.value),
            percent(point.reuse),
            percent(point.busiest_share),
            point.ttft_p50.map_or_else(|| "–".to_owned(), |ttft| format!("{ttft:.4}")),
        ]);
    }
    format!("\n{}:\n{}", curve.policy, markdown(&rows))
}

#[derive(Serialize)]
struct Json<'a> {
    policies: Vec<JsonSide<'a>>,
    first_differences: &'a [Parting],
    curves: &'a [Curve],
}

#[derive(Serialize)]
struct JsonSide<'a> {
    policy: &'static str,
    busiest_share: Option<f64>,
    prediction: &'a Option<Prediction>,
    summary: &'a crate::sim::Summary,
}

/// The same as JSON.
pub fn to_json(comparison: &Comparison, curves: &[Curve]) -> String {
    let side = |side: &'_ Side| (side.policy.name(), side.busiest_share());
    let json = Json {
        policies: comparison
            .sides
            .iter()
            .map(|own| {
                let (policy, busiest_share) = side(own);
                JsonSide { policy, busiest_share, prediction: &own.prediction, summary: &own.summary }
            })
            .collect(),
        first_differences: &comparison.partings,
        curves,
    };
    serde_json::to_string_pretty(&json).expect("plain data") + "\n"
}
