//! Traces written: in our own format, and in Mooncake's.

use std::collections::BTreeMap;

use serde::Serialize;

use super::import::intern::{Chain, Interner};
use super::{BlockIds, NO_SESSION, Prompt, RequestSpec, TenantName, Token, Trace};

#[derive(Serialize)]
struct Line<'a> {
    arrival: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<&'a [Token]>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    blocks: Option<Blocks<'a>>,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a TenantName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a [Token]>,
}

#[derive(Serialize)]
struct Blocks<'a> {
    input_length: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    block_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[u32]>::is_empty")]
    hash_ids: &'a [u32],
}

/// JSON lines that [`read_json_lines`](super::import::read_json_lines) reads back, with the session of each request
/// where there are any.
pub fn json_lines(trace: &Trace, sessions: &[u32]) -> String {
    let line = |(at, request): (usize, &RequestSpec)| {
        let line = Line {
            arrival: request.arrival.seconds(),
            tokens: request.prompt.tokens(),
            blocks: match &request.prompt {
                Prompt::Tokens(_) => None,
                Prompt::Blocks(BlockIds { tokens, block, ids }) => Some(Blocks {
                    input_length: *tokens,
                    block_tokens: (!ids.is_empty()).then_some(*block),
                    hash_ids: ids,
                }),
            },
            max_tokens: request.max_tokens,
            tenant: request.tenant.map(|t| &trace.tenants[t as usize]),
            session: sessions.get(at).copied().filter(|&session| session != NO_SESSION),
            output: request.output.as_deref(),
        };
        serde_json::to_string(&line).expect("a line holds no map") + "\n"
    };
    trace.requests.iter().enumerate().map(line).collect()
}

/// Ids that are written at most: about 1 GiB of text.
pub const MAX_IDS: usize = 1 << 27;

#[derive(Serialize)]
struct MooncakeLine {
    timestamp: f64,
    input_length: usize,
    output_length: u64,
    hash_ids: Vec<u32>,
}

/// Mooncake's JSON lines, with an id for each block of so many tokens (of a trace that has ids: of as many as its ids
/// stand for). Ids are numbered from 0 in the order in which blocks are first seen; a block of which nothing is known
/// has an id of its own. What the format has no place for is lost: tenants, sessions, given outputs, and the tokens
/// themselves. `None`: there are more than [`MAX_IDS`] blocks.
pub fn mooncake(trace: &Trace, block: u32) -> Option<String> {
    let (mut chains, mut renamed, mut next) = (Interner::default(), BTreeMap::<u32, u32>::new(), 0u32);
    let (mut text, mut left) = (String::new(), MAX_IDS);
    for request in &trace.requests {
        let each = match &request.prompt {
            Prompt::Blocks(BlockIds { block, ids, .. }) if !ids.is_empty() => *block,
            _ => block,
        };
        left = left.checked_sub(request.prompt.len().div_ceil(each as usize))?;
        let mut hash_ids: Vec<u32> = Vec::new();
        let mut number = |known: Option<u32>| -> Option<u32> {
            let fresh = |next: &mut u32| {
                *next = next.checked_add(1)?;
                Some(*next - 1)
            };
            match known {
                None => fresh(&mut next),
                Some(id) => match renamed.get(&id) {
                    Some(&number) => Some(number),
                    None => {
                        let number = fresh(&mut next)?;
                        renamed.insert(id, number);
                        Some(number)
                    }
                },
            }
        };
        match &request.prompt {
            Prompt::Tokens(tokens) => {
                let mut chain = Chain::default();
                for part in tokens.chunks(block as usize) {
                    chain = part.iter().fold(chain.then(part.len() as u64), |chain, &t| chain.then(t.into()));
                    hash_ids.push(number(Some(chains.id(chain)?))?);
                }
            }
            Prompt::Blocks(BlockIds { tokens, block: own, ids }) => {
                let own = if ids.is_empty() { block } else { *own };
                for at in 0..tokens.div_ceil(own) as usize {
                    hash_ids.push(number(ids.get(at).copied())?);
                }
            }
        }
        let line = MooncakeLine {
            timestamp: request.arrival.seconds() * 1000.0,
            input_length: request.prompt.len(),
            output_length: request.max_tokens,
            hash_ids,
        };
        text += &serde_json::to_string(&line).expect("a line holds no map");
        text.push('\n');
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Config;
    use crate::trace::import::{read_json_lines, read_mooncake};

    #[test]
    fn a_written_trace_reads_back_to_the_picosecond() {
        let trace = Config::default().generator().generate();
        let read = read_json_lines(&json_lines(&trace, &[]), 260).expect("our own format");
        assert_eq!(read.requests.len(), 24);
        for (a, b) in read.requests.iter().zip(&trace.requests) {
            assert_eq!((a.arrival, &a.prompt, a.max_tokens), (b.arrival, &b.prompt, b.max_tokens));
            let name = |trace: &Trace, tenant: Option<u32>| {
                trace.tenants[tenant.expect("a generated request has a tenant") as usize].clone()
            };
            assert_eq!(name(&read, a.tenant), name(&trace, b.tenant));
        }
    }

    #[test]
    fn a_trace_of_block_ids_reads_back_too() {
        let line =
            "{\"timestamp\": 1500.5, \"input_length\": 40, \"output_length\": 3, \"hash_ids\": [7, 9]}\n";
        let trace = read_mooncake(&line.repeat(2), 32).expect("a good trace");
        let read = read_json_lines(&json_lines(&trace, &[4, NO_SESSION]), 260).expect("our own format");
        assert_eq!(read.requests, trace.requests);
        let written = mooncake(&trace, 512).expect("few blocks");
        assert!(
            written.starts_with(
                "{\"timestamp\":0.0,\"input_length\":40,\"output_length\":3,\"hash_ids\":[0,1]}"
            )
        );
        let again = read_mooncake(&written, 32).expect("Mooncake's format");
        assert_eq!(mooncake(&again, 32), Some(written));
    }

    #[test]
    fn tokens_become_ids_that_are_equal_where_all_before_is() {
        let trace = Config::default().generator().generate();
        let text = mooncake(&trace, 16).expect("few blocks");
        let read = read_mooncake(&text, 16).expect("Mooncake's format");
        let shared = |trace: &Trace, i: usize, j: usize| {
            let items = |at: usize| trace.requests[at].prompt.items();
            items(i).iter().zip(items(j)).take_while(|(a, b)| a == b).count() * trace.tokens_per_item()
        };
        for i in 0..24 {
            for j in 0..i {
                assert_eq!(shared(&read, i, j), shared(&trace, i, j) / 16 * 16, "{i} {j}");
            }
        }
    }
}
