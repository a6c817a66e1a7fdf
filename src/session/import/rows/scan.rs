//! Finds where the conversations of a file stand, without holding more than one.

use std::io::{self, Read};
use std::ops::Range;

use memchr::memchr2;
use sha2::{Digest, Sha256};

use crate::session::import::lines::strip_bom;

/// How many bytes are scanned at a time.
const CHUNK: usize = 1 << 16;

/// The longest conversation that is read at once, and the most that may stand around the list.
const LONGEST: u64 = 256 << 20;

/// Where the conversations of a file stand, and what stands around them.
pub(in crate::session::import) struct Found {
    pub(in crate::session::import) places: Vec<Range<u64>>,
    /// What stands before the first, between two and after the last.
    pub(in crate::session::import) before: Vec<u8>,
    pub(in crate::session::import) between: u8,
    pub(in crate::session::import) after: Vec<u8>,
    /// Where the beginning of a last value stands that was cut.
    pub(in crate::session::import) tail: Option<Range<u64>>,
    /// All that the file has.
    pub(in crate::session::import) hasher: Sha256,
}

/// How conversations stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One after the other, mostly one per line.
    Values,
    /// In one list.
    List,
    /// In a list under a key.
    ListInObject,
}

/// Where the scan is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Before,
    List,
    Conversation,
    After,
}

/// Whether the scan is in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    Nothing,
    Text,
    /// Behind a backslash: what follows does not end the text.
    Escape,
}

/// A scan of a file.
pub(in crate::session::import) struct Scan {
    list: Option<&'static str>,
    layout: Option<Layout>,
    part: Part,
    depth: usize,
    within: Within,
    /// The last text between conversations, as far as it may be the key of the list.
    key: Vec<u8>,
    /// Whether that text is the key of what comes next.
    is_key: bool,
    offset: u64,
    start: u64,
    /// Commas since the last conversation.
    commas: usize,
    is_odd: bool,
    found: Found,
}

impl Scan {
    /// A scan for the values of a file, or for those of the list under a key.
    pub(in crate::session::import) fn new(list: Option<&'static str>) -> Self {
        Self {
            list,
            layout: None,
            part: Part::Before,
            depth: 0,
            within: Within::Nothing,
            key: Vec::new(),
            is_key: false,
            offset: 0,
            start: 0,
            commas: 0,
            is_odd: false,
            found: Found {
                places: Vec::new(),
                before: Vec::new(),
                between: b',',
                after: Vec::new(),
                tail: None,
                hasher: Sha256::new(),
            },
        }
    }

    /// Scans to the end; none where not all values are conversations, or there are less than two.
    /// A conversation is looked at once another begins: one alone may be as long as the file.
    pub(in crate::session::import) fn read(
        mut self,
        input: &mut dyn Read,
        is_conversation: &mut dyn FnMut(Range<u64>, bool) -> io::Result<bool>,
    ) -> io::Result<Option<Found>> {
        let mut chunk = vec![0; CHUNK];
        let mut looked = 0;
        loop {
            let count = input.read(&mut chunk)?;
            self.found.hasher.update(&chunk[..count]);
            self.scan(&chunk[..count]);
            let around = self.found.before.len() + self.found.after.len();
            let is_listed = self.layout != Some(Layout::Values);
            if self.is_odd || around as u64 > LONGEST {
                return Ok(None);
            }
            let places = &self.found.places;
            for place in places.iter().skip(looked).filter(|_| places.len() > 1) {
                looked += 1;
                if place.end - place.start > LONGEST || !is_conversation(place.clone(), is_listed)?
                {
                    return Ok(None);
                }
            }
            if count == 0 {
                break;
            }
        }
        match (self.layout, self.part) {
            (Some(Layout::Values), Part::Conversation) => {
                self.found.tail = Some(self.start..self.offset);
            }
            (Some(Layout::Values), _) => {}
            (_, Part::After) if self.depth == 0 => {}
            _ => return Ok(None),
        }
        Ok((looked > 1).then_some(self.found))
    }

