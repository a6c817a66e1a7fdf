//! Where a context may be cut in two.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;

use crate::context::{Entry, visit};
use crate::session::Role;
use crate::units::Tokens;

/// How careful a cut is. Each is stricter than the one before: what it allows, all before it
/// allow too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// Anywhere: that product has no guard.
    None,
    /// Never between a tool use and its result.
    Pair,
    /// Nor inside a response that came as several assistant messages in a row.
    Batch,
    /// Only between API rounds: in front of an assistant message, or of one that a user typed.
    Round,
    /// Only in front of a message that a user typed.
    Turn,
}

impl Cut {
    /// Whether `entries` may be cut in front of index `at`. The two ends always are legal.
    ///
    /// Looks at the turns around the cut only.
    pub fn allows(self, entries: &[Entry], at: usize) -> bool {
        if self == Self::None || at == 0 || at >= entries.len() {
            return true;
        }
        let typed = entries[at].is_typed();
        !separates_pair(entries, at)
            && match self {
                Self::None | Self::Pair => true,
                Self::Batch => !splits_response(entries, at),
                Self::Round => {
                    typed || entries[at].role() == Role::Assistant && !splits_response(entries, at)
                }
                Self::Turn => typed,
            }
    }

    /// The nearest place at `at` or before it that may be cut.
    pub fn snap_back(self, entries: &[Entry], at: usize) -> usize {
        (0..=at.min(entries.len())).rev().find(|at| self.allows(entries, *at)).unwrap_or(0)
    }

    /// The nearest place at `at` or behind it that may be cut.
    pub fn snap_forward(self, entries: &[Entry], at: usize) -> usize {
        let end = entries.len();
        (at.min(end)..end).find(|at| self.allows(entries, *at)).unwrap_or(end)
    }
}

/// Whether the assistant messages on both sides of `at` are parts of one response: they name the
/// same API call, or neither names one.
fn splits_response(entries: &[Entry], at: usize) -> bool {
    let (before, after) = (&entries[at - 1], &entries[at]);
    (before.role(), after.role()) == (Role::Assistant, Role::Assistant)
        && before.message.details.api_call == after.message.details.api_call
}

/// Whether a result behind `at` answers a tool use in front of it. A use is answered in the turn
/// that follows its own.
fn separates_pair(entries: &[Entry], at: usize) -> bool {
    let (front, behind) = entries.split_at(at);
    let [last, next] = [front.last(), behind.first()].map(|entry| entry.map(Entry::role));
    if next != Some(Role::User) && last == Some(Role::User) {
        return false;
    }
    let answers = behind.iter().skip_while(|entry| entry.role() == Role::Assistant);
    let ids = answered(answers.take_while(|entry| entry.role() == Role::User));
    // In front: the answers so far, then the turn that asked.
    let asking = front.iter().rev().skip_while(|entry| entry.role() == Role::User);
    asking
        .take_while(|entry| entry.role() == Role::Assistant)
        .flat_map(|entry| entry.message.tool_uses())
        .any(|(_, tool_use)| ids.contains(&*tool_use.id))
}

/// The ids of the tool uses that are answered by one of these.
pub(super) fn answered<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> BTreeSet<&'a str> {
    let results = entries.into_iter().flat_map(|entry| entry.message.tool_results());
    results.map(|(_, result)| &*result.tool_use_id).collect()
}

/// The first entry of the longest tail of at most `budget` tokens.
pub(super) fn newest_within(entries: &[Entry], budget: Tokens) -> usize {
    let mut left = budget;
    let newest = entries.iter().rev().take_while(|entry| {
        let fits = entry.size().tokens <= left;
        left = left - entry.size().tokens;
        fits
    });
    entries.len() - newest.count()
}

/// The API rounds of a context: each starts with the first assistant message of a response, and
/// holds the rest of it and what answers it.
///
/// Assistant messages in a row are one response where they name the same API call, or none of them
/// names one. Responses in a row whose results all come after the last of them are one round. The
/// entries before the first assistant message are not a round; they are returned separately, and
/// may be empty. Cutting between two rounds never separates a tool use from its result.
pub fn rounds(entries: &[Entry]) -> (Range<usize>, Vec<Range<usize>>) {
    let starts: Vec<usize> = round_starts(entries).collect();
    let head = 0..starts.first().copied().unwrap_or(entries.len());
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let rounds = starts.iter().zip(ends).map(|(start, end)| *start..end);
    (head, rounds.collect())
}

