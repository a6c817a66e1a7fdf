//! The order that a text itself gives: which of two values came later, and which items are ticked
//! off.

use std::ops::Range;

use regex::Captures;

use super::words::{Position, each_word, is_negation};
use super::{BINDING_BYTES, line_around, object_around};
use crate::probe::{Pattern, holds};

/// Between an older and a newer value, in this order: the newer one replaced the older.
const FORWARD: &str = "became becomes now replaced superseded then to";

/// Between a newer and an older value, in this order: the same.
const BACKWARD: &str = "\
    because before earlier former formerly from initial initially instead not old older original \
    originally previous previously prior rather replaced replaces replacing superseded supersedes \
    superseding was";

/// Behind an older value in its sentence: it holds no longer.
const GONE: &str = "\
    abandoned anymore before deprecated dropped formerly initially isnt longer obsolete originally \
    outdated previously replaced retired superseded was wasnt";

/// Between an older value and "not": it is none.
const SAYING: &str = "are be is must should was";

/// Before an older value in its line: the same.
const FORMER: &str =
    "earlier former formerly obsolete old original originally previous previously prior";

/// The most words behind an older value that are looked at.
const GONE_WORDS: usize = 6;

/// Arrows point from the older value to the newer.
const ARROWS: &[&str] = &["->", "=>", "→", "⇒"];

/// Words for a ticked item.
const TICKED: &str = "accomplished completed done finished";

/// Words before one of these in its clause by which it is not there yet: "work still to be done", "once
/// the tests are finished".
const NOT_YET: &str = "\
    after almost be before get half if must nearly need needs once partially partly should still \
    unless until when will yet";

/// Words for an open item.
const OPEN: &str = "\
    incomplete outstanding pending remaining remains todo unfinished upcoming";

/// Those of them that a ticked item may be called by: "all pending items completed".
const OPEN_UNTICKED: &str = "pending remaining todo";

/// Between words for two items: what ticks one says nothing of the other.
const JOINS: &str = "and but while with";

/// Before a word for an open item: there is no such item.
const NO_ITEM: &str = "none nothing";

/// How many of how many are done; a date is none.
static SHARE: Pattern =
    Pattern::new(r"(?:^|[^\w./-])(\d{1,6}) ?(?:/|(?:out )?of(?: the)?) ?(\d{1,6})(?:$|[^\w/-])");

/// Words for an open item beside ticked ones, and for much else.
const OPEN_BESIDE: &str = "left next open";

/// How an item is ticked in a list, and how it is not.
const TICKS: &[&str] = &["[x]", "[X]", "✓", "✔", "☑", "✅"];
const NO_TICKS: &[&str] = &[
    "[ ]", "[-]", "[~]", "[>]", "☐", "◻", "⬜", "🔲", "⏳", "🚧", "❌", "✗", "✘",
];

/// The state of an item as its object names it.
static STATE: Pattern = Pattern::new(
    r#"["'](?:status|state|done|completed|finished|checked)\\?["']\s*:\s*\\?["']?([A-Za-z_-]+)"#,
);

/// States of an object that is ticked.
const TICKED_STATES: &str = "checked closed complete completed done finished true";

/// One place of a value of a revised key.
#[derive(Debug)]
pub(super) struct Version {
    /// The slot of the value: a later value has a greater one.
    pub(super) slot: usize,
    pub(super) place: Range<usize>,
    pub(super) is_bound: bool,
}

/// Whether the text says that a newer value replaced the one at this index.
///
/// `versions` are those of one key in the order of the text; each is compared with its neighbours.
pub(super) fn is_superseded(text: &str, versions: &[Version], at: usize) -> bool {
    let older = &versions[at];
    let newer = |at: usize| versions.get(at).filter(|it| it.slot > older.slot);
    let next = newer(at + 1);
    let last = at.checked_sub(1).and_then(newer);
    let between = |first: &Version, second: &Version, words, forward| {
        let between = text.get(first.place.end..second.place.start);
        between.is_some_and(|between| says(between, words, forward))
    };
    (next.is_some() || last.is_some()) && is_gone(text, versions, at)
        || next.is_some_and(|next| between(older, next, FORWARD, true))
        || last.is_some_and(|last| between(last, older, BACKWARD, false))
}

