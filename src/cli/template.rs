//! Templates: the text of a result, filled in from the facts that `--json` prints.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

use super::Result;
use crate::report::display::{many, percent, tokens};
use crate::report::escape::{markdown, shell, short, xml};
use crate::report::layout::blanks;
use crate::report::layout::cut_middle;
use crate::units::Usd;

/// Fills a template with facts. A name that the facts do not have is a mistake.
pub(super) fn fill(template: &str, facts: impl Serialize) -> Result<String> {
    let mut syntax = SyntaxConfig::builder();
    syntax.trim_blocks(true).lstrip_blocks(true);
    let mut templates = Environment::new();
    templates.set_syntax(syntax.keep_trailing_newline(true).build()?);
    templates.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    templates.add_filter("grouped", grouped);
    templates.add_filter("left", |value: &Value, columns| {
        let text = value.to_string();
        format!("{text}{}", blanks(&text, columns))
    });
    templates.add_filter("many", |count, one: &str, more: &str| many(count, one, more));
    templates.add_filter("markdown", markdown);
    templates.add_filter("middle", cut_middle);
    templates.add_filter("percent", percent);
    templates
        .add_filter("right", |text: &Value, columns| format!("{:>columns$}", text.to_string()));
    templates.add_filter("shell", shell);
    templates.add_filter("short", short);
    templates.add_filter("tokens", tokens);
    templates.add_filter("xml", xml);
    templates.add_filter("usd", |dollars: f64| Usd::of_dollars(dollars).to_string());
    Ok(templates.render_str(template, Serde(facts))?)
}

/// `183,616`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<_> = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy).collect();
    groups.join(",")
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