    fn scan(&mut self, chunk: &[u8]) {
        let mut left = chunk;
        if self.offset == 0 {
            left = strip_bom(chunk);
            self.offset = (chunk.len() - left.len()) as u64;
        }
        while !left.is_empty() && !self.is_odd {
            let count = match self.within {
                Within::Nothing => self.between(left),
                Within::Text => self.text(left, memchr2(b'"', b'\\', left)),
                Within::Escape => self.text(left, Some(0)),
            };
            self.offset += count as u64;
            left = &left[count..];
        }
    }

    /// Takes bytes to where they belong.
    fn take(&mut self, bytes: &[u8]) {
        match self.part {
            Part::Before => self.found.before.extend_from_slice(bytes),
            Part::List | Part::Conversation => {}
            Part::After => self.found.after.extend_from_slice(bytes),
        }
    }

    /// Takes a part of a text up to where it may end.
    fn text(&mut self, left: &[u8], end: Option<usize>) -> usize {
        let count = end.map_or(left.len(), |at| at + 1);
        self.within = match (self.within, end.map(|at| left[at])) {
            (Within::Text, Some(b'\\')) => Within::Escape,
            (Within::Text, Some(_)) => Within::Nothing,
            _ => Within::Text,
        };
        if self.part == Part::Before && self.key.len() <= CHUNK {
            self.key.extend_from_slice(&left[..count]);
        }
        self.take(&left[..count]);
        count
    }

    /// Takes what stands up to the next text, or to where a part begins or ends.
    fn between(&mut self, left: &[u8]) -> usize {
        for (at, byte) in left.iter().enumerate() {
            let is_open = matches!(byte, b'{' | b'[');
            if self.part == Part::List {
                self.list(*byte);
                return 1;
            }
            self.is_odd |=
                self.part == Part::After && self.depth == 0 && !byte.is_ascii_whitespace();
            match byte {
                b'"' => {
                    self.within = Within::Text;
                    self.key.clear();
                    self.is_key = false;
                    self.take(&left[..=at]);
                    return at + 1;
                }
                b':' => self.is_key = true,
                b' ' | b'\t' | b'\r' | b'\n' => {}
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => self.is_key = false,
            }
            if self.part == Part::Before && is_open {
                self.begins(*byte, left, at);
                if self.part != Part::Before {
                    return at + 1;
                }
            }
            if self.part == Part::Conversation && self.depth == self.outside() {
                let end = self.offset + at as u64 + 1;
                self.found.places.push(self.start..end);
                self.part = Part::List;
                return at + 1;
            }
        }
        self.take(left);
        left.len()
    }

    /// How deep what holds the conversations stands.
    fn outside(&self) -> usize {
        match self.layout {
            None | Some(Layout::Values) => 0,
            Some(Layout::List) => 1,
            Some(Layout::ListInObject) => 2,
        }
    }

    /// Something opens before the first conversation.
    fn begins(&mut self, byte: u8, left: &[u8], at: usize) {
        let is_first = self.layout.is_none();
        if is_first && byte == b'{' && self.list.is_none() {
            self.layout = Some(Layout::Values);
            self.found.between = b'\n';
            self.part = Part::Conversation;
            self.start = self.offset + at as u64;
            return;
        }
        if is_first && byte == b'[' && self.list.is_none() {
            self.layout = Some(Layout::List);
            self.found.before.extend_from_slice(&left[..=at]);
            self.part = Part::List;
            return;
        }
        if is_first {
            self.layout = Some(Layout::ListInObject);
            self.is_odd = byte == b'[';
        }
        let key = self.key.strip_suffix(b"\"").unwrap_or_default();
        let is_list = byte == b'[' && self.depth == 2 && self.is_key;
        if is_list && self.list.is_some_and(|list| list.as_bytes() == key) {
            self.found.before.extend_from_slice(&left[..=at]);
            self.part = Part::List;
        }
        self.is_key = false;
    }

