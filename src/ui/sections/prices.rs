//! What a step costs: the two sets of constants, and the reader's own machine measured.

use yew::prelude::*;

use super::Props;
use super::fit::Fit;
use crate::cost::{CHAPTER_CPU, Cost, PiecePrice, StepPrice, TINYGPT_WASM};
use crate::ui::state::{Action, Bench};
use crate::ui::words::seconds;

fn price_row(name: &str, price: StepPrice) -> Html {
    let cell = |picos: u64| html! { <td>{ seconds(picos as f64 / 1e12) }</td> };
    let cells = |p: PiecePrice| [p.base, p.per_token, p.per_pair].map(cell);
    html! {
        <tr><th scope="row">{ name.to_owned() }</th>{ for cells(price.prefill) }{ for cells(price.decode) }</tr>
    }
}

/// The section.
#[component]
pub fn Prices(props: &Props) -> Html {
    let (state, dispatch) = (&props.state, &props.dispatch);
    let running = matches!(state.bench, Bench::Running(..));
    // The button keeps the focus while it has nothing to do.
    let measure = if running {
        Callback::noop()
    } else {
        dispatch.reform(|_: MouseEvent| Action::Bench(Bench::Running(0, 0)))
    };
    let own = match &state.bench {
        Bench::Done(found) => price_row("this machine", found.price),
        _ => html! {},
    };
    html! {
        <section id="prices" aria-labelledby="prices-title">
            <h2 id="prices-title">{ "What a step costs" }</h2>
            <p class="intro">{ "Under the modelled clock a forward pass costs a base, something for each token it \
                computes, and something for each pair of tokens that attend to each other: so the same race gives the \
                same figures on every machine." }</p>
            <section class="scroll" tabindex="0" aria-label="Prices">
                <table>
                    <caption>{ format!("In force: {}", state.config.cost) }</caption>
                    <thead>
                        <tr><td rowspan="2"></td><th scope="colgroup" colspan="3">{ "a prefill" }</th>
                            <th scope="colgroup" colspan="3">{ "a decode step" }</th></tr>
                        <tr>{ for ["base", "a token", "a pair", "base", "a token", "a pair"].map(|t| html! { <th scope="col" class="unit-head">{ t }</th> }) }</tr>
                    </thead>
                    <tbody>
                        { price_row("chapter-cpu", CHAPTER_CPU) }
                        { price_row("tinygpt-wasm", TINYGPT_WASM) }
                        { own }
                    </tbody>
                </table>
            </section>
            <div class="buttons">
                <button type="button" aria-disabled={running.to_string()} onclick={measure} data-testid="measure">{ "Measure this machine" }</button>
                { outcome(props) }
            </div>
            <Fit />
        </section>
    }
}

fn outcome(props: &Props) -> Html {
    match &props.state.bench {
        Bench::Idle => html! { <span class="quiet">{ "Takes a few seconds, in a worker." }</span> },
        Bench::Running(done, of) => html! {
            <span class="quiet" data-testid="bench"><progress max={of.max(&1).to_string()} value={done.to_string()}
                aria-label="measurements"></progress>{ format!(" {done} of {of} measurements") }</span>
        },
        Bench::Failed(why) => {
            html! { <span class="dead" role="alert" data-testid="bench">{ format!("Could not be measured: {why}") }</span> }
        }
        Bench::Done(found) => {
            let cost = Cost::Custom(found.price);
            let used = props.state.config.cost == cost;
            let apply = props
                .dispatch
                .reform(move |_: MouseEvent| Action::Edit { key: "cost", text: cost.to_string() });
            html! {
                <>
                    <button type="button" onclick={apply} aria-disabled={used.to_string()} data-testid="use-prices">{ "Use these prices" }</button>
                    <span class="quiet" data-testid="bench">{ format!(
                        "15 measurements, each of at least 100 ticks of a clock that ticks every {}; the fit is off by at most {:.0} % for a prefill and {:.0} % for a decode.",
                        seconds(found.grain), 100.0 * found.prefill_worst, 100.0 * found.decode_worst) }</span>
                </>
            }
        }
    }
}
