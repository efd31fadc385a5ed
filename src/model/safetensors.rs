//! Reads a Llama checkpoint in the safetensors format, trusting nothing in it.
//!
//! The file is eight bytes of header length (little-endian), a JSON header, and the tensors' bytes. The header maps
//! each name to a dtype, a shape and the tensor's range in the bytes; the ranges should cover them without gap or
//! overlap.

use std::fmt;

use serde_json::{Map, Value};

use super::config::{ConfigError, ModelConfig};
use super::weights::{Role, TensorId};

/// Longest header read, in bytes; the format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

/// Why a checkpoint cannot be loaded: what was found, and what would be right.
#[derive(Clone, Debug, PartialEq)]
pub enum SafetensorsError {
    /// The configuration given is not a model's.
    Config(ConfigError),
    /// The file ends before its header does.
    Truncated {
        /// Bytes that the length field and the header need.
        needed: u64,
        /// Bytes in the file.
        found: usize,
    },
    /// The header is longer than the format allows.
    LongHeader(u64),
    /// The header is no JSON object.
    Header(String),
    /// A tensor's entry lacks a field or has one of the wrong kind.
    Entry {
        /// The tensor.
        name: String,
        /// The field and what it should be.
        expected: &'static str,
    },
    /// A tensor's range is backwards or beyond the file.
    Range {
        /// The tensor.
        name: String,
        /// The range found.
        range: (u64, u64),
        /// Bytes of tensors in the file.
        bytes: usize,
    },
    /// A tensor does not begin where the one before it ends.
    Gap {
        /// The tensor.
        name: String,
        /// Where it begins.
        found: usize,
        /// Where the one before it ends.
        expected: usize,
    },
    /// Bytes follow the last tensor.
    Trailing(usize),
    /// A tensor that the model needs is not there.
    Missing(String),
    /// The checkpoint has more layers than the configuration.
    ExtraLayer {
        /// A tensor of the first layer too many.
        name: String,
        /// Layers that the configuration has.
        layers: usize,
    },
    /// A tensor has a number format that is not read.
    Dtype {
        /// The tensor.
        name: String,
        /// The format found.
        found: String,
    },
    /// A tensor has another shape than the model's.
    Shape {
        /// The tensor.
        name: String,
        /// The shape found.
        found: Vec<u64>,
        /// The shape that the configuration asks for.
        expected: Vec<usize>,
    },
    /// A tensor's range has another length than its shape and dtype.
    Length {
        /// The tensor.
        name: String,
        /// Bytes in the range.
        found: usize,
        /// Bytes that the shape and dtype need.
        expected: usize,
    },
    /// A weight is infinite or not a number.
    NotFinite {
        /// The tensor.
        name: String,
        /// The weight's index in the tensor.
        index: usize,
    },
}

impl fmt::Display for SafetensorsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(error) => error.fmt(f),
            Self::Truncated { needed, found } => {
                write!(
                    f,
                    "the file has {found} bytes, but its header alone needs {needed}; it may be cut short"
                )
            }
            Self::LongHeader(length) => {
                write!(f, "the header claims {length} bytes; safetensors allows {LONGEST_HEADER}")
            }
            Self::Header(error) => write!(f, "the header should be a JSON object of tensors: {error}"),
            Self::Entry { name, expected } => write!(f, "{name}: {expected}"),
            Self::Range { name, range: (begin, end), bytes } => write!(
                f,
                "{name}: data_offsets {begin}..{end} should run forwards within the file's {bytes} tensor bytes"
            ),
            Self::Gap { name, found, expected } => write!(
                f,
                "{name}: begins at byte {found}, but the tensor before it ends at {expected}; tensors should lie end to end"
            ),
            Self::Trailing(bytes) => write!(f, "{bytes} bytes follow the last tensor; there should be none"),
            Self::Missing(name) => write!(f, "{name}: missing; the model needs it"),
            Self::ExtraLayer { name, layers } => {
                write!(f, "{name}: the configuration has {layers} layers, so there should be no such tensor")
            }
            Self::Dtype { name, found } => {
                write!(f, "{name}: dtype is {found}; it should be F32, F16 or BF16")
            }
            Self::Shape { name, found, expected } => {
                write!(f, "{name}: shape is {found:?}; the configuration asks for {expected:?}")
            }
            Self::Length { name, found, expected } => {
                write!(f, "{name}: has {found} bytes; its shape and dtype need {expected}")
            }
            Self::NotFinite { name, index } => {
                write!(f, "{name}: weight {index} is not finite; every weight should be a finite number")
            }
        }
    }
}

