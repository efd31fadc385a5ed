//! TinyGPT: configuration, weights, kernels, forward pass.
