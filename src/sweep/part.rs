//! A part of a sweep as a file: what the sweep is, which part this is, and a line a run.
//!
//! The first line is JSON: the plan and the part's number. Then comes CSV with every figure written so
//! that it reads back to the same bits, and a last line with the digest of the others, so that a figure
//! that was changed on the way is not taken for one. So parts made on different machines join to the bytes of one run.

use core::fmt::Write;

use serde::{Deserialize, Serialize};

use super::{Digest, Done, Figures, Plan, Results};
use crate::report::columns;

const FORMAT: &str = "warmroute sweep part, 2";

/// What the last line begins with; then comes the digest of all lines before it.
const END: &str = "end,";

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    shard: u64,
    of: u64,
    plan: Plan,
}

/// The part `shard` of `of`, counted from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// Which.
    pub shard: u64,
    /// Of how many.
    pub of: u64,
    /// What the whole sweep is.
    pub plan: Plan,
    /// What its jobs came to, in order.
    pub done: Vec<Done>,
}

/// The names of the columns of the second line.
fn heading() -> String {
    let keys = columns().map(|column| column.key);
    format!("job,policy,{}", keys.join(","))
}

impl Part {
    /// The file's text.
    pub fn write(&self) -> String {
        let header =
            Header { format: FORMAT.into(), shard: self.shard, of: self.of, plan: self.plan.clone() };
        let header = serde_json::to_string(&header).expect("a plan holds no map with other keys than texts");
        let mut text = format!("{header}\n{}\n", heading());
        for done in &self.done {
            for (policy, figures) in self.plan.policies.iter().zip(&done.runs) {
                write!(text, "{},{}", done.job, policy.name()).expect("a text takes everything");
                for figure in figures {
                    text.push(',');
                    if let Some(figure) = figure {
                        write!(text, "{figure}").expect("a text takes everything");
                    }
                }
                text.push('\n');
            }
        }
        let end = digest(&text);
        writeln!(text, "{END}{end}").expect("a text takes everything");
        text
    }

    /// Reads a file's text, or says what is wrong with which line. It is complete, or refused.
    pub fn read(text: &str) -> Result<Part, String> {
        if !text.is_empty() && !text.ends_with('\n') {
            return Err("it ends in the middle of a line; the file is incomplete".into());
        }
        let mut lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
        let (_, first) = lines.next().unwrap_or_default();
        let no_part = "no part of a sweep: `warmroute sweep --shard` writes those";
        let header: Header = serde_json::from_str(first).map_err(|_| format!("line 1: {no_part}"))?;
        let Header { format, shard, of, plan } = header;
        if format != FORMAT {
            return Err(format!("line 1: found the format `{format}`; this program reads `{FORMAT}`"));
        }
        if shard < 1 || shard > of {
            return Err(format!("line 1: part {shard} of {of}; parts count from 1"));
        }
        plan.check().map_err(|p| format!("line 1: {p}"))?;
        if lines.next().map(|(_, line)| line) != Some(&heading()) {
            return Err(format!("line 2: it is `{}`", heading()));
        }
        let mut done = Vec::new();
        for job in plan.shard(shard, of) {
            let mut runs = Vec::with_capacity(plan.policies.len());
            for policy in &plan.policies {
                let run = format!("job {job} under {}", policy.name());
                let Some((at, line)) = lines.next() else {
                    return Err(format!("it ends before {run}; the file is incomplete"));
                };
                let figures = line
                    .strip_prefix(&format!("{job},{},", policy.name()))
                    .and_then(figures)
                    .ok_or_else(|| format!("line {at}: found `{line}`; it is {run}, a figure a column"))?;
                runs.push(figures);
            }
            done.push(Done { job, runs });
        }
        let Some((at, line)) = lines.next() else {
            return Err("it ends before its digest; the file is incomplete".into());
        };
        let Some(said) = line.strip_prefix(END) else {
            return Err(format!("line {at}: found `{line}` after the part's last job"));
        };
        if let Some((at, line)) = lines.next() {
            return Err(format!("line {at}: found `{line}` after the part's end"));
        }
        let before = text.len() - line.len() - 1;
        let own = digest(text.get(..before).unwrap_or_default());
        if said != own {
            return Err(format!(
                "line {at}: the digest of the lines before is {own}, and this says {said}: the file was changed"
            ));
        }
        Ok(Part { shard, of, plan, done })
    }
}

fn digest(text: &str) -> String {
    let mut digest = Digest::default();
    digest.add(text.as_bytes());
    digest.text()
}

fn figures(text: &str) -> Option<Figures> {
    let mut cells = text.split(',');
    let mut figures = Figures::default();
    for figure in &mut figures {
        let cell = cells.next()?;
        // No figure is ever below zero, or beyond what can be written.
        let figure_of = |number: &f64| number.is_finite() && *number >= 0.0;
        *figure = if cell.is_empty() { None } else { Some(cell.parse().ok().filter(figure_of)?) };
    }
    cells.next().is_none().then_some(figures)
}

/// In which of its fields a plan differs from another.
fn difference(one: &Plan, other: &Plan) -> Option<&'static str> {
    let checks = [
        ("version", one.version == other.version),
        ("preset", one.preset == other.preset),
        ("parameters", one.settings == other.settings),
        ("--over", one.over == other.over),
        ("policies", one.policies == other.policies),
        ("seeds", one.seeds == other.seeds),
        ("trace", one.trace == other.trace),
    ];
    checks.iter().find(|(_, same)| !same).map(|(field, _)| *field)
}

