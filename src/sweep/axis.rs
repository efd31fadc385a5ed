//! A parameter and the values that a sweep gives it, as one reads them: `rate=2:20:2`, `replicas=2,4,8`.

use serde::{Deserialize, Serialize};

use crate::params::{Config, Param, Problem, param, suggestion};

/// The most values of one parameter.
pub const MAX_VALUES: usize = 1000;

/// Parameters that a sweep has its own words for.
const ELSEWHERE: [(&str, &str); 4] = [
    ("policy", "every point runs all of --policy"),
    ("seed", "every point runs all of --seeds"),
    ("backend", "a sweep only prices what a step computes"),
    ("clock", "runs side by side would measure each other"),
];

/// One parameter with its values, each as the parameter writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Axis {
    /// The parameter's key.
    pub key: String,
    /// Its values, in the order they were asked for.
    pub values: Vec<String>,
}

/// A refusal of what was asked for with `--over`.
fn refuse(problem: String) -> Problem {
    Problem { key: "over".into(), problem }
}

impl Axis {
    /// Reads `KEY=FROM:TO:STEP` (from FROM by STEP as far as TO) or `KEY=VALUE,VALUE,…`.
    pub fn parse(text: &str) -> Result<Axis, Problem> {
        let Some((key, list)) = text.split_once('=') else {
            return Err(refuse(format!(
                "found `{text}`; it is a parameter and its values, as rate=2:20:2 or replicas=2,4,8"
            )));
        };
        let param = known(key.trim())?;
        let values =
            if list.contains(':') { range(list)? } else { list.split(',').map(str::to_owned).collect() };
        let mut axis = Axis { key: param.key.to_owned(), values: Vec::new() };
        for value in values {
            let mut scratch = Config::default();
            param
                .set(&mut scratch, &value)
                .map_err(|p| refuse(format!("{}: {}", param.flag(), p.problem)))?;
            let value = param.get(&scratch);
            if axis.values.contains(&value) {
                return Err(refuse(format!("{}: `{value}` is there twice; once is enough", param.flag())));
            }
            axis.values.push(value);
        }
        if axis.values.len() > MAX_VALUES {
            return Err(refuse(too_many(list, axis.values.len() as u128)));
        }
        Ok(axis)
    }

    /// The parameter.
    pub fn param(&self) -> Result<&'static Param, Problem> {
        known(&self.key)
    }
}

fn known(key: &str) -> Result<&'static Param, Problem> {
    let Some(found) = param(key) else {
        return Err(refuse(format!("`{key}` is no parameter{}", suggestion(key))));
    };
    match ELSEWHERE.iter().find(|(own, _)| *own == found.key) {
        Some((_, why)) => Err(refuse(format!("`{key}` cannot be swept: {why}"))),
        None => Ok(found),
    }
}

fn too_many(list: &str, count: u128) -> String {
    format!("`{list}` is {count} values; a sweep takes at most {MAX_VALUES} of a parameter")
}

/// A range in decimals, so that 0.1:0.3:0.1 ends at 0.3 and not short of it.
fn range(text: &str) -> Result<Vec<String>, Problem> {
    let parts: Vec<&str> = text.split(':').map(str::trim).collect();
    let numbers: Option<Vec<(i128, u32)>> = parts.iter().map(|part| decimal(part)).collect();
    let Some([from, to, step]) = numbers.as_deref() else {
        return Err(refuse(format!(
            "found `{text}`; a range is FROM:TO:STEP, three decimal numbers, as 2:20:2 or 0.5:4:0.5"
        )));
    };
    let places = from.1.max(to.1).max(step.1);
    let whole = |(digits, own): (i128, u32)| digits * 10i128.pow(places - own);
    let (from, to, step) = (whole(*from), whole(*to), whole(*step));
    if step <= 0 {
        return Err(refuse(format!("found `{text}`, whose step {} is not above 0", parts[2])));
    }
    if from > to {
        return Err(refuse(format!(
            "found `{text}`, which begins above its end; it is FROM:TO:STEP with FROM ≤ TO"
        )));
    }
    let count = (to - from) as u128 / step as u128 + 1;
    if count > MAX_VALUES as u128 {
        return Err(refuse(too_many(text, count)));
    }
    Ok((0..count as i128).map(|i| written(from + i * step, places)).collect())
}

/// A decimal as its digits and how many of them are behind the point; at most 18, so that sums fit.
fn decimal(text: &str) -> Option<(i128, u32)> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = [whole, part].concat();
    let plain = !all.is_empty() && all.len() <= 18 && all.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| all.parse().ok()).flatten().map(|n: i128| (sign * n, part.len() as u32))
}

fn written(digits: i128, places: u32) -> String {
    let scale = 10u128.pow(places);
    let sign = if digits < 0 { "-" } else { "" };
    let (whole, part) = (digits.unsigned_abs() / scale, digits.unsigned_abs() % scale);
    let part = format!("{part:0places$}", places = places as usize);
    let part = part.trim_end_matches('0');
    if part.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{part}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        Axis::parse(text).unwrap_or_else(|e| panic!("{e}")).values
    }

    #[test]
    fn ranges_have_both_ends_and_no_rounding() {
        assert_eq!(values("rate=2:20:6"), ["2", "8", "14", "20"]);
        assert_eq!(values("skew=0.1:0.3:0.1"), ["0.1", "0.2", "0.3"]);
        assert_eq!(values("rate=1:2:0.25"), ["1", "1.25", "1.5", "1.75", "2"]);
        assert_eq!(values("replicas=5:6:4"), ["5"], "the end is reached only by a whole step");
        assert_eq!(values("max-imbalance=1.50,2.0,inf"), ["1.5", "2", "inf"]);
        assert_eq!(values("devices=shared,separate"), ["shared", "separate"]);
        assert_eq!(Axis::parse("max-imbalance=2").map(|a| a.key), Ok("max_imbalance".into()));
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (text, parts) in [
            ("rate", ["`rate`", "rate=2:20:2"]),
            ("rte=1,2", ["`rte`", "`rate`"]),
            ("rate=2:20", ["`2:20`", "FROM:TO:STEP"]),
            ("rate=2:x:1", ["`2:x:1`", "decimal"]),
            ("rate=nan:20:1", ["`nan:20:1`", "decimal"]),
            ("rate=2:20:0", ["step 0", "above 0"]),
            ("rate=2:20:-1", ["step -1", "above 0"]),
            ("rate=20:2:1", ["begins above", "FROM ≤ TO"]),
            ("rate=1:100000:0.001", ["99999001 values", "1000"]),
            ("rate=0:4:1", ["`0`", "from 0.001 to 100000"]),
            ("replicas=2,two", ["`two`", "from 1 to"]),
            ("replicas=", ["``", "from 1 to"]),
            ("replicas=2,4,2", ["`2`", "twice"]),
            ("replicas=1:2:0.5", ["`1.5`", "whole number"]),
            ("seed=1,2", ["`seed`", "--seeds"]),
            ("policy=round-robin", ["`policy`", "--policy"]),
        ] {
            let problem = Axis::parse(text).expect_err(text);
            assert_eq!(problem.key, "over");
            for part in parts {
                assert!(problem.problem.contains(part), "{text}: `{part}` is missing in: {problem}");
            }
        }
    }
}
