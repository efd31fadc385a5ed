//! Hooks for what a component is surrounded by: its size, the pixels' density, the reader's theme.
//! Each listens for changes, and stops when the component goes.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, EventTarget, MediaQueryList, ResizeObserver};
use yew::prelude::*;

/// An event listener that is removed when it is dropped.
struct Listener {
    target: EventTarget,
    event: &'static str,
    heard: Closure<dyn FnMut()>,
}

impl Listener {
    fn new(target: &EventTarget, event: &'static str, heard: impl FnMut() + 'static) -> Option<Listener> {
        let heard = Closure::<dyn FnMut()>::new(heard);
        target.add_event_listener_with_callback(event, heard.as_ref().unchecked_ref()).ok()?;
        Some(Listener { target: target.clone(), event, heard })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Fails only where the listener is gone already.
        let _ =
            self.target.remove_event_listener_with_callback(self.event, self.heard.as_ref().unchecked_ref());
    }
}

fn media(query: &str) -> Option<MediaQueryList> {
    web_sys::window()?.match_media(query).ok()?
}

const DARK: &str = "(prefers-color-scheme: dark)";

/// Whether the reader prefers a dark theme.
#[hook]
pub fn use_dark() -> bool {
    let dark = use_state_eq(|| media(DARK).is_some_and(|m| m.matches()));
    {
        let dark = dark.setter();
        use_effect_with((), move |()| {
            let listener = media(DARK).and_then(|media| {
                let asked = media.clone();
                Listener::new(&media, "change", move || dark.set(asked.matches()))
            });
            move || drop(listener)
        });
    }
    *dark
}

fn pixel_ratio() -> f64 {
    web_sys::window().map_or(1.0, |window| window.device_pixel_ratio())
}

/// How many pixels of the screen a CSS pixel has; changes with zoom and from screen to screen.
#[hook]
pub fn use_pixel_ratio() -> f64 {
    let ratio = use_state_eq(pixel_ratio);
    {
        let set = ratio.setter();
        // A query matches one resolution: after each change the next one is watched.
        use_effect_with(*ratio, move |ratio| {
            let media = media(&format!("(resolution: {ratio}dppx)"));
            let listener = media.and_then(|m| Listener::new(&m, "change", move || set.set(pixel_ratio())));
            move || drop(listener)
        });
    }
    *ratio
}

/// Width and height of an element in CSS pixels; zero before it is there.
#[hook]
pub fn use_size(node: &NodeRef) -> (f64, f64) {
    let size = use_state_eq(|| (0.0, 0.0));
    {
        let set = size.setter();
        use_effect_with(node.clone(), move |node| {
            let element: Option<Element> = node.cast();
            let measured = element.clone();
            let resized = Closure::<dyn FnMut()>::new(move || {
                if let Some(element) = &measured {
                    let rect = element.get_bounding_client_rect();
                    set.set((rect.width(), rect.height()));
                }
            });
            // It reports once when it begins, so that nothing needs to be measured here.
            let observer = ResizeObserver::new(resized.as_ref().unchecked_ref()).ok();
            if let (Some(observer), Some(element)) = (&observer, &element) {
                observer.observe(element);
            }
            move || {
                if let Some(observer) = observer {
                    observer.disconnect();
                }
                drop(resized);
            }
        });
    }
    *size
}
