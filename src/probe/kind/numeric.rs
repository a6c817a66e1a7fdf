//! The newest of counts that change.

use super::prelude::*;

pub(super) fn spec<'a>(key: &'a str, unit: &'a str, values: &'a [Revision]) -> Spec<'a> {
    let parts = SpecPart::revisions(SearchBy::Version, key, values);
    Spec {
        answers: AnswerSet::Newest,
        unit,
        grade: Some(Box::new(|answer| {
            let unit = normalise(unit);
            let around = answer.around([&*unit, unit.trim_end_matches('s')]);
            let said = words(&joined_numbers(answer.text));
            answer.one_of_around(&around, &answer.current, &said)
        })),
        ..Spec::new(ProbeKind::Numeric, AnswerFormat::Number, parts)
    }
}

/// Numbers whose thousands are separated: by points only where there are two of them.
static GROUPED: LazyPattern = LazyPattern::new(
    r"[0-9]{1,3}(?:(?:,[0-9]{3})+|(?:'[0-9]{3})+|(?:_[0-9]{3})+|(?: [0-9]{3})+|(?:\.[0-9]{3}){2,})",
);

/// The text with numbers in one piece.
fn joined_numbers(text: &str) -> String {
    let text = spaced(text);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for number in GROUPED.matches(&text).filter_map(|found| found.get(0)) {
        let (before, behind) = (&text[..number.start()], &text[number.end()..]);
        // It is not a part of something longer.
        if !before.ends_with(|c: char| c.is_alphanumeric() || c == '.')
            && !behind.starts_with(|c: char| c.is_ascii_digit())
        {
            out.push_str(&before[from..]);
            out.extend(number.as_str().chars().filter(char::is_ascii_digit));
            from = number.end();
        }
    }
    out.push_str(&text[from..]);
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
        check("端口是48213。", "端口是 48213.");
    }
}
