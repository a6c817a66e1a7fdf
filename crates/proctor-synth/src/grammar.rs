//! The words of the generator: a grammar of templates, expanded by seeded draws.
//!
//! The rules are data, in `families/shared`. A rule is one template, or a list from which
//! one is drawn; `[70, "…"]` in a list counts as 70 equal templates. In a template
//! - `{noun}` writes the value of a slot, or else expands the rule of that name;
//! - `{1..900}` draws a number, `{hex 6}`, `{digits 6}` and `{id 6}` draw that many characters;
//! - `{object=objects|words}` draws and writes nothing: from then on `{object}` writes the draw. A
//!   drawn template is filled where it is written;
//! - `{object|words}` writes `next_page` as `next page`; the filters are in [`filtered`];
//! - `{{` and `}}` are braces.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use foldhash::fast::FixedState;
use memchr::{memchr, memchr2, memmem};
use serde::Deserialize;

use super::random::Random;

/// The rules of all files.
pub(crate) static WORDS: LazyLock<Grammar> = LazyLock::new(|| {
    let texts = [
        include_str!("../families/shared/names.toml"),
        include_str!("../families/shared/prose.toml"),
        include_str!("../families/shared/code.toml"),
        include_str!("../families/shared/output.toml"),
        include_str!("../families/shared/help-desk.toml"),
        include_str!("../families/shared/small-talk.toml"),
        include_str!("../families/shared/facts.toml"),
    ];
    let mut grammar = Grammar::default();
    // A test reads each of them, so that none is left out.
    for node in texts.into_iter().flat_map(toml::from_str) {
        grammar.add(String::new(), node);
    }
    grammar
});

/// The templates of rules by their names; a rule in a table is named `table.rule`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(from = "RuleNode", bound(deserialize = "'de: 'static"))]
pub(crate) struct Grammar(HashMap<String, Vec<&'static str>, FixedState>);

/// A file of rules, or a part of one.
#[derive(Deserialize)]
#[serde(untagged)]
enum RuleNode {
    Template(&'static str),
    Weighted(usize, &'static str),
    OneOf(Vec<RuleNode>),
    Table(BTreeMap<String, RuleNode>),
}

/// The values of slots.
type Slots<'a> = [(&'a str, &'a str)];

/// The values that the templates of one expansion can use.
struct Scope<'a> {
    slots: &'a Slots<'a>,
    drawn: Vec<(String, String)>,
}

impl From<RuleNode> for Grammar {
    fn from(node: RuleNode) -> Self {
        let mut grammar = Self::default();
        grammar.add(String::new(), node);
        grammar
    }
}

impl Grammar {
    fn add(&mut self, name: String, node: RuleNode) {
        if let RuleNode::Table(table) = node {
            for (key, node) in table {
                self.add(if name.is_empty() { key } else { format!("{name}.{key}") }, node);
            }
        } else {
            self.0.insert(name, templates(node));
        }
    }

    /// The first template of a rule, or nothing.
    pub(crate) fn one(&self, rule: &str) -> &'static str {
        self.bank(rule).first().unwrap_or(&"")
    }

    /// The templates of a rule; none if there is no such rule.
    pub(crate) fn bank(&self, rule: &str) -> &[&'static str] {
        self.0.get(rule).map_or(&[], Vec::as_slice)
    }
}

fn templates(node: RuleNode) -> Vec<&'static str> {
    match node {
        RuleNode::Template(template) => vec![template],
        RuleNode::Weighted(weight, template) => vec![template; weight],
        RuleNode::OneOf(nodes) => nodes.into_iter().flat_map(templates).collect(),
        RuleNode::Table(_) => Vec::new(),
    }
}

/// The templates of a rule of [`WORDS`].
pub(crate) fn bank(rule: &str) -> &'static [&'static str] {
    WORDS.bank(rule)
}

