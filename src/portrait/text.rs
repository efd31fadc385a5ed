//! A portrait in words and a table, as a terminal shows it.

use core::fmt::Write;

use super::{Lengths, Portrait};
use crate::policy::grouped;
use crate::report::{markdown, percent};
use crate::units::significant;

/// Eight heights of a bar.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

fn seconds(x: f64) -> String {
    match x {
        x if x >= 172_800.0 => format!("{} days", significant(x / 86_400.0, 3)),
        x if x >= 7200.0 => format!("{} h", significant(x / 3600.0, 3)),
        x => format!("{} s", significant(x, 4)),
    }
}

/// A number that is known to a fifth, with the two digits that it is good for.
fn about(x: f64) -> String {
    significant(x, 2).parse().map_or_else(|_| x.to_string(), |rounded: f64| grouped(rounded as u64))
}

fn row(name: &str, lengths: &Lengths) -> Vec<String> {
    let mut row =
        vec![name.to_owned(), lengths.mean.map_or_else(|| "–".into(), |mean| grouped(mean.round() as u64))];
    match &lengths.percentiles {
        None => row.extend(core::iter::repeat_n("–".to_owned(), 6)),
        Some(p) => {
            row.extend([p.min, p.p10, p.p50, p.p90, p.p99, p.max].map(|x| grouped(x.round() as u64)));
        }
    }
    row
}

impl Portrait {
    /// On one screen.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut say = |line: String| writeln!(text, "{line}").expect("a text takes everything");
        let arrivals = &self.arrivals;
        let tenants = if self.tenants > 0 { format!(", {} tenants", self.tenants) } else { String::new() };
        say(format!("{} requests over {}{tenants}", grouped(self.requests as u64), seconds(arrivals.span)));
        let sessions = &self.sessions;
        if let Some(mean) = sessions.mean_requests.filter(|_| sessions.named || self.reuse.known) {
            say(format!(
                "{} sessions{}, {} requests each in the mean, {} at most",
                grouped(sessions.count.into()),
                if sessions.named { "" } else { " (by how prompts begin)" },
                significant(mean, 3),
                grouped(sessions.most_requests.into())
            ));
        }
        say(String::new());
        if let (Some(rate), Some(variation)) = (arrivals.rate, arrivals.gap_variation) {
            say(format!(
                "arrivals: {} a second; gaps vary by {} of their mean (1 is Poisson), counts a bin by {} (1 is Poisson)",
                significant(rate, 3),
                significant(variation, 3),
                significant(arrivals.dispersion.unwrap_or(0.0), 3)
            ));
            let most = arrivals.bins.iter().copied().max().unwrap_or(1).max(1);
            let bar = |&count: &u32| BARS[(u64::from(count) * 7 / u64::from(most)) as usize];
            let bars: String = arrivals.bins.iter().map(bar).collect();
            say(format!(
                "{bars} {} each, up to {} a second",
                seconds(arrivals.bin),
                significant(arrivals.peak().unwrap_or(0.0), 3)
            ));
        } else {
            say("arrivals: all at once".into());
        }
        if let Some(bucket) = arrivals.bucket {
            say(format!(
                "{} arrive at the time of the one before; times seem rounded to {} (--spread)",
                grouped(arrivals.simultaneous as u64),
                seconds(bucket)
            ));
        }
        say(String::new());
        let head =
            ["tokens", "mean", "least", "p10", "p50", "p90", "p99", "most"].map(str::to_owned).to_vec();
        let table = markdown(&[head, row("prompt", &self.input), row("output", &self.output)]);
        say(table);
        let reuse = &self.reuse;
        if !reuse.known {
            say("nothing is known of the prompts but their lengths: nothing of them can be reused".into());
            return text;
        }
        if let Some(ideal) = reuse.ideal {
            say(format!(
                "ideal hit rate: {} of all prompt tokens (one infinite cache, whole blocks of {} tokens)",
                percent(ideal),
                reuse.block
            ));
        }
        say(format!("blocks: {}, of which {} are different", grouped(reuse.blocks), grouped(reuse.distinct)));
        say(match (reuse.shared_tokens, &reuse.shared_ids[..]) {
            (0, _) => "no block is in all prompts".into(),
            (tokens, []) => format!("all prompts begin with the same {} tokens", grouped(tokens)),
            (tokens, ids) => {
                let ids: Vec<String> = ids.iter().map(u32::to_string).collect();
                format!(
                    "all prompts begin with the same {} tokens: block {}",
                    grouped(tokens),
                    ids.join(", ")
                )
            }
        });
        let skew = &reuse.skew;
        if let (Some(effective), Some(largest)) = (skew.effective, skew.largest.first()) {
            say(format!(
                "beginnings after that: {} different, as uneven as {} equal ones; the largest has {} of the requests, the ten largest {}",
                grouped(skew.beginnings as u64),
                significant(effective, 3),
                percent(*largest),
                percent(skew.largest.iter().sum())
            ));
        }
        if let (Some(tokens), Some(pauses)) = (reuse.distance_tokens, reuse.distance_seconds) {
            say(format!(
                "reuse distance: half of what is reused within about {} tokens and {}, nine tenths within {} and {}",
                about(tokens[0]),
                seconds(pauses[0]),
                about(tokens[1]),
                seconds(pauses[1])
            ));
            let most = reuse.curve.last().map_or(0.0, |point| point.hit);
            let sizes: Vec<String> = [0.5, 0.9, 0.99]
                .iter()
                .filter_map(|part| {
                    let point = reuse.curve.iter().find(|point| point.hit >= part * most)?;
                    Some(format!("{} tokens: {}", about(point.tokens), percent(point.hit)))
                })
                .collect();
            say(format!("one LRU cache of about so many tokens would have: {}", sizes.join("; ")));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Config;
    use crate::trace::Log;

    #[test]
    fn a_portrait_fits_a_screen() {
        let log = Log::from(Config::default().generator().generate());
        let portrait = Portrait::of(&log);
        let text = portrait.text();
        assert!(text.starts_with("24 requests over "), "{text}");
        assert!(text.lines().count() < 25 && text.contains("ideal hit rate: "), "{text}");
        let json: serde_json::Value = serde_json::from_str(&portrait.json()).expect("it is JSON");
        assert_eq!(
            (&json["requests"], json["arrivals"]["bins"].as_array().map(Vec::len)),
            (&24.into(), Some(60))
        );
        assert!(Portrait::of(&Log::default()).text().starts_with("0 requests"));
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
