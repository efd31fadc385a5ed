//! What happened at one instant, in a line: the arrivals, which all lanes share, and what each did.

use super::playback::Refused;
use super::state::{Lane, State};
use super::words::tenant_name;
use crate::policy::grouped;
use crate::sim::{Arrival, Event, What};
use crate::units::{PICOS_PER_SECOND, Time};

/// The most sentences of a line.
const MOST: usize = 6;

/// The line of the last instant, up to the moment shown, at which anything happened.
pub fn line(state: &State) -> String {
    let Some(at) = state.instant() else { return "Nothing has happened yet.".into() };
    let lanes: Vec<(String, &Lane)> = named(state).collect();
    let mut told = arrivals(&lanes, at);
    for (name, lane) in &lanes {
        let steps: Vec<String> = lane.log.instant(at).filter_map(step).collect();
        if !steps.is_empty() {
            told.push(format!("{name}: {}.", steps.join("; ")));
        }
    }
    let more = told.len().saturating_sub(MOST);
    told.truncate(MOST);
    if more > 0 {
        told.push(format!("And {more} more."));
    }
    format!("{}: {}", exact(at), told.join(" "))
}

/// A moment to the millisecond, or finer where that says nothing.
pub fn exact(at: u64) -> String {
    let seconds = at as f64 / PICOS_PER_SECOND as f64;
    if seconds > 0.0 && seconds < 0.1 {
        format!("{:.3} ms", seconds * 1e3)
    } else {
        format!("{seconds:.4} s")
    }
}

fn named(state: &State) -> impl Iterator<Item = (String, &Lane)> {
    let lanes = state.lanes.iter().map(|lane| (lane.policy.name().to_owned(), lane));
    let fork = state.fork.iter().filter(|fork| state.at > fork.at);
    lanes.chain(fork.map(|fork| ("the fork".to_owned(), &fork.future)))
}

/// Of each request that arrives at an instant, where each lane sends it.
fn arrivals(lanes: &[(String, &Lane)], at: u64) -> Vec<String> {
    // Lanes that were told less far know of fewer.
    let mut known: Vec<Arrival> = Vec::new();
    for (_, lane) in lanes {
        let arrived: Vec<Arrival> = lane.log.instant(at).filter_map(arrival).collect();
        if arrived.len() > known.len() {
            known = arrived;
        }
    }
    let one = |arrival_of: &Arrival| {
        let to: Vec<String> = lanes
            .iter()
            .filter_map(|(name, lane)| {
                let is = |event: &&Event| arrival(event).is_some_and(|a| a.request == arrival_of.request);
                match &lane.log.instant(at).find(is)?.what {
                    What::Routed { replica, .. } => Some(format!("{name} to replica {replica}")),
                    What::Rejected { rejection, .. } => Some(format!("{name} rejects it ({rejection})")),
                    _ => None,
                }
            })
            .collect();
        format!(
            "request {} arrives (tenant {}, {} prompt tokens): {}.",
            arrival_of.request,
            tenant_name(arrival_of.tenant),
            grouped(arrival_of.prompt.into()),
            to.join(", ")
        )
    };
    known.iter().map(one).collect()
}

fn arrival(event: &Event) -> Option<Arrival> {
    match &event.what {
        What::Routed { arrival, .. } | What::Rejected { arrival, .. } => Some(*arrival),
        _ => None,
    }
}

/// What a replica did, without a full stop; `None` for what is no step.
fn step(event: &Event) -> Option<String> {
    let some = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match &event.what {
        What::StepStarted { start, ends, .. } => {
            let mut does: Vec<String> = Vec::new();
            does.extend(start.preempted.iter().map(|request| format!("request {request} is preempted")));
            if start.evicted > 0 {
                does.push(format!("{} evicted", some(start.evicted as usize, "cached block")));
            }
            does.extend(start.continued.map(|one| {
                format!(
                    "request {}'s prompt goes on with {}",
                    one.request,
                    some(one.computed as usize, "token")
                )
            }));
            does.extend(start.admitted.iter().map(|one| {
                format!(
                    "request {} is admitted with {} cached, {} to compute",
                    one.request,
                    some(one.cached as usize, "token"),
                    grouped(one.computed.into())
                )
            }));
            if let Some(decode) = start.work.decode {
                does.push(format!("{} to decode", some(decode.tokens as usize, "token")));
            }
            let takes = super::words::time(Time(*ends).since(Time(event.at)).0);
            Some(format!("replica {} begins a step of {takes} ({})", start.replica, does.join(", ")))
        }
        What::StepEnded { end, .. } => {
            let done: Vec<String> = end
                .emitted
                .iter()
                .filter(|token| token.last)
                .map(|token| format!(", request {} is finished", token.request))
                .collect();
            let tokens = some(end.emitted.len(), "token");
            Some(format!("replica {} ends its step with {tokens}{}", end.replica, done.concat()))
        }
        _ => None,
    }
}

