//! What a run was worth: the figures of the summary, each defined once.

use serde::{Deserialize, Serialize};

use super::{Outcome, Record, Recorder};
use crate::engine::{Rejection, RequestId};
use crate::trace::TenantName;
use crate::units::Span;

/// What a request must meet to count as good.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Objectives {
    /// Time to first token, in seconds.
    pub ttft: f64,
    /// Inter-token latency, in seconds.
    pub itl: f64,
}

impl Objectives {
    /// Whether a finished request met both. One of a single token has no ITL and meets that.
    pub fn met_by(&self, record: &Record) -> bool {
        record.finished().is_some()
            && record.ttft().is_some_and(|ttft| within(ttft, self.ttft, 1))
            && record.after_first().is_none_or(|(span, tokens)| within(span, self.itl, tokens))
    }
}

/// Whether so many tokens took at most so many seconds each. In whole picoseconds: dividing seconds
/// would round some requests that are just in time to late. What the clock cannot hold is no limit.
fn within(span: Span, seconds: f64, tokens: u32) -> bool {
    Span::from_seconds(seconds).map_or(seconds > 0.0, |each| span <= each.times(tokens.into()))
}

/// Three quantiles of a sample, in seconds; null where the sample is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The median.
    pub p50: Option<f64>,
    /// 95 %.
    pub p95: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
}

impl Quantiles {
    /// Of any values, in any order.
    pub fn of(mut values: Vec<f64>) -> Quantiles {
        let Some(last) = values.len().checked_sub(1) else { return Quantiles::default() };
        // As `quantile` finds them, with no more put in order than is looked at: nothing before
        // `from` is greater than what is behind it.
        let mut from = 0;
        let mut at = |p: f64| {
            let rank = p * last as f64;
            let below = rank as usize;
            let (_, low, above) = values[from..].select_nth_unstable_by(below - from, f64::total_cmp);
            from = below;
            let high = above.iter().copied().min_by(f64::total_cmp).unwrap_or(*low);
            Some(*low + (high - *low) * (rank - below as f64))
        };
        Quantiles { p50: at(0.50), p95: at(0.95), p99: at(0.99) }
    }
}

/// The quantile of sorted values at rank p·(n − 1), interpolated linearly.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = p * last as f64;
    let below = rank as usize;
    let above = (below + 1).min(last);
    Some(sorted[below] + (sorted[above] - sorted[below]) * (rank - below as f64))
}

/// A run's figures. Fractions are 0–1; times are in seconds; what is undefined is null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Requests that arrived, rejected ones included.
    pub arrived: usize,
    /// Requests that were finished.
    pub completed: usize,
    /// Requests that could never be served.
    pub rejected: usize,
    /// From time 0 to the last finish, in seconds; every rate divides by it.
    pub span: f64,
    /// Time to first token, from the scheduled arrival.
    pub ttft: Quantiles,
    /// Inter-token latency: (finish − first token) ÷ (tokens − 1).
    pub itl: Quantiles,
    /// Single gaps between two tokens of one request.
    pub token_gap: Quantiles,
    /// Tokens generated.
    pub output_tokens: u64,
    /// Tokens generated a second.
    pub output_tokens_per_second: Option<f64>,
    /// Requests finished a second.
    pub requests_per_second: Option<f64>,
    /// Requests that met both objectives.
    pub good: usize,
    /// Those a second.
    pub goodput_per_second: Option<f64>,
    /// Those as a fraction of all that arrived.
    pub goodput_fraction: Option<f64>,
    /// Prompt tokens of all requests at their first admission.
    pub prompt_tokens: u64,
    /// Those of them that were in a prefix cache.
    pub cached_tokens: u64,
    /// `cached_tokens` ÷ `prompt_tokens`.
    pub reuse: Option<f64>,
    /// The busiest replica's share of requests ÷ an even share.
    pub imbalance: Option<f64>,
    /// The same, weighted by prompt plus budget.
    pub token_imbalance: Option<f64>,
    /// Requests sent to each replica.
    pub assignments: Vec<u64>,
    /// Times a running request lost its blocks.
    pub preemptions: u64,
    /// Tokens computed again after that.
    pub recomputed_tokens: u64,
    /// Cached blocks evicted.
    pub evictions: u64,
    /// The most blocks held by running requests of one replica ÷ its pool.
    pub peak_kv_utilisation: f64,
    /// The same by tenant, in the trace's order.
    pub tenants: Vec<TenantSummary>,
    /// Each request that could never be served, and why.
    pub rejections: Vec<RejectedRequest>,
}

