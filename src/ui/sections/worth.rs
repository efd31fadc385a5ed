//! How much it is worth: a sweep over one or two parameters, and replicas counted in replicas.

use std::rc::Rc;

use wasm_bindgen::JsCast;
use yew::prelude::*;

use super::worth_controls::form;
use super::worth_replicas::replicas;
use super::worth_results::{Drawn, results};
use crate::fleet::Devices;
use crate::params::{BackendKind, ClockKind, Config};
use crate::ui::dom;
use crate::ui::state::Action;
use crate::ui::study::chart::charts;
use crate::ui::study::settings::Part;
use crate::ui::study::{Act, Phase, Study};

/// What this section is given. It is one component: each is kilobytes of code.
#[derive(Clone, Properties)]
pub struct StudyProps {
    /// The page's parameters.
    pub config: Config,
    /// What is asked, and what came of it.
    pub study: Rc<Study>,
    /// What changes it.
    pub dispatch: Callback<Action>,
}

impl PartialEq for StudyProps {
    fn eq(&self, other: &StudyProps) -> bool {
        Rc::ptr_eq(&self.study, &other.study) && self.config == other.config
    }
}

/// Why a task stopped, if it did.
pub(super) fn stopped(phase: &Phase) -> Html {
    match phase {
        Phase::Failed(why) => html! { <p class="dead" role="alert">{ format!("It stopped: {why}") }</p> },
        _ => html! {},
    }
}

/// A button with a name for tests.
pub(super) fn button(id: &'static str, text: &'static str, off: bool, onclick: Callback<MouseEvent>) -> Html {
    html! { <button type="button" disabled={off} {onclick} data-testid={id}>{ text }</button> }
}

/// Gives the focus to a button, where the one that had it goes away.
pub(super) fn focus(id: &str) {
    let found = dom::document().query_selector(&format!("[data-testid={id}]")).ok().flatten();
    if let Some(button) = found.and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = button.focus();
    }
}

/// A command that does the same natively, to be copied.
pub(super) fn shown_command(id: &'static str, command: String) -> Html {
    let own = command.clone();
    let copy = Callback::from(move |_: MouseEvent| dom::copy(&own));
    html! {
        <>
            <p class="reproduce"><code data-testid={id}>{ command }</code></p>
            <div class="buttons">{ button("", "Copy command line", false, copy) }</div>
        </>
    }
}

/// A table one click away.
pub(super) fn numbers(
    id: &'static str,
    summary: &'static str,
    caption: String,
    heads: Vec<String>,
    rows: Vec<Vec<Html>>,
) -> Html {
    let heads = heads.into_iter().map(|head| html! { <th scope="col">{ head }</th> });
    let rows = rows.into_iter().map(|row| {
        let cell = |(at, cell)| {
            if at == 0 {
                html! { <th scope="row">{ cell }</th> }
            } else {
                html! { <td>{ cell }</td> }
            }
        };
        html! { <tr>{ for row.into_iter().enumerate().map(cell) }</tr> }
    });
    html! {
        <details>
            <summary>{ summary }</summary>
            <section class="scroll" tabindex="0" aria-label={summary}>
                <table data-testid={id}>
                    <caption>{ caption }</caption>
                    <thead><tr>{ for heads }</tr></thead>
                    <tbody>{ for rows }</tbody>
                </table>
            </section>
        </details>
    }
}

/// The fleet whose knees the README shows, with fewer requests, and rates around them.
fn example(props: &StudyProps) -> Callback<MouseEvent> {
    let (config, dispatch) = (props.config.clone(), props.dispatch.clone());
    Callback::from(move |_: MouseEvent| {
        focus("sweep-run");
        dispatch.emit(Action::Apply(Box::new(Config {
            backend: BackendKind::Modelled,
            devices: Devices::Separate,
            tenants: 48,
            requests: 300,
            rate: 16.0,
            ..config.clone()
        })));
        let texts = [(Part::From, "4"), (Part::To, "24"), (Part::Step, "4")];
        let edits = texts.map(|(part, text)| Act::Edit(0, part, text.into()));
        for act in [Act::Vary(0, Some("rate")), Act::List(0, false)].into_iter().chain(edits) {
            dispatch.emit(Action::Study(act));
        }
    })
}

/// The section.
#[component]
pub fn Worth(props: &StudyProps) -> Html {
    let config = &props.config;
    let asked = (config.clone(), props.study.settings.clone());
    let plan = use_memo(asked, |(config, settings)| settings.plan(config));
    let figure = props.study.settings.figure;
    let depends = props.study.sweep.as_ref().map(|sweep| (sweep.number, sweep.done.len(), figure));
    let drawn = {
        let sweep = props.study.sweep.clone();
        use_memo(depends, move |_| {
            let results = sweep?.results();
            let plots = charts(&results, figure);
            Some(Drawn { results, plots })
        })
    };
    html! {
        <section id="worth" class="worth" aria-labelledby="worth-title" data-testid="worth">
            <h2 id="worth-title">{ "How much it is worth" }</h2>
            <p class="intro">{ "One race is one draw. Here the same configuration is run over a range of one \
                parameter, under every policy, with many seeds, to see where each policy's knee is: the load up to \
                which nearly all requests meet both objectives, and beyond which queues only grow." }</p>
            if config.backend == BackendKind::TinyGpt || config.clock == ClockKind::Measured {
                <p class="intro" data-testid="priced">{ "Everything else is as set above, with one difference: here \
                    steps are priced, not computed. The same scheduler runs without tensors under the modelled clock, \
                    which under that clock gives the same figures." }</p>
            } else {
                <p class="intro">{ "Everything else is as set above." }</p>
            }
            if config.devices == Devices::Shared {
                <p class="intro">{ "All replicas share one processor now, as in the chapter's experiment. The difference is \
                    plainer where each has its own, and where there are more prompts than one cache holds: " }
                    { button("sweep-example", "take 48 tenants and a processor each", false, example(props)) }</p>
            }
            { form(props, &plan) }
            { results(props, &plan, (*drawn).as_ref()) }
            { replicas(props) }
        </section>
    }
}