impl std::error::Error for SafetensorsError {}

/// One tensor's header entry, its range checked to lie within the bytes.
#[derive(Debug)]
struct Entry<'a> {
    name: String,
    dtype: String,
    shape: Vec<u64>,
    bytes: &'a [u8],
    begin: usize,
}

/// A checkpoint whose header has been read and whose ranges have been checked.
#[derive(Debug)]
pub(super) struct Checkpoint<'a> {
    tensors: Vec<Entry<'a>>, // by name
}

impl<'a> Checkpoint<'a> {
    /// Reads the header.
    pub fn parse(file: &'a [u8]) -> Result<Self, SafetensorsError> {
        let (length, rest) = file
            .split_first_chunk::<8>()
            .ok_or(SafetensorsError::Truncated { needed: 8, found: file.len() })?;
        let length = u64::from_le_bytes(*length);
        if length > LONGEST_HEADER {
            return Err(SafetensorsError::LongHeader(length));
        }
        let (header, data) = rest
            .split_at_checked(length as usize)
            .ok_or(SafetensorsError::Truncated { needed: 8 + length, found: file.len() })?;
        let header: Map<String, Value> =
            serde_json::from_slice(header).map_err(|error| SafetensorsError::Header(error.to_string()))?;
        let mut tensors = Vec::new();
        for (name, value) in header {
            if name != "__metadata__" {
                tensors.push(Entry::parse(name, &value, data)?);
            }
        }
        end_to_end(&tensors, data.len())?;
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Self { tensors })
    }

    /// Refuses a checkpoint with more layers than the configuration: part of a model would go unused.
    pub fn check_layers(&self, config: &ModelConfig) -> Result<(), SafetensorsError> {
        let too_deep = |name: &str| {
            let layer = name.strip_prefix("model.layers.").and_then(|rest| rest.split('.').next());
            layer.and_then(|layer| layer.parse::<usize>().ok()).is_some_and(|layer| layer >= config.layers)
        };
        match self.tensors.iter().find(|entry| too_deep(&entry.name)) {
            Some(entry) => {
                Err(SafetensorsError::ExtraLayer { name: entry.name.clone(), layers: config.layers })
            }
            None => Ok(()),
        }
    }

    /// A tensor's weights in (outputs, inputs) order. The embedding stands in for a missing head.
    pub fn tensor(&self, id: TensorId, config: &ModelConfig) -> Result<Vec<f32>, SafetensorsError> {
        match self.find(&id.to_string()) {
            Some(entry) => entry.weights(&id.shape(config)),
            None if id.role == Role::Head => self.tensor(TensorId { role: Role::Embedding, ..id }, config),
            None => Err(SafetensorsError::Missing(id.to_string())),
        }
    }

    fn find(&self, name: &str) -> Option<&Entry<'a>> {
        let index = self.tensors.binary_search_by(|entry| entry.name.as_str().cmp(name)).ok()?;
        Some(&self.tensors[index])
    }
}

