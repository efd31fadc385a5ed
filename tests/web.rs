//! The core's floats are the same bits natively and in a browser: libm's, asserted on both.

#[cfg(target_arch = "wasm32")]
wasm_bindgen_test::wasm_bindgen_test_configure!(run_in_browser);

#[cfg_attr(target_arch = "wasm32", wasm_bindgen_test::wasm_bindgen_test)]
#[cfg_attr(not(target_arch = "wasm32"), test)]
fn libm_gives_the_same_bits_here_and_there() {
    assert_eq!(libm::log(3.0).to_bits(), 0x3ff1_93ea_7aad_030a);
    assert_eq!(libm::exp(1.5).to_bits(), 0x4011_ed3f_e64f_c541);
}
