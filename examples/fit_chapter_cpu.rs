//! Fits the `chapter-cpu` price to the chapter's published rows, and prints the fit.
//!
//! A random local search over the logarithms of the six constants, from several starts. Run with
//! `cargo run --release --example fit_chapter_cpu` (add `check` to print the fit of the preset
//! without searching).

use warmroute::chapter::{LOOK_ALIKES, PUBLISHED, distance, look_alikes, rows_at, spread};
use warmroute::cost::{CHAPTER_CPU, PiecePrice, StepPrice};
use warmroute::experiment::Experiment;
use warmroute::trace::generate::Draw;

/// Six constants in picoseconds.
type Point = [f64; 6];

fn price(p: &Point) -> StepPrice {
    let [a, b, c, d, e, f] = p.map(|x| x.round() as u64);
    StepPrice {
        prefill: PiecePrice { base: a, per_token: b, per_pair: c },
        decode: PiecePrice { base: d, per_token: e, per_pair: f },
    }
}

/// Steps at random, keeps what is nearer; the step's size grows with success and shrinks without.
fn search(mut best: Point, experiments: &[Experiment], draw: &mut Draw) -> (f64, Point) {
    let spread = spread(&CHAPTER_CPU, experiments);
    let mut least = distance(&rows_at(&price(&best), experiments), &spread);
    let mut size = 0.7;
    for _ in 0..600 {
        let trial = best.map(|x| x * libm::exp(size * 2.0 * (draw.unit() + draw.unit() - 1.0)));
        let value = distance(&rows_at(&price(&trial), experiments), &spread);
        if value < least {
            (least, best) = (value, trial);
            size *= 1.5;
        } else if size > 0.002 {
            size *= 0.975;
        }
    }
    (least, best)
}

fn print(price: &StepPrice, experiments: &[Experiment]) {
    println!("{price:?}");
    let rows = rows_at(price, experiments);
    println!(
        "distance {:.4} over {} traces",
        distance(&rows, &spread(&CHAPTER_CPU, experiments)),
        experiments.len()
    );
    println!("| policy | TTFT p50 s | TTFT p95 s | ITL p50 s | tokens/s | goodput/s | reuse | imbalance |");
    println!("|---|---|---|---|---|---|---|---|");
    for (ours, theirs) in rows.iter().zip(&PUBLISHED) {
        for (who, r) in [("published", theirs), ("fitted", ours)] {
            println!(
                "| {} ({who}) | {:.4} | {:.4} | {:.4} | {:.1} | {:.2} | {:.1} % | {:.2} |",
                r.policy.name(),
                r.ttft_p50,
                r.ttft_p95,
                r.itl_p50,
                r.tokens_per_second,
                r.goodput,
                100.0 * r.reuse,
                r.imbalance
            );
        }
    }
}

fn main() {
    let experiments = look_alikes(LOOK_ALIKES.0, LOOK_ALIKES.1);
    if std::env::args().any(|arg| arg == "check") {
        return print(&CHAPTER_CPU, &experiments);
    }
    let starts: [Point; 3] = [
        [4e9, 2.8e8, 4e4, 2e9, 3e9, 5e6],
        [2e10, 3e8, 1e5, 1.5e10, 5e9, 1e6],
        [5e9, 4e8, 1e5, 2e10, 1e9, 1e6],
    ];
    let mut draw = Draw::new(0);
    let (least, best) = starts
        .into_iter()
        .map(|start| {
            let found = search(start, &experiments, &mut draw);
            println!("from {start:.0?}: distance {:.4} at {:.0?}", found.0, found.1);
            found
        })
        .min_by(|a, b| a.0.total_cmp(&b.0))
        .expect("there are starts");
    println!("best: {least:.4}");
    print(&price(&best), &experiments);
}
