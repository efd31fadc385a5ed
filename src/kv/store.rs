//! The tensors behind the blocks: keys and values in pages of `block_size` tokens, over all layers.

use crate::model::ModelConfig;
use crate::model::kernels::LANES;

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
/// kernel reads: keys with eight *tokens* side by side (the last panel of a block has spare lanes if the block size
/// is no multiple of eight), values with eight *elements* side by side.
#[derive(Clone, Debug)]
pub struct KvStore {
    chunks: Vec<Option<Box<[f32]>>>, // each (chunk_blocks, layers, (keys of kv_heads, values of kv_heads))
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

    /// Writes one token's values, (kv_heads, head_dim), and its keys, to a slot of a block in one layer: `key` is
    /// called for each head with where the keys go, one element every [`LANES`] floats.
    ///
    /// # Panics
    ///
    /// If the layer or slot does not exist, or the values have another length.
    #[inline]
    pub fn write(
        &mut self,
        block: BlockId,
        layer: usize,
        slot: usize,
        values: &[f32],
        mut key: impl FnMut(usize, &mut [f32]),
    ) {
        assert!(layer < self.layers && slot < self.block_size, "the layer and slot exist");
        assert_eq!(values.len(), self.kv_heads * self.head_dim, "values should be (kv_heads, head_dim)");
        let (head_dim, block_size, key_plane) = (self.head_dim, self.block_size, self.key_plane());
        let start = self.layer_start(block, layer);
        let floats = self.layer_floats();
        let floats = &mut self.chunk_mut(block)[start..][..floats];
        let (keys, planes) = floats.split_at_mut(values.len() / head_dim * key_plane);
        // Keys: (panel, element, token in the panel).
        for (head, plane) in keys.chunks_exact_mut(key_plane).enumerate() {
            let panel = &mut plane[slot / LANES * LANES * head_dim..][..LANES * head_dim];
            key(head, &mut panel[slot % LANES..]);
        }
        // Values: (panel, token, element in the panel).
        for (values, plane) in
            values.chunks_exact(head_dim).zip(planes.chunks_exact_mut(head_dim * block_size))
        {
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
            let plane = self.plane(block, layer, head);
            let panel = &self.keys(plane)[slot / LANES * LANES * self.head_dim..][..LANES * self.head_dim];
            keys.extend(panel.iter().skip(slot % LANES).step_by(LANES));
            let panels = self.values(plane).chunks_exact(self.block_size * LANES);
            values.extend(panels.flat_map(|panel| &panel[slot * LANES..][..LANES]));
        }
        Some((keys, values))
    }

    /// Where one head's keys and values of a block are in one layer.
    #[inline]
    pub(crate) fn plane(&self, block: BlockId, layer: usize, head: usize) -> Plane {
        let start = self.layer_start(block, layer);
        Plane {
            chunk: block as usize / self.chunk_blocks,
            keys: start + head * self.key_plane(),
            values: start + self.kv_heads * self.key_plane() + head * self.head_dim * self.block_size,
        }
    }

    /// Keys, (tokens / 8 rounded up, head_dim, 8), of a block that has been written to.
    #[inline]
    pub(crate) fn keys(&self, plane: Plane) -> &[f32] {
        &self.chunk(plane)[plane.keys..][..self.key_plane()]
    }

    /// Values, (head_dim / 8, tokens, 8), of a block that has been written to.
    #[inline]
    pub(crate) fn values(&self, plane: Plane) -> &[f32] {
        &self.chunk(plane)[plane.values..][..self.head_dim * self.block_size]
    }

    #[inline]
    fn chunk(&self, plane: Plane) -> &[f32] {
        self.chunks[plane.chunk].as_deref().expect("a block that is attended to has been written")
    }

    /// Floats of one head's keys in one layer of a block, spare lanes included.
    fn key_plane(&self) -> usize {
        self.head_dim * self.block_size.next_multiple_of(LANES)
    }

    /// Floats of one layer of a block.
    fn layer_floats(&self) -> usize {
        self.kv_heads * (self.key_plane() + self.head_dim * self.block_size)
    }

    fn block_floats(&self) -> usize {
        self.layers * self.layer_floats()
    }

    /// Where a block's layer begins in its chunk.
    fn layer_start(&self, block: BlockId, layer: usize) -> usize {
        let in_chunk = block as usize % self.chunk_blocks;
        (in_chunk * self.layers + layer) * self.layer_floats()
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

/// Where one head's part of a block is in one layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plane {
    chunk: usize,
    keys: usize,
    values: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernels::testing::floats;

    fn write(store: &mut KvStore, block: BlockId, layer: usize, slot: usize, keys: &[f32], values: &[f32]) {
        let head_dim = store.head_dim;
        store.write(block, layer, slot, values, |head, out| {
            for (i, key) in keys[head * head_dim..][..head_dim].iter().enumerate() {
                out[i * LANES] = *key;
            }
        });
    }

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
                        write(&mut store, block, layer, slot, &keys, &values);
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
        write(&mut store, 1000, 0, 0, &row, &row);
        assert_eq!(store.bytes_used(), 16 * store.block_bytes());
        write(&mut store, 1007, 3, 9, &row, &row);
        assert_eq!(store.bytes_used(), 16 * store.block_bytes());
        write(&mut store, 0, 0, 0, &row, &row);
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
