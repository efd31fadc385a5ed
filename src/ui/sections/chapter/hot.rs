//! 8: one prefix is most of the traffic: what the guard is for.

use yew::prelude::*;

use super::{leaves_out, set, use_one_by_one};
use crate::policy::PolicyKind;
use crate::sim::Summary;
use crate::ui::beforehand::beforehand;
use crate::ui::figures::hot::{GUARDS, REQUESTS, SHARES, run};
use crate::ui::widgets::Live;
use crate::ui::words::seconds;

const SEED: u64 = 1;

/// Something that the map can show.
struct Figure {
    name: &'static str,
    value: fn(&Summary) -> Option<f64>,
    text: fn(f64) -> String,
    /// Whether more is better.
    higher: bool,
}

const GOOD: Figure =
    Figure { name: "good requests", value: |s| s.goodput_fraction, text: percent, higher: true };
const TTFT: Figure = Figure { name: "p95 TTFT", value: |s| s.ttft.p95, text: seconds, higher: false };
const FIGURES: [Figure; 4] = [
    GOOD,
    TTFT,
    Figure { name: "imbalance", value: |s| s.imbalance, text: |x| format!("{x:.2}"), higher: false },
    Figure { name: "reuse", value: |s| s.reuse, text: |x| format!("{:.1} %", 100.0 * x), higher: true },
];

fn guard_name(guard: f64) -> String {
    if guard.is_finite() { format!("{guard} × mean") } else { "no guard".into() }
}

fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

/// How good a value is among all, as one of five shades.
fn shade(value: f64, all: &[f64], higher: bool) -> usize {
    let (low, high) = all.iter().fold((f64::MAX, f64::MIN), |(l, h), &x| (l.min(x), h.max(x)));
    // Times spread over orders of magnitude.
    let log = !higher && low > 0.0 && high / low > 20.0;
    let place = |x: f64| if log { libm::log2(x) } else { x };
    let part = if high > low { (place(value) - place(low)) / (place(high) - place(low)) } else { 1.0 };
    let good = if higher { part } else { 1.0 - part };
    (good * 4.0).round().clamp(0.0, 4.0) as usize
}

const CELLS: usize = GUARDS.len() * SHARES.len();

/// The run of a cell of the map, row by row.
fn run_cell(_: &(), at: usize) -> Option<Summary> {
    run(SHARES[at % SHARES.len()], GUARDS[at / SHARES.len()], PolicyKind::PrefixAffinity, SEED)
}

