//! Tests of the checkpoint reader: a whole small file, then every way it might be broken.

use super::*;
use crate::model::TinyGpt;

fn config() -> ModelConfig {
    ModelConfig {
        vocab_size: 5,
        layers: 1,
        heads: 2,
        kv_heads: 1,
        head_dim: 8,
        ffn_mult: 1,
        positions: 4,
        ..ModelConfig::default()
    }
}

/// Every tensor of the model as (name, shape), in file order.
fn tensors(config: &ModelConfig) -> Vec<(String, Vec<usize>)> {
    let mut ids = vec![TensorId { layer: 0, role: Role::Embedding }];
    for layer in 0..config.layers {
        for role in [
            Role::AttentionNorm,
            Role::Query,
            Role::Key,
            Role::Value,
            Role::AttentionOut,
            Role::MlpNorm,
            Role::Gate,
            Role::Up,
            Role::Down,
        ] {
            ids.push(TensorId { layer, role });
        }
    }
    ids.push(TensorId { layer: 0, role: Role::FinalNorm });
    ids.push(TensorId { layer: 0, role: Role::Head });
    ids.into_iter().map(|id| (id.to_string(), id.shape(config))).collect()
}

/// A header and its data, before they are joined to a file.
struct File {
    header: Map<String, Value>,
    data: Vec<u8>,
}

impl File {
    fn new() -> Self {
        let mut file = Self { header: Map::new(), data: Vec::new() };
        file.header.insert("__metadata__".into(), serde_json::json!({ "format": "pt" }));
        for (name, shape) in tensors(&config()) {
            let begin = file.data.len();
            for i in 0..shape.iter().product::<usize>() {
                file.data.extend((((i * 7 + begin) % 13) as f32 * 0.05 - 0.3).to_le_bytes());
            }
            let offsets = [begin, file.data.len()];
            let entry = serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": offsets });
            file.header.insert(name, entry);
        }
        file
    }

    fn set(mut self, name: &str, field: &str, value: Value) -> Self {
        self.header[name][field] = value;
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let header = serde_json::to_vec(&self.header).expect("a map is JSON");
        let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
        bytes.extend(header);
        bytes.extend(&self.data);
        bytes
    }

    fn load(&self) -> Result<TinyGpt, SafetensorsError> {
        TinyGpt::from_safetensors(&self.bytes(), config())
    }

    fn error(&self) -> String {
        self.load().expect_err("the file is broken").to_string()
    }
}

const QUERY: &str = "model.layers.0.self_attn.q_proj.weight";

#[test]
fn a_whole_file_loads() {
    assert!(File::new().load().is_ok());
}

#[test]
fn each_tensor_but_the_head_is_needed() {
    for (name, _) in tensors(&config()) {
        let mut file = File::new();
        let entry = file.header.remove(&name).expect("it was there");
        // The bytes stay covered, by a tensor that nobody asks for.
        file.header.insert("unused".into(), entry);
        let result = file.load();
        if name == "lm_head.weight" {
            assert!(result.is_ok(), "the embedding stands in");
        } else {
            assert_eq!(result.expect_err("it is needed"), SafetensorsError::Missing(name));
        }
    }
}

#[test]
fn wrong_entries_name_the_tensor_and_what_would_be_right() {
    let json = |text: &str| serde_json::from_str::<Value>(text).expect("valid JSON");
    let cases = [
        ("dtype", "\"I64\"", "dtype is I64; it should be F32, F16 or BF16"),
        ("dtype", "3", "dtype should be a string"),
        ("dtype", "\"BF16\"", "has 1024 bytes; its shape and dtype need 512"),
        ("shape", "[16, 17]", "shape is [16, 17]; the configuration asks for [16, 16]"),
        ("shape", "[256]", "asks for [16, 16]"),
        ("shape", "[18446744073709551615, 18446744073709551615]", "asks for [16, 16]"),
        ("shape", "[16, -16]", "shape should be a list of sizes"),
        ("shape", "[16, 1.5]", "shape should be a list of sizes"),
        ("shape", "\"16x16\"", "shape should be a list of sizes"),
        ("data_offsets", "[0]", "data_offsets should be two byte offsets"),
        ("data_offsets", "[0, 1, 2]", "data_offsets should be two byte offsets"),
        ("data_offsets", "[1408, 384]", "should run forwards"),
        ("data_offsets", "[384, 999999999]", "within the file's"),
        ("data_offsets", "[18446744073709551615, 18446744073709551615]", "within the file's"),
        ("data_offsets", "[0, 18446744073709551615]", "within the file's"),
    ];
    for (field, value, message) in cases {
        let error = File::new().set(QUERY, field, json(value)).error();
        assert!(error.starts_with(QUERY) && error.contains(message), "{field} {value}: {error}");
    }
    assert!(File::new().set(QUERY, "data_offsets", json("[0, 1024]")).error().contains("end to end"));
    let mut file = File::new();
    file.header[QUERY] = Value::Null;
    assert!(file.error().contains("dtype should be a string"));
}

