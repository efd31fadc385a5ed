//! `batch`: offline work: documents behind their job's instructions, all there at once, or in waves.

use super::frame::{Draft, Frame};
use crate::trace::Trace;

/// Requests of a wave (0: one wave of all), and seconds between two waves. A wave's jobs are in order, as a batch
/// file has them.
pub fn generate(frame: &Frame<'_>, wave: usize, gap: f64) -> Trace {
    let mut draft = Draft::new(frame);
    let size = if wave == 0 { frame.base.requests } else { wave };
    while !draft.is_full() {
        let time = gap * (draft.len() / size) as f64;
        let mut jobs: Vec<u32> =
            (0..size.min(frame.base.requests - draft.len())).map(|_| draft.tenant()).collect();
        jobs.sort_unstable();
        let before = draft.len();
        for tenant in jobs {
            draft.ask(time, tenant);
        }
        if draft.len() == before {
            break;
        }
    }
    draft.trace([])
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{base, frame};

    #[test]
    fn waves_arrive_whole_and_jobs_in_order() {
        let base = base(250);
        let trace = super::generate(&frame(&base), 100, 60.0);
        let at = |seconds: f64| trace.requests.iter().filter(|r| r.arrival.seconds() == seconds).count();
        assert_eq!([at(0.0), at(60.0), at(120.0)], [100, 100, 50]);
        assert!(trace.requests[..100].is_sorted_by_key(|r| r.tenant));
        let all = super::generate(&frame(&base), 0, 60.0);
        assert!(all.requests.iter().all(|r| r.arrival.0 == 0) && all.requests.len() == 250);
    }
}
