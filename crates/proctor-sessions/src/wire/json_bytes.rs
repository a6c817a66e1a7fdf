//! Checks and repairs on JSON bytes before parsing: nesting depth, lone surrogates.

/// How deep arrays and objects are nested; brackets in strings do not count.
pub fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut at) = (0usize, 0, 0);
    let mut in_string = false;
    while let Some(byte) = json.get(at) {
        at += 1;
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            _ if in_string => {
                let rest = json.get(at..).unwrap_or_default();
                at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Replaces escapes of half a surrogate pair by U+FFFD, in place. Returns whether there were any.
///
/// JavaScript cuts strings between the halves of a pair and writes the half as an escape, which
/// no UTF-8 text can hold.
pub fn mend_surrogates(json: &mut [u8]) -> bool {
    let unit = |json: &[u8], at: usize| -> Option<u32> {
        let escape = json.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(escape).ok()?, 16).ok()
    };
    let (mut at, mut mended) = (0, false);
    while let Some(found) = memchr::memchr(b'\\', json.get(at..).unwrap_or_default()) {
        at += found;
        at += match (unit(json, at), unit(json, at + 6)) {
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
