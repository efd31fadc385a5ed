//! A configuration as a URL's query, and back: only what differs from the defaults is written, which
//! are an accelerator's own where there is one.

use super::{Config, Preset, Problem, all_params, param, unknown};

/// The query (without `?`) of a configuration.
pub fn to_query(config: &Config) -> String {
    let (default, start) = (Config::default(), Config::on(config.accelerator, config.model));
    let from = |key| if Config::FIRST.contains(&key) { &default } else { &start };
    let pairs: Vec<String> = all_params()
        .filter(|p| p.get(config) != p.get(from(p.key)))
        // Names, numbers, commas, dots and hyphens: nothing that a query would have to escape.
        .map(|p| format!("{}={}", p.key, p.get(config)))
        .collect();
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

/// The same of keys and values.
pub fn from_pairs(pairs: impl IntoIterator<Item = (String, String)>) -> (Config, Vec<Problem>) {
    let mut config = Config::default();
    let mut problems = Vec::new();
    let mut pairs: Vec<(String, String)> = pairs.into_iter().collect();
    // A stable sort: the rest stays in its order.
    pairs.sort_by_key(|(key, _)| Config::turn(key));
    for (key, value) in pairs {
        match param(&key) {
            Some(param) => problems.extend(param.set(&mut config, &value).err()),
            None => {
                let problem = format!("no such parameter{}", unknown(&key));
                problems.push(Problem { key, problem });
            }
        }
    }
    if let Err(problem) = config.validate() {
        problems.push(problem);
        config = Config::default();
    }
    (config, problems)
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
        let nothing = || refuse(key, format!("no such parameter{}", unknown(key)));
        param(key).ok_or_else(nothing)?.set(&mut config, value)?;
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
    fn what_is_not_understood_is_said_and_left_at_its_default() {
        let (config, problems) =
            from_query("?rate=0&tenant=3&replicas=%32&user_max=%zz&policy=least-tokens%2Cround-robin");
        let keys: Vec<&str> = problems.iter().map(|p| p.key.as_str()).collect();
        assert_eq!(keys, ["rate", "tenant", "user_max"]);
        assert!(problems[1].problem.contains("`tenants`"));
        assert_eq!((config.rate, config.replicas, config.policy.len()), (8.0, 2, 2));
    }

    #[test]
    fn values_that_do_not_go_together_are_refused_together() {
        let (config, problems) = from_query("user_min=40&replicas=2");
        assert_eq!((config, problems[0].key.as_str()), (Config::default(), "user_max"));
    }
}
