//! What readers without JavaScript see in place of what the page computes when it is looked at: the same figures, computed
//! by the core while the page is built, and said to be.

use yew::prelude::*;

/// Something for readers without JavaScript only. It is rendered once, while the page is built; the page itself neither
/// computes nor carries it.
pub fn beforehand(make: impl FnOnce() -> Html) -> Html {
    let inside = if cfg!(target_arch = "wasm32") {
        html! {}
    } else {
        make()
    };
    html! { <noscript>{ inside }</noscript> }
}

#[cfg(not(target_arch = "wasm32"))]
pub use native::{ended, plain, underway};

#[cfg(target_arch = "wasm32")]
mod absent {
    use crate::ui::reducible::Shared;

    // Never called: `beforehand` calls nothing here.
    pub fn ended() -> Shared {
        unreachable!("the page renders nothing beforehand")
    }
    pub fn underway() -> Shared {
        unreachable!("the page renders nothing beforehand")
    }
}
#[cfg(target_arch = "wasm32")]
pub use absent::{ended, underway};

#[cfg(not(target_arch = "wasm32"))]
mod native {
    use std::rc::Rc;

    use crate::experiment::Experiment;
    use crate::report::{Report, to_json};
    use crate::ui::reducible::Shared;
    use crate::ui::state::{Action, State};
    use crate::worker::{Finished, Progress, Told, Trend};

    /// The default race, run without tensors, when it is over.
    pub fn ended() -> Shared {
        let mut state = Rc::new(State::open("backend=modelled", true));
        for lane in 0..state.lanes.len() {
            for told in run(&state, lane) {
                state = state.reduce(Action::Heard(lane, told));
            }
        }
        Shared(state)
    }

    /// The same in the middle of it.
    pub fn underway() -> Shared {
        let state = ended().0;
        let middle = state.reach() / 2;
        Shared(state.reduce(Action::Seek(middle)))
    }

    /// What a worker would tell of a lane.
    fn run(state: &State, lane: usize) -> Vec<Told> {
        let (run, policy) = (state.lanes[lane].run, state.lanes[lane].policy);
        let experiment = Experiment::new(state.config.clone());
        let mut simulation = experiment.simulation(policy, experiment.modelled_clock()).watch_blocks();
        let mut recorder = experiment.recorder();
        let mut trend = Trend::new(state.config.replicas as usize, state.config.objectives());
        let (mut events, mut points, mut at) = (Vec::new(), Vec::new(), 0);
        let step = |event: crate::sim::Event| {
            recorder.observe(&event);
            points.extend(trend.observe(&event));
            at = event.at;
            events.push(event);
        };
        let mut step = step;
        while simulation.advance(&mut step).expect("the default trace fits the clock") {}
        let of = experiment.trace.requests.len() as u32;
        let summary = experiment.summary(&recorder);
        let json = to_json(&[Report::new(&experiment, policy, summary.clone())]);
        let finished = Finished { summary, json, kv_bytes: 0, weight_bytes: 0, memory_bytes: 0, wall: 0.0 };
        vec![
            Told::Started { run },
            Told::Slice { run, progress: Progress { arrived: of, finished: of, of, at }, events, points },
            Told::Finished { run, finished: Box::new(finished) },
        ]
    }

    /// Attributes that would be there twice, or that speak of those.
    const NOT_TWICE: [&str; 6] =
        [" id=\"", " for=\"", " aria-labelledby=\"", " aria-describedby=\"", " data-testid=\"", " name=\""];

    /// Markup whose parts for readers without JavaScript have no names that the page's own parts have, are no landmarks
    /// beside theirs, and have none of the marks by which components are found again.
    pub fn plain(markup: &str) -> String {
        let mut parts = markup.split("<noscript>");
        let mut out = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (inside, rest) = part.split_once("</noscript>").unwrap_or((part, ""));
            let mut inside = without(inside, "<!--", "-->");
            for name in NOT_TWICE {
                inside = without(&inside, name, "\"");
            }
            let inside = inside
                .replace("<section", "<div role=\"group\"")
                .replace("</section>", "</div>")
                .replace("role=\"region\"", "role=\"group\"");
            out.extend(["<noscript>", &inside, "</noscript>", rest]);
        }
        out
    }

    /// A text without what lies between a beginning and the next end, and without both.
    fn without(text: &str, from: &str, to: &str) -> String {
        let mut parts = text.split(from);
        let mut out = parts.next().unwrap_or_default().to_owned();
        out.extend(parts.map(|part| part.split_once(to).map_or(part, |(_, rest)| rest)));
        out
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_race_is_over_and_its_figures_are_there() {
            let state = ended();
            assert!(state.over() && state.lanes.iter().all(|lane| lane.finished().is_some()));
            let middle = underway();
            assert!(middle.at > 0 && middle.at < state.at);
        }

        #[test]
        fn what_is_there_twice_has_its_names_once() {
            let markup =
                r#"<p id="a">x</p><noscript><!--<[C]>--><p id="a" class="b">y</p></noscript><b id="c"></b>"#;
            assert_eq!(
                plain(markup),
                r#"<p id="a">x</p><noscript><p class="b">y</p></noscript><b id="c"></b>"#
            );
        }
    }
}
