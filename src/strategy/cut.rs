//! Where a context may be cut in two.

use std::ops::Range;

use crate::context::Entry;
use crate::session::{Role, Tag};

/// How careful a cut is. Each is stricter than the one before: what it allows, all before it
/// allow too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cut {
    /// Anywhere: that product has no guard.
    None,
    /// Never between a tool use and its result.
    Pair,
    /// Nor between two assistant messages in a row, which one response may have been.
    Batch,
    /// Only between API rounds: in front of an assistant message, or of one that a user typed.
    Round,
    /// Only in front of a message that a user typed.
    Turn,
}

impl Cut {
    /// The words that settings use, the least careful first.
    pub const WORDS: &'static [&'static str] = &["none", "pair", "batch", "round", "turn"];

    /// The cut of that word; any other word is the default, `pair`.
    pub fn named(word: &str) -> Self {
        match word {
            "none" => Self::None,
            "batch" => Self::Batch,
            "round" => Self::Round,
            "turn" => Self::Turn,
            _ => Self::Pair,
        }
    }

    /// Whether `entries` may be cut in front of index `at`. The two ends always are legal.
    ///
    /// Looks at the turns around the cut only.
    pub fn allows(self, entries: &[Entry], at: usize) -> bool {
        if self == Self::None || at == 0 || at >= entries.len() {
            return true;
        }
        let (before, after) = (role(&entries[at - 1]), role(&entries[at]));
        let typed = entries[at].message.has_tag(Tag::TypedUser);
        !separates_pair(entries, at)
            && match self {
                Self::None | Self::Pair => true,
                Self::Batch => (before, after) != (Role::Assistant, Role::Assistant),
                Self::Round => typed || (before, after) == (Role::User, Role::Assistant),
                Self::Turn => typed,
            }
    }

    /// The nearest place at `at` or before it that may be cut.
    pub fn snap_back(self, entries: &[Entry], at: usize) -> usize {
        let at = at.min(entries.len());
        (0..=at)
            .rev()
            .find(|at| self.allows(entries, *at))
            .unwrap_or(0)
    }

    /// The nearest place at `at` or behind it that may be cut.
    pub fn snap_forward(self, entries: &[Entry], at: usize) -> usize {
        let end = entries.len();
        (at.min(end)..end)
            .find(|at| self.allows(entries, *at))
            .unwrap_or(end)
    }
}

fn role(entry: &Entry) -> Role {
    entry.message.role()
}

/// Whether a result behind `at` answers a tool use in front of it. A use is answered in the turn
/// that follows its own.
fn separates_pair(entries: &[Entry], at: usize) -> bool {
    let (front, behind) = entries.split_at(at);
    let is = |wanted: Role| move |entry: &&Entry| role(entry) == wanted;
    // In front: the answers so far, then the turn that asked.
    let asked = front
        .iter()
        .rev()
        .skip_while(is(Role::User))
        .take_while(is(Role::Assistant));
    let starts_with_user = behind
        .first()
        .is_some_and(|entry| role(entry) == Role::User);
    if !starts_with_user && front.last().is_some_and(|entry| role(entry) == Role::User) {
        return false;
    }
    let answers: Vec<&str> = behind
        .iter()
        .skip_while(is(Role::Assistant))
        .take_while(is(Role::User))
        .flat_map(|entry| entry.message.tool_results())
        .map(|(_, result)| &*result.tool_use_id)
        .collect();
    asked
        .flat_map(|entry| entry.message.tool_uses())
        .any(|(_, tool_use)| answers.contains(&&*tool_use.id))
}

/// The API rounds of a context: each starts with an assistant message and holds what answers it.
///
/// What stands before the first assistant message is no round; it is returned apart, and may be
/// empty. Cutting between two rounds never separates a tool use from its result.
pub fn rounds(entries: &[Entry]) -> (Range<usize>, Vec<Range<usize>>) {
    let starts: Vec<usize> = entries
        .iter()
        .enumerate()
        .filter(|(_, entry)| entry.message.role() == Role::Assistant)
        .map(|(at, _)| at)
        .collect();
    let head = 0..starts.first().copied().unwrap_or(entries.len());
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    let rounds = starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(start, end)| start..end)
        .collect();
    (head, rounds)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::context::Origin;
    use crate::session::{ContentBlock, JsonText, Message, ToolClass, ToolResult, ToolUse};
    use crate::tokens::{CharsPer4, CountedTexts};

    /// Entries from letters: `t` typed, `m` injected, `s` said, `A` asks for a and b, `a` and `b`
    /// answer it.
    fn entries(letters: &str) -> Vec<Entry> {
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let call = |id: &str| {
            ContentBlock::ToolUse(ToolUse {
                id: id.into(),
                name: "Read".into(),
                class: ToolClass::Read,
                input: JsonText::string(""),
            })
        };
        let answer = |id: &str| {
            let block = ContentBlock::ToolResult(ToolResult {
                tool_use_id: id.into(),
                content: Vec::new(),
                is_error: false,
            });
            Message::new(Role::User, vec![block])
        };
        let message = |letter: char| match letter {
            't' => Message::text(Role::User, "typed").with_tags([Tag::TypedUser]),
            'm' => Message::text(Role::User, "injected").with_tags([Tag::Meta]),
            'A' => Message::new(Role::Assistant, vec![call("a"), call("b")]),
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
        for (word, legal) in Cut::WORDS.iter().zip(legal) {
            let found: Vec<usize> = (1..entries.len())
                .filter(|at| Cut::named(word).allows(&entries, *at))
                .collect();
            assert_eq!(found, legal, "{word} in {letters}");
        }
    }

    #[test]
    fn each_kind_allows_less_than_the_one_before() {
        check("tAabs", [&[1, 2, 3, 4], &[1, 4], &[1, 4], &[1, 4], &[]]);
        check(
            "tsAabts",
            [
                &[1, 2, 3, 4, 5, 6],
                &[1, 2, 5, 6],
                &[1, 5, 6],
                &[1, 5, 6],
                &[5],
            ],
        );
        check("tAsab", [&[1, 2, 3, 4], &[1], &[1], &[1], &[]]);
        check("tsms", [&[1, 2, 3], &[1, 2, 3], &[1, 2, 3], &[1, 3], &[]]);
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
