//! The workloads of the scenarios: a few shapes, each request's tokens told one by one.

use std::sync::Arc;

use crate::cost::roofline::{Accelerator, ServedModel};
use crate::params::Config;
use crate::trace::generate::Draw;
use crate::trace::{RequestSpec, Token, Trace};
use crate::units::Time;

/// What arrives. Characters are tokens here: each is a byte of a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Workload {
    /// One-shot users behind one system prompt.
    SharedPrompt {
        /// Requests, a Poisson stream.
        requests: u32,
        /// A second.
        rate: f64,
        /// Tokens that all share.
        shared: u32,
        /// Tokens of each user's own.
        own: u32,
        /// Tokens of an answer.
        output: u64,
    },
    /// All at once, behind one system prompt that one warm-up request has brought somewhere 10 s before.
    Burst {
        /// Requests, 0.1 ms apart.
        requests: u32,
        /// Tokens that all share.
        shared: u32,
        /// Tokens of each user's own.
        own: u32,
        /// Tokens of an answer.
        output: u64,
    },
    /// One long document with a short answer, then short prompts with long answers.
    LongThenShort {
        /// Tokens of the document.
        long: u32,
        /// Short prompts, a second apart from ten seconds on.
        requests: u32,
        /// Tokens of each.
        own: u32,
        /// Tokens of their answers.
        output: u64,
    },
    /// Conversations whose every turn repeats all turns before, and one runaway user whose requests pile
    /// up somewhere.
    Runaway {
        /// The runaway's requests, all at the beginning, with answers of 2,000 tokens.
        pile: u32,
        /// Conversations beside it.
        chats: u32,
        /// Turns of each, half a second apart.
        turns: u32,
        /// Tokens that a turn adds.
        turn: u32,
    },
    /// Tenants, each with a system prompt of its own.
    Tenants {
        /// Requests, a Poisson stream.
        requests: u32,
        /// A second.
        rate: f64,
        /// How many.
        tenants: u32,
        /// Tokens of a system prompt.
        shared: u32,
        /// Tokens of a question.
        own: u32,
        /// Tokens of an answer.
        output: u64,
    },
}

/// Text of its own, by number.
fn text(number: u64, tokens: u32) -> impl Iterator<Item = Token> {
    let mut draw = Draw::new(number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5CE4);
    (0..tokens).map(move |_| draw.between(32, 126) as Token)
}

fn request(seconds: f64, tenant: u32, prompt: Vec<Token>, max_tokens: u64) -> RequestSpec {
    let arrival = Time::from_seconds(seconds).expect("workloads are short");
    let prompt: Arc<[Token]> = prompt.into();
    RequestSpec { arrival, prompt: prompt.into(), max_tokens, tenant: Some(tenant), output: None }
}

impl Workload {
    /// What serves it, unless a scenario says otherwise: eight replicas of Llama 3.1 8B, an H100 each.
    pub fn base() -> Config {
        Config { replicas: 8, ..Config::on(Some(Accelerator::H100), ServedModel::Llama8B) }
    }

    /// The trace: always the same.
    pub fn trace(self) -> Trace {
        let mut draw = Draw::new(7);
        let mut at = 0.0;
        let mut poisson = |rate: f64| {
            at += draw.exponential() / rate;
            at
        };
        let joined = |shared: &[Token], own: u64, tokens| -> Vec<Token> {
            shared.iter().copied().chain(text(1000 + own, tokens)).collect()
        };
        let mut requests = Vec::new();
        match self {
            Workload::SharedPrompt { requests: n, rate, shared, own, output } => {
                let system: Vec<Token> = text(0, shared).collect();
                for user in 0..n {
                    requests.push(request(poisson(rate), user, joined(&system, user.into(), own), output));
                }
            }
            Workload::Burst { requests: n, shared, own, output } => {
                let system: Vec<Token> = text(0, shared).collect();
                for user in 0..n {
                    let seconds = 1e-4 * f64::from(user);
                    requests.push(request(seconds, user, joined(&system, user.into(), own), output));
                }
            }
            Workload::LongThenShort { long, requests: n, own, output } => {
                requests.push(request(0.0, 0, text(0, long).collect(), 1));
                for user in 0..n {
                    let seconds = 10.0 + 0.2 * f64::from(user);
                    requests.push(request(
                        seconds,
                        user + 1,
                        text(1000 + u64::from(user), own).collect(),
                        output,
                    ));
                }
            }
            Workload::Runaway { pile, chats, turns, turn } => {
                let document: Vec<Token> = text(0, 2048).collect();
                for at in 0..pile {
                    requests.push(request(1e-3 * f64::from(at), 0, joined(&document, at.into(), 16), 2000));
                }
                for step in 0..turns {
                    for chat in 0..chats {
                        let seconds = 1.0 + 0.5 * f64::from(step) + 0.01 * f64::from(chat);
                        let said = text(5000 + u64::from(chat), turn * (step + 1)).collect();
                        requests.push(request(seconds, 1 + chat, said, 8));
                    }
                }
            }
            Workload::Tenants { requests: n, rate, tenants, shared, own, output } => {
                let systems: Vec<Vec<Token>> =
                    (0..tenants).map(|tenant| text(u64::from(tenant), shared).collect()).collect();
                let mut which = Draw::new(11);
                for user in 0..n {
                    let tenant = which.between(0, u64::from(tenants) - 1) as usize;
                    let prompt = joined(&systems[tenant], user.into(), own);
                    requests.push(request(poisson(rate), tenant as u32, prompt, output));
                }
            }
        }
        let most = requests.iter().filter_map(|request| request.tenant).max().unwrap_or(0);
        let tenants = (0..=most).map(|tenant| crate::trace::TenantName::Number(tenant.into())).collect();
        Trace { requests, tenants }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shared_prompt_is_shared_and_the_rest_is_not() {
        let shape = Workload::SharedPrompt { requests: 20, rate: 5.0, shared: 100, own: 50, output: 8 };
        let trace = shape.trace();
        assert_eq!(trace, shape.trace());
        let prompts: Vec<&[Token]> =
            trace.requests.iter().map(|r| r.prompt.tokens().expect("they are told")).collect();
        assert!(
            prompts.windows(2).all(|two| two[0][..100] == two[1][..100] && two[0][100..] != two[1][100..])
        );
        assert!(trace.requests.is_sorted_by_key(|request| request.arrival));
    }

    #[test]
    fn a_chats_next_turn_repeats_the_last() {
        let trace = Workload::Runaway { pile: 3, chats: 2, turns: 3, turn: 64 }.trace();
        assert!(trace.requests.is_sorted_by_key(|request| request.arrival));
        let turns: Vec<&[Token]> =
            trace.requests.iter().filter(|r| r.tenant == Some(1)).filter_map(|r| r.prompt.tokens()).collect();
        assert_eq!(turns.len(), 3);
        assert_eq!(turns[1][..64], *turns[0]);
        assert_eq!(turns[2].len(), 192);
    }
}