/// Where each of the [`rounds`] starts, looked for as it is asked for: who wants the oldest rounds
/// pays for these alone.
pub(super) fn round_starts(entries: &[Entry]) -> impl Iterator<Item = usize> + '_ {
    (0..entries.len()).filter(|at| {
        visit(1);
        entries[*at].role() == Role::Assistant
            && (*at == 0
                // An entry after a user's message starts a response, and separates no pair.
                || entries[at - 1].role() == Role::User
                || !splits_response(entries, *at) && !separates_pair(entries, *at))
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::Origin;
    use crate::session::{ContentBlock, JsonText, Message, Tag, ToolClass, ToolResult, ToolUse};
    use crate::tokens::{CharsPer4, CountedTexts};
    use crate::units::ApiCallId;

    /// Entries from letters: `t` typed, `m` injected, `s` said, `1` and `2` said in calls of that
    /// name, `A` asks for a and b, `B` asks for b in call 2, `a` and `b` answer.
    fn entries(letters: &str) -> Vec<Entry> {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let call = |id: &str| {
            ContentBlock::ToolUse(Box::new(ToolUse {
                id: id.into(),
                name: "Read".into(),
                class: ToolClass::Read,
                input: JsonText::string(""),
            }))
        };
        let answer = |id: &str| {
            let block = ContentBlock::ToolResult(Box::new(ToolResult {
                tool_use_id: id.into(),
                content: Vec::new(),
                is_error: false,
            }));
            Message::new(Role::User, vec![block])
        };
        let in_call = |id: &str, mut message: Message| {
            message.details.api_call = Some(ApiCallId(id.into()));
            message
        };
        let message = |letter: char| match letter {
            't' => Message::text(Role::User, "typed").with_tags([Tag::TypedUser]),
            'm' => Message::text(Role::User, "injected").with_tags([Tag::Meta]),
            'A' => Message::new(Role::Assistant, vec![call("a"), call("b")]),
            'B' => in_call("2", Message::new(Role::Assistant, vec![call("b")])),
            '1' | '2' => {
                in_call(letter.encode_utf8(&mut [0; 4]), Message::text(Role::Assistant, "said"))
            }
            'a' | 'b' => answer(letter.encode_utf8(&mut [0; 4])),
            _ => Message::text(Role::Assistant, "said"),
        };
        letters
            .chars()
            .enumerate()
            .map(|(at, letter)| {
                Entry::new(Origin::Verbatim(at), Arc::new(message(letter)), &counts)
            })
            .collect()
    }

    /// The places where each kind may cut, between the ends.
    #[track_caller]
    fn check(letters: &str, legal: [&[usize]; 5]) {
        let entries = entries(letters);
        let cuts = [Cut::None, Cut::Pair, Cut::Batch, Cut::Round, Cut::Turn];
        for (cut, legal) in cuts.into_iter().zip(legal) {
            let found: Vec<usize> =
                (1..entries.len()).filter(|at| cut.allows(&entries, *at)).collect();
            assert_eq!(found, legal, "{cut:?} in {letters}");
        }
    }

    #[test]
    fn each_kind_allows_less_than_the_one_before() {
        check("tAabs", [&[1, 2, 3, 4], &[1, 4], &[1, 4], &[1, 4], &[]]);
        check("tsAabts", [&[1, 2, 3, 4, 5, 6], &[1, 2, 5, 6], &[1, 5, 6], &[1, 5, 6], &[5]]);
        check("tAsab", [&[1, 2, 3, 4], &[1], &[1], &[1], &[]]);
        check("tsms", [&[1, 2, 3], &[1, 2, 3], &[1, 2, 3], &[1, 3], &[]]);
    }

    #[test]
    fn a_call_that_came_in_parts_is_not_cut() {
        check("t11", [&[1, 2], &[1, 2], &[1], &[1], &[]]);
        check("t12", [&[1, 2], &[1, 2], &[1, 2], &[1, 2], &[]]);
        check("ts1", [&[1, 2], &[1, 2], &[1, 2], &[1, 2], &[]]);
        check("t1Bb", [&[1, 2, 3], &[1, 2], &[1, 2], &[1, 2], &[]]);
    }

    #[test]
    fn a_round_starts_where_a_response_does() {
        for (letters, head, starts) in [
            ("", 0, &[][..]),
            ("tm", 2, &[]),
            ("tAabs", 1, &[1, 4]),
            ("ssmst", 0, &[0, 3]),
            // Parts of one response, with its name or without.
            ("tsAabs", 1, &[1, 5]),
            ("t11m12", 1, &[1, 4, 5]),
            // Two responses, and the results of both behind the second.
            ("t1Bbs", 1, &[1, 2, 4]),
            ("tABab", 1, &[1]),
        ] {
            let entries = entries(letters);
            let (before, rounds) = rounds(&entries);
            assert_eq!(before, 0..head, "{letters}");
            let found: Vec<usize> = rounds.iter().map(|round| round.start).collect();
            assert_eq!(found, starts, "{letters}");
            let ends: Vec<usize> = rounds.iter().map(|round| round.end).collect();
            let next = starts.iter().skip(1).copied().chain([letters.len()]);
            assert_eq!(ends, next.take(starts.len()).collect::<Vec<_>>(), "{letters}");
        }
    }

    #[test]
    fn snapping_finds_the_nearest_place() {
        let entries = entries("tAabs");
        assert_eq!(Cut::Pair.snap_back(&entries, 3), 1);
        assert_eq!(Cut::Pair.snap_forward(&entries, 2), 4);
        assert_eq!(Cut::None.snap_back(&entries, 3), 3);
        assert_eq!(Cut::Turn.snap_back(&entries, 4), 0);
        assert_eq!(Cut::Turn.snap_forward(&entries, 1), 5);
        assert_eq!(Cut::Pair.snap_back(&entries, 99), 5);
    }
}
