//! Who gets which job: small batches, so that all workers end together, and what a worker that died
//! had is given out again, alone and once.

use std::collections::{BTreeSet, VecDeque};

/// The most jobs that a worker is given at once.
const MOST: usize = 8;

/// Jobs that are to be done, and who is at which of them.
#[derive(Clone, Debug)]
pub struct Deal {
    waiting: VecDeque<u64>,
    /// What each worker was given and has not told the end of.
    held: Vec<Vec<u64>>,
    /// Jobs that were on a worker that died.
    suspects: BTreeSet<u64>,
}

impl Deal {
    /// Jobs in the order in which they are given out, for so many workers.
    pub fn new(jobs: impl IntoIterator<Item = u64>, workers: usize) -> Deal {
        Deal {
            waiting: jobs.into_iter().collect(),
            held: vec![Vec::new(); workers],
            suspects: BTreeSet::new(),
        }
    }

    /// How many workers there are.
    pub fn workers(&self) -> usize {
        self.held.len()
    }

    /// Whether everything is done.
    pub fn over(&self) -> bool {
        self.waiting.is_empty() && self.held.iter().all(Vec::is_empty)
    }

    /// Whether a worker is at anything.
    pub fn busy(&self, worker: usize) -> bool {
        self.held.get(worker).is_some_and(|held| !held.is_empty())
    }

    /// What a worker that has nothing to do is to do next; nothing: there is no more.
    ///
    /// The fewer jobs there are left, the fewer at once. A job that was on a worker that died is
    /// given out alone, so that a second death is certainly its own.
    pub fn next(&mut self, worker: usize) -> Vec<u64> {
        if self.busy(worker) {
            return Vec::new();
        }
        let share = self.waiting.len().div_ceil(2 * self.workers().max(1)).clamp(1, MOST);
        let mut batch = Vec::new();
        while batch.len() < share
            && let Some(&job) = self.waiting.front()
        {
            let suspect = self.suspects.contains(&job);
            if suspect && !batch.is_empty() {
                break;
            }
            self.waiting.pop_front();
            batch.push(job);
            if suspect {
                break;
            }
        }
        if let Some(held) = self.held.get_mut(worker) {
            held.clone_from(&batch);
        }
        batch
    }

    /// A worker has done a job; whether it was its own to do.
    pub fn done(&mut self, worker: usize, job: u64) -> bool {
        let Some(held) = self.held.get_mut(worker) else { return false };
        let before = held.len();
        held.retain(|own| *own != job);
        held.len() < before
    }

    /// A worker died. What it had is given out again, first of all; a job whose worker has died before
    /// is returned instead.
    pub fn died(&mut self, worker: usize) -> Result<(), u64> {
        let Some(held) = self.held.get_mut(worker) else { return Ok(()) };
        let lost = core::mem::take(held);
        if let Some(&job) = lost.iter().find(|job| self.suspects.contains(job)) {
            return Err(job);
        }
        self.suspects.extend(&lost);
        for job in lost.into_iter().rev() {
            self.waiting.push_front(job);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_job_is_given_out_once_and_the_last_ones_singly() {
        let mut deal = Deal::new(0..100, 3);
        let (mut given, mut sizes) = (Vec::new(), Vec::new());
        for worker in (0..3).cycle() {
            let batch = deal.next(worker);
            if batch.is_empty() {
                break;
            }
            assert!(deal.next(worker).is_empty(), "it has something to do");
            assert!(batch.iter().all(|job| deal.done(worker, *job)));
            sizes.push(batch.len());
            given.extend(batch);
        }
        assert_eq!(given, (0..100).collect::<Vec<_>>());
        assert!(sizes[0] == MOST && sizes.is_sorted_by(|a, b| a >= b) && sizes.ends_with(&[1, 1, 1]));
        assert!(deal.over());
    }

    #[test]
    fn what_a_dead_worker_had_is_given_out_again_alone() {
        let mut deal = Deal::new(0..40, 2);
        let first = deal.next(0);
        assert_eq!(first, (0..8).collect::<Vec<_>>());
        assert!(deal.done(0, 0) && !deal.done(0, 0) && !deal.done(1, 1));
        assert_eq!(deal.died(0), Ok(()));
        assert!(!deal.busy(0));
        assert_eq!((deal.next(1), deal.next(0)), (vec![1], vec![2]));
        assert!(deal.done(1, 1));
        assert_eq!(deal.died(1), Ok(()), "it had nothing left");
        assert_eq!(deal.died(0), Err(2), "a second death on the same job");
    }

    #[test]
    fn nothing_is_over_before_all_is_told() {
        let mut deal = Deal::new([7], 4);
        assert_eq!((deal.next(2), deal.next(0)), (vec![7], vec![]));
        assert!(!deal.over() && deal.done(2, 7) && deal.over());
    }
}
