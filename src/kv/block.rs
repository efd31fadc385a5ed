//! What is known of one block, in one place: a decision about a block looks at half a line of the
//! processor's cache.

use super::BlockId;

/// In the place of a block: there is none.
pub(super) const NONE: BlockId = BlockId::MAX;
/// In the place of a parent: the block is not published.
pub(super) const UNPUBLISHED: BlockId = BlockId::MAX - 1;

#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(super) struct Block {
    /// What a published block holds, or the hash of what it holds where that is tokens.
    pub part: u64,
    /// The published block before it; [`NONE`] for a prompt's first.
    pub parent: BlockId,
    /// The published block after it that is not in the index's table.
    pub child: BlockId,
    /// Published blocks after it that are.
    pub branches: u32,
    /// Requests that hold it.
    pub holders: u32,
    /// Its latest place in the order of eviction.
    pub queued: u32,
    /// Whom it was last taken for; [`u32::MAX`]: nobody in particular.
    pub owner: u32,
}

impl Block {
    pub const FREE: Block = Block {
        part: 0,
        parent: UNPUBLISHED,
        child: NONE,
        branches: 0,
        holders: 0,
        queued: 0,
        owner: u32::MAX,
    };

    pub fn is_published(&self) -> bool {
        self.parent != UNPUBLISHED
    }

    /// Whether it is published and held by nobody.
    pub fn is_cached(&self) -> bool {
        self.holders == 0 && self.is_published()
    }
}
