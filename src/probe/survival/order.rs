//! The order that a text itself gives: which of two values came later, and which items are done.
//!
//! What is exact decides: an arrow, a value struck out, a mark, a field. Words do where they are of one list only
//! (`words.toml`); else it is not known.

use std::ops::Range;

use super::lists::{Class, Cue, LISTS};
use super::words::each_word;
use super::{BINDING_BYTES, line_around, object_around};
use crate::probe::Pattern;

/// Arrows point from the older value to the newer.
const ARROWS: &[&str] = &["->", "=>", "→", "⇒"];

/// How many of how many are done, where it is not all; a date is none.
static SHARE: Pattern =
    Pattern::new(r"(?:^|[^\w./-])(\d{1,6}) ?(?:/|(?:out )?of(?: the)?) ?(\d{1,6})(?:$|[^\w/-])");

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
const TICKED_STATES: &[&str] = &[
    "checked",
    "closed",
    "complete",
    "completed",
    "done",
    "finished",
    "true",
];

/// One place of a value of a revised key.
#[derive(Debug)]
pub(super) struct Version {
    /// The slot of the value: a later value has a greater one.
    pub(super) slot: usize,
    pub(super) place: Range<usize>,
    pub(super) is_bound: bool,
}

/// The state of an item of a plan, as a text gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemState {
    Open,
    Done,
    /// Words say both.
    Unclear,
}

impl ItemState {
    fn of(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::Open }
    }
}

/// Whether the text says that a newer value replaced the one at this index.
///
/// `versions` are those of one key in the order of the text; each is compared with its neighbours.
pub(super) fn is_superseded(text: &str, versions: &[Version], at: usize) -> bool {
    let older = &versions[at];
    let newer = |at: usize| versions.get(at).filter(|it| it.slot > older.slot);
    let (last, next) = (at.checked_sub(1).and_then(newer), newer(at + 1));
    if last.is_none() && next.is_none() {
        return false;
    }
    let (around, value) = around(text, &older.place);
    let from = older.place.start - value.start;
    let line = line_around(around, &value);
    // No further than to the values beside it.
    let edge = at
        .checked_sub(1)
        .map_or(0, |at| versions[at].place.end.saturating_sub(from));
    let start = line.start.max(edge).min(value.start);
    let edge = versions.get(at + 1).map(|next| next.place.start - from);
    let end = line.end.min(edge.unwrap_or(line.end)).max(value.end);
    let (before, behind) = (&around[start..value.start], &around[value.end..end]);
    if before.ends_with("~~") && behind.starts_with("~~") {
        return true;
    }
    let is_next_behind = next.is_some() && edge.is_some_and(|edge| edge <= line.end);
    let cues = |text| of_first_sentence(text).1;
    let is = |class: Class, cues: &[Cue]| cues.iter().any(|cue| cue.class == class);
    let words_before = words_of(before);
    // "9090 was replaced by 8080" has another order.
    let is_turned = words_before.iter().any(|word| word == "by");
    (is_next_behind && ARROWS.iter().any(|arrow| behind.contains(arrow)))
        || (!is_turned && is(Class::FormerBefore, &LISTS.cues(before, &words_before)))
        || is(Class::FormerBehind, &cues(behind))
}

fn words_of(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, |word, _| words.push(word.to_owned()));
    words
}

/// The words of the first sentence of a text, and the cues among them.
fn of_first_sentence(text: &str) -> (Vec<String>, Vec<Cue>) {
    let (mut words, mut end) = (Vec::new(), text.len());
    each_word(text, |word, at| {
        if at.sentence == 0 {
            words.push(word.to_owned());
        } else {
            end = end.min(at.start);
        }
    });
    let cues = LISTS.cues(&text[..end], &words);
    (words, cues)
}

/// The text around a place, as far as anything binds, and the place in it.
fn around<'t>(text: &'t str, place: &Range<usize>) -> (&'t str, Range<usize>) {
    let from = text.floor_char_boundary(place.start.saturating_sub(BINDING_BYTES));
    let to = text.floor_char_boundary((place.end + BINDING_BYTES).min(text.len()));
    (&text[from..to], place.start - from..place.end - from)
}

