//! The page: yew components, for wasm32 only.

#[cfg(target_arch = "wasm32")]
pub mod sections;
#[cfg(target_arch = "wasm32")]
pub mod widgets;
