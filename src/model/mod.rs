//! TinyGPT: configuration, weights, kernels, forward pass.
mod attention;
pub mod config;
pub mod kernels;
pub mod safetensors;
mod scratch;
pub mod tinygpt;
pub mod weights;

pub use config::{ConfigError, ModelConfig};
pub use safetensors::SafetensorsError;
pub use scratch::Scratch;
pub use tinygpt::{AsSlice, InputError, InputFault, Slice, TinyGpt};

pub use crate::trace::Token;
