//! Runs as CSV: a row a run, in the columns of the table.

use super::columns;
use crate::sim::Summary;

/// One row a run: its policy, its seed where there are several, its figures unrounded, how many arrived, were
/// completed and were good. What is undefined is empty.
pub fn to_csv<'a>(runs: impl IntoIterator<Item = (&'a str, Option<u64>, &'a Summary)>) -> String {
    let columns = columns();
    let keys = columns.map(|column| column.key).join(",");
    let mut text = format!("policy,seed,{keys},arrived,completed,rejected,good,span\n");
    for (policy, seed, summary) in runs {
        let seed = seed.map_or_else(String::new, |seed| seed.to_string());
        text += &format!("{policy},{seed}");
        for column in &columns {
            text.push(',');
            text += &(column.value)(summary).map_or_else(String::new, |value| value.to_string());
        }
        let Summary { arrived, completed, rejected, good, span, .. } = summary;
        text += &format!(",{arrived},{completed},{rejected},{good},{span}\n");
    }
    text
}
