//! A replica's block pool as a grid of cells: held ones full, cached ones pale, free ones empty.

use std::fmt::Write;
use std::rc::Rc;

use yew::prelude::*;

use crate::sim::BlockState;
use crate::ui::words::{TENANT_COLOURS, colour_of};

/// More cells than this would be too small to see: then one cell stands for several blocks.
const MOST_CELLS: usize = 1024;
const COLUMNS: usize = 32;

/// The pool.
#[derive(Clone, Properties)]
pub struct Props {
    /// What each block is used for.
    pub blocks: Rc<[(BlockState, Option<u32>)]>,
    /// Blocks held by running requests.
    pub held: u32,
    /// Blocks kept for a prefix, held by nobody.
    pub cached: u32,
}

impl PartialEq for Props {
    fn eq(&self, other: &Props) -> bool {
        Rc::ptr_eq(&self.blocks, &other.blocks)
    }
}

/// The grid; what it shows is also its label.
#[component]
pub fn Blocks(props: &Props) -> Html {
    let all = props.blocks.len();
    let per_cell = all.div_ceil(MOST_CELLS).max(1);
    let cells = all.div_ceil(per_cell);
    // One path for each look; a cell of several blocks looks like the most used of them. Neighbours that
    // look the same are one stroke, whose dashes are the cells: the text stays short, since it is written
    // and read anew with every step.
    let mut free = String::new();
    let mut looks = vec![[String::new(), String::new()]; TENANT_COLOURS.len()];
    let rank = |state: BlockState| match state {
        BlockState::Free => 0,
        BlockState::Cached => 1,
        BlockState::Held => 2,
    };
    let look = |group: &[(BlockState, Option<u32>)]| {
        let (state, tenant) = group.iter().copied().max_by_key(|(state, _)| rank(*state)).unwrap_or_default();
        (rank(state), if state == BlockState::Free { 0 } else { colour_of(tenant) })
    };
    let mut run: Option<(usize, (usize, usize))> = None;
    let groups = props.blocks.chunks(per_cell).map(|group| Some(look(group)));
    for (cell, own) in groups.chain([None]).enumerate() {
        if let Some((from, (rank, colour))) = run
            && (own != Some((rank, colour)) || cell % COLUMNS == 0)
        {
            let path = if rank == 0 { &mut free } else { &mut looks[colour][rank - 1] };
            let (x, y) = (from % COLUMNS * 5, from / COLUMNS * 5 + 2);
            write!(path, "M{x} {y}h{}", (cell - from) * 5 - 1).expect("a text takes all that is written");
            run = None;
        }
        run = run.or(own.map(|own| (cell, own)));
    }
    let rows = cells.div_ceil(COLUMNS);
    let label = format!(
        "{} of {all} KV blocks held, {} cached, {} free",
        props.held,
        props.cached,
        all as u32 - props.held - props.cached
    );
    html! {
        <figure class="blocks">
            <svg class="cells" viewBox={format!("0 0 {} {}", COLUMNS * 5 - 1, rows * 5 - 1)} role="img" aria-label={label}
                shape-rendering="crispEdges">
                <path class="free" d={free} />
                { for looks.into_iter().enumerate().flat_map(|(tenant, [cached, held])| [
                    (cached, classes!("cached", format!("t{tenant}"))),
                    (held, classes!("held", format!("t{tenant}"))),
                ]).filter(|(d, _)| !d.is_empty()).map(|(d, class)| html! { <path {class} {d} /> }) }
            </svg>
            <figcaption>
                { format!("{} held · {} cached of {all}", props.held, props.cached) }
                { if per_cell > 1 { format!(" (a cell is {per_cell} blocks)") } else { String::new() } }
            </figcaption>
        </figure>
    }
}
