//! Two prompts made into blocks: which of the second's are found.

use crate::kv::blocks::BlockPool;
use crate::trace::{Content, Token};

/// A block of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The bytes in it, as text.
    pub text: String,
    /// What becomes of it.
    pub fate: Fate,
    /// The number of the block that holds it.
    pub block: u32,
}

/// What becomes of a block of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Computed, and published for others.
    Computed,
    /// Found in the cache.
    Found,
    /// Not full: computed and kept to oneself.
    Partial,
}

/// The longest prompt that is taken, in bytes.
pub const LONGEST: usize = 400;

/// What a cache that has seen `first` makes of both prompts, a byte a token.
pub fn walk(first: &str, second: &str, size: usize) -> [Vec<Part>; 2] {
    let mut pool = BlockPool::new(2 * LONGEST, size.max(1));
    [first, second].map(|text| serve(&mut pool, text))
}

fn serve(pool: &mut BlockPool, text: &str) -> Vec<Part> {
    let size = pool.block_size();
    let tokens: Vec<Token> = text.bytes().take(LONGEST).map(Token::from).collect();
    let mut chain = Vec::new();
    let mut parts = Vec::new();
    let mut found = true;
    for (at, content) in tokens.chunks(size).enumerate() {
        let text =
            String::from_utf8_lossy(&content.iter().map(|&t| t as u8).collect::<Vec<_>>()).into_owned();
        let whole = content.len() == size;
        let parent = chain.last().copied();
        // Nothing is found behind a block that was not.
        let there = if found && whole { pool.find(parent, Content::Tokens(content)) } else { None };
        found = there.is_some();
        let block = match there {
            Some(block) => {
                pool.hold(block);
                block
            }
            None => pool.allocate(None).expect("there are blocks for both prompts"),
        };
        chain.push(block);
        if there.is_none() && whole {
            pool.publish(&mut chain, at, Content::Tokens(content));
        }
        let fate = match (there, whole) {
            (Some(_), _) => Fate::Found,
            (None, true) => Fate::Computed,
            (None, false) => Fate::Partial,
        };
        parts.push(Part { text, fate, block });
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fates(first: &str, second: &str) -> Vec<Fate> {
        walk(first, second, 4)[1].iter().map(|part| part.fate).collect()
    }

    #[test]
    fn what_is_found_ends_at_the_first_difference() {
        use Fate::{Computed, Found, Partial};
        assert_eq!(fates("abcdefghij", "abcdefghij"), [Found, Found, Partial]);
        assert_eq!(fates("abcdefghijkl", "abcdXfghijkl"), [Found, Computed, Computed]);
        assert_eq!(
            fates("abcdefgh", "Xbcdefgh"),
            [Computed, Computed],
            "the same text behind another beginning"
        );
        assert_eq!(fates("abcdefgh", "efgh"), [Computed], "a middle is no beginning");
        assert_eq!(fates("", "ab"), [Partial]);
    }

    #[test]
    fn a_found_block_is_the_same_block() {
        let [first, second] = walk("abcdefgh", "abcdefgh", 4);
        assert!(first.iter().zip(&second).all(|(a, b)| a.block == b.block && a.text == b.text));
    }

    #[test]
    fn any_text_and_size_are_taken() {
        for size in [0, 1, 3, 1000] {
            let [first, second] = walk(&"ü€x".repeat(200), "ü", size);
            assert!(first.len() <= LONGEST && !second.is_empty());
        }
    }
}
