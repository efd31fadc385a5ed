//! `completion`: code completion over buffers that stay: a prompt is a buffer up to the cursor, which moves on by what
//! was typed and, half of the time, by what was proposed.

use super::frame::{Draft, Frame};
use crate::trace::{Token, Trace};

/// What buffers are like.
#[derive(Clone, Copy, Debug)]
pub struct Buffers {
    /// How many each tenant has.
    pub each: usize,
    /// Tokens of a buffer when it is opened; at twice as many it is closed and another opened.
    pub tokens: u64,
    /// Tokens typed between two proposals, at most.
    pub typed: u64,
}

/// Makes the trace.
pub fn generate(frame: &Frame<'_>, buffers: Buffers) -> Trace {
    let mut draft = Draft::new(frame);
    let mut open: Vec<Vec<Token>> = vec![Vec::new(); frame.base.tenants * buffers.each];
    draft.sessions(frame.base.rate, |draft, time| {
        let tenant = draft.tenant();
        let at = tenant as usize * buffers.each + draft.draw.between(0, buffers.each as u64 - 1) as usize;
        if open[at].is_empty() || open[at].len() as u64 >= 2 * buffers.tokens {
            open[at] = draft.text(buffers.tokens);
        } else {
            let typed = draft.draw.between(1, buffers.typed);
            let typed = draft.text(typed);
            open[at].extend(typed);
        }
        let prompt = [draft.system(tenant), &open[at]].concat();
        let answer = draft.answer();
        if draft.draw.unit() < 0.5 {
            open[at].extend_from_slice(&answer);
        }
        draft.push(time, tenant, prompt, answer);
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
    fn nearly_all_of_a_buffer_was_there_before() {
        let base = base(2000);
        let trace = generate(&frame(&base), Buffers { each: 4, tokens: 800, typed: 6 });
        let ideal = Portrait::of(&Log::from(trace)).reuse.ideal.expect("it has tokens");
        assert!((0.85..0.99).contains(&ideal), "{ideal}");
    }
}
