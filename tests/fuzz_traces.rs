//! Trace files of every kind and of none: no panic, no end that is not reached, and no more memory than is stated.
//!
//! The corpus (`tests/fixtures/traces`) is changed at random, from a seed, so that every run tries the same; more, and
//! guided by what is reached, does `cargo fuzz` (fuzz/).
#![cfg(not(target_arch = "wasm32"))]
#![expect(unsafe_code, reason = "an allocator can only be written with unsafe code")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::PathBuf;

use warmroute::portrait::Portrait;
use warmroute::trace::export::{json_lines, mooncake};
use warmroute::trace::import::{
    Columns, Format, Imported, MAX_LINE, MEMORY_PER_BYTE, MEMORY_PER_LINE_BYTE, ReadOptions, Reader,
    TraceError, read_json_lines,
};

/// The system's allocator, counting what this thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static MOST: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    HELD.set(HELD.get() + bytes);
    MOST.set(MOST.get().max(HELD.get()));
}

// SAFETY: every call goes to the system's allocator unchanged; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // While it moves, both are there.
        count(size as i64);
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract of the same function.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What `run` returns, and the most bytes that it held at once.
fn measured<T>(run: impl FnOnce() -> T) -> (T, u64) {
    let before = HELD.get();
    MOST.set(before);
    let result = run();
    (result, (MOST.get() - before) as u64)
}

/// A small generator: xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() >> 11) as usize % n.max(1)
    }
}

fn corpus() -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/traces");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the corpus is there")
        .map(|entry| entry.expect("it can be listed").path())
        .map(|path| {
            (
                path.file_name().expect("a file").to_string_lossy().into_owned(),
                std::fs::read(&path).expect("it can be read"),
            )
        })
        .collect();
    files.sort();
    files
}

fn read(bytes: &[u8], chunk: usize, options: ReadOptions) -> Result<Imported, TraceError> {
    let mut reader = Reader::new(options);
    for part in bytes.chunks(chunk.max(1)) {
        reader.push(part)?;
    }
    reader.finish()
}

/// What must hold of whatever was read.
fn check(read: &Imported) {
    let requests = &read.log.trace.requests;
    assert!(requests.is_sorted_by_key(|request| request.arrival));
    assert_eq!(requests.len(), read.log.sessions.len());
    let tenants = read.log.trace.tenants.len() as u32;
    assert!(requests.iter().all(|r| r.tenant.is_none_or(|tenant| tenant < tenants)));
    let tokens: usize = requests.iter().map(|r| r.prompt.len()).fold(0, usize::saturating_add);
    let portrait = Portrait::of(&read.log);
    assert!(portrait.reuse.ideal.is_none_or(|ideal| (0.0..=1.0).contains(&ideal)));
    assert!(!portrait.text().is_empty() && !portrait.json().is_empty());
    let written = json_lines(&read.log.trace, &read.log.sessions);
    let again = read_json_lines(&written, 1 << 31).unwrap_or_else(|e| panic!("{e}: {written}"));
    assert_eq!(again.requests.len(), requests.len());
    for (a, b) in again.requests.iter().zip(requests) {
        assert_eq!((&a.prompt, a.max_tokens, &a.output), (&b.prompt, b.max_tokens, &b.output), "{written}");
        assert!(a.arrival.0.abs_diff(b.arrival.0) <= 1 + b.arrival.0 / (1 << 50), "{a:?} {b:?}");
    }
    if tokens < 1_000_000 {
        assert_eq!(mooncake(&read.log.trace, 16).expect("few blocks").lines().count(), requests.len());
    }
}

/// What a hostile hand puts in.
const BITS: [&[u8]; 26] = [
    b"NaN",
    b"1e308",
    b"-1",
    b"1e999",
    b"18446744073709551616",
    b"4294967296",
    b"4294967295",
    b"0.5",
    b"null",
    b"[",
    b"]",
    b"{",
    b"}",
    b"\"",
    b",",
    b"\n",
    b"\r\n",
    b"\\u0000",
    b"\xff",
    b"\xef\xbb\xbf",
    b"[[[[[[[[",
    b"{\"a\":{\"a\":",
    b"true",
    b"2024-02-30",
    b";",
    b"\0",
];