#[test]
fn stray_bytes_layers_and_values_are_refused() {
    let mut file = File::new();
    file.data.extend([0; 3]);
    assert_eq!(file.error(), "3 bytes follow the last tensor; there should be none");

    let mut file = File::new();
    let end = file.data.len();
    let empty = serde_json::json!({ "dtype": "F32", "shape": [0], "data_offsets": [end, end] });
    file.header.insert("model.layers.1.mlp.up_proj.weight".into(), empty);
    assert!(file.error().contains("the configuration has 1 layers"));

    let mut file = File::new();
    file.data[4 * 7..4 * 8].copy_from_slice(&f32::NAN.to_le_bytes());
    assert_eq!(
        file.load().expect_err("a weight is NaN"),
        SafetensorsError::NotFinite { name: "model.embed_tokens.weight".into(), index: 7 }
    );
}

#[test]
fn an_impossible_configuration_is_refused_before_reading() {
    let config = ModelConfig { head_dim: 3, ..config() };
    let error = TinyGpt::from_safetensors(&[], config).expect_err("3 is no multiple of 8");
    assert!(error.to_string().contains("head_dim is 3"));
}

#[test]
fn every_truncation_is_an_error() {
    let bytes = File::new().bytes();
    for length in 0..bytes.len() {
        let result = TinyGpt::from_safetensors(&bytes[..length], config());
        assert!(result.is_err(), "{length} of {} bytes", bytes.len());
    }
}

#[test]
fn lying_lengths_are_errors() {
    let mut bytes = File::new().bytes();
    for length in [0, 1, 7, bytes.len() as u64, LONGEST_HEADER, LONGEST_HEADER + 1, u64::MAX - 7, u64::MAX] {
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        assert!(TinyGpt::from_safetensors(&bytes, config()).is_err(), "{length}");
    }
    let nested = "[".repeat(100_000);
    let mut bytes = (nested.len() as u64).to_le_bytes().to_vec();
    bytes.extend(nested.bytes());
    assert!(matches!(Checkpoint::parse(&bytes), Err(SafetensorsError::Header(_))));
}

#[test]
fn mutated_headers_never_panic() {
    let original = File::new().bytes();
    let header = original.len() - File::new().data.len();
    let mut refused = 0;
    for at in 0..header {
        for replacement in [b'0', b'9', b'"', b'}', b',', b'-', b'e', 0xFF] {
            let mut bytes = original.clone();
            bytes[at] = replacement;
            refused += usize::from(TinyGpt::from_safetensors(&bytes, config()).is_err());
        }
    }
    assert!(refused > header, "most mutations are noticed: {refused} of {}", header * 8);
}

#[test]
fn halves_decode_to_their_values() {
    for (half, value) in [
        (0x0000, 0.0),
        (0x3C00, 1.0),
        (0xC000, -2.0),
        (0x3555, 0.333_251_95),
        (0x7BFF, 65504.0),
        (0x0400, 6.103_515_6e-5),
        (0x0001, 5.960_464_5e-8),
        (0x83FF, -6.097_555e-5),
        (0x7C00, f32::INFINITY),
    ] {
        assert_eq!(f16_to_f32(half), value, "{half:#06x}");
    }
    assert!(f16_to_f32(0x7E00).is_nan());

    // The same weights, all of them exact in both formats, give the same model from either.
    let mut single = File::new();
    let mut brain = File::new();
    single.data.clear();
    brain.data.clear();
    for (name, shape) in tensors(&config()) {
        let count: usize = shape.iter().product();
        let weights: Vec<f32> = (0..count).map(|i| (i % 5) as f32 * 0.5 - 1.0).collect();
        let begin = brain.data.len();
        single.data.extend(weights.iter().flat_map(|w| w.to_le_bytes()));
        brain.data.extend(weights.iter().flat_map(|w| ((w.to_bits() >> 16) as u16).to_le_bytes()));
        brain.header[&name] =
            serde_json::json!({ "dtype": "BF16", "shape": shape, "data_offsets": [begin, brain.data.len()] });
    }
    let logits = |file: &File| {
        let model = file.load().expect("a whole file");
        let mut store = crate::kv::store::KvStore::new(&config(), 2);
        let mut scratch = crate::model::Scratch::new();
        let slice = crate::model::Slice { tokens: &[1, 2, 4], start: 0, blocks: &[0, 1], sampled: true };
        model.forward(&mut store, &mut scratch, &[slice]);
        scratch.logits(0).to_vec()
    };
    assert_eq!(logits(&single), logits(&brain));
}
