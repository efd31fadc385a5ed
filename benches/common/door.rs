//! How a driver reaches a side: line by line natively, as a function in a JavaScript host.

use super::Side;

/// Answers each line of standard input, `PASSES WORD…`, with a line: the number, or `NaN` where the words mean nothing.
#[cfg(not(target_arch = "wasm32"))]
pub fn serve(mut side: impl Side) {
    for line in std::io::stdin().lines() {
        let line = line.expect("the driver writes text");
        let mut words = line.split_whitespace();
        let passes = words.next().and_then(|passes| passes.parse().ok());
        let words: Vec<&str> = words.collect();
        let answer = passes.and_then(|passes| side.ask(&words, passes));
        println!("{}", answer.unwrap_or(f64::NAN));
    }
}

/// Puts a function `ask(words, passes)` in the global scope, as `side`; it answers `NaN` where the words mean nothing.
#[cfg(target_arch = "wasm32")]
pub fn serve(mut side: impl Side + 'static) {
    use wasm_bindgen::closure::Closure;
    let ask = Closure::<dyn FnMut(String, u32) -> f64>::new(move |words: String, passes| {
        let words: Vec<&str> = words.split_whitespace().collect();
        side.ask(&words, passes).unwrap_or(f64::NAN)
    });
    js_sys::Reflect::set(&js_sys::global(), &"side".into(), &ask.into_js_value())
        .expect("the global scope takes a property");
}
