//! What every shape is made from: how many requests, when, whose, and how long.

use std::sync::Arc;

use super::{Arrivals, Draw, MultiTenant, printable, system_prompt};
use crate::trace::{RequestSpec, TenantName, Token, Trace};
use crate::units::Time;

/// What shapes have in common.
pub struct Frame<'a> {
    /// Requests, tenants and lengths.
    pub base: &'a MultiTenant,
    /// When requests, or their sessions, begin.
    pub arrivals: &'a Arrivals,
}

/// A trace on its way.
pub struct Draft<'a> {
    /// What it is made from.
    pub frame: &'a Frame<'a>,
    /// All that is drawn.
    pub draw: Draw,
    weights: Vec<f64>,
    system: Vec<Vec<Token>>,
    requests: Vec<RequestSpec>,
}

impl<'a> Draft<'a> {
    /// Nothing yet.
    pub fn new(frame: &'a Frame<'a>) -> Draft<'a> {
        let base = frame.base;
        let prompt = |tenant| {
            let text = system_prompt(tenant, base.seed).repeat(base.repeat);
            text.into_iter().map(Token::from).collect()
        };
        Draft {
            frame,
            draw: Draw::new(base.seed),
            weights: base.weights(),
            system: (0..base.tenants).map(prompt).collect(),
            requests: Vec::new(),
        }
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// Whether there are as many requests as are wanted.
    pub fn is_full(&self) -> bool {
        self.requests.len() >= self.frame.base.requests
    }

    /// A tenant, drawn by its share.
    pub fn tenant(&mut self) -> u32 {
        self.draw.weighted(&self.weights) as u32
    }

    /// What a tenant tells its model first.
    pub fn system(&self, tenant: u32) -> &[Token] {
        &self.system[tenant as usize]
    }

    /// Tokens that nobody else has.
    pub fn text(&mut self, tokens: u64) -> Vec<Token> {
        printable(&mut self.draw, tokens).into_iter().map(Token::from).collect()
    }

    /// A user's question.
    pub fn question(&mut self) -> Vec<Token> {
        let (low, high) = self.frame.base.user_bytes;
        let tokens = self.draw.between(low, high);
        self.text(tokens)
    }

    /// An answer: as many tokens as may be generated.
    pub fn answer(&mut self) -> Vec<Token> {
        let (low, high) = self.frame.base.output_tokens;
        let tokens = self.draw.between(low, high);
        self.text(tokens)
    }

    /// A number of turns, geometric with this mean and at most four times it.
    pub fn turns(&mut self, mean: f64) -> usize {
        let most = (4.0 * mean) as usize;
        let mut turns = 1;
        while turns < most && self.draw.unit() < 1.0 - 1.0 / mean {
            turns += 1;
        }
        turns
    }

    /// Adds a question behind what its tenant tells its model.
    pub fn ask(&mut self, seconds: f64, tenant: u32) {
        let mut prompt = self.system(tenant).to_vec();
        prompt.extend(self.question());
        let answer = self.answer();
        self.push(seconds, tenant, prompt, answer);
    }

    /// Adds a request; one that would not fit the clock is left out.
    pub fn push(&mut self, seconds: f64, tenant: u32, prompt: Vec<Token>, answer: Vec<Token>) {
        let Some(arrival) = Time::from_seconds(seconds) else { return };
        let prompt: Arc<[Token]> = prompt.into();
        self.requests.push(RequestSpec {
            arrival,
            prompt: prompt.into(),
            max_tokens: answer.len() as u64,
            tenant: Some(tenant),
            // What a later prompt goes on from is what was answered.
            output: Some(answer.into()),
        });
    }

    /// The requests in order of arrival, the first so many of them.
    pub fn trace(self, others: impl IntoIterator<Item = TenantName>) -> Trace {
        let base = self.frame.base;
        let numbers = (0..base.tenants).map(|tenant| TenantName::Number(tenant as i64));
        let mut trace = Trace { requests: self.requests, tenants: numbers.chain(others).collect() }.sorted();
        trace.requests.truncate(base.requests);
        trace
    }

    /// Makes sessions until there are requests enough: each begins at the next arrival, at this rate. `session` is
    /// given its time.
    pub fn sessions(&mut self, rate: f64, mut session: impl FnMut(&mut Self, f64)) {
        let mut process = self.frame.arrivals.at(rate);
        while !self.is_full() {
            let Some(time) = process.next(&mut self.draw).filter(|time| Time::from_seconds(*time).is_some())
            else {
                break;
            };
            session(self, time);
        }
    }
}
