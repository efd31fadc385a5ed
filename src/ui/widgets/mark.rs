//! A policy's fixed mark: the same shape wherever the policy is named.

use yew::prelude::*;

use crate::policy::PolicyKind;

/// Which policy.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// The policy.
    pub policy: PolicyKind,
}

/// The mark, in the policy's colour; decoration, since the name stands beside it.
#[component]
pub fn Mark(props: &Props) -> Html {
    let shape = match props.policy {
        PolicyKind::RoundRobin => html! { <circle cx="8" cy="8" r="6" /> },
        PolicyKind::LeastRequests => html! { <path d="M8 1.5l7 12.5H1z" /> },
        PolicyKind::LeastTokens => html! { <rect x="2.5" y="2.5" width="11" height="11" /> },
        PolicyKind::PrefixAffinity => html! { <path d="M8 0.5l7.5 7.5-7.5 7.5-7.5-7.5z" /> },
        PolicyKind::LongestPrefix => html! { <path d="M8 14.5l7-12.5H1z" /> },
        _ => html! { <path d="M8 1l6 3.5v7L8 15l-6-3.5v-7z" /> },
    };
    html! {
        <svg class={classes!("mark", props.policy.name())} viewBox="0 0 16 16" width="14" height="14"
            aria-hidden="true">{ shape }</svg>
    }
}
