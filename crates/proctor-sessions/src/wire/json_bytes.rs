//! Reads and repairs JSON bytes before parsing: their marks, nesting depth, lone surrogates.

/// A mark of JSON that shows its structure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// An opening bracket: this one.
    Open(u8),
    /// A closing bracket.
    Close,
    /// A comma.
    Comma,
    /// A colon.
    Colon,
    /// A text, and the place behind it; none where it is cut.
    Text(Option<usize>),
}

/// The marks of JSON, each with its place. Those in a text are none.
pub fn marks(json: &[u8]) -> impl Iterator<Item = (usize, Mark)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let (place, byte) = (at, *json.get(at)?);
            at += 1;
            let mark = match byte {
                b'[' | b'{' => Mark::Open(byte),
                b']' | b'}' => Mark::Close,
                b',' => Mark::Comma,
                b':' => Mark::Colon,
                b'"' => {
                    let end = text_end(json, at);
                    at = end.unwrap_or(json.len());
                    Mark::Text(end)
                }
                _ => continue,
            };
            return Some((place, mark));
        }
    })
}

/// The place behind a text of which the inside begins there.
fn text_end(json: &[u8], mut at: usize) -> Option<usize> {
    loop {
        at += memchr::memchr2(b'"', b'\\', json.get(at..)?)?;
        if json[at] == b'"' {
            return Some(at + 1);
        }
        at += 2;
    }
}

/// How deep arrays and objects are nested; brackets in strings do not count.
pub fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for (_, mark) in marks(json) {
        match mark {
            Mark::Open(_) => depth += 1,
            Mark::Close => depth = depth.saturating_sub(1),
            Mark::Comma | Mark::Colon | Mark::Text(_) => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// Replaces escapes of half a surrogate pair by U+FFFD, in place. Returns whether there were any.
///
/// JavaScript cuts strings between the halves of a pair and writes the half as an escape, which
/// no UTF-8 text can hold.
pub fn mend_surrogates(json: &mut [u8]) -> bool {
    let (mut at, mut mended) = (0, false);
    while let Some(found) = memchr::memchr(b'\\', json.get(at..).unwrap_or_default()) {
        at += found;
        at += match (code_unit(json, at), code_unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                json[at..at + 6].copy_from_slice(b"\\ufffd");
                mended = true;
                6
            }
            (Some(_), _) => 6,
            (None, _) => 2,
        };
    }
    mended
}

/// Replaces `NaN`, `Infinity` and `-Infinity` by an empty text, in place, where they are values of a line of JSON: Python
/// writes them, and JSON has no such numbers. Returns whether there were any.
pub fn mend_numbers(line: &mut [u8]) -> bool {
    const NO_NUMBERS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    if NO_NUMBERS.iter().all(|word| memchr::memmem::find(line, word).is_none()) {
        return false;
    }
    let before = marks(line).filter(|(_, mark)| !matches!(mark, Mark::Close | Mark::Text(_)));
    let mut found = Vec::new();
    for start in std::iter::once(0).chain(before.map(|(at, _)| at + 1)) {
        let rest = line[start..].trim_ascii_start();
        let word = NO_NUMBERS.iter().find(|word| rest.starts_with(word));
        found.extend(word.map(|word| (line.len() - rest.len(), word.len())));
    }
    for (at, length) in &found {
        line[*at..*at + *length].fill(b' ');
        line[*at..*at + 2].fill(b'"');
    }
    !found.is_empty()
}

/// The UTF-16 code unit of the escape at this byte.
fn code_unit(json: &[u8], at: usize) -> Option<u32> {
    let escape = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
    u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
}
