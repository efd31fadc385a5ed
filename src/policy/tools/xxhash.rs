//! xxHash, 64 bits: what KubeAI, AIBrix and vLLM production-stack hash with. Written from its
//! specification (Cyan4973/xxHash, doc/xxhash_spec.md, version 0.1.1).

const P1: u64 = 0x9E37_79B1_85EB_CA87;
const P2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const P3: u64 = 0x1656_67B1_9E37_79F9;
const P4: u64 = 0x85EB_CA77_C2B2_AE63;
const P5: u64 = 0x27D4_EB2F_1656_67C5;

fn round(acc: u64, lane: u64) -> u64 {
    acc.wrapping_add(lane.wrapping_mul(P2)).rotate_left(31).wrapping_mul(P1)
}

fn lane(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().expect("a lane is eight bytes"))
}

/// The hash of bytes, from a seed.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let mut rest = bytes;
    let mut hash = if bytes.len() >= 32 {
        let mut acc =
            [seed.wrapping_add(P1).wrapping_add(P2), seed.wrapping_add(P2), seed, seed.wrapping_sub(P1)];
        while let Some((stripe, after)) = rest.split_at_checked(32) {
            for (acc, bytes) in acc.iter_mut().zip(stripe.chunks_exact(8)) {
                *acc = round(*acc, lane(bytes));
            }
            rest = after;
        }
        let turns = [1, 7, 12, 18];
        let sum =
            acc.iter().zip(turns).fold(0u64, |sum, (acc, turn)| sum.wrapping_add(acc.rotate_left(turn)));
        acc.iter().fold(sum, |hash, &acc| (hash ^ round(0, acc)).wrapping_mul(P1).wrapping_add(P4))
    } else {
        seed.wrapping_add(P5)
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    while let Some((eight, after)) = rest.split_at_checked(8) {
        hash = (hash ^ round(0, lane(eight))).rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        rest = after;
    }
    if let Some((four, after)) = rest.split_at_checked(4) {
        let four = u64::from(u32::from_le_bytes(four.try_into().expect("these are four bytes")));
        hash = (hash ^ four.wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        rest = after;
    }
    for &byte in rest {
        hash = (hash ^ u64::from(byte).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(P2);
    hash = (hash ^ (hash >> 29)).wrapping_mul(P3);
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Published by the reference implementation (`xxhsum -H64`).
    #[test]
    fn it_is_xxhash() {
        for (text, hash) in [
            ("", 0xEF46_DB37_51D8_E999),
            ("a", 0xD24E_C4F1_A98C_6E5B),
            ("abc", 0x44BC_2CF5_AD77_0999),
            ("Nobody inspects the spammish repetition", 0xFBCE_A83C_8A37_8BF1),
        ] {
            assert_eq!(xxh64(text.as_bytes(), 0), hash, "{text}");
        }
    }
}
