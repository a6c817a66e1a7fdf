//! Reads a file only as far as its size and the lengths of its texts allow.

use crate::prelude::*;
use std::io::Read;

/// All bytes of `input`. Reading ends as soon as there are more than `limit`, or more than
/// `max_text` in one text: between two quotation marks, or on a line without any.
pub(super) fn limited(
    path: &Path,
    input: &mut dyn Read,
    limit: u64,
    max_text: usize,
) -> Result<Vec<u8>> {
    /// So much is read before it is looked at.
    const PIECE: u64 = 1 << 20;
    let mut bytes = Vec::new();
    let (mut line, mut text_start, mut escaped) = (1, 0, None);
    loop {
        let seen = bytes.len();
        let read = (&mut *input).take(PIECE).read_to_end(&mut bytes);
        if read.map_err(|source| ImportError::Io(path.to_owned(), source))? == 0 {
            return Ok(bytes);
        }
        if bytes.len() as u64 > limit {
            return Err(ImportError::TooLarge(path.to_owned(), limit));
        }
        let marks = memchr::memchr3_iter(b'"', b'\\', b'\n', &bytes[seen..]);
        for at in marks.map(|at| seen + at).chain([bytes.len()]) {
            if at - text_start > max_text {
                let place = format!("line {line}");
                return Err(ImportError::LongText(path.to_owned(), place, max_text));
            }
            match bytes.get(at) {
                _ if escaped == Some(at) => {}
                Some(b'\\') => escaped = Some(at + 1),
                Some(byte) => {
                    line += u64::from(*byte == b'\n');
                    text_start = at + 1;
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says how much of what it holds was taken.
    struct Counted<'b>(&'b [u8], usize);

    impl Read for Counted<'_> {
        fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read(into)?;
            self.1 += read;
            Ok(read)
        }
    }

    #[test]
    fn a_text_that_is_too_long_is_refused_before_the_rest_is_read() {
        const MIB: usize = 1 << 20;
        let refused = |bytes: &[u8], limit: usize, max_text: usize, expected: Option<&str>| {
            let mut input = Counted(bytes, 0);
            let read = limited(Path::new("a"), &mut input, limit as u64, max_text);
            let error = read.as_ref().err().map(ToString::to_string);
            assert_eq!(error.as_deref(), expected);
            let is_long = expected.is_some_and(|it| it.contains("text"));
            let most = if is_long { max_text } else { limit } + 2 * MIB;
            assert!(input.1 <= most, "{} bytes were taken", input.1);
        };
        let [small, long] = [MIB / 2, 8 * MIB];
        let long_text = |line: u64, limit: usize| {
            format!("`a`: line {line}: a text is longer than {limit} bytes")
        };
        let text = |begin: &str, length: usize, end: &str| {
            [begin.as_bytes(), &vec![b'x'; length], end.as_bytes()].concat()
        };
        let one = long_text(1, small);
        for begin in ["", "{\"k\":\"", "\"\\\"", " \\\\"] {
            refused(&text(begin, long, "\"}"), long * 2, small, Some(&one));
        }
        refused(&text("{}\n\n\"", long, "\""), long * 2, small, Some(&long_text(3, small)));
        refused(&text("\"", small, "\""), long, small, None);
        refused(&text("\"", small + 1, "\""), long, small, Some(&one));
        refused(&text("\"\\\"", small - 1, "\""), long, small, Some(&one));
        refused(&text("\"\\\\\"", small, "\""), long, small, None);
        refused(&b"\n".repeat(long), long, small, None);
        refused(&b"\n".repeat(long * 2), long, small, Some("`a` holds more than 8388608 bytes"));
    }
}
