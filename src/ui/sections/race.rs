//! The race: one column a policy, the same trace, the same clock.

use std::cell::RefCell;
use std::rc::Rc;

use yew::prelude::*;

use super::Props;
use crate::params::ClockKind;
use crate::ui::beforehand::{beforehand, underway};
use crate::ui::dom::{self, use_frames, use_visible};
use crate::ui::playback::Fold;
use crate::ui::reducible::Shared;
use crate::ui::state::{Action, Lane, State};
use crate::ui::widgets::{Column, Transport};
use crate::ui::words::{TENANT_COLOURS, life, tenant_name, time};

/// Replicas of a column that are drawn before the reader asks for all.
const FEW: u32 = 8;

/// A fold of one lane's events, and of which run they are.
struct Folded {
    run: u32,
    lane: usize,
    fold: Fold,
}

/// The folds of all lanes at the moment shown, each kept from the last time.
fn fold_to(folds: &mut Vec<Folded>, state: &State) {
    folds.retain(|f| state.lanes.get(f.lane).is_some_and(|lane| lane.run == f.run));
    for (index, lane) in state.lanes.iter().enumerate() {
        if !folds.iter().any(|f| f.lane == index) {
            let fold = Fold::new(state.config.replicas as usize, state.config.pool_blocks() as usize);
            folds.push(Folded { run: lane.run, lane: index, fold });
        }
    }
    folds.sort_by_key(|f| f.lane);
    for folded in folds {
        folded.fold.seek(&state.lanes[folded.lane].log, state.at);
    }
}

/// The race at a moment, to be looked at.
fn still(state: &Shared) -> Html {
    let mut folds = Vec::new();
    fold_to(&mut folds, state);
    let props = Props { state: state.clone(), dispatch: Callback::noop() };
    let columns = state.lanes.iter().zip(&folds).enumerate();
    html! {
        <>
            <p class="quiet">{ format!("The race {} after its start, run by the scheduler alone when this page was built.",
                time(state.at)) }</p>
            <div class="lanes">
                { for columns.map(|(index, (lane, folded))| column(&props, index, lane, &folded.fold, false)) }
            </div>
        </>
    }
}

/// The race.
#[component]
pub fn Race(props: &Props) -> Html {
    let state = &*props.state.0;
    let place = use_node_ref();
    let visible = use_visible(place.clone());
    use_frames(visible && state.playing(), props.dispatch.reform(Action::Tick));
    let all = use_state_eq(|| false);
    let folds: Rc<RefCell<Vec<Folded>>> = use_mut_ref(Vec::new);
    fold_to(&mut folds.borrow_mut(), state);
    let folds = folds.borrow();
    let columns = state
        .lanes
        .iter()
        .zip(folds.iter())
        .enumerate()
        .map(|(index, (lane, folded))| column(props, index, lane, &folded.fold, *all));
    let more = {
        let all = all.clone();
        Callback::from(move |_: MouseEvent| all.set(!*all))
    };
    let tenants = state.config.tenants.min(26);
    html! {
        <section id="race" class="race" ref={place} aria-labelledby="race-title" data-testid="race">
            <h2 id="race-title">{ "The race" }</h2>
            <p class="intro">{ format!("{} requests arrive at {} a second. Each column sees the same requests at the \
                same moments and differs only in who decides where they go. Point at a request, or step through \
                them with the arrow keys, to see why it went where it went.",
                state.config.requests, state.config.rate) }</p>
            <super::chapter::Bet state={props.state.clone()} dispatch={props.dispatch.clone()} />
            <Transport state={props.state.clone()} dispatch={props.dispatch.clone()} />
            <p class="key tenants">
                { for (0..tenants).map(|t| html! {
                    <span><span class={classes!("swatch", format!("t{}", t as usize % TENANT_COLOURS.len()))}></span>
                        { format!("tenant {}", tenant_name(Some(t))) }</span>
                }) }
                <span><span class="swatch cold t0"></span>{ "hollow when done: computed from nothing" }</span>
                <span><span class="swatch cached t0"></span>{ "pale block: cached, held by nobody" }</span>
            </p>
            if state.config.clock == ClockKind::Measured {
                <p class="notice">{ "The clock is a stop-watch on this machine, so the policies run one after the \
                    other: side by side they would measure how they hinder each other." }</p>
            }
            <div class="lanes computed">{ for columns }</div>
            { beforehand(|| still(&underway())) }
            if state.config.replicas > FEW {
                <button type="button" onclick={more} aria-pressed={all.to_string()}>
                    { if *all { "Draw fewer replicas".to_owned() } else { format!("Draw all {} replicas", state.config.replicas) } }
                </button>
            }
            <details class="quiet"><summary>{ "What if a worker dies?" }</summary>
                <p>{ "Each policy runs in a worker of its own. End one while it computes: its column says so after \
                    fifteen seconds of silence, the others go on, and it can be started again." }</p>
                <div class="buttons">
                    { for state.lanes.iter().enumerate().map(|(index, lane)| html! {
                        <button type="button" disabled={lane.settled()} onclick={move |_: MouseEvent| dom::kill(index)}
                            data-testid={format!("kill-{index}")}>{ format!("End the worker of {}", lane.policy.name()) }</button>
                    }) }
                </div>
            </details>
            if state.lanes.iter().any(Lane::truncated) {
                <p class="quiet">{ "More happens in this race than is kept for the replay: after that the page goes \
                    straight to the result, which counts everything." }</p>
            }
        </section>
    }
}

fn column(props: &Props, index: usize, lane: &Lane, fold: &Fold, all: bool) -> Html {
    let state = &*props.state.0;
    let selected = state.selected.and_then(|id| fold.find(id));
    let shown = selected.or(fold.routed.last()).cloned();
    let told = shown.as_ref().and_then(|r| fold.recorder.record(r.arrival.request)).map(life);
    let recent: Vec<_> = fold.recent.iter().filter_map(|id| fold.find(*id).cloned()).collect();
    html! {
        <Column key={lane.policy.name()} lane={index} policy={lane.policy} status={lane.status.clone()}
            progress={lane.progress} replicas={fold.replicas.clone()} {recent} routed={fold.routed.len()}
            {shown} life={told.unwrap_or_default()} chosen={selected.is_some()} batch={state.config.max_batch}
            waits={!lane.settled() && state.wanted(index).is_none()} {all} dispatch={props.dispatch.clone()} />
    }
}
