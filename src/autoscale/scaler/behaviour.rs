//! How Kubernetes' HPA turns what it wants into what it does: stabilisation windows and rates.
//!
//! Source: kubernetes `pkg/apis/autoscaling/v2/defaults.go` (up: no window, the larger of 4 pods and 100 %
//! every 15 s; down: 100 % every 15 s) and the controller's `--horizontal-pod-autoscaler-downscale-stabilization`
//! (300 s). Both HPA and KEDA, which drives an HPA, act this way.

use std::collections::VecDeque;

use super::{Bounds, Limit};
use crate::units::{Span, Time};

/// Windows and rates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Behaviour {
    /// It grows no further than it wanted to all along this time.
    pub up_window: Span,
    /// It shrinks no further than it wanted to all along this time.
    pub down_window: Span,
    /// It grows by so many replicas a period, or by `up_percent`, whichever is more.
    pub up_replicas: u32,
    /// Likewise, in percent.
    pub up_percent: u32,
    /// It shrinks by so many percent a period.
    pub down_percent: u32,
    /// That period.
    pub period: Span,
}

pub(super) const fn span(seconds: u64) -> Span {
    Span(seconds * crate::units::PICOS_PER_SECOND)
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            up_window: Span::ZERO,
            down_window: span(300),
            up_replicas: 4,
            up_percent: 100,
            down_percent: 100,
            period: span(15),
        }
    }
}

/// Remembers what was wanted and what was done.
#[derive(Clone, Debug)]
pub struct Settle {
    behaviour: Behaviour,
    wanted: VecDeque<(Time, u32)>,
    /// Changes made: how many replicas more (or fewer).
    changes: VecDeque<(Time, i64)>,
}

impl Settle {
    /// Of a behaviour, with nothing behind it.
    pub fn new(behaviour: Behaviour) -> Settle {
        Settle { behaviour, wanted: VecDeque::new(), changes: VecDeque::new() }
    }

    /// What comes of `wanted` where there are `live`, and what kept it from more.
    pub fn settle(&mut self, now: Time, live: u32, wanted: u32, bounds: Bounds) -> (u32, Option<Limit>) {
        let Behaviour { up_window, down_window, .. } = self.behaviour;
        if self.wanted.is_empty() {
            // What it finds counts as wanted (`recordInitialRecommendation`), or it would shrink at first sight.
            self.wanted.push_back((now, live));
        }
        self.wanted.push_back((now, wanted));
        let longest = up_window.max(down_window);
        while self.wanted.front().is_some_and(|(at, _)| now.since(*at) >= longest.max(Span::GRAIN)) {
            self.wanted.pop_front();
        }
        let within = |window: Span| {
            self.wanted.iter().filter(move |(at, _)| now.since(*at) < window).map(|(_, wanted)| *wanted)
        };
        let least = within(up_window).min().unwrap_or(wanted).min(wanted);
        let most = within(down_window).max().unwrap_or(wanted).max(wanted);
        let steady = live.max(least).min(most);
        let limit = match wanted {
            w if w > live && steady < w => Some(Limit::UpWindow),
            w if w < live && steady > w => Some(Limit::DownWindow),
            _ => None,
        };
        let (settled, limit) = self.within_rate(now, live, steady, limit);
        let settled = settled.clamp(bounds.min, bounds.max);
        if settled != live {
            self.changes.push_back((now, i64::from(settled) - i64::from(live)));
        }
        (settled, limit)
    }

    fn within_rate(
        &mut self,
        now: Time,
        live: u32,
        steady: u32,
        limit: Option<Limit>,
    ) -> (u32, Option<Limit>) {
        let Behaviour { up_replicas, up_percent, down_percent, period, .. } = self.behaviour;
        while self.changes.front().is_some_and(|(at, _)| now.since(*at) >= period) {
            self.changes.pop_front();
        }
        // As many as there were when the period began.
        let changed: i64 = self.changes.iter().map(|(_, by)| by).sum();
        let began = (i64::from(live) - changed).max(0) as u64;
        let grown = (began + u64::from(up_replicas)).max((began * u64::from(100 + up_percent)).div_ceil(100));
        let shrunk = began * u64::from(100 - down_percent.min(100)) / 100;
        if steady > live && u64::from(steady) > grown {
            return ((grown as u32).max(live), Some(Limit::UpRate));
        }
        if steady < live && u64::from(steady) < shrunk {
            return ((shrunk as u32).min(live), Some(Limit::DownRate));
        }
        (steady, limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autoscale::scaler::tests::{FREE, seconds};

    #[test]
    fn it_doubles_or_adds_four_every_fifteen_seconds() {
        let mut settle = Settle::new(Behaviour::default());
        let mut live = 1;
        let mut path = Vec::new();
        for step in 1..=5 {
            let (settled, limit) = settle.settle(seconds(15 * step), live, 40, FREE);
            assert_eq!(limit.is_some(), settled < 40);
            live = settled;
            path.push(settled);
        }
        assert_eq!(path, [5, 10, 20, 40, 40]);
    }

    #[test]
    fn within_a_period_it_counts_what_it_has_added() {
        let mut settle = Settle::new(Behaviour::default());
        assert_eq!(settle.settle(seconds(15), 2, 4, FREE), (4, None));
        // Two of the four that the period allows are added already.
        assert_eq!(settle.settle(seconds(20), 4, 9, FREE), (6, Some(Limit::UpRate)));
        assert_eq!(settle.settle(seconds(30), 6, 9, FREE), (8, Some(Limit::UpRate)));
    }

    #[test]
    fn it_shrinks_to_the_most_it_wanted_in_five_minutes() {
        let mut settle = Settle::new(Behaviour::default());
        assert_eq!(settle.settle(seconds(0), 8, 8, FREE), (8, None));
        assert_eq!(settle.settle(seconds(15), 8, 3, FREE), (8, Some(Limit::DownWindow)));
        assert_eq!(settle.settle(seconds(299), 8, 2, FREE), (8, Some(Limit::DownWindow)));
        assert_eq!(settle.settle(seconds(300), 8, 2, FREE), (3, Some(Limit::DownWindow)));
        assert_eq!(settle.settle(seconds(316), 3, 2, FREE), (2, None));
    }

    #[test]
    fn what_it_finds_is_not_thrown_away_at_first_sight() {
        let mut settle = Settle::new(Behaviour::default());
        assert_eq!(settle.settle(seconds(15), 5, 1, FREE), (5, Some(Limit::DownWindow)));
        assert_eq!(settle.settle(seconds(315), 5, 1, FREE), (1, None));
    }

    #[test]
    fn a_slow_rate_and_an_up_window_hold_it_back() {
        let slow = Behaviour {
            up_window: span(60),
            down_window: Span::ZERO,
            down_percent: 10,
            ..Behaviour::default()
        };
        let mut settle = Settle::new(slow);
        assert_eq!(settle.settle(seconds(0), 4, 4, FREE), (4, None));
        assert_eq!(settle.settle(seconds(15), 4, 6, FREE), (4, Some(Limit::UpWindow)));
        assert_eq!(settle.settle(seconds(61), 4, 6, FREE), (6, None));
        assert_eq!(settle.settle(seconds(140), 6, 1, FREE), (5, Some(Limit::DownRate)));
    }
}
