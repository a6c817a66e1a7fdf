//! The order that a text itself gives: which of two values came later, and which items are done.
//!
//! What is exact decides: an arrow, a value struck out, a mark, a field. Words do where they are of one list only
//! (`words.toml`); else it is not known.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lists::{Class, Cue, LISTS};
use super::words::{each_word, sentences, words_of};
use super::{Match, around, line_around, object_around};
use crate::probe::Pattern;

/// Arrows point from the older value to the newer.
const ARROWS: &[&str] = &["->", "=>", "→", "⇒"];

/// Words behind a value in which it is taken back.
const SAID_WITHIN: usize = 4;

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
    let last = at.checked_sub(1).and_then(|at| versions.get(at));
    let next = versions.get(at + 1);
    let [newer_before, newer_behind] =
        [last, next].map(|other| other.is_some_and(|other| other.slot > older.slot));
    if !newer_before && !newer_behind {
        return false;
    }
    let (around, value) = around(text, &older.place);
    let from = older.place.start - value.start;
    let line = line_around(around, &value);
    // No further than to the values beside it.
    let start = last.map_or(0, |last| last.place.end.saturating_sub(from));
    let start = line.start.max(start).min(value.start);
    let limit = next.map_or(usize::MAX, |next| next.place.start - from);
    let before = &around[start..value.start];
    let behind = &around[value.end..line.end.min(limit).max(value.end)];
    if before.ends_with("~~") && behind.starts_with("~~") {
        return true;
    }
    let points = ARROWS.iter().any(|arrow| behind.contains(arrow));
    (newer_behind && limit <= line.end && points)
        || (!says(before, Class::Turned) && says(before, Class::FormerBefore))
        || says(&behind[sentences(behind)[0].clone()], Class::FormerBehind)
}

/// How the words beside a value in its clause take it back, if they do: denied (`48312, not 48213`, `no longer 48213`, `!= 48213`) or
/// struck out it is another, and it is not known where a word behind it may take it back (`48213 is obsolete`) or it is
/// one of two (`from 48213 to 48312`).
pub(super) fn taken_back(around: &str, value: &Range<usize>) -> Option<Match> {
    let line = line_around(around, value);
    let before = &around[line.start.min(value.start)..value.start];
    let behind = &around[value.end..line.end.max(value.end)];
    let is_struck = before.ends_with("~~") && behind.starts_with("~~");
    if is_struck || before.trim_end().ends_with("!=") || is_denied(before) {
        return Some(Match::Changed);
    }
    let sentence = &behind[sentences(behind)[0].clone()];
    let clause = sentence.split([',', ';', '(']).next().unwrap_or_default();
    let words = words_of(clause);
    let first = words.first().map_or("", String::as_str);
    let last = words_of(before).pop().unwrap_or_default();
    let is_moved = LISTS
        .group(Class::Moved, &last)
        .is_some_and(|pair| *pair == [&*last, first]);
    // "… was withdrawn" is said of the value; "E17 expired handle" is not.
    let said_of = &words[..words.len().min(SAID_WITHIN)];
    let is_revoked =
        LISTS.has(&[Class::Stop], first) && has(&LISTS.cues("", said_of), Class::Revoke);
    let is_open = is_moved || is_revoked || says(clause, Class::DeniedBehind);
    is_open.then_some(Match::Unbound)
}

/// Whether a text ends with a denial, behind which a word may stand that says nothing: `not on`.
fn is_denied(before: &str) -> bool {
    let sentence = &before[sentences(before).pop().unwrap_or_default()];
    let words = words_of(sentence);
    let is_front = words
        .last()
        .is_some_and(|word| LISTS.has(&[Class::Stop], word));
    ends_denied(&words)
        || (is_front && ends_denied(&words[..words.len() - 1]))
        || LISTS.ends(Class::Denied, sentence)
}

/// Whether the last of these words are a denial.
fn ends_denied(words: &[String]) -> bool {
    let cues = LISTS.cues("", words);
    cues.iter().any(|cue| {
        let length = cue.text.split('_').count();
        cue.class == Class::Denied && cue.at.is_some_and(|at| at + length == words.len())
    })
}

/// Whether a text has a cue of this class.
fn says(text: &str, class: Class) -> bool {
    has(&LISTS.cues(text, &words_of(text)), class)
}

fn has(cues: &[Cue], class: Class) -> bool {
    cues.iter().any(|cue| cue.class == class)
}

/// The state of the item at `place`: by its JSON string of one line, else by the object of this string, else by its line,
/// else by the heading above. What no word is said of is open.
pub(super) fn item_state(text: &str, place: &Range<usize>) -> ItemState {
    let (around, own) = around(text, place);
    let line = line_around(around, &own);
    in_object(around, &own)
        .or_else(|| beside(around, &line, &own))
        .or_else(|| in_words(heading_above(&around[..line.start])?, &(0..0)))
        .unwrap_or(ItemState::Open)
}

