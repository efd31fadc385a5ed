//! What a replica's memory holds: weights, activations, and in what is left the KV pool.

use core::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{Accelerator, BYTES, Roofline, ServedModel, Shape};

/// Percent of an accelerator's memory that an engine takes: vLLM's default. The rest is for the
/// driver, captured graphs and communication.
pub const UTILISATION: u64 = 90;

/// Tokens whose activations are held at once where whole prompts are computed: an engine computes
/// longer ones in pieces of so many (vLLM's default for its batches).
const ACTIVE_TOKENS: u64 = 8192;

/// Most blocks that a replica is simulated with: 16,777,216 tokens at 16 a block.
pub const MOST_BLOCKS: u64 = 1 << 20;

/// What serves one replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// The model.
    pub model: ServedModel,
    /// The kind of device.
    pub accelerator: Accelerator,
    /// How many of them share the model.
    pub tp: u32,
}

/// How a replica is run, as far as its memory depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Tokens a block.
    pub block_size: u32,
    /// Most requests at once.
    pub max_batch: u32,
    /// Longest sequence, tokens.
    pub positions: u32,
    /// Most prompt tokens a step; 0: whole prompts.
    pub prefill_chunk: u32,
}

/// A replica that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The parameter that would have to change.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// The memory of one of a replica's GPUs, in bytes, and the blocks that it comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KvPool {
    /// GPUs that share the model; each has the figures below.
    pub tp: u32,
    /// All of it.
    pub memory: u64,
    /// Weights.
    pub weights: u64,
    /// Activations and logits of the largest step.
    pub activations: u64,
    /// One token's keys and values.
    pub token: u64,
    /// Tokens a block.
    pub block_size: u32,
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.2} GB", bytes as f64 / 1e9)
}

fn usable(memory: u64) -> u64 {
    memory / 100 * UTILISATION
}

impl Deployment {
    /// The price of its steps.
    pub fn price(&self) -> Roofline {
        let (sheet, have) = (self.accelerator.datasheet(), self.accelerator.efficiency());
        Roofline::new(&self.model.shape(), self.tp, &sheet, &have)
    }

    /// The memory that is left for keys and values; at least one block, or it cannot be.
    pub fn pool(&self, running: &Running) -> Result<KvPool, Misfit> {
        let shape = self.model.shape();
        let refuse = |key, problem| Err(Misfit { key, problem });
        if !shape.divides(self.tp) {
            let fit: Vec<String> =
                (1..=Shape::MOST).filter(|&tp| shape.divides(tp)).map(|tp| tp.to_string()).collect();
            return refuse(
                "tp",
                format!(
                    "found {}; the {} query heads of {} are shared evenly by {} GPUs",
                    self.tp,
                    shape.heads,
                    shape.name,
                    fit.join(", ")
                ),
            );
        }
        let memory = self.accelerator.datasheet().memory;
        let weights = |tp| BYTES * shape.share(tp).weights();
        if weights(self.tp) >= usable(memory) {
            let enough =
                (self.tp..=Shape::MOST).find(|&tp| shape.divides(tp) && weights(tp) < usable(memory));
            let right = match enough {
                Some(tp) => format!("with tp = {tp} it has {} on each", gigabytes(weights(tp))),
                None => format!("no number of GPUs up to {} holds it", Shape::MOST),
            };
            return refuse(
                if enough.is_some() { "tp" } else { "accelerator" },
                format!(
                    "{} has {} of weights on each of {} {}, of whose {} {UTILISATION} % are used; {right}",
                    shape.name,
                    gigabytes(weights(self.tp)),
                    self.tp,
                    self.accelerator.name(),
                    gigabytes(memory)
                ),
            );
        }
        let pool = KvPool {
            tp: self.tp,
            memory,
            weights: weights(self.tp),
            activations: self.activations(running),
            token: BYTES * shape.share(self.tp).kv,
            block_size: running.block_size,
        };
        if pool.fits() == 0 {
            return refuse(
                "blocks",
                format!(
                    "no room for a single one: {} used of {}, {} of weights and {} of activations leave less than the {} of a block; more GPUs (tp), a smaller block_size or a smaller max_batch leave more",
                    gigabytes(usable(memory)),
                    gigabytes(memory),
                    gigabytes(pool.weights),
                    gigabytes(pool.activations),
                    gigabytes(pool.block())
                ),
            );
        }
        Ok(pool)
    }

    /// Bytes of the largest step on one GPU: for each token the residual stream before and after its
    /// norm and, of an MLP, gate, up and their product; for each request its logits as 32-bit floats.
    fn activations(&self, running: &Running) -> u64 {
        let shape = self.model.shape();
        let tokens = match running.prefill_chunk {
            0 => ACTIVE_TOKENS.min(running.positions.into()),
            chunk => u64::from(chunk) + u64::from(running.max_batch),
        };
        tokens * BYTES * (2 * shape.hidden + 3 * shape.share(self.tp).inner)
            + 4 * u64::from(running.max_batch) * shape.vocabulary
    }
}

