//! The page. State and replay are plain Rust, tested natively; everything else here is for wasm32.

pub mod address;
pub mod charts;
pub mod figures;
pub mod fork;
pub mod lane;
pub mod life;
pub mod moment;
pub mod playback;
pub mod state;
pub mod study;
pub mod words;

#[cfg(target_arch = "wasm32")]
mod app;
#[cfg(target_arch = "wasm32")]
mod crew;
#[cfg(target_arch = "wasm32")]
mod dom;
#[cfg(target_arch = "wasm32")]
mod hand;
#[cfg(target_arch = "wasm32")]
mod pool;
#[cfg(target_arch = "wasm32")]
mod reducible;
#[cfg(target_arch = "wasm32")]
pub mod sections;
#[cfg(target_arch = "wasm32")]
pub mod widgets;

#[cfg(target_arch = "wasm32")]
pub use app::start;
