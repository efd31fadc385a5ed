//! 3: fewest connections, then fewest outstanding tokens.

use yew::prelude::*;

use super::leaves_out;
use crate::policy::{PolicyKind, PolicySettings, ReplicaLoad, explain, grouped};
use crate::ui::widgets::Mark;

/// Prompt and remaining budget of what is in flight, in tokens.
const SHORT: u64 = 150;
const LONG: u64 = 4200;

/// What each replica has in flight before the reader does anything: two long requests, or four short ones.
const START: [&[u64]; 3] = [&[LONG, LONG], &[SHORT, SHORT, SHORT], &[SHORT, LONG, SHORT, SHORT]];

fn pick(policy: PolicyKind, fleet: &[Vec<u64>]) -> (u32, String) {
    let loads: Vec<ReplicaLoad> = fleet
        .iter()
        .map(|flight| ReplicaLoad {
            running: flight.len() as u32,
            outstanding_tokens: flight.iter().sum(),
            ..ReplicaLoad::default()
        })
        .collect();
    let decision = policy.build(&PolicySettings::default()).select(&[], &loads);
    (decision.replica, explain(policy, &decision))
}

fn replica(index: usize, flight: &[u64], add: &Callback<(usize, Option<u64>)>) -> Html {
    let all: u64 = flight.iter().sum();
    let change = |what: Option<u64>| add.reform(move |_: MouseEvent| (index, what));
    let mut x = 0;
    let bars: Vec<Html> = flight
        .iter()
        .map(|&tokens| {
            let width = tokens / 30;
            let at = x;
            x += width + 2;
            html! { <rect x={at.to_string()} y="0" width={width.to_string()} height="20" rx="2" /> }
        })
        .collect();
    html! {
        <li class="load">
            <span class="load-head">{ format!("replica {index}: {}, {} tokens", super::count(flight.len() as u32, "request"), grouped(all)) }</span>
            <svg class="load-bar" viewBox="0 0 600 20" preserveAspectRatio="none" aria-hidden="true">{ for bars }</svg>
            <span class="buttons">
                <button type="button" class="small" onclick={change(Some(SHORT))}
                    aria-label={format!("Give replica {index} a short request")}>{ "+ short" }</button>
                <button type="button" class="small" onclick={change(Some(LONG))}
                    aria-label={format!("Give replica {index} a long request")}>{ "+ long" }</button>
                <button type="button" class="small" onclick={change(None)} disabled={flight.is_empty()}
                    aria-label={format!("finish one request of replica {index}")}>{ "finish one" }</button>
            </span>
        </li>
    }
}

/// The section.
#[component]
pub fn Loads() -> Html {
    let fleet = use_state_eq(|| START.map(<[u64]>::to_vec).to_vec());
    let add = {
        let fleet = fleet.clone();
        Callback::from(move |(index, what): (usize, Option<u64>)| {
            let mut all = (*fleet).clone();
            let flight: &mut Vec<u64> = &mut all[index];
            match what {
                // Room for so many in the picture.
                Some(tokens) if flight.iter().sum::<u64>() + tokens <= 4 * LONG => flight.push(tokens),
                Some(_) => {}
                None => {
                    flight.remove(0);
                }
            }
            fleet.set(all);
        })
    };
    let answers = [PolicyKind::LeastRequests, PolicyKind::LeastTokens].map(|policy| {
        let (_, why) = pick(policy, &fleet);
        html! {
            <li data-testid={format!("pick-{}", policy.name())}><Mark {policy} /><b>{ policy.name() }</b>{ ": " }{ why }</li>
        }
    });
    html! {
        <section id="loads" class="chapter" aria-labelledby="loads-title">
            <h2 id="loads-title">{ "Counting better: connections, then tokens" }</h2>
            <p class="intro">{ "The next thing that people reach for is the replica with the fewest requests in flight. But a \
                connection is no unit of work either. A token nearly is: add up prompt and remaining budget of everything \
                that waits and runs, and send the next request to where that is least." }</p>
            <ul class="loads">{ for fleet.iter().enumerate().map(|(i, flight)| replica(i, flight, &add)) }</ul>
            <p class="intro">{ "A request arrives. Where does it go?" }</p>
            <ul class="answers">{ for answers }</ul>
            <p class="intro">{ "This is the right rule for a fleet without caches. On a fleet with them it is still blind to \
                what each replica knows." }</p>
            { leaves_out("A budget is not an answer's length: the router knows max_tokens and not when the model will stop. \
                And a token of a prompt is far cheaper than one of an answer.") }
        </section>
    }
}
