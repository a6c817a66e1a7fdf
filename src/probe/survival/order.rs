//! The order that a text itself gives: which of two values came later, and which items are done.
//!
//! What is exact decides: an arrow, a value struck out, a mark, a field. Words do where they are of one list only
//! (`words.toml`); else it is not known.

use std::collections::BTreeMap;
use std::ops::Range;

use super::lists::{Cue, LISTS, WordClass};
use super::nearby::is_lapsed;
use super::words::{each_word, words_of};
use super::{around, line_around, object_around};
use crate::probe::LazyPattern;

/// Arrows point from the older value to the newer.
const ARROWS: &[&str] = &["->", "=>", "→", "⇒"];

/// Words behind a value in which it is taken back.
const SAID_WITHIN: usize = 4;

/// Words before a value in which it is marked.
const MARKED_WITHIN: usize = 3;

/// Signs that end a clause.
const CLAUSE_ENDS: [char; 6] = [',', ';', '(', '—', '，', '；'];

/// Signs that end a clause in brackets.
const ASIDE_ENDS: [char; 4] = [')', ',', ';', ':'];

/// How many of how many are done, where it is not all; a date is none.
static SHARE: LazyPattern = LazyPattern::new(
    r"(?:^|[^\w./-])(\d{1,6}) ?(?:/|(?:out )?of(?: the)?) ?(\d{1,6})(?:$|[^\w/-])",
);

/// The number of an item of a list.
static NUMBERS: LazyPattern = LazyPattern::new(r"(?:^|\s)\(?\d{1,2}[.)]\s");

/// How an item is ticked in a list, and how it is not.
const TICKS: &[&str] = &["[x]", "[X]", "✓", "✔", "☑", "✅"];
const NO_TICKS: &[&str] =
    &["[ ]", "[-]", "[~]", "[>]", "☐", "◻", "⬜", "🔲", "⏳", "🚧", "❌", "✗", "✘"];

/// The state of an item as its object names it.
static STATE: LazyPattern = LazyPattern::new(
    r#"["'](?:status|state|done|completed|finished|checked)\\?["']\s*:\s*\\?["']?([A-Za-z_-]+)"#,
);

/// Whether a value holds, as the words beside it say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueState {
    /// Nothing says that it does not.
    Plain,
    /// It holds, and others beside it do not.
    Current,
    /// It does not hold, or holds no more.
    Former,
    /// Words say both.
    Unclear,
    /// Nothing stands behind it but that something holds no more: `(reverted)`.
    Lapsed,
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

/// How the value of this index stands, seen from the values of its sentence, given in their order. `is_one_of` says that
/// the text has other values of its key.
pub(super) fn standing(
    text: &str,
    sentence: &Range<usize>,
    values: &[Range<usize>],
    own: usize,
    is_one_of: bool,
) -> ValueState {
    let value = &text[values[own].clone()];
    let mut others: Vec<usize> = (0..values.len()).collect();
    others.retain(|at| text[values[*at].clone()] != *value);
    let several = is_one_of || !others.is_empty();
    let mut marks = others.iter().map(|at| marked(text, sentence, values, *at, several));
    match marked(text, sentence, values, own, several) {
        ValueState::Plain if marks.clone().any(|mark| mark == ValueState::Current) => {
            ValueState::Former
        }
        ValueState::Plain if !others.is_empty() && marks.all(|mark| mark == ValueState::Former) => {
            ValueState::Current
        }
        mark => mark,
    }
}

/// How a value is marked: struck out, behind an arrow or before one; by the nearest word before it, up to the value there;
/// and by those behind it in its clause. Where it is alone, only words decide that deny it or take it back.
fn marked(
    text: &str,
    sentence: &Range<usize>,
    values: &[Range<usize>],
    at: usize,
    is_one_of: bool,
) -> ValueState {
    let value = &values[at];
    let last = at.checked_sub(1).map(|last| values[last].end);
    let next = values.get(at + 1).map(|next| next.start);
    let before = &text[last.unwrap_or(sentence.start)..value.start];
    let behind = &text[value.end..next.unwrap_or(sentence.end).max(value.end)];
    if is_struck(text, value.start) || (next.is_some() && has_arrow(behind)) {
        return ValueState::Former;
    }
    if last.is_some() && has_arrow(before) {
        return ValueState::Current;
    }
    match nearest_before(before, is_one_of) {
        Some(WordClass::Denied | WordClass::FormerBefore) => return ValueState::Former,
        Some(WordClass::CurrentBefore) => return ValueState::Current,
        Some(_) => return ValueState::Unclear,
        None => {}
    }
    let aside =
        behind.trim_start().strip_prefix('(').and_then(|aside| aside.split(ASIDE_ENDS).next());
    if aside.is_some_and(is_lapsed) {
        return if is_one_of { ValueState::Former } else { ValueState::Lapsed };
    }
    let clause = behind.split(CLAUSE_ENDS).next().unwrap_or_default();
    if next.is_some() && clause.len() == behind.len() {
        // Words between two values of a clause are those of the second.
        return match nearest_before(behind, true) {
            Some(WordClass::Either) => ValueState::Unclear,
            _ => ValueState::Plain,
        };
    }
    let words = words_of(clause);
    let cues = LISTS.cues(clause, &words[..words.len().min(SAID_WITHIN)]);
    // "… was withdrawn" is said of the value; "E17 expired handle" is not.
    let said = words.first().is_some_and(|word| LISTS.has(&[WordClass::Stop], word));
    match () {
        () if said && has(&cues, WordClass::Revoke) => ValueState::Former,
        () if is_one_of && has(&cues, WordClass::FormerBehind) => ValueState::Former,
        () if is_one_of && has(&cues, WordClass::CurrentBehind) => ValueState::Current,
        () if has(&LISTS.cues(clause, &words), WordClass::DeniedBehind)
            || is_doubted(before, behind) =>
        {
            ValueState::Unclear
        }
        () if next.is_none() && !ends_line(behind) && is_lapsed(&text[sentence.end..]) => {
            ValueState::Lapsed
        }
        () => ValueState::Plain,
    }
}

