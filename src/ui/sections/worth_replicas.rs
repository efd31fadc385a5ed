//! Replica-equivalents: how many replicas under one policy do what these do under another.

use yew::prelude::*;

use super::worth::{StudyProps, button, focus, numbers, shown_command, stopped};
use crate::params::Config;
use crate::ui::state::Action;
use crate::ui::study::words::{scan_command, scanned};
use crate::ui::study::{Act, BY, OF, Phase, Scan};
use crate::ui::widgets::Said;

/// The part of the section.
pub(super) fn replicas(props: &StudyProps) -> Html {
    let (study, config) = (&props.study, &props.config);
    let begin = props.dispatch.reform(|_: MouseEvent| Action::Study(Act::Scan));
    let seeds = study.settings.seeds(config);
    html! {
        <>
            <h3 id="replicas-title">{ "In replicas" }</h3>
            <p class="intro">{ format!("How many replicas under {} would serve as many requests well as {} do under {}, on \
                the same trace, at {} requests a second? They are counted upwards from one, since more are not always \
                better, and up to a cap.", BY.name(), config.replicas, OF.name(), config.rate) }</p>
            <div class="buttons">
                { button("scan-run", "Count replicas", seeds.is_err(), begin) }
                if let Ok(seeds) = &seeds {
                    <span class="quiet">{ match seeds.count() {
                        1 => "With one seed.".to_owned(),
                        count => format!("With {count} seeds, as above."),
                    } }</span>
                } else {
                    <span class="quiet">{ "The seeds above are not taken." }</span>
                }
            </div>
            if let Some(scan) = &study.scan { { result(props, scan) } }
            <Said id="scan-verdict" text={
                study.scan.as_ref().filter(|scan| scan.phase == Phase::Done).map_or_else(String::new, |scan| scanned(scan).join(" "))
            } />
        </>
    }
}

/// What came of it so far.
fn result(props: &StudyProps, scan: &Scan) -> Html {
    let (done, of) = (scan.found.len() as u64, scan.seeds.count());
    let cancel = props.dispatch.reform(|_: MouseEvent| {
        focus("scan-run");
        Action::Study(Act::Cancel)
    });
    let settled = scan.phase != Phase::Running;
    let same = |config: &Config| Config { policy: Vec::new(), ..config.clone() };
    let stale = same(&scan.config) != same(&props.config);
    let sentences = scanned(scan);
    let said = sentences.iter().enumerate().map(|(at, sentence)| {
        html! { <p class={if at == 0 { "fact worth-fact" } else { "intro" }}>{ sentence.clone() }</p> }
    });
    html! {
        <div data-testid="scan-results">
            if !settled {
                <div class="buttons">
                    { button("scan-cancel", "Cancel", false, cancel) }
                    <span class="quiet"><progress max={of.to_string()} value={done.to_string()} aria-label="seeds"></progress>
                        { format!(" {done} of {of} seeds") }</span>
                </div>
            }
            { stopped(&scan.phase) }
            if scan.phase != Phase::Done && settled {
                <p class="notice">{ format!("Partial: {done} of {of} seeds.") }</p>
            }
            if stale { <p class="notice">{ "What is shown was counted with other parameters than those above now." }</p> }
            if settled { { for said } }
            if settled && done > 0 { { table(scan) } }
            { shown_command("scan-command", scan_command(&scan.config, scan.seeds, scan.ask.cap)) }
        </div>
    }
}

fn table(scan: &Scan) -> Html {
    let percent = |f: Option<f64>| f.map_or_else(|| "–".to_owned(), |f| format!("{:.1} %", 100.0 * f));
    let rows = scan.found.iter().map(|one| {
        let count = one.equivalents.map_or_else(|| format!("more than {}", one.cap), |m| m.to_string());
        let last = percent(one.fractions.last().copied().flatten());
        [one.seed.to_string(), percent(one.target), count, last].map(|text| html! { text }).to_vec()
    });
    let heads = ["seed".to_owned(), format!("good: {}", OF.name()), format!("{} replicas", BY.name())];
    let heads = heads.into_iter().chain([format!("good: {}", BY.name())]).collect();
    let caption = format!(
        "Good requests under each, and the least number of {} replicas with as many; at most {} were tried.",
        BY.name(),
        scan.ask.cap
    );
    numbers("scan-table", "Seed by seed", caption, heads, rows.collect())
}
