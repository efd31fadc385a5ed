//! Tenants against replicas: who had to compute which system prompt.

use yew::prelude::*;

use super::Mark;
use crate::policy::PolicyKind;
use crate::ui::figures::prefixes::Prefixes;
use crate::ui::words::{colour_of, tenant_name};

/// The matrix.
#[derive(Clone, PartialEq, Properties)]
pub struct Props {
    /// Who dealt the requests out.
    pub policy: PolicyKind,
    /// What came of it.
    pub of: Prefixes,
}

const CELL: usize = 34;
const LEFT: usize = 30;
const TOP: usize = 22;

/// A square for each replica that was sent anything of a tenant: in it, how many requests; hollow while the system
/// prompt was computed for every one of them.
#[component]
pub fn Matrix(props: &Props) -> Html {
    let Prefixes { cells, cold, requests, .. } = &props.of;
    let replicas = cells.first().map_or(0, Vec::len);
    let (width, height) = (LEFT + replicas * CELL, TOP + cells.len() * CELL);
    let said = format!(
        "{}: a system prompt was computed from nothing {cold} times for {requests} requests; {} of {} pairs of a tenant and a replica met",
        props.policy.name(),
        cells.iter().flatten().filter(|cell| cell.0 > 0).count(),
        cells.len() * replicas
    );
    let squares = cells.iter().enumerate().flat_map(|(t, row)| {
        row.iter().enumerate().filter(|(_, cell)| cell.0 > 0).map(move |(r, &(sent, cold))| {
            let (x, y) = (LEFT + r * CELL, TOP + t * CELL);
            let look = if cold == sent { "cold" } else { "warm" };
            html! {
                <g class={classes!("square", look, format!("t{}", colour_of(Some(t as u32))))}>
                    <rect x={(x + 2).to_string()} y={(y + 2).to_string()} width={(CELL - 4).to_string()}
                        height={(CELL - 4).to_string()} rx="4" />
                    <text x={(x + CELL / 2).to_string()} y={(y + CELL / 2 + 4).to_string()}>
                        { format!("{sent}") }
                    </text>
                </g>
            }
        })
    });
    html! {
        <figure class="matrix">
            <svg viewBox={format!("0 0 {width} {height}")} role="img" aria-label={said}
                width={(width * 3 / 2).to_string()} height={(height * 3 / 2).to_string()}>
                { for (0..replicas).map(|r| html! {
                    <text class="who" x={(LEFT + r * CELL + CELL / 2).to_string()} y="14">{ r }</text>
                }) }
                { for (0..cells.len()).map(|t| html! {
                    <text class="who" x="10" y={(TOP + t * CELL + CELL / 2 + 4).to_string()}>
                        { tenant_name(Some(t as u32)) }
                    </text>
                }) }
                { for squares }
            </svg>
            <figcaption><Mark policy={props.policy} /><b>{ props.policy.name() }</b>
                { format!(": {cold} of {requests} requests met a replica that had nothing of their system prompt.") }
            </figcaption>
        </figure>
    }
}
