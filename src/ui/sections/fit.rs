//! How near the chapter's price comes to the chapter's published rows.

use yew::prelude::*;

use crate::chapter::{FITTED, LOOK_ALIKES, PUBLISHED, Row};

fn line(name: String, row: &Row) -> Html {
    let cells = [
        format!("{:.4}", row.ttft_p50),
        format!("{:.4}", row.ttft_p95),
        format!("{:.4}", row.itl_p50),
        format!("{:.1}", row.tokens_per_second),
        format!("{:.2}", row.goodput),
        format!("{:.1} %", 100.0 * row.reuse),
        format!("{:.2}", row.imbalance),
    ];
    html! { <tr><th scope="row">{ name }</th>{ for cells.map(|cell| html! { <td>{ cell }</td> }) }</tr> }
}

/// The published rows and the fitted ones, pair by pair.
#[component]
pub fn Fit() -> Html {
    let heads = ["TTFT p50 s", "TTFT p95 s", "ITL p50 s", "tokens/s", "goodput/s", "reuse", "imbalance"];
    let pairs = PUBLISHED.iter().zip(&FITTED);
    html! {
        <details data-testid="fit">
            <summary>{ "How near the chapter-cpu price comes to the published run" }</summary>
            <p>{ format!(
                "The published run's prompts and arrivals are not known. The six constants were fitted to its rows over \
                the {} traces of {} with the most similar reuse, by the rules of its own harness, which counts a request \
                as arrived when its loop comes round to it. No single set of constants has all of it: the published \
                round-robin row is slower against the other two than its reuse explains.",
                LOOK_ALIKES.0, LOOK_ALIKES.1) }</p>
            <section class="scroll" tabindex="0" aria-label="The fit">
                <table>
                    <caption>{ "Published and fitted: medians over the traces, goodput the mean" }</caption>
                    <thead><tr><td></td>{ for heads.map(|head| html! { <th scope="col">{ head }</th> }) }</tr></thead>
                    <tbody>{ for pairs.map(|(published, fitted)| html! {
                        <>
                            { line(format!("{}, published", published.policy.name()), published) }
                            { line(format!("{}, fitted", fitted.policy.name()), fitted) }
                        </>
                    }) }</tbody>
                </table>
            </section>
        </details>
    }
}