fn change(random: &mut Random, bytes: &mut Vec<u8>, others: &[(String, Vec<u8>)]) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(24)).min(bytes.len());
        match random.below(8) {
            0 if !bytes.is_empty() => {
                let at = at.min(bytes.len() - 1);
                bytes[at] ^= 1 << random.below(8);
            }
            1 => drop(bytes.drain(at..end)),
            2 => {
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
            3 => bytes.truncate(at),
            4 => {
                // A number becomes another.
                let digits = bytes.iter().skip(at).position(u8::is_ascii_digit).map(|from| at + from);
                if let Some(from) = digits {
                    let to =
                        from + bytes[from..].iter().take_while(|b| b.is_ascii_digit() || **b == b'.').count();
                    bytes.splice(from..to, BITS[random.below(8)].iter().copied());
                }
            }
            5 => {
                let (_, other) = &others[random.below(others.len())];
                let from = random.below(other.len() + 1);
                let to = (from + random.below(200)).min(other.len());
                bytes.splice(at..end, other[from..to].iter().copied());
            }
            6 => {
                // A line again.
                let lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
                let line = [lines[random.below(lines.len())], b"\n"].concat();
                bytes.splice(at..at, line);
            }
            _ => drop(bytes.splice(at..at, BITS[random.below(BITS.len())].iter().copied())),
        }
    }
}

#[test]
fn whatever_is_changed_in_a_file_it_is_read_or_refused() {
    let corpus = corpus();
    let mut random = Random(0x5eed_1234_abcd_0001);
    let (mut good, mut refused) = (0, 0);
    for round in 0..24_000 {
        let mut bytes = corpus[round % corpus.len()].1.clone();
        if round >= corpus.len() {
            change(&mut random, &mut bytes, &corpus);
        }
        let how = random.next();
        let options = ReadOptions {
            format: how.is_multiple_of(4).then(|| Format::ALL[random.below(Format::ALL.len())].1),
            trace_block: how.is_multiple_of(5).then(|| 1 + random.below(600) as u32),
            skip_bad_lines: how & 16 > 0,
            keep_failed: how & 32 > 0,
            bytes_per_token: 1 + random.below(4) as u32,
            columns: if how.is_multiple_of(7) {
                Columns::parse("time=1,input=2,output=3").expect("good")
            } else {
                Columns::default()
            },
            ..ReadOptions::default()
        };
        let chunk = 1 + random.below(bytes.len() + 1);
        match read(&bytes, chunk, options.clone()) {
            Ok(found) => {
                good += 1;
                check(&found);
                // It does not depend on how the bytes come.
                if round % 8 == 0 {
                    let whole = read(&bytes, bytes.len(), options).expect("it was read in chunks");
                    assert_eq!((whole.log, whole.notes), (found.log, found.notes));
                }
            }
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(error.line >= 1 && !error.problem.is_empty() && text.len() < 2000, "{text}");
                assert!(!text.chars().any(char::is_control), "{text:?}");
                assert!(!skipping_only(&options) || !text.is_empty());
            }
        }
    }
    assert!(good > 3000 && refused > 3000, "both are tried: {good} read, {refused} refused");
}

fn skipping_only(options: &ReadOptions) -> bool {
    options.skip_bad_lines
}

#[test]
fn files_of_other_kinds_are_said_to_be_what_they_are() {
    for (name, part) in [
        ("image.png", "an image (PNG)"),
        ("archive.zip", "a ZIP archive"),
        ("nesting.json", "recursion limit"),
        ("hostile.jsonl", "1e308"),
    ] {
        let (_, bytes) = corpus().into_iter().find(|(own, _)| own == name).expect("it is in the corpus");
        let error = read(&bytes, 7, ReadOptions::default()).expect_err(name).to_string();
        assert!(error.contains(part), "{name}: {error}");
    }
    let gzip = read(b"\x1f\x8b\x08\0\0\0\0\0\0\x03\n", 3, ReadOptions::default()).expect_err("compressed");
    assert!(gzip.to_string().contains("unpack it"), "{gzip}");
}

