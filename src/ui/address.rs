//! The page's address: what its query says of the race and of the cold start, and back.

use crate::coldstart::{Settings, URL_PREFIX};
use crate::params::{Config, from_pairs, pairs, to_query};

/// What a query says, and what in it was not understood.
pub fn read(query: &str) -> (Config, Settings, Vec<String>) {
    let (cold, race): (Vec<_>, Vec<_>) =
        pairs(query).into_iter().partition(|(key, _)| key.starts_with(URL_PREFIX));
    let (config, mut problems) = from_pairs(race);
    let (settings, more) = Settings::from_pairs(cold);
    problems.extend(more);
    (config, settings, problems.iter().map(ToString::to_string).collect())
}

/// The query of what differs from the defaults.
pub fn write(config: &Config, cold: &Settings) -> String {
    let cold = cold.to_pairs().into_iter().map(|(key, value)| format!("{key}={value}"));
    let race = Some(to_query(config)).filter(|query| !query.is_empty());
    race.into_iter().chain(cold).collect::<Vec<_>>().join("&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_round_trip_and_each_says_what_it_did_not_understand() {
        let query = "rate=12&cold_precision=int4&cold_bandwidth=2e9";
        let (config, cold, notices) = read(query);
        assert_eq!((config.rate, notices.len()), (12.0, 0));
        let (again, cold_again, _) = read(&write(&config, &cold));
        assert_eq!((again, cold_again), (config, cold));
        assert_ne!(cold, Settings::default());
        assert_eq!(write(&Config::default(), &Settings::default()), "");
        let (config, cold, notices) = read("cold_precision=int5&cold_rate=3&rate=0");
        assert_eq!((config, cold, notices.len()), (Config::default(), Settings::default(), 3));
    }
}
