//! What the page asks of the browser: frames, visibility, preferences, the address, downloads.

use std::cell::RefCell;
use std::rc::Rc;

use wasm_bindgen::prelude::*;
use yew::prelude::*;

/// The window; code of the page runs nowhere else.
pub fn window() -> web_sys::Window {
    web_sys::window().expect("the page runs in a window")
}

/// The document.
pub fn document() -> web_sys::Document {
    window().document().expect("a window has a document")
}

/// Milliseconds of the page's clock.
pub fn now() -> f64 {
    window().performance().map_or(0.0, |clock| clock.now())
}

/// Whether the reader prefers one thing or another.
pub fn prefers(query: &str) -> bool {
    window().match_media(query).ok().flatten().is_some_and(|media| media.matches())
}

/// How many processors the reader's machine has; while the page is built, as many as most have at least.
pub fn processors() -> usize {
    if cfg!(target_arch = "wasm32") { window().navigator().hardware_concurrency() as usize } else { 4 }
}

/// The address's query, with its question mark.
pub fn query() -> String {
    window().location().search().unwrap_or_default()
}

/// Puts a query into the address, without a step in the history.
pub fn set_query(query: &str) {
    let location = window().location();
    let path = location.pathname().unwrap_or_default();
    let hash = location.hash().unwrap_or_default();
    let mark = if query.is_empty() { "" } else { "?" };
    if location.search().unwrap_or_default().trim_start_matches('?') != query
        && let Ok(history) = window().history()
    {
        // A page opened from a file may not; then the address stays as it is.
        let _ =
            history.replace_state_with_url(&JsValue::NULL, "", Some(&format!("{path}{mark}{query}{hash}")));
    }
}

/// A whole number that cannot be foreseen, small enough to be read.
pub fn fresh_seed() -> u64 {
    (js_sys::Math::random() * 1e6) as u64
}

/// The name under which the page offers to end a worker of the race without a word.
pub const KILL: &str = "__warmrouteKillWorker";
/// The same for one of the pool.
pub const KILL_POOL: &str = "__warmrouteKillPoolWorker";

/// The text of the input or the choice of the list that an event is about.
pub fn text_of(event: &Event) -> Option<String> {
    let target = event.target()?;
    match target.dyn_ref::<web_sys::HtmlInputElement>() {
        Some(input) => Some(input.value()),
        None => target.dyn_ref::<web_sys::HtmlSelectElement>().map(web_sys::HtmlSelectElement::value),
    }
}

/// Whether a key that is pressed writes something where the focus is.
pub fn takes_letters(event: &KeyboardEvent) -> bool {
    let element = event.target().and_then(|target| target.dyn_into::<web_sys::Element>().ok());
    element.is_some_and(|element| match element.tag_name().as_str() {
        "INPUT" => element.get_attribute("type").as_deref() == Some("text"),
        "SELECT" | "TEXTAREA" => true,
        _ => false,
    })
}

/// Ends a lane's worker without a word, as a browser short of memory may.
pub fn kill(lane: usize) {
    let hook = js_sys::Reflect::get(&window(), &KILL.into()).ok();
    if let Some(hook) = hook.and_then(|hook| hook.dyn_into::<js_sys::Function>().ok()) {
        let _ = hook.call1(&JsValue::NULL, &JsValue::from(lane as u32));
    }
}

/// Puts a text on the reader's clipboard.
pub fn copy(text: &str) {
    let _ = window().navigator().clipboard().write_text(text);
}

/// Hands the reader a text of a type as a file.
pub fn download(name: &str, kind: &str, text: &str) -> Option<()> {
    let parts = js_sys::Array::of1(&JsValue::from_str(text));
    let bag = web_sys::BlobPropertyBag::new();
    bag.set_type(kind);
    hand_over(name, &web_sys::Blob::new_with_str_sequence_and_options(&parts, &bag).ok()?)
}

/// Hands the reader a file that is there already.
pub fn hand_over(name: &str, blob: &web_sys::Blob) -> Option<()> {
    let url = web_sys::Url::create_object_url_with_blob(blob).ok()?;
    let link: web_sys::HtmlAnchorElement = document().create_element("a").ok()?.dyn_into().ok()?;
    link.set_href(&url);
    link.set_download(name);
    link.click();
    web_sys::Url::revoke_object_url(&url).ok()
}

/// Calls back on every frame while `active`, with the seconds since the last.
#[hook]
pub fn use_frames(active: bool, tick: Callback<f64>) {
    use_effect_with(active, move |&active| {
        let frame = Rc::new(RefCell::new(None));
        if active {
            next_frame(frame.clone(), now(), tick);
        }
        move || {
            frame.borrow_mut().take();
        }
    });
}

type Frame = Rc<RefCell<Option<gloo_render::AnimationFrame>>>;

fn next_frame(frame: Frame, before: f64, tick: Callback<f64>) {
    let own = Rc::downgrade(&frame);
    let asked = gloo_render::request_animation_frame(move |_| {
        let Some(frame) = own.upgrade() else { return };
        let now = now();
        // After a while without frames (a hidden tab) time goes on from where it stood.
        tick.emit(((now - before) / 1000.0).clamp(0.0, 0.1));
        if frame.borrow().is_some() {
            next_frame(frame, now, tick);
        }
    });
    // The frame that is just being served must outlive its own callback.
    let served = frame.borrow_mut().replace(asked);
    if let Some(served) = served {
        gloo_timers::callback::Timeout::new(0, move || drop(served)).forget();
    }
}

/// Whether any of an element is on the screen.
#[hook]
pub fn use_visible(node: NodeRef) -> bool {
    let visible = use_state_eq(|| false);
    {
        let visible = visible.setter();
        use_effect_with(node, move |node| {
            let seen = Closure::<dyn FnMut(js_sys::Array)>::new(move |entries: js_sys::Array| {
                if let Some(entry) = entries.iter().last() {
                    visible
                        .set(entry.unchecked_into::<web_sys::IntersectionObserverEntry>().is_intersecting());
                }
            });
            let observer = web_sys::IntersectionObserver::new(seen.as_ref().unchecked_ref()).ok();
            if let (Some(observer), Some(element)) = (&observer, node.cast::<web_sys::Element>()) {
                observer.observe(&element);
            }
            move || {
                if let Some(observer) = observer {
                    observer.disconnect();
                }
                drop(seen);
            }
        });
    }
    *visible
}
