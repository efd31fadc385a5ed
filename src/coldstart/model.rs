//! How many parameters a model has.

use core::fmt;

use super::numbers;
use crate::cost::roofline::{LLAMA_3_8B, LLAMA_3_70B};

/// A model whose size is known to the last parameter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Model {
    /// Llama 3.1 8B.
    #[default]
    Llama8B,
    /// Llama 3.1 70B.
    Llama70B,
    /// Llama 3.1 405B, as revised (8 key and value heads; the first release stored each twice).
    Llama405B,
    /// The model that this page runs.
    TinyGpt,
}

impl Model {
    /// Every model, by size, and ours last.
    pub const ALL: [Model; 4] = [Model::Llama8B, Model::Llama70B, Model::Llama405B, Model::TinyGpt];

    /// Its name on the command line and in the URL.
    pub fn name(self) -> &'static str {
        match self {
            Model::Llama8B => "llama-3.1-8b",
            Model::Llama70B => "llama-3.1-70b",
            Model::Llama405B => "llama-3.1-405b",
            Model::TinyGpt => "tinygpt",
        }
    }

    /// Its name in sentences.
    pub fn title(self) -> &'static str {
        match self {
            Model::Llama8B => "Llama 3.1 8B",
            Model::Llama70B => "Llama 3.1 70B",
            Model::Llama405B => "Llama 3.1 405B",
            Model::TinyGpt => "TinyGPT",
        }
    }

    /// Its number of parameters.
    ///
    /// Llama: from the shapes in the published `config.json` (huggingface.co/meta-llama/Llama-3.1-8B
    /// and its siblings): a vocabulary of 128,256, embedding and head apart, no biases. The test
    /// below does the multiplication. TinyGPT: `ModelConfig::default().parameters()`.
    pub fn parameters(self) -> u64 {
        match self {
            Model::Llama8B => LLAMA_3_8B.parameters(),
            Model::Llama70B => LLAMA_3_70B.parameters(),
            Model::Llama405B => 405_853_388_800,
            Model::TinyGpt => 5_838_080,
        }
    }
}

/// A number of parameters: a model's, or any.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Parameters {
    /// A known model's.
    Of(Model),
    /// So many.
    Number(u64),
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters::Of(Model::default())
    }
}

impl Parameters {
    /// The most that are taken.
    pub const MAX: f64 = 1e14;

    /// How many.
    pub fn count(self) -> u64 {
        match self {
            Parameters::Of(model) => model.parameters(),
            Parameters::Number(count) => count,
        }
    }

    /// Reads a model's name or a number, in which `B`, `M` and `T` are 10⁹, 10⁶ and 10¹².
    pub fn parse(text: &str) -> Option<Parameters> {
        if let Some(model) = Model::ALL.into_iter().find(|m| m.name() == text) {
            return Some(Parameters::Of(model));
        }
        let count = numbers::read(text, &[("M", 1e6), ("B", 1e9), ("T", 1e12)])?.round();
        (1.0..=Parameters::MAX).contains(&count).then_some(Parameters::Number(count as u64))
    }

    /// As [`Parameters::parse`] reads it.
    pub fn text(self) -> String {
        match self {
            Parameters::Of(model) => model.name().to_owned(),
            Parameters::Number(count) => count.to_string(),
        }
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Parameters::Of(model) => f.write_str(model.title()),
            Parameters::Number(count) => write!(f, "{} parameters", numbers::count_text(*count as f64)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelConfig;

    #[test]
    fn llama_counts_follow_from_the_published_shapes() {
        // Hidden size, layers, MLP width; all have 8 key and value heads of 128.
        let shapes = [
            (Model::Llama8B, 4096, 32, 14_336),
            (Model::Llama70B, 8192, 80, 28_672),
            (Model::Llama405B, 16_384, 126, 53_248),
        ];
        for (model, hidden, layers, ffn) in shapes {
            let kv = 8 * 128;
            let layer = 2 * hidden * hidden + 2 * hidden * kv + 3 * hidden * ffn + 2 * hidden;
            let all: u64 = layers * layer + 2 * 128_256 * hidden + hidden;
            assert_eq!(model.parameters(), all, "{}", model.title());
        }
    }

    #[test]
    fn tinygpt_is_the_model_that_runs_here() {
        assert_eq!(Model::TinyGpt.parameters(), ModelConfig::default().parameters() as u64);
    }

    #[test]
    fn a_count_is_a_name_or_a_number() {
        assert_eq!(Parameters::parse("llama-3.1-70b"), Some(Parameters::Of(Model::Llama70B)));
        for text in ["8e9", "8B", "8 B", "8000000000", "8000M", "0.008T"] {
            assert_eq!(Parameters::parse(text), Some(Parameters::Number(8_000_000_000)), "{text}");
        }
        for bad in ["", "0", "8G", "8b", "-8B", "nan", "2e14", "llama"] {
            assert_eq!(Parameters::parse(bad), None, "{bad}");
        }
    }
}
