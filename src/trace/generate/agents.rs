//! `agents`: tasks in steps behind one preamble that all agents share; a step's prompt is the transcript so far, and
//! grows by the answer and by what a tool said to it.

use super::frame::{Draft, Frame};
use crate::trace::Trace;

/// What tasks are like.
#[derive(Clone, Copy, Debug)]
pub struct Tasks {
    /// Steps of a task in the mean.
    pub steps: f64,
    /// Tokens of the preamble.
    pub preamble: u64,
    /// Tokens of what a tool says, in the mean.
    pub tool: u64,
    /// Seconds between two steps, in the mean.
    pub pause: f64,
}

/// Makes the trace. Tasks begin at the rate of requests over the steps.
pub fn generate(frame: &Frame<'_>, tasks: Tasks) -> Trace {
    let mut draft = Draft::new(frame);
    let preamble = draft.text(tasks.preamble);
    draft.sessions(frame.base.rate / tasks.steps, |draft, mut time| {
        let tenant = draft.tenant();
        let mut transcript = preamble.clone();
        transcript.extend_from_slice(draft.system(tenant));
        transcript.extend(draft.question());
        for _ in 0..draft.turns(tasks.steps) {
            let answer = draft.answer();
            draft.push(time, tenant, transcript.clone(), answer.clone());
            transcript.extend(answer);
            let said = draft.draw.between(tasks.tool.div_ceil(2), tasks.tool + tasks.tool / 2);
            let said = draft.text(said);
            transcript.extend(said);
            time += tasks.pause * draft.draw.exponential();
        }
    });
    draft.trace([])
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{base, frame};
    use super::*;
    use crate::portrait::Portrait;
    use crate::trace::Log;

    #[test]
    fn all_share_the_preamble_and_transcripts_grow() {
        let base = base(1000);
        let tasks = Tasks { steps: 8.0, preamble: 960, tool: 200, pause: 1.0 };
        let trace = generate(&frame(&base), tasks);
        let portrait = Portrait::of(&Log::from(trace));
        assert_eq!(portrait.reuse.shared_tokens, 960);
        let lengths = portrait.input.percentiles.expect("there are requests");
        assert!(lengths.p90 > lengths.min + 1000.0, "{lengths:?}");
        assert!(portrait.reuse.ideal > Some(0.7), "{:?}", portrait.reuse.ideal);
    }
}
