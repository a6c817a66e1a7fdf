//! The newest of counts that change.

use super::{
    AnswerFormat, Answers, Around, Part, ProbeKind, Reference, Revision, Search, Spec, normalise,
    words,
};

pub(super) fn spec<'a>(key: &'a str, unit: &'a str, values: &'a [Revision]) -> Spec<'a> {
    let parts = Part::revisions(Search::Count, key, values);
    Spec {
        answers: Answers::Newest,
        reference: Reference::Newest(unit),
        grade: Some(Box::new(|answer| {
            let unit = normalise(unit);
            let around = Around::new(answer.question(), &[&unit, unit.trim_end_matches('s')]);
            let said = words(&joined_numbers(answer.text));
            answer.one_of_around(&around, &answer.current, &said)
        })),
        ..Spec::new(ProbeKind::Numeric, AnswerFormat::Number, parts)
    }
}

/// The text with numbers in one piece: thousands may be parted by a comma, an apostrophe, a low line or
/// a space, and by points where there are two of them.
fn joined_numbers(text: &str) -> String {
    let text = normalise(text);
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let is_inside = out.ends_with(|c: char| c.is_alphanumeric() || c == '.');
        if !is_digit(at) || is_inside {
            out.push(c);
            at += c.len_utf8();
            continue;
        }
        let mut end = at;
        while is_digit(end) {
            end += 1;
        }
        let lead = end;
        let parting = bytes.get(end).copied();
        let mut groups = 0;
        while bytes.get(end).copied() == parting
            && (1..=3).all(|step| is_digit(end + step))
            && !is_digit(end + 4)
        {
            end += 4;
            groups += 1;
        }
        let is_parted = match parting {
            Some(b',' | b'\'' | b'_' | b' ') => groups > 0 && lead - at <= 3,
            Some(b'.') => groups > 1 && lead - at <= 3,
            _ => false,
        };
        let end = if is_parted { end } else { lead };
        out.extend(text[at..end].chars().filter(char::is_ascii_digit));
        at = end;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_put_in_one_piece() {
        let check =
            |text: &str, expected: &str| assert_eq!(joined_numbers(text), expected, "{text}");
        check("7,340,192 cases in 41.2 s", "7340192 cases in 41.2 s");
        check("12 345 rows, 8 or 9", "12345 rows, 8 or 9");
        check("7.081.340 claims", "7081340 claims");
        check("7.081 s", "7.081 s");
        check("1,23 and v1.234.567", "1,23 and v1.234.567");
        check("端口是48213。", "端口是 48213");
    }
}
