//! What the race came to: the table, and what to take away from here.

use std::rc::Rc;

use yew::prelude::*;

use crate::params::Config;
use crate::plot::Chart;
use crate::policy::PolicyKind;
use crate::report::{Better, columns, join_json, winners};
use crate::sim::Summary;
use crate::ui::beforehand::{beforehand, ended};
use crate::ui::charts::{charts, moment};
use crate::ui::dom::{self, use_visible};
use crate::ui::moment::line;
use crate::ui::state::{Lane, State};
use crate::ui::widgets::{Mark, Plot, Said, Taken};
use crate::ui::words::{flags, verdict};

/// The command that does the same natively.
fn command(config: &Config) -> String {
    format!("warmroute run{}", flags(config, &[]))
}

fn results(state: &State) -> Vec<(PolicyKind, &Summary)> {
    state.lanes.iter().filter_map(|lane| Some((lane.policy, &lane.finished()?.summary))).collect()
}

fn table(state: &State) -> Html {
    let columns = columns();
    let shown = if state.over() { results(state) } else { Vec::new() };
    let summaries: Vec<Summary> = shown.iter().map(|(_, summary)| (*summary).clone()).collect();
    let wins: Vec<Vec<bool>> = columns.iter().map(|column| winners(column, &summaries)).collect();
    let row = |policy: PolicyKind| {
        let at = shown.iter().position(|(own, _)| *own == policy);
        let cells = columns.iter().zip(&wins).map(|(column, wins)| match at {
            None => html! { <td class="quiet">{ "…" }</td> },
            Some(at) => html! {
                <td class={wins[at].then_some("best")}>{ column.text(&summaries[at]) }
                    if wins[at] { <span class="star" aria-hidden="true">{ "★" }</span><span class="hidden">{ " best" }</span> }
                </td>
            },
        });
        let spread = at.map_or_else(
            || "…".into(),
            |at| summaries[at].assignments.iter().map(u64::to_string).collect::<Vec<_>>().join(" "),
        );
        html! {
            <tr data-testid={format!("row-{}", policy.name())}>
                <th scope="row"><Mark {policy} />{ policy.name() }</th>
                { for cells }
                <td class="assignments">{ spread }</td>
            </tr>
        }
    };
    html! {
        <section class="scroll" tabindex="0" aria-label="Results table">
            <table data-testid="results">
                <caption>{ conditions(&state.config) }</caption>
                <thead><tr>
                    <th scope="col">{ "policy" }</th>
                    { for columns.iter().map(|c| html! {
                        <th scope="col" title={c.help}>{ c.heading() }
                            <span class="better">{ if c.better == Better::Lower { "↓ lower wins" } else { "↑ higher wins" } }</span>
                        </th>
                    }) }
                    <th scope="col">{ "requests, by replica" }</th>
                </tr></thead>
                <tbody>{ for state.lanes.iter().map(|lane| row(lane.policy)) }</tbody>
            </table>
        </section>
    }
}

/// What the figures hold for.
fn conditions(config: &Config) -> String {
    let get = |key: &str| crate::params::param(key).map_or_else(String::new, |p| p.get(config));
    let model = match config.backend {
        crate::params::BackendKind::TinyGpt => {
            "TinyGPT, 5,838,080 parameters with random weights, computed in this page"
        }
        crate::params::BackendKind::Modelled => "no tensors, the scheduler alone",
    };
    let priced = match config.clock {
        crate::params::ClockKind::Modelled => format!("modelled clock at the price {}", get("cost")),
        crate::params::ClockKind::Measured => "a stop-watch on this machine".to_owned(),
    };
    format!(
        "{model}; {priced}; {} replicas on {} devices; {} requests of {} tenants at {} a second; good means TTFT ≤ {} s and ITL ≤ {} s; seed {}.",
        config.replicas,
        get("devices"),
        config.requests,
        config.tenants,
        config.rate,
        config.slo_ttft,
        config.slo_itl,
        config.seed
    )
}

/// What the plots depend on: the moment, as finely as it is drawn, and how much has been told of each
/// run by then.
#[derive(Clone, PartialEq)]
struct Drawn {
    moment: u64,
    told: Vec<(u32, usize, bool)>,
}

fn told(state: &State) -> Vec<(u32, usize, bool)> {
    // Before the result there is nothing to draw without a replay, so nothing to be drawn again.
    let points = |lane: &Lane| if state.at > 0 { lane.points.len() } else { 0 };
    state.lanes.iter().map(|lane| (lane.run, points(lane), state.settled())).collect()
}

/// As what a chart of the race is taken along.
fn taken(chart: &Chart, config: &Config) -> Taken {
    Taken {
        id: format!("figure-{}", chart.title.to_ascii_lowercase()).into(),
        name: chart.title.clone().into(),
        command: command(config).into(),
    }
}

