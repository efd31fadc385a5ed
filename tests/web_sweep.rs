//! What the page and a worker of the pool say to each other, through values of JavaScript.
#![cfg(target_arch = "wasm32")]

use wasm_bindgen_test::{wasm_bindgen_test, wasm_bindgen_test_configure};

use warmroute::policy::PolicyKind;
use warmroute::sweep::{Axis, Done, Plan, Seeds, equivalents};
use warmroute::worker::{Ask, Job, Told, wire};

wasm_bindgen_test_configure!(run_in_browser);

fn plan() -> Plan {
    Plan {
        version: "test".into(),
        preset: "chapter".into(),
        settings: vec![("backend".into(), "modelled".into()), ("requests".into(), "12".into())],
        over: vec![Axis::parse("rate=4,8").expect("a good axis")],
        policies: PolicyKind::RACE.to_vec(),
        // Beyond what a number of JavaScript can hold.
        seeds: Seeds { from: u64::MAX - 5, to: u64::MAX - 3 },
        trace: None,
    }
}

#[wasm_bindgen_test]
fn jobs_arrive_as_they_were_sent() {
    let ask = Ask {
        query: "backend=modelled&rate=12.5".into(),
        of: PolicyKind::PrefixAffinity,
        by: PolicyKind::RoundRobin,
        cap: 64,
    };
    for job in [
        Job::Sweep { run: 7, plan: Box::new(plan()), jobs: vec![0, 3, u64::MAX] },
        Job::Equivalents { run: 8, ask: Box::new(ask), seeds: vec![85, u64::MAX] },
    ] {
        assert_eq!(wire::decode::<Job>(wire::encode(&job)), Some(job));
    }
}

#[wasm_bindgen_test]
fn figures_keep_every_bit() {
    let plan = plan();
    let mut done: Vec<Done> = (0..plan.jobs()).map(|job| plan.run(None, job).expect("it runs")).collect();
    done.push(Done {
        job: u64::MAX,
        runs: vec![[None, Some(0.1 + 0.2), Some(-0.0), None, None, None, None, None]],
    });
    let config = plan.config(0).expect("a good point");
    let found =
        equivalents(&config, None, PolicyKind::PrefixAffinity, PolicyKind::RoundRobin, 3).expect("it runs");
    for told in [Told::Swept { run: 7, done }, Told::Equivalent { run: 8, found: Box::new(found) }] {
        assert_eq!(wire::decode::<Told>(wire::encode(&told)), Some(told));
    }
}
