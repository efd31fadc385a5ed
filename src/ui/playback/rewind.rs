//! A fold that goes back about as cheaply as it goes forward: now and then it leaves a copy of itself
//! behind. Copies share by pointer whatever did not change between them.

use super::{Fold, Log};

/// The most copies; when there are as many, every second is given up and they are left half as often.
const MOST: usize = 32;

/// Events between two copies, at first.
const EVERY: usize = 64;

/// A fold and copies of it.
#[derive(Clone, Debug)]
pub struct Rewind {
    fold: Fold,
    /// In order; each after a multiple of `every` events.
    kept: Vec<Fold>,
    every: usize,
}

impl Rewind {
    /// A fleet at rest, before its run.
    pub fn new(replicas: usize, blocks: usize) -> Rewind {
        Rewind { fold: Fold::new(replicas, blocks), kept: Vec::new(), every: EVERY }
    }

    /// The run at the moment that was sought last.
    pub fn fold(&self) -> &Fold {
        &self.fold
    }

    /// Goes to a moment of the log, which has only grown since the last time.
    pub fn seek(&mut self, log: &Log, at: u64) {
        let kept = self.kept[..self.kept.partition_point(|kept| kept.at <= at)].last();
        let back = at < self.fold.at;
        match kept {
            Some(kept) if back || kept.next > self.fold.next => self.fold = kept.clone(),
            None if back => self.fold = Fold::new(self.fold.pools.0, self.fold.pools.1),
            _ => {}
        }
        loop {
            let stop = (self.fold.next + 1).next_multiple_of(self.every);
            self.fold.forward(log, at, stop - self.fold.next);
            if self.fold.next < stop {
                return;
            }
            self.keep();
        }
    }

    fn keep(&mut self) {
        if self.kept.last().is_some_and(|last| last.next >= self.fold.next) {
            return;
        }
        self.kept.push(self.fold.clone());
        if self.kept.len() == MOST {
            self.every *= 2;
            let every = self.every;
            self.kept.retain(|kept| kept.next.is_multiple_of(every));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Config;
    use crate::policy::PolicyKind;
    use crate::ui::playback::tests::log;

    #[test]
    fn going_back_from_a_copy_is_starting_over() {
        let config = Config { requests: 400, rate: 20.0, ..Config::default() };
        let (log, _) = log(&config, PolicyKind::PrefixAffinity, 100);
        assert!(log.len() > EVERY * MOST, "{} events: copies are thinned out", log.len());
        let end = log.end();
        let mut rewind = Rewind::new(4, 384);
        for part in [9, 10, 3, 7, 7, 0, 10, 1, 5, 6, 2] {
            let at = end / 10 * part + part;
            rewind.seek(&log, at);
            let mut over = Fold::new(4, 384);
            over.seek(&log, at);
            assert_eq!(rewind.fold.replicas, over.replicas, "{part}");
            assert_eq!((&rewind.fold.routed, &rewind.fold.recent), (&over.routed, &over.recent));
            assert!(rewind.fold.recorder.records().eq(over.recorder.records()));
            assert_eq!((rewind.fold.next, rewind.fold.at), (over.next, over.at));
        }
        assert!(rewind.kept.len() < MOST && rewind.kept.is_sorted_by_key(|kept| kept.next));
        assert!(log.len() < rewind.every * MOST, "from a copy it is never far");
    }
}
