//! Our own format: one JSON object a line.
//!
//! `arrival` (seconds from the run's start), what is asked, `max_tokens`, and optionally `tenant` (a string or an
//! integer), `session` (the same) and `output` (token ids: what a modelled replica answers). What is asked is `tokens`
//! (a list of token ids), or `prompt` (text, whose UTF-8 bytes are its tokens), or, where only that is known,
//! `input_length` with `hash_ids`, an id for each `block_tokens` tokens. Blank lines are passed over. Requests out of
//! order are put in order of arrival; times keep their zero. A key that is there twice is refused.

use std::sync::Arc;

use super::TraceError;
use super::item::Item;
use super::line::Line;
use super::reader::Objects;
use super::rows::{Row, Rows};
use crate::trace::{BlockIds, Prompt, TenantName, Token};
use crate::units::{MAX_SECONDS, Time};

const FIELDS: [&str; 10] = [
    "arrival",
    "tokens",
    "prompt",
    "max_tokens",
    "tenant",
    "output",
    "session",
    "input_length",
    "block_tokens",
    "hash_ids",
];

/// Reads it. `vocabulary` is one more than the highest token id that the model knows.
pub struct JsonLines {
    pub vocabulary: Token,
}

impl Objects for JsonLines {
    fn example(&self) -> &'static str {
        "{\"arrival\": 0.5, \"prompt\": \"Hi\", \"max_tokens\": 16}"
    }

    fn read(&mut self, line: &Line<'_>, rows: &mut Rows) -> Result<(), TraceError> {
        // Times keep their zero; a budget of nothing is the engine's to reject.
        (rows.unit, rows.keep_failed) = (None, true);
        for name in line.fields.keys().filter(|name| !FIELDS.contains(name) && name.len() < 64) {
            // Fields of one's own are welcome; a slip of the pen in ours is not.
            if let Some(near) = FIELDS.iter().find(|f| strsim::damerau_levenshtein(f, name) <= 2) {
                return Err(line.error(Some(name), format!("no such field; did you mean `{near}`?")));
            }
        }
        let time = arrival(line)?;
        let prompt = self.prompt(line)?;
        let max_tokens = max_tokens(line)?;
        let output = match line.fields.known("output") {
            None => None,
            Some(item) => Some(self.tokens(line, "output", item)?),
        };
        let (tenant, session) = (name(line, "tenant")?, name(line, "session")?);
        let (tenant, session) = (tenant.map(|t| rows.tenant(t)), session.map(|s| rows.session(s)));
        rows.push(Row { line: line.number, time, prompt, max_tokens, tenant, output, session })
    }
}

fn required<'l>(line: &'l Line<'_>, name: &str, wanted: &str) -> Result<&'l Item, TraceError> {
    line.fields.get(name).ok_or_else(|| line.refuse(name, wanted))
}

fn arrival(line: &Line<'_>) -> Result<f64, TraceError> {
    let wanted = "a number of seconds from the start, such as 0.25";
    let item = required(line, "arrival", wanted)?;
    let Some(seconds) = item.number() else {
        return Err(line.error(Some("arrival"), format!("found {}; it is {wanted}", item.kind())));
    };
    match Time::from_seconds(seconds) {
        Some(_) => Ok(seconds),
        None => Err(line.error(Some("arrival"), format!("{item} is not from 0 to {MAX_SECONDS} seconds"))),
    }
}

fn max_tokens(line: &Line<'_>) -> Result<u64, TraceError> {
    let wanted = "a whole number of tokens, such as 16";
    match required(line, "max_tokens", wanted)? {
        Item::Whole(n) => Ok(*n),
        // Below 1 it is a request that the engine rejects, with its reason.
        Item::Negative(_) => Ok(0),
        Item::Real(x) if *x == libm::trunc(*x) && x.abs() < 9_007_199_254_740_992.0 => Ok(x.max(0.0) as u64),
        other => Err(line.error(Some("max_tokens"), format!("found {other}; it is {wanted}"))),
    }
}

