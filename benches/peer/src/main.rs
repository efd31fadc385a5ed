//! The peer: candle's Llama, of TinyGPT's configuration, asked by the same driver as the engine; see scripts/bench.sh.

#[path = "../../common/mod.rs"]
mod common;
mod llama;

fn main() {
    #[cfg(target_arch = "wasm32")]
    console_error_panic_hook::set_once();
    common::serve(llama::Peer::new().expect("candle makes a model of a possible configuration"));
}