fn map(
    cells: &[Option<Summary>],
    figure: usize,
    here: (usize, usize),
    choose: &Callback<(usize, usize)>,
) -> Html {
    let Figure { name, value, text, higher } = FIGURES[figure];
    let all: Vec<f64> = cells.iter().flatten().filter_map(value).collect();
    html! {
        <section class="scroll" tabindex="0" aria-label={format!("{name} by guard and share")}>
            <table class="map" data-testid="hot-map">
                <caption>{ format!("{name}: guards down, the hot tenant's share of the traffic across. A cell is a run of {REQUESTS} \
                    requests; choose one to put the sliders there.") }</caption>
                <thead><tr><th scope="col">{ "guard" }</th>
                    { for SHARES.iter().map(|share| html! { <th scope="col">{ percent(*share) }</th> }) }
                </tr></thead>
                <tbody>
                    { for GUARDS.iter().enumerate().map(|(g, guard)| html! {
                        <tr>
                            <th scope="row">{ guard_name(*guard) }</th>
                            { for (0..SHARES.len()).map(|s| {
                                let cell = cells.get(g * SHARES.len() + s).and_then(Option::as_ref).and_then(value);
                                let onclick = choose.reform(move |_: MouseEvent| (g, s));
                                let class = cell.map(|x| format!("shade{}", shade(x, &all, higher)));
                                html! {
                                    <td class={classes!(class, (here == (g, s)).then_some("here"))}>
                                        <button type="button" class="cell" {onclick} aria-pressed={(here == (g, s)).to_string()}
                                            aria-label={format!("guard {}, share {}: {}", guard_name(GUARDS[g]), percent(SHARES[s]),
                                                cell.map_or_else(|| "not yet".into(), text))}>
                                            { cell.map_or_else(|| "…".into(), text) }
                                        </button>
                                    </td>
                                }
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
pub fn HotPrefix() -> Html {
    let (guard, share, figure) = (use_state_eq(|| 3usize), use_state_eq(|| 2usize), use_state_eq(|| 0usize));
    let place = use_node_ref();
    let seen = use_state_eq(|| false);
    if crate::ui::dom::use_visible(place.clone()) && !*seen {
        seen.set(true);
    }
    let cells = use_one_by_one((), CELLS, *seen, run_cell);
    let one =
        use_memo((*guard, *share), |&(g, s)| run(SHARES[s], GUARDS[g], PolicyKind::PrefixAffinity, SEED));
    let others = use_memo(*share, |&s| {
        [PolicyKind::RoundRobin, PolicyKind::LeastTokens]
            .map(|policy| run(SHARES[s], f64::INFINITY, policy, SEED))
    });
    let choose = {
        let (guard, share) = (guard.setter(), share.setter());
        Callback::from(move |(g, s)| {
            guard.set(g);
            share.set(s);
        })
    };
    let told = |summary: &Option<Summary>, figure: Figure| {
        summary.as_ref().and_then(figure.value).map_or_else(|| "–".into(), figure.text)
    };
    let busiest = (*one).as_ref().and_then(|s| s.assignments.iter().max().copied()).unwrap_or(0);
    html! {
        <section id="hot" class="chapter" ref={place} aria-labelledby="hot-title">
            <h2 id="hot-title">{ "The hot prefix, and the guard" }</h2>
            <p class="intro">{ "Let one tenant grow. Its prefix has one home, so that replica gets it all, and melts while the \
                others idle. The guard watches for it: once the home's load is above so many times the mean, the request goes to \
                the least loaded replica instead." }</p>
            <p class="intro said" data-testid="hot-said">
                { "With one tenant at " }
                <Live label="The hot tenant's share" text={percent(SHARES[*share])} value={*share as u32}
                    range={(0, SHARES.len() as u32 - 1)} on_change={set(&share, |v| v as usize)} />
                { " of the traffic and the guard at " }
                <Live label="Guard" text={guard_name(GUARDS[*guard])} value={*guard as u32}
                    range={(0, GUARDS.len() as u32 - 1)} on_change={set(&guard, |v| v as usize)} />
                { " the busiest of four replicas gets " }<b>{ busiest }</b>{ format!(" of {REQUESTS} requests, the p95 TTFT is ") }
                <b>{ told(&one, TTFT) }</b>{ ", and " }
                <b>{ told(&one, GOOD) }</b>{ " of the requests are good." }
                { format!(" Round-robin: {}. Least-tokens: {}.", told(&others[0], GOOD),
                    told(&others[1], GOOD)) }
            </p>
            <div class="buttons" role="group" aria-label="What the map shows">
                { for FIGURES.iter().enumerate().map(|(at, Figure { name, .. })| {
                    let setter = figure.setter();
                    let onclick = Callback::from(move |_: MouseEvent| setter.set(at));
                    html! { <button type="button" aria-pressed={(*figure == at).to_string()} {onclick}>{ *name }</button> }
                }) }
            </div>
            <div class="computed">{ map(&cells, *figure, (*guard, *share), &choose) }</div>
            { beforehand(|| {
                let cells: Vec<_> = (0..CELLS).map(|at| run_cell(&(), at)).collect();
                map(&cells, *figure, (*guard, *share), &choose)
            }) }
            <ul class="intro things">
                <li><b>{ "Too tight " }</b>{ "(1 × the mean) and affinity becomes least-tokens: a preferred replica is above \
                    the mean about half of the time. Goodput hardly shows it while one tenant is nearly everything, since all caches \
                    then hold its prefix; reuse does where tenants are several. One often reads that it becomes round-robin; but where the guard fires the \
                    request goes to whoever has least, not to whoever is next." }</li>
                <li><b>{ "Too loose " }</b>{ "and one replica melts. A guard of n or more on n replicas is none at all: nobody can \
                    have more than n times the mean of n." }</li>
                <li><b>{ "In between " }</b>{ "the hot prefix gets a second home when it needs one, and only then." }</li>
            </ul>
            { leaves_out("Four replicas with a processor each, 30 requests a second of the default trace's prompts, one seed. The \
                guard acts on outstanding tokens of the moment; production routers see loads late (the parameters \u{201c}Load signal \
                every\u{201d} and \u{201c}Routers\u{201d}).") }
        </section>
    }
}
