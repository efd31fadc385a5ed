//! `multi-tenant`: Poisson arrivals over several tenants, each with a system prompt of its own.
//!
//! The shape that makes routing matter: with one shared prefix every replica is soon warm for it,
//! with several a router that scatters them makes every replica compute every prefix.

use std::sync::Arc;

use super::Draw;
use crate::trace::{RequestSpec, TenantName, Token, Trace};
use crate::units::Time;

/// What each of the first tenants tells its model, before it is repeated.
///
/// Where a prefix belongs depends on its words. With the default prefix length these six hash onto
/// four replicas as 1, 2, 2, 1, so that none is left without a tenant (as in the chapter's run).
const SYSTEM_PROMPTS: [&str; 6] = [
    "You answer customers of a bicycle shop; be brief, kind and exact. ",
    "Translate what follows into plain French and keep every number as is. ",
    "You review Rust patches: name the bug, the line, and the smallest fix. ",
    "Summarise the meeting notes below as decisions, owners and deadlines. ",
    "You are the night clerk of a hospital pharmacy; never guess at a dose. ",
    "Turn the question into one SQL query over the schema you were given. ",
];

/// Bytes of the longest system prompt, once.
const LONGEST_SYSTEM_PROMPT: u64 = 80;

/// The parameters of a multi-tenant trace.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiTenant {
    /// How many requests.
    pub requests: usize,
    /// Arrivals a second.
    pub rate: f64,
    /// How many tenants.
    pub tenants: usize,
    /// Zipf exponent over tenants: 0 is uniform.
    pub skew: f64,
    /// The first tenant's share of the traffic, where it is not left to `skew`.
    pub hot_share: Option<f64>,
    /// How often a system prompt is repeated.
    pub repeat: usize,
    /// Bytes of a user's own question: fewest, most.
    pub user_bytes: (u64, u64),
    /// Output tokens: fewest, most.
    pub output_tokens: (u64, u64),
    /// Everything is drawn from this.
    pub seed: u64,
}

