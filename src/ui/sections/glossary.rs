//! The words, and what the figures leave out.

use yew::prelude::*;

const WORDS: [(&str, &str); 10] = [
    ("replica", "One copy of the model with a queue, a batch of running requests and a cache of its own."),
    (
        "KV block",
        "A fixed piece of a replica's memory that holds the keys and values of 16 tokens (or as many as you set).",
    ),
    (
        "prefix block",
        "A full KV block that is found again by everything up to its last token; whoever begins with the same tokens shares it instead of computing it.",
    ),
    (
        "TTFT",
        "Time to first token: from the moment a request was due to arrive until its first token is out, so a busy server cannot hide its delay.",
    ),
    (
        "ITL",
        "Inter-token latency: the time from the first token to the last, divided by the tokens after the first.",
    ),
    ("goodput", "Requests that met both objectives, a second of the whole run."),
    (
        "preemption",
        "A running request gives its blocks back because there are none left, and is computed again later.",
    ),
    (
        "reuse",
        "Prompt tokens that were found in a cache, of all prompt tokens, at each request's first admission.",
    ),
    (
        "imbalance",
        "The busiest replica's share of the requests divided by an even share: 1 is even, 2 is twice its share.",
    ),
    (
        "outstanding tokens",
        "Prompt plus what may still be generated, over everything a replica has waiting or running.",
    ),
];

/// The section.
#[component]
pub fn Glossary() -> Html {
    html! {
        <section id="words" aria-labelledby="words-title">
            <h2 id="words-title">{ "The words" }</h2>
            <dl>
                { for WORDS.into_iter().map(|(word, means)| html! { <div><dt>{ word }</dt><dd>{ means }</dd></div> }) }
            </dl>
            <p class="fact">{ "Everything runs in this page; nothing is sent anywhere." }</p>
        </section>
    }
}
