//! A sweep's results as a table, as CSV and as JSON.

use core::fmt::Write;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use super::{Cell, Plan, Results, Stat};
use crate::params::Config;
use crate::report::{Column, columns, markdown};

impl Results {
    /// A row a point and policy: means, and where there are several seeds the 10th and 90th percentile.
    pub fn table(&self) -> String {
        let columns = columns();
        let seeds = self.plan.seeds.count();
        let mut heading: Vec<String> = self.plan.over.iter().map(|axis| axis.key.replace('_', " ")).collect();
        heading.push("policy".into());
        heading.extend(columns.iter().map(Column::heading));
        let mut rows = vec![heading];
        for cell in &self.cells {
            let mut row: Vec<String> = self.plan.values(cell.point).into_iter().map(str::to_owned).collect();
            row.push(cell.policy.name().into());
            row.extend(columns.iter().zip(&cell.stats).map(|(column, stat)| text(column, stat, seeds)));
            rows.push(row);
        }
        let mut text = markdown(&rows);
        if seeds > 1 {
            text += &format!("mean (10th to 90th percentile) over {seeds} seeds\n");
        }
        text
    }

    /// A row a point, policy and figure; what is undefined is empty.
    pub fn csv(&self) -> String {
        let keys: Vec<&str> = self.plan.over.iter().map(|axis| axis.key.as_str()).collect();
        let mut text = format!("{},policy,figure,n,mean,min,p10,p50,p90,max\n", keys.join(","));
        for cell in &self.cells {
            let point = self.plan.values(cell.point).join(",");
            for (column, stat) in columns().iter().zip(&cell.stats) {
                write!(text, "{point},{},{},{}", cell.policy.name(), column.key, stat.n)
                    .expect("a text takes everything");
                for value in [stat.mean, stat.min, stat.p10, stat.p50, stat.p90, stat.max] {
                    text.push(',');
                    text += &value.map_or_else(String::new, |value| value.to_string());
                }
                text.push('\n');
            }
        }
        text
    }

    /// An object: the sweep, and its cells by point and policy.
    pub fn json(&self) -> String {
        serde_json::to_string_pretty(self).expect("results hold no map with other keys than texts") + "\n"
    }
}

fn text(column: &Column, stat: &Stat, seeds: u64) -> String {
    let written = |value: Option<f64>| value.map(column.format);
    match (written(stat.mean), written(stat.p10), written(stat.p90)) {
        (Some(mean), Some(low), Some(high)) if seeds > 1 => format!("{mean} ({low} to {high})"),
        (Some(mean), ..) => mean,
        _ => "–".into(),
    }
}

impl Serialize for Results {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let cells: Vec<View<'_>> = self.cells.iter().map(|cell| View { plan: &self.plan, cell }).collect();
        let mut object = serializer.serialize_struct("Results", 2)?;
        object.serialize_field("sweep", &self.plan)?;
        object.serialize_field("cells", &cells)?;
        object.end()
    }
}

/// A cell with the values of its point, as flat as a program would like it.
struct View<'a> {
    plan: &'a Plan,
    cell: &'a Cell,
}

impl Serialize for View<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (axis, value) in self.plan.over.iter().zip(self.plan.values(self.cell.point)) {
            // As every other JSON has it: numbers as numbers, no guard as null.
            let mut scratch = Config::default();
            let typed = axis.param().and_then(|p| p.set(&mut scratch, value).map(|()| p.json(&scratch)));
            map.serialize_entry(&axis.key, &typed.map_err(serde::ser::Error::custom)?)?;
        }
        map.serialize_entry("policy", self.cell.policy.name())?;
        for (column, stat) in columns().iter().zip(&self.cell.stats) {
            map.serialize_entry(column.key, stat)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all, plan};
    use super::*;

    #[test]
    fn three_ways_to_say_the_same() {
        let plan = plan(&["max-imbalance=1.5,inf", "rate=4"], 5);
        let results = Results::new(plan.clone(), all(&plan)).expect("it is whole");
        let (table, csv, json) = (results.table(), results.csv(), results.json());
        assert!(table.starts_with("| max imbalance | rate | policy "), "{table}");
        assert!(table.ends_with("mean (10th to 90th percentile) over 5 seeds\n"));
        assert_eq!(table.lines().count(), 2 + 6 + 1);
        let reuse = results.cells[5].stats[6].mean.expect("requests were admitted");
        assert!(csv.contains(&format!("\ninf,4,prefix-affinity,reuse,5,{reuse},")), "{csv}");
        assert_eq!(csv.lines().count(), 1 + 6 * 8);
        let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
        let cell = &json["cells"][5];
        assert!(
            cell["max_imbalance"].is_null() && cell["rate"] == 4.0 && cell["policy"] == "prefix-affinity"
        );
        assert_eq!((&cell["reuse"]["n"], &json["sweep"]["seeds"]["to"]), (&5.into(), &8.into()));
    }
}
