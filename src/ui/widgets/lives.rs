//! One request in every lane at once: its life on one scale, and every candidate's terms in the decision
//! that sent it where it went.

use std::rc::Rc;

use yew::prelude::*;

use super::Mark;
use crate::policy::{PolicyKind, explain};
use crate::ui::life::{Doing, Life, Terms, terms};
use crate::ui::playback::Routed;
use crate::ui::state::Action;
use crate::ui::words::{colour_of, time};

/// The request in one lane.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The lane's name.
    pub name: AttrValue,
    /// Who decides there.
    pub policy: PolicyKind,
    /// Its life so far; `None`: it has not arrived there.
    pub life: Option<Life>,
    /// Where it was sent, and why.
    pub routed: Option<Rc<Routed>>,
}

/// What the panel is given.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// One a lane; empty: no request is chosen.
    pub rows: Vec<Row>,
    /// Tells that none is to be chosen any more.
    pub dispatch: Callback<Action>,
}

/// The width of a line of life, in its own units.
const WIDTH: f64 = 1000.0;

/// The panel.
#[component]
pub fn Lives(props: &Props) -> Html {
    let Some(first) = props.rows.iter().find_map(|row| row.life.as_ref()) else {
        return html! {
            <div class="lives" data-testid="lives">
                <p class="quiet">{ "Point at a request, focus it or tap it: it is marked in every lane, and what became of \
                    it in each is told here." }</p>
            </div>
        };
    };
    let from = first.record.arrival;
    let to = props.rows.iter().filter_map(|row| row.life.as_ref()).map(Life::end).max().unwrap_or(from);
    let clear = props.dispatch.reform(|_: MouseEvent| Action::Select(None));
    html! {
        <div class="lives" data-testid="lives" data-request={first.record.request.to_string()}>
            <h3>{ "One request, every lane" }</h3>
            <p><span class={classes!("swatch", format!("t{}", colour_of(first.record.tenant)))}></span>{ first.title() }{ ". " }
                <button type="button" class="plain" onclick={clear}>{ "Let it go (Esc)" }</button></p>
            <section class="scroll" tabindex="0" aria-label="The request's life in every lane">
                <table>
                    <thead><tr>
                        <th scope="col">{ "lane" }</th>
                        { for Life::CELLS.iter().map(|name| html! { <th scope="col">{ *name }</th> }) }
                    </tr></thead>
                    <tbody>{ for props.rows.iter().map(|row| html! {
                        <tr data-testid={format!("life-{}", row.name)}>
                            <th scope="row"><Mark policy={row.policy} />{ &row.name }</th>
                            if let Some(life) = &row.life {
                                { for life.cells().into_iter().map(|cell| html! { <td>{ cell }</td> }) }
                            } else {
                                { for Life::CELLS.iter().map(|_| html! { <td class="quiet">{ "…" }</td> }) }
                            }
                        </tr>
                    }) }</tbody>
                </table>
            </section>
            <div class="lifelines">
                { for props.rows.iter().filter_map(|row| Some(lifeline(row, row.life.as_ref()?, from, to))) }
                <p class="key">
                    <span><span class="swatch doing waiting"></span>{ "waiting" }</span>
                    <span><span class="swatch doing prefill"></span>{ "prompt computed" }</span>
                    <span><span class="swatch doing decode"></span>{ "a stroke a token" }</span>
                    <span>{ format!("{} from left to right", time(to - from)) }</span>
                </p>
            </div>
            <div class="decisions">
                { for props.rows.iter().filter_map(|row| Some(decision(row, row.routed.as_ref()?))) }
            </div>
        </div>
    }
}

fn lifeline(row: &Row, life: &Life, from: u64, to: u64) -> Html {
    let scale = WIDTH / (to - from).max(1) as f64;
    let x = |at: u64| (at.saturating_sub(from)) as f64 * scale;
    let said: Vec<String> =
        life.parts.iter().map(|(doing, from, to)| format!("{} {}", doing.name(), time(to - from))).collect();
    let strokes: String = life.tokens.iter().map(|at| format!("M{:.1} 3v14", x(*at))).collect();
    html! {
        <div class="lifeline">
            <span class="who"><Mark policy={row.policy} />{ &row.name }</span>
            <svg viewBox="0 0 1000 20" preserveAspectRatio="none" role="img"
                aria-label={format!("{}: {}", row.name, said.join(", "))}>
                { for life.parts.iter().map(|&(doing, from, to)| html! {
                    <rect class={classes!("doing", doing.name())} x={format!("{:.1}", x(from))}
                        width={format!("{:.1}", (x(to) - x(from)).max(0.5))}
                        y={if doing == Doing::Waiting { "8" } else { "3" }} height={if doing == Doing::Waiting { "4" } else { "14" }} />
                }) }
                <path d={strokes} />
            </svg>
        </div>
    }
}

fn decision(row: &Row, routed: &Routed) -> Html {
    let said = routed.decision.as_ref().map(|decision| explain(row.policy, decision));
    let Terms { headings, rows, more } =
        routed.decision.as_ref().map_or_else(Terms::default, |decision| terms(row.policy, decision));
    html! {
        <div data-testid={format!("decision-{}", row.name)}>
            <p><Mark policy={row.policy} /><b>{ &row.name }</b>{ ": " }{ said.unwrap_or_else(|| "There was no choice.".into()) }</p>
            if !rows.is_empty() {
                <section class="scroll" tabindex="0" aria-label={format!("Candidates of {}", row.name)}>
                    <table>
                        <thead><tr>
                            <th scope="col">{ "replica" }</th>
                            { for headings.iter().map(|name| html! { <th scope="col">{ *name }</th> }) }
                            <th scope="col"><span class="hidden">{ "what came of it" }</span></th>
                        </tr></thead>
                        <tbody>{ for rows.into_iter().map(|(replica, cells, said)| html! {
                            <tr class={said.contains("chosen").then_some("chosen")}>
                                <th scope="row">{ replica }</th>
                                { for cells.into_iter().map(|cell| html! { <td>{ cell }</td> }) }
                                <td>{ said }</td>
                            </tr>
                        }) }</tbody>
                    </table>
                </section>
                if more > 0 { <p class="quiet">{ format!("and {more} more candidates") }</p> }
            }
        </div>
    }
}
