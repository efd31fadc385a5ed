//! A run log as it is sent or kept: its bytes. Checkpoints are made again by whoever reads it.

use core::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::RunLog;
use super::arrivals::Arrivals;
use super::replica::ReplicaState;
use super::stream::Stream;

/// The number of this format: another one is not read.
const FORMAT: u32 = 1;

/// The most blocks that a pool may be said to have.
const MOST_BLOCKS: usize = 1 << 24;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Wire {
    format: u32,
    blocks: Option<usize>,
    arrivals: Bytes,
    replicas: Vec<Bytes>,
}

impl Serialize for RunLog {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let replicas = self.replicas.iter().map(|stream| Bytes(stream.bytes().to_vec())).collect();
        let arrivals = Bytes(self.arrivals.bytes().to_vec());
        Wire { format: FORMAT, blocks: self.blocks, arrivals, replicas }.serialize(serializer)
    }
}

/// Why something is no run log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotALog;

impl fmt::Display for NotALog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "this is not a run log of format {FORMAT}, or not a whole one")
    }
}

impl TryFrom<Wire> for RunLog {
    type Error = NotALog;

    fn try_from(wire: Wire) -> Result<RunLog, NotALog> {
        let Wire { format: FORMAT, blocks, arrivals, replicas } = wire else { return Err(NotALog) };
        if blocks.is_some_and(|blocks| blocks > MOST_BLOCKS) {
            return Err(NotALog);
        }
        let arrivals = Stream::from_bytes(arrivals.0, Arrivals::new()).ok_or(NotALog)?;
        // Who decides is told first, and at once.
        let begins = arrivals.iter().next().is_some_and(|(at, entry)| at == 0 && entry.arrival().is_none());
        if !begins || arrivals.state().replicas as usize != replicas.len() {
            return Err(NotALog);
        }
        let replica = |bytes: Bytes| Stream::from_bytes(bytes.0, ReplicaState::new(blocks));
        let replicas = replicas.into_iter().map(replica).collect::<Option<Vec<_>>>().ok_or(NotALog)?;
        Ok(RunLog { blocks, arrivals, replicas })
    }
}

/// Bytes that are sent as bytes where there is such a thing, and not as so many numbers.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        struct Visit;

        impl<'de> Visitor<'de> for Visit {
            type Value = Bytes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("bytes")
            }

            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
                Ok(Bytes(bytes.to_vec()))
            }

            fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
                Ok(Bytes(bytes))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Bytes, A::Error> {
                let mut bytes = Vec::new();
                while let Some(byte) = seq.next_element()? {
                    bytes.push(byte);
                }
                Ok(Bytes(bytes))
            }
        }

        deserializer.deserialize_byte_buf(Visit)
    }
}
