//! Hooks for what a component is surrounded by: its size, the pixels' density, the reader's theme. Each listens for
//! changes, and stops when the component goes.

use gloo_events::EventListener;
use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, ResizeObserver};
use yew::prelude::*;

use crate::ui::dom;

/// What a picture's pixels depend on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Screen {
    /// How many pixels of the screen a CSS pixel has; changes with zoom and from screen to screen.
    pub ratio: f64,
    /// Whether the reader prefers a dark theme.
    pub dark: bool,
}

const DARK: &str = "(prefers-color-scheme: dark)";

/// The reader's screen; a plain one before the page is live.
#[hook]
pub fn use_screen() -> Screen {
    let screen = use_state_eq(|| Screen { ratio: 1.0, dark: false });
    {
        let set = screen.setter();
        // A query matches one resolution: after each change the next one is watched.
        use_effect_with(screen.ratio, move |_| {
            let ratio = dom::window().device_pixel_ratio();
            let look = move || {
                set.set(Screen { ratio: dom::window().device_pixel_ratio(), dark: dom::prefers(DARK) });
            };
            look();
            let listeners = [DARK.to_owned(), format!("(resolution: {ratio}dppx)")].map(|query| {
                let media = dom::window().match_media(&query).ok().flatten()?;
                let look = look.clone();
                Some(EventListener::new(&media, "change", move |_| look()))
            });
            move || drop(listeners)
        });
    }
    *screen
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