/// The plots and the table; the plots to be taken along where that can be.
fn figures(state: &State, plots: &[Rc<Chart>], live: bool) -> Html {
    html! {
        <>
            <div class="plots">
                { for plots.iter().cloned().map(|chart| {
                    let key = chart.title.clone();
                    let label = format!("{} over simulated time, one line a policy; the table below has the final figures", chart.title);
                    let taken = live.then(|| taken(&chart, &state.config));
                    html! { <Plot {key} {chart} {label} {taken} /> }
                }) }
            </div>
            { table(state) }
        </>
    }
}

/// What was rejected under which policy, where anything was.
fn rejections(results: &[(PolicyKind, &Summary)]) -> Vec<String> {
    let said = results.iter().filter(|(_, summary)| summary.rejected > 0);
    said.map(|(policy, summary)| {
        let why = summary.rejections.last().map_or("", |last| last.message.as_str());
        format!(
            "{}: {} of {} requests rejected, since they can never be served ({why}).",
            policy.name(),
            summary.rejected,
            summary.arrived
        )
    })
    .collect()
}

/// What a fork came to, said at the moment at which it begins.
fn forked(state: &State) -> String {
    let fork = state.fork.as_ref().filter(|fork| fork.at == state.at);
    let both = fork.and_then(|fork| Some((fork.original.as_ref()?, fork.future.finished()?)));
    both.map_or_else(String::new, |(original, finished)| {
        let told = columns().into_iter().filter(|c| ["reuse", "ttft_p50"].contains(&c.key));
        let told =
            told.map(|c| format!("{} {}, was {}", c.heading(), c.text(&finished.summary), c.text(original)));
        format!(" The fork is computed: {}.", told.collect::<Vec<_>>().join("; "))
    })
}

/// What the section is given.
#[derive(Clone, PartialEq, Properties)]
pub struct ResultsProps {
    /// The page's state.
    pub state: crate::ui::reducible::Shared,
}

/// The section.
#[component]
pub fn Results(props: &ResultsProps) -> Html {
    let state = &*props.state.0;
    let place = use_node_ref();
    let visible = use_visible(place.clone());
    let now = Drawn { moment: moment(state), told: told(state) };
    // What nobody sees follows time only to its end.
    let kept = use_mut_ref(|| None);
    let drawn = if visible || state.over() { now } else { kept.borrow_mut().take().unwrap_or(now) };
    *kept.borrow_mut() = Some(drawn.clone());
    let plots = {
        let state = props.state.clone();
        use_memo(drawn, move |_| charts(&state.0))
    };
    let shown = results(state);
    let complete = shown.len() == state.lanes.len() && !shown.is_empty();
    let line = if state.paused && !state.over() { line(state) + &forked(state) } else { String::new() };
    let said = if state.over() && complete { verdict(&shown) } else { line };
    let rejected = if state.over() { rejections(&shown) } else { Vec::new() };
    let config = state.config.clone();
    let copy_link =
        Callback::from(|_: MouseEvent| dom::copy(&dom::window().location().href().unwrap_or_default()));
    let copy_command = Callback::from(move |_: MouseEvent| dom::copy(&command(&config)));
    let save = {
        let state = props.state.clone();
        Callback::from(move |_: MouseEvent| {
            let arrays = state.lanes.iter().filter_map(|lane| lane.finished()).map(|f| f.json.as_str());
            dom::download("warmroute.json", "application/json", &join_json(arrays));
        })
    };
    html! {
        <section id="results" ref={place} aria-labelledby="results-title">
            <h2 id="results-title">{ "What it came to" }</h2>
            <div class="computed">{ figures(state, &plots, true) }</div>
            { beforehand(|| {
                let state = ended();
                let said = verdict(&results(&state));
                html! {
                    <>
                        <p class="intro">{ "Computed when this page was built, by the scheduler alone under the modelled clock; \
                            with JavaScript every token is computed as well, for the same figures. " }{ said }</p>
                        { figures(&state, &charts(&state), false) }
                    </>
                }
            }) }
            { for rejected.into_iter().map(|said| html! { <p class="dead" data-testid="rejections">{ said }</p> }) }
            <Said id="verdict" text={said} />
            <p class="reproduce"><code data-testid="command">{ command(&state.config) }</code></p>
            <div class="buttons">
                <button type="button" onclick={copy_link} data-testid="copy-link">{ "Copy link" }</button>
                <button type="button" onclick={copy_command} data-testid="copy-command">{ "Copy command line" }</button>
                <button type="button" onclick={save} disabled={!complete} data-testid="download">{ "Download JSON" }</button>
            </div>
            <p class="quiet">{ "The command line writes the same figures, byte for byte under the modelled clock." }</p>
        </section>
    }
}
