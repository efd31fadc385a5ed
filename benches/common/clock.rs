//! The stop-watch of the benchmark.

/// Mean seconds of a pass. What `ready` makes for each one, and dropping it, is not timed.
pub fn seconds<S>(passes: u32, mut ready: impl FnMut() -> S, mut pass: impl FnMut(&mut S)) -> f64 {
    let mut total = 0.0;
    for _ in 0..passes {
        let mut state = ready();
        let start = now();
        pass(&mut state);
        total += now() - start;
    }
    total / f64::from(passes)
}

/// Seconds since some moment.
#[cfg(not(target_arch = "wasm32"))]
#[allow(clippy::disallowed_methods, reason = "a stop-watch outside the core")]
fn now() -> f64 {
    static START: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed().as_secs_f64()
}

/// Seconds since some moment, by the JavaScript host's `performance`.
#[cfg(target_arch = "wasm32")]
fn now() -> f64 {
    use wasm_bindgen::JsCast;
    thread_local! {
        static NOW: js_sys::Function = js_sys::eval("() => performance.now()")
            .expect("the source is a function")
            .unchecked_into();
    }
    let ms = NOW.with(|now| now.call0(&wasm_bindgen::JsValue::NULL)).expect("every host has performance");
    1e-3 * ms.as_f64().expect("a time is a number")
}
