//! A replica: its queue, its batch, what it has finished, and its block pool.

use std::rc::Rc;

use yew::prelude::*;

use super::Blocks;
use crate::engine::RequestId;
use crate::policy::grouped;
use crate::ui::playback::{Chip, ReplicaView, Stage};
use crate::ui::state::Action;
use crate::ui::words::{colour_of, request_label, tenant_name};

/// A request, as a button.
#[derive(Clone, PartialEq, Properties)]
pub struct ChipProps {
    /// The request.
    pub chip: Chip,
    /// Whether it is the one that is explained.
    pub selected: bool,
    /// Whether the tab key stops here: at one request a column.
    pub stop: bool,
    /// Tells what was chosen.
    pub dispatch: Callback<Action>,
}

/// A request as a button: hovering, focusing or tapping it explains where it went.
#[component]
pub fn ChipButton(props: &ChipProps) -> Html {
    let Chip { request, tenant, prompt, budget, generated, cached, stage } = props.chip;
    let (word, class) = match (stage, cached) {
        (Stage::Waiting, _) => ("waiting", "waiting"),
        (Stage::Running, _) => ("running", "running"),
        (Stage::Done, Some(1..)) => ("done, prefix reused", "warm"),
        (Stage::Done, _) => ("done, computed from nothing", "cold"),
    };
    // What is seen, then what it stands for: a name that is spoken to a control begins with its text.
    let letter = if tenant.is_some_and(|t| t < 26) { tenant_name(tenant) } else { String::new() };
    let text = format!("{letter}{request}");
    let label = format!("{text}: {}, {word}", request_label(request, tenant, prompt));
    let choose = {
        let dispatch = props.dispatch.clone();
        Callback::from(move |()| dispatch.emit(Action::Select(Some(request))))
    };
    // How full it is, in twentieths: a class, since the page's policy allows no inline styles.
    let share = u64::from(generated.min(budget)) * 20 / u64::from(budget.max(1));
    html! {
        <button type="button" aria-label={label} aria-pressed={props.selected.to_string()}
            class={classes!("chip", class, format!("t{}", colour_of(tenant)), format!("p{share}"))}
            tabindex={if props.stop { "0" } else { "-1" }}
            data-request={request.to_string()}
            onfocus={choose.reform(|_| ())} onclick={choose.reform(|_| ())} onmouseenter={choose.reform(|_| ())}>
            { text }
        </button>
    }
}

/// What a replica is drawn from.
#[derive(Clone, Properties)]
pub struct Props {
    /// The replica at the moment shown.
    pub view: Rc<ReplicaView>,
    /// How many requests it runs at most.
    pub batch: u32,
    /// The request that is explained, if it is here.
    pub selected: Option<RequestId>,
    /// The request at which the tab key stops, if it is here.
    pub stop: Option<RequestId>,
    /// Without its requests one by one.
    pub compact: bool,
    /// Tells what was chosen.
    pub dispatch: Callback<Action>,
}

impl PartialEq for Props {
    fn eq(&self, other: &Props) -> bool {
        Rc::ptr_eq(&self.view, &other.view)
            && (self.batch, self.selected, self.stop, self.compact)
                == (other.batch, other.selected, other.stop, other.compact)
    }
}

/// How many requests a row shows one by one.
const MOST_CHIPS: usize = 16;

impl Props {
    /// A row of requests; of many, the first few or the latest few, and whichever is selected.
    fn row(&self, title: &'static str, chips: &[Chip], latest: bool) -> Html {
        let more = chips.len().saturating_sub(MOST_CHIPS);
        let shown: Vec<Chip> = chips
            .iter()
            .enumerate()
            .filter(|(i, chip)| {
                let near = if latest { *i >= more } else { *i < MOST_CHIPS };
                near || Some(chip.request) == self.selected
            })
            .map(|(_, chip)| *chip)
            .collect();
        let more = chips.len() - shown.len();
        html! {
            <div class={classes!("row", title)}>
                <span class="row-title">{ title }<span class="count">{ chips.len() }</span></span>
                <div class="chips">
                    { for shown.into_iter().map(|chip| html! {
                        <ChipButton key={chip.request} {chip} selected={self.selected == Some(chip.request)}
                            stop={self.stop == Some(chip.request)} dispatch={self.dispatch.clone()} />
                    }) }
                    if more > 0 { <span class="more">{ format!("+ {} more", grouped(more as u64)) }</span> }
                </div>
            </div>
        }
    }
}

/// A replica with its queue, its batch, what it has finished and its blocks.
#[component]
pub fn Replica(props: &Props) -> Html {
    let view = &*props.view;
    html! {
        <div class={classes!("replica", view.stepping.map(|_| "stepping"))} role="group"
            aria-label={format!("replica {}", view.index)}>
            <p class="replica-head">
                <b>{ format!("Replica {}", view.index) }</b>
                <span>{ format!("{} tok", grouped(view.outstanding())) }</span>
            </p>
            if props.compact {
                <p class="compact">{ format!("{} queued · {} running · {} done", view.waiting.len(),
                    view.running.len(), view.done.len()) }</p>
            } else {
                { props.row("queue", &view.waiting, false) }
                { props.row("batch", &view.running, false) }
                { props.row("done", &view.done, true) }
            }
            <Blocks blocks={view.blocks.clone()} held={view.held} cached={view.cached} />
        </div>
    }
}
