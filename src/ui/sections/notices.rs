//! What in the address was not understood.

use yew::prelude::*;

use super::Props;
use crate::ui::state::Action;

/// The notices, until they are dismissed.
#[component]
pub fn Notices(props: &Props) -> Html {
    if props.state.notices.is_empty() {
        return html! {};
    }
    let dismiss = props.dispatch.reform(|_: MouseEvent| Action::Dismiss);
    html! {
        <div class="notice" data-testid="notices">
            <p>{ "Not all of this page's address was taken as it stands; what is not taken has its default:" }</p>
            <ul>{ for props.state.notices.iter().map(|text| html! { <li>{ text }</li> }) }</ul>
            <button type="button" onclick={dismiss} data-testid="dismiss">{ "Dismiss" }</button>
        </div>
    }
}