/// What is said of requests that were refused; `None`: none was.
pub fn refusals(refused: &[Refused]) -> Option<String> {
    let last = refused.last()?;
    let many = if refused.len() == 1 { "request" } else { "requests" };
    Some(format!(
        "{} {many} rejected; the latest is request {}: {}.",
        grouped(refused.len() as u64),
        last.arrival.request,
        last.why
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Config;
    use crate::ui::playback::tests::log;
    use crate::ui::state::{Action, Toward};
    use crate::worker::{Progress, Told};
    use std::rc::Rc;

    fn told(query: &str) -> Rc<State> {
        let mut state = Rc::new(State::open(query, false));
        let config = state.config.clone();
        for lane in 0..state.lanes.len() {
            let Lane { policy, run, .. } = state.lanes[lane];
            let events: Vec<Event> = log(&config, policy, 64).0.iter().cloned().collect();
            let progress = Progress { at: events.last().map_or(0, |e| e.at), ..Progress::default() };
            let said = Told::Slice { run, progress, events, points: Vec::new() };
            state = state.reduce(Action::Heard(lane, said));
        }
        state
    }

    #[test]
    fn steps_go_from_instant_to_instant_and_back_the_same_way() {
        let mut state = told("");
        let mut instants = Vec::new();
        for _ in 0..200 {
            state = Rc::clone(&state).reduce(Action::Step(Toward::Future));
            assert!(state.paused && state.instant() == Some(state.at));
            instants.push((state.at, line(&state)));
        }
        assert!(
            instants.is_sorted_by_key(|(at, _)| *at) && instants[0].1.starts_with("0.1") || instants[0].0 > 0
        );
        while let Some((at, said)) = instants.pop() {
            assert_eq!((state.at, line(&state)), (at, said));
            state = Rc::clone(&state).reduce(Action::Step(Toward::Past));
        }
        let first = Rc::clone(&state).reduce(Action::Step(Toward::Past));
        assert_eq!(first.at, state.at, "before the first there is nothing");
    }

    #[test]
    fn an_instant_is_told_with_what_every_lane_did() {
        let mut state = told("");
        state = Rc::clone(&state).reduce(Action::Step(Toward::Future));
        let said = line(&state);
        assert!(said.contains("request 0 arrives (tenant "), "{said}");
        assert!(
            said.contains("round-robin to replica 0, least-tokens to replica 0, prefix-affinity to"),
            "{said}"
        );
        assert!(said.contains("round-robin: replica 0 begins a step of "), "{said}");
        assert!(said.contains("request 0 is admitted with 0 tokens cached"), "{said}");
        let mut ended = false;
        for _ in 0..300 {
            state = Rc::clone(&state).reduce(Action::Step(Toward::Future));
            let said = line(&state);
            ended |= said.contains("ends its step with") && said.contains("is finished");
        }
        assert!(ended);
        assert_eq!(line(&State::open("", false)), "Nothing has happened yet.");
    }

    #[test]
    fn what_is_rejected_is_said() {
        let mut state = told("blocks=4");
        state = Rc::clone(&state).reduce(Action::Step(Toward::Future));
        assert!(
            line(&state).contains("round-robin rejects it (prompt + max_tokens needs"),
            "{}",
            line(&state)
        );
        let config = Config { blocks: crate::params::Blocks::Number(4), ..Config::default() };
        let mut fold = crate::ui::playback::Fold::new(4, 4);
        let (log, _) = log(&config, crate::policy::PolicyKind::RoundRobin, 64);
        fold.seek(&log, log.end());
        let said = refusals(&fold.refused).expect("some were");
        assert!(said.starts_with("24 requests rejected; the latest is request 23: prompt"), "{said}");
        assert_eq!(refusals(&[]), None);
    }
}
