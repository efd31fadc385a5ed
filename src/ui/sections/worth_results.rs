//! What a sweep came to: plots, knees in words, the numbers, and ways to take them along.

use std::rc::Rc;

use yew::prelude::*;

use super::worth::{StudyProps, button, numbers, shown_command, stopped};
use crate::plot::Chart;
use crate::report::columns;
use crate::sweep::{Plan, Results};
use crate::ui::dom::{self, text_of};
use crate::ui::state::Action;
use crate::ui::study::settings::Refusal;
use crate::ui::study::words::{knee, stat, sweep_command, value_text, verdict};
use crate::ui::study::{Act, Phase, Sweep};
use crate::ui::widgets::{Mark, Plot, Said, Taken};

/// Rows of the table beyond which only a file has them all.
const MOST_ROWS: usize = 600;

/// What is drawn.
pub(super) struct Drawn {
    /// What has come of the sweep so far.
    pub(super) results: Results,
    /// Its plots.
    pub(super) plots: Vec<Rc<Chart>>,
}

/// The part of the section; `plan` is what is asked now.
pub(super) fn results(props: &StudyProps, plan: &Result<Plan, Vec<Refusal>>, drawn: Option<&Drawn>) -> Html {
    let figure = props.study.settings.figure;
    let (Some(sweep), Some(Drawn { results, plots })) = (&props.study.sweep, drawn) else {
        return html! { <Said id="sweep-verdict" text="" /> };
    };
    let stale = plan.as_ref().is_ok_and(|plan| *plan != *sweep.plan);
    html! {
        <div data-testid="sweep-results">
            { state(sweep, stale) }
            { choice(props) }
            <div class={classes!("plots", (plots.len() == 1).then_some("alone"))}>
                { for plots.iter().cloned().enumerate().map(|(at, chart)| plot(at, chart, &sweep.plan)) }
            </div>
            if sweep.phase != Phase::Running { { knees(results) } }
            <p class="quiet">{ conditions(&sweep.plan, figure) }</p>
            { table(results, figure) }
            <Said id="sweep-verdict" text={verdict(sweep)} />
            { take_along(sweep) }
        </div>
    }
}

/// Whether what is shown is all of it, and of what is asked now.
fn state(sweep: &Sweep, stale: bool) -> Html {
    let (done, of) = sweep.runs();
    html! {
        <>
            { stopped(&sweep.phase) }
            if !matches!(sweep.phase, Phase::Done | Phase::Running) {
                <p class="notice" data-testid="sweep-partial">{ format!("Partial: {done} of {of} runs. Every mean is over \
                    the seeds that are done.") }</p>
            }
            if stale {
                <p class="notice" data-testid="sweep-stale">{ "What is shown below was run with other settings than those \
                    above now." }</p>
            }
        </>
    }
}

/// Which figure is shown.
fn choice(props: &StudyProps) -> Html {
    let figure = props.study.settings.figure;
    let dispatch = props.dispatch.clone();
    let choose = Callback::from(move |event: Event| {
        if let Some(figure) = text_of(&event).and_then(|text| text.parse().ok()) {
            dispatch.emit(Action::Study(Act::Figure(figure)));
        }
    });
    let columns = columns();
    html! {
        <div class="field shown">
            <label for="sweep-figure">{ "Figure shown" }</label>
            <select id="sweep-figure" onchange={choose} data-testid="sweep-figure">
                { for columns.iter().enumerate().map(|(at, column)| html! {
                    <option value={at.to_string()} selected={at == figure}>{
                        if column.key == "goodput_fraction" { "good: fraction of requests".into() } else { column.heading() }
                    }</option>
                }) }
            </select>
            <p class="help">{ columns[figure].help }</p>
        </div>
    }
}

fn plot(place: usize, chart: Rc<Chart>, plan: &Plan) -> Html {
    let over = chart.x.title.to_ascii_lowercase();
    let at = if chart.title.is_empty() { String::new() } else { format!(", with {}", chart.title) };
    let label = format!(
        "{} over {over}{at}, one line a policy, mean of {} seeds; the table below has the numbers",
        chart.y.title,
        plan.seeds.count()
    );
    let key = chart.title.clone();
    let taken = Taken {
        id: if place == 0 { "figure-sweep".into() } else { format!("figure-sweep-{}", place + 1).into() },
        name: format!("{} over {over}{at}", chart.y.title).into(),
        command: sweep_command(plan).into(),
    };
    html! { <Plot {key} {chart} {label} {taken} /> }
}

