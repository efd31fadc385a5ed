//! The same experiment over many seeds: medians, spread, and how often a claim holds.

use serde::Serialize;

use super::table::{Column, columns, markdown};
use crate::policy::PolicyKind;
use crate::sim::{Summary, quantile};

/// One policy's figures over many seeds.
#[derive(Clone, Debug)]
pub struct Spread {
    /// The policy.
    pub policy: PolicyKind,
    /// One summary a seed, in the order of seeds.
    pub summaries: Vec<Summary>,
}

/// Three quantiles of one figure over the seeds; null where it was never defined.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Over {
    p10: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
}

impl Spread {
    fn over(&self, value: fn(&Summary) -> Option<f64>) -> Over {
        let mut values: Vec<f64> = self.summaries.iter().filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        Over { p10: quantile(&values, 0.1), p50: quantile(&values, 0.5), p90: quantile(&values, 0.9) }
    }

    fn cell(&self, column: &Column) -> String {
        let over = self.over(column.value);
        let [Some(low), Some(mid), Some(high)] = [over.p10, over.p50, over.p90] else { return "–".into() };
        format!("{} ({} to {})", (column.format)(mid), (column.format)(low), (column.format)(high))
    }
}

/// How many seeds of `of` a claim held for, where every policy that it speaks of has run.
fn claims(spreads: &[Spread]) -> Vec<(String, usize, usize)> {
    let of = |policy| spreads.iter().find(|s| s.policy == policy).map(|s| &s.summaries);
    let (Some(robin), Some(tokens), Some(affinity)) =
        (of(PolicyKind::RoundRobin), of(PolicyKind::LeastTokens), of(PolicyKind::PrefixAffinity))
    else {
        return Vec::new();
    };
    let count = |holds: &dyn Fn(usize) -> bool| (0..robin.len()).filter(|&i| holds(i)).count();
    let reuse = |s: &Summary| s.reuse.unwrap_or(0.0);
    let claims: [(&str, &dyn Fn(usize) -> bool); 4] = [
        ("reuse of prefix-affinity is more than twice round-robin's", &|i| {
            reuse(&affinity[i]) > 2.0 * reuse(&robin[i])
        }),
        ("reuse of prefix-affinity is the highest", &|i| {
            reuse(&affinity[i]) > reuse(&robin[i]).max(reuse(&tokens[i]))
        }),
        ("median TTFT of prefix-affinity is the lowest", &|i| {
            let ttft = |s: &Summary| s.ttft.p50.unwrap_or(f64::INFINITY);
            ttft(&affinity[i]) < ttft(&robin[i]).min(ttft(&tokens[i]))
        }),
        ("goodput: round-robin ≤ least-tokens < prefix-affinity", &|i| {
            robin[i].good_rate() <= tokens[i].good_rate() && tokens[i].good_rate() < affinity[i].good_rate()
        }),
    ];
    claims.iter().map(|(text, holds)| ((*text).to_owned(), count(holds), robin.len())).collect()
}

impl Summary {
    fn good_rate(&self) -> f64 {
        self.goodput_per_second.unwrap_or(0.0)
    }
}

/// Medians with the 10th and 90th percentile, and under them what held how often.
pub fn spread_table(spreads: &[Spread]) -> String {
    let columns = columns();
    let mut rows = vec![vec!["policy".to_owned()]];
    rows[0].extend(columns.iter().map(Column::heading));
    for spread in spreads {
        let mut row = vec![spread.policy.name().to_owned()];
        row.extend(columns.iter().map(|c| spread.cell(c)));
        rows.push(row);
    }
    let mut text = markdown(&rows);
    for (claim, held, of) in claims(spreads) {
        text += &format!("{held} of {of} seeds: {claim}\n");
    }
    text
}

#[derive(Serialize)]
struct SpreadRow<'a> {
    policy: &'static str,
    seeds: usize,
    ttft_p50: Over,
    ttft_p95: Over,
    itl_p50: Over,
    output_tokens_per_second: Over,
    goodput_per_second: Over,
    goodput_fraction: Over,
    reuse: Over,
    imbalance: Over,
    runs: &'a [Summary],
}

/// The same as JSON: one object a policy, with every seed's summary.
pub fn spread_json(spreads: &[Spread]) -> String {
    let rows: Vec<SpreadRow<'_>> = spreads
        .iter()
        .map(|s| SpreadRow {
            policy: s.policy.name(),
            seeds: s.summaries.len(),
            ttft_p50: s.over(|s| s.ttft.p50),
            ttft_p95: s.over(|s| s.ttft.p95),
            itl_p50: s.over(|s| s.itl.p50),
            output_tokens_per_second: s.over(|s| s.output_tokens_per_second),
            goodput_per_second: s.over(|s| s.goodput_per_second),
            goodput_fraction: s.over(|s| s.goodput_fraction),
            reuse: s.over(|s| s.reuse),
            imbalance: s.over(|s| s.imbalance),
            runs: &s.summaries,
        })
        .collect();
    serde_json::to_string_pretty(&rows).expect("rows hold no map with other keys than texts") + "\n"
}
