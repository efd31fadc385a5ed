//! The worker that runs jobs off the page's main thread.

/// Answers each message; says "ready" first, for what was sent before that is lost.
#[cfg(target_arch = "wasm32")]
fn main() {
    use wasm_bindgen::{JsCast, JsValue, closure::Closure};

    console_error_panic_hook::set_once();
    let scope: web_sys::DedicatedWorkerGlobalScope = js_sys::global().unchecked_into();
    let port = scope.clone();
    let answer = Closure::<dyn FnMut(_)>::new(move |event: web_sys::MessageEvent| {
        let text = event.data().as_string().unwrap_or_default();
        let _ = port.post_message(&JsValue::from_str(&format!("pong: {text}")));
    });
    scope.set_onmessage(Some(answer.into_js_value().unchecked_ref()));
    let _ = scope.post_message(&JsValue::from_str("ready"));
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("this program is for wasm32: trunk builds it into the page");
    std::process::exit(2);
}
