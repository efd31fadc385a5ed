//! One policy's column of the race: how its worker is doing, what its router just did, its replicas.

use std::cell::Cell;
use std::rc::Rc;

use wasm_bindgen::JsCast;
use yew::prelude::*;

use super::{Mark, Replica, Why};
use crate::engine::RequestId;
use crate::policy::{PolicyKind, grouped};
use crate::ui::dom;
use crate::ui::playback::{ReplicaView, Routed};
use crate::ui::state::{Action, Status};
use crate::ui::words::{colour_of, seconds, tenant_name};
use crate::worker::{Finished, Progress};

/// A lane at the moment shown.
#[derive(Clone, Properties)]
pub struct Props {
    /// Which column.
    pub lane: usize,
    /// What it is called, where that is not its policy's name.
    #[prop_or_default]
    pub title: Option<AttrValue>,
    /// Its policy.
    pub policy: PolicyKind,
    /// Who decided where the request that is explained goes.
    pub decided: PolicyKind,
    /// What is said of requests that were rejected.
    pub rejected: Option<String>,
    /// How its worker is doing.
    pub status: Status,
    /// How far it has computed.
    pub progress: Progress,
    /// Its replicas.
    pub replicas: Vec<Rc<ReplicaView>>,
    /// The latest few that were routed, the newest first.
    pub recent: Vec<Rc<Routed>>,
    /// How many were routed.
    pub routed: usize,
    /// The request that is explained.
    pub shown: Option<Rc<Routed>>,
    /// What has become of it.
    pub life: Vec<String>,
    /// Whether the reader chose it.
    pub chosen: bool,
    /// How many requests a replica runs at most.
    pub batch: u32,
    /// Whether its worker waits until another is done.
    pub waits: bool,
    /// Whether all replicas are drawn, however many.
    pub all: bool,
    /// Tells what the reader does.
    pub dispatch: Callback<Action>,
}

impl PartialEq for Props {
    fn eq(&self, other: &Props) -> bool {
        let same = |a: &[Rc<ReplicaView>], b: &[Rc<ReplicaView>]| {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| Rc::ptr_eq(a, b))
        };
        same(&self.replicas, &other.replicas)
            && (self.lane, self.policy, &self.status, self.progress)
                == (other.lane, other.policy, &other.status, other.progress)
            && (self.routed, &self.shown, &self.life, self.chosen)
                == (other.routed, &other.shown, &other.life, other.chosen)
            && (self.batch, self.waits, self.all) == (other.batch, other.waits, other.all)
            && (&self.rejected, &self.title, self.decided) == (&other.rejected, &other.title, other.decided)
    }
}

/// Replicas that are drawn, unless the reader asks for all.
pub const FEW_REPLICAS: usize = 8;

/// The column.
#[component]
pub fn Column(props: &Props) -> Html {
    let (lane, shown) = (props.lane, props.shown.as_ref().map(|r| r.arrival.request));
    let name = props.policy.name();
    let id = if props.title.is_some() { "fork" } else { name };
    let few = if props.all { props.replicas.len() } else { FEW_REPLICAS };
    let compact = props.replicas.len() > FEW_REPLICAS;
    let keys = {
        let (dispatch, routed) = (props.dispatch.clone(), props.routed);
        Callback::from(move |event: KeyboardEvent| {
            let Some(now) = shown.filter(|_| routed > 0) else { return };
            let to = match event.key().as_str() {
                "ArrowRight" | "ArrowDown" => now.saturating_add(1),
                "ArrowLeft" | "ArrowUp" => now.saturating_sub(1),
                "Home" => 0,
                "End" => RequestId::MAX,
                _ => return,
            };
            event.prevent_default();
            let to = to.min(routed as RequestId - 1);
            dispatch.emit(Action::Select(Some(to)));
            focus_soon(lane, to);
        })
    };
    let (focused, onfocusin, onfocusout) = use_focus_within();
    use_effect(move || {
        // A request that goes on to its next stage is drawn anew there: the focus follows it.
        if focused.get()
            && nobody_is_focused()
            && let Some(request) = shown
        {
            focus(lane, request);
        }
    });
    html! {
        <section class={classes!("lane", name)} data-lane={props.lane.to_string()}
            data-testid={format!("lane-{id}")} aria-labelledby={format!("lane-{id}")}>
            <header>
                <h3 id={format!("lane-{id}")}><Mark policy={props.policy} />{ props.title.as_deref().unwrap_or(name).to_owned() }</h3>
                <p class="rule">{ props.policy.summary() }</p>
                { status(props) }
                if let Some(rejected) = &props.rejected {
                    <p class="dead" data-testid="rejected">{ rejected }</p>
                }
            </header>
            <div class="router" aria-hidden="true">
                { for props.recent.iter().map(|r| html! {
                    <span key={r.arrival.request} class="hop">
                        <span class={classes!("swatch", format!("t{}", colour_of(r.arrival.tenant)))}></span>
                        { format!("{}{}→{}", tenant_name(r.arrival.tenant), r.arrival.request, r.replica) }
                    </span>
                }) }
            </div>
            <Why policy={props.decided} routed={props.shown.clone()} life={props.life.clone()}
                refused={props.rejected.is_some()} latest={!props.chosen} dispatch={props.dispatch.clone()} />
            <div class={classes!("replicas", compact.then_some("many"))} onkeydown={keys} {onfocusin}
                {onfocusout}>
                { for props.replicas.iter().take(few).map(|view| {
                    let here = props.shown.as_ref().filter(|r| r.replica == view.index)
                        .map(|r| r.arrival.request);
                    html! {
                        <Replica key={view.index} view={view.clone()} batch={props.batch} stop={here}
                            selected={here.filter(|_| props.chosen)} {compact}
                            dispatch={props.dispatch.clone()} />
                    }
                }) }
            </div>
            if props.replicas.len() > few {
                <p class="quiet">{ format!("+ {} more replicas", props.replicas.len() - few) }</p>
            }
        </section>
    }
}

