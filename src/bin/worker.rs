//! The worker that runs jobs off the page's main thread.

#[cfg(target_arch = "wasm32")]
fn main() {
    warmroute::worker::start();
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("this program is for wasm32: trunk builds it into the page");
    std::process::exit(2);
}