impl Random {
    /// A template of a rule, as it is written; a rule of a single template draws nothing.
    pub(crate) fn word(&self, rule: &str) -> &'static str {
        match bank(rule) {
            [] => "",
            [template] => template,
            templates => self.pick(templates),
        }
    }

    /// A template of a rule, filled with draws.
    pub(crate) fn draw(&self, rule: &str) -> String {
        self.say(rule, &[])
    }

    /// A template of a rule, filled with the values of slots and with draws.
    pub(crate) fn say(&self, rule: &str, slots: &Slots<'_>) -> String {
        let drawn = Vec::new();
        self.expand(self.word(rule), &mut Scope { slots, drawn })
    }

    fn expand(&self, template: &str, scope: &mut Scope<'_>) -> String {
        let outer = scope.drawn.len();
        let text = render(template, &mut |expression| {
            if let Some((name, drawn)) = expression.split_once('=') {
                let value = filtered(drawn, |source| self.source(source));
                scope.drawn.push((name.to_owned(), value));
                return String::new();
            }
            filtered(expression, |source| self.value(source, scope))
        });
        scope.drawn.truncate(outer);
        text
    }

    fn value(&self, source: &str, scope: &mut Scope<'_>) -> String {
        let mut drawn = scope.drawn.iter().rev();
        let template = match drawn.find(|(name, _)| name == source) {
            Some((_, template)) => template.clone(),
            None => match slot(scope.slots, source) {
                Some(value) => return value.to_owned(),
                None => self.source(source),
            },
        };
        self.expand(&template, scope)
    }

    /// A number, characters, or a template of a rule.
    fn source(&self, source: &str) -> String {
        if let Some(at) = memmem::find(source.as_bytes(), b"..") {
            let bounds = [&source[..at], &source[at + 2..]];
            let [low, high] = bounds.map(|bound| bound.parse().unwrap_or(0));
            return self.between(low, high).to_string();
        }
        let (kind, length) = source.split_once(' ').unwrap_or((source, ""));
        match (kind, length.parse()) {
            ("hex", Ok(length)) => self.hex(length),
            ("digits", Ok(length)) => self.digits(length),
            ("id", Ok(length)) => self.id(length),
            _ => self.word(source).to_owned(),
        }
    }
}

fn slot<'a>(slots: &Slots<'a>, name: &str) -> Option<&'a str> {
    slots.iter().find(|(slot, _)| *slot == name).map(|(_, value)| *value)
}

/// Replaces each `{slot}` of a template by its value, without any draw.
pub(crate) fn fill(template: &str, slots: &Slots<'_>) -> String {
    render(template, &mut |expression| {
        filtered(expression, |name| slot(slots, name).unwrap_or(name).to_owned())
    })
}

/// Replaces each `{expression}` of a template; a doubled brace is a brace.
fn render(template: &str, value: &mut dyn FnMut(&str) -> String) -> String {
    let mut text = String::with_capacity(template.len() * 2);
    let mut rest = template;
    while let Some(at) = memchr2(b'{', b'}', rest.as_bytes()) {
        let (before, after) = rest.split_at(at);
        text.push_str(before);
        let brace = &after[..1];
        if let Some(tail) = after[1..].strip_prefix(brace) {
            text.push_str(brace);
            rest = tail;
            continue;
        }
        let after = &after[1..];
        let end = memchr(b'}', after.as_bytes()).unwrap_or(after.len());
        let (expression, tail) = (&after[..end], after.get(end + 1..).unwrap_or(""));
        text += &value(expression);
        rest = tail;
    }
    text + rest
}

/// The value of the source of an expression, changed by the filters behind it.
fn filtered(expression: &str, value: impl FnOnce(&str) -> String) -> String {
    let Some(end) = memchr(b'|', expression.as_bytes()) else {
        return value(expression);
    };
    expression[end + 1..].split('|').fold(value(&expression[..end]), |value, filter| match filter {
        "words" => value.replace('_', " "),
        "capital" => capital(&value),
        // `stale_cursor` as `StaleCursor`.
        "pascal" => value.split('_').map(capital).collect(),
        // `load_invoice` as `loadInvoice`.
        "camel" => {
            let (first, rest) = value.split_once('_').unwrap_or((&value, ""));
            let rest: String = rest.split('_').map(capital).collect();
            format!("{first}{rest}")
        }
        "pad" => format!("{value:>3}"),
        _ => value,
    })
}

fn capital(word: &str) -> String {
    let (first, rest) = word.split_at(word.len().min(1));
    first.to_ascii_uppercase() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_filled_and_their_values_are_not_read_again() {
        let filled = fill("a {x} c {y|pascal} {{z}}", &[("x", "{y}"), ("y", "d_e")]);
        assert_eq!(filled, "a {y} c DE {z}");
    }

    #[test]
    fn a_draw_is_written_wherever_it_is_named_and_a_drawn_template_is_filled_there() {
        let random = Random::new(1, "test");
        let mut scope = Scope { slots: &[("noun", "{pie}")], drawn: Vec::new() };
        let template = "{n=7..7}{text=python.comment}{text=python.comment}{n} {n} {noun}";
        let said = random.expand(template, &mut scope);
        assert_eq!(said, "7 7 {pie}");
    }

    /// A rule that no file defines would be written as nothing.
    #[test]
    fn every_file_is_read() {
        for rule in ["nouns", "docs", "rust.bind", "log_entry", "desk.items", "talk.first", "said"]
        {
            assert!(!bank(rule).is_empty(), "{rule}");
        }
        assert_eq!(bank("statements").len(), 100);
    }
}
