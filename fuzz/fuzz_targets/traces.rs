//! Any bytes as a trace of any format, in two chunks: no panic, and what is read can be described and written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warmroute::portrait::Portrait;
use warmroute::trace::export::json_lines;
use warmroute::trace::import::{Format, ReadOptions, Reader};

fuzz_target!(|data: &[u8]| {
    let Some((&how, data)) = data.split_first() else { return };
    let options = ReadOptions {
        format: (how & 15 > 0).then(|| Format::ALL[usize::from(how & 15) % Format::ALL.len()].1),
        skip_bad_lines: how & 16 > 0,
        keep_failed: how & 32 > 0,
        ..ReadOptions::default()
    };
    let mut reader = Reader::new(options);
    let (first, rest) = data.split_at(data.len() / 2);
    if reader.push(first).is_err() || reader.push(rest).is_err() {
        return;
    }
    let Ok(read) = reader.finish() else { return };
    assert!(read.log.trace.requests.is_sorted_by_key(|request| request.arrival));
    assert_eq!(read.log.trace.requests.len(), read.log.sessions.len());
    let _ = Portrait::of(&read.log).text();
    let _ = json_lines(&read.log.trace, &read.log.sessions);
});
