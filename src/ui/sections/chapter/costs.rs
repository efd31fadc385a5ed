//! 10: what cache-aware routing costs.

use yew::prelude::*;

use super::{count, leaves_out, set};
use crate::report::columns;
use crate::ui::figures::moved::{homes, moved};
use crate::ui::sections::Props;
use crate::ui::widgets::{Live, Mark};
use crate::ui::words::{colour_of, seconds, tenant_name};

/// Each replica's prefixes, in a row.
fn rows(homes: &[u32], replicas: u32, before: Option<&[u32]>) -> Html {
    html! {
        <ul class="homes">
            { for (0..replicas).map(|r| html! {
                <li><span class="who">{ format!("replica {r}") }</span>
                    { for homes.iter().enumerate().filter(|(_, home)| **home == r).map(|(t, _)| {
                        let stays = before.is_none_or(|before| before[t] == r);
                        html! {
                            <span class={classes!("home", if stays { "warm" } else { "cold" }, format!("t{}", colour_of(Some(t as u32))))}>
                                { tenant_name(Some(t as u32)) }<span class="hidden">{ if stays { "" } else { " (cold)" } }</span>
                            </span>
                        }
                    }) }
                </li>
            }) }
        </ul>
    }
}

/// Each tenant's TTFT under each policy of the race.
fn tails(props: &Props) -> Html {
    let state = &*props.state.0;
    let runs: Vec<_> =
        state.lanes.iter().filter_map(|lane| Some((lane.policy, &lane.finished()?.summary))).collect();
    if runs.is_empty() || runs.len() < state.lanes.len() {
        return html! { <p class="quiet">{ "The race is still being run; its tenants are listed here when it is over." }</p> };
    }
    // By name: a tenant that sent nothing is in no run.
    let tenants: Vec<_> = runs[0].1.tenants.iter().map(|t| t.tenant.clone()).take(12).collect();
    html! {
        <section class="scroll" tabindex="0" aria-label="TTFT by tenant">
            <table data-testid="tenants">
                <caption>{ format!("p95 TTFT by tenant, in the race above. The fleet's own figures ({}) hide whose wait it was.",
                    columns().iter().take(2).map(|c| c.title).collect::<Vec<_>>().join(", ")) }</caption>
                <thead><tr><th scope="col">{ "tenant" }</th>
                    { for runs.iter().map(|(policy, _)| html! { <th scope="col"><Mark policy={*policy} />{ policy.name() }</th> }) }
                </tr></thead>
                <tbody>
                    { for tenants.iter().enumerate().map(|(at, tenant)| html! {
                        <tr>
                            <th scope="row"><span class={classes!("swatch", format!("t{}", colour_of(Some(at as u32))))}></span>
                                { tenant_name(Some(at as u32)) }</th>
                            { for runs.iter().map(|(_, summary)| {
                                let own = summary.tenants.iter().find(|t| t.tenant == *tenant);
                                html! { <td>{ own.and_then(|t| t.ttft.p95).map_or_else(|| "–".into(), seconds) }</td> }
                            }) }
                        </tr>
                    }) }
                </tbody>
            </table>
        </section>
    }
}

/// The section.
#[component]
pub fn Costs(props: &Props) -> Html {
    let (tenants, replicas) = (use_state_eq(|| 12), use_state_eq(|| 4));
    let seed = props.state.0.config.seed;
    let length = props.state.0.config.prefix_length;
    let (before, after) =
        (homes(*tenants, *replicas, length, seed), homes(*tenants, *replicas - 1, length, seed));
    let lost = before.iter().filter(|home| **home == *replicas - 1).count();
    let all = moved(&before, &after);
    html! {
        <section id="costs" class="chapter" aria-labelledby="costs-title">
            <h2 id="costs-title">{ "What it costs" }</h2>
            <p class="intro">{ "A router that knows things is a new thing that can fail. Take a replica away, and see where its \
                prefixes go." }</p>
            <p class="intro said" data-testid="costs-said">
                { "With " }
                <Live label="Prefixes" text={format!("{} prefixes", *tenants)} value={*tenants} range={(2, 24)} on_change={set(&tenants, |v| v)} />
                { " on " }
                <Live label="Replicas" text={count(*replicas, "replica")} value={*replicas} range={(2, 8)} on_change={set(&replicas, |v| v)} />
                { " the last replica goes. It had " }<b>{ lost }</b>{ " of them, and " }<b>{ all }</b>{ " have another home afterwards, cold." }
            </p>
            <div class="before-after">
                <figure>{ rows(&before, *replicas, None) }<figcaption>{ "before" }</figcaption></figure>
                <figure>{ rows(&after, *replicas - 1, Some(&before)) }<figcaption>{ "after: hollow ones begin cold" }</figcaption></figure>
            </div>
            <p class="intro">{ format!("The rule is hash mod n, and a remainder shares nothing with the one below it: {all} of {} moved here, and \
                {lost} had to. Consistent and rendezvous hashing move only what must.", *tenants) }</p>
            <ul class="intro things">
                <li><b>{ "The router's state. " }</b>{ "Round-robin can be restarted in the middle of anything. A hash can too, it has \
                    no state. A router that keeps a copy of every cache loses it with the process, and every replica is as good as \
                    cold for it until the copy is back." }</li>
                <li><b>{ "The content. " }</b>{ "Whoever hashes prompts has to read them: no L4 balancer, and user data in one more place." }</li>
                <li><b>{ "The tails. " }</b>{ "A replica's own metrics do not show reuse across the fleet, imbalance, or whose requests waited:" }</li>
            </ul>
            { tails(props) }
            { leaves_out("Nothing is said here about how long a replica takes to be missed, or what becomes of the requests that it \
                was serving.") }
        </section>
    }
}
