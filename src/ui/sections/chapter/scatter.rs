//! 2: round-robin makes every replica compute every prefix.

use yew::prelude::*;

use super::{count, leaves_out, set};
use crate::params::Config;
use crate::policy::PolicyKind;
use crate::ui::figures::prefixes::prefixes;
use crate::ui::widgets::{Live, Matrix};

/// The section.
#[component]
pub fn Scatter() -> Html {
    let (replicas, requests) = (use_state_eq(|| 4), use_state_eq(|| 24));
    let run = use_memo((*replicas, *requests), |&(replicas, requests)| {
        prefixes(&Config { replicas, requests, ..Config::default() }, PolicyKind::RoundRobin)
    });
    let Some(run) = &*run else { return html! {} };
    let most = run.cells.len() as u32 * *replicas;
    html! {
        <section id="scatter" class="chapter" aria-labelledby="scatter-title">
            <h2 id="scatter-title">{ "Round-robin: the wrong quantity, evenly" }</h2>
            <p class="intro">{ "Six tenants, each with a system prompt of its own in front of every question. A square is \
                a replica that was sent something of a tenant, and in it how often. Hollow: it computed that system prompt \
                every time." }</p>
            <figure data-testid="scatter-figure">
                <Matrix policy={PolicyKind::RoundRobin} of={run.clone()} />
            </figure>
            <p class="intro said">
                <Live label="Requests" text={count(*requests, "request")} value={*requests} range={(6, 240)}
                    on_change={set(&requests, |v| v)} />
                { " on " }
                <Live label="Replicas" text={count(*replicas, "replica")} value={*replicas} range={(1, 8)}
                    on_change={set(&replicas, |v| v)} />
                { format!(" made the fleet compute a system prompt from nothing {} times. {} would do, once for each tenant that \
                    has sent anything; in the end it is {most}, once for each of six tenants on each replica.", run.cold, run.tenants) }
            </p>
            <p class="intro">{ "In the long run every replica you add makes it worse: it is one more cache to warm for everybody. Counts are \
                perfectly even, and nobody is helped by that." }</p>
            { leaves_out("Each cache here is large enough to keep what it has seen. Where it is not, prefixes are evicted \
                and computed again, and the number has no ceiling.") }
        </section>
    }
}
