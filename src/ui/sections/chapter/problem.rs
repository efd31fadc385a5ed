//! 1: requests are no units of work.

use yew::prelude::*;

use super::{leaves_out, set, times};
use crate::ui::figures::work::{self, Cost};
use crate::ui::widgets::Live;
use crate::ui::words::seconds;

/// The picture's seed: an ordinary draw, neither the worst nor the best of many.
const SEED: u64 = 11;

/// The picture's own units across.
const WIDTH: f64 = 1000.0;

/// A row a replica: its requests one after the other, each as long as its work.
fn picture(requests: &[Cost], longest: f64, label: String) -> Html {
    let scale = WIDTH / longest;
    let row = |replica: usize| {
        let mut x = 0.0;
        let boxes: Vec<Html> = requests
            .iter()
            .skip(replica)
            .step_by(work::REPLICAS)
            .map(|request| {
                // A little less than its work, so that one is told from the next.
                let (start, all) = (x, (request.seconds() * scale - 2.0).max(0.5));
                let prefill = (request.prefill * scale).clamp(0.5, all);
                x += request.seconds() * scale;
                let said = format!(
                    "{} prompt tokens, {} output tokens: {}",
                    request.prompt,
                    request.output,
                    seconds(request.seconds())
                );
                let bar = |class: &'static str, width: f64| {
                    html! { <rect {class} x={format!("{start:.1}")} y="0" width={format!("{width:.1}")} height="26" /> }
                };
                html! { <g><title>{ said }</title>{ bar("decode", all) }{ bar("prefill", prefill) }</g> }
            })
            .collect();
        html! {
            <div class="work-row">
                <span class="who">{ format!("replica {replica}") }</span>
                <svg class="work" viewBox={format!("0 0 {WIDTH} 26")} preserveAspectRatio="none" aria-hidden="true">{ for boxes }</svg>
            </div>
        }
    };
    html! { <div role="img" aria-label={label}>{ for (0..work::REPLICAS).map(row) }</div> }
}

/// The section.
#[component]
pub fn Problem() -> Html {
    let spread = use_state_eq(|| 12);
    let requests = use_memo(*spread, |spread| work::requests(f64::from(*spread) / 10.0, SEED));
    let alike = use_memo((), |()| work::requests(0.0, SEED));
    let of = |requests: &[Cost]| {
        let dealt = work::dealt(requests);
        (dealt.iter().copied().fold(f64::MAX, f64::min), dealt.iter().copied().fold(0.0, f64::max))
    };
    let (idlest, busiest) = of(&requests);
    let each = |pick: fn(f64, f64) -> f64, from: f64| requests.iter().map(Cost::seconds).fold(from, pick);
    let (least, most) = (each(f64::min, f64::MAX), each(f64::max, 0.0));
    let per = work::REQUESTS / work::REPLICAS;
    html! {
        <section id="problem" class="chapter" aria-labelledby="problem-title">
            <h2 id="problem-title">{ "Requests are not units of work" }</h2>
            <p class="intro">{ "One server runs out of device, so you run several and put a load balancer in front. The \
                usual one deals requests out in turn. For a web server that is fair: one request costs about what the \
                next one does." }</p>
            <figure>
                { picture(&alike, busiest.max(of(&alike).1), format!("{} equal requests on {} replicas: each has the same work",
                    work::REQUESTS, work::REPLICAS)) }
                <figcaption>{ format!("As a web server sees it: {} requests alike, {per} for each replica.", work::REQUESTS) }</figcaption>
            </figure>
            <p class="intro">{ "A prompt to a language model is ten tokens or ten thousand, and so is what comes back." }
                { " Deal the same number out with lengths that spread by a factor of e to the " }
                <Live label="How far the lengths spread" text={format!("{:.1}", f64::from(*spread) / 10.0)}
                    value={*spread} range={(0, 20)} on_change={set(&spread, |v| v)} />
                { " and it looks like this." }</p>
            <figure data-testid="problem-figure">
                { picture(&requests, busiest.max(of(&alike).1), format!("the same number of unequal requests: the busiest replica has {} of work, the idlest {}",
                    seconds(busiest), seconds(idlest))) }
                <figcaption class="said">{ "Every replica still has " }{ per }{ " requests. The costliest takes " }
                    <b>{ times(most / least) }</b>{ " times as long as the cheapest, and the busiest replica has " }
                    <b>{ seconds(busiest) }</b>{ " of work where the idlest has " }<b>{ seconds(idlest) }</b>{ "." }
                    <span class="key"><span class="swatch prefill"></span>{ "prefill: computing the prompt" }
                    <span class="swatch decode"></span>{ "decode: the answer, token by token" }</span>
                </figcaption>
            </figure>
            <p class="intro">{ "And this counts every prompt as if nobody had seen it before. A replica whose cache holds \
                the beginning of a prompt skips that part. Round-robin sees to it that this is as rare as can be." }</p>
            { leaves_out("Each request alone, at a roofline price of Llama 3.1 8B on an H100; batching makes tokens cheaper \
                for all, not more equal. Lengths are lognormal about 1,155 and 211 tokens, the means of a public trace of \
                conversations (Azure, 2023).") }
        </section>
    }
}
