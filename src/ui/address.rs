//! The page's address: what its query says of the race, of the sweep and of the cold start, and back.

use super::study::settings::{self, Settings as Swept};
use crate::coldstart::{self, Settings};
use crate::params::{Config, from_pairs, pairs, to_query};

/// What a query says, and what in it was not understood.
pub fn read(query: &str) -> (Config, Settings, Swept, Vec<String>) {
    let (cold, rest): (Vec<_>, Vec<_>) =
        pairs(query).into_iter().partition(|(key, _)| key.starts_with(coldstart::URL_PREFIX));
    let (swept, race): (Vec<_>, Vec<_>) =
        rest.into_iter().partition(|(key, _)| key.starts_with(settings::URL_PREFIX));
    let (config, mut problems) = from_pairs(race);
    let (swept, more) = Swept::from_pairs(swept);
    problems.extend(more);
    let (cold, more) = Settings::from_pairs(cold);
    problems.extend(more);
    (config, cold, swept, problems.iter().map(ToString::to_string).collect())
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
}
