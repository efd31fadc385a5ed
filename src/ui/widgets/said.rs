//! What the page says to who does not see it: one polite region for all of it, and into that only what has settled, so
//! that nobody is read every value on the way.

use gloo_timers::callback::Timeout;
use yew::prelude::*;

use crate::ui::dom;

/// How long a text must stand before it is read out, in milliseconds.
const SETTLED: u32 = 500;

/// The region's name in the document.
const REGION: &str = "said";

/// The region, made when it is first asked for: it has to be there before it says anything.
fn region() -> Option<web_sys::Element> {
    let document = dom::document();
    if let Some(region) = document.get_element_by_id(REGION) {
        return Some(region);
    }
    let region = document.create_element("p").ok()?;
    for (name, value) in [("id", REGION), ("class", "hidden"), ("aria-live", "polite")] {
        region.set_attribute(name, value).ok()?;
    }
    document.body()?.append_child(&region).ok()?;
    Some(region)
}

/// Says a text once it has not changed for a while; an empty one, and what was there from the start, is not said.
#[hook]
pub fn use_said(text: AttrValue) {
    let first = use_mut_ref(|| true);
    use_effect_with(text, move |text| {
        let region = region();
        let from_the_start = first.replace(false);
        let later = (!from_the_start && !text.is_empty()).then(|| {
            let text = text.clone();
            Timeout::new(SETTLED, move || {
                if let Some(region) = region {
                    region.set_text_content(Some(&text));
                }
            })
        });
        move || drop(later)
    });
}

/// What is said.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The words, or nothing yet.
    pub text: AttrValue,
    /// A name for tests.
    #[prop_or_default]
    pub id: Option<AttrValue>,
}

/// A text that is only said. It stands here too, hidden, so that it is found where it belongs.
#[component]
pub fn Said(props: &Props) -> Html {
    use_said(props.text.clone());
    html! { <p class="hidden" data-testid={props.id.clone()}>{ &props.text }</p> }
}
