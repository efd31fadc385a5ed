//! The race: one column a policy, the same trace, the same clock.

use std::cell::RefCell;
use std::rc::Rc;

use yew::prelude::*;

use super::{ForkHere, Props};
use crate::params::ClockKind;
use crate::policy::PolicyKind;
use crate::ui::beforehand::{beforehand, underway};
use crate::ui::dom::{self, use_frames, use_visible};
use crate::ui::life::Life;
use crate::ui::moment::refusals;
use crate::ui::playback::Rewind;
use crate::ui::reducible::Shared;
use crate::ui::state::{Action, Lane, State, Toward};
use crate::ui::widgets::lives::Row;
use crate::ui::widgets::{Column, Lives, Transport};
use crate::ui::words::{TENANT_COLOURS, life, tenant_name, time};

/// Replicas of a column that are drawn before the reader asks for all.
const FEW: u32 = 8;

/// A fold of one lane's events, and of which run they are.
struct Folded {
    run: u32,
    lane: usize,
    fold: Rewind,
}

/// The folds of all lanes at the moment shown, and of the fork, each kept from the last time.
fn fold_to(folds: &mut Vec<Folded>, state: &State) {
    let known = |f: &Folded| state.every().nth(f.lane).is_some_and(|lane| lane.run == f.run);
    folds.retain(known);
    for (index, lane) in state.every().enumerate() {
        if !folds.iter().any(|f| f.lane == index) {
            let fork = state.fork.as_ref().filter(|_| index == state.lanes.len());
            let replicas = fork.map_or(state.config.replicas, |fork| fork.replicas);
            let fold = Rewind::new(replicas as usize, state.config.pool_blocks() as usize);
            folds.push(Folded { run: lane.run, lane: index, fold });
        }
    }
    folds.sort_by_key(|f| f.lane);
    for (folded, lane) in folds.iter_mut().zip(state.every()) {
        folded.fold.seek(&lane.log, state.at);
    }
}

/// The chosen request in every lane.
fn lives(state: &State, folds: &[Folded]) -> Vec<Row> {
    let Some(request) = state.selected else { return Vec::new() };
    let rows = state.every().zip(folds).map(|(lane, folded)| {
        let fold = folded.fold.fold();
        let name = if folded.lane < state.lanes.len() { lane.policy.name() } else { FORK };
        let routed = fold.find(request).cloned();
        Row {
            name: name.into(),
            policy: decider(state, folded.lane, routed.as_ref().map_or(state.at, |r| r.at)),
            life: Life::of(request, fold, &lane.log, state.at),
            routed,
        }
    });
    rows.collect()
}

/// What the fork's column is called.
const FORK: &str = "the fork";

/// Who decides in a lane at a moment: in the fork, up to its own, whoever does in its lane.
fn decider(state: &State, lane: usize, at: u64) -> PolicyKind {
    match &state.fork {
        Some(fork) if lane == state.lanes.len() && at <= fork.at => fork.of.1,
        Some(fork) if lane == state.lanes.len() => fork.future.policy,
        _ => state.lanes[lane].policy,
    }
}

/// The race at a moment, to be looked at.
fn still(state: &Shared) -> Html {
    let mut folds = Vec::new();
    fold_to(&mut folds, state);
    let props = Props { state: state.clone(), dispatch: Callback::noop() };
    html! {
        <>
            <p class="quiet">{ format!("The race {} after its start, run by the scheduler alone when this page was built.",
                time(state.at)) }</p>
            <div class="lanes">
                { for state.lanes.iter().zip(&folds).map(|(lane, folded)| column(&props, lane, folded, false)) }
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
    let columns = |fork: bool| {
        let drawn =
            state.every().zip(folds.iter()).filter(move |(_, f)| (f.lane == state.lanes.len()) == fork);
        drawn.map(|(lane, folded)| column(props, lane, folded, *all))
    };
    let rows = lives(state, &folds);
    let keys = {
        let (dispatch, chosen) = (props.dispatch.clone(), state.selected.is_some());
        Callback::from(move |event: KeyboardEvent| {
            let held = event.ctrl_key() || event.alt_key() || event.meta_key();
            let action = match event.key().as_str() {
                "Escape" if chosen => Action::Select(None),
                "," if !held && !dom::takes_letters(&event) => Action::Step(Toward::Past),
                "." if !held && !dom::takes_letters(&event) => Action::Step(Toward::Future),
                _ => return,
            };
            event.prevent_default();
            dispatch.emit(action);
        })
    };
    let more = {
        let all = all.clone();
        Callback::from(move |_: MouseEvent| all.set(!*all))
    };
    let tenants = state.config.tenants.min(26);
    html! {
        <section id="race" class="race" ref={place} aria-labelledby="race-title" data-testid="race" onkeydown={keys}>
            <h2 id="race-title">{ "The race" }</h2>
            <p class="intro">{ format!("{} requests arrive at {} a second. Each column sees the same requests at the \
                same moments and differs only in who decides where they go. Point at a request, or step through \
                them with the arrow keys, to see why it went where it went. Time is yours: stop it, go through it \
                event by event with the comma and the full stop, and change what comes next.",
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
            <div class="lanes computed">{ for columns(false) }</div>
            { beforehand(|| still(&underway())) }
            if state.config.replicas > FEW {
                <button type="button" onclick={more} aria-pressed={all.to_string()}>
                    { if *all { "Draw fewer replicas".to_owned() } else { format!("Draw all {} replicas", state.config.replicas) } }
                </button>
            }
            <Lives {rows} dispatch={props.dispatch.clone()} />
            <ForkHere state={props.state.clone()} dispatch={props.dispatch.clone()} />
            if state.fork.is_some() { <div class="lanes forked">{ for columns(true) }</div> }
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

fn column(props: &Props, lane: &Lane, folded: &Folded, all: bool) -> Html {
    let state = &*props.state.0;
    let (index, fold) = (folded.lane, folded.fold.fold());
    let policy = decider(state, index, state.at);
    let title = (index == state.lanes.len()).then(|| AttrValue::from(format!("{FORK}: {}", policy.name())));
    let selected = state.selected.and_then(|id| fold.find(id));
    let shown = selected.or(fold.routed.last()).cloned();
    let decided = decider(state, index, shown.as_ref().map_or(state.at, |r| r.at));
    let told = shown.as_ref().and_then(|r| fold.recorder.record(r.arrival.request)).map(life);
    let recent: Vec<_> = fold.recent.iter().filter_map(|id| fold.find(*id).cloned()).collect();
    let key = if title.is_some() { FORK } else { policy.name() };
    html! {
        <Column {key} lane={index} {title} {policy} {decided} status={lane.status.clone()} rejected={refusals(&fold.refused)}
            progress={lane.progress} replicas={fold.replicas.clone()} {recent} routed={fold.routed.len()}
            {shown} life={told.unwrap_or_default()} chosen={selected.is_some()} batch={state.config.max_batch}
            waits={!lane.settled() && index < state.lanes.len() && state.wanted(index).is_none()} {all}
            dispatch={props.dispatch.clone()} />
    }
}
