//! What a replica is: the page's own model at a price, or a model on accelerators with their price and
//! their memory.

use core::fmt;

use super::{BackendKind, ClockKind, Config, Problem};
use crate::cost::AnyPrice;
use crate::cost::roofline::{Accelerator, Deployment, KvPool, Running, ServedModel};
use crate::fleet::Devices;

/// How many KV blocks a replica has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// So many.
    Number(u32),
    /// As many as there is memory for.
    Auto,
}

impl fmt::Display for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Blocks::Number(number) => number.fmt(f),
            Blocks::Auto => f.write_str("auto"),
        }
    }
}

/// Blocks that all replicas may have together: 36 bytes each in the simulator's memory.
const MOST_IN_ALL: u64 = 1 << 23;

/// Requests that an accelerator's replica runs at once, unless the reader says otherwise.
const ACCELERATOR_BATCH: u32 = 256;

impl Config {
    /// The keys on which other parameters' defaults depend, in the order in which they are to be set,
    /// before all others.
    pub const FIRST: [&'static str; 2] = ["accelerator", "model"];

    /// When a parameter is to be set: those of [`Config::FIRST`] in their order, then all others.
    pub fn turn(key: &str) -> usize {
        Config::FIRST.iter().position(|first| *first == key).unwrap_or(Config::FIRST.len())
    }

    /// The configuration that a model on an accelerator starts from.
    pub fn on(accelerator: Option<Accelerator>, model: ServedModel) -> Config {
        let mut config = Config::default();
        config.set_accelerator(accelerator);
        config.set_model(model);
        config
    }

    /// Changes the accelerator. Between none and some, what depends on it goes to its defaults.
    pub(super) fn set_accelerator(&mut self, accelerator: Option<Accelerator>) {
        let had = core::mem::replace(&mut self.accelerator, accelerator);
        if had.is_some() == accelerator.is_some() {
            return;
        }
        let default = Config::default();
        if accelerator.is_some() {
            self.backend = BackendKind::Modelled;
            self.devices = Devices::Separate;
            self.max_batch = ACCELERATOR_BATCH;
            self.blocks = Blocks::Auto;
            self.positions = self.model.shape().positions;
            self.cost = default.cost;
            self.clock = default.clock;
        } else {
            self.backend = default.backend;
            self.devices = default.devices;
            self.max_batch = default.max_batch;
            self.blocks = default.blocks;
            self.positions = default.positions;
            self.model = default.model;
            self.tp = default.tp;
        }
    }

    /// Changes the model, and the positions to those it has.
    pub(super) fn set_model(&mut self, model: ServedModel) {
        let had = core::mem::replace(&mut self.model, model);
        if had != model && self.accelerator.is_some() {
            self.positions = model.shape().positions;
        }
    }

    /// What serves a replica, where that is accelerators.
    pub fn deployment(&self) -> Option<Deployment> {
        let Config { model, tp, .. } = *self;
        self.accelerator.map(|accelerator| Deployment { model, accelerator, tp })
    }

    /// What a step costs.
    pub fn price(&self) -> AnyPrice {
        match self.deployment() {
            Some(deployment) => AnyPrice::Roofline(deployment.price()),
            None => AnyPrice::Step(self.cost.price()),
        }
    }

    /// The accelerators' memory and what is in it; `None` without accelerators, or where the model
    /// does not fit them, which [`validate`](Config::validate) refuses.
    pub fn kv_pool(&self) -> Option<KvPool> {
        self.deployment()?.pool(&self.running()).ok()
    }

    /// KV blocks of each replica.
    pub fn pool_blocks(&self) -> u32 {
        match self.blocks {
            Blocks::Number(number) => number,
            Blocks::Auto => self.kv_pool().map_or(0, |pool| pool.blocks()),
        }
    }

    fn running(&self) -> Running {
        let Config { block_size, max_batch, positions, prefill_chunk, .. } = *self;
        Running { block_size, max_batch, positions, prefill_chunk }
    }

    /// What of a replica does not go together.
    pub(super) fn validate_replica(&self) -> Result<(), Problem> {
        let problem = |key: &str, problem: String| Err(Problem { key: key.into(), problem });
        match self.deployment() {
            Some(deployment) => self.validate_deployment(&deployment)?,
            None => {
                let default = Config::default();
                let needed = "an accelerator to serve it, such as h100 (accelerator)";
                if self.model != default.model {
                    return problem("model", format!("found {}; it needs {needed}", self.model.name()));
                }
                if self.tp != default.tp {
                    return problem(
                        "tp",
                        format!(
                            "found {}; several GPUs share a model of an accelerator, such as h100 (accelerator)",
                            self.tp
                        ),
                    );
                }
                if self.blocks == Blocks::Auto {
                    return problem("blocks", "auto is what an accelerator's memory holds; it goes with one, such as h100 (accelerator)".into());
                }
            }
        }
        let blocks = u64::from(self.pool_blocks()) * u64::from(self.replicas);
        if blocks > MOST_IN_ALL {
            return problem(
                "blocks",
                format!(
                    "{} replicas of {} blocks are {blocks}; the simulator holds {MOST_IN_ALL} in all: fewer replicas, fewer blocks, or a larger block_size",
                    self.replicas,
                    self.pool_blocks()
                ),
            );
        }
        Ok(())
    }

    fn validate_deployment(&self, deployment: &Deployment) -> Result<(), Problem> {
        let problem = |key: &str, problem: String| Err(Problem { key: key.into(), problem });
        let pool = deployment
            .pool(&self.running())
            .map_err(|misfit| Problem { key: misfit.key.into(), problem: misfit.problem })?;
        if self.cost != Config::default().cost {
            return problem(
                "cost",
                format!(
                    "found {}; on accelerators a step has their price: leave out one of the two",
                    self.cost
                ),
            );
        }
        if self.clock == ClockKind::Measured {
            return problem(
                "clock",
                "an accelerator's steps are priced; there is none here to measure".into(),
            );
        }
        if self.backend == BackendKind::TinyGpt && self.model != ServedModel::TinyGpt {
            return problem(
                "backend",
                format!("the tensors are tinygpt's; {} is only modelled", self.model.name()),
            );
        }
        let positions = self.model.shape().positions;
        if self.positions > positions {
            return problem(
                "positions",
                format!("found {}; {} has {positions}", self.positions, self.model.name()),
            );
        }
        if let Blocks::Number(blocks) = self.blocks
            && u64::from(blocks) > pool.fits()
        {
            return problem("blocks", format!("found {blocks}; there is memory for fewer: {pool}"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{from_query, param, to_query};

    #[test]
    fn an_accelerator_brings_its_defaults_and_takes_them_away() {
        let mut config = Config::default();
        let accelerator = param("accelerator").expect("it exists");
        accelerator.set(&mut config, "h100").expect("it is one");
        assert_eq!(
            (config.backend, config.devices, config.max_batch, config.blocks, config.positions),
            (BackendKind::Modelled, Devices::Separate, 256, Blocks::Auto, 131_072)
        );
        assert_eq!(config.validate(), Ok(()));
        assert_eq!(config.pool_blocks(), 26_211);
        param("max_batch").expect("it exists").set(&mut config, "64").expect("it is in range");
        accelerator.set(&mut config, "a100").expect("it is one");
        assert_eq!(config.max_batch, 64, "from one to another, what was said holds");
        accelerator.set(&mut config, "none").expect("it is a choice");
        assert_eq!(config, Config::default());
    }

    #[test]
    fn a_query_says_only_what_differs_from_the_accelerators_defaults() {
        let config = Config::on(Some(Accelerator::H100), ServedModel::Qwen32B);
        let config = Config { tp: 2, devices: Devices::Shared, ..config };
        let query = to_query(&config);
        assert_eq!(query, "accelerator=h100&model=qwen3-32b&tp=2&devices=shared");
        assert_eq!(from_query(&query), (config.clone(), vec![]));
        assert_eq!(from_query("devices=shared&tp=2&model=qwen3-32b&accelerator=h100"), (config, vec![]));
        // The positions that are every other configuration's default are not this one's.
        let short = Config { positions: 2048, ..Config::on(Some(Accelerator::H100), ServedModel::Llama8B) };
        assert_eq!(to_query(&short), "accelerator=h100&positions=2048");
        assert_eq!(from_query(&to_query(&short)), (short, vec![]));
    }

    #[test]
    fn every_model_runs_on_some_of_every_accelerator() {
        for accelerator in Accelerator::ALL {
            for model in ServedModel::ALL {
                let valid = [1, 2, 4, 8].map(|tp| {
                    let config = Config { tp, ..Config::on(Some(accelerator), model) };
                    config.validate().is_ok()
                });
                assert!(valid.contains(&true), "{} on {}", model.name(), accelerator.name());
            }
        }
    }

    #[test]
    fn names_are_those_of_the_presets() {
        let names = |key| param(key).expect("it exists").choices().iter().map(|(name, _)| *name);
        assert!(names("model").eq(ServedModel::ALL.map(ServedModel::name)));
        assert!(names("accelerator").skip(1).eq(Accelerator::ALL.map(Accelerator::name)));
        for (index, accelerator) in Accelerator::ALL.into_iter().enumerate() {
            assert_eq!(accelerator as usize, index);
        }
        for (index, model) in ServedModel::ALL.into_iter().enumerate() {
            assert_eq!(model as usize, index);
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for (query, key, part) in [
            ("model=qwen3-32b", "model", "accelerator"),
            ("tp=2", "tp", "accelerator"),
            ("blocks=auto", "blocks", "accelerator"),
            ("accelerator=h100&tp=3", "tp", "1, 2, 4, 8"),
            ("accelerator=h100&model=llama-3-70b", "tp", "tp = 2"),
            ("accelerator=l40s&model=llama-3-70b&tp=2", "tp", "tp = 4"),
            ("accelerator=h100&cost=tinygpt-wasm", "cost", "leave out"),
            ("accelerator=h100&clock=measured", "clock", "priced"),
            ("accelerator=h100&backend=tinygpt", "backend", "tinygpt's"),
            ("accelerator=h100&positions=131073", "positions", "131072"),
            ("accelerator=h100&blocks=26212", "blocks", "= 26211 blocks"),
            ("accelerator=b200&tp=8&replicas=64", "blocks", "larger block_size"),
        ] {
            let (config, problems) = from_query(query);
            assert_eq!(problems.len(), 1, "{query}: {problems:?}");
            let said = problems[0].to_string();
            assert!(said.contains(key) && said.contains(part), "{query}: {said}");
            assert!(query.contains(&problems[0].key) && config.validate().is_ok(), "{query}: {said}");
        }
    }
}
