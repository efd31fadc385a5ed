//! One setting's control, made from the table of settings.

use web_sys::{HtmlInputElement, HtmlSelectElement};
use yew::prelude::*;

use crate::coldstart::{PARAMS, Settings};
use crate::params::Kind;

/// The choice that opens a field for a number.
const OWN: &str = "own";

/// What a [`Control`] is given.
#[derive(PartialEq, Properties)]
pub struct ControlProps {
    /// Which setting: its place in the table.
    pub setting: usize,
    /// The settings in force.
    pub settings: Settings,
    /// Told of every valid change.
    pub on_change: Callback<Settings>,
}

/// A list of names, and for quantities a field for a number beside it. What cannot be is refused
/// with the reason beside it, and the last valid value stays in force.
#[component]
pub fn Control(props: &ControlProps) -> Html {
    let param = &PARAMS[props.setting];
    let settings = props.settings;
    let value = param.get(&settings);
    // What is in the field, while it is open.
    let draft = use_state_eq(|| None::<String>);
    let named = param.choices().iter().any(|(name, _)| *name == value);
    let open = !named || draft.is_some();

    let tried = |text: &str| {
        let mut settings = settings;
        param.set(&mut settings, text).map(|()| settings)
    };
    let (shown, problem) = match &*draft {
        // A draft that stands for something else was overtaken: by the address or a reset.
        Some(text) => match tried(text) {
            Ok(meant) if !named && meant != settings => (value.clone(), None),
            Ok(_) => (text.clone(), None),
            Err(problem) => (text.clone(), Some(problem.problem)),
        },
        None => (value.clone(), None),
    };

    let onchange = {
        let (draft, on_change) = (draft.setter(), props.on_change.clone());
        Callback::from(move |event: Event| {
            let chosen = event.target_unchecked_into::<HtmlSelectElement>().value();
            let mut settings = settings;
            if chosen == OWN {
                // The field opens with the number that is in force.
                let number = param.json(&settings).as_f64().unwrap_or_default().to_string();
                if param.set(&mut settings, &number).is_ok() {
                    draft.set(Some(number));
                    on_change.emit(settings);
                }
            } else if param.set(&mut settings, &chosen).is_ok() {
                draft.set(None);
                on_change.emit(settings);
            }
        })
    };
    let oninput = {
        let (draft, on_change) = (draft.setter(), props.on_change.clone());
        Callback::from(move |event: InputEvent| {
            let text = event.target_unchecked_into::<HtmlInputElement>().value();
            let mut settings = settings;
            if param.set(&mut settings, &text).is_ok() {
                on_change.emit(settings);
            }
            draft.set(Some(text));
        })
    };

    let id = format!("cold-{}", param.key);
    let (help, error) = (format!("{id}-help"), format!("{id}-error"));
    let label = if param.unit.is_empty() {
        param.label.to_owned()
    } else {
        format!("{} ({})", param.label, param.unit)
    };
    let option = |name: &'static str, means: &str| {
        html! {
            <option value={name} selected={!open && name == value}>{ means.to_owned() }</option>
        }
    };
    let options = param.choices().iter().map(|&(name, means)| match param.kind {
        Kind::Choice(_) => option(name, &format!("{name}: {means}")),
        _ => option(name, means),
    });
    let numbers = match param.kind {
        Kind::Quantity { number, .. } => Some(number),
        _ => None,
    };
    let described = if problem.is_some() { format!("{help} {error}") } else { help.clone() };
    html! {
        <div class="cold-control">
            <label for={id.clone()}>{ label.clone() }</label>
            <select id={id.clone()} {onchange} aria-describedby={help.clone()}>
                { for options }
                if numbers.is_some() {
                    <option value={OWN} selected={open}>{ "another number" }</option>
                }
            </select>
            if numbers.is_some() && open {
                <input
                    id={format!("{id}-number")}
                    type="text"
                    inputmode="decimal"
                    autocomplete="off"
                    spellcheck="false"
                    aria-label={format!("{label}, a number")}
                    aria-describedby={described}
                    aria-invalid={if problem.is_some() { "true" } else { "false" }}
                    value={shown}
                    {oninput}
                />
            }
            <p id={help} class="cold-help">
                { param.help }
                if let Some(number) = numbers.filter(|_| open) {
                    { format!(" {}{}.", number[..1].to_uppercase(), &number[1..]) }
                }
            </p>
            if let Some(problem) = problem {
                <p id={error} class="cold-error" role="alert">
                    { format!("Not taken: {problem}. Still in force: {value}.") }
                </p>
            }
        </div>
    }
}
