//! The native command line.

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::process::ExitCode {
    warmroute::cli::main(std::env::args_os().skip(1))
}

#[cfg(target_arch = "wasm32")]
fn main() {}
