//! A replica goes: which prefixes belong to another one afterwards.

use crate::policy::{PolicyKind, PolicySettings, ReplicaLoad};
use crate::trace::Token;
use crate::trace::generate::system_prompt;

/// Where each of the first `tenants` system prompts belongs among `replicas` idle replicas, by prefix-affinity's
/// rule.
pub fn homes(tenants: u32, replicas: u32, prefix_length: u32, seed: u64) -> Vec<u32> {
    let settings = PolicySettings { prefix_length: prefix_length as usize, ..PolicySettings::default() };
    let mut policy = PolicyKind::PrefixAffinity.build(&settings);
    let idle = vec![ReplicaLoad::default(); replicas.max(1) as usize];
    let prompt = |tenant: u32| -> Vec<Token> {
        let once = system_prompt(tenant as usize, seed);
        // Repeated until it is longer than any prefix.
        once.iter().cycle().take(once.len() + prefix_length as usize).map(|&byte| Token::from(byte)).collect()
    };
    (0..tenants).map(|tenant| policy.select(&prompt(tenant), &idle).replica).collect()
}

/// How many prefixes belong to another replica among one fewer.
pub fn moved(before: &[u32], after: &[u32]) -> usize {
    before.iter().zip(after).filter(|(a, b)| a != b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remainder_moves_nearly_everything() {
        let (before, after) = (homes(60, 8, 64, 1), homes(60, 7, 64, 1));
        assert_eq!(homes(6, 4, 64, 1), [0, 1, 2, 3, 2, 1]);
        // Of prefixes spread evenly, one in eight was the lost replica's own; a remainder keeps about one in eight.
        assert!(moved(&before, &after) > 45, "{}", moved(&before, &after));
        assert_eq!(moved(&before, &before), 0);
    }
}
