//! The order that a text itself gives: which of two values came later, and which items are ticked
//! off.

use std::ops::Range;

use super::words::{each_word, is_negation};
use super::{BINDING_BYTES, line_around, object_around};
use crate::probe::holds;

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
const TICKED: &[&str] = &["completed", "done", "finished"];

/// How an item is ticked in a list.
const TICKS: &[&str] = &["[x]", "[X]", "✓", "✔", "☑", "✅"];

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

/// Whether the item at `place` is said to be done: in its JSON object, else in its line, else by
/// the heading above.
pub(super) fn is_ticked(text: &str, place: &Range<usize>) -> bool {
    let (around, own) = around(text, place);
    if let Some(object) = object_around(around, &own) {
        return ticks(&around[object.start..own.start]) || ticks(&around[own.end..object.end]);
    }
    let line = line_around(around, &own);
    if ticks(&around[line.start..own.start]) || ticks(&around[own.end..line.end]) {
        return true;
    }
    let heading = around[..line.start].lines().rev().find(|line| {
        let line = line.trim();
        line.starts_with('#') || line.ends_with(':')
    });
    heading.is_some_and(ticks)
}

fn ticks(text: &str) -> bool {
    let mut done = TICKS.iter().any(|tick| text.contains(tick));
    let mut negated = false;
    each_word(text, |word, _| {
        done |= TICKED.binary_search(&word).is_ok();
        negated |= is_negation(word);
    });
    done && !negated
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
    }

    #[test]
    fn lists_are_sorted_for_the_search() {
        assert!(TICKED.is_sorted());
        assert_eq!(grouped("7340192").as_deref(), Some("7,340,192"));
        assert_eq!(grouped("340192").as_deref(), Some("340,192"));
        assert_eq!(grouped("340"), None);
    }
}