/// One tenant's share of a summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TenantSummary {
    /// The tenant as the trace names it; null: requests without one.
    pub tenant: Option<TenantName>,
    /// Requests finished.
    pub completed: usize,
    /// Requests that could never be served.
    pub rejected: usize,
    /// Requests that met both objectives.
    pub good: usize,
    /// Time to first token.
    pub ttft: Quantiles,
    /// Inter-token latency.
    pub itl: Quantiles,
    /// Prompt tokens found in a prefix cache ÷ prompt tokens.
    pub reuse: Option<f64>,
}

/// A request that could never be served.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RejectedRequest {
    /// Its index in the trace.
    pub request: RequestId,
    /// Why, and with which numbers.
    #[serde(flatten)]
    pub rejection: Rejection,
    /// The same in words.
    pub message: String,
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The largest share ÷ an even share.
fn imbalance(shares: &[u64]) -> Option<f64> {
    let most = *shares.iter().max()? as f64;
    ratio(most * shares.len() as f64, shares.iter().sum::<u64>() as f64)
}

/// Prompt tokens and cached tokens over the requests that have been admitted.
fn reused<'a>(records: impl Iterator<Item = &'a Record>) -> (u64, u64) {
    let mut sums = (0, 0);
    for record in records {
        if let Outcome::Served { admitted: Some(_), cached, .. } = record.outcome {
            sums.0 += u64::from(record.prompt);
            sums.1 += u64::from(cached);
        }
    }
    sums
}

impl Recorder {
    /// Reuse so far.
    pub fn reuse(&self) -> Option<f64> {
        let (prompt, cached) = reused(self.records());
        ratio(cached as f64, prompt as f64)
    }

    /// Imbalance so far.
    pub fn imbalance(&self) -> Option<f64> {
        imbalance(&self.assignments)
    }

    /// Requests that have met both objectives so far.
    pub fn good(&self, objectives: &Objectives) -> usize {
        self.records().filter(|r| objectives.met_by(r)).count()
    }

    /// The figures of what has been observed so far.
    pub fn summary(&self, objectives: &Objectives, tenants: &[TenantName]) -> Summary {
        let completed: Vec<&Record> = self.records().filter(|r| r.finished().is_some()).collect();
        let span = self.last_finish.seconds();
        let (mut output_tokens, mut recomputed_tokens) = (0, 0);
        for record in self.records() {
            if let Outcome::Served { generated, recomputed, .. } = record.outcome {
                output_tokens += u64::from(generated);
                recomputed_tokens += u64::from(recomputed);
            }
        }
        let good = self.good(objectives);
        let (prompt_tokens, cached_tokens) = reused(self.records());
        let rejections: Vec<RejectedRequest> = self
            .records()
            .filter_map(|record| match record.outcome {
                Outcome::Rejected(rejection) => Some(RejectedRequest {
                    request: record.request,
                    rejection,
                    message: rejection.to_string(),
                }),
                Outcome::Served { .. } => None,
            })
            .collect();
        Summary {
            arrived: self.records.len(),
            completed: completed.len(),
            rejected: rejections.len(),
            span,
            ttft: Quantiles::of(completed.iter().filter_map(|r| r.ttft()).map(|t| t.seconds()).collect()),
            itl: Quantiles::of(completed.iter().filter_map(|r| r.itl()).collect()),
            token_gap: self.gaps.quantiles(),
            output_tokens,
            output_tokens_per_second: ratio(output_tokens as f64, span),
            requests_per_second: ratio(completed.len() as f64, span),
            good,
            goodput_per_second: ratio(good as f64, span),
            goodput_fraction: ratio(good as f64, self.records.len() as f64),
            prompt_tokens,
            cached_tokens,
            reuse: ratio(cached_tokens as f64, prompt_tokens as f64),
            imbalance: imbalance(&self.assignments),
            token_imbalance: imbalance(&self.assigned_tokens),
            assignments: self.assignments.clone(),
            preemptions: self.preemptions,
            recomputed_tokens,
            evictions: self.evictions,
            peak_kv_utilisation: self.peak_kv_utilisation(),
            tenants: self.by_tenant(objectives, tenants),
            rejections,
        }
    }