#[test]
fn two_gigabytes_of_one_line_are_refused_with_the_memory_of_one_line() {
    let chunk = vec![b'a'; 1 << 20];
    let ((), most) = measured(|| {
        let mut reader = Reader::new(ReadOptions::default());
        let refused = (0..2048).find_map(|at| reader.push(&chunk).err().map(|error| (at, error)));
        let (at, error) = refused.expect("it is refused");
        assert!(at == MAX_LINE >> 20 && error.to_string().contains("line 1: longer than"), "{at}: {error}");
    });
    assert!(most <= 3 * MAX_LINE as u64, "{most}");
    // After a good line, and passed over: all of it is taken, and the line after it.
    let (found, most) = measured(|| {
        let mut reader = Reader::new(ReadOptions { skip_bad_lines: true, ..ReadOptions::default() });
        let good = b"{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1}\n";
        reader.push(good).expect("a good line");
        for _ in 0..2048 {
            reader.push(&chunk).expect("it is passed over");
        }
        reader.push(b"\n").expect("its end");
        reader.push(good).expect("a good line");
        reader.finish().expect("two good lines")
    });
    assert_eq!((found.log.trace.requests.len(), found.skipped), (2, 1));
    assert!(most <= 3 * MAX_LINE as u64, "{most}");
}

/// The most that was held, over what is stated.
fn part_of_bound(text: &str, longest_line: usize, options: ReadOptions) -> (f64, Result<usize, TraceError>) {
    let (found, most) =
        measured(|| read(text.as_bytes(), 1 << 16, options).map(|read| read.log.trace.requests.len()));
    // A little for what is there from the start.
    let bound = MEMORY_PER_BYTE * text.len() as u64 + MEMORY_PER_LINE_BYTE * longest_line as u64 + (1 << 17);
    (most as f64 / bound as f64, found)
}

#[test]
fn memory_is_within_the_stated_multiple_of_the_input() {
    let rows = 200_000;
    let csv = "time,input,output\n".to_owned() + &"0,1,1\n".repeat(rows);
    let named = "time,input,output,session,tenant\n".to_owned()
        + &(0..rows / 4).map(|i| format!("0,1,1,{i},{i}\n")).collect::<String>();
    let own = "{\"arrival\":0,\"prompt\":\"\",\"max_tokens\":0}\n".repeat(rows / 4);
    let tokens = format!("{{\"arrival\":0,\"tokens\":[{}0],\"max_tokens\":0}}\n", "0,".repeat(1_000_000));
    let mooncake =
        "{\"timestamp\":0,\"input_length\":1,\"output_length\":1,\"hash_ids\":[0]}\n".repeat(rows / 4);
    let texts: String = (0..2000)
        .map(|i| {
            format!("{{\"created\":1,\"prompt\":\"{}\",\"max_tokens\":1}}\n", format!("{i:08}").repeat(60))
        })
        .collect();
    let lists =
        format!("{{\"arrival\":0,\"prompt\":\"a\",\"max_tokens\":1,\"x\":[{}[]]}}\n", "[],".repeat(300_000));
    let keys: String = (0..100_000).map(|i| format!("\"{i}\":0,")).collect();
    let keys = format!("{{\"arrival\":0,\"prompt\":\"a\",{keys}\"max_tokens\":1}}\n");
    let conversation = format!(
        "{{\"block_size\":64,\"requests\":[{}{{\"t\":0,\"in\":1,\"out\":1}}]}}",
        "{\"t\":0,\"in\":64,\"out\":1,\"hash_ids\":[7]},".repeat(50_000)
    );
    let files = [
        ("csv", &csv, rows),
        ("named", &named, rows / 4),
        ("own", &own, rows / 4),
        ("tokens", &tokens, 1),
        ("mooncake", &mooncake, rows / 4),
        ("texts", &texts, 2000),
        ("lists", &lists, 1),
        ("keys", &keys, 1),
        ("conversation", &conversation, 50_001),
    ];
    for (name, text, requests) in files {
        let longest = text.lines().map(str::len).max().unwrap_or(0);
        let (part, found) =
            part_of_bound(text, longest, ReadOptions { trace_block: None, ..ReadOptions::default() });
        println!("{name}: {:.2} of the bound, {} bytes", part, text.len());
        assert_eq!(found, Ok(requests), "{name}");
        assert!(part <= 1.0, "{name}: {part} times what is stated");
    }
}
