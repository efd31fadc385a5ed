//! What a router itself has in flight, told request by request: for the rules that project loads from
//! what they sent (NVIDIA Dynamo, vLLM router's `kv_aware`, llm-d's filter).

use std::collections::BTreeMap;

use crate::policy::{Happened, Told};

/// One request in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flight {
    /// Where it was sent.
    pub replica: u32,
    /// Prompt tokens that were to be computed for it.
    pub uncached: u64,
    /// Hashes of its blocks, where a policy counts blocks.
    pub blocks: Vec<u64>,
    /// Whether its prompt is computed.
    pub begun: bool,
}

/// What is in flight on one replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Requests.
    pub requests: u64,
    /// Prompt tokens still to be computed.
    pub prefill: u64,
}

/// All that is in flight.
#[derive(Clone, Debug, Default)]
pub struct Own {
    flights: BTreeMap<u32, Flight>,
    tallies: Vec<Tally>,
}

impl Own {
    /// What is in flight on a replica.
    pub fn on(&self, replica: usize) -> Tally {
        self.tallies.get(replica).copied().unwrap_or_default()
    }

    /// A request is sent.
    pub fn sent(&mut self, request: u32, flight: Flight) {
        let at = flight.replica as usize;
        if self.tallies.len() <= at {
            self.tallies.resize(at + 1, Tally::default());
        }
        self.tallies[at].requests += 1;
        self.tallies[at].prefill += flight.uncached;
        self.flights.insert(request, flight);
    }

    /// Something happened to one of them; what was in flight is returned once it is finished.
    pub fn told(&mut self, told: Told) -> Option<Flight> {
        let flight = self.flights.get_mut(&told.request)?;
        let tally = &mut self.tallies[flight.replica as usize];
        if !core::mem::replace(&mut flight.begun, true) {
            tally.prefill -= flight.uncached;
        }
        if told.what == Happened::FirstToken {
            return None;
        }
        tally.requests -= 1;
        self.flights.remove(&told.request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_counts_until_its_first_token_and_a_request_until_its_last() {
        let mut own = Own::default();
        own.sent(4, Flight { replica: 2, uncached: 100, ..Flight::default() });
        own.sent(5, Flight { replica: 2, uncached: 7, ..Flight::default() });
        assert_eq!((own.on(2), own.on(0)), (Tally { requests: 2, prefill: 107 }, Tally::default()));
        let told = |request, what| Told { request, replica: 2, what };
        for _ in 0..2 {
            assert_eq!(own.told(told(4, Happened::FirstToken)), None, "a preempted request's comes twice");
            assert_eq!(own.on(2), Tally { requests: 2, prefill: 7 });
        }
        assert_eq!(own.told(told(4, Happened::Finished)).map(|flight| flight.uncached), Some(100));
        assert_eq!(own.on(2), Tally { requests: 1, prefill: 7 });
        assert_eq!(own.told(told(9, Happened::Finished)), None, "somebody else's");
    }
}
