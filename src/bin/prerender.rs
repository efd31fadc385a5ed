//! Writes the page's markup in its default state to its output: what is read before any script runs, or without one.

#[cfg(not(target_arch = "wasm32"))]
fn main() -> std::io::Result<()> {
    use std::io::Write;
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let markup = tokio::task::LocalSet::new().block_on(&runtime, warmroute::ui::prerender());
    std::io::stdout().write_all(markup.as_bytes())
}

#[cfg(target_arch = "wasm32")]
fn main() {}
