//! The page. State and replay are plain Rust, tested natively; everything else here is for wasm32, and with the feature
//! `prerender` it compiles natively too, to be rendered once while the page is built. Then no effect runs, and whatever
//! asks the browser must not be reached.

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

#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod app;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod beforehand;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod crew;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod dom;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod hand;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod pool;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
mod reducible;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
pub mod sections;
#[cfg(any(target_arch = "wasm32", feature = "prerender"))]
pub mod widgets;

#[cfg(all(feature = "prerender", not(target_arch = "wasm32")))]
pub use app::prerender;
#[cfg(target_arch = "wasm32")]
pub use app::start;
