//! Two contexts side by side: two calls, or two strategies at one call.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::page::{CallPage, in_words};
use super::usage::Category;
use crate::replay::observe::snapshot::MessageFate;

/// Two contexts of one session.
pub(super) struct Diff<'a> {
    pub(super) left: &'a CallPage<'a>,
    pub(super) right: &'a CallPage<'a>,
}

/// Consecutive messages whose fates differ in the same way.
struct FateSpan<'a> {
    from: usize,
    /// The last of them.
    to: usize,
    left: Option<&'a MessageFate>,
    right: Option<&'a MessageFate>,
}

impl<'a> Diff<'a> {
    /// Tokens by category, those that either has, the largest difference first.
    fn usage(&self) -> Value {
        let pages = [self.left, self.right];
        let categories: BTreeSet<Category> =
            pages.iter().flat_map(|page| page.usage.keys().copied()).collect();
        let rows = categories.into_iter().map(|category| {
            let tokens = pages.map(|page| page.usage.get(&category).map_or(0, |tokens| tokens.0));
            (category, tokens)
        });
        let mut rows: Vec<(Category, [u64; 2])> = rows.collect();
        rows.sort_by_key(|(_, [a, b])| Reverse(a.abs_diff(*b)));
        let all = rows.iter();
        all.map(|(category, [a, b])| json!({ "category": category.name(), "a": a, "b": b }))
            .collect()
    }

    /// The messages that fared differently, in order. One that was not said yet has no fate.
    fn spans(&self) -> Vec<FateSpan<'a>> {
        let (left, right) = (&self.left.snapshot.fates, &self.right.snapshot.fates);
        let mut spans: Vec<FateSpan<'a>> = Vec::new();
        for at in 0..left.len().max(right.len()) {
            let (left, right) = (left.get(at), right.get(at));
            if left.map(|fate| &fate.fate) == right.map(|fate| &fate.fate) {
                continue;
            }
            match spans.last_mut() {
                Some(span) if span.to + 1 == at && span.left == left && span.right == right => {
                    span.to = at;
                }
                _ => spans.push(FateSpan { from: at, to: at, left, right }),
            }
        }
        spans
    }

    pub(super) fn facts(&self) -> Value {
        let all = self.spans();
        let spans = all.iter().map(|span| {
            json!({
                "from": span.from,
                "to": span.to,
                "a": span.left.map(|fate| fate.fate.name()),
                "b": span.right.map(|fate| fate.fate.name()),
                "a_in_words": span.left.map(in_words),
                "b_in_words": span.right.map(in_words),
            })
        });
        json!({
            "a": self.left.head(self.left.chars),
            "b": self.right.head(self.right.chars),
            "usage": self.usage(),
            "messages": spans.collect::<Vec<_>>(),
        })
    }
}
