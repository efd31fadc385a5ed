//! 13: what to take away, each with the figure that shows it.

use yew::prelude::*;

const POINTS: [(&str, &str, &str); 6] = [
    (
        "#scatter",
        "Round-robin is the wrong balancer for language models.",
        "It evens out request counts, which are neither work nor warmth, and makes every replica compute every prefix.",
    ),
    (
        "#loads",
        "Outstanding tokens are the right thing to balance,",
        "and balancing is not where the gain is: it is blind to what each cache holds.",
    ),
    (
        "#race",
        "The gain comes from not balancing.",
        "A prefix with a home is computed about once, and TTFT falls with what need not be computed.",
    ),
    (
        "#hot",
        "Whoever does that needs a guard.",
        "One hot prefix melts one replica; too tight a guard gives the reuse away again.",
    ),
    (
        "#costs",
        "State in the router is a cost.",
        "When replicas come and go, the hash decides how much of the fleet turns cold.",
    ),
    (
        "#cold-start",
        "A new replica is late by its weights.",
        "Bytes over bandwidth, whoever asks for it; fewer bits come back sooner.",
    ),
];

/// The section.
#[component]
pub fn Takeaways() -> Html {
    html! {
        <section id="takeaways" class="chapter" aria-labelledby="takeaways-title">
            <h2 id="takeaways-title">{ "To take away" }</h2>
            <ol class="intro things">
                { for POINTS.iter().map(|(to, point, more)| html! {
                    <li><a href={*to}><b>{ *point }</b></a>{ " " }{ *more }</li>
                }) }
            </ol>
        </section>
    }
}
