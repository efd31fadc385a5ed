//! A configuration as a URL's query, and back: only what differs from the defaults is written, which
//! are an accelerator's own where there is one.

use super::{Config, Preset, Problem, all_params, set, shortened};

/// The query (without `?`) of a configuration.
pub fn to_query(config: &Config) -> String {
    let (default, start) = (Config::default(), Config::on(config.accelerator, config.model));
    let from = |key| if Config::FIRST.contains(&key) { &default } else { &start };
    let mut pairs: Vec<String> = all_params()
        .filter(|p| p.get(config) != p.get(from(p.key)))
        // Names, numbers, commas, dots and hyphens: nothing that a query would have to escape.
        .map(|p| format!("{}={}", p.key, p.get(config)))
        .collect();
    // Names and numbers with colons, commas and equals signs, of which a value may have any.
    if config.shape != default.shape {
        pairs.push(format!("shape={}", config.shape));
    }
    if config.arrivals != default.arrivals {
        pairs.push(format!("arrivals={}", config.arrivals));
    }
    pairs.join("&")
}

/// The keys and values of a query (with or without `?`), decoded, in its order.
pub fn pairs(query: &str) -> Vec<(String, String)> {
    let pairs = query.trim_start_matches('?').split('&').filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
        .map(|(k, v)| (decode(k), decode(v)))
        .collect()
}

/// The configuration of a query (with or without `?`), and what in it was not understood: that is
/// left at its default.
pub fn from_query(query: &str) -> (Config, Vec<Problem>) {
    from_pairs(pairs(query))
}

/// More pairs than this are not searched for doubled keys.
const MOST_PAIRS: usize = 1000;

/// Each key of a query once, with its last value; and which of them were there more often.
pub fn once(pairs: impl IntoIterator<Item = (String, String)>) -> (Vec<(String, String)>, Vec<Problem>) {
    let mut kept: Vec<(String, String, bool)> = Vec::new();
    for (key, value) in pairs {
        match kept.iter_mut().take(MOST_PAIRS).find(|(other, ..)| same_key(other, &key)) {
            None => kept.push((key, value, false)),
            Some(twice) => (twice.1, twice.2) = (value, true),
        }
    }
    let told = kept.iter().filter(|(.., twice)| *twice).map(|(key, value, _)| {
        let problem = format!("it is there more than once; the last, `{}`, counts", shortened(value));
        Problem { key: shortened(key), problem }
    });
    let told = told.collect();
    (kept.into_iter().map(|(key, value, _)| (key, value)).collect(), told)
}

/// The same of keys and values. What is not understood is left out, and of what does not go together as
/// little as makes the rest right.
pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> (Config, Vec<Problem>) {
    let (mut taken, mut problems) = once(pairs);
    taken.retain(|(key, value)| {
        let problem = set(&mut Config::default(), key, value).err();
        let right = problem.is_none();
        problems.extend(problem);
        right
    });
    // A stable sort: the rest stays in its order.
    taken.sort_by_key(|(key, _)| Config::turn(key));
    loop {
        let config = together(taken.iter());
        let Err(problem) = config.validate() else { return (config, problems) };
        let Some(at) = culprit(&taken, &problem) else { return (Config::default(), problems) };
        let (key, _) = taken.remove(at);
        problems.push(Problem {
            key,
            problem: format!("it is left out, as it does not go with the rest ({problem})"),
        });
    }
}

/// Whether two keys are the same, written with hyphens or underscores.
fn same_key(one: &str, other: &str) -> bool {
    let letter = |b: u8| if b == b'-' { b'_' } else { b };
    one.len() == other.len() && one.bytes().map(letter).eq(other.bytes().map(letter))
}

/// What values that are right one by one make together.
fn together<'a>(pairs: impl Iterator<Item = &'a (String, String)>) -> Config {
    let mut config = Config::default();
    for (key, value) in pairs {
        // It was right by itself; where it is not after others, it is left as it was.
        let _ = set(&mut config, key, value);
    }
    config
}

/// Which of some pairs to leave out against a problem that they have together: the one that it names if
/// the rest is right then, or another that helps, the last first.
fn culprit(pairs: &[(String, String)], problem: &Problem) -> Option<usize> {
    let named = pairs.iter().position(|(key, _)| same_key(key, &problem.key));
    let left = |at: usize| {
        let rest = pairs.iter().enumerate().filter(|(own, _)| *own != at).map(|(_, pair)| pair);
        together(rest).validate().err()
    };
    let all = || named.into_iter().chain((0..pairs.len()).rev());
    let all_right = all().find(|&at| left(at).is_none());
    // Where there are two problems, one at a time.
    let this_right = || all().find(|&at| left(at).as_ref() != Some(problem));
    all_right.or_else(this_right).or(named).or(pairs.len().checked_sub(1))
}

