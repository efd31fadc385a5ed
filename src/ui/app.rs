//! The page: owns the state and the workers, and lays out the sections.

use gloo_timers::callback::{Interval, Timeout};
use wasm_bindgen::prelude::*;
use yew::prelude::*;

use super::crew::Crew;
use super::dom;
use super::pool::Pool;
use super::reducible::Shared;
use super::sections::chapter::{
    Affinity, Costs, HotPrefix, Loads, PrefixBlocks, Problem, Reading, Scatter, Seeds, Takeaways,
};
use super::sections::{ColdStart, Controls, Glossary, Notices, Opening, Prices, Race, Results, Worth};
use super::state::{Action, State};
use super::widgets::FIGURE;

/// How long the page waits for the next change of a control before it starts the race anew, in
/// milliseconds.
const SETTLE: u32 = 200;

/// Takes over what was prerendered into `#app`, or renders into it where it is empty.
#[cfg(target_arch = "wasm32")]
pub fn start() {
    console_error_panic_hook::set_once();
    if let Some(root) = dom::document().get_element_by_id("app") {
        let empty = root.first_element_child().is_none();
        let renderer = yew::Renderer::<App>::with_root(root);
        if empty {
            renderer.render()
        } else {
            renderer.hydrate()
        };
    }
}

/// What belongs into `#app` before any script runs: the page in its default state.
#[cfg(not(target_arch = "wasm32"))]
pub async fn prerender() -> String {
    super::beforehand::plain(&yew::LocalServerRenderer::<App>::new().render().await)
}

/// The whole page.
#[component]
fn App() -> Html {
    // The first render is what was prerendered: it knows nothing of the reader or the address.
    let state = use_reducer_eq(|| Shared(State::open("", false).into()));
    let dispatch = {
        let dispatcher = state.dispatcher();
        use_callback((), move |action: Action, ()| dispatcher.dispatch(action))
    };
    let shared: Shared = (*state).clone();
    use_workers(shared.clone(), dispatch.clone());
    use_pool(&shared, dispatch.clone());
    use_address(shared.query(), dispatch.clone());
    let cold_changed = dispatch.reform(Action::Cold);
    html! {
        <>
            <Opening />
            <main id="main">
                <Notices state={shared.clone()} dispatch={dispatch.clone()} />
                <Problem />
                <Scatter />
                <Loads />
                <Affinity />
                <PrefixBlocks />
                <Race state={shared.clone()} dispatch={dispatch.clone()} />
                <Results state={shared.clone()} />
                <Seeds state={shared.clone()} dispatch={dispatch.clone()} />
                <Controls state={shared.clone()} dispatch={dispatch.clone()} />
                <Prices state={shared.clone()} dispatch={dispatch.clone()} />
                <Reading />
                <HotPrefix />
                <Worth config={shared.config.clone()} study={shared.study.clone()} dispatch={dispatch.clone()} />
                <Costs state={shared.clone()} dispatch={dispatch.clone()} />
                <ColdStart settings={state.cold} on_change={cold_changed} />
                <Takeaways />
                <Glossary />
            </main>
        </>
    }
}

/// Keeps the workers at what the state wants, and an eye on them.
#[hook]
fn use_workers(state: Shared, dispatch: Callback<Action>) {
    let crew = use_mut_ref(|| Crew::new(dispatch));
    let wanted: Vec<Option<u32>> = (0..state.lanes.len()).map(|lane| state.wanted(lane)).collect();
    let measuring = matches!(state.bench, super::state::Bench::Running(..));
    let forked = state.fork.as_ref().and_then(|fork| fork.wanted());
    {
        let crew = crew.clone();
        use_effect_with((wanted, state.paused, measuring, forked), move |_| {
            let wait = if crew.borrow().is_empty() { 0 } else { SETTLE };
            let later = Timeout::new(wait, move || crew.borrow_mut().sync(&state));
            move || drop(later)
        });
    }
    use_effect_with((), move |()| {
        let own = crew.clone();
        let kill = offer(dom::KILL, move |lane| own.borrow().kill(lane));
        let watch = Interval::new(1_000, move || crew.borrow().watch());
        move || drop((watch, kill))
    });
}

/// Offers to end a worker, under a name of the window.
fn offer(name: &str, kill: impl Fn(usize) + 'static) -> Closure<dyn Fn(u32)> {
    let kill = Closure::<dyn Fn(u32)>::new(move |at: u32| kill(at as usize));
    let _ = js_sys::Reflect::set(&dom::window(), &name.into(), kill.as_ref());
    kill
}

/// Keeps the pool at what the study wants, and an eye on it.
#[hook]
fn use_pool(state: &Shared, dispatch: Callback<Action>) {
    let pool = use_mut_ref(|| Pool::new(dispatch));
    let wanted = state.study.wanted();
    {
        let pool = pool.clone();
        use_effect_with(wanted.as_ref().map(|(number, _)| *number), move |_| pool.borrow_mut().sync(wanted));
    }
    use_effect_with((), move |()| {
        let own = pool.clone();
        let kill = offer(dom::KILL_POOL, move |at| own.borrow().kill(at));
        let watch = Interval::new(1_000, move || pool.borrow().watch());
        move || drop((watch, kill))
    });
}

/// Takes the parameters from the address, at first and whenever it changes, and keeps it at those in force.
#[hook]
fn use_address(query: String, dispatch: Callback<Action>) {
    let open = use_state_eq(|| false);
    // What the address says is heard before it is written.
    use_effect_with((*open, query), |(open, query)| {
        if *open {
            dom::set_query(query);
        }
    });
    use_effect_with((), move |()| {
        if dom::prefers("(prefers-reduced-motion: reduce)") {
            dispatch.emit(Action::Still);
        }
        dispatch.emit(Action::Open(dom::query()));
        open.set(true);
        let there = to_figure();
        let listen = |name: &'static str| {
            let dispatch = dispatch.clone();
            gloo_events::EventListener::new(&dom::window(), name, move |_| {
                dispatch.emit(Action::Open(dom::query()));
            })
        };
        let listeners = [listen("popstate"), listen("hashchange")];
        move || drop((listeners, there))
    });
}

/// How long the sections take until they have the heights that they have under what the address says, in milliseconds.
const LAID_OUT: u32 = 150;

/// Goes to the figure that the address names once all has its place, unless the reader has gone past it by then. A figure
/// that is not there before its sweep is run, or its fork, stands for its section.
fn to_figure() -> Option<Timeout> {
    let hash = dom::window().location().hash().ok()?;
    let id = hash.trim_start_matches('#').to_owned();
    if !id.starts_with(FIGURE) {
        return None;
    }
    let find = move || {
        let section = if id.starts_with("figure-sweep") { "worth" } else { "race" };
        let document = dom::document();
        document.get_element_by_id(&id).or_else(|| document.get_element_by_id(section))
    };
    let ahead = find()?.get_bounding_client_rect().top() > -1.0;
    ahead.then(|| {
        Timeout::new(LAID_OUT, move || {
            if let Some(element) = find() {
                element.scroll_into_view();
            }
        })
    })
}