fn says(between: &str, words: &str, forward: bool) -> bool {
    if between.len() > BINDING_BYTES || between.contains('\n') || between.contains("\\n") {
        return false;
    }
    let mut found = forward && ARROWS.iter().any(|arrow| between.contains(arrow));
    let mut is_turned = false;
    each_word(between, |word, _| {
        found |= holds(words, word);
        // "9090 was replaced by 8080" has another order.
        is_turned |= !forward && word == "by";
    });
    found && !is_turned
}

/// Whether a value's own line says that it holds no longer: "old port: 8080", "8080 is obsolete".
fn is_gone(text: &str, versions: &[Version], at: usize) -> bool {
    let own = &versions[at].place;
    let (around, value) = around(text, own);
    let from = own.start - value.start;
    let mut line = line_around(around, &value);
    // No further than to the values beside it.
    if let Some(last) = at.checked_sub(1).map(|at| versions[at].place.end) {
        line.start = line.start.max(last.saturating_sub(from)).min(value.start);
    }
    if let Some(next) = versions.get(at + 1) {
        line.end = line.end.min(next.place.start - from).max(value.end);
    }
    let (before, behind) = (
        &around[line.start..value.start],
        &around[value.end..line.end],
    );
    if before.ends_with("~~") && behind.starts_with("~~") {
        return true;
    }
    let (mut found, mut last) = (false, String::new());
    each_word(before, |word, _| found |= holds(FORMER, word));
    each_word(behind, |word, at| {
        // "8080, not 9090" speaks of the other value.
        let is_denied = word == "not" && holds(SAYING, &last);
        let is_near = at.sentence == 0 && at.word < GONE_WORDS;
        found |= is_near && (is_denied || holds(GONE, word));
        word.clone_into(&mut last);
    });
    found
}

/// The text around a place, as far as anything binds, and the place in it.
fn around<'t>(text: &'t str, place: &Range<usize>) -> (&'t str, Range<usize>) {
    let from = text.floor_char_boundary(place.start.saturating_sub(BINDING_BYTES));
    let to = text.floor_char_boundary((place.end + BINDING_BYTES).min(text.len()));
    (&text[from..to], place.start - from..place.end - from)
}

/// Whether the item at `place` is said to be done: in its JSON string of one line, else by the object
/// of this string, else in its line, else by the heading above.
pub(super) fn is_ticked(text: &str, place: &Range<usize>) -> bool {
    let (around, own) = around(text, place);
    let state_in = |part: &Range<usize>| {
        let (own, part) = (
            own.start - part.start..own.end - part.start,
            &around[part.clone()],
        );
        mark_beside(part, &own).or_else(|| state_of(part, &own))
    };
    let object = string_around(around, &own).zip(object_around(around, &own));
    if let Some((string, object)) = object {
        if let Some(state) = state_in(&string) {
            return state;
        }
        let mut sides = [own.end..object.end, object.start..own.start].into_iter();
        let state = sides.find_map(|side| STATE.matches(&around[side]).next());
        if let Some(state) = state.and_then(|state| state.get(1)) {
            return holds(TICKED_STATES, &state.as_str().to_lowercase());
        }
    }
    let line = line_around(around, &own);
    let heading = || {
        let above = around[..line.start]
            .rsplit(['\n'])
            .flat_map(|line| line.rsplit("\\n"));
        // The first line of a JSON string stands behind the name of its field.
        let mut above = above.map(|line| match line.trim().rsplit_once("\":\"") {
            Some((_, text)) => text,
            None => line.trim(),
        });
        let heading = above.find(|line| is_heading(line));
        heading.and_then(|heading| state_of(heading, &(0..0)))
    };
    state_in(&line).or_else(heading) == Some(true)
}

/// The string around an item, between its quotes, if it is one line.
fn string_around(text: &str, own: &Range<usize>) -> Option<Range<usize>> {
    const QUOTES: [char; 2] = ['"', '\''];
    let start = text[..own.start].rfind(QUOTES)? + 1;
    let end = own.end + text[own.end..].find(QUOTES)?;
    let string = &text[start..end];
    let is_line = !string.contains('\n') && !string.contains("\\n");
    is_line.then_some(start..end)
}

fn is_heading(line: &str) -> bool {
    let is_bold = |mark| line.starts_with(mark) && line.ends_with(mark);
    line.starts_with('#')
        || line.trim_end_matches(['*', '_']).ends_with(':')
        || is_bold("**")
        || is_bold("__")
}