/// The knees in words, at each value of the second parameter.
fn knees(results: &Results) -> Html {
    let second = results.plan.over.get(1);
    let of = |at: usize| {
        let lines = results.plan.policies.iter().filter_map(|&policy| {
            let words = knee(results, at, policy)?;
            Some(html! { <li><Mark {policy} /><b>{ policy.name() }</b>{ format!(" {words}") }</li> })
        });
        let title = second
            .map_or_else(String::new, |axis| format!(", with {}", value_text(&axis.key, &axis.values[at])));
        html! {
            <>
                <p class="fact">{ format!("95 % of requests meet both objectives{title}:") }</p>
                <ul class="knees">{ for lines }</ul>
            </>
        }
    };
    html! { <div data-testid="knees">{ for (0..second.map_or(1, |axis| axis.values.len())).map(of) }</div> }
}

/// What the plots show, and why it is a fraction.
fn conditions(plan: &Plan, figure: usize) -> String {
    let (from, last) = (plan.seeds.from, plan.seeds.to - 1);
    let spread = if plan.seeds.count() > 1 {
        format!(
            "Lines are means of {} seeds ({from} to {last}; fewer where a sweep was ended before), bands go from their 10th to their 90th percentile. The knees are those of the values that were run; nothing between them is guessed.",
            plan.seeds.count()
        )
    } else {
        format!("One seed ({from}): how far others are from it is not known.")
    };
    let why = match columns()[figure].key {
        "goodput_fraction" => {
            " What counts is the fraction of all requests that were good, not good requests a second: past the knee the last requests drain long after the last arrival, and that tail distorts every rate."
        }
        "goodput_per_second" | "output_tokens_per_second" => {
            " Past the knee the last requests drain long after the last arrival, and that tail distorts rates; compare fractions there."
        }
        _ => "",
    };
    format!("{spread}{why}")
}

fn table(results: &Results, figure: usize) -> Html {
    let column = &columns()[figure];
    let mut heads: Vec<String> = results.plan.over.iter().map(|axis| axis.key.replace('_', " ")).collect();
    heads.push("policy".into());
    heads.push(format!("{}, mean", column.heading()));
    heads.extend(["p10", "p90", "seeds"].map(str::to_owned));
    let rows = results.cells.iter().take(MOST_ROWS).map(|cell| {
        let own = cell.stats[figure];
        let values = results.plan.values(cell.point).into_iter().map(|value| html! { value });
        let name = html! { <><Mark policy={cell.policy} />{ cell.policy.name() }</> };
        let stats = stat(column, &own).map(|text| html! { text });
        values.chain([name]).chain(stats).chain([html! { own.n }]).collect()
    });
    let more = (results.cells.len() > MOST_ROWS)
        .then(|| format!(" The first {MOST_ROWS} of {} rows; the files have them all.", results.cells.len()));
    let caption = format!("{}{}", column.help, more.unwrap_or_default());
    numbers("sweep-table", "The numbers", caption, heads, rows.collect())
}

/// The command that does the same, and the results as files.
fn take_along(sweep: &Sweep) -> Html {
    let command = sweep_command(&sweep.plan);
    let save = |name: &'static str, kind: &'static str, write: fn(&Results) -> String| {
        let sweep = sweep.clone();
        Callback::from(move |_: MouseEvent| {
            if let Some(results) = sweep.whole() {
                dom::download(name, kind, &write(&results));
            }
        })
    };
    let (json, csv) = (
        save("warmroute-sweep.json", "application/json", Results::json),
        save("warmroute-sweep.csv", "text/csv", Results::csv),
    );
    let off = sweep.phase != Phase::Done;
    html! {
        <>
            { shown_command("sweep-command", command) }
            <div class="buttons">
                { button("sweep-json", "Download JSON", off, json) }
                { button("sweep-csv", "Download CSV", off, csv) }
            </div>
            <p class="quiet">{ "The command line writes the same figures, byte for byte (with --json or --csv), and takes \
                larger sweeps." }</p>
        </>
    }
}
