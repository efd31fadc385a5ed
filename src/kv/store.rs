//! The tensors behind the blocks: keys and values in pages of `block_size` tokens, over all layers.

use crate::model::ModelConfig;
use crate::model::kernels::{LANES, Lanes};

use super::BlockId;

/// Tokens that one chunk of memory holds, where the block size allows.
const CHUNK_TOKENS: usize = 256;

/// Paged keys and values.
///
/// Memory is taken in chunks of several blocks, when a token is first written to one of them, so that a large pool
/// costs nothing until it is used. Nothing here knows who holds a block: a block keeps its contents until they are
/// written over.
///
/// Within a block, each layer and head keeps its keys and its values as the panels of eight lanes that the matrix
/// kernel reads: keys with eight *tokens* side by side (the last panel of a block is narrower if the block size is
/// no multiple of eight), values with eight *elements* side by side.
#[derive(Clone, Debug)]
pub struct KvStore {
    chunks: Vec<Option<Box<[f32]>>>, // each (chunk_blocks, layers, 2: keys then values, kv_heads, plane)
    chunk_blocks: usize,
    block_size: usize,
    layers: usize,
    kv_heads: usize,
    head_dim: usize,
}

impl KvStore {
    /// An empty store for a model's keys and values, `block_size` tokens a block.
    ///
    /// # Panics
    ///
    /// If `block_size` is zero, or the configuration's heads are not whole lanes.
    pub fn new(config: &ModelConfig, block_size: usize) -> Self {
        assert!(block_size > 0, "a block holds at least one token");
        assert!(config.head_dim.is_multiple_of(LANES), "a head is a whole number of lanes");
        Self {
            chunks: Vec::new(),
            chunk_blocks: (CHUNK_TOKENS / block_size).max(1),
            block_size,
            layers: config.layers,
            kv_heads: config.kv_heads,
            head_dim: config.head_dim,
        }
    }

    /// Tokens in a block.
    pub fn block_size(&self) -> usize {
        self.block_size
    }

    /// Whether the store's blocks fit this model's keys and values.
    pub fn fits(&self, config: &ModelConfig) -> bool {
        (self.layers, self.kv_heads, self.head_dim) == (config.layers, config.kv_heads, config.head_dim)
    }

    /// Bytes of one block: keys and values of `block_size` tokens over all layers.
    pub fn block_bytes(&self) -> usize {
        self.block_floats() * size_of::<f32>()
    }

    /// Bytes of all chunks taken so far.
    pub fn bytes_used(&self) -> usize {
        self.chunks.iter().flatten().map(|chunk| size_of_val(&**chunk)).sum()
    }

    /// Gives all memory back, and with it every block's contents.
    pub fn clear(&mut self) {
        self.chunks.clear();
    }

    /// Writes one token's keys and values, each (kv_heads, head_dim), to a slot of a block in one layer.
    ///
    /// # Panics
    ///
    /// If the layer or slot does not exist, or a row has another length.
    pub fn write(&mut self, block: BlockId, layer: usize, slot: usize, keys: &[f32], values: &[f32]) {
        assert!(layer < self.layers && slot < self.block_size, "the layer and slot exist");
        let width = self.kv_heads * self.head_dim;
        assert_eq!(
            (keys.len(), values.len()),
            (width, width),
            "keys and values should be (kv_heads, head_dim)"
        );
        let (plane, head_dim, block_size) = (self.plane(), self.head_dim, self.block_size);
        let start = self.layer_start(block, layer);
        let floats = &mut self.chunk_mut(block)[start..][..2 * width * block_size];
        let (key_planes, value_planes) = floats.split_at_mut(width * block_size);

        // Keys: (panel, element, token in the panel); the last panel may be narrower.
        let panel = slot / LANES;
        let lanes = (block_size - panel * LANES).min(LANES);
        for (keys, plane) in keys.chunks_exact(head_dim).zip(key_planes.chunks_exact_mut(plane)) {
            let panel = &mut plane[panel * LANES * head_dim..][..lanes * head_dim];
            for (lanes, key) in panel.chunks_exact_mut(lanes).zip(keys) {
                lanes[slot % LANES] = *key;
            }
        }
        // Values: (panel, token, element in the panel).
        for (values, plane) in values.chunks_exact(head_dim).zip(value_planes.chunks_exact_mut(plane)) {
            let panels = plane.chunks_exact_mut(LANES * block_size);
            for (values, panel) in values.chunks_exact(LANES).zip(panels) {
                panel[slot * LANES..][..LANES].copy_from_slice(values);
            }
        }
    }