    /// A byte between two conversations.
    fn list(&mut self, byte: u8) {
        // A comma stands between any two.
        let is_listed = self.found.between == b',';
        let commas = usize::from(is_listed && !self.found.places.is_empty());
        match byte {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            b'{' | b'[' => {
                self.is_odd |= self.commas != commas;
                self.commas = 0;
                self.depth += 1;
                self.start = self.offset;
                self.part = Part::Conversation;
            }
            b',' if is_listed => self.commas += 1,
            b']' if is_listed => {
                self.is_odd |= self.commas > 0;
                self.depth -= 1;
                self.part = Part::After;
                self.found.after.push(byte);
            }
            _ => self.is_odd = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a few bytes at a time.
    struct Few<'a>(&'a [u8], usize);

    impl Read for Few<'_> {
        fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
            let count = self.1.min(out.len());
            self.0.read(&mut out[..count])
        }
    }

    /// Expects what stands around the conversations and these; nothing if the file is read at once.
    #[track_caller]
    fn check(list: Option<&'static str>, file: &str, expected: &str) {
        let part = |place: Range<u64>| {
            let [start, end] = [place.start, place.end].map(usize::try_from);
            &file[start.expect("short")..end.expect("short")]
        };
        for size in [4, 5, 7, 1_000] {
            let mut input = Few(file.as_bytes(), size);
            let found = Scan::new(list).read(&mut input, &mut |place, _| {
                let read = serde_json::from_str::<serde::de::IgnoredAny>(part(place));
                Ok(read.is_ok())
            });
            let shown = found.expect("it can be read").map(|found| {
                let texts = [&found.before, &found.after];
                let [before, after] = texts.map(|it| String::from_utf8_lossy(it));
                let places: Vec<&str> = found.places.into_iter().map(part).collect();
                let tail = found.tail.map(part).unwrap_or_default();
                format!("{before}<{}>{after}{tail}", places.join("|"))
            });
            assert_eq!(
                shown.unwrap_or_default(),
                expected,
                "{size} bytes at a time"
            );
        }
    }

    #[test]
    fn conversations_are_found_in_lists_and_one_per_line() {
        check(None, r#"[{"a":["]"]}, {} ]"#, r#"[<{"a":["]"]}|{}>]"#);
        check(None, "\u{feff} [[1],[]]\n", " [<[1]|[]>]\n");
        check(None, "{\"a\":\"\\\"}\"}\n{}\n", "<{\"a\":\"\\\"}\"}|{}>");
        check(None, "{}{} {\"a\":", "<{}|{}>{\"a\":");
        let object = r#"{"b":[{"a":[1]}],"a":[{"a":[]},{"b":2}],"c":{"a":[3]}}"#;
        let around = r#"{"b":[{"a":[1]}],"a":[<{"a":[]}|{"b":2}>],"c":{"a":[3]}}"#;
        check(Some("a"), object, around);
    }

    #[test]
    fn a_file_of_anything_else_is_read_at_once() {
        for file in [
            "",
            "{}",
            "[{}]",
            "[{},1]",
            "[{},,{}]",
            "[{} {}]",
            "[,{},{}]",
            "[{},{},]",
            "[{},{}",
            "[{},{}]{}",
            "{},{}",
            "{}{} 7",
            "[{},{a}]",
        ] {
            check(None, file, "");
        }
        for file in [
            r#"{"a":{"a":[{},{}]}}"#,
            r#"{"b":"a","c":[{},{}]}"#,
            r#"{"b":["a",[{},{}]]}"#,
            r#"{"a":[{},{}]"#,
            r#"{"a":[{},{}]}{}"#,
            "[{},{}]",
        ] {
            check(Some("a"), file, "");
        }
    }
}
