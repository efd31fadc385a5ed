//! The summary as a table: the chapter's columns, and which policy wins each.

use crate::sim::Summary;

/// A column of the summary.
#[derive(Clone, Copy)]
pub struct Column {
    /// Its name in JSON and CSV.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// Its unit; empty for fractions and counts.
    pub unit: &'static str,
    /// What it means, in a sentence.
    pub help: &'static str,
    /// Which end is better.
    pub better: Better,
    /// The value, where it is one number.
    pub value: fn(&Summary) -> Option<f64>,
    /// How the value is written.
    pub format: fn(f64) -> String,
}

/// Which values win a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// Less.
    Lower,
    /// More.
    Higher,
}

fn seconds(x: f64) -> String {
    format!("{x:.4}")
}

fn rate(x: f64) -> String {
    format!("{x:.1}")
}

fn fine(x: f64) -> String {
    format!("{x:.2}")
}

/// A fraction in percent.
pub fn percent(x: f64) -> String {
    format!("{:.1} %", 100.0 * x)
}

/// The columns of the chapter's table, in its order, and the fraction that goodput is.
pub fn columns() -> [Column; 8] {
    use Better::{Higher, Lower};
    let column = |key, title, unit, help, better, value, format| Column {
        key,
        title,
        unit,
        help,
        better,
        value,
        format,
    };
    [
        column(
            "ttft_p50",
            "TTFT p50",
            "s",
            "Median time to first token, from the scheduled arrival.",
            Lower,
            |s| s.ttft.p50,
            seconds,
        ),
        column(
            "ttft_p95",
            "TTFT p95",
            "s",
            "95th percentile of the time to first token.",
            Lower,
            |s| s.ttft.p95,
            seconds,
        ),
        column(
            "itl_p50",
            "ITL p50",
            "s",
            "Median time a token after the first.",
            Lower,
            |s| s.itl.p50,
            seconds,
        ),
        column(
            "output_tokens_per_second",
            "tokens/s",
            "",
            "Output tokens a second of the whole run.",
            Higher,
            |s| s.output_tokens_per_second,
            rate,
        ),
        column(
            "goodput_per_second",
            "goodput/s",
            "",
            "Requests that met both objectives, a second of the whole run.",
            Higher,
            |s| s.goodput_per_second,
            fine,
        ),
        column(
            "goodput_fraction",
            "good",
            "",
            "Requests that met both objectives, of all that arrived.",
            Higher,
            |s| s.goodput_fraction,
            percent,
        ),
        column(
            "reuse",
            "reuse",
            "",
            "Prompt tokens that were not computed because a prefix was cached.",
            Higher,
            |s| s.reuse,
            percent,
        ),
        column(
            "imbalance",
            "imbalance",
            "",
            "The busiest replica's share of requests over an even share; 1 is even.",
            Lower,
            |s| s.imbalance,
            fine,
        ),
    ]
}

/// For one column, which of the summaries have the best value (all that share it; none where every
/// one has the same).
pub fn winners(column: &Column, summaries: &[Summary]) -> Vec<bool> {
    let values: Vec<Option<f64>> = summaries.iter().map(column.value).collect();
    let known = values.iter().flatten().copied();
    let best = match column.better {
        Better::Lower => known.clone().reduce(f64::min),
        Better::Higher => known.clone().reduce(f64::max),
    };
    let all_same = known.clone().count() == values.len() && known.clone().all(|v| Some(v) == best);
    values.iter().map(|v| v.is_some() && *v == best && !all_same).collect()
}

/// Writes rows as a Markdown table with aligned columns.
pub fn markdown(rows: &[Vec<String>]) -> String {
    let width = |i: usize| rows.iter().map(|row| row[i].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let mut out = String::new();
    for (n, row) in rows.iter().enumerate() {
        for (cell, &width) in row.iter().zip(&widths) {
            out += &format!("| {cell:<width$} ");
        }
        out += "|\n";
        if n == 0 {
            for &width in &widths {
                out += &format!("|{}", "-".repeat(width + 2));
            }
            out += "|\n";
        }
    }
    out
}

impl Column {
    /// The value of a summary as text; a dash where it is undefined.
    pub fn text(&self, summary: &Summary) -> String {
        (self.value)(summary).map_or_else(|| "–".to_owned(), self.format)
    }

    /// Heading and unit.
    pub fn heading(&self) -> String {
        if self.unit.is_empty() { self.title.to_owned() } else { format!("{} {}", self.title, self.unit) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::{Objectives, Recorder};

    #[test]
    fn the_winner_is_marked_and_a_draw_of_all_is_not() {
        let empty = Recorder::new(4, 1).summary(&Objectives { ttft: 1.0, itl: 1.0 }, &[]);
        let with = |reuse, imbalance| crate::sim::Summary { reuse, imbalance, ..empty.clone() };
        let rows = [with(Some(0.2), Some(1.0)), with(Some(0.6), Some(1.5)), with(None, Some(1.0))];
        let column = |title: &str| columns().into_iter().find(|c| c.title == title).expect("a column");
        assert_eq!(winners(&column("reuse"), &rows), [false, true, false]);
        assert_eq!(winners(&column("imbalance"), &rows), [true, false, true]);
        assert_eq!(winners(&column("TTFT p50"), &rows), [false; 3]);
        assert_eq!(winners(&column("imbalance"), &[rows[0].clone(), rows[2].clone()]), [false; 2]);
    }
}
