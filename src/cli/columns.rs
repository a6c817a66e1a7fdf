//! Text in columns, for results that are no report.

use std::fmt::Write as _;

/// Lines of a name and what is said of it, which begins in the same column.
pub(super) fn pairs<N: AsRef<str>, T: AsRef<str>>(rows: &[(N, T)]) -> String {
    let width = rows.iter().map(|(name, _)| name.as_ref().chars().count());
    let width = width.max().unwrap_or(0);
    let mut text = String::new();
    for (name, said) in rows {
        let _ = writeln!(text, "{:width$}  {}", name.as_ref(), said.as_ref());
    }
    text
}

/// `183,616`.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let first = digits.len() % 3;
    let (head, rest) = digits.split_at(if first == 0 { 3 } else { first }.min(digits.len()));
    let mut out = head.to_owned();
    for (at, digit) in rest.chars().enumerate() {
        if at % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Consecutive indices, the last included: `4`, or `4-7`.
pub(super) fn range(from: usize, to: usize) -> String {
    if from == to {
        from.to_string()
    } else {
        format!("{from}-{to}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        for (number, text) in [
            (0, "0"),
            (12, "12"),
            (999, "999"),
            (1_234, "1,234"),
            (123_456, "123,456"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
    }
}
