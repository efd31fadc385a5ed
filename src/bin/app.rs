//! The page.

#[cfg(target_arch = "wasm32")]
fn main() {
    console_error_panic_hook::set_once();
    if let Some(root) = mount_point() {
        yew::Renderer::<page::Page>::with_root(root).render();
    }
}

#[cfg(target_arch = "wasm32")]
fn mount_point() -> Option<web_sys::Element> {
    web_sys::window()?.document()?.get_element_by_id("app")
}

#[cfg(target_arch = "wasm32")]
mod page {
    //! Starts the worker and shows what it answers.
    use wasm_bindgen::{JsCast, JsValue, closure::Closure};
    use yew::prelude::*;

    /// The worker's address, which index.html tells.
    fn worker_address() -> Option<String> {
        let document = web_sys::window()?.document()?;
        let meta = document.query_selector("meta[name=worker]").ok()??;
        let relative = meta.get_attribute("content")?;
        let base = document.base_uri().ok()??;
        Some(web_sys::Url::new_with_base(&relative, &base).ok()?.href())
    }

    fn start(tell: Callback<String>) -> Option<web_sys::Worker> {
        let options = web_sys::WorkerOptions::new();
        options.set_type(web_sys::WorkerType::Module);
        let worker = web_sys::Worker::new_with_options(&worker_address()?, &options).ok()?;
        let port = worker.clone();
        let hear = Closure::<dyn FnMut(_)>::new(move |event: web_sys::MessageEvent| {
            match event.data().as_string() {
                Some(text) if text == "ready" => {
                    let _ = port.post_message(&JsValue::from_str("hello"));
                }
                text => tell.emit(text.unwrap_or_default()),
            }
        });
        worker.set_onmessage(Some(hear.into_js_value().unchecked_ref()));
        Some(worker)
    }

    /// The whole page, for now.
    #[component]
    pub fn Page() -> Html {
        let answer = use_state(|| "…".to_owned());
        {
            let answer = answer.clone();
            use_effect_with((), move |()| {
                let worker = start(Callback::from(move |text| answer.set(text)));
                move || {
                    if let Some(worker) = worker {
                        worker.terminate();
                    }
                }
            });
        }
        html! { <main><h1>{ "warmroute" }</h1><p id="answer">{ &*answer }</p></main> }
    }
}

#[cfg(not(target_arch = "wasm32"))]
fn main() {
    eprintln!("this program is for wasm32: trunk builds it into the page");
    std::process::exit(2);
}
