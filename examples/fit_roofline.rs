//! Fits the roofline's efficiencies to profiled steps, and prints them and what they leave.
//!
//! A pattern search over the four fitted figures of each profiled accelerator. Run with
//! `cargo run --release --example fit_roofline`; `warmroute cost --fit` prints the table.

use warmroute::cost::roofline::fit::{PROFILES, distance};
use warmroute::cost::roofline::{Accelerator, Efficiency};

/// Shrinks its steps until none of them helps.
fn search(accelerator: Accelerator, mut best: Efficiency) -> Efficiency {
    let mut size = 0.2;
    while size > 1e-4 {
        let before = distance(accelerator, &best);
        for factor in [1.0 - size, 1.0 + size] {
            for trial in [
                Efficiency { compute: best.compute * factor, ..best },
                Efficiency { bandwidth: (best.bandwidth * factor).min(1.0), ..best },
                Efficiency { exposed: (best.exposed * factor).min(1.0), ..best },
                Efficiency { layer: best.layer * factor, ..best },
            ] {
                if distance(accelerator, &trial) < distance(accelerator, &best) {
                    best = trial;
                }
            }
        }
        if distance(accelerator, &best) >= before {
            size /= 2.0;
        }
    }
    best
}

fn main() {
    for accelerator in Accelerator::ALL.into_iter().filter(|a| a.is_fitted()) {
        let start = Efficiency {
            compute: 0.6,
            bandwidth: 0.7,
            exposed: 0.5,
            layer: 10e-6,
            ..accelerator.efficiency()
        };
        let found = search(accelerator, start);
        for (name, have) in [("searched", found), ("in force", accelerator.efficiency())] {
            println!(
                "{} {name}: compute {:.3}, bandwidth {:.3}, exposed {:.3}, layer {:.1} µs; squares {:.5}",
                accelerator.name(),
                have.compute,
                have.bandwidth,
                have.exposed,
                1e6 * have.layer,
                distance(accelerator, &have)
            );
            for profile in PROFILES.iter().filter(|p| p.accelerator == accelerator) {
                let errors = profile.errors(&have).map(|e| format!("{:+.1}", 100.0 * e));
                println!("  {} tp {}: {} %", profile.shape.name, profile.tp, errors.join(" "));
            }
        }
    }
}
