//! `noisy-neighbour`: the tenants of a multi-tenant trace, and one more that comes in bursts of long prompts that
//! nobody, itself included, has asked before.

use super::frame::{Draft, Frame};
use crate::trace::{TenantName, Trace};

/// What the neighbour does.
#[derive(Clone, Copy, Debug)]
pub struct Neighbour {
    /// Its part of all requests.
    pub share: f64,
    /// Tokens of its prompts.
    pub tokens: u64,
    /// Seconds of a burst.
    pub on: f64,
    /// Seconds between two bursts.
    pub off: f64,
}

/// Makes the trace: others arrive as asked for, the neighbour's requests evenly at random within its bursts, which
/// begin after the first pause.
pub fn generate(frame: &Frame<'_>, neighbour: Neighbour) -> Trace {
    let mut draft = Draft::new(frame);
    let (base, Neighbour { share, tokens, on, off }) = (frame.base, neighbour);
    let noise = base.tenants as u32;
    let mut process = frame.arrivals.at(base.rate * (1.0 - share).max(1e-9));
    let mut others = if share < 1.0 { process.next(&mut draft.draw) } else { None };
    // Its own time counts only while it is on.
    let burst_rate = base.rate * share * (on + off) / on;
    let next = |draft: &mut Draft<'_>, own: &mut f64| {
        *own += draft.draw.exponential() / burst_rate;
        libm::floor(*own / on) * off + off + *own
    };
    let mut own = 0.0;
    let mut noisy = if share > 0.0 { Some(next(&mut draft, &mut own)) } else { None };
    while !draft.is_full() {
        match (others, noisy) {
            (None, None) => break,
            (Some(time), burst) if burst.is_none_or(|burst| time <= burst) => {
                let tenant = draft.tenant();
                draft.ask(time, tenant);
                others = process.next(&mut draft.draw);
            }
            (_, Some(time)) => {
                let (prompt, answer) = (draft.text(tokens), draft.answer());
                draft.push(time, noise, prompt, answer);
                noisy = Some(next(&mut draft, &mut own)).filter(|time| *time < 1e7);
            }
            (Some(_), None) => unreachable!("without bursts the first arm takes it"),
        }
    }
    draft.trace([TenantName::Text("noisy neighbour".into())])
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{base, frame};
    use super::*;

    #[test]
    fn the_neighbour_has_its_share_and_comes_in_bursts() {
        let base = base(8000);
        let neighbour = Neighbour { share: 0.4, tokens: 500, on: 10.0, off: 30.0 };
        let trace = generate(&frame(&base), neighbour);
        let noisy: Vec<_> = trace.requests.iter().filter(|r| r.tenant == Some(6)).collect();
        let share = noisy.len() as f64 / 8000.0;
        assert!((0.36..0.44).contains(&share), "{share}");
        assert!(noisy.iter().all(|r| r.prompt.len() == 500 && r.arrival.seconds().rem_euclid(40.0) >= 30.0));
        assert_eq!(trace.tenants.len(), 7);
        let last = trace.requests.last().expect("8000 requests").arrival.seconds();
        assert!((900.0..1100.0).contains(&last), "8000 requests at 8 a second took {last} s");
    }
}
