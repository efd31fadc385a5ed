//! TinyGPT's speed: `cargo run --release --example bench` prints this machine's figures.
//!
//! With `--serve`, and always in wasm, it answers a driver instead; scripts/bench.sh asks it and its peer in turn.

#[path = "../common/mod.rs"]
mod common;
mod floor;
mod ours;

use ours::Ours;

#[cfg(target_arch = "wasm32")]
fn main() {
    console_error_panic_hook::set_once();
    common::serve(Ours::new());
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    if std::env::args().any(|arg| arg == "--serve") {
        common::serve(Ours::new());
    } else {
        table();
    }
}

/// Prints every work's time, its rate, and how far it is above the floor.
#[cfg(not(target_arch = "wasm32"))]
fn table() {
    use common::Side;

    /// Repetitions of each measurement; the fastest is printed.
    const TIMES: usize = 10;

    let mut ours = Ours::new();
    let mut fastest = |what: &str| {
        let words: Vec<&str> = what.split_whitespace().collect();
        let answers = (0..TIMES).map(|_| ours.ask(&words, 1).expect("every line below is a question"));
        answers.fold(f64::INFINITY, f64::min)
    };
    println!("{:18} {:>9} {:>9} {:>14} {:>9}", "", "ms", "floor ms", "floor GFLOP/s", "of floor");
    for what in [
        "prefill 1",
        "prefill 16",
        "prefill 64",
        "prefill 432",
        "prefill 1024",
        "prefill 2000",
        "decode 1 432",
        "decode 2 432",
        "decode 3 432",
        "decode 4 432",
        "decode 8 432",
        "decode 16 432",
        "decode 1 1600",
        "decode 4 1600",
        "decode 8 1600",
    ] {
        let (seconds, floor) = (fastest(what), fastest(&format!("floor {what}")));
        let rate = fastest(&format!("flops {what}")) / floor * 1e-9;
        println!("{what:18} {:9.3} {:9.3} {rate:14.1} {:9.2}", seconds * 1e3, floor * 1e3, seconds / floor);
    }
    for what in ["weights", "run"] {
        println!("{what:18} {:9.1}", fastest(what) * 1e3);
    }
}