impl fmt::Display for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} on {} × {}", self.model.name(), self.tp, self.accelerator.name())
    }
}

impl KvPool {
    /// Bytes of a block on each GPU.
    fn block(&self) -> u64 {
        self.token * u64::from(self.block_size)
    }

    /// Blocks that there is memory for.
    pub fn fits(&self) -> u64 {
        usable(self.memory).saturating_sub(self.weights).saturating_sub(self.activations) / self.block()
    }

    /// Blocks that a replica is simulated with: all that fit, up to [`MOST_BLOCKS`].
    pub fn blocks(&self) -> u32 {
        self.fits().min(MOST_BLOCKS) as u32
    }
}

impl fmt::Display for KvPool {
    /// The formula with its numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = if self.tp > 1 { " on each GPU" } else { "" };
        write!(
            f,
            "({} × {:.1} − {} weights − {} activations) ÷ ({} B a token × {} tokens a block){each} = {} blocks",
            gigabytes(self.memory),
            UTILISATION as f64 / 100.0,
            gigabytes(self.weights),
            gigabytes(self.activations),
            self.token,
            self.block_size,
            self.fits()
        )?;
        if self.fits() > MOST_BLOCKS {
            write!(f, ", of which {MOST_BLOCKS} are simulated")?;
        }
        Ok(())
    }
}

impl Serialize for KvPool {
    /// Bytes of one GPU, the blocks, and the formula.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_struct("KvPool", 6)?;
        map.serialize_field("memory", &self.memory)?;
        map.serialize_field("weights", &self.weights)?;
        map.serialize_field("activations", &self.activations)?;
        map.serialize_field("bytes_per_token", &self.token)?;
        map.serialize_field("blocks", &self.blocks())?;
        map.serialize_field("formula", &self.to_string())?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNNING: Running = Running { block_size: 16, max_batch: 256, positions: 131_072, prefill_chunk: 0 };

    fn pool(model: ServedModel, accelerator: Accelerator, tp: u32) -> Result<KvPool, Misfit> {
        Deployment { model, accelerator, tp }.pool(&RUNNING)
    }

    #[test]
    fn the_formula_holds_with_the_numbers_it_shows() {
        let found = pool(ServedModel::Llama8B, Accelerator::H100, 1).expect("it fits");
        // 8,192 tokens of 2 × (2 × 4,096 + 3 × 14,336) bytes, 256 requests of 4 × 128,256 bytes.
        assert_eq!((found.weights, found.activations), (16_060_522_496, 970_194_944));
        assert_eq!(
            found.blocks(),
            ((72_000_000_000_u64 - 16_060_522_496 - 970_194_944) / (131_072 * 16)) as u32
        );
        assert_eq!(
            found.to_string(),
            "(80.00 GB × 0.9 − 16.06 GB weights − 0.97 GB activations) ÷ (131072 B a token × 16 tokens a block) = 26211 blocks"
        );
        let shared = pool(ServedModel::Llama70B, Accelerator::H100, 4).expect("it fits");
        assert_eq!((shared.token, shared.weights / 100_000_000), (81_920, 352));
        assert!(shared.to_string().contains("on each GPU"), "{shared}");
    }

    #[test]
    fn smaller_steps_leave_more_room_and_larger_blocks_are_fewer() {
        let deployment = Deployment { model: ServedModel::Llama8B, accelerator: Accelerator::A100, tp: 1 };
        let fits = |running| deployment.pool(&running).expect("it fits").fits();
        let whole = fits(RUNNING);
        assert!(fits(Running { prefill_chunk: 512, ..RUNNING }) > whole);
        assert!(fits(Running { max_batch: 8, ..RUNNING }) > whole);
        assert_eq!(fits(Running { block_size: 64, ..RUNNING }), whole / 4);
    }

    #[test]
    fn what_cannot_be_says_what_would_be_right() {
        let refused = |model, accelerator, tp| pool(model, accelerator, tp).expect_err("it cannot be");
        let heads = refused(ServedModel::Llama8B, Accelerator::H100, 3);
        assert_eq!(heads.key, "tp");
        assert!(heads.problem.contains("32 query heads") && heads.problem.contains("1, 2, 4, 8"));
        let weights = refused(ServedModel::Llama70B, Accelerator::H100, 1);
        assert_eq!(weights.key, "tp");
        assert!(weights.problem.contains("141.11 GB") && weights.problem.contains("tp = 2"), "{weights:?}");
        let large = Deployment { model: ServedModel::Llama70B, accelerator: Accelerator::H100, tp: 2 };
        let none = large.pool(&Running { block_size: 65_536, ..RUNNING }).expect_err("a block is too large");
        assert!(none.key == "blocks" && none.problem.contains("block_size"), "{none:?}");
    }

    #[test]
    fn a_pool_beyond_what_is_simulated_says_so() {
        let found = pool(ServedModel::TinyGpt, Accelerator::H100, 1).expect("it fits");
        assert_eq!(u64::from(found.blocks()), MOST_BLOCKS);
        assert!(found.to_string().ends_with("are simulated"), "{found}");
    }
}