/// A tenant's or a session's name.
fn name(line: &Line<'_>, field: &str) -> Result<Option<TenantName>, TraceError> {
    match line.fields.known(field) {
        None => Ok(None),
        Some(Item::Text(text)) => Ok(Some(TenantName::Text(text.clone()))),
        Some(item) => match item.integer() {
            Some(n) => Ok(Some(TenantName::Number(n))),
            None => {
                Err(line.error(Some(field), format!("found {}; it is a string or an integer", item.kind())))
            }
        },
    }
}

impl JsonLines {
    fn prompt(&self, line: &Line<'_>) -> Result<Prompt, TraceError> {
        let [tokens, text, length] = ["tokens", "prompt", "input_length"].map(|name| line.fields.get(name));
        match (tokens, text, length) {
            (Some(tokens), None, None) => Ok(self.tokens(line, "tokens", tokens)?.into()),
            (None, Some(Item::Text(text)), None) => {
                Ok(text.bytes().map(Token::from).collect::<Arc<[Token]>>().into())
            }
            (None, Some(other), None) => {
                Err(line.error(Some("prompt"), format!("found {}; it is a text", other.kind())))
            }
            (None, None, Some(_)) => blocks(line),
            (Some(_), Some(_), _) => Err(line.error(
                Some("prompt"),
                "both `tokens` and `prompt` are given; a request has one of them".into(),
            )),
            (.., Some(_)) => Err(line.error(
                Some("input_length"),
                "it is for a prompt of block ids, and there are tokens or a text; a request has one of them"
                    .into(),
            )),
            (None, None, None) => Err(line.error(
                Some("tokens"),
                "missing; a request has `tokens` (a list of ids) or `prompt` (a text)".into(),
            )),
        }
    }

    fn tokens(&self, line: &Line<'_>, field: &str, item: &Item) -> Result<Arc<[Token]>, TraceError> {
        let refuse = |at: usize, item: &Item| {
            let problem = format!(
                "item {at} is {item}; a token id is a whole number from 0 to {}",
                self.vocabulary - 1
            );
            line.error(Some(field), problem)
        };
        match item {
            Item::Ids(ids) => match ids.iter().enumerate().find(|(_, id)| **id >= self.vocabulary) {
                Some((at, &id)) => Err(refuse(at, &Item::Whole(id.into()))),
                None => Ok(ids.as_slice().into()),
            },
            Item::List(items) => {
                let good = |item: &Item| matches!(item, Item::Whole(n) if *n < self.vocabulary.into());
                let (at, item) = items.iter().enumerate().find(|(_, item)| !good(item)).expect(
                    "a list of token ids alone is `Ids`: some value of another list is too large or no whole number",
                );
                Err(refuse(at, item))
            }
            other => {
                Err(line.error(Some(field), format!("found {}; it is a list of token ids", other.kind())))
            }
        }
    }
}

/// A prompt of which only the length and the blocks are known.
fn blocks(line: &Line<'_>) -> Result<Prompt, TraceError> {
    let tokens = line.whole("input_length")?;
    let block = if line.fields.known("block_tokens").is_some() { line.whole("block_tokens")? } else { 1 };
    if !(1..=65_536).contains(&block) {
        return Err(line.refuse("block_tokens", "a number of tokens from 1 to 65536"));
    }
    let ids = match line.fields.known("hash_ids") {
        Some(_) => line.ids("hash_ids", "a list with an id for each block of the prompt")?,
        None => &[],
    };
    if ids.len() > tokens.div_ceil(block) as usize {
        let problem = format!(
            "found {} ids; {tokens} tokens are {} blocks of {block}",
            ids.len(),
            tokens.div_ceil(block)
        );
        return Err(line.error(Some("hash_ids"), problem));
    }
    Ok(Prompt::Blocks(BlockIds { tokens, block, ids: ids.into() }))
}

