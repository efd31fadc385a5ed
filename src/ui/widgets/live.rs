//! A number in a sentence that the reader can change: the number, and a slider under it, for pointer, touch and
//! keyboard.

use web_sys::HtmlInputElement;
use yew::prelude::*;

/// The number.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// What it is, for who does not see the sentence.
    pub label: AttrValue,
    /// How it reads in the sentence.
    pub text: AttrValue,
    /// The slider's place.
    pub value: u32,
    /// Its ends.
    pub range: (u32, u32),
    /// Told of every move.
    pub on_change: Callback<u32>,
}

/// The number and its slider.
#[component]
pub fn Live(props: &Props) -> Html {
    let oninput = props.on_change.reform(|event: InputEvent| {
        event.target_unchecked_into::<HtmlInputElement>().value_as_number() as u32
    });
    html! {
        <label class="live">
            <b aria-hidden="true">{ &props.text }</b>
            <input type="range" min={props.range.0.to_string()} max={props.range.1.to_string()} step="1"
                value={props.value.to_string()} aria-label={props.label.clone()} aria-valuetext={props.text.clone()}
                {oninput} />
        </label>
    }
}
