//! What a removed replica took with it: the cached tokens that are lost, and what that cost the requests that
//! came after, which no dashboard shows.
//!
//! A removed replica's cache is kept here as it was, as a ghost. For each request that is routed later, if
//! the ghost has more of its prompt than the replica that gets it, the difference is prefill that the removal
//! made necessary. Once that is paid, the blocks are in a living cache, so nothing is billed twice. A ghost is
//! forgotten after [`MEMORY`], by when the live one would have evicted much of it.

use serde::Serialize;

use super::life::End;
use crate::engine::Replica;
use crate::trace::Prompt;
use crate::units::{PICOS_PER_SECOND, Span, Time};

/// How long a removed replica's cache is billed for. This project's own choice.
pub const MEMORY: Span = Span(600 * PICOS_PER_SECOND);

/// Most ghosts at a time: each is looked at for every request.
const MOST: usize = 8;

/// What the end of a replica cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Bill {
    /// The replica.
    pub replica: u32,
    /// When it went, in picoseconds.
    pub at: u64,
    /// How.
    pub end: End,
    /// Tokens in its cache when it went.
    pub cached_tokens: u64,
    /// Of those, prompt tokens that later requests had to compute.
    pub extra_tokens: u64,
    /// How many requests did.
    pub extra_requests: u32,
}

struct Ghost {
    /// Its place among the bills.
    bill: usize,
    since: Time,
    replica: Replica,
}

/// The bills so far.
#[derive(Default)]
pub(super) struct Bills {
    bills: Vec<Bill>,
    ghosts: Vec<Ghost>,
}

impl Bills {
    /// A replica that had served is gone.
    pub fn gone(&mut self, id: u32, now: Time, end: End, cached_tokens: u64, replica: Replica) {
        self.ghosts.push(Ghost { bill: self.bills.len(), since: now, replica });
        if self.ghosts.len() > MOST {
            self.ghosts.remove(0);
        }
        self.bills.push(Bill {
            replica: id,
            at: now.0,
            end,
            cached_tokens,
            extra_tokens: 0,
            extra_requests: 0,
        });
    }

    /// A request is routed to a replica: whoever is gone and had more of it is billed for that.
    pub fn routed(&mut self, now: Time, prompt: &Prompt, replica: &Replica) {
        self.ghosts.retain(|ghost| now.since(ghost.since) <= MEMORY);
        if self.ghosts.is_empty() {
            return;
        }
        let size = replica.limits().block_size;
        // The last token is computed in any case.
        let most = prompt.len().saturating_sub(1) / size;
        let matched = |replica: &Replica| replica.matched_blocks(prompt).min(most);
        let here = matched(replica);
        let (mut best, mut whose) = (here, None);
        for ghost in &self.ghosts {
            let there = matched(&ghost.replica);
            if there > best {
                (best, whose) = (there, Some(ghost.bill));
            }
        }
        if let Some(bill) = whose {
            self.bills[bill].extra_tokens += ((best - here) * size) as u64;
            self.bills[bill].extra_requests += 1;
        }
    }

    /// All of them, in order of time.
    pub fn into_bills(self) -> Vec<Bill> {
        self.bills
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::sampling::Sampling;
    use crate::engine::{Engine, Limits, Modelled, Request};

    const LIMITS: Limits = Limits { blocks: 64, block_size: 4, max_batch: 4, positions: 256 };

    fn serve(replica: &mut Replica, prompt: &Prompt) {
        let request = Request {
            id: 0,
            tenant: None,
            prompt: prompt.clone(),
            max_tokens: 1,
            output: None,
            sampling: Sampling::default(),
        };
        replica.add_request(request).expect("it fits");
        replica.step();
    }

    #[test]
    fn the_difference_is_billed_once() {
        let prompt = Prompt::from((0..20).collect::<Vec<_>>());
        let [mut gone, mut here] = [0, 1].map(|i| Replica::new(i, LIMITS, Box::new(Modelled)));
        serve(&mut gone, &prompt);
        serve(&mut here, &Prompt::from(vec![0, 1, 2, 3, 9]));
        let mut bills = Bills::default();
        bills.gone(0, Time(5), End::Drained, 20, gone);
        // Four of five blocks can be reused; the living one has the first.
        bills.routed(Time(6), &prompt, &here);
        serve(&mut here, &prompt);
        bills.routed(Time(7), &prompt, &here);
        let bills = bills.into_bills();
        assert_eq!((bills.len(), bills[0].extra_tokens, bills[0].extra_requests), (1, 12, 1));
    }

    #[test]
    fn nobody_is_billed_for_ever() {
        let prompt = Prompt::from((0..20).collect::<Vec<_>>());
        let [mut gone, here] = [0, 1].map(|i| Replica::new(i, LIMITS, Box::new(Modelled)));
        serve(&mut gone, &prompt);
        let mut bills = Bills::default();
        bills.gone(0, Time(0), End::Failed, 20, gone);
        bills.routed(Time(MEMORY.0 + 1), &prompt, &here);
        assert_eq!(bills.into_bills()[0].extra_tokens, 0);
    }
}
