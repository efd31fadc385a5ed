//! What a reader can take along of a chart: a link to it, its picture, its points, a table, and the command that comes to
//! the same.

use std::rc::Rc;

use wasm_bindgen::prelude::*;
use yew::prelude::*;

use super::canvas::paint;
use super::plot::same;
use crate::plot::export::SIZE;
use crate::plot::{Chart, Theme};
use crate::ui::dom;

/// As what a chart is taken along.
#[derive(Clone, PartialEq)]
pub struct Taken {
    /// Its figure's name in the document, and but for its beginning in files' names.
    pub id: AttrValue,
    /// What it is called.
    pub name: AttrValue,
    /// The command that does the same natively.
    pub command: AttrValue,
}

/// How the names of all such figures begin.
pub const FIGURE: &str = "figure-";

/// What the tools are given.
#[derive(Properties)]
pub struct Props {
    /// The chart.
    pub chart: Rc<Chart>,
    /// As what it is taken along.
    pub taken: Taken,
}

impl PartialEq for Props {
    fn eq(&self, other: &Self) -> bool {
        same(&self.chart, &other.chart) && self.taken == other.taken
    }
}

/// Rows of a table beyond which places are left out.
const MOST_ROWS: usize = 200;

/// Pixels a CSS pixel of a picture that is taken along.
const DENSITY: f64 = 2.0;

/// What can be taken along: its name, and what its button does, before the figure's name and after it.
const WAYS: [(&str, &str, &str); 6] = [
    ("Link", "Copy the link to ", ""),
    ("PNG", "Download ", " as PNG"),
    ("SVG", "Download ", " as SVG"),
    ("CSV", "Download ", " as CSV"),
    ("JSON", "Download ", " as JSON"),
    ("Command", "Copy the command for ", ""),
];

impl Props {
    fn file(&self, kind: &str) -> String {
        format!("warmroute-{}.{kind}", self.taken.id.trim_start_matches(FIGURE))
    }

    fn take(&self, way: &str) -> Option<()> {
        let (chart, Taken { id, name, command }) = (&self.chart, &self.taken);
        match way {
            "Link" => {
                let href = dom::window().location().href().ok()?;
                dom::copy(&format!("{}#{id}", href.split('#').next().unwrap_or_default()));
                Some(())
            }
            "PNG" => self.png(),
            "SVG" => dom::download(&self.file("svg"), "image/svg+xml", &chart.picture(name)),
            "CSV" => dom::download(&self.file("csv"), "text/csv", &chart.csv()),
            "JSON" => dom::download(&self.file("json"), "application/json", &chart.json(name)),
            _ => {
                dom::copy(command);
                Some(())
            }
        }
    }

    /// The picture on a canvas that nobody sees, as a file.
    fn png(&self) -> Option<()> {
        let canvas: web_sys::HtmlCanvasElement =
            dom::document().create_element("canvas").ok()?.dyn_into().ok()?;
        if !paint(&canvas, &self.chart, &Theme::LIGHT, SIZE, DENSITY) {
            return None;
        }
        let name = self.file("png");
        let done = Closure::once_into_js(move |blob: Option<web_sys::Blob>| {
            blob.and_then(|blob| dom::hand_over(&name, &blob));
        });
        canvas.to_blob(done.unchecked_ref()).ok()
    }
}

/// A chart's points as a table.
fn table(chart: &Chart, name: &str) -> Html {
    let table = chart.table(MOST_ROWS);
    let left_out = if table.all > table.rows.len() {
        format!(" {} of {} places; the files have them all.", table.rows.len(), table.all)
    } else {
        String::new()
    };
    let row = |row: &Vec<String>| {
        let cells = row.iter().skip(1).map(|cell| html! { <td>{ cell }</td> });
        html! { <tr><th scope="row">{ row.first() }</th>{ for cells }</tr> }
    };
    html! {
        <div class="scroll points" role="region" tabindex="0" aria-label={format!("Table of {name}")}>
            <table>
                <caption>{ format!("{name}: {}.{left_out}", chart.y.title) }</caption>
                <thead><tr>{ for table.heads.iter().map(|head| html! { <th scope="col">{ head }</th> }) }</tr></thead>
                <tbody>{ for table.rows.iter().map(row) }</tbody>
            </table>
        </div>
    }
}

/// A quiet row under a chart.
#[component]
pub fn FigureTools(props: &Props) -> Html {
    let (listed, tabled) = (use_state_eq(|| false), use_state_eq(|| false));
    let Taken { id, name, .. } = &props.taken;
    let toggle = |state: &UseStateHandle<bool>| {
        let state = state.clone();
        Callback::from(move |_: MouseEvent| state.set(!*state))
    };
    let way = |&(way, before, after): &(&'static str, &'static str, &'static str)| {
        let own = Props { chart: props.chart.clone(), taken: props.taken.clone() };
        let take = Callback::from(move |_: MouseEvent| {
            // What the browser refuses is not taken along.
            let _ = own.take(way);
        });
        html! {
            <button type="button" class="plain" onclick={take} aria-label={format!("{before}{name}{after}")}
                data-testid={format!("{id}-{}", way.to_ascii_lowercase())}>{ way }</button>
        }
    };
    html! {
        <>
            <div class="tools" role="group" aria-label={format!("{name}, to take along")}>
                <button type="button" class="plain" onclick={toggle(&tabled)} aria-expanded={tabled.to_string()}
                    aria-label={format!("Table: {name}")} data-testid={format!("{id}-table")}>{ "Table" }</button>
                <button type="button" class="plain" onclick={toggle(&listed)} aria-expanded={listed.to_string()}
                    aria-label={format!("Take it along: {name}")} data-testid={format!("{id}-take")}>{ "Take it along" }</button>
                if *listed { { for WAYS.iter().map(way) } }
            </div>
            if *tabled { { table(&props.chart, name) } }
        </>
    }
}