    fn by_tenant(&self, objectives: &Objectives, tenants: &[TenantName]) -> Vec<TenantSummary> {
        let mut records: Vec<Vec<&Record>> = vec![Vec::new(); tenants.len() + 1];
        for record in self.records() {
            records[record.tenant.map_or(tenants.len(), |t| t as usize)].push(record);
        }
        let anonymous = (!records[tenants.len()].is_empty()).then_some(None);
        let named = (0..tenants.len() as u32).map(Some);
        named
            .chain(anonymous)
            .zip(records)
            .map(|(tenant, own)| {
                let done: Vec<&&Record> = own.iter().filter(|r| r.finished().is_some()).collect();
                let (prompt, cached) = reused(own.iter().copied());
                TenantSummary {
                    tenant: tenant.map(|t| tenants[t as usize].clone()),
                    completed: done.len(),
                    rejected: own.iter().filter(|r| matches!(r.outcome, Outcome::Rejected(_))).count(),
                    good: own.iter().filter(|r| objectives.met_by(r)).count(),
                    ttft: Quantiles::of(done.iter().filter_map(|r| r.ttft()).map(|t| t.seconds()).collect()),
                    itl: Quantiles::of(done.iter().filter_map(|r| r.itl()).collect()),
                    reuse: ratio(cached as f64, prompt as f64),
                }
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_interpolate_at_rank_p_times_n_minus_1() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert_eq!(quantile(&values, 0.5), Some(4.0));
        assert_eq!(quantile(&values, 0.95), Some(8.0 + 8.0 * (0.95 * 4.0 - 3.0)));
        assert_eq!((quantile(&[3.0], 0.99), quantile(&[], 0.5)), (Some(3.0), None));
        for n in 0..300u32 {
            let values: Vec<f64> = (0..n).map(|i| f64::from(i * 7919 % 101).sqrt()).collect();
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let [p50, p95, p99] = [0.5, 0.95, 0.99].map(|p| quantile(&sorted, p));
            assert_eq!(Quantiles::of(values), Quantiles { p50, p95, p99 }, "of {n}");
        }
    }

    #[test]
    fn who_is_just_in_time_is_good() {
        // In seconds, 0.27 / 9 is above 0.03.
        let objectives = Objectives { ttft: 0.7, itl: 0.03 };
        let met = |ttft: u64, rest: u64| {
            let (first, end) = (300_000_000_000 + ttft, 300_000_000_000 + ttft + rest);
            objectives.met_by(&Record {
                request: 0,
                tenant: None,
                prompt: 1,
                max_tokens: 10,
                arrival: 300_000_000_000,
                outcome: Outcome::Served {
                    replica: 0,
                    admitted: Some(300_000_000_000),
                    cached: 0,
                    first_token: Some(first),
                    latest_token: Some(end),
                    finished: Some(end),
                    generated: 10,
                    preemptions: 0,
                    recomputed: 0,
                },
            })
        };
        assert!(met(700_000_000_000, 270_000_000_000));
        assert!(!met(700_000_000_001, 270_000_000_000) && !met(700_000_000_000, 270_000_000_001));
    }

    #[test]
    fn imbalance_is_the_busiest_share_over_an_even_one() {
        assert_eq!(imbalance(&[5, 6, 9, 4]), Some(1.5));
        assert_eq!((imbalance(&[6, 6]), imbalance(&[0, 0])), (Some(1.0), None));
    }
}
