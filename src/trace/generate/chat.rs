//! `chat`: sessions that grow by turns: a prompt is all that was said before, and a question.

use super::frame::{Draft, Frame};
use crate::trace::Trace;

/// Turns of a session in the mean, and seconds in the mean between two of them. Sessions begin at the rate of
/// requests over the turns, so the rate is reached once the first sessions are through.
pub fn generate(frame: &Frame<'_>, turns: f64, think: f64) -> Trace {
    let mut draft = Draft::new(frame);
    draft.sessions(frame.base.rate / turns, |draft, mut time| {
        let tenant = draft.tenant();
        let mut said = draft.system(tenant).to_vec();
        for _ in 0..draft.turns(turns) {
            said.extend(draft.question());
            let answer = draft.answer();
            draft.push(time, tenant, said.clone(), answer.clone());
            said.extend(answer);
            time += think * draft.draw.exponential();
        }
    });
    draft.trace([])
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{base, frame};

    #[test]
    fn a_turn_goes_on_from_all_that_was_said() {
        let base = base(2000);
        let trace = super::generate(&frame(&base), 5.0, 2.0);
        assert_eq!(trace.requests.len(), 2000);
        assert!(trace.requests.is_sorted_by_key(|r| r.arrival));
        // Some earlier request's prompt and answer are how a later turn's prompt begins.
        let tokens = |at: usize| trace.requests[at].prompt.tokens().expect("it has tokens");
        let goes_on = |at: usize| {
            (0..at).any(|earlier| {
                let output = trace.requests[earlier].output.as_deref().expect("an answer is given");
                let (prompt, before) = (tokens(at), tokens(earlier));
                prompt.len() > before.len() + output.len()
                    && prompt[..before.len()] == *before
                    && prompt[before.len()..][..output.len()] == *output
            })
        };
        let later = (1000..1200).filter(|&at| goes_on(at)).count();
        assert!((120..190).contains(&later), "four turns of five are no first: {later} of 200");
    }
}
