//! The tree against a list of all prompts.

use super::*;

/// Every prompt that was sent, with whom to.
#[derive(Default)]
struct Slow(Vec<(Vec<Token>, u32)>);

impl Slow {
    fn longest(&self, items: &[Token], page: usize, of: Option<u32>) -> usize {
        let own = self.0.iter().filter(|(_, replica)| of.is_none_or(|of| *replica == of));
        own.map(|(prompt, _)| {
            let whole = prompt.len() - prompt.len() % page;
            let common = common(&prompt[..whole], items);
            common - common % page
        })
        .max()
        .unwrap_or(0)
    }
}

fn draws() -> impl FnMut(u64) -> u64 {
    let mut state = 11u64;
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    }
}

#[test]
fn matches_and_holders_are_those_of_a_list_of_all_prompts() {
    for page in [1, 2, 3, 16] {
        let (mut tree, mut slow, mut draw) = (RadixIndex::new(page), Slow::default(), draws());
        for at in 0..1500 {
            // Few different items, so that prompts share all kinds of beginnings; runs of them, so that
            // pages are shared too.
            let runs: Vec<Token> = (0..draw(12)).map(|_| draw(2) as Token).collect();
            let prompt: Vec<Token> =
                runs.iter().flat_map(|&item| [item; 5]).take(3 + draw(50) as usize).collect();
            let found = tree.find(&prompt);
            assert_eq!(found.items, slow.longest(&prompt, page, None), "page {page}, {prompt:?}");
            for replica in 0..4 {
                let among = tree.among(found, |own| own == replica);
                // A node that a prompt shares only in part is somebody's as a whole.
                assert_eq!(among.items, slow.longest(&prompt, page, Some(replica)), "{replica} of {at}");
                assert!(among.node == ROOT || tree.holds(among.node, replica));
            }
            let replica = draw(4) as u32;
            let end = tree.insert(found, &prompt, replica, at);
            assert_eq!(end == ROOT, prompt.len() < page);
            slow.0.push((prompt, replica));
        }
        assert!(tree.items() > 0 && (0..4).all(|r| tree.size_of(r) as usize <= tree.items()));
        let whole: u64 =
            tree.nodes.iter().map(|node| node.holders().count() as u64 * u64::from(node.len)).sum();
        assert_eq!((0..4).map(|replica| tree.size_of(replica)).sum::<u64>(), whole);
    }
}

#[test]
fn eviction_takes_the_least_recently_used_leaves_of_one_replica() {
    let mut tree = RadixIndex::new(1);
    let send = |tree: &mut RadixIndex, items: &[Token], replica, at| {
        let found = tree.find(items);
        tree.insert(found, items, replica, at);
    };
    send(&mut tree, &[1, 2, 3, 4], 0, 1);
    send(&mut tree, &[1, 2, 9, 9, 9], 0, 2);
    send(&mut tree, &[1, 2, 3, 4], 1, 3);
    assert_eq!((tree.size_of(0), tree.size_of(1), tree.items()), (7, 4, 7));
    tree.evict(0, 5);
    assert_eq!((tree.size_of(0), tree.size_of(1), tree.items()), (5, 4, 7), "it is still the other's");
    assert_eq!(tree.among(tree.find(&[1, 2, 3, 4]), |replica| replica == 0).items, 2);
    tree.evict(0, 0);
    assert_eq!((tree.size_of(0), tree.items()), (0, 4));
    assert_eq!(tree.find(&[1, 2, 9]).items, 2);
    tree.evict(1, 0);
    assert_eq!((tree.items(), tree.find(&[1, 2]).node), (0, ROOT));
}

#[test]
fn what_was_evicted_is_forgotten_and_its_room_is_used_again() {
    let (mut tree, mut draw) = (RadixIndex::new(4), draws());
    for at in 0..4000u64 {
        let prompt: Vec<Token> =
            (0..40).map(|place| if place < 8 { draw(3) as Token } else { at as Token }).collect();
        let found = tree.find(&prompt);
        tree.insert(found, &prompt, draw(2) as u32, at);
        if at % 100 == 99 {
            (0..2).for_each(|replica| tree.evict(replica, 1000));
        }
    }
    let stored: usize = tree.segments.iter().map(Vec::len).sum();
    assert!(tree.items() < 8000 && stored <= 2 * tree.items() + 2 * SEGMENT, "{} of {stored}", tree.items());
    let live: usize = tree.nodes.iter().map(|node| node.len as usize).sum();
    assert_eq!(live, tree.items());
}
