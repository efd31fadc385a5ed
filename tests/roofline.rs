//! Runs on accelerators: from event to event as step by step, whatever bounds a step.
#![cfg(not(target_arch = "wasm32"))]

use warmroute::cost::Price;
use warmroute::cost::roofline::{Accelerator, ServedModel};
use warmroute::engine::{Piece, Work};
use warmroute::experiment::Experiment;
use warmroute::fleet::Devices;
use warmroute::params::{Blocks, Config};
use warmroute::policy::PolicyKind;

fn busy(accelerator: Accelerator, model: ServedModel, tp: u32) -> Config {
    let config = Config::on(Some(accelerator), model);
    // More than is served in time, with long answers: batches grow, and so do queues.
    let (requests, rate, output_max) = (300, 2000.0, 300);
    Config { tp, requests, rate, output_max, policy: PolicyKind::ALL.to_vec(), ..config }
}

#[test]
fn from_event_to_event_as_step_by_step() {
    let llama = busy(Accelerator::A100, ServedModel::Llama8B, 1);
    for config in [
        // A pool so small that requests are preempted, and chunks.
        Config { blocks: Blocks::Number(200), prefill_chunk: 512, ..llama.clone() },
        llama,
        busy(Accelerator::H100, ServedModel::Qwen30BA3B, 2),
        busy(Accelerator::L40S, ServedModel::TinyGpt, 1),
    ] {
        config.validate().expect("it can be");
        let experiment = Experiment::new(config);
        for policy in PolicyKind::ALL {
            let plain = experiment.run(policy, experiment.modelled_clock()).expect("it fits the clock");
            let express = experiment.run_modelled(policy).expect("it fits the clock");
            assert_eq!(experiment.summary(&express), experiment.summary(&plain), "{policy:?}");
            let summary = experiment.summary(&plain);
            assert_eq!((summary.completed, summary.rejected), (300, 0));
            let tight = experiment.config.blocks != Blocks::Auto;
            assert_eq!(summary.preemptions > 0, tight, "{} preemptions", summary.preemptions);
        }
    }
}

#[test]
fn accelerators_can_share_a_device_too() {
    let config = Config { devices: Devices::Shared, ..busy(Accelerator::H100, ServedModel::Llama8B, 1) };
    let experiment = Experiment::new(config.clone());
    let plain =
        experiment.run(PolicyKind::RoundRobin, experiment.modelled_clock()).expect("it fits the clock");
    let (_, priced) = Experiment::run_priced(&config, PolicyKind::RoundRobin).expect("it fits the clock");
    assert_eq!(experiment.summary(&plain), experiment.summary(&priced));
}

#[test]
fn faster_accelerators_are_faster_at_everything() {
    let price = |accelerator| Config::on(Some(accelerator), ServedModel::Llama8B).price();
    let order = [Accelerator::A100, Accelerator::H100, Accelerator::B200].map(price);
    for work in [
        Work { prefills: vec![Piece::range(0, 4096)], decode: None },
        Work { prefills: vec![], decode: Some(Piece { tokens: 64, pairs: 64 * 2000 }) },
        Work { prefills: vec![], decode: Some(Piece { tokens: 1, pairs: 1 }) },
    ] {
        assert!(order.windows(2).all(|pair| pair[0].of(&work) > pair[1].of(&work)), "{work:?}");
    }
}