/// The state in the JSON string of one line, or in the object of this string.
fn in_object(around: &str, own: &Range<usize>) -> Option<ItemState> {
    let (string, object) = string_around(around, own).zip(object_around(around, own))?;
    beside(around, &string, own).or_else(|| {
        let mut sides = [own.end..object.end, object.start..own.start].into_iter();
        let found = sides.find_map(|side| STATE.matches(&around[side]).next())?;
        let state = found.get(1)?.as_str().to_lowercase();
        Some(ItemState::of(LISTS.has(&[Class::Ticked], &state)))
    })
}

/// The state in this part of a text, by its marks, else by its words.
fn beside(around: &str, part: &Range<usize>, own: &Range<usize>) -> Option<ItemState> {
    let place = own.start - part.start..own.end - part.start;
    let text = &around[part.clone()];
    let ticked = mark_beside(text, &place).map(ItemState::of);
    ticked.or_else(|| in_words(text, &place))
}

/// The last heading of a text; the first line of a JSON string stands behind the name of its field.
fn heading_above(text: &str) -> Option<&str> {
    let lines = text.rsplit('\n').flat_map(|line| line.rsplit("\\n"));
    let mut bare = lines.map(|line| match line.trim().rsplit_once("\":\"") {
        Some((_, text)) => text,
        None => line.trim(),
    });
    bare.find(|line| is_heading(line))
}

/// The string around an item, between its quotes, if it is one line.
fn string_around(text: &str, own: &Range<usize>) -> Option<Range<usize>> {
    const QUOTES: [char; 2] = ['"', '\''];
    let start = text[..own.start].rfind(QUOTES)? + 1;
    let end = own.end + text[own.end..].find(QUOTES)?;
    let string = &text[start..end];
    (!string.contains('\n') && !string.contains("\\n")).then_some(start..end)
}

fn is_heading(line: &str) -> bool {
    let mut bold = ["**", "__"].iter();
    line.starts_with('#')
        || line.trim_end_matches(['*', '_']).ends_with(':')
        || bold.any(|mark| line.starts_with(mark) && line.ends_with(mark))
}

/// Whether the mark beside an item, best the one before it, ticks it.
fn mark_beside(line: &str, own: &Range<usize>) -> Option<bool> {
    let (before, behind) = (&line[..own.start], &line[own.end..]);
    let ticks = TICKS.iter().map(|mark| (*mark, true));
    let marks = ticks.chain(NO_TICKS.iter().map(|mark| (*mark, false)));
    let last = marks
        .clone()
        .filter_map(|(mark, ticks)| Some((before.rfind(mark)?, ticks)));
    let first = marks.filter_map(|(mark, ticks)| Some((behind.find(mark)?, ticks)));
    let found = last.max().or_else(|| first.min());
    found.map(|(_, ticks)| ticks)
}

/// What the words of an item's sentence say of it; of a heading, which has no item, all of its words.
fn in_words(line: &str, own: &Range<usize>) -> Option<ItemState> {
    if partly(line) {
        return Some(ItemState::Open);
    }
    // By sentence and clause.
    let mut clauses: BTreeMap<(usize, usize), Vec<String>> = BTreeMap::new();
    let mut own_sentence = None;
    each_word(line, |word, at| {
        if own.contains(&at.start) {
            own_sentence = own_sentence.or(Some(at.sentence));
        } else {
            let clause = clauses.entry((at.sentence, at.clause)).or_default();
            clause.push(word.to_owned());
        }
    });
    clauses.retain(|(sentence, _), _| own_sentence.is_none_or(|own| own == *sentence));
    let (mut done, mut open, mut weak) = (false, false, false);
    for words in clauses.values() {
        let cues = LISTS.cues("", words);
        let denied = has(&cues, Class::Forbid) || has(&cues, Class::NotYet);
        done |= has(&cues, Class::Done) && !denied;
        open |= has(&cues, Class::Open) || (has(&cues, Class::Done) && denied);
        weak |= has(&cues, Class::OpenHeading);
    }
    let unspaced = LISTS.cues(line, &[]);
    open |= has(&unspaced, Class::Open);
    done |= !open && has(&unspaced, Class::Done);
    match (done, open) {
        (true, _) if open || weak => Some(ItemState::Unclear),
        (true, _) => Some(ItemState::Done),
        (false, true) => Some(ItemState::Open),
        (false, false) => (own.is_empty() && weak).then_some(ItemState::Open),
    }
}

/// Whether a line says that a part of several is done.
fn partly(line: &str) -> bool {
    SHARE.matches(line).any(|share| {
        let [done, all] = [1, 2].map(|group| share.get(group)?.as_str().parse::<u32>().ok());
        done.zip(all).is_some_and(|(done, all)| done < all)
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
