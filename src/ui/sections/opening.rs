//! The point, and a picture that shows it. The picture is counted, not drawn by hand: the core runs
//! the default trace without tensors when the page opens.

use yew::prelude::*;

use crate::experiment::Experiment;
use crate::params::Config;
use crate::policy::PolicyKind;
use crate::sim::Outcome;
use crate::ui::widgets::Mark;
use crate::ui::words::{colour_of, tenant_name};

/// A request in the picture: whose, and whether its prefix was found.
struct Dot {
    tenant: Option<u32>,
    warm: bool,
}

/// For each replica, what it was sent, in order of arrival.
fn rows(config: &Config, policy: PolicyKind) -> Vec<Vec<Dot>> {
    let (_, recorder) = Experiment::run_priced(config, policy).expect("the default trace fits the clock");
    let mut rows: Vec<Vec<Dot>> = (0..config.replicas).map(|_| Vec::new()).collect();
    for record in recorder.records() {
        if let Outcome::Served { replica, cached, .. } = record.outcome {
            rows[replica as usize].push(Dot { tenant: record.tenant, warm: cached > 0 });
        }
    }
    rows
}

fn picture(policy: PolicyKind, rows: &[Vec<Dot>]) -> Html {
    let longest = rows.iter().map(Vec::len).max().unwrap_or(0).max(9);
    let cold = rows.iter().flatten().filter(|dot| !dot.warm).count();
    let of = rows.iter().map(Vec::len).sum::<usize>();
    let caption = format!("computes a system prompt from nothing for {cold} of {of} requests");
    let dots = rows.iter().enumerate().flat_map(|(y, row)| {
        row.iter().enumerate().map(move |(x, dot)| {
            let class = classes!(
                "dot",
                if dot.warm { "warm" } else { "cold" },
                format!("t{}", colour_of(dot.tenant))
            );
            let (cx, cy) = (70 + x * 26, 16 + y * 30);
            html! {
                <g {class}>
                    <circle cx={cx.to_string()} cy={cy.to_string()} r="10" />
                    <text x={cx.to_string()} y={(cy + 4).to_string()}>{ tenant_name(dot.tenant) }</text>
                </g>
            }
        })
    });
    html! {
        <figure class="scatter">
            <svg viewBox={format!("0 0 {} {}", 70 + longest * 26 - 10, rows.len() * 30 + 2)} role="img"
                aria-label={format!("{}: {caption}", policy.name())}>
                { for (0..rows.len()).map(|y| html! {
                    <text class="who" x="0" y={(20 + y * 30).to_string()}>{ format!("replica {y}") }</text>
                }) }
                { for dots }
            </svg>
            <figcaption><Mark {policy} /><b>{ policy.name() }</b>{ format!(" {caption}.") }</figcaption>
        </figure>
    }
}

/// Title, the point, and the picture.
#[component]
pub fn Opening() -> Html {
    let pictures = use_memo((), |()| {
        let config = Config::default();
        [PolicyKind::RoundRobin, PolicyKind::PrefixAffinity]
            .map(|policy| picture(policy, &rows(&config, policy)))
    });
    let drawn = Config::default();
    html! {
        <header class="opening">
            <p class="name">{ "warmroute" }</p>
            <h1>{ "Which replica should get this request?" }</h1>
            <p class="lede">{ "Round-robin deals requests out evenly, so every replica has to compute every tenant's \
                system prompt, and the cache that would have saved that work never gets warm." }</p>
            <p class="lede">{ "Send each prompt prefix to one replica of its own instead, and it is computed about once; \
                the price is that replicas are no longer equally busy." }</p>
            <div class="scatters">{ for pictures.iter().cloned() }</div>
            <p class="key"><span class="swatch cold t0"></span>{ "hollow: the system prompt was computed" }
                <span class="swatch warm t0"></span>{ "filled: it was found in that replica's cache. A letter and a colour is a tenant. " }
                { format!("{} requests in order of arrival, {} replicas, {} tenants, seed {}.", drawn.requests,
                    drawn.replicas, drawn.tenants, drawn.seed) }</p>
        </header>
    }
}
