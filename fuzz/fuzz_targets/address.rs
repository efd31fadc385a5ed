//! Any text as the page's address: a configuration that is valid, whatever it says.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warmroute::params::{from_query, to_query};

fuzz_target!(|query: &str| {
    let (config, _) = from_query(query);
    assert_eq!(config.validate(), Ok(()));
    assert_eq!(from_query(&to_query(&config)).0, config);
});