/// Joins all parts of one sweep, each with the name that messages call it by.
pub fn join(parts: Vec<(String, Part)>) -> Result<Results, String> {
    let Some(((first_name, first), rest)) = parts.split_first() else {
        return Err("no parts; name the files that `warmroute sweep --shard` wrote".into());
    };
    for (name, part) in rest {
        if let Some(field) = difference(&first.plan, &part.plan) {
            return Err(format!("{name}: part of another sweep than {first_name}: their {field} differ"));
        }
        if part.of != first.of {
            return Err(format!(
                "{name}: part {} of {}, but {first_name} is part {} of {}",
                part.shard, part.of, first.shard, first.of
            ));
        }
    }
    for (at, (name, part)) in parts.iter().enumerate() {
        if let Some((other, _)) = parts[..at].iter().find(|(_, earlier)| earlier.shard == part.shard) {
            return Err(format!("{name}: part {} of {}, which {other} is already", part.shard, part.of));
        }
    }
    let of = first.of;
    // By number of parts that are there, not of those that there should be: a header may say anything.
    let missing = (1..=of).find(|shard| parts.iter().all(|(_, part)| part.shard != *shard));
    if let Some(shard) = missing {
        return Err(format!(
            "part {shard} of {of} is missing: `warmroute sweep … --shard {shard}/{of}` makes it"
        ));
    }
    let plan = first.plan.clone();
    let done = parts.into_iter().flat_map(|(_, part)| part.done).collect();
    Results::new(plan, done).map_err(|p| p.problem)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{all, plan};
    use super::*;

    fn parts(plan: &Plan, of: u64) -> Vec<(String, Part)> {
        let done = all(plan);
        let part = |shard| {
            let done = plan.shard(shard, of).map(|job| done[job as usize].clone()).collect();
            (format!("{shard}.part"), Part { shard, of, plan: plan.clone(), done })
        };
        (1..=of).map(part).collect()
    }

    #[test]
    fn a_part_reads_back_to_the_bit() {
        let plan = plan(&["rate=4,16"], 3);
        for (_, part) in parts(&plan, 4) {
            assert_eq!(Part::read(&part.write()).as_ref(), Ok(&part));
        }
    }

    #[test]
    fn parts_in_any_order_are_the_whole() {
        let plan = plan(&["rate=4,16"], 3);
        let whole = Results::new(plan.clone(), all(&plan)).expect("it is whole");
        for of in [1, 2, 5, 9] {
            let mut parts = parts(&plan, of);
            parts.reverse();
            assert_eq!(join(parts).as_ref(), Ok(&whole), "{of}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_named() {
        let (one, other) = (plan(&["rate=4,16"], 3), plan(&["rate=4,17"], 3));
        let good = parts(&one, 3);
        assert!(join(Vec::new()).expect_err("none").contains("no parts"));
        let message = join(good[..2].to_vec()).expect_err("one is missing");
        assert!(message.starts_with("part 3 of 3 is missing"), "{message}");
        let twice = vec![good[0].clone(), good[1].clone(), ("again.part".into(), good[1].1.clone())];
        assert_eq!(join(twice).expect_err("twice"), "again.part: part 2 of 3, which 2.part is already");
        let foreign = vec![good[0].clone(), parts(&other, 3)[1].clone()];
        let message = join(foreign).expect_err("two sweeps");
        assert_eq!(message, "2.part: part of another sweep than 1.part: their --over differ");
        let message =
            join(vec![good[0].clone(), parts(&one, 2)[1].clone()]).expect_err("two ways of sharing");
        assert_eq!(message, "2.part: part 2 of 2, but 1.part is part 1 of 3");
    }

    #[test]
    fn a_damaged_part_is_refused_with_its_line() {
        let text = parts(&plan(&["rate=4,16"], 3), 2)[0].1.write();
        let cut = text.rsplit_once("\n2,").expect("job 2 is in it").0;
        let message = Part::read(text.trim_end()).expect_err("cut");
        assert!(message.contains("middle of a line"), "{message}");
        assert!(Part::read(&format!("{cut}\n")).expect_err("cut").contains("before job 2 under"), "{cut}");
        let message = Part::read(&(text.clone() + "9,round-robin,1\n")).expect_err("too long");
        assert!(message.contains("after the part's end"), "{message}");
        let longer = text.replace("\nend,", "\n9,round-robin,1\nend,");
        let message = Part::read(&longer).expect_err("too long");
        assert!(message.contains("after the part's last job"), "{message}");
        let figure = text.find(",0.").expect("a figure below one") + 3;
        let other = if &text[figure..=figure] == "5" { "6" } else { "5" };
        let mut changed = text.clone();
        changed.replace_range(figure..=figure, other);
        let message = Part::read(&changed).expect_err("one digit is another");
        assert!(message.contains("the file was changed"), "{message}");
        let whole = text.rsplit_once("end,").expect("it has an end").0;
        assert!(Part::read(whole).expect_err("no end").contains("before its digest"));
        let message = Part::read(&text.replacen("\n0,round-robin,", "\n0,round-robin,x", 1)).expect_err("x");
        assert!(message.starts_with("line 3: found `0,round-robin,x"), "{message}");
        for bad in ["", "policy,rate\n", "{\"format\": 3}\n"] {
            assert!(Part::read(bad).expect_err(bad).contains("no part of a sweep"));
        }
        let newer = text.replacen("part, 2", "part, 3", 1);
        assert!(Part::read(&newer).expect_err("a later format").contains("part, 3"));
        let none = text.replacen("\"shard\":1", "\"shard\":0", 1);
        assert!(Part::read(&none).expect_err("no such part").contains("count from 1"));
    }
}
