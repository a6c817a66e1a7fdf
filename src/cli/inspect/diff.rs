//! Two contexts side by side: two calls, or two strategies at one call.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::page::{Page, in_words};
use super::usage::Category;
use crate::replay::observe::snapshot::MessageFate;
use crate::report::escape;
use crate::units::Tokens;

/// Two contexts of one session.
pub(super) struct Diff<'a> {
    left: &'a Page<'a>,
    right: &'a Page<'a>,
}

/// Consecutive messages whose fates differ in the same way.
struct Span<'a> {
    from: usize,
    to: usize,
    left: Option<&'a MessageFate>,
    right: Option<&'a MessageFate>,
}

impl<'a> Diff<'a> {
    pub(super) fn new(left: &'a Page<'a>, right: &'a Page<'a>) -> Self {
        Self { left, right }
    }

    /// Tokens by category, those that either has.
    fn usage(&self) -> Vec<(Category, Tokens, Tokens)> {
        let (left, right) = (self.left.usage(), self.right.usage());
        let categories: BTreeSet<Category> = left.keys().chain(right.keys()).copied().collect();
        let of = |usage: &std::collections::BTreeMap<Category, Tokens>, category| {
            usage.get(&category).copied().unwrap_or_default()
        };
        let categories = categories.into_iter();
        categories
            .map(|category| (category, of(left, category), of(right, category)))
            .collect()
    }

    /// The messages that fared differently, in order. One that was not said yet has no fate.
    fn spans(&self) -> Vec<Span<'a>> {
        let (left, right) = (&self.left.look().fates, &self.right.look().fates);
        let mut spans: Vec<Span<'a>> = Vec::new();
        for at in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(at), right.get(at));
            if left.map(|fate| &fate.fate) == right.map(|fate| &fate.fate) {
                continue;
            }
            match spans.last_mut() {
                Some(span) if span.to == at && span.left == left && span.right == right => {
                    span.to = at + 1;
                }
                _ => spans.push(Span {
                    from: at,
                    to: at + 1,
                    left,
                    right,
                }),
            }
        }
        spans
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = String::new();
        let (left, right) = (self.left, self.right);
        let _ = writeln!(
            out,
            "{}\n  A  {}: {} tokens\n  B  {}: {} tokens\n\nUsage\n",
            escape::plain(left.session().id()),
            escape::plain(&left.title()),
            left.prompt(),
            escape::plain(&right.title()),
            right.prompt()
        );
        let _ = writeln!(out, "{:26} {:>9} {:>9} {:>10}", "", "A", "B", "B − A");
        let total = ("prompt".to_owned(), left.prompt(), right.prompt());
        let usage = self.usage().into_iter();
        let rows = usage.map(|(category, left, right)| (category.name(), left, right));
        for (name, left, right) in rows.chain([total]) {
            let sign = if right >= left { "+" } else { "−" };
            let apart = format!("{sign}{}", left.0.abs_diff(right.0));
            let _ = writeln!(out, "{name:26} {:>9} {:>9} {apart:>10}", left.0, right.0);
        }
        let spans = self.spans();
        let _ = writeln!(out, "\nMessages that fared differently\n");
        if spans.is_empty() {
            let _ = writeln!(out, "none");
        }
        for Span {
            from,
            to,
            left,
            right,
        } in spans
        {
            let range = if to - from == 1 {
                from.to_string()
            } else {
                format!("{from}-{}", to - 1)
            };
            let words = |fate: Option<&MessageFate>| {
                fate.map_or_else(|| "not said yet".to_owned(), in_words)
            };
            let _ = writeln!(out, "{range:>9}  A  {}", words(left));
            let _ = writeln!(out, "{:>9}  B  {}", "", words(right));
        }
        out
    }

    pub(super) fn to_json(&self) -> Value {
        let side = |page: &Page<'_>| {
            let mut json = page.to_json();
            if let Value::Object(fields) = &mut json {
                fields.remove("format");
                fields.remove("version");
                fields.remove("entries");
                fields.remove("fates");
            }
            json
        };
        let fate = |fate: Option<&MessageFate>| fate.map(|fate| fate.fate.name());
        let spans: Vec<Value> = self
            .spans()
            .iter()
            .map(|span| {
                json!({
                    "from": span.from,
                    "to": span.to - 1,
                    "a": fate(span.left),
                    "b": fate(span.right),
                    "a_in_words": span.left.map(in_words),
                    "b_in_words": span.right.map(in_words),
                })
            })
            .collect();
        let usage: Vec<Value> = self
            .usage()
            .into_iter()
            .map(|(category, left, right)| {
                json!({ "category": category.name(), "a": left.0, "b": right.0 })
            })
            .collect();
        json!({
            "format": "proctor-inspect-diff",
            "version": 1,
            "a": side(self.left),
            "b": side(self.right),
            "usage": usage,
            "messages": spans,
        })
    }
}
