//! A hook for what a component is surrounded by: its size. It listens for changes, and stops when the component goes.

use wasm_bindgen::JsCast;
use wasm_bindgen::closure::Closure;
use web_sys::{Element, ResizeObserver};
use yew::prelude::*;

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
