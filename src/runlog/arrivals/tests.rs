//! Tests of how arrivals and decisions are written.

use super::*;

fn written_and_read(state: &Arrivals, entry: &ArrivalEntry) -> (usize, ArrivalEntry) {
    let mut out = Vec::new();
    state.write(entry, &mut out);
    let mut reader = Reader::new(&out, 1);
    let read = state.read(out[0], &mut reader).expect("it was written");
    assert!(out[0] < 0x80 && reader.is_done());
    (out.len(), read)
}

fn sent(request: u32, decision: Option<Decision>) -> ArrivalEntry {
    let arrival = Arrival { request, tenant: Some(3), prompt: 1155, max_tokens: 211 };
    ArrivalEntry::Routed { arrival, replica: 2, decision }
}

fn setting() -> ArrivalEntry {
    ArrivalEntry::Setting(Setting { policy: PolicyKind::PrefixAffinity, guard: Some(1.7), replicas: 3 })
}

fn decision() -> Decision {
    Decision {
        replica: 2,
        reason: Reason::GuardFired,
        loads: vec![100_000, 1_900_000, 31],
        mean: Some((100_000 + 1_900_000 + 31) as f64 / 3.0),
        preferred: Some(1),
        guard_limit: Some(1.7 * ((100_000 + 1_900_000 + 31) as f64 / 3.0)),
        tied: 1,
        ..Decision::default()
    }
}

#[test]
fn a_decision_is_read_as_it_was_made() {
    let mut state = Arrivals::new();
    state.apply(0, &setting()).expect("it is possible");
    let mut request = 0;
    let mut check = |state: &mut Arrivals, decision: Option<Decision>| {
        let entry = sent(request, decision);
        let (len, read) = written_and_read(state, &entry);
        assert_eq!(read, entry);
        state.apply(u64::from(request), &entry).expect("it is possible");
        request += 1;
        len
    };
    let first = check(&mut state, Some(decision()));
    let again = check(&mut state, Some(decision()));
    assert!(again < first && again <= 15, "loads that stay are short: {again} bytes");
    check(&mut state, None);
    // What no policy of ours says, and what cannot be computed from the rest.
    check(&mut state, Some(Decision { mean: Some(f64::MAX), guard_limit: Some(-0.0), ..decision() }));
    check(&mut state, Some(Decision { mean: None, guard_limit: None, preferred: None, ..decision() }));
    check(&mut state, Some(Decision { loads: vec![], mean: Some(1.0), ..decision() }));
    check(&mut state, Some(Decision { loads: vec![u64::MAX; 40], mean: None, ..decision() }));
    let matched = vec![0, 7, 1 << 20];
    check(&mut state, Some(Decision { reason: Reason::LongestMatch, matched, ..decision() }));
    let (scores, candidates) = (vec![0.5, f64::INFINITY, -3.0], vec![0, 2]);
    check(&mut state, Some(Decision { predicted: Some(0), scores, candidates, ..decision() }));
    for reason in Reason::ALL {
        check(&mut state, Some(Decision { reason, ..decision() }));
    }
    let view = View { router: Some(1), refreshed: Some(1 << 50), own: true };
    check(&mut state, Some(Decision { view, ..decision() }));
    check(&mut state, Some(Decision { view, ..decision() }));
    let (at, last) = state.routed.expect("some were sent");
    assert_eq!((at, state.arrived, last.arrival().map(|a| a.request)), (20, 21, Some(20)));
}

#[test]
fn a_rejection_is_read_with_its_numbers() {
    let state = Arrivals::new();
    let arrival = Arrival { request: 0, tenant: None, prompt: 0, max_tokens: u64::MAX };
    for rejection in [
        Rejection::NoBudget,
        Rejection::EmptyPrompt,
        Rejection::TooLongForModel { tokens: u64::MAX, positions: 2048 },
        Rejection::TooLongForPool { blocks: 9, pool: 8 },
    ] {
        let entry = ArrivalEntry::Rejected { arrival, rejection };
        assert_eq!(written_and_read(&state, &entry).1, entry);
    }
    assert_eq!(written_and_read(&state, &setting()).1, setting());
}

#[test]
fn garbage_is_refused() {
    let state = Arrivals::new();
    let read = |bytes: &[u8]| state.read(bytes[0], &mut Reader::new(bytes, 1));
    assert_eq!(read(&[9]), None);
    assert_eq!(read(&[0, 3, b'a', b'b', b'c', 0, 0, 0, 0, 0, 0, 0, 0, 1]), None, "no such policy");
    assert_eq!(read(&[1, 1, 1, 9, 0, 0]), None, "no such rejection");
    assert_eq!(read(&[3, 1, 1, 0x0f, 0, 0, 0, 0]), None, "no such reason");
    let mut state = Arrivals::new();
    assert_eq!(state.apply(0, &sent(0, None)), None, "there is no such replica");
}