/// The state of the item at `place`: by its JSON string of one line, else by the object of this string, else by its line,
/// else by the heading above. What no word is said of is open.
pub(super) fn item_state(text: &str, place: &Range<usize>) -> ItemState {
    let (around, own) = around(text, place);
    let beside = |part: &Range<usize>| {
        let own = own.start - part.start..own.end - part.start;
        let part = &around[part.clone()];
        mark_beside(part, &own)
            .map(ItemState::of)
            .or_else(|| in_words(part, &own))
    };
    let object = string_around(around, &own).zip(object_around(around, &own));
    if let Some((string, object)) = object {
        if let Some(state) = beside(&string) {
            return state;
        }
        let mut sides = [own.end..object.end, object.start..own.start].into_iter();
        let state = sides.find_map(|side| STATE.matches(&around[side]).next());
        if let Some(state) = state.and_then(|state| state.get(1)) {
            let state = state.as_str().to_lowercase();
            return ItemState::of(TICKED_STATES.contains(&state.as_str()));
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
        heading.and_then(|heading| in_words(heading, &(0..0)))
    };
    beside(&line).or_else(heading).unwrap_or(ItemState::Open)
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

/// What the words of an item's sentence say of it; of a heading, which has no item, all of its words.
fn in_words(line: &str, own: &Range<usize>) -> Option<ItemState> {
    let mut clauses: Vec<(usize, usize, Vec<String>)> = Vec::new();
    let mut own_sentence = None;
    each_word(line, |word, at| {
        if own.contains(&at.start) {
            own_sentence = own_sentence.or(Some(at.sentence));
            return;
        }
        match clauses.last_mut() {
            Some((sentence, clause, words)) if (*sentence, *clause) == (at.sentence, at.clause) => {
                words.push(word.to_owned());
            }
            _ => clauses.push((at.sentence, at.clause, vec![word.to_owned()])),
        }
    });
    let is_heading = own.is_empty();
    if partly(line) {
        return Some(ItemState::Open);
    }
    let (mut is_done, mut is_open, mut is_weak) = (false, false, false);
    clauses.retain(|(sentence, ..)| own_sentence.is_none_or(|own| own == *sentence));
    for (_, _, words) in clauses {
        let cues = LISTS.cues("", &words);
        let has = |class: Class| cues.iter().any(|cue| cue.class == class);
        let is_denied = has(Class::Forbid) || has(Class::NotYet);
        is_done |= has(Class::Done) && !is_denied;
        is_open |= has(Class::Open) || (has(Class::Done) && is_denied);
        is_weak |= has(Class::OpenHeading);
    }
    let unspaced = LISTS.cues(line, &[]);
    is_open |= unspaced.iter().any(|cue| cue.class == Class::Open);
    is_done |= !is_open && unspaced.iter().any(|cue| cue.class == Class::Done);
    match (is_done, is_open) {
        (true, true) => Some(ItemState::Unclear),
        (true, false) if is_weak => Some(ItemState::Unclear),
        (true, false) => Some(ItemState::Done),
        (false, true) => Some(ItemState::Open),
        (false, false) => (is_heading && is_weak).then_some(ItemState::Open),
    }
}

/// Whether a line says that a part of several is done.
fn partly(line: &str) -> bool {
    SHARE.matches(line).any(|share| {
        let number = |group| share.get(group)?.as_str().parse::<u32>().ok();
        number(1)
            .zip(number(2))
            .is_some_and(|(done, all)| done < all)
    })
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
    fn an_item_has_the_state_of_its_object_line_or_section() {
        use ItemState::{Done, Open, Unclear};
        for (text, expected) in [
            (
                r#"[{"status":"done","task":"x"},{"status":"open","task":"wire it"}]"#,
                Open,
            ),
            (
                r#"[{"status":"open","task":"x"},{"status":"done","task":"wire it"}]"#,
                Done,
            ),
            (r#"{"task":"wire it","completed":false}"#, Open),
            (
                r#"[{"task":"wire it (a.rs)","status":"open"},{"task":"x","status":"done"}]"#,
                Open,
            ),
            (
                r#"{"status":"ok","plan":"- [x] wire it\n- [ ] port it"}"#,
                Done,
            ),
            (
                r##"{"state":"active","text":"# Done\n- wire it\n# Open"}"##,
                Done,
            ),
            ("{\"text\":\"## Done\\n- a\\n**Left**\\n- wire it\"}", Open),
            ("- [x] wire it", Done),
            ("- [ ] wire it", Open),
            ("- wire it ✅", Done),
            ("- [ ] wire it (once the tests are finished)", Open),
            ("- wire it", Open),
            ("wire it: completed", Done),
            ("wire it: done, without errors", Done),
            ("not done: wire it", Open),
            ("- wire it — to be done", Open),
            ("Completed: write. Pending: wire it.", Open),
            ("## Done\n- a\n- wire it", Done),
            ("Done:\n- a\n\n## Left\n- wire it", Open),
            ("Work still to be done:\n- wire it", Open),
            ("Completed:\n- a\n\n**Remaining:**\n- wire it", Open),
            ("## Done\n- wire it to the left panel", Done),
            ("Status: 1 of 2 done\n- wire it", Open),
            ("## 2/3 done\n- wire it", Open),
            ("## 3/3 done\n- wire it", Done),
            ("## 2024-11-02 completed\n- wire it", Done),
            ("## 已完成\n- wire it", Done),
            ("## 未完成\n- wire it", Open),
            // Two items in a sentence, or two words.
            ("Completed: write; pending: wire it; then rest", Unclear),
            ("Next: wire it, after which the move is completed", Open),
            ("The docs are done (a); wire it is left.", Unclear),
            ("TODO wire it: completed", Unclear),
            ("All pending items completed:\n- wire it", Unclear),
        ] {
            let start = text.find("wire it").unwrap();
            assert_eq!(item_state(text, &(start..start + 7)), expected, "{text}");
        }
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(grouped("7340192").as_deref(), Some("7,340,192"));
        assert_eq!(grouped("340192").as_deref(), Some("340,192"));
        assert_eq!(grouped("340"), None);
    }
}