fn status(props: &Props) -> Html {
    let Progress { finished, of, .. } = props.progress;
    let restart = {
        let (dispatch, lane) = (props.dispatch.clone(), props.lane);
        dispatch.reform(move |_: MouseEvent| Action::Revive(lane))
    };
    let again = |word: &'static str| {
        html! { <button type="button" class="small" onclick={restart.clone()} data-testid="revive">{ word }</button> }
    };
    let text = match &props.status {
        Status::Starting if props.waits => html! { "waits for its turn: one stop-watch at a time" },
        Status::Starting => html! { "starting its worker…" },
        Status::Running => html! {
            <>
                <progress max={of.to_string()} value={finished.to_string()}
                    aria-label={format!("{} computed", props.policy.name())}></progress>
                { format!(" computing: {} of {} requests", grouped(finished.into()), grouped(of.into())) }
            </>
        },
        Status::Done(finished) => html! {
            { format!("computed in {}{}", seconds(finished.wall), memory(finished)) }
        },
        Status::Dead(why) => html! {
            <span class="dead" role="alert">{ format!("This worker died. {why} ") }{ again("Restart it") }</span>
        },
        Status::Refused(why) => html! {
            <span class="dead" role="alert">{ format!("This cannot be run: {why}.") }</span>
        },
        Status::Cancelled => html! { <>{ "cancelled " }{ again("Run it") }</> },
    };
    html! { <p class="status" data-testid="status">{ text }</p> }
}

/// What a run holds in memory, and of what that is made up: the parts that are shown add up.
fn memory(finished: &Finished) -> String {
    let tenths = |bytes: u64| (bytes as f64 * 10.0 / 1_048_576.0).round() as u64;
    let mib = |tenths: u64| format!("{}.{} MiB", tenths / 10, tenths % 10);
    let [all, kv, weights] = [finished.memory_bytes, finished.kv_bytes, finished.weight_bytes].map(tenths);
    let said = format!("; {} of memory", mib(all));
    match kv {
        0 => said,
        kv => format!(
            "{said}: {} of keys and values, {} of weights, {} of program, trace and room to spare",
            mib(kv),
            mib(weights),
            mib(all.saturating_sub(kv + weights))
        ),
    }
}

/// Focuses a request of a lane once it has been drawn.
fn focus_soon(lane: usize, request: RequestId) {
    gloo_timers::callback::Timeout::new(30, move || focus(lane, request)).forget();
}

fn focus(lane: usize, request: RequestId) {
    let selector = format!("[data-lane='{lane}'] [data-request='{request}'].chip");
    let found = dom::document().query_selector(&selector).ok().flatten();
    if let Some(chip) = found.and_then(|e| e.dyn_into::<web_sys::HtmlElement>().ok()) {
        let _ = chip.focus();
    }
}

fn nobody_is_focused() -> bool {
    dom::document().active_element().is_none_or(|element| element.tag_name() == "BODY")
}

/// Whether the focus is among the requests, or was on one that has just been taken away.
#[hook]
fn use_focus_within() -> (Rc<Cell<bool>>, Callback<FocusEvent>, Callback<FocusEvent>) {
    let focused = use_memo((), |()| Cell::new(false));
    let into = {
        let focused = focused.clone();
        Callback::from(move |_: FocusEvent| focused.set(true))
    };
    let out = {
        let focused = focused.clone();
        Callback::from(move |event: FocusEvent| {
            let node = event.target().and_then(|t| t.dyn_into::<web_sys::Node>().ok());
            if node.is_some_and(|node| node.is_connected()) {
                focused.set(false);
            }
        })
    };
    (focused, into, out)
}
