//! 4: a prefix has a home.

use web_sys::{HtmlInputElement, HtmlTextAreaElement};
use yew::prelude::*;

use super::{count, leaves_out, set};
use crate::params::Config;
use crate::policy::{PolicyKind, PolicySettings, ReplicaLoad, explain};
use crate::trace::Token;
use crate::trace::generate::system_prompt;
use crate::ui::figures::prefixes::prefixes;
use crate::ui::widgets::{Live, Matrix};
use crate::ui::words::tenant_name;

/// Outstanding tokens of the other replicas in the figure.
const OTHERS: u64 = 900;

/// The longest text that is taken.
const LONGEST: usize = 600;

fn prompt_of(tenant: usize) -> String {
    String::from_utf8_lossy(&system_prompt(tenant, 0)).into_owned() + "What about the third one?"
}

/// The section.
#[component]
pub fn Affinity() -> Html {
    let text = use_state_eq(|| prompt_of(0));
    let (length, busy, guarded) = (use_state_eq(|| 64), use_state_eq(|| 900), use_state_eq(|| true));
    let tokens: Vec<Token> = text.bytes().map(Token::from).collect();
    let settings = PolicySettings {
        prefix_length: *length as usize,
        max_imbalance: if *guarded { 2.0 } else { f64::INFINITY },
        ..PolicySettings::default()
    };
    let decide = |loads: &[u64]| {
        let loads: Vec<ReplicaLoad> = loads
            .iter()
            .map(|&outstanding_tokens| ReplicaLoad { outstanding_tokens, ..ReplicaLoad::default() })
            .collect();
        PolicyKind::PrefixAffinity.build(&settings).select(&tokens, &loads)
    };
    let home = decide(&[OTHERS; 4]).preferred.unwrap_or(0) as usize;
    let mut loads = [OTHERS; 4];
    loads[home] = u64::from(*busy);
    let decision = decide(&loads);
    // The bytes that are hashed end at a letter's end, for the eye.
    let mut cut = (*length as usize).min(text.len());
    while !text.is_char_boundary(cut) {
        cut += 1;
    }
    let (head, tail) = text.split_at(cut);
    let typed = {
        let text = text.setter();
        Callback::from(move |event: InputEvent| {
            let typed = event.target_unchecked_into::<HtmlTextAreaElement>().value();
            text.set(typed.chars().take(LONGEST).collect());
        })
    };
    let guard = {
        let guarded = guarded.setter();
        Callback::from(move |event: Event| {
            guarded.set(event.target_unchecked_into::<HtmlInputElement>().checked())
        })
    };
    let run = use_memo((), |()| prefixes(&Config::default(), PolicyKind::PrefixAffinity));
    html! {
        <section id="affinity" class="chapter" aria-labelledby="affinity-title">
            <h2 id="affinity-title">{ "Prefix affinity: stop balancing" }</h2>
            <p class="intro">{ "Hash the beginning of the prompt and let the hash choose. All prompts that begin alike meet on \
                one replica, whose cache is warm for them, and the others never pay for that prefix." }</p>
            <div class="pair">
                <label for="affinity-text">{ "A prompt" }</label>
                <textarea id="affinity-text" rows="3" maxlength={LONGEST.to_string()} value={(*text).clone()} oninput={typed} />
                <div class="buttons">
                    { for (0..6).map(|t| {
                        let text = text.setter();
                        let onclick = Callback::from(move |_: MouseEvent| text.set(prompt_of(t)));
                        html! { <button type="button" class="small" {onclick}>{ format!("tenant {}", tenant_name(Some(t as u32))) }</button> }
                    }) }
                </div>
                <p class="hashed" title="Marked: what is hashed. The rest is not looked at."><mark>{ head.to_owned() }</mark><span>{ tail.to_owned() }</span></p>
                <p class="said">
                    { "The first " }
                    <Live label="Prefix length" text={count(*length, "token")} value={*length} range={(1, 160)}
                        on_change={set(&length, |v| v)} />
                    { format!("{} hash to replica {home}, which has ", if tokens.len() < *length as usize {
                        format!(" (it has {})", tokens.len())
                    } else {
                        String::new()
                    }) }
                    <Live label="Outstanding tokens of that replica" text={count(*busy, "outstanding token")} value={*busy}
                        range={(0, 9000)} on_change={set(&busy, |v| v)} />
                    { format!(" where the others have {OTHERS}. ") }
                </p>
                <p class="said decision" data-testid="affinity-why">{ explain(PolicyKind::PrefixAffinity, &decision) }</p>
                <label class="tick"><input type="checkbox" checked={*guarded} onchange={guard} />{ "with a guard of 2 × the mean load" }</label>
            </div>
            if let Some(run) = &*run {
                <figure data-testid="affinity-figure"><Matrix policy={PolicyKind::PrefixAffinity} of={run.clone()} /></figure>
            }
            <p class="intro">{ "It is a bet: cache hits are worth more than an even queue. It can be lost, if one prefix is most \
                of the traffic, so every production router that does this carries some guard. " }
                <a href="#hot">{ "What the guard does" }</a>{ " is a section of its own." }</p>
            { leaves_out("A hash knows nothing: it remembers where a prefix belongs without looking whether it is there. Routers \
                that look (longest-prefix in the race's policies) keep a copy of what each cache holds, and have to keep it true.") }
        </section>
    }
}
