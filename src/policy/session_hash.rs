//! `session-hash`: every conversation has a replica of its own, whatever its load.
//!
//! vLLM production-stack's session routing (`routing_logic.py` @a6c01db0): the session's id on a hash
//! ring, and without one the fewest requests a second. The tenant stands in for the id, our ring for
//! uhashring's, and requests in flight for requests a second.

use super::tools::{Ring, requests, xxh64};
use super::{Asked, Decision, Policy, PolicyKind, PolicySettings, Reason, ReplicaLoad, least_loaded};

/// Hashes the conversation's id onto a ring.
#[derive(Clone, Debug)]
pub struct SessionHash {
    ring: Ring,
    vnodes: usize,
}

impl SessionHash {
    /// Fresh, with these settings.
    pub fn new(settings: &PolicySettings) -> SessionHash {
        let vnodes = settings.tuning.of(PolicyKind::SessionHash).whole("vnodes");
        SessionHash { ring: Ring::default(), vnodes }
    }
}

impl Policy for SessionHash {
    fn name(&self) -> &'static str {
        "session-hash"
    }

    fn retune(&mut self, settings: &PolicySettings) {
        self.vnodes = SessionHash::new(settings).vnodes;
    }

    fn route(&mut self, asked: &Asked<'_>, replicas: &[ReplicaLoad]) -> Decision {
        let Some(session) = asked.session else { return least_loaded(requests(replicas)) };
        self.ring.resize(replicas.len(), self.vnodes);
        let hash = xxh64(format!("session-{session}").as_bytes(), 0);
        let replica = self.ring.from(hash).next().expect("a ring has points");
        Decision { replica, reason: Reason::Session, preferred: Some(replica), ..Decision::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tools::in_flight;

    #[test]
    fn a_conversation_stays_and_who_has_none_goes_to_the_least_loaded() {
        let mut policy = SessionHash::new(&PolicySettings::default());
        let mut pick = |session, loads: &[u32]| {
            let asked = Asked { session, ..Asked::of(&[1]) };
            policy.route(&asked, &in_flight(loads))
        };
        for session in 0..20 {
            let calm = pick(Some(session), &[0, 0, 0, 0]);
            assert_eq!(pick(Some(session), &[9, 9, 9, 9]).replica, calm.replica);
            assert_eq!(calm.reason, Reason::Session);
        }
        let spread: Vec<u32> = (0..200).map(|session| pick(Some(session), &[0; 4]).replica).collect();
        assert!((0..4).all(|replica| spread.iter().filter(|&&own| own == replica).count() > 20));
        let none = pick(None, &[3, 1, 2, 1]);
        assert_eq!((none.replica, none.reason, none.tied), (1, Reason::LeastLoaded, 2));
    }
}
