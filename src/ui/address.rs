//! The page's address: what its query says of the race, of the sweep and of the cold start, and back.

use super::study::settings::{self, Settings as Swept};
use crate::coldstart::{self, Settings};
use crate::params::{Config, from_pairs, once, pairs, to_query};

/// The most notices that are shown one by one.
const MOST_NOTICES: usize = 20;

/// What a query says, and what in it was not understood.
pub fn read(query: &str) -> (Config, Settings, Swept, Vec<String>) {
    let (pairs, mut problems) = once(pairs(query));
    let (cold, rest): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|(key, _)| key.starts_with(coldstart::URL_PREFIX));
    let (swept, race): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(key, _)| key.starts_with(settings::URL_PREFIX));
    let (config, more) = from_pairs(race);
    problems.extend(more);
    let (swept, more) = Swept::from_pairs(swept);
    problems.extend(more);
    let (cold, more) = Settings::from_pairs(cold);
    problems.extend(more);
    let mut notices: Vec<String> = problems.iter().take(MOST_NOTICES).map(|p| brief(p.to_string())).collect();
    if problems.len() > notices.len() {
        notices.push(format!("and {} more", problems.len() - notices.len()));
    }
    (config, cold, swept, notices)
}

/// A notice of a length that can be read: of a long one the beginning and the end.
fn brief(notice: String) -> String {
    let chars: Vec<char> = notice.chars().collect();
    match chars.len() {
        0..=320 => notice,
        all => chars[..160].iter().chain(&['…']).chain(&chars[all - 120..]).collect(),
    }
}

/// The query of what differs from the defaults.
pub fn write(config: &Config, cold: &Settings, swept: &Swept) -> String {
    let besides = swept.to_pairs().into_iter().chain(cold.to_pairs());
    let besides = besides.map(|(key, value)| format!("{key}={value}"));
    let race = Some(to_query(config)).filter(|query| !query.is_empty());
    race.into_iter().chain(besides).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_parts_round_trip_and_each_says_what_it_did_not_understand() {
        let query = "rate=12&cold_precision=int4&cold_bandwidth=2e9&sweep_over=replicas=2,4";
        let (config, cold, swept, notices) = read(query);
        assert_eq!((config.rate, notices.len()), (12.0, 0));
        let (again, cold_again, swept_again, _) = read(&write(&config, &cold, &swept));
        assert_eq!((again, cold_again, &swept_again), (config, cold, &swept));
        assert!(cold != Settings::default() && swept != Swept::default());
        assert_eq!(write(&Config::default(), &Settings::default(), &Swept::default()), "");
        let (config, cold, swept, notices) = read("cold_precision=int5&cold_rate=3&rate=0&sweep_seeds=0");
        assert_eq!((config, cold, notices.len()), (Config::default(), Settings::default(), 4));
        assert_eq!(swept, Swept::default());
    }

    #[test]
    fn one_refused_key_drops_no_other_and_the_notice_names_it() {
        let (config, _, _, notices) = read("user_min=40&replicas=3&rate=9&rate=5&cold_rate=1&cold_rate=2");
        assert_eq!((config.replicas, config.rate, config.user_min), (3, 5.0, 8));
        assert!(notices[0].starts_with("rate: it is there more than once"), "{notices:?}");
        assert!(notices.iter().any(|n| n.starts_with("user_min: it is left out")), "{notices:?}");
        let long = "9".repeat(5000);
        let (_, _, _, notices) =
            read(&format!("sweep_over={long}&cold_precision={long}&{long}=1&rate={long}"));
        assert!(notices.len() == 4 && notices.iter().all(|n| n.chars().count() <= 320), "{notices:?}");
        let (_, _, _, notices) = read(&(0..500).map(|i| format!("x{i}=1&")).collect::<String>());
        assert_eq!((notices.len(), notices.last().map(String::as_str)), (21, Some("and 480 more")));
    }
}
