//! 7: reading the result: reuse and imbalance explain the rest.

use yew::prelude::*;

use super::{count, leaves_out, set};
use crate::fleet::Devices;
use crate::params::Config;
use crate::policy::PolicyKind;
use crate::ui::figures::prefixes::{Prefixes, prefixes};
use crate::ui::widgets::{Live, Mark};
use crate::ui::words::seconds;

/// Runs are as long as this at most, so that a slider answers at once.
const MOST_REQUESTS: u32 = 240;

/// A bar of prompt tokens by where they came from.
fn bar(run: &Prefixes) -> Html {
    let all = run.tokens.all().max(1) as f64;
    let part = |tokens: u64| 100.0 * tokens as f64 / all;
    let (cached, system, own) = (part(run.tokens.cached), part(run.tokens.system), part(run.tokens.own));
    html! {
        <svg class="tokens" viewBox="0 0 100 6" preserveAspectRatio="none" role="img"
            aria-label={format!("{cached:.0} % cached, {system:.0} % system prompts computed, {own:.0} % questions")}>
            <rect class="cached" x="0" y="0" width={format!("{cached:.2}")} height="6" />
            <rect class="system" x={format!("{cached:.2}")} y="0" width={format!("{system:.2}")} height="6" />
            <rect class="own" x={format!("{:.2}", cached + system)} y="0" width={format!("{own:.2}")} height="6" />
        </svg>
    }
}

fn row(policy: PolicyKind, run: &Prefixes) -> Html {
    let s = &run.summary;
    let percent = |x: Option<f64>| x.map_or_else(|| "–".into(), |x| format!("{:.1} %", 100.0 * x));
    html! {
        <tr data-testid={format!("reading-{}", policy.name())}>
            <th scope="row"><Mark {policy} />{ policy.name() }</th>
            <td class="bar">{ bar(run) }</td>
            <td>{ percent(s.reuse) }</td>
            <td>{ s.imbalance.map_or_else(|| "–".into(), |x| format!("{x:.2}")) }</td>
            <td>{ s.ttft.p50.map_or_else(|| "–".into(), seconds) }</td>
            <td>{ s.ttft.p95.map_or_else(|| "–".into(), seconds) }</td>
            <td>{ percent(s.goodput_fraction) }</td>
        </tr>
    }
}

/// The section.
#[component]
pub fn Reading() -> Html {
    let (tenants, requests, separate) = (use_state_eq(|| 6), use_state_eq(|| 24), use_state_eq(|| false));
    let runs = use_memo((*tenants, *requests, *separate), |&(tenants, requests, separate)| {
        let devices = if separate { Devices::Separate } else { Devices::Shared };
        let config = Config { tenants, requests, devices, ..Config::default() };
        PolicyKind::RACE.map(|policy| (policy, prefixes(&config, policy)))
    });
    let switch = |label: &'static str, to: bool| {
        let setter = separate.setter();
        let onclick = Callback::from(move |_: MouseEvent| setter.set(to));
        html! { <button type="button" aria-pressed={(*separate == to).to_string()} {onclick}>{ label }</button> }
    };
    let reuse = |at: usize| runs[at].1.as_ref().and_then(|run| run.summary.reuse).unwrap_or(0.0);
    let own = runs[0].1.as_ref().map_or(0.0, |run| run.tokens.own as f64 / run.tokens.all().max(1) as f64);
    html! {
        <section id="reading" class="chapter" aria-labelledby="reading-title">
            <h2 id="reading-title">{ "Reading the result" }</h2>
            <p class="intro">{ "Reuse and imbalance explain the rest: a token that is found is not computed, and an even queue \
                of work that need not be done is still a queue." }</p>
            <div class="buttons" role="group" aria-label="Devices">
                { switch("one processor for all replicas", false) }
                { switch("a processor for each", true) }
            </div>
            <p class="intro said">
                <Live label="Requests" text={count(*requests, "request")} value={*requests} range={(12, MOST_REQUESTS)}
                    on_change={set(&requests, |v| v)} />
                { " of " }
                <Live label="Tenants" text={count(*tenants, "tenant")} value={*tenants} range={(1, 24)}
                    on_change={set(&tenants, |v| v)} />
                { format!(" let prefix-affinity find {:.0} % of all prompt tokens in the cache, and round-robin {:.0} %.", 100.0 * reuse(2), 100.0 * reuse(0)) }
            </p>
            <section class="scroll" tabindex="0" aria-label="Where prompt tokens came from">
                <table data-testid="reading">
                    <caption>
                        <span class="key"><span class="swatch cached-part"></span>{ "found in the cache" }
                        <span class="swatch system-part"></span>{ "system prompts, computed" }
                        <span class="swatch own-part"></span>{ "questions: new every time" }</span>
                    </caption>
                    <thead><tr>
                        <th scope="col">{ "policy" }</th><th scope="col">{ "where prompt tokens came from" }</th>
                        <th scope="col">{ "reuse" }</th><th scope="col">{ "imbalance" }</th>
                        <th scope="col">{ "TTFT p50" }</th><th scope="col">{ "TTFT p95" }</th><th scope="col">{ "good" }</th>
                    </tr></thead>
                    <tbody>{ for runs.iter().filter_map(|(policy, run)| Some(row(*policy, run.as_ref()?))) }</tbody>
                </table>
            </section>
            <ul class="intro things">
                <li><b>{ "Why never 100 %? " }</b>{ format!("{:.0} % of these tokens are questions, which nobody has had before, \
                    and every replica computes each prefix that it owns once.", 100.0 * own) }</li>
                <li><b>{ "And least-tokens? " }</b>{ format!("It finds {:.0} % here, and is as blind to caches as round-robin. At quiet \
                    moments its ties go to the lowest index, so that requests gather there and find a little more (with a processor \
                    for each, and few requests: look at its imbalance). Where it is as balanced as round-robin, what it finds more or \
                    less is the luck of a draw: the twenty seeds above say how much that is.", 100.0 * reuse(1)) }</li>
                <li><b>{ "One processor or several? " }</b>{ "Where replicas share one, whoever saves work saves it for everybody, \
                    and work that is concentrated is in nobody's way more than before. With a processor each there is four times as much \
                    to serve with, and at eight requests a second nobody is late. What affinity is worth there shows under a load that \
                    the others cannot serve: " }<a href="#worth">{ "how much it is worth" }</a>{ "." }</li>
                <li><b>{ "One tenant? " }</b>{ "Then every policy finds the same prefix soon, and the guard spreads the traffic: set \
                    tenants to 1. What is left to differ is balance." }</li>
                <li><b>{ "Run it longer? " }</b>{ "Where every prefix fits every pool, all policies end up warm everywhere and reuse \
                    converges. The gap lasts where prefixes × length is more than one replica holds." }</li>
            </ul>
            { leaves_out("These runs are priced and not computed: the same scheduler and blocks as the race's, without tensors. \
                Twenty-four requests are few; the strip of seeds below the race shows how much of a result is luck.") }
        </section>
    }
}
