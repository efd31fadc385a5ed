//! 6: a bet before the race, and the result against it.

use yew::prelude::*;

use crate::policy::PolicyKind;
use crate::sim::Summary;
use crate::ui::sections::Props;
use crate::ui::widgets::Mark;
use crate::ui::words::seconds;

/// A question, how its answer is found, and how it is told.
struct Question {
    id: &'static str,
    asks: &'static str,
    /// Lower wins.
    score: fn(&Summary) -> Option<f64>,
    says: fn(&Summary) -> String,
}

const QUESTIONS: [Question; 2] = [
    Question {
        id: "fastest",
        asks: "Which policy has the lowest median TTFT?",
        score: |s| s.ttft.p50,
        says: |s| format!("a median TTFT of {}", s.ttft.p50.map_or_else(|| "nothing".into(), seconds)),
    },
    Question {
        id: "uneven",
        asks: "Which one is the least balanced?",
        score: |s| s.imbalance.map(|x| -x),
        says: |s| format!("an imbalance of {:.2}", s.imbalance.unwrap_or(1.0)),
    },
];

/// The answers: all policies that are best, ties together.
fn winners(question: &Question, results: &[(PolicyKind, &Summary)]) -> Vec<PolicyKind> {
    let best = results.iter().filter_map(|(_, s)| (question.score)(s)).fold(f64::INFINITY, f64::min);
    results.iter().filter(|(_, s)| (question.score)(s) == Some(best)).map(|(policy, _)| *policy).collect()
}

fn verdict(question: &Question, bet: PolicyKind, results: &[(PolicyKind, &Summary)]) -> String {
    let winners = winners(question, results);
    let told = |policy: PolicyKind| {
        let summary = results.iter().find(|(own, _)| *own == policy).map(|(_, s)| *s);
        format!("{} with {}", policy.name(), summary.map_or_else(String::new, question.says))
    };
    let names: Vec<String> = winners.iter().map(|&winner| told(winner)).collect();
    match winners.contains(&bet) {
        true => format!("Your bet holds: {}.", names.join(", and ")),
        false => format!("You bet on {}. It is {}.", told(bet), names.join(", and ")),
    }
}

/// The bet.
#[component]
pub fn Bet(props: &Props) -> Html {
    let state = &*props.state.0;
    let bets = use_state_eq(|| [None::<PolicyKind>; 2]);
    let results: Vec<(PolicyKind, &Summary)> =
        state.lanes.iter().filter_map(|lane| Some((lane.policy, &lane.finished()?.summary))).collect();
    let over = state.over() && results.len() == state.lanes.len() && !results.is_empty();
    html! {
        <div class="bet" data-testid="bet">
            <h3>{ "First, a bet" }</h3>
            <div class="fields">
                { for QUESTIONS.iter().enumerate().map(|(at, question)| html! {
                    <fieldset>
                        <legend>{ question.asks }</legend>
                        { for state.lanes.iter().map(|lane| {
                            let (policy, bets, bet) = (lane.policy, bets.clone(), bets[at]);
                            let onchange = Callback::from(move |_: Event| {
                                let mut all = *bets;
                                all[at] = Some(policy);
                                bets.set(all);
                            });
                            html! {
                                <label class="tick">
                                    <input type="radio" name={format!("bet-{}", question.id)} value={policy.name()}
                                        checked={bet == Some(policy)} {onchange} />
                                    <Mark {policy} />{ policy.name() }
                                </label>
                            }
                        }) }
                        <p class="verdict" data-testid={format!("bet-{}", question.id)}>{ match bets[at] {
                            None => "Or just watch.".to_owned(),
                            Some(_) if !over => "The race decides.".to_owned(),
                            Some(bet) => verdict(question, bet, &results),
                        } }</p>
                    </fieldset>
                }) }
            </div>
        </div>
    }
}