    /// One token's keys and values in one layer, each (kv_heads, head_dim); `None` where nothing was ever written.
    pub fn read(&self, block: BlockId, layer: usize, slot: usize) -> Option<(Vec<f32>, Vec<f32>)> {
        if layer >= self.layers || slot >= self.block_size {
            return None;
        }
        self.chunks.get(block as usize / self.chunk_blocks)?.as_ref()?;
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        for head in 0..self.kv_heads {
            let planes = self.planes(block, layer, head);
            let panel = slot / LANES;
            let lanes = (self.block_size - panel * LANES).min(LANES);
            let panel = &planes.keys[panel * LANES * self.head_dim..][..lanes * self.head_dim];
            keys.extend(panel.chunks_exact(lanes).map(|tokens| tokens[slot % LANES]));
            values.extend(planes.values.chunks_exact(self.block_size).flat_map(|panel| panel[slot]));
        }
        Some((keys, values))
    }

    /// One head's keys and values in one layer of a block that has been written to.
    #[inline]
    pub(crate) fn planes(&self, block: BlockId, layer: usize, head: usize) -> Planes<'_> {
        let chunk = self
            .chunks
            .get(block as usize / self.chunk_blocks)
            .and_then(Option::as_deref)
            .expect("a block that is attended to has been written");
        let plane = self.plane();
        let keys = self.layer_start(block, layer) + head * plane;
        let values = keys + self.kv_heads * plane;
        Planes { keys: &chunk[keys..][..plane], values: chunk[values..][..plane].as_chunks().0 }
    }

    /// Floats of one head's keys (or values) in one layer of a block.
    fn plane(&self) -> usize {
        self.head_dim * self.block_size
    }

    fn block_floats(&self) -> usize {
        self.layers * 2 * self.kv_heads * self.plane()
    }

    /// Where a block's layer begins in its chunk.
    fn layer_start(&self, block: BlockId, layer: usize) -> usize {
        let in_chunk = block as usize % self.chunk_blocks;
        (in_chunk * self.layers + layer) * 2 * self.kv_heads * self.plane()
    }

    /// The block's chunk, taken now if this is its first use.
    fn chunk_mut(&mut self, block: BlockId) -> &mut [f32] {
        let index = block as usize / self.chunk_blocks;
        let floats = self.chunk_blocks * self.block_floats();
        if self.chunks.len() <= index {
            self.chunks.resize(index + 1, None);
        }
        self.chunks[index].get_or_insert_with(|| vec![0.0; floats].into_boxed_slice())
    }
}

/// One head's part of a block in one layer.
pub(crate) struct Planes<'a> {
    /// Keys, (tokens / 8, head_dim, 8), the last panel narrower if the block size is no multiple of eight.
    pub keys: &'a [f32],
    /// Values, (head_dim / 8, tokens) of eight lanes.
    pub values: &'a [Lanes],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernels::testing::floats;

    #[test]
    fn what_is_written_is_read_back() {
        let config = ModelConfig { layers: 2, head_dim: 16, ..ModelConfig::default() };
        for block_size in [1, 7, 8, 16, 20] {
            let mut store = KvStore::new(&config, block_size);
            let row = |i: usize| {
                (floats(2 * i as u64, config.kv_width()), floats(2 * i as u64 + 1, config.kv_width()))
            };
            let mut places = Vec::new();
            for block in [5, 0, 700] {
                for layer in 0..2 {
                    for slot in 0..block_size {
                        let (keys, values) = row(places.len());
                        store.write(block, layer, slot, &keys, &values);
                        places.push((block, layer, slot));
                    }
                }
            }
            for (i, (block, layer, slot)) in places.into_iter().enumerate() {
                assert_eq!(store.read(block, layer, slot), Some(row(i)), "block size {block_size}");
            }
            assert_eq!(store.read(5, 2, 0), None);
            assert_eq!(store.read(5, 0, block_size), None);
            assert_eq!(store.read(100_000, 0, 0), None);
        }
    }

    #[test]
    fn memory_is_taken_a_chunk_at_a_time_on_first_use() {
        let config = ModelConfig::default();
        let mut store = KvStore::new(&config, 16);
        assert_eq!(store.block_bytes(), 16 * config.kv_bytes_per_token());
        assert_eq!(store.bytes_used(), 0);
        let row = vec![1.0; config.kv_width()];
        store.write(1000, 0, 0, &row, &row);
        assert_eq!(store.bytes_used(), 16 * store.block_bytes());
        store.write(1007, 3, 9, &row, &row);
        assert_eq!(store.bytes_used(), 16 * store.block_bytes());
        store.write(0, 0, 0, &row, &row);
        assert_eq!(store.bytes_used(), 32 * store.block_bytes());
        store.clear();
        assert_eq!(store.bytes_used(), 0);
    }

    #[test]
    fn a_store_fits_only_its_own_shape() {
        let config = ModelConfig::default();
        let store = KvStore::new(&config, 16);
        assert!(store.fits(&config));
        assert!(!store.fits(&ModelConfig { layers: 5, ..config }));
    }
}