/// The configuration that a preset and parameters set besides make, later ones over earlier; all of
/// it is right, or the first thing that is not is said.
pub fn from_settings<'a>(
    preset: &str,
    settings: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Config, Problem> {
    let refuse = |key: &str, problem: String| Problem { key: key.into(), problem };
    let names = Preset::ALL.map(|(name, _)| name).join(" | ");
    let preset = Preset::from_name(preset)
        .ok_or_else(|| refuse("preset", format!("found `{preset}`; it is {names}")))?;
    let mut config = preset.config();
    let mut settings: Vec<(&str, &str)> = settings.into_iter().collect();
    // A stable sort: the rest stays in its order.
    settings.sort_by_key(|(key, _)| Config::turn(key));
    for (key, value) in settings {
        set(&mut config, key, value)?;
    }
    config.validate()?;
    Ok(config)
}

/// Undoes percent-encoding; what is not valid is left as it stands.
fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        out.push(escaped.unwrap_or(if bytes[at] == b'+' { b' ' } else { bytes[at] }));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyKind;

    #[test]
    fn only_what_differs_is_written_and_it_reads_back() {
        assert_eq!(to_query(&Config::default()), "");
        let config = Config {
            rate: 12.5,
            max_imbalance: f64::INFINITY,
            hot_share: Some(0.75),
            policy: vec![PolicyKind::LeastRequests, PolicyKind::RoundRobin],
            seed: u64::MAX,
            ..Config::default()
        };
        let query = to_query(&config);
        assert_eq!(
            query,
            "rate=12.5&hot_share=0.75&policy=least-requests,round-robin&max_imbalance=inf&seed=18446744073709551615"
        );
        assert_eq!(from_query(&format!("?{query}")), (config, vec![]));
    }

    #[test]
    fn a_shape_reads_back_too() {
        let (config, problems) = from_query("shape=chat:turns=3,think=1&arrivals=gamma:2.5&rate=2");
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(to_query(&config), "rate=2&shape=chat:turns=3,think=1&arrivals=gamma:2.5");
        let (config, problems) = from_query("shape=chat:turn=3&arrivals=x");
        assert_eq!((config, problems.len()), (Config::default(), 2));
    }

    #[test]
    fn what_is_not_understood_is_said_and_left_at_its_default() {
        let (config, problems) =
            from_query("?rate=0&tenant=3&replicas=%32&user_max=%zz&policy=least-tokens%2Cround-robin");
        let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, ["rate", "tenant", "user_max"]);
        assert!(problems[1].problem.contains("`tenants`"));
        assert_eq!((config.rate, config.replicas, config.policy.len()), (8.0, 2, 2));
    }

    #[test]
    fn of_values_that_do_not_go_together_only_one_is_left_out() {
        let (config, problems) = from_query("user_min=40&replicas=2");
        assert_eq!(config, Config { replicas: 2, ..Config::default() });
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].key, "user_min");
        assert!(problems[0].problem.contains("user_max: found 32"), "{}", problems[0]);
        // Written with a hyphen it is the same key.
        let (config, problems) = from_query("user-min=40&replicas=2");
        assert_eq!((config.replicas, problems[0].key.as_str()), (2, "user-min"));
        let (config, problems) = from_query("user_min=40&user_max=60");
        assert_eq!((config.user_min, config.user_max, problems.len()), (40, 60, 0));
        let (config, problems) = from_query("rate=2&positions=4096&output_min=90&seed=3");
        assert_eq!(config, Config { rate: 2.0, seed: 3, ..Config::default() });
        let mut keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["output_min", "positions"]);
    }

    #[test]
    fn a_key_that_is_there_twice_is_said() {
        let (config, problems) = from_query("rate=4&max-imbalance=3&rate=6&max_imbalance=2.5&rate=7");
        assert_eq!((config.rate, config.max_imbalance), (7.0, 2.5));
        let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "rate: it is there more than once; the last, `7`, counts",
                "max-imbalance: it is there more than once; the last, `2.5`, counts"
            ]
        );
    }

    #[test]
    fn what_is_long_and_odd_is_not_repeated_whole() {
        let long = "x".repeat(100_000);
        let (_, problems) = from_query(&format!("rate={long}&{long}=1&policy={long}&seed=1&seed={long}"));
        assert_eq!(problems.len(), 5);
        assert!(problems.iter().all(|p| p.to_string().len() < 300), "{problems:?}");
    }
}