/// Whether a value between these is only guessed, or asked.
fn is_doubted(before: &str, behind: &str) -> bool {
    let clause = before.rsplit(CLAUSE_ENDS).next().unwrap_or_default();
    let asked = behind.strip_prefix('?');
    has(&LISTS.cues(clause, &words_of(clause)), WordClass::Guess)
        || asked.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn has_arrow(text: &str) -> bool {
    ARROWS.iter().any(|arrow| text.contains(arrow))
}

/// The class of the mark of a value that ends a text: of the nearest one, a few words away at most. A denial stands right
/// before the value, or before a word that says nothing: `not on`.
fn nearest_before(text: &str, is_one_of: bool) -> Option<WordClass> {
    if text.trim_end().ends_with("!=") {
        return Some(WordClass::Denied);
    }
    let clause = text.rsplit(CLAUSE_ENDS).next().unwrap_or_default();
    let words = words_of(clause);
    let stop = words.last().is_some_and(|word| LISTS.has(&[WordClass::Stop], word));
    let aside = text.strip_suffix(clause).is_some_and(|text| text.ends_with('('));
    let within = |class| match class {
        WordClass::Denied => 1 + usize::from(stop),
        WordClass::FormerBefore if is_one_of => MARKED_WITHIN,
        WordClass::FormerBefore if aside => 1,
        WordClass::CurrentBefore if is_one_of => MARKED_WITHIN - 1,
        WordClass::Either if is_one_of => 1,
        _ => 0,
    };
    let cues = LISTS.cues(clause, &words);
    let placed = cues.iter().filter_map(|cue| {
        let away = words.len() - cue.place().end.min(words.len());
        (cue.at.is_some() && away < within(cue.class)).then_some((away, cue.class))
    });
    // Of two of one place the one is a denial.
    let nearest = placed.min_by_key(|(away, class)| (*away, *class != WordClass::Denied));
    let mut unspaced =
        [WordClass::Denied, WordClass::FormerBefore, WordClass::CurrentBefore].into_iter();
    let own = nearest.map(|(_, class)| class);
    own.or_else(|| unspaced.find(|class| within(*class) > 0 && LISTS.ends(*class, clause)))
}

/// Whether a place is between two pairs of tildes of its line.
pub(super) fn is_struck(text: &str, at: usize) -> bool {
    let (around, place) = around(text, &(at..at));
    let line = line_around(around, &place);
    let [before, behind] = [&around[line.start..place.start], &around[place.start..line.end]];
    before.matches("~~").count() % 2 == 1 && behind.contains("~~")
}

fn has(cues: &[Cue], class: WordClass) -> bool {
    cues.iter().any(|cue| cue.class == class)
}

/// The state of the item at `place`: by its JSON string of one line, else by the object of this string, else by its line,
/// else by the heading above. What no word is said of is open.
pub(super) fn item_state(text: &str, place: &Range<usize>) -> ItemState {
    if is_struck(text, place.start) {
        return ItemState::Done;
    }
    let (around, own) = around(text, place);
    let line = line_around(around, &own);
    let [lead, item] = item_around(around, &line, &own);
    in_object(around, &own)
        .or_else(|| beside(around, &item, &own))
        .or_else(|| in_words(&around[lead], &(0..0)))
        .or_else(|| in_words(heading_above(&around[..line.start])?, &(0..0)))
        .unwrap_or(ItemState::Open)
}

/// The words before a list in one line, and its item around a place; the line where it has no such list.
fn item_around(text: &str, line: &Range<usize>, own: &Range<usize>) -> [Range<usize>; 2] {
    let marks = NUMBERS.matches(&text[line.clone()]);
    let marks: Vec<usize> =
        marks.filter_map(|mark| Some(line.start + mark.get(0)?.start())).collect();
    let before = marks.iter().rfind(|mark| **mark < own.start);
    let behind = marks.iter().find(|mark| **mark >= own.end);
    match (before, behind) {
        (Some(start), end) if marks.len() > 1 => {
            [line.start..marks[0], *start..end.copied().unwrap_or(line.end)]
        }
        _ => [line.start..line.start, line.clone()],
    }
}

/// The state in the JSON string of one line, or in the object of this string.
fn in_object(around: &str, own: &Range<usize>) -> Option<ItemState> {
    let (string, object) = string_around(around, own).zip(object_around(around, own))?;
    beside(around, &string, own).or_else(|| {
        let mut sides = [own.end..object.end, object.start..own.start].into_iter();
        let found = sides.find_map(|side| STATE.matches(&around[side]).next())?;
        let state = found.get(1)?.as_str().to_lowercase();
        Some(ItemState::of(LISTS.has(&[WordClass::Ticked], &state)))
    })
}

/// The state in this part of a text, by its marks, else by its words.
fn beside(around: &str, part: &Range<usize>, own: &Range<usize>) -> Option<ItemState> {
    let place = own.start - part.start..own.end - part.start;
    let text = &around[part.clone()];
    mark_beside(text, &place).map(ItemState::of).or_else(|| in_words(text, &place))
}

/// The last heading of a text; the first line of a JSON string stands behind the name of its field.
pub(super) fn heading_above(text: &str) -> Option<&str> {
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
    (!ends_line(string)).then_some(start..end)
}

/// Whether a line ends in a text, perhaps by the escape `\n`.
pub(super) fn ends_line(text: &str) -> bool {
    text.contains('\n') || text.contains("\\n")
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
    let all = marks.clone();
    let last = all.filter_map(|(mark, ticks)| Some((before.rfind(mark)?, ticks)));
    let first = marks.filter_map(|(mark, ticks)| Some((behind.find(mark)?, ticks)));
    last.max().or_else(|| first.min()).map(|(_, ticks)| ticks)
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
        let denied = has(&cues, WordClass::Forbid) || has(&cues, WordClass::NotYet);
        done |= has(&cues, WordClass::Done) && !denied;
        open |= has(&cues, WordClass::Open) || (has(&cues, WordClass::Done) && denied);
        weak |= has(&cues, WordClass::OpenHeading);
    }
    let unspaced = LISTS.cues(line, &[]);
    open |= has(&unspaced, WordClass::Open);
    done |= !open && has(&unspaced, WordClass::Done);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_may_say_which_of_two_values_holds() {
        let holds = |text: &str, value: &str| {
            let places = ["111", "222"].map(|value| text.find(value).unwrap());
            let mut values = places.map(|start| start..start + 3);
            values.sort_by_key(|place| place.start);
            let own = values.iter().position(|place| text[place.clone()] == *value).unwrap();
            let sentence = 0..text.len();
            match standing(text, &sentence, &values, own, false) {
                ValueState::Current => "yes",
                ValueState::Former => "no",
                ValueState::Plain | ValueState::Unclear | ValueState::Lapsed => "?",
            }
        };
        for text in [
            "port: 111 -> 222",
            "the port moved from 111 to 222",
            "port 222 (was 111)",
            "port 222, previously 111",
            "port 222 instead of 111",
            "instead of 111 the port is 222",
            "port 222 (replaces 111)",
            "port 222 (old: 111)",
            "port 222 because 111 was taken",
            "port 222 rather than 111",
            "port 222; 111 is obsolete",
            "port 111 was replaced by 222",
            "the port was 111, now 222",
            "~~111~~ port 222",
            "port 222, not 111",
            "the port went back from 111 to 222",
            "111 was tried, but 222 is current",
            "der Port war früher 111 und ist jetzt 222",
        ] {
            assert_eq!([holds(text, "111"), holds(text, "222")], ["no", "yes"], "{text}");
        }
        for text in ["port 111, 222", "port 111, no proxy, and 222", "port 111 or 222"] {
            assert_eq!([holds(text, "111"), holds(text, "222")], ["?", "?"], "{text}");
        }
    }

    #[test]
    fn an_item_has_the_state_of_its_object_line_or_section() {
        use ItemState::{Done, Open, Unclear};
        for (text, expected) in [
            (r#"[{"status":"done","task":"x"},{"status":"open","task":"wire it"}]"#, Open),
            (r#"[{"status":"open","task":"x"},{"status":"done","task":"wire it"}]"#, Done),
            (r#"{"task":"wire it","completed":false}"#, Open),
            (r#"[{"task":"wire it (a.rs)","status":"open"},{"task":"x","status":"done"}]"#, Open),
            (r#"{"status":"ok","plan":"- [x] wire it\n- [ ] port it"}"#, Done),
            (r##"{"state":"active","text":"# Done\n- wire it\n# Open"}"##, Done),
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
}
