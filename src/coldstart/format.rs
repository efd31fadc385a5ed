//! How many bits a weight really takes: quantised formats keep scales, and leave some weights alone.
//!
//! A format quantises the matrices of the layers (all experts of a mixture, not only those that a token
//! takes); embedding, head and norms stay in 16 bits where the format says so. Bits per quantised weight:
//!
//! | format | bits | what they are |
//! |---|---|---|
//! | fp8 | 8 + 32 ÷ 16,384 | one fp32 scale a block of 128 × 128 (DeepSeek-V3's layout) |
//! | int8 | 8 + 16 ÷ 4,096 | one 16-bit scale a row; a row of 4,096 is taken for all |
//! | gptq, awq | 4 + (16 + 4) ÷ 128 | a 16-bit scale and a 4-bit zero a group of 128 (AutoGPTQ's and AutoAWQ's default) |
//! | nf4 | 4 + 8 ÷ 64 + 32 ÷ (64 × 256) | bitsandbytes: an 8-bit scale a block of 64, a 32-bit one for 256 of those |
//! | mxfp4 | 4 + 8 ÷ 32 | OCP Microscaling: an 8-bit scale a block of 32 |
//! | nvfp4 | 4 + 8 ÷ 16 | an fp8 scale a block of 16 (and one fp32 a tensor: nothing) |
//! | q4_0 | 18 × 8 ÷ 32 | GGUF: a 16-bit scale and 32 nibbles; also embedding and head |
//! | q4_k | 144 × 8 ÷ 256 | GGUF: 256 weights in 144 bytes; also embedding and head |

use crate::cost::roofline::Shape;

/// How weights are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// 16-bit floats.
    #[default]
    Bf16,
    /// 8-bit floats, a scale a block.
    Fp8,
    /// 8-bit whole numbers, a scale a row.
    Int8,
    /// GPTQ, groups of 128.
    Gptq,
    /// AWQ, groups of 128.
    Awq,
    /// bitsandbytes' NF4 with double quantisation.
    Nf4,
    /// OCP Microscaling, 4 bits.
    Mxfp4,
    /// NVIDIA's 4 bits.
    Nvfp4,
    /// GGUF's simplest 4 bits.
    Q4_0,
    /// GGUF's usual 4 bits.
    Q4K,
}

impl Format {
    /// Every format, from the widest to the narrowest kind.
    pub const ALL: [Format; 10] = [
        Format::Bf16,
        Format::Fp8,
        Format::Int8,
        Format::Gptq,
        Format::Awq,
        Format::Nf4,
        Format::Mxfp4,
        Format::Nvfp4,
        Format::Q4_0,
        Format::Q4K,
    ];

    /// Its name on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Format::Bf16 => "bf16",
            Format::Fp8 => "fp8",
            Format::Int8 => "int8",
            Format::Gptq => "gptq",
            Format::Awq => "awq",
            Format::Nf4 => "nf4",
            Format::Mxfp4 => "mxfp4",
            Format::Nvfp4 => "nvfp4",
            Format::Q4_0 => "q4_0",
            Format::Q4K => "q4_k",
        }
    }

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Bits of a quantised weight, its share of the scales included.
    pub fn bits(self) -> f64 {
        match self {
            Format::Bf16 => 16.0,
            Format::Fp8 => 8.0 + 32.0 / 16_384.0,
            Format::Int8 => 8.0 + 16.0 / 4096.0,
            Format::Gptq | Format::Awq => 4.0 + 20.0 / 128.0,
            Format::Nf4 => 4.0 + 8.0 / 64.0 + 32.0 / (64.0 * 256.0),
            Format::Mxfp4 => 4.0 + 8.0 / 32.0,
            Format::Nvfp4 => 4.0 + 8.0 / 16.0,
            Format::Q4_0 => 18.0 * 8.0 / 32.0,
            Format::Q4K => 144.0 * 8.0 / 256.0,
        }
    }

    /// Whether embedding and head are quantised too.
    pub fn takes_all(self) -> bool {
        matches!(self, Format::Q4_0 | Format::Q4K)
    }

    /// Bytes of a model's weights.
    pub fn bytes(self, shape: &Shape) -> f64 {
        let share = shape.share(1);
        let layers = (share.matrices + share.experts) as f64;
        let ends = (2 * share.head) as f64;
        let (quantised, kept) = if self.takes_all() { (layers + ends, 0.0) } else { (layers, ends) };
        (quantised * self.bits() + (kept + share.norms as f64) * 16.0) / 8.0
    }

    /// Bytes of so many weights of which nothing else is known: all are quantised.
    pub fn bytes_of(self, parameters: u64) -> f64 {
        parameters as f64 * self.bits() / 8.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::roofline::{LLAMA_3_8B, QWEN3_30B_A3B};

    #[test]
    fn bits_by_hand() {
        let bits = Format::ALL.map(Format::bits);
        assert_eq!(bits[3..], [4.15625, 4.15625, 4.126953125, 4.25, 4.5, 4.5, 4.5]);
        assert_eq!((bits[1], bits[2]), (8.001953125, 8.00390625));
        assert_eq!(Format::Gptq.bytes_of(1_000_000_000), 519_531_250.0);
    }

    #[test]
    fn what_is_not_quantised_counts_whole() {
        assert_eq!(Format::Bf16.bytes(&LLAMA_3_8B), 16_060_522_496.0);
        // 6,979,321,856 weights in the layers, 2 × 525,336,576 in embedding and head, 266,240 in norms.
        let awq = (6_979_321_856.0 * 4.15625 + (1_050_673_152.0 + 266_240.0) * 16.0) / 8.0;
        assert_eq!(Format::Awq.bytes(&LLAMA_3_8B), awq);
        assert!((5.7e9..5.8e9).contains(&awq), "as published checkpoints are: {awq}");
        // All experts, though a token takes 3.3 of 30.5 billion.
        assert!(Format::Mxfp4.bytes(&QWEN3_30B_A3B) > 15e9);
        assert!(Format::Q4_0.bytes(&LLAMA_3_8B) < Format::Nvfp4.bytes(&LLAMA_3_8B));
        for format in Format::ALL {
            assert_eq!(Format::from_name(format.name()), Some(format));
        }
    }
}
