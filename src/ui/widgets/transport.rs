//! Run, pause, restart, new seed, result, speed, cancel; the scale of time, a step back and forward, and
//! what happened at the moment shown.

use wasm_bindgen::JsCast;
use yew::prelude::*;

use crate::params::param;
use crate::ui::dom;
use crate::ui::moment;
use crate::ui::sections::Props;
use crate::ui::state::{Action, Toward};
use crate::ui::words::time;

/// Speeds on offer, as factors.
const SPEEDS: [(&str, f64); 8] = [
    ("0.1×", 0.1),
    ("¼×", 0.25),
    ("½×", 0.5),
    ("1×", 1.0),
    ("2×", 2.0),
    ("5×", 5.0),
    ("10×", 10.0),
    ("20×", 20.0),
];

/// The buttons and the scale of time.
#[component]
pub fn Transport(props: &Props) -> Html {
    let (state, dispatch) = (&props.state, &props.dispatch);
    let on = |action: Action| dispatch.reform(move |_: MouseEvent| action.clone());
    let run = match (state.paused, state.over()) {
        (_, true) => ("Run again", Action::Play),
        (true, _) => ("Run", Action::Play),
        (false, _) if state.skip => ("Run", Action::Play),
        _ => ("Pause", Action::Pause),
    };
    let skip = if state.over() { Callback::noop() } else { on(Action::Skip) };
    let new_seed = {
        let dispatch = dispatch.clone();
        Callback::from(move |_: MouseEvent| {
            dispatch.emit(Action::Edit { key: "seed", text: dom::fresh_seed().to_string() });
        })
    };
    let speed = {
        let dispatch = dispatch.clone();
        Callback::from(move |event: Event| {
            let select = event.target().and_then(|t| t.dyn_into::<web_sys::HtmlSelectElement>().ok());
            if let Some(speed) = select.and_then(|s| s.value().parse().ok()) {
                dispatch.emit(Action::Speed(speed));
            }
        })
    };
    // The scale in thousandths, since a range of picoseconds is beyond a slider.
    let reach = state.reach().max(1);
    let seek = {
        let dispatch = dispatch.clone();
        Callback::from(move |event: InputEvent| {
            let input = event.target().and_then(|t| t.dyn_into::<web_sys::HtmlInputElement>().ok());
            if let Some(part) = input.map(|i| i.value_as_number()) {
                dispatch.emit(Action::Seek((part / 1000.0 * reach as f64) as u64));
            }
        })
    };
    let keys = {
        let dispatch = dispatch.clone();
        Callback::from(move |event: KeyboardEvent| {
            let toward = match event.key().as_str() {
                "ArrowLeft" | "ArrowDown" => Toward::Past,
                "ArrowRight" | "ArrowUp" => Toward::Future,
                _ => return,
            };
            event.prevent_default();
            dispatch.emit(Action::Step(toward));
        })
    };
    let part = (state.at as f64 / reach as f64 * 1000.0).min(1000.0);
    let text =
        format!("{} of {}{}", time(state.at), if state.settled() { "" } else { "about " }, time(reach));
    html! {
        <div class="transport" role="group" aria-label="Race">
            <div class="buttons">
                <button type="button" class="primary" data-testid="play" onclick={on(run.1)}>{ run.0 }</button>
                <button type="button" data-testid="skip" aria-disabled={state.over().to_string()} onclick={skip}>
                    { "Show the result" }</button>
                <button type="button" data-testid="restart" onclick={on(Action::Restart)}>{ "Restart, same seed" }</button>
                <button type="button" data-testid="new-seed" onclick={new_seed}>{ "New seed" }</button>
                <button type="button" data-testid="cancel" aria-disabled={state.settled().to_string()} onclick={on(Action::Cancel)}>
                    { "Cancel" }</button>
                <label class="speed">{ "Speed " }
                    <select onchange={speed} data-testid="speed">
                        { for SPEEDS.into_iter().map(|(name, factor)| html! {
                            <option value={factor.to_string()} selected={factor == state.speed}>{ name }</option>
                        }) }
                    </select>
                </label>
            </div>
            <div class="scale">
                <button type="button" data-testid="step-back" aria-label="The event before" title="The event before (,)"
                    aria-disabled={state.step(Toward::Past).is_none().to_string()} onclick={on(Action::Step(Toward::Past))}>{ "‹ event" }</button>
                <input type="range" min="0" max="1000" step="1" value={format!("{part:.0}")} oninput={seek}
                    onkeydown={keys} aria-label="simulated time" aria-valuetext={text.clone()} data-testid="time" />
                <button type="button" data-testid="step-forward" aria-label="The next event" title="The next event (.)"
                    aria-disabled={state.step(Toward::Future).is_none().to_string()} onclick={on(Action::Step(Toward::Future))}>{ "event ›" }</button>
                <output class="clock" aria-live="off" data-testid="clock">{ format!("simulated {text}") }
                    <span class="quiet">{ if state.starved() { " · computing…" } else { "" } }</span>
                </output>
                <span class="quiet">{ format!("seed {}", param("seed").map_or_else(String::new, |p| p.get(&state.config))) }</span>
            </div>
            <p class="happened" data-testid="happened">
                // While time goes on nobody could read it.
                { if state.playing() { String::new() } else { moment::line(state) } }
            </p>
        </div>
    }
}
