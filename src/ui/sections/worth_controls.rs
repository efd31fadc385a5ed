//! What a sweep is asked: parameters and their values, seeds, policies; and how large that is.

use yew::prelude::*;

use super::worth::StudyProps;
use crate::params::{Group, Kind, param};
use crate::policy::{PolicyKind, grouped};
use crate::sweep::Plan;
use crate::ui::dom::text_of;
use crate::ui::pool;
use crate::ui::state::Action;
use crate::ui::study::settings::{Part, Place, Range, Refusal, sweepable};
use crate::ui::study::{Act, Phase};
use crate::ui::widgets::Mark;

/// Tells what happens to the study.
fn tells(props: &StudyProps, act: impl Fn(String) -> Option<Act> + 'static) -> Callback<Event> {
    let dispatch = props.dispatch.clone();
    Callback::from(move |event: Event| {
        if let Some(act) = text_of(&event).and_then(&act) {
            dispatch.emit(Action::Study(act));
        }
    })
}

fn typed(props: &StudyProps, act: impl Fn(String) -> Act + 'static) -> Callback<InputEvent> {
    let tell = tells(props, move |text| Some(act(text)));
    Callback::from(move |event: InputEvent| tell.emit(event.into()))
}

/// Why what was typed is not taken, with the name that its field refers to.
fn refused(id: &str, refusals: &[Refusal], place: Place) -> (Option<String>, Html) {
    let Some(refusal) = refusals.iter().find(|refusal| refusal.place == place) else {
        return (None, html! {});
    };
    let own = format!("{id}-problem");
    let text = html! {
        <p class="problem" id={own.clone()} data-testid={own.clone()}>{ format!("Not taken: {}.", refusal.problem) }</p>
    };
    (Some(own), text)
}

/// A text field with its label, and the reason where its text is refused.
fn text(
    id: String,
    label: String,
    value: &str,
    (problem, why): (Option<String>, Html),
    oninput: Callback<InputEvent>,
) -> Html {
    html! {
        <div class={classes!("field", problem.is_some().then_some("refused"))}>
            <label for={id.clone()}>{ label }</label>
            <input id={id.clone()} type="text" autocomplete="off" spellcheck="false" value={value.to_owned()} {oninput}
                aria-invalid={problem.is_some().then_some("true")} aria-describedby={problem} data-testid={id} />
            { why }
        </div>
    }
}

/// The fields of the first or the second parameter.
fn range(props: &StudyProps, at: usize, refusals: &[Refusal]) -> Html {
    let range = props.study.settings.ranges.get(at);
    let id = |name: &str| format!("sweep-{name}-{at}");
    let title = if at == 0 { "Over" } else { "And over" };
    let choose = tells(props, move |key| Some(Act::Vary(at, param(&key).map(|p| p.key))));
    let groups = Group::ALL.into_iter().map(|group| {
        let own: Vec<Html> = sweepable()
            .filter(|p| p.group == group)
            .map(|p| {
                let chosen = range.is_some_and(|range| range.key == p.key);
                html! { <option value={p.key} selected={chosen}>{ p.label }</option> }
            })
            .collect();
        if own.is_empty() {
            html! {}
        } else {
            html! { <optgroup label={group.title()}>{ for own }</optgroup> }
        }
    });
    html! {
        <fieldset>
            <legend>{ title }</legend>
            <div class="field">
                <label for={id("param")}>{ "Parameter" }</label>
                <select id={id("param")} onchange={choose} data-testid={id("param")}>
                    if at == 1 { <option value="" selected={range.is_none()}>{ "none: one parameter only" }</option> }
                    { for groups }
                </select>
            </div>
            if let Some(range) = range { { values(props, at, range, refusals) } }
        </fieldset>
    }
}

