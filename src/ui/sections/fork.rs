//! Another future of a lane: what is to be different from the moment shown on, and what comes of it beside
//! what came of the race.

use std::rc::Rc;

use yew::prelude::*;

use super::Props;
use crate::params::{Kind, param};
use crate::policy::{PolicyKind, grouped};
use crate::report::{Better, columns};
use crate::runlog::{CHANGEABLE, Change};
use crate::sim::{Objectives, Summary};
use crate::ui::charts::futures;
use crate::ui::dom::{self, text_of};
use crate::ui::fork::{Act, Agreement, Fork, obstacle};
use crate::ui::moment::exact;
use crate::ui::state::{Action, State, Status};
use crate::ui::widgets::{Plot, Taken};

/// What a change makes different, in a few words.
fn words(change: &Change) -> String {
    match change {
        Change::Policy(policy) => format!("{} decides", policy.name()),
        Change::Parameter { key, value } => {
            let label = param(key).map_or(key.as_str(), |param| param.label);
            format!("{} is {value}", label.to_lowercase())
        }
        Change::Replicas(replicas) => format!("there are {replicas} replicas"),
        Change::Objectives(Objectives { ttft, itl }) => {
            format!("good means TTFT ≤ {ttft} s and ITL ≤ {itl} s")
        }
    }
}

/// The part of the race in which it is forked.
#[component]
pub fn ForkHere(props: &Props) -> Html {
    let state = &*props.state.0;
    html! {
        <div class="fork" data-testid="fork" role="group" aria-labelledby="fork-title">
            <h3 id="fork-title">{ "Fork here: another future" }</h3>
            if let Some(obstacle) = obstacle(&state.config) {
                <p class="quiet" data-testid="fork-obstacle">{ obstacle }</p>
            } else {
                <Ask state={props.state.clone()} dispatch={props.dispatch.clone()} />
                if let Some(fork) = &state.fork { { told(props, state, fork) } }
            }
        </div>
    }
}