/// A tenant's system prompt, once: written for the first six, drawn for the others.
pub fn system_prompt(tenant: usize, seed: u64) -> Vec<u8> {
    if let Some(text) = SYSTEM_PROMPTS.get(tenant) {
        return text.as_bytes().to_vec();
    }
    // A stream of its own, so that the prompt does not depend on how many requests there are.
    let mut draw = Draw::new(seed ^ (tenant as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let len = draw.between(60, LONGEST_SYSTEM_PROMPT);
    printable(&mut draw, len)
}

fn printable(draw: &mut Draw, len: u64) -> Vec<u8> {
    (0..len).map(|_| draw.between(b' '.into(), b'~'.into()) as u8).collect()
}

impl MultiTenant {
    /// Each tenant's share of the traffic, up to a factor.
    pub(super) fn weights(&self) -> Vec<f64> {
        let mut weights: Vec<f64> =
            (1..=self.tenants).map(|rank| libm::pow(rank as f64, -self.skew)).collect();
        if let Some(share) = self.hot_share {
            let others: f64 = weights[1..].iter().sum();
            weights[0] = share;
            for weight in &mut weights[1..] {
                *weight *= (1.0 - share) / others;
            }
        }
        weights
    }

    /// Tokens of the longest prompt that it can draw.
    pub fn longest_prompt(&self) -> u64 {
        LONGEST_SYSTEM_PROMPT * self.repeat as u64 + self.user_bytes.1
    }

    /// Draws the trace. Arrivals that would not fit the clock are left out: a configuration that
    /// could have any is refused before ([`Config::validate`](crate::params::Config::validate)).
    pub fn generate(&self) -> Trace {
        let mut draw = Draw::new(self.seed);
        let weights = self.weights();
        let system: Vec<Vec<u8>> =
            (0..self.tenants).map(|t| system_prompt(t, self.seed).repeat(self.repeat)).collect();
        let mut seconds = 0.0;
        let mut requests = Vec::with_capacity(self.requests);
        for _ in 0..self.requests {
            seconds += draw.exponential() / self.rate;
            let Some(arrival) = Time::from_seconds(seconds) else { break };
            let tenant = draw.weighted(&weights);
            let len = draw.between(self.user_bytes.0, self.user_bytes.1);
            let user = printable(&mut draw, len);
            let prompt: Arc<[Token]> =
                system[tenant].iter().chain(&user).map(|&byte| Token::from(byte)).collect();
            requests.push(RequestSpec {
                arrival,
                prompt: prompt.into(),
                max_tokens: draw.between(self.output_tokens.0, self.output_tokens.1),
                tenant: Some(tenant as u32),
                output: None,
            });
        }
        Trace { requests, tenants: (0..self.tenants).map(|t| TenantName::Number(t as i64)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> MultiTenant {
        MultiTenant {
            requests: 2000,
            rate: 8.0,
            tenants: 9,
            skew: 0.0,
            hot_share: None,
            repeat: 6,
            user_bytes: (8, 32),
            output_tokens: (16, 32),
            seed: 7,
        }
    }

    #[test]
    fn prompts_are_six_times_60_to_80_bytes_and_a_question() {
        let trace = shape().generate();
        for request in &trace.requests {
            let tenant = request.tenant.expect("every request has a tenant") as usize;
            let system = system_prompt(tenant, 7);
            assert!((60..=80).contains(&system.len()), "tenant {tenant}: {}", system.len());
            let user = request.prompt.len() - 6 * system.len();
            assert!((8..=32).contains(&user) && (16..=32).contains(&request.max_tokens));
            let prompt = request.prompt.tokens().expect("it has tokens");
            assert!(prompt.iter().all(|&t| (32..127).contains(&t)));
            assert!(prompt[..system.len()].iter().map(|&t| t as u8).eq(system));
        }
    }

    #[test]
    fn the_six_prompts_leave_none_of_four_replicas_without_a_tenant() {
        let owner = |tenant| {
            let prefix: Vec<Token> = system_prompt(tenant, 0).repeat(6).iter().map(|&b| b.into()).collect();
            crate::policy::tuple_hash(&prefix[..64]).rem_euclid(4)
        };
        let owners: Vec<i64> = (0..6).map(owner).collect();
        assert_eq!(owners, [0, 1, 2, 3, 2, 1]);
    }

    #[test]
    fn system_prompts_differ_within_the_first_block() {
        let prompts: Vec<Vec<u8>> = (0..9).map(|t| system_prompt(t, 7)[..16].to_vec()).collect();
        for (i, a) in prompts.iter().enumerate() {
            assert!(prompts[i + 1..].iter().all(|b| a != b), "tenant {i} shares its first block");
        }
    }

    #[test]
    fn gaps_are_exponential_at_the_rate() {
        let trace = shape().generate();
        let last = trace.requests.last().expect("2000 requests").arrival.seconds();
        assert!((230.0..270.0).contains(&last), "2000 requests at 8 a second took {last} s");
        let mut before = 0.0;
        let gaps: Vec<f64> = trace
            .requests
            .iter()
            .map(|r| r.arrival.seconds() - core::mem::replace(&mut before, r.arrival.seconds()))
            .collect();
        let mean = gaps.iter().sum::<f64>() / 2000.0;
        let var = gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / 2000.0;
        let variation = var.sqrt() / mean;
        assert!((0.92..1.08).contains(&variation), "coefficient of variation {variation}");
    }

    #[test]
    fn skew_and_hot_share_shift_the_traffic() {
        let share = |shape: MultiTenant| {
            let trace = shape.generate();
            trace.requests.iter().filter(|r| r.tenant == Some(0)).count() as f64 / 2000.0
        };
        assert!((share(shape()) - 1.0 / 9.0).abs() < 0.03);
        let harmonic: f64 = (1..=9).map(|k| 1.0 / f64::from(k)).sum();
        assert!((share(MultiTenant { skew: 1.0, ..shape() }) - 1.0 / harmonic).abs() < 0.04);
        assert!((share(MultiTenant { hot_share: Some(0.9), ..shape() }) - 0.9).abs() < 0.03);
        assert_eq!(share(MultiTenant { hot_share: Some(1.0), tenants: 1, ..shape() }), 1.0);
    }

    #[test]
    fn the_same_seed_draws_the_same_trace() {
        assert_eq!(shape().generate(), shape().generate());
        assert_ne!(shape().generate(), MultiTenant { seed: 8, ..shape() }.generate());
    }
}
