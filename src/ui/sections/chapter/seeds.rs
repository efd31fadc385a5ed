//! How much of the race's result is luck: the same configuration with twenty seeds.

use yew::prelude::*;

use super::use_one_by_one;
use crate::experiment::Experiment;
use crate::params::{BackendKind, ClockKind, Config};
use crate::policy::PolicyKind;
use crate::report::{Better, Column, columns};
use crate::sim::{Summary, quantile};
use crate::ui::beforehand::beforehand;
use crate::ui::dom::use_visible;
use crate::ui::sections::Props;
use crate::ui::widgets::Mark;

/// Seeds that are tried, from 0 on.
const SEEDS: u64 = 20;

/// A run of more requests is too long to be done twenty times beside the page.
const MOST_REQUESTS: u32 = 500;

/// The figures that are shown, by their titles.
const SHOWN: [&str; 3] = ["TTFT p50", "reuse", "imbalance"];

/// Every policy under one seed.
fn one(config: &Config, policies: &[PolicyKind], seed: u64) -> Option<Vec<Summary>> {
    let config = Config { seed, ..config.clone() };
    let run = |policy: &PolicyKind| {
        let (trace, recorder) = Experiment::run_priced(&config, *policy).ok()?;
        Some(recorder.summary(&config.objectives(), &trace.tenants))
    };
    policies.iter().map(run).collect()
}

/// A strip of one figure: a dot a seed, a row a policy.
fn strip(column: &Column, policies: &[PolicyKind], runs: &[Vec<Summary>]) -> Html {
    let of = |at: usize| -> Vec<f64> { runs.iter().filter_map(|run| (column.value)(run.get(at)?)).collect() };
    let all: Vec<Vec<f64>> = (0..policies.len()).map(of).collect();
    let most = all.iter().flatten().copied().fold(0.0, f64::max);
    let x = |value: f64| 8.0 + 284.0 * if most > 0.0 { value / most } else { 0.0 };
    let text = |value: Option<f64>| value.map_or_else(|| "–".into(), |v| (column.format)(v));
    html! {
        <figure class="strip">
            <figcaption><b>{ column.heading() }</b>{ if column.better == Better::Lower { ", lower wins" } else { ", higher wins" } }</figcaption>
            { for policies.iter().zip(&all).map(|(policy, values)| {
                let mut sorted = values.clone();
                sorted.sort_by(f64::total_cmp);
                let middle = text(quantile(&sorted, 0.5));
                let (low, high) = (text(sorted.first().copied()), text(sorted.last().copied()));
                html! {
                    <div class={classes!("strip-row", policy.name())}>
                        <span><Mark policy={*policy} />{ policy.name() }</span>
                        <svg viewBox="0 0 300 16" role="img"
                            aria-label={format!("{}: median {middle}, from {low} to {high} over {} seeds", policy.name(), values.len())}>
                            { for values.iter().map(|value| html! { <circle cx={format!("{:.1}", x(*value))} cy="8" r="4" /> }) }
                        </svg>
                        <span class="quiet">{ format!("{middle} ({low} to {high})") }</span>
                    </div>
                }
            }) }
        </figure>
    }
}

/// The strips.
#[component]
pub fn Seeds(props: &Props) -> Html {
    let state = &*props.state.0;
    let place = use_node_ref();
    let seen = use_visible(place.clone());
    // The scheduler alone, at the modelled price: the same figures.
    let config =
        Config { backend: BackendKind::Modelled, clock: ClockKind::Modelled, ..state.config.clone() };
    let policies: Vec<PolicyKind> = state.lanes.iter().map(|lane| lane.policy).collect();
    let few = config.requests <= MOST_REQUESTS;
    let key = (config.clone(), policies.clone());
    // One that cannot be run has no dots.
    let runs = use_one_by_one(key, SEEDS as usize, seen && few, |(config, policies), seed| {
        one(config, policies, seed as u64).unwrap_or_default()
    });
    let columns: Vec<Column> = columns().into_iter().filter(|c| SHOWN.contains(&c.title)).collect();
    html! {
        <section id="seeds" class="chapter" ref={place} aria-labelledby="seeds-title" data-testid="seeds">
            <h3 id="seeds-title">{ "Was that luck?" }</h3>
            if few {
                <p class="intro">{ format!("The race above is one seed, {}. Here is the same with seeds 0 to {}, priced and not \
                    computed: a dot is a run, beside it the median and both ends.", state.config.seed, SEEDS - 1) }
                    if (runs.len() as u64) < SEEDS { <b class="computed">{ format!(" {} of {SEEDS} so far.", runs.len()) }</b> }</p>
                <div class="strips computed" data-done={runs.len().to_string()}>
                    { for columns.iter().map(|column| strip(column, &policies, &runs)) }
                </div>
                { beforehand(|| {
                    let runs: Vec<_> = (0..SEEDS).filter_map(|seed| one(&config, &policies, seed)).collect();
                    html! { <div class="strips">{ for columns.iter().map(|column| strip(column, &policies, &runs)) }</div> }
                }) }
            } else {
                <p class="intro">{ format!("The same with other seeds is shown for races of up to {MOST_REQUESTS} requests; of longer \
                    ones the command line says it: warmroute run --seeds {SEEDS}.") }</p>
            }
        </section>
    }
}
