//! The page.

#[cfg(target_arch = "wasm32")]
fn main() {
    warmroute::ui::start();
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("this program is for wasm32: trunk builds it into the page");
    std::process::exit(2);
}
