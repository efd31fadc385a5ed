//! Why a request went where it went under one policy, and what became of it.

use std::rc::Rc;

use yew::prelude::*;

use crate::policy::{PolicyKind, explain, grouped};
use crate::ui::playback::Routed;
use crate::ui::state::Action;
use crate::ui::words::{colour_of, tenant_name};

/// A request's routing and life.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The policy that routed it.
    pub policy: PolicyKind,
    /// Where and why; `None`: not routed yet, or none.
    pub routed: Option<Rc<Routed>>,
    /// What has become of it so far.
    pub life: Vec<String>,
    /// Whether requests arrived that can never be served.
    pub refused: bool,
    /// Whether it is just the latest, and not one that the reader chose.
    pub latest: bool,
    /// Tells that the latest is wanted again.
    pub dispatch: Callback<Action>,
}

/// The explanation.
#[component]
pub fn Why(props: &Props) -> Html {
    let Some(routed) = &props.routed else {
        let text = if props.refused {
            "Nothing was routed: what has arrived was rejected."
        } else {
            "Nothing routed yet."
        };
        return html! { <div class="why" data-testid="why"><p class="quiet">{ text }</p></div> };
    };
    let onclick = props.dispatch.reform(|_: MouseEvent| Action::Select(None));
    let arrival = routed.arrival;
    let reason = routed.decision.as_ref().map(|decision| explain(props.policy, decision));
    html! {
        <div class="why" data-testid="why" data-request={arrival.request.to_string()}>
            <p class="why-head">
                <span class={classes!("swatch", format!("t{}", colour_of(arrival.tenant)))}></span>
                { if props.latest { "Latest: " } else { "" } }
                <b>{ format!("request {}", arrival.request) }</b>
                { format!(" of tenant {}, {} + {} tokens ", tenant_name(arrival.tenant),
                    grouped(arrival.prompt.into()), grouped(arrival.max_tokens)) }
                <b class="to">{ format!("→ replica {}", routed.replica) }</b>
            </p>
            <p>{ reason.unwrap_or_else(|| "There was no choice.".into()) }</p>
            <p class="life">{ props.life.join(" ") }</p>
            if !props.latest {
                <button type="button" class="plain" {onclick}>{ "Back to the latest" }</button>
            }
        </div>
    }
}
