//! candle's side of the benchmark: its Llama's passes, with its own cache of keys and values.

use candle_core::{DType, Device, Error, Result, Shape, Tensor};
use candle_nn::var_builder::SimpleBackend;
use candle_nn::{Init, VarBuilder};
use candle_transformers::models::llama::{Cache, Config, Llama};

use crate::common::{Side, Work, seconds, text};

/// Tokens of one pass while a context is made: candle keeps the scores of all heads and rows at once, and those of a
/// whole long batch would not fit a wasm memory.
const CHUNK: usize = 64;

/// TinyGPT's configuration in candle's words; the defaults of the engine's `ModelConfig`.
fn config() -> Config {
    Config {
        hidden_size: 256,
        intermediate_size: 1024,
        vocab_size: 260,
        num_hidden_layers: 6,
        num_attention_heads: 8,
        num_key_value_heads: 2,
        use_flash_attn: false,
        rms_norm_eps: 1e-5,
        rope_theta: 10_000.0,
        bos_token_id: None,
        eos_token_id: None,
        rope_scaling: None,
        max_position_embeddings: 2048,
        tie_word_embeddings: false,
    }
}

/// candle's Llama, and what the latest question needs.
pub struct Peer {
    llama: Llama,
    ready: Option<Ready>,
}

/// A cache that has everything that a pass needs, and the pass's input.
struct Ready {
    work: Work,
    cache: Cache,
    input: Tensor,
    start: usize,
}

impl Peer {
    /// A model of random weights.
    pub fn new() -> Result<Peer> {
        let weights = VarBuilder::from_backend(Box::new(Random), DType::F32, Device::Cpu);
        Ok(Peer { llama: Llama::load(weights, &config())?, ready: None })
    }

    /// Mean seconds of a pass. Each pass has a copy of the cache, which shares its tensors, so that the context stays
    /// as long as it was.
    fn forward(&mut self, work: Work, passes: u32) -> Result<f64> {
        let ready = match self.ready.take().filter(|ready| ready.work == work) {
            Some(ready) => ready,
            None => self.prepare(work)?,
        };
        let mean = seconds(
            passes,
            || ready.cache.clone(),
            |cache| {
                let logits = self.llama.forward(&ready.input, ready.start, cache);
                std::hint::black_box(logits.expect("a pass that is possible once is possible again"));
            },
        );
        self.ready = Some(ready);
        Ok(mean)
    }

    /// Sequences of which all has been computed but what the work is to compute.
    fn prepare(&self, work: Work) -> Result<Ready> {
        let mut cache = Cache::new(true, DType::F32, &config(), &Device::Cpu)?;
        let (batch, start, length) = match work {
            Work::Prefill(tokens) => (1, 0, tokens),
            Work::Decode { batch, context } => (batch, context, context + 1),
        };
        let tokens = text(length);
        let input =
            |tokens: &[u32]| Tensor::from_vec(tokens.repeat(batch), (batch, tokens.len()), &Device::Cpu);
        for (i, tokens) in tokens[..start].chunks(CHUNK).enumerate() {
            self.llama.forward(&input(tokens)?, i * CHUNK, &mut cache)?;
        }
        Ok(Ready { work, cache, input: input(&tokens[start..])?, start })
    }
}

impl Side for Peer {
    /// Answers `prefill TOKENS` and `decode BATCH CONTEXT`.
    fn ask(&mut self, words: &[&str], passes: u32) -> Option<f64> {
        let work = Work::read(words)?;
        Some(self.forward(work, passes).expect("the model's positions are enough for every question"))
    }
}

/// Weights like the engine's: ones for norms, otherwise uniform with deviation 1 ÷ √inputs.
struct Random;

impl SimpleBackend for Random {
    fn get(&self, shape: Shape, name: &str, _: Init, dtype: DType, device: &Device) -> Result<Tensor> {
        if name.contains("norm") {
            return Tensor::ones(shape, dtype, device);
        }
        let inputs = *shape.dims().last().ok_or_else(|| Error::Msg(format!("{name} has no shape")))?;
        let width = if name.contains("embed") { 1.0 } else { (3.0 / inputs as f32).sqrt() };
        let mut state =
            name.bytes().fold(1u64, |state, byte| state.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let mut next = || {
            state = state.wrapping_mul(0xD134_2543_DE82_EF95).wrapping_add(0x9E37_79B9);
            ((state >> 40) as f32 / (1 << 23) as f32 - 1.0) * width
        };
        let floats: Vec<f32> = (0..shape.elem_count()).map(|_| next()).collect();
        Tensor::from_vec(floats, shape, device)?.to_dtype(dtype)
    }

    fn get_unchecked(&self, name: &str, _: DType, _: &Device) -> Result<Tensor> {
        Err(Error::Msg(format!("{name}: no weight has a shape of its own")))
    }

    fn contains_tensor(&self, _: &str) -> bool {
        true
    }
}
