//! Numbers in as few bytes as they need: seven bits a byte, the lowest first (LEB128); differences with
//! their sign in the lowest bit (zigzag), so that small ones are short either way.

/// Appends a number.
pub(super) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends what must be added to `from`, wrapping, to have `to`.
pub(super) fn put_change(out: &mut Vec<u8>, from: u64, to: u64) {
    let change = to.wrapping_sub(from) as i64;
    put(out, ((change << 1) ^ (change >> 63)) as u64);
}

/// Appends a number with a fraction as it is.
pub(super) fn put_bits(out: &mut Vec<u8>, number: f64) {
    out.extend_from_slice(&number.to_bits().to_le_bytes());
}

/// Reads what was appended; `None` where it ends too soon or a number is larger than it may be.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// From a byte on.
    pub fn new(bytes: &'a [u8], at: usize) -> Reader<'a> {
        Reader { bytes, at }
    }

    /// Where it stands.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Whether nothing is left.
    pub fn is_done(&self) -> bool {
        self.at >= self.bytes.len()
    }

    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    pub fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let slice = self.bytes.get(self.at..self.at.checked_add(len)?)?;
        self.at += len;
        Some(slice)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    pub fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    pub fn change(&mut self, from: u64) -> Option<u64> {
        let coded = self.number()?;
        Some(from.wrapping_add((coded >> 1) ^ (coded & 1).wrapping_neg()))
    }

    pub fn bits(&mut self) -> Option<f64> {
        let bytes: [u8; 8] = self.slice(8)?.try_into().ok()?;
        Some(f64::from_bits(u64::from_le_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBERS: [u64; 9] = [0, 1, 127, 128, 300, 1 << 32, (1 << 63) - 1, 1 << 63, u64::MAX];

    #[test]
    fn numbers_and_changes_are_read_as_they_were_written() {
        let mut out = Vec::new();
        for a in NUMBERS {
            put(&mut out, a);
            NUMBERS.iter().for_each(|&b| put_change(&mut out, a, b));
        }
        put_bits(&mut out, -0.1);
        let mut reader = Reader::new(&out, 0);
        for a in NUMBERS {
            assert_eq!(reader.number(), Some(a));
            for b in NUMBERS {
                assert_eq!(reader.change(a), Some(b), "{a} to {b}");
            }
        }
        assert_eq!(reader.bits(), Some(-0.1));
        assert!(reader.is_done() && reader.position() == out.len());
    }

    #[test]
    fn small_changes_are_one_byte() {
        for (from, to) in [(1000, 1063), (1000, 937), (5, 5)] {
            let mut out = Vec::new();
            put_change(&mut out, from, to);
            assert_eq!(out.len(), 1);
        }
    }

    #[test]
    fn what_ends_too_soon_or_is_too_large_is_refused() {
        assert_eq!(Reader::new(&[0x80], 0).number(), None);
        assert_eq!(Reader::new(&[0xff; 11], 0).number(), None);
        let mut out = Vec::new();
        put(&mut out, 1 << 32);
        assert_eq!(Reader::new(&out, 0).small(), None);
        assert_eq!(Reader::new(&[1, 2, 3], 1).slice(3), None);
        assert_eq!(Reader::new(&[1, 2, 3], 0).bits(), None);
    }
}
