//! Lines out of chunks of bytes, of a bounded length.

use super::TraceError;

/// Bytes of a line at most; a file that is one JSON value is a line in this.
pub const MAX_LINE: usize = 64 << 20;

/// Cuts chunks into lines.
#[derive(Default)]
pub struct Lines {
    /// Lines that have ended.
    ended: usize,
    /// The beginning of a line that has not.
    pending: Vec<u8>,
    /// Whether the rest of that line is passed over.
    passing: bool,
}

/// A line, or what is wrong with it.
pub type Found<'a> = Result<(usize, &'a str), TraceError>;

impl Lines {
    /// Takes a chunk, and gives `take` each line that it ends, with its number.
    pub fn push(
        &mut self,
        mut bytes: &[u8],
        take: &mut dyn FnMut(Found<'_>) -> Result<(), TraceError>,
    ) -> Result<(), TraceError> {
        while let Some(end) = bytes.iter().position(|&b| b == b'\n') {
            let (line, rest) = bytes.split_at(end);
            bytes = &rest[1..];
            if self.passing {
                (self.passing, self.ended) = (false, self.ended + 1);
                continue;
            }
            if self.pending.len() + line.len() > MAX_LINE {
                let found = Err(self.too_long());
                self.pending = Vec::new();
                self.ended += 1;
                take(found)?;
            } else if self.pending.is_empty() {
                self.ended += 1;
                take(as_text(self.ended, line))?;
            } else {
                self.pending.extend_from_slice(line);
                let line = core::mem::take(&mut self.pending);
                self.ended += 1;
                take(as_text(self.ended, &line))?;
                // Its room serves the next one, unless it was long.
                if line.capacity() <= 1 << 16 {
                    self.pending = line;
                    self.pending.clear();
                }
            }
        }
        if self.passing || bytes.is_empty() {
            return Ok(());
        }
        if self.pending.len() + bytes.len() > MAX_LINE {
            let found = Err(self.too_long());
            (self.pending, self.passing) = (Vec::new(), true);
            return take(found);
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    /// Gives the last line, where it has no end.
    pub fn finish(self, take: &mut dyn FnMut(Found<'_>) -> Result<(), TraceError>) -> Result<(), TraceError> {
        if self.pending.is_empty() { Ok(()) } else { take(as_text(self.ended + 1, &self.pending)) }
    }

    /// Lines that have ended.
    pub fn ended(&self) -> usize {
        self.ended
    }

    fn too_long(&self) -> TraceError {
        let start = String::from_utf8_lossy(&self.pending[..self.pending.len().min(200)]).into_owned();
        let problem = format!(
            "longer than {MAX_LINE} bytes, the most that a line has; it begins with `{}`",
            super::item::shown(&start)
        );
        TraceError { line: self.ended + 1, field: None, problem }
    }
}

fn as_text(number: usize, bytes: &[u8]) -> Found<'_> {
    // Only the first line can begin with a mark of the byte order; it is harmless before others.
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    match core::str::from_utf8(bytes) {
        Ok(text) => Ok((number, text.trim())),
        Err(e) => {
            let before = String::from_utf8_lossy(&bytes[..e.valid_up_to().min(200)]).into_owned();
            let what = super::detect::binary(bytes).filter(|_| number == 1);
            let problem = match what {
                Some(what) => format!("not UTF-8 text; it is {what}"),
                None => format!(
                    "not UTF-8 text: byte {} of the line is {:#04x}, after `{}`",
                    e.valid_up_to() + 1,
                    bytes[e.valid_up_to()],
                    super::item::shown(&before)
                ),
            };
            Err(TraceError { line: number, field: None, problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &[u8], chunk: usize) -> Vec<Result<(usize, String), String>> {
        let mut found = Vec::new();
        let mut lines = Lines::default();
        let mut take = |line: Found<'_>| {
            found.push(line.map(|(n, text)| (n, text.to_owned())).map_err(|e| e.to_string()));
            Ok(())
        };
        for part in text.chunks(chunk) {
            lines.push(part, &mut take).expect("nothing is refused");
        }
        lines.finish(&mut take).expect("nothing is refused");
        found
    }

    #[test]
    fn lines_do_not_depend_on_the_chunks() {
        let text = "\u{feff}first\r\n\n  third é\nlast".as_bytes();
        let whole = all(text, text.len());
        assert_eq!(whole.len(), 4);
        assert_eq!((&whole[0], &whole[2]), (&Ok((1, "first".into())), &Ok((3, "third é".into()))));
        for chunk in 1..text.len() {
            assert_eq!(all(text, chunk), whole, "{chunk}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_said_once_and_the_next_is_read() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let chunk = vec![b'a'; 1 << 20];
        for _ in 0..200 {
            let mut take = |line: Found<'_>| {
                seen.push(line.map(|(n, text)| (n, text.len())).map_err(|e| e.to_string()));
                Ok(())
            };
            lines.push(&chunk, &mut take).expect("it goes on");
            assert!(lines.pending.capacity() <= 2 * MAX_LINE);
        }
        let mut take = |line: Found<'_>| {
            seen.push(line.map(|(n, text)| (n, text.len())).map_err(|e| e.to_string()));
            Ok(())
        };
        lines.push(b"rest\nnext\n", &mut take).expect("it goes on");
        assert_eq!(seen.len(), 2);
        assert!(seen[0].as_ref().expect_err("too long").starts_with("line 1: longer than"), "{:?}", seen[0]);
        assert_eq!(seen[1], Ok((2, 4)));
    }
}