/// The question: which lane, and what is different.
#[component]
fn Ask(props: &Props) -> Html {
    let state = &*props.state.0;
    let (lane, key) = (use_state_eq(|| 0_usize), use_state_eq(|| CHANGEABLE[0]));
    let (value, problem) = (use_state_eq(|| None::<String>), use_state_eq(|| None::<String>));
    let at = (*lane).min(state.lanes.len().saturating_sub(1));
    let policy = state.lanes.get(at).map_or(PolicyKind::RoundRobin, |lane| lane.policy);
    let own = match *key {
        "policy" => {
            let other = if policy == PolicyKind::PrefixAffinity {
                PolicyKind::LeastTokens
            } else {
                PolicyKind::PrefixAffinity
            };
            other.name().to_owned()
        }
        key => param(key).map_or_else(String::new, |param| param.get(&state.config)),
    };
    let text = (*value).clone().unwrap_or(own);
    let choose = {
        let (lane, problem) = (lane.setter(), problem.setter());
        Callback::from(move |event: Event| {
            lane.set(text_of(&event).and_then(|text| text.parse().ok()).unwrap_or(0));
            problem.set(None);
        })
    };
    let pick = {
        let (key, value, problem) = (key.setter(), value.setter(), problem.setter());
        Callback::from(move |event: Event| {
            let name = text_of(&event).unwrap_or_default();
            key.set(CHANGEABLE.into_iter().find(|key| *key == name).unwrap_or(CHANGEABLE[0]));
            value.set(None);
            problem.set(None);
        })
    };
    let write = {
        let (value, problem) = (value.setter(), problem.setter());
        move |text: Option<String>| {
            value.set(text);
            problem.set(None);
        }
    };
    let chosen = {
        let write = write.clone();
        Callback::from(move |event: Event| write(text_of(&event)))
    };
    let typed = Callback::from(move |event: InputEvent| write(text_of(&event)));
    let go = {
        let (dispatch, problem, state) = (props.dispatch.clone(), problem.setter(), props.state.clone());
        let (key, text) = (*key, text.clone());
        Callback::from(move |event: SubmitEvent| {
            event.prevent_default();
            let config = &state.config;
            let change = Change::of(config, key, &text).and_then(|it| it.check(config, policy).map(|_| it));
            match change {
                Ok(change) => dispatch.emit(Action::Fork(Act::Ask { lane: at, change })),
                Err(wrong) => problem.set(Some(wrong.problem)),
            }
        })
    };
    let option = |name: &str, shown: &str| {
        html! { <option value={name.to_owned()} selected={name == text}>{ shown.to_owned() }</option> }
    };
    let kind = param(*key).map(|param| param.kind);
    let control = match kind {
        Some(Kind::Policies) => {
            let others = PolicyKind::ALL.into_iter().filter(|other| *other != policy);
            html! {
                <select id="fork-value" data-testid="fork-value" onchange={chosen}>
                    { for others.map(|other| option(other.name(), other.name())) }
                </select>
            }
        }
        Some(Kind::Choice(choices)) => html! {
            <select id="fork-value" data-testid="fork-value" onchange={chosen}>
                { for choices.iter().map(|(name, _)| option(name, name)) }
            </select>
        },
        _ => html! {
            <input type="text" id="fork-value" data-testid="fork-value" autocomplete="off" spellcheck="false"
                value={text.clone()} oninput={typed} aria-invalid={problem.is_some().then_some("true")}
                aria-describedby={problem.is_some().then_some("fork-problem")} />
        },
    };
    let late = state.over() || state.at == 0;
    html! {
        <form class="ask" onsubmit={go}>
            <p class="intro">{ "Stop at a moment, choose a lane and one thing that is different from then on: the same run up to \
                there, and two futures. The scheduler runs both in a worker without the model's tensors, which changes \
                tokens but no time: up to the moment both are compared event by event." }</p>
            <div class="asks">
                <label>{ "Of" }<select id="fork-lane" data-testid="fork-lane" onchange={choose}>
                    { for state.lanes.iter().enumerate().map(|(index, lane)| html! {
                        <option value={index.to_string()} selected={index == at}>{ lane.policy.name() }</option>
                    }) }
                </select></label>
                <label>{ "let" }<select id="fork-key" data-testid="fork-key" onchange={pick}>
                    { for CHANGEABLE.into_iter().filter_map(param).map(|one| html! {
                        <option value={one.key} selected={one.key == *key}>
                            { if one.key == "policy" { "Policy" } else { one.label } }</option>
                    }) }
                </select></label>
                <label>{ "be" }{ control }</label>
                <button type="submit" class="primary" data-testid="fork-here" disabled={late}>
                    { if late { "Fork here".to_owned() } else { format!("Fork at {}", exact(state.at)) } }</button>
            </div>
            if let Some(problem) = &*problem {
                <p class="problem" id="fork-problem" data-testid="fork-problem">{ "Not taken: " }{ problem }{ "." }</p>
            }
            if late {
                <p class="quiet">{ if state.at == 0 {
                    "Let the race run to the moment that you want to change."
                } else {
                    "This is the end: go back to a moment that has a future, with the scale or by events."
                } }</p>
            }
        </form>
    }
}

