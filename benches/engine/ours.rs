//! The engine's side of the benchmark: TinyGPT's passes, a whole default run, the floor, and bytes.

use warmroute::engine::SharedModel;
use warmroute::experiment::{Experiment, random_model};
use warmroute::kv::BlockId;
use warmroute::kv::store::KvStore;
use warmroute::model::{Scratch, Slice};
use warmroute::params::Config;
use warmroute::policy::PolicyKind;

use super::common::{Side, Work, seconds, text};
use super::floor::Floor;

/// Tokens in a block.
const BLOCK: usize = 16;
/// Tokens of one pass while a context is made.
const CHUNK: usize = 512;

/// The model, made the way that the page makes it.
fn model() -> SharedModel {
    random_model()
}

/// The engine, the floor, and the sequences that the latest question was about.
pub struct Ours {
    model: SharedModel,
    floor: Option<Floor>, // made when first asked for: a model's weights again
    scratch: Scratch,
    ready: Option<Ready>,
}

/// A store that has everything that a pass needs.
struct Ready {
    work: Work,
    store: KvStore,
    /// Each sequence's block table.
    tables: Vec<Vec<BlockId>>,
    /// One sequence's tokens; all have the same.
    tokens: Vec<u32>,
    /// Position of the first token to compute.
    start: usize,
}

impl Ours {
    /// A model of random weights.
    pub fn new() -> Ours {
        Ours { model: model(), floor: None, scratch: Scratch::new(), ready: None }
    }

    fn floor(&mut self) -> &mut Floor {
        self.floor.get_or_insert_with(|| Floor::new(self.model.config()))
    }

    /// Mean seconds of a pass.
    fn forward(&mut self, work: Work, passes: u32) -> f64 {
        let mut ready =
            self.ready.take().filter(|ready| ready.work == work).unwrap_or_else(|| self.prepare(work));
        let slices: Vec<Slice<'_>> = ready
            .tables
            .iter()
            .map(|blocks| Slice {
                tokens: &ready.tokens[ready.start..],
                start: ready.start,
                blocks,
                sampled: true,
            })
            .collect();
        let (store, scratch) = (&mut ready.store, &mut self.scratch);
        let mean = seconds(passes, || (), |()| self.model.forward(store, scratch, &slices));
        self.ready = Some(ready);
        mean
    }

    /// Sequences of which all has been computed but what the work is to compute.
    fn prepare(&mut self, work: Work) -> Ready {
        let (batch, start, length) = match work {
            Work::Prefill(tokens) => (1, 0, tokens),
            Work::Decode { batch, context } => (batch, context, context + 1),
        };
        let mut store = KvStore::new(self.model.config(), BLOCK);
        let tokens = text(length);
        let blocks = length.div_ceil(BLOCK);
        let tables: Vec<Vec<BlockId>> = (0..batch)
            .map(|sequence| (0..blocks).map(|block| (sequence * blocks + block) as BlockId).collect())
            .collect();
        for blocks in &tables {
            for (i, tokens) in tokens[..start].chunks(CHUNK).enumerate() {
                let slice = Slice { tokens, start: i * CHUNK, blocks, sampled: true };
                self.model.forward(&mut store, &mut self.scratch, &[slice]);
            }
        }
        Ready { work, store, tables, tokens, start }
    }

    /// Mean seconds of a whole default run under some policies, one after the other; the weights are there already.
    fn run(&self, policies: &[PolicyKind], passes: u32) -> f64 {
        let experiment = Experiment::reusing(Config::default(), Some(self.model.clone()));
        let run = |policy: &PolicyKind| {
            let run = experiment.run(*policy, experiment.modelled_clock());
            std::hint::black_box(run.expect("the default trace fits the clock"));
        };
        seconds(passes, || (), |()| policies.iter().for_each(run))
    }

    /// Bytes of keys and values, and of scratch, after one pass from nothing.
    fn bytes(&mut self, work: Work) -> (usize, usize) {
        self.scratch = Scratch::new();
        self.ready = None;
        self.forward(work, 1);
        let store = self.ready.as_ref().map_or(0, |ready| ready.store.bytes_used());
        (store, self.scratch.bytes())
    }
}

impl Side for Ours {
    /// Answers a work, `prefill TOKENS` or `decode BATCH CONTEXT`, alone and after `floor`, `flops` (its matrix
    /// products' operations), `bytes store` and `bytes scratch`; and `bytes weights`, `weights` (made), `run` (the
    /// default one, all its policies) and `run POLICY`.
    fn ask(&mut self, words: &[&str], passes: u32) -> Option<f64> {
        match *words {
            ["floor", ref work @ ..] => {
                let (work, floor) = (Work::read(work)?, self.floor());
                Some(seconds(passes, || (), |()| floor.pass(work)))
            }
            ["flops", ref work @ ..] => Some(self.floor().flops(Work::read(work)?)),
            ["weights"] => Some(seconds(passes, || (), |()| drop(std::hint::black_box(model())))),
            ["run"] => Some(self.run(&Config::default().policy, passes)),
            ["run", name] => {
                let policy = PolicyKind::from_name(name)?;
                Some(self.run(&[policy], passes))
            }
            ["bytes", "weights"] => Some(self.model.bytes() as f64),
            ["bytes", "store", ref work @ ..] => Some(self.bytes(Work::read(work)?).0 as f64),
            ["bytes", "scratch", ref work @ ..] => Some(self.bytes(Work::read(work)?).1 as f64),
            _ => Some(self.forward(Work::read(words)?, passes)),
        }
    }
}