/// Whether the mark beside an item, best the one before it, ticks it.
fn mark_beside(line: &str, own: &Range<usize>) -> Option<bool> {
    let (before, behind) = (&line[..own.start], &line[own.end..]);
    let marks = || {
        let ticks = TICKS.iter().map(|mark| (*mark, true));
        ticks.chain(NO_TICKS.iter().map(|mark| (*mark, false)))
    };
    let last = marks().filter_map(|(mark, ticks)| Some((before.rfind(mark)?, ticks)));
    let first = marks().filter_map(|(mark, ticks)| Some((behind.find(mark)?, ticks)));
    let found = last.max().or_else(|| first.min());
    found.map(|(_, ticks)| ticks)
}

/// Whether the words around an item in its sentences, the nearest first, tick it; of a heading, which
/// has no item, all of its words.
fn state_of(line: &str, own: &Range<usize>) -> Option<bool> {
    let mut words: Vec<(String, Position)> = Vec::new();
    each_word(line, |word, at| words.push((word.to_owned(), at)));
    let is_own = |at: &Position| own.contains(&at.start);
    let mut item = words.iter().filter(|(_, at)| is_own(at)).map(|(_, at)| *at);
    let first = item.next();
    let last = item.next_back().or(first);
    let is_tick = |(word, at): &(String, Position)| holds(TICKED, word) && !is_own(at);
    // "Todo 3: done" is told in one clause.
    let label = line.get(own.end..).filter(|_| first.is_some());
    let label = label.is_some_and(|behind| behind.trim_start_matches('"').starts_with(':'));
    let behind = words.iter().find(|(_, at)| at.start >= own.end);
    let is_label = label && behind.is_some_and(is_tick);
    let is_ticked_beside = |index: usize| {
        let clause = words[index].1.clause;
        let joins = |(word, at): &(String, Position)| holds(JOINS, word) && !is_own(at);
        is_label && last.is_some_and(|last| last.clause == clause)
            || words.iter().enumerate().any(|(tick, word)| {
                let between = &words[tick.min(index)..tick.max(index)];
                word.1.clause == clause && is_tick(word) && !between.iter().any(joins)
            })
    };
    let shares: Vec<usize> = SHARE.matches(line).filter_map(|it| partly(&it)).collect();
    let mut nearest: Option<(usize, bool, bool)> = None;
    let (mut clause, mut not_yet) = (0, false);
    for (index, told) in words.iter().enumerate() {
        let (word, at) = told;
        let (mut distance, mut is_elsewhere) = (0, is_own(at));
        if let (Some(first), Some(last)) = (first, last) {
            let after = at.clause.saturating_sub(last.clause);
            distance = first.clause.saturating_sub(at.clause).max(after);
            is_elsewhere |= at.sentence < first.sentence || at.sentence > last.sentence;
        }
        if at.clause != clause {
            (clause, not_yet) = (at.clause, false);
        }
        let is_ticked = is_tick(told);
        let next = words.get(index + 1).map(|(word, _)| &**word);
        // "Not done", "to be done", "1 of 2 done", "done: no".
        let done = is_ticked && !not_yet && !matches!(next, Some("false" | "no" | "null"));
        if !is_own(at) {
            not_yet |= shares.contains(&at.start) || is_negation(word) || holds(NOT_YET, word);
        }
        let is_weak = holds(OPEN_BESIDE, word);
        if is_elsewhere || !(is_ticked || is_weak || holds(OPEN, word)) {
            continue;
        }
        let before = index.checked_sub(1).map(|before| &*words[before].0);
        let is_none = !is_ticked && before.is_some_and(|before| holds(NO_ITEM, before));
        if is_none || (holds(OPEN_UNTICKED, word) && is_ticked_beside(index)) {
            continue;
        }
        // Of two as near, the open one: a tick is claimed only where it is said.
        let state = (distance, done, is_weak);
        nearest = Some(nearest.map_or(state, |known| known.min(state)));
    }
    let has_tick = || words.iter().any(|(word, _)| holds(TICKED, word));
    let (_, done, is_weak) = nearest?;
    (!is_weak || (first.is_some() && has_tick())).then_some(done)
}

/// Where a share begins that is not the whole.
fn partly(share: &Captures<'_>) -> Option<usize> {
    let number = |group| share.get(group)?.as_str().parse::<u32>().ok();
    (number(1)? < number(2)?).then(|| share.get(1).map(|it| it.start()))?
}