/// What came of it.
fn told(props: &Props, state: &State, fork: &Rc<Fork>) -> Html {
    let away = props.dispatch.reform(|_: MouseEvent| Action::Fork(Act::Drop));
    let again = props.dispatch.reform(|_: MouseEvent| Action::Fork(Act::Again));
    let command = fork.command(&state.config);
    let copy = {
        let command = command.clone();
        Callback::from(move |_: MouseEvent| dom::copy(&command))
    };
    let agreement = state.lanes.get(fork.of.0).and_then(|lane| fork.agreement(lane));
    let compared = match (&fork.future.status, agreement) {
        (Status::Dead(why), _) => html! {
            <span class="dead" role="alert">{ format!("The fork's worker died twice. {why} ") }
                <button type="button" class="small" onclick={again} data-testid="fork-again">{ "Run it again" }</button></span>
        },
        (Status::Refused(why), _) => {
            html! { <span class="dead" role="alert">{ format!("It cannot be run: {why}.") }</span> }
        }
        (_, None) => html! { "Both are being computed…" },
        (_, Some(Agreement::Same(events))) => html! {
            { format!("Up to {} both are one run: all {} events are the same.", exact(fork.at), grouped(events as u64)) }
        },
        (_, Some(Agreement::Differs(events))) => html! {
            <span class="dead">{ format!("They part too early, after {events} events: please report this.") }</span>
        },
    };
    html! {
        <div class="futures" data-testid="futures">
            <p><b>{ format!("From {} on {}", exact(fork.at), words(&fork.change)) }</b>
                { format!(", in the race of {}. ", fork.of.1.name()) }
                <button type="button" class="plain" onclick={away} data-testid="fork-drop">{ "Away with it" }</button></p>
            <p data-testid="agreement">{ compared }</p>
            if let (Some(original), Some(finished)) = (&fork.original, fork.future.finished()) {
                { table(original, &finished.summary) }
            }
            <p class="reproduce"><code data-testid="fork-command">{ command.clone() }</code></p>
            <div class="buttons"><button type="button" onclick={copy}>{ "Copy command line" }</button></div>
            <Plots state={props.state.clone()} />
        </div>
    }
}

fn table(original: &Summary, fork: &Summary) -> Html {
    let assignments = |s: &Summary| s.assignments.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    html! {
        <section class="scroll" tabindex="0" aria-label="Both futures">
            <table data-testid="both">
                <thead><tr>
                    <th scope="col">{ "of the whole run" }</th><th scope="col">{ "as it was" }</th>
                    <th scope="col">{ "the fork" }</th><th scope="col">{ "difference" }</th>
                </tr></thead>
                <tbody>
                    { for columns().iter().map(|column| {
                        let difference = (column.value)(original).zip((column.value)(fork)).map(|(a, b)| b - a);
                        let text = difference.map_or_else(|| "–".into(), |d| {
                            let sign = if d > 0.0 { "+" } else if d < 0.0 { "−" } else { "±" };
                            format!("{sign}{}", (column.format)(d.abs()))
                        });
                        let better = difference.filter(|d| *d != 0.0).map(|d| (d > 0.0) == (column.better == Better::Higher));
                        html! {
                            <tr data-testid={format!("both-{}", column.key)}>
                                <th scope="row">{ column.heading() }</th>
                                <td>{ column.text(original) }</td><td>{ column.text(fork) }</td>
                                <td class={(better == Some(true)).then_some("best")}>{ text }
                                    if better == Some(true) { <span class="better">{ "better" }</span> }
                                    if better == Some(false) { <span class="better">{ "worse" }</span> }
                                </td>
                            </tr>
                        }
                    }) }
                    <tr><th scope="row">{ "requests, by replica" }</th>
                        <td>{ assignments(original) }</td><td>{ assignments(fork) }</td><td></td></tr>
                </tbody>
            </table>
        </section>
    }
}

/// What is given to the plots.
#[derive(Clone, PartialEq, Properties)]
struct PlotsProps {
    state: crate::ui::reducible::Shared,
}

/// The figures over time, in both futures; drawn anew only when more of them is known.
#[component]
fn Plots(props: &PlotsProps) -> Html {
    let state = props.state.clone();
    let fork = state.fork.clone();
    let known = fork.as_ref().map(|fork| {
        let lane = state.lanes.get(fork.of.0).map(|lane| (lane.run, lane.points.len()));
        (lane, fork.future.run, fork.future.points.len(), state.reach())
    });
    let command = fork.as_ref().map_or_else(String::new, |fork| fork.command(&state.config));
    let plots = use_memo(known, move |_| fork.map_or_else(Vec::new, |fork| futures(&state, &fork)));
    html! {
        <div class="plots">
            { for plots.iter().cloned().map(|chart| {
                let key = chart.title.clone();
                let label = format!("{} over simulated time, as it was and in the fork; the table has the final figures", chart.title);
                let taken = Taken {
                    id: format!("figure-fork-{}", chart.title.to_ascii_lowercase()).into(),
                    name: format!("{} in both futures", chart.title).into(),
                    command: command.clone().into(),
                };
                html! { <Plot {key} {chart} {label} {taken} /> }
            }) }
        </div>
    }
}