impl<'a> Entry<'a> {
    fn parse(name: String, value: &Value, data: &'a [u8]) -> Result<Self, SafetensorsError> {
        let wrong = |expected| SafetensorsError::Entry { name: name.clone(), expected };
        let numbers = |field: &str| -> Option<Vec<u64>> {
            value.get(field)?.as_array()?.iter().map(Value::as_u64).collect()
        };
        let dtype = value
            .get("dtype")
            .and_then(Value::as_str)
            .ok_or_else(|| wrong("dtype should be a string such as F32"))?
            .to_owned();
        let shape = numbers("shape").ok_or_else(|| wrong("shape should be a list of sizes"))?;
        let offsets = numbers("data_offsets").unwrap_or_default();
        let [begin, end] = offsets[..] else {
            return Err(wrong("data_offsets should be two byte offsets, begin and end"));
        };
        let range = usize::try_from(begin).ok().zip(usize::try_from(end).ok());
        let bytes = range.and_then(|(begin, end)| data.get(begin..end));
        match (range, bytes) {
            (Some((begin, _)), Some(bytes)) => Ok(Self { name, dtype, shape, bytes, begin }),
            _ => Err(SafetensorsError::Range { name, range: (begin, end), bytes: data.len() }),
        }
    }

    /// Decodes the tensor, if it has the shape that the model needs.
    fn weights(&self, expected: &[usize]) -> Result<Vec<f32>, SafetensorsError> {
        let name = || self.name.clone();
        if !self.shape.iter().copied().eq(expected.iter().map(|&size| size as u64)) {
            return Err(SafetensorsError::Shape {
                name: name(),
                found: self.shape.clone(),
                expected: expected.to_vec(),
            });
        }
        let size = match self.dtype.as_str() {
            "F32" => 4,
            "F16" | "BF16" => 2,
            _ => return Err(SafetensorsError::Dtype { name: name(), found: self.dtype.clone() }),
        };
        // A valid configuration's sizes are bounded, so this does not overflow 64 bits.
        let needed = expected.iter().map(|&size| size as u64).product::<u64>() * size;
        if needed != self.bytes.len() as u64 {
            return Err(SafetensorsError::Length {
                name: name(),
                found: self.bytes.len(),
                expected: usize::try_from(needed).unwrap_or(usize::MAX),
            });
        }
        let weights: Vec<f32> = match self.dtype.as_str() {
            "F32" => self.bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            "BF16" => halves(self.bytes).map(|half| f32::from_bits(u32::from(half) << 16)).collect(),
            _ => halves(self.bytes).map(f16_to_f32).collect(),
        };
        match weights.iter().position(|weight| !weight.is_finite()) {
            Some(index) => Err(SafetensorsError::NotFinite { name: name(), index }),
            None => Ok(weights),
        }
    }
}

/// Checks that the tensors cover the bytes without gap or overlap.
fn end_to_end(tensors: &[Entry<'_>], bytes: usize) -> Result<(), SafetensorsError> {
    let mut order: Vec<&Entry<'_>> = tensors.iter().collect();
    order.sort_by_key(|entry| (entry.begin, entry.bytes.len()));
    let mut expected = 0;
    for entry in order {
        if entry.begin != expected {
            return Err(SafetensorsError::Gap { name: entry.name.clone(), found: entry.begin, expected });
        }
        expected += entry.bytes.len();
    }
    if expected < bytes {
        return Err(SafetensorsError::Trailing(bytes - expected));
    }
    Ok(())
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> {
    bytes.as_chunks().0.iter().map(|bytes| u16::from_le_bytes(*bytes))
}

/// The value of an IEEE half: one sign bit, five of exponent, ten of fraction.
fn f16_to_f32(half: u16) -> f32 {
    let sign = u32::from(half >> 15) << 31;
    let exponent = u32::from(half >> 10) & 0x1F;
    let fraction = u32::from(half) & 0x3FF;
    let magnitude = match exponent {
        // Subnormal: the fraction counts steps of 2^−24.
        0 => (fraction as f32 / (1u32 << 24) as f32).to_bits(),
        0x1F => 0x7F80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

#[cfg(test)]
mod tests;
