//! Tests that need a browser: `wasm-pack test --headless --chrome`.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

wasm_bindgen_test_configure!(run_in_browser);

/// The core's floats must be the same bits here as natively; libm's are.
#[wasm_bindgen_test]
fn libm_gives_the_bits_that_it_gives_natively() {
    assert_eq!(libm::log(3.0).to_bits(), 0x3ff1_93ea_7aad_030b);
    assert_eq!(libm::exp(1.5).to_bits(), 0x4011_ed3f_e64f_c541);
}