/// A number with commas between its thousands; `None` if there is none to write.
pub(super) fn grouped(digits: &str) -> Option<String> {
    if digits.len() < 4 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let groups = digits.as_bytes().rchunks(3).rev();
    let groups: Vec<_> = groups.map(String::from_utf8_lossy).collect();
    Some(groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_may_say_which_value_came_later() {
        let check = |text: &str, superseded: bool| {
            let find = |value: &str, slot| {
                let start = text.find(value).unwrap();
                Version {
                    slot,
                    place: start..start + value.len(),
                    is_bound: true,
                }
            };
            let mut versions = vec![find("111", 0), find("222", 1)];
            versions.sort_by_key(|version| version.place.start);
            let old = versions
                .iter()
                .position(|version| version.slot == 0)
                .unwrap();
            assert_eq!(is_superseded(text, &versions, old), superseded, "{text}");
            assert!(!is_superseded(text, &versions, 1 - old), "{text}");
        };
        check("port: 111 -> 222", true);
        check("the port moved from 111 to 222", true);
        check("port 222 (was 111)", true);
        check("port 222, previously 111", true);
        for text in [
            "port 222 instead of 111",
            "port 222 (replaces 111)",
            "port 222 (old: 111)",
            "port 222 because 111 was taken",
            "port 222 rather than 111",
            "port 222; 111 is obsolete",
            "port: 222\nold port: 111 (no longer in use)",
            "111 is not the port; 222 is",
            "~~111~~ port 222",
        ] {
            check(text, true);
        }
        check("port 111, not 222", false);
        check("port 111, no proxy, and 222", false);
        check("port 222 was replaced by 111", false);
        check("port 111. That was easy.\nport 222", false);
        check("port 222, port 111", false);
        check("port 111\nnow port 222", false);
        check("port 111, 222", false);
    }

    #[test]
    fn items_are_ticked_in_their_object_line_or_section() {
        let check = |text: &str, ticked: bool| {
            let start = text.find("wire it").unwrap();
            assert_eq!(is_ticked(text, &(start..start + 7)), ticked, "{text}");
        };
        check(
            r#"[{"status":"done","task":"x"},{"status":"open","task":"wire it"}]"#,
            false,
        );
        check(
            r#"[{"status":"open","task":"x"},{"status":"done","task":"wire it"}]"#,
            true,
        );
        check("- [x] wire it", true);
        check("- [ ] wire it", false);
        check("wire it: completed", true);
        check("not done: wire it", false);
        check("## Done\n- a\n- wire it", true);
        check("Done:\n- a\n\n## Left\n- wire it", false);
        check(r#"{"task":"wire it","completed":false}"#, false);
        check("{\"text\":\"## Done\\n- a\\n- wire it\"}", true);
        check("{\"text\":\"## Done\\n- a\\n**Left**\\n- wire it\"}", false);
        check("Work still to be done:\n- wire it", false);
        check("## What needs to be done next\n- wire it", false);
        check("Completed:\n- a\n\n**Remaining:**\n- wire it", false);
        check("**Completed**\n- wire it", true);
        check("Status: 1 of 2 done\n- wire it", false);
        check("- wire it — to be done", false);
        check("- [ ] wire it (once the tests are finished)", false);
        check("Completed: write. Pending: wire it.", false);
        check("Completed: write; pending: wire it; then rest", false);
        check("Next: wire it, after which the move is completed", false);
        check("The docs are done (a); wire it is left.", false);
        check("## Done\n- wire it to the left panel", true);
        check("wire it: done, without errors", true);
        check("- wire it ✅", true);
        check(
            r#"{"status":"ok","plan":"- [x] wire it\n- [ ] port it"}"#,
            true,
        );
        check(r#"{"status":"ok","plan":"- [x] wire it"}"#, true);
        check(
            r##"{"state":"active","text":"# Done\n- wire it\n# Open"}"##,
            true,
        );
        check(
            r#"[{"task":"wire it (a.rs)","status":"open"},{"task":"x","status":"done"}]"#,
            false,
        );
        check("Marked todo \"wire it\" as completed.", true);
        check("TODO wire it: completed", true);
        check("TODO wire it: port is completed", false);
        check("## Completed todo items\n- wire it", true);
        check("All pending items completed:\n- wire it", true);
        check("Port completed and wire it remaining", false);
        check("## 2024-11-02 completed\n- wire it", true);
        check("PR 12 for issue 34 completed wire it.", true);
        check("## 3/3 done\n- wire it", true);
        check("## 2/3 done\n- wire it", false);
        check("| wire it | done | none left |", true);
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped("7340192").as_deref(), Some("7,340,192"));
        assert_eq!(grouped("340192").as_deref(), Some("340,192"));
        assert_eq!(grouped("340"), None);
    }
}
