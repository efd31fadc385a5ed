//! The section on cold starts: how long a new replica's weights take, and what follows.

use yew::prelude::*;

use super::cold_start_control::Control;
use crate::coldstart::{
    Bandwidth, LEFT_OUT, PARAMS, Path, Precision, Row, Settings, consequences, rate_text, rows, seconds_text,
};
use crate::ui::widgets::use_said;

/// What [`ColdStart`] is given.
#[derive(PartialEq, Properties)]
pub struct ColdStartProps {
    /// The settings in force.
    pub settings: Settings,
    /// Told of every valid change.
    pub on_change: Callback<Settings>,
}

/// The whole section.
#[component]
pub fn ColdStart(props: &ColdStartProps) -> Html {
    let settings = props.settings;
    let transfer = settings.transfer();
    let controls = (0..PARAMS.len()).map(|setting| {
        html! { <Control key={setting} {setting} {settings} on_change={props.on_change.clone()} /> }
    });
    use_said(format!("{}: {}", seconds_text(transfer.seconds()), transfer.formula()).into());
    let consequences = consequences(&settings).into_iter().map(|consequence| {
        html! { <li key={consequence.title}><h4>{ consequence.title }</h4><p>{ consequence.text }</p></li> }
    });
    let left_out = LEFT_OUT.iter().map(|what| html! { <li key={*what}>{ *what }</li> });
    html! {
        <section id="cold-start" class="cold" aria-labelledby="cold-start-title">
            <h2 id="cold-start-title">{ "Cold starts" }</h2>
            <p>
                { "A new replica is of no use before its weights are on the device. How long they travel is a \
                   division, and no cleverness in routing or scaling gets below it." }
            </p>
            <div class="cold-controls">{ for controls }</div>
            <div class="cold-result">
                <p class="cold-seconds">{ seconds_text(transfer.seconds()) }</p>
                <p class="cold-formula">{ transfer.formula() }</p>
                <p class="cold-help">
                    { format!("{} of weights; pure transfer time, a floor. GB is 10⁹ bytes.", transfer.size_text()) }
                    if settings.precision == Precision::Int4 {
                        { " The scales that int4 needs beside the weights are not counted: a few percent more." }
                    }
                </p>
            </div>
            <section class="cold-scroll" tabindex="0" aria-label="Table of transfer times">
                { table(&settings) }
            </section>
            { source(settings.bandwidth) }
            <h3>{ "What follows" }</h3>
            <ol class="cold-consequences">{ for consequences }</ol>
            <h3>{ "What this leaves out" }</h3>
            <p>{ "The figure is what remains if all else took no time. A real start also has:" }</p>
            <ul>{ for left_out }</ul>
        </section>
    }
}

fn table(settings: &Settings) -> Html {
    let headings = Precision::SIZES.map(|(_, names)| html! { <th scope="col">{ names }</th> });
    let body = rows(settings).into_iter().map(|row| {
        let chosen_row = row.model == settings.parameters.to_string();
        let cells = Precision::SIZES.map(|(precision, _)| {
            let same = precision.bytes_per_parameter() == settings.precision.bytes_per_parameter();
            cell(&row, precision, chosen_row && same)
        });
        html! { <tr key={row.model.clone()}><th scope="row">{ row.model.clone() }</th>{ for cells }</tr> }
    });
    html! {
        <table>
            <caption>
                { format!("Transfer time at {}, by model and precision", settings.bandwidth) }
            </caption>
            <thead><tr><th scope="col">{ "Model" }</th>{ for headings }</tr></thead>
            <tbody>{ for body }</tbody>
        </table>
    }
}

fn cell(row: &Row, precision: Precision, chosen: bool) -> Html {
    let text = seconds_text(row.cell(precision).seconds);
    if chosen {
        html! { <td class="cold-chosen" aria-current="true"><strong>{ text }</strong></td> }
    } else {
        html! { <td>{ text }</td> }
    }
}

/// Where a named path's rate is from.
fn source(bandwidth: Bandwidth) -> Html {
    let text = match bandwidth {
        Bandwidth::Of(path) => format!("Source of this bandwidth: {}.", Path::source(path)),
        Bandwidth::Rate(rate) => format!("{} is a number of your own.", rate_text(rate)),
    };
    html! { <p class="cold-help">{ text }</p> }
}