#[cfg(test)]
mod tests {
    use super::super::read_json_lines as read;
    use crate::trace::TenantName;

    #[test]
    fn reads_both_kinds_of_prompts_and_keeps_the_zero() {
        let text = "\n{\"arrival\": 2, \"tokens\": [1, 2, 3], \"max_tokens\": 4, \"tenant\": \"b\"}\n\
                    {\"arrival\": 0.5, \"prompt\": \"hé\", \"max_tokens\": 1, \"tenant\": 7, \"note\": {}}\r\n";
        let trace = read(text, 260).expect("a good trace");
        assert_eq!(trace.tenants, [TenantName::Text("b".into()), TenantName::Number(7)]);
        let [first, second] = &trace.requests[..] else { panic!("two requests") };
        assert_eq!(
            (first.arrival.seconds(), first.tenant, first.prompt.items()),
            (0.5, Some(1), &[104, 195, 169][..])
        );
        assert_eq!(
            (second.arrival.seconds(), second.max_tokens, second.prompt.items()),
            (2.0, 4, &[1, 2, 3][..])
        );
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_field() {
        let cases = [
            ("{", None, "not a JSON object"),
            ("[1]", None, "found a list"),
            ("{\"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "missing"),
            ("{\"arrival\": \"0\", \"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "found a text"),
            ("{\"arrival\": -1, \"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "-1"),
            ("{\"arrival\": 1e308, \"prompt\": \"a\", \"max_tokens\": 1}", Some("arrival"), "seconds"),
            ("{\"arrival\": 0, \"max_tokens\": 1}", Some("tokens"), "missing"),
            ("{\"arrival\": 0, \"prompt\": 3, \"max_tokens\": 1}", Some("prompt"), "found a number"),
            ("{\"arrival\": 0, \"prompt\": \"\", \"tokens\": [], \"max_tokens\": 1}", Some("prompt"), "both"),
            ("{\"arrival\": 0, \"tokens\": [0, 260], \"max_tokens\": 1}", Some("tokens"), "item 1 is 260"),
            ("{\"arrival\": 0, \"tokens\": [0.5], \"max_tokens\": 1}", Some("tokens"), "item 0 is 0.5"),
            ("{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1.5}", Some("max_tokens"), "1.5"),
            (
                "{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1, \"arrival\": 5}",
                None,
                "`arrival` is there twice",
            ),
            (
                "{\"arrival\": 0, \"prompt\": \"a\", \"input_length\": 4, \"max_tokens\": 1}",
                Some("input_length"),
                "one of them",
            ),
            (
                "{\"arrival\": 0, \"input_length\": 4, \"block_tokens\": 2, \"hash_ids\": [1, 2, 3], \"max_tokens\": 1}",
                Some("hash_ids"),
                "2 blocks of 2",
            ),
            ("{\"arrival\": 0, \"prompt\": \"a\", \"max_token\": 1}", Some("max_token"), "`max_tokens`"),
            (
                "{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1, \"tenant\": []}",
                Some("tenant"),
                "found a list",
            ),
        ];
        for (line, field, part) in cases {
            let text = format!("{{\"arrival\": 0, \"prompt\": \"a\", \"max_tokens\": 1}}\n\n{line}\n");
            let error = read(&text, 260).expect_err(line);
            assert_eq!((error.line, error.field.as_deref()), (3, field), "{line}");
            assert!(error.problem.contains(part), "{line}: {error}");
        }
    }

    #[test]
    fn a_request_that_asks_for_nothing_is_the_engines_to_reject() {
        let read_budget = |budget: &str| {
            let line = format!("{{\"arrival\": 0, \"prompt\": \"\", \"max_tokens\": {budget}}}");
            read(&line, 260).expect(budget).requests[0].max_tokens
        };
        assert_eq!((read_budget("0"), read_budget("-5"), read_budget("16.0")), (0, 0, 16));
    }
}
