//! One parameter as a labelled control, made from the table of parameters.

use yew::prelude::*;

use crate::params::{Kind, Param};
use crate::ui::dom::text_of;
use crate::ui::state::Action;

/// A parameter and its text.
#[derive(Clone, Properties)]
pub struct Props {
    /// The parameter.
    pub param: &'static Param,
    /// What the control shows.
    pub text: String,
    /// Why that is refused.
    pub problem: Option<String>,
    /// Tells what the reader writes.
    pub dispatch: Callback<Action>,
}

impl PartialEq for Props {
    fn eq(&self, other: &Props) -> bool {
        self.param.key == other.param.key && (&self.text, &self.problem) == (&other.text, &other.problem)
    }
}

/// From, to, and whether it is logarithmic.
type Scale = (f64, f64, bool);

/// A slider beside the text. The text takes the whole range, the slider the part of it that a reader will want.
fn slider(key: &str) -> Option<Scale> {
    Some(match key {
        "requests" => (4.0, 400.0, true),
        "rate" => (0.5, 200.0, true),
        "tenants" => (1.0, 16.0, false),
        "skew" => (0.0, 3.0, false),
        "replicas" => (1.0, 16.0, false),
        "prefix_length" => (1.0, 512.0, true),
        "max_imbalance" | "longest_prefix_guard" => (1.0, 4.0, false),
        "max_batch" => (1.0, 32.0, false),
        "blocks" => (32.0, 1024.0, true),
        "slo_ttft" => (0.01, 10.0, true),
        "slo_itl" => (0.001, 1.0, true),
        _ => return None,
    })
}

/// A slider's last place; of whole numbers each is one, so that a key goes from one to the next.
fn notches((from, to, log): Scale, whole: bool) -> f64 {
    if whole && !log { to - from } else { 200.0 }
}

/// The slider's place for a value.
fn place((from, to, log): Scale, value: f64, last: f64) -> f64 {
    let part = if log {
        libm::log2((value / from).max(1e-9)) / libm::log2(to / from)
    } else {
        (value - from) / (to - from)
    };
    (part * last).round().clamp(0.0, last)
}

/// The value of a slider's place, rounded to what reads well.
fn value((from, to, log): Scale, place: f64, last: f64, whole: bool) -> f64 {
    let part = place / last;
    let exact = if log { from * libm::pow(to / from, part) } else { from + (to - from) * part };
    if whole {
        return exact.round();
    }
    // As many digits as tell two neighbouring places apart, or the slider would stick.
    let digits = match log {
        true => (1.0 - libm::log10(exact.max(1e-9)).floor()).clamp(1.0, 6.0) as usize,
        false => (-libm::log10((to - from) / last)).ceil().clamp(0.0, 6.0) as usize,
    };
    format!("{exact:.digits$}").parse().unwrap_or(exact)
}

/// The control with its label, unit, range and, where it is refused, the reason.
#[component]
pub fn Field(props: &Props) -> Html {
    let Props { param, text, problem, dispatch } = props;
    let key = param.key;
    let id = format!("p-{key}");
    let edit = {
        let dispatch = dispatch.clone();
        Callback::from(move |text: String| dispatch.emit(Action::Edit { key, text }))
    };
    let typed = {
        let edit = edit.clone();
        Callback::from(move |event: InputEvent| {
            if let Some(text) = text_of(&event) {
                edit.emit(text);
            }
        })
    };
    let described = if problem.is_some() { format!("{id}-help {id}-problem") } else { format!("{id}-help") };
    let control = match param.kind {
        Kind::Choice(choices) => {
            let chosen = edit.reform(|event: Event| text_of(&event).unwrap_or_default());
            html! {
                <select id={id.clone()} onchange={chosen} aria-describedby={described} data-testid={id.clone()}>
                    { for choices.iter().map(|(name, means)| html! {
                        <option value={*name} selected={name == text} title={*means}>{ *name }</option>
                    }) }
                </select>
            }
        }
        _ => html! {
            <input id={id.clone()} type="text" autocomplete="off" spellcheck="false"
                inputmode={if matches!(param.kind, Kind::Integer { .. }) { "numeric" } else { "text" }}
                value={text.clone()} oninput={typed} aria-describedby={described}
                aria-invalid={problem.is_some().then_some("true")} data-testid={id.clone()} />
        },
    };
    let slide = slider(key).map(|range| {
        let whole = matches!(param.kind, Kind::Integer { .. });
        let last = notches(range, whole);
        let at = text.parse::<f64>().map_or(last, |v| place(range, v, last));
        let moved = edit.reform(move |event: InputEvent| {
            let at = text_of(&event).and_then(|t| t.parse().ok()).unwrap_or(0.0);
            value(range, at, last, whole).to_string()
        });
        html! {
            <input type="range" min="0" max={last.to_string()} step="1" value={at.to_string()} oninput={moved}
                aria-label={format!("{}, slider", param.label)} aria-valuetext={format!("{text} {}", param.unit)} />
        }
    });
    html! {
        <div class={classes!("field", problem.as_ref().map(|_| "refused"))}>
            <label for={id.clone()}>{ param.label }
                if !param.unit.is_empty() && !param.label.eq_ignore_ascii_case(param.unit) { <span class="unit">{ format!(" ({})", param.unit) }</span> }
            </label>
            <div class="control">{ control }{ slide.unwrap_or_default() }</div>
            <p class="help" id={format!("{id}-help")}>{ param.help }{ " " }
                if let Some((_, means)) = param.choices().iter().find(|(name, _)| name == text) {
                    <span class="range">{ format!("{}: {means}.", capital(text)) }</span>
                }
                if param.choices().is_empty() { <span class="range">{ capital(&param.range()) }{ "." }</span> }
            </p>
            if let Some(problem) = problem {
                <p class="problem" id={format!("{id}-problem")} data-testid={format!("{id}-problem")}>
                    { "Not taken: " }{ problem }{ format!(". The race runs with the last value that was.") }</p>
            }
        </div>
    }
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().into_iter().flat_map(char::to_uppercase);
    if text.contains(" | ") { text.to_owned() } else { first.chain(chars).collect() }
}
