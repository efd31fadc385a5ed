//! Paged key/value memory.
