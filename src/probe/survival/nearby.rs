//! What stands around a sentence, and takes back what it says: a heading above, a line through it, the sentence behind it,
//! a state in its object.

use std::ops::Range;

use super::lists::{Cue, LISTS, WordClass};
use super::order::{ends_line, is_struck};
use super::sentence::{DENIED_WITHIN, Sentence, has_digit, is_alike};
use super::words::{sentences, words_of};

/// Bytes before a sentence in which its headings are, and behind it in which the next one is.
const WITHIN: usize = 1_024;

/// Words of a heading, and of the beginning of a sentence that takes back the one before.
const HEADING_WORDS: usize = 12;

/// Words of the next sentence in which it says that it speaks of the one before.
const REFERS_WITHIN: usize = 2;

/// Whether what a sentence says of a rule of these words, and of which a word starts at this byte, is taken back around it.
pub(super) fn is_taken_back(text: &str, at: usize, rule: &[String]) -> bool {
    is_struck(text, at)
        || is_set_aside(text, at, rule)
        || is_inactive(text, at, rule)
        || next_sentence(text, at)
            .is_some_and(|next| takes_back(&text[at..next.start], &text[next]))
}

/// The headings above a place: the nearest one of Markdown, and a line of the same paragraph that ends in a colon.
fn headings(text: &str, at: usize) -> impl Iterator<Item = &str> {
    let from = text.ceil_char_boundary(at.saturating_sub(WITHIN));
    let above = text[from..at].rsplit('\n').skip(1).map(str::trim);
    let mut lines = above.clone();
    let heading = lines.find(|line| line.starts_with('#'));
    let paragraph = above.skip_while(|line| line.is_empty());
    let mut own = paragraph.take_while(|line| !line.is_empty() && !line.starts_with('#'));
    own.find(|line| line.trim_end_matches('*').ends_with([':', '：'])).into_iter().chain(heading)
}

/// Whether a heading above a place says that what stands below it, a rule or a key of these words, holds no more.
pub(super) fn is_set_aside(text: &str, at: usize, known: &[String]) -> bool {
    let own = Sentence::read(super::sentence_at(text, at));
    headings(text, at).any(|heading| revokes(heading, &own, known))
}

/// Whether it takes back what stands below it: by a word of revocation, or with nothing beside one word (`## Deprecated`). A
/// word that the sentence below or what is looked for has, too, is what it is about: `## Expired tokens`.
fn revokes(heading: &str, own: &Sentence, known: &[String]) -> bool {
    let words = words_of(heading);
    let cues = LISTS.cues(heading, &words);
    let bare = is_bare(&words, &cues);
    words.len() <= HEADING_WORDS
        && cues.iter().any(|cue| {
            // Below `Replaced by:` stands what holds now.
            let lapsed = bare && cue.class == WordClass::Lapsed && !cue.text.ends_with("_by");
            (lapsed || is_revoking(&cues, cue))
                && !own.says(cue)
                && !known.iter().any(|word| is_alike(word, &cue.text))
        })
}

fn is_revoking(cues: &[Cue], cue: &Cue) -> bool {
    let mut denials = cues.iter().filter(|other| other.class == WordClass::Deny);
    cue.class == WordClass::Revoke
        && !denials.any(|other| other.is_right_before(cue, DENIED_WITHIN))
}

/// Whether the object of JSON around a place says that it is not in force. What the rule itself says is no state of it.
fn is_inactive(text: &str, at: usize, rule: &[String]) -> bool {
    let (around, place) = super::around(text, &(at..at));
    let object = super::object_around(around, &place);
    object.is_some_and(|object| {
        let own = &around[object];
        let cues = LISTS.cues(own, &words_of(own));
        let known = LISTS.cues("", rule);
        cues.iter().any(|cue| {
            cue.class == WordClass::Inactive && !known.iter().any(|own| own.text == cue.text)
        })
    })
}

/// The sentence behind the one around a place.
fn next_sentence(text: &str, at: usize) -> Option<Range<usize>> {
    let end = text.floor_char_boundary((at + 2 * WITHIN).min(text.len()));
    let next = sentences(&text[at..end]).into_iter().nth(1)?;
    Some(at + next.start..at + next.end)
}

/// Whether a sentence says that the one before it holds no more. Behind a quotation in a sentence the rest of that is it.
fn takes_back(before: &str, sentence: &str) -> bool {
    let words = words_of(sentence);
    let cues = LISTS.cues(sentence, &words);
    let quotation = before.strip_suffix(' ').unwrap_or_default();
    let goes_on = quotation.ends_with(['"', '\u{201d}', '\'', '`'])
        && sentence.starts_with(char::is_lowercase);
    let mut revoking = cues.iter().filter(|cue| is_revoking(&cues, cue));
    (!ends_line(before) && is_bare(&words, &cues))
        || cues.iter().any(|cue| cue.class == WordClass::Inactive && cue.at == Some(0))
        || ((goes_on || refers(&words, &cues)) && revoking.any(|cue| cue.at < Some(HEADING_WORDS)))
}

/// Whether a clause, or the sentence that a text begins with, only takes back what stands before it.
pub(super) fn is_lapsed(text: &str) -> bool {
    let near = &text[..text.floor_char_boundary(WITHIN.min(text.len()))];
    let words = words_of(&near[sentences(near).swap_remove(0)]);
    is_bare(&words, &LISTS.cues("", &words))
}

/// Whether a sentence says nothing but that something holds no more: `Superseded.` Of what, stands before it.
fn is_bare(words: &[String], cues: &[Cue]) -> bool {
    let lapsed = cues.iter().filter(|cue| cue.class == WordClass::Lapsed || is_revoking(cues, cue));
    let mut phrases = cues.iter().filter(|cue| cue.class == WordClass::Lapsed && !cue.is_word());
    let begins = phrases.any(|cue| cue.at == Some(0));
    let mut others = words.iter().enumerate().filter(|(at, word)| {
        !lapsed.clone().any(|cue| cue.place().contains(at))
            && !LISTS.has(&[WordClass::Stop, WordClass::Months, WordClass::Along], word)
            && !has_digit(word)
    });
    begins || (lapsed.clone().next().is_some() && others.next().is_none())
}

/// Whether a sentence begins with a word for the one before: `it was`, and not `it` of another noun as in `this file`.
fn refers(words: &[String], cues: &[Cue]) -> bool {
    cues.iter().filter(|cue| cue.class == WordClass::Refers).any(|cue| {
        let end = cue.place().end;
        words.get(end).is_some_and(|word| {
            LISTS.has(&[WordClass::Stop], word) || cues.iter().any(|cue| cue.at == Some(end))
        }) && cue.at < Some(REFERS_WITHIN)
    })
}
