//! A reference in plain Python says the same of random workloads, figure by figure.
//!
//! `python3 tests/reference/check_oracle.py target/release/warmroute --cases 5000` tries many more.
#![cfg(not(target_arch = "wasm32"))]

use std::io::Write;
use std::process::Command;

/// Runs only where a tuple's hash is the one that prefix-affinity is defined by.
const FITS: &str = "import sys; sys.exit(sys.version_info < (3, 8) or sys.maxsize < 2**32 \
                    or sys.implementation.name != 'cpython')";

#[test]
fn the_python_reference_agrees() {
    if !Command::new("python3").args(["-c", FITS]).status().is_ok_and(|status| status.success()) {
        // Past the test harness, which shows what a test prints only when it fails.
        writeln!(std::io::stderr(), "skipped: no python3 (64-bit CPython, 3.8 or later) on PATH")
            .expect("standard error is open");
        return;
    }
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/reference/check_oracle.py");
    let output = Command::new("python3")
        .args([script, env!("CARGO_BIN_EXE_warmroute"), "--cases", "60"])
        .output()
        .expect("python3 ran a moment ago");
    let (said, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.starts_with("60 of 60 workloads agree"), "{said}{failed}");
}
