//! Two contexts side by side: two calls, or two strategies at one call.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::page::{Page, in_words};
use super::usage::Category;
use crate::cli::columns::range;
use crate::replay::observe::snapshot::MessageFate;
use crate::units::Tokens;

/// Two contexts of one session.
pub(super) struct Diff<'a> {
    pub(super) left: &'a Page<'a>,
    pub(super) right: &'a Page<'a>,
}

/// Consecutive messages whose fates differ in the same way.
struct Span<'a> {
    from: usize,
    /// The last of them.
    to: usize,
    left: Option<&'a MessageFate>,
    right: Option<&'a MessageFate>,
}

impl<'a> Diff<'a> {
    /// Tokens by category, those that either has.
    fn usage(&self) -> Vec<(Category, Tokens, Tokens)> {
        let (left, right) = (&self.left.usage, &self.right.usage);
        let categories: BTreeSet<Category> = left.keys().chain(right.keys()).copied().collect();
        let categories = categories.into_iter();
        let of = |page: &Page<'_>, category| page.usage.get(&category).copied();
        let row = |category| {
            let (left, right) = (of(self.left, category), of(self.right, category));
            (
                category,
                left.unwrap_or_default(),
                right.unwrap_or_default(),
            )
        };
        categories.map(row).collect()
    }

    /// The messages that fared differently, in order. One that was not said yet has no fate.
    fn spans(&self) -> Vec<Span<'a>> {
        let (left, right) = (&self.left.snapshot.fates, &self.right.snapshot.fates);
        let mut spans: Vec<Span<'a>> = Vec::new();
        for at in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(at), right.get(at));
            if left.map(|fate| &fate.fate) == right.map(|fate| &fate.fate) {
                continue;
            }
            match spans.last_mut() {
                Some(span) if span.to + 1 == at && span.left == left && span.right == right => {
                    span.to = at;
                }
                _ => spans.push(Span {
                    from: at,
                    to: at,
                    left,
                    right,
                }),
            }
        }
        spans
    }

    pub(super) fn to_text(&self) -> String {
        let mut out = format!("{}\n", self.left.session.id());
        for (sign, page) in [("A", self.left), ("B", self.right)] {
            let (strategy, at, prompt) = (page.strategy, page.snapshot.call, page.snapshot.prompt);
            let _ = writeln!(out, "  {sign}  {strategy} at call {at}: {prompt} tokens");
        }
        let _ = writeln!(
            out,
            "\nUsage\n\n{:26} {:>9} {:>9} {:>10}",
            "", "A", "B", "B − A"
        );
        let (left, right) = (self.left.snapshot.prompt, self.right.snapshot.prompt);
        let usage = self.usage().into_iter();
        let rows = usage.map(|(category, left, right)| (category.name(), left, right));
        for (name, left, right) in rows.chain([("prompt".to_owned(), left, right)]) {
            let sign = if right >= left { "+" } else { "−" };
            let apart = format!("{sign}{}", left.0.abs_diff(right.0));
            let _ = writeln!(out, "{name:26} {:>9} {:>9} {apart:>10}", left.0, right.0);
        }
        out.push_str("\nMessages that fared differently\n\n");
        let spans = self.spans();
        if spans.is_empty() {
            out.push_str("none\n");
        }
        for span in spans {
            let words = |fate: Option<&MessageFate>| fate.map(in_words);
            let [left, right] = [span.left, span.right]
                .map(|fate| words(fate).unwrap_or("not said yet".to_owned()));
            let messages = range(span.from, span.to);
            let _ = writeln!(out, "{messages:>9}  A  {left}\n{:>9}  B  {right}", "");
        }
        out
    }

    pub(super) fn facts(&self) -> Value {
        let fate = |fate: Option<&MessageFate>| fate.map(|fate| fate.fate.name());
        let spans = self.spans();
        let spans = spans.iter().map(|span| {
            json!({
                "from": span.from,
                "to": span.to,
                "a": fate(span.left),
                "b": fate(span.right),
                "a_in_words": span.left.map(in_words),
                "b_in_words": span.right.map(in_words),
            })
        });
        let usage = self.usage().into_iter();
        let usage = usage.map(|(category, left, right)| {
            json!({ "category": category.name(), "a": left.0, "b": right.0 })
        });
        json!({
            "a": self.left.head(),
            "b": self.right.head(),
            "usage": usage.collect::<Vec<_>>(),
            "messages": spans.collect::<Vec<_>>(),
        })
    }
}