/// The fields for the values of a parameter: from, to and step, or a list.
fn values(props: &StudyProps, at: usize, range: &Range, refusals: &[Refusal]) -> Html {
    let Some(param) = param(range.key) else { return html! {} };
    let id = |name: &str| format!("sweep-{name}-{at}");
    let field = |part: Part, name: &str, label: &str, value: &str| {
        let id = id(name);
        let why = refused(&id, refusals, Place::Range(at, part));
        let edit = typed(props, move |text| Act::Edit(at, part, text));
        text(id, label.to_owned(), value, why, edit)
    };
    let numbers = matches!(param.kind, Kind::Integer { .. } | Kind::Real { .. });
    let kind = tells(props, move |text| Some(Act::List(at, text == "list")));
    html! {
        <>
            if numbers {
                <div class="field">
                    <label for={id("kind")}>{ "Values as" }</label>
                    <select id={id("kind")} onchange={kind} data-testid={id("kind")}>
                        <option value="range" selected={!range.list}>{ "a range" }</option>
                        <option value="list" selected={range.list}>{ "a list" }</option>
                    </select>
                </div>
            }
            if range.list {
                { field(Part::Values, "values", "Values, with commas", &range.values) }
            } else {
                <div class="thirds">
                    { field(Part::From, "from", "From", &range.from) }
                    { field(Part::To, "to", "To", &range.to) }
                    { field(Part::Step, "step", "Step", &range.step) }
                </div>
            }
            <p class="help">{ param.help }{ " " }<span class="range">
                { format!("Each is {}.", param.range()) }
            </span></p>
        </>
    }
}

fn policies(props: &StudyProps) -> Html {
    let chosen = &props.study.settings.policies;
    let one = |policy: PolicyKind| {
        let on = chosen.contains(&policy);
        let toggle = tells(props, move |_| Some(Act::Policy(policy)));
        html! {
            <label class="tick"><input type="checkbox" checked={on} disabled={on && chosen.len() == 1} onchange={toggle}
                data-testid={format!("sweep-policy-{}", policy.name())} /><Mark {policy} />{ policy.name() }</label>
        }
    };
    html! { <div class="ticks" role="group" aria-label="Policies of the sweep">{ for PolicyKind::ALL.into_iter().map(one) }</div> }
}

/// The form, with the buttons that start and end the sweep.
pub(super) fn form(props: &StudyProps, plan: &Result<Plan, Vec<Refusal>>) -> Html {
    let study = &props.study;
    let refusals: &[Refusal] = plan.as_ref().err().map_or(&[], Vec::as_slice);
    let running = study.sweep.as_ref().filter(|sweep| sweep.phase == Phase::Running);
    let (of_all, why) = refused("sweep-plan", refusals, Place::Plan);
    let estimate = match (plan, of_all) {
        (Ok(plan), _) => {
            let runs = plan.jobs() * plan.policies.len() as u64;
            let each = if plan.over.iter().any(|axis| axis.key == "requests") {
                String::new()
            } else {
                format!(" of {} requests each", grouped(props.config.requests.into()))
            };
            let workers = pool::size(plan.jobs() as usize);
            format!(
                "{} points × {} seeds × {} policies: {} runs{each}, on {workers} {}.",
                plan.points(),
                plan.seeds.count(),
                plan.policies.len(),
                grouped(runs),
                if workers == 1 { "worker" } else { "workers" }
            )
        }
        (Err(_), None) => "Something above is not taken; it stays as it was typed.".into(),
        (Err(_), Some(_)) => String::new(),
    };
    let act = |act: Act| props.dispatch.reform(move |_: MouseEvent| Action::Study(act.clone()));
    let seeds = refused("sweep-seeds", refusals, Place::Seeds);
    let submit = props.dispatch.reform(|event: SubmitEvent| {
        event.prevent_default();
        Action::Study(Act::Run)
    });
    html! {
        <form onsubmit={submit}>
            <div class="fields">
                { range(props, 0, refusals) }
                { range(props, 1, refusals) }
                <fieldset>
                    <legend>{ "Under" }</legend>
                    { policies(props) }
                    { text("sweep-seeds".into(), "Seeds: how many, or from..to".into(), &study.settings.seeds, seeds,
                        typed(props, Act::Seeds)) }
                </fieldset>
            </div>
            <p class="size" data-testid="sweep-size">{ estimate }</p>
            { why }
            <div class="buttons">
                <button type="submit" class="primary" disabled={plan.is_err()} data-testid="sweep-run">
                    { if running.is_some() { "Run anew" } else { "Run" } }</button>
                <button type="button" aria-disabled={running.is_none().to_string()} onclick={if running.is_some() { act(Act::Cancel) } else { Callback::noop() }} data-testid="sweep-cancel">
                    { "Cancel" }</button>
                if let Some(sweep) = running {
                    <span class="quiet" data-testid="sweep-progress">
                        <progress max={sweep.runs().1.to_string()} value={sweep.runs().0.to_string()} aria-label="runs"></progress>
                        { format!(" {} of {} runs", grouped(sweep.runs().0), grouped(sweep.runs().1)) }
                    </span>
                }
            </div>
        </form>
    }
}
