//! Traces written in our own format.

use serde::Serialize;

use super::{RequestSpec, TenantName, Token, Trace};

#[derive(Serialize)]
struct Line<'a> {
    arrival: f64,
    tokens: &'a [Token],
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant: Option<&'a TenantName>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<&'a [Token]>,
}

/// JSON lines that [`read_json_lines`](super::import::read_json_lines) reads back; `None` where a prompt's
/// tokens are not known.
pub fn json_lines(trace: &Trace) -> Option<String> {
    let line = |request: &RequestSpec| {
        let line = Line {
            arrival: request.arrival.seconds(),
            tokens: request.prompt.tokens()?,
            max_tokens: request.max_tokens,
            tenant: request.tenant.map(|t| &trace.tenants[t as usize]),
            output: request.output.as_deref(),
        };
        Some(serde_json::to_string(&line).expect("a line holds no map") + "\n")
    };
    trace.requests.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Config;
    use crate::trace::import::read_json_lines;

    #[test]
    fn a_written_trace_reads_back_to_the_picosecond() {
        let trace = Config::default().generator().generate();
        let read = read_json_lines(&json_lines(&trace).expect("it has tokens"), 260).expect("our own format");
        assert_eq!(read.requests.len(), 24);
        for (a, b) in read.requests.iter().zip(&trace.requests) {
            assert_eq!((a.arrival, &a.prompt, a.max_tokens), (b.arrival, &b.prompt, b.max_tokens));
            let name = |trace: &Trace, tenant: Option<u32>| {
                trace.tenants[tenant.expect("a generated request has a tenant") as usize].clone()
            };
            assert_eq!(name(&read, a.tenant), name(&trace, b.tenant));
        }
    }
}
