//! The controls, made from the table of parameters.

use yew::prelude::*;

use super::Props;
use crate::params::{Config, Group, Kind, PARAMS, Param, Preset};
use crate::policy::PolicyKind;
use crate::ui::state::Action;
use crate::ui::widgets::{Field, Mark};

/// What most readers will want to change.
const COMMON: [&str; 14] = [
    "requests",
    "rate",
    "tenants",
    "skew",
    "replicas",
    "blocks",
    "max_batch",
    "devices",
    "prefix_length",
    "max_imbalance",
    "slo_ttft",
    "slo_itl",
    "clock",
    "seed",
];

/// The section.
#[component]
pub fn Controls(props: &Props) -> Html {
    let (state, dispatch) = (&props.state, &props.dispatch);
    let field = |param: &'static Param| {
        let (text, problem) = state.text(param.key);
        html! { <Field key={param.key} {param} {text} problem={problem.map(str::to_owned)} dispatch={dispatch.clone()} /> }
    };
    let group = |group: Group, common: bool| {
        let own: Vec<&'static Param> = PARAMS
            .iter()
            .filter(|p| p.group == group && p.kind != Kind::Policies && COMMON.contains(&p.key) == common)
            .collect();
        if own.is_empty() {
            return html! {};
        }
        html! {
            <fieldset><legend>{ group.title() }</legend>
                if group == Group::Policy && common { { policies(props) } }
                { for own.into_iter().map(field) }
            </fieldset>
        }
    };
    let preset = |name: &'static str, preset: Preset| {
        let config = preset.config();
        let pressed = config == state.config;
        let apply = dispatch.reform(move |_: MouseEvent| Action::Apply(Box::new(config.clone())));
        html! {
            <button type="button" aria-pressed={pressed.to_string()} onclick={apply}
                data-testid={format!("preset-{name}")}>{ name }</button>
        }
    };
    let plain = state.config == Config::default() && state.drafts.is_empty();
    let reset =
        if plain { Callback::noop() } else { dispatch.reform(|_: MouseEvent| Action::Apply(Box::default())) };
    html! {
        <section id="controls" aria-labelledby="controls-title">
            <h2 id="controls-title">{ "Change it" }</h2>
            <p class="intro">{ "Every change starts the race anew and is kept in the page's address, so a link \
                brings others to exactly what you see." }</p>
            <div class="buttons">
                <span>{ "Start from: " }</span>
                { for Preset::ALL.into_iter().map(|(name, kind)| preset(name, kind)) }
                <button type="button" onclick={reset} aria-disabled={plain.to_string()}
                    data-testid="reset">{ "Reset to the defaults" }</button>
            </div>
            <div class="fields">
                { group(Group::Trace, true) }{ group(Group::Fleet, true) }{ group(Group::Policy, true) }
                <div class="stack">{ group(Group::Objectives, true) }{ group(Group::Run, true) }</div>
                <details class="advanced"><summary>{ "More parameters" }</summary>
                    <div class="fields">{ for Group::ALL.into_iter().map(|g| group(g, false)) }</div>
                </details>
            </div>
        </section>
    }
}

/// The policies as boxes to tick; at least one runs.
fn policies(props: &Props) -> Html {
    let chosen = &props.state.config.policy;
    let one = |policy: PolicyKind| {
        let on = chosen.contains(&policy);
        let next: Vec<&str> = PolicyKind::ALL
            .into_iter()
            .filter(|own| if *own == policy { !on } else { chosen.contains(own) })
            .map(PolicyKind::name)
            .collect();
        let text = next.join(",");
        let toggle =
            props.dispatch.reform(move |_: Event| Action::Edit { key: "policy", text: text.clone() });
        html! {
            <label class="tick"><input type="checkbox" checked={on} disabled={on && chosen.len() == 1} onchange={toggle}
                data-testid={format!("policy-{}", policy.name())} /><Mark {policy} />{ policy.name() }</label>
        }
    };
    html! { <div class="ticks" role="group" aria-label="Policies">{ for PolicyKind::ALL.into_iter().map(one) }</div> }
}
