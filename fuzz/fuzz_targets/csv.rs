//! Any mapping of columns over any CSV.
#![no_main]

use libfuzzer_sys::fuzz_target;
use warmroute::trace::import::{Columns, Format, ReadOptions, Reader};

fuzz_target!(|input: (&str, &[u8])| {
    let Ok(columns) = Columns::parse(input.0) else { return };
    let mut reader = Reader::new(ReadOptions { format: Some(Format::Csv), columns, ..ReadOptions::default() });
    if reader.push(input.1).is_ok() {
        let _ = reader.finish();
    }
});
