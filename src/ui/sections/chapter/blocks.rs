//! 5: what a prefix block is.

use web_sys::HtmlInputElement;
use yew::prelude::*;

use super::{count, leaves_out, set};
use crate::ui::figures::blocks::{Fate, LONGEST, Part, walk};
use crate::ui::widgets::Live;

const FIRST: &str =
    "You review Rust patches: name the bug, the line, and the smallest fix. Here is the first patch.";
const SECOND: &str =
    "You review Rust patches: name the bug, the line, and the smallest fix. Now another one, please.";

fn row(who: &str, parts: &[Part]) -> Html {
    let look = |fate: Fate| match fate {
        Fate::Computed => ("computed", "computed"),
        Fate::Found => ("found", "found"),
        Fate::Partial => ("partial", "not full"),
    };
    html! {
        <ol class="parts" aria-label={format!("Blocks of {who}")}>
            { for parts.iter().map(|part| {
                let (class, said) = look(part.fate);
                html! {
                    <li class={classes!("part", class)}>
                        <code>{ part.text.replace(' ', "·") }</code>
                        <small>{ format!("block {}: {said}", part.block) }</small>
                    </li>
                }
            }) }
        </ol>
    }
}

/// The section.
#[component]
pub fn PrefixBlocks() -> Html {
    let (first, second, size) =
        (use_state_eq(|| FIRST.to_owned()), use_state_eq(|| SECOND.to_owned()), use_state_eq(|| 16));
    let walked = use_memo(((*first).clone(), (*second).clone(), *size), |(first, second, size)| {
        walk(first, second, *size as usize)
    });
    let field = |id: &'static str, label: &'static str, text: &UseStateHandle<String>| {
        let setter = text.setter();
        let oninput = Callback::from(move |event: InputEvent| {
            setter.set(event.target_unchecked_into::<HtmlInputElement>().value());
        });
        html! {
            <>
                <label for={id}>{ label }</label>
                <input {id} type="text" autocomplete="off" maxlength={LONGEST.to_string()} value={(**text).clone()} {oninput} />
            </>
        }
    };
    let with = |fate: Fate| walked[1].iter().filter(|part| part.fate == fate).count();
    let (found, all) = (with(Fate::Found), walked[1].len());
    let swap = {
        let (second, text) = (second.setter(), spoiled(&first));
        Callback::from(move |_: MouseEvent| second.set(text.clone()))
    };
    html! {
        <section id="blocks" class="chapter" aria-labelledby="blocks-title">
            <h2 id="blocks-title">{ "What a prefix block is" }</h2>
            <p class="intro">{ "Keys and values are kept in blocks of a fixed number of tokens. A full block can be found again \
                by what it holds and everything before it: a token's keys and values depend on all tokens that came before, so \
                the same words behind another beginning are other numbers." }</p>
            <div class="pair">
                { field("blocks-first", "A replica has served this prompt:", &first) }
                { row("the first prompt", &walked[0]) }
                { field("blocks-second", "Now it is sent this one:", &second) }
                { row("the second prompt", &walked[1]) }
                <p class="said" data-testid="blocks-said">
                    { format!("{found} of {all} blocks are found, in blocks of ") }
                    <Live label="Block size" text={count(*size, "token")} value={*size} range={(1, 48)}
                        on_change={set(&size, |v| v)} />
                    { " of a byte each." }
                </p>
                <div class="buttons">
                    <button type="button" onclick={swap}>{ "Send the first prompt again, with another first letter" }</button>
                </div>
            </div>
            <p class="intro">{ "Change one letter at the front, and nothing is found, though nearly all of the text is the same. \
                Smaller blocks find a few tokens more at the end of what is shared, and cost more to keep track of." }</p>
            { leaves_out("Real tokenisers make about four letters a token. Cached blocks that nobody uses go when memory is \
                needed, the least recently used first; here there is room for both prompts.") }
        </section>
    }
}

/// The same text with another first letter.
fn spoiled(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map_or('A', |letter| if letter == 'A' { 'B' } else { 'A' });
    core::iter::once(first).chain(letters).collect()
}
