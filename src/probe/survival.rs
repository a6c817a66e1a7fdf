//! Survival: whether a planted value can still be read off a text, by string matching alone.
//!
//! [`Survival`] holds what was planted in one session and looks for it in one text at a time; each
//! distinct text is searched once, however many contexts hold it. It says that a value is *there*,
//! bound to its key, and nothing about what a model would answer.
//!
//! | kind | a match |
//! |---|---|
//! | `recall`, `decoy` | the value as a whole word; **bound** where at least half of the key's content words are in the same line or JSON object, or within 40 words |
//! | `constraint` | a sentence that speaks of the rule, with its anchors and its force: see `rules` |
//! | `artifact` | the whole path, for each path |
//! | `decision` | the choice as a value bound by its key, and the reason as a rule |
//! | `update`, `numeric` | each value that was ever said, bound by the key; which one comes last is a matter of the prompt, not of one text |
//! | `rejected-path` | the unguessable part of the reason, bound by what was tried |
//! | `error` | the code, and the file and line, each bound by what failed |
//! | `binding` | the value bound by its key, as for `recall` |
//! | `order` | each event bound by what it belongs to; their order is a matter of the prompt |
//! | `last-request` | each request word for word; which one comes last is a matter of the prompt |
//! | `open-handle` | each name bound by what it belongs to; which are open is a matter of the prompt |
//! | `obsolete` | the value in force bound by its key, and the withdrawal as a rule |
//! | `indirect` | the value bound by the key it was said with, as for `recall` |
//! | `two-step`, `act` | each of the values bound by its key |
//! | `open` | nothing is searched: its evidence is there, message by message, or not |
//! | `unanswerable` | nothing |
//! | `continuation` | each item, open or ticked off in its line or JSON object or by the heading above |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::kind::{Answers, Part, Search};
use super::{Fact, Probe};
use crate::patterns::{Boundary, Hit, Pattern, Patterns, PatternsError, PerText};
use crate::probe::Specified as _;
use crate::script::word_count;

mod anchors;
mod lists;
mod order;
mod rules;
mod words;

use order::ItemState;
pub(crate) use rules::{Marks, marks};
pub use words::content_word_recall;

/// The greatest distance, in words, at which words of a key bind its value.
const BINDING_WORDS: usize = 40;

/// Lines and JSON objects count as far as this many bytes to either side of a value: minified
/// files are one line of megabytes, and nothing in them binds across it.
const BINDING_BYTES: usize = 1_024;

/// Words in an answer beside as many as the rule has that it says.
const SAID_AROUND: usize = 4;

/// The number of occurrences of one value in one text that are searched for one that is bound. A
/// planted value occurs a few times; a text that occurs more often is a word and not a value.
const OCCURRENCES: usize = 256;

/// How a text holds something planted; of two matches in one text, the greater counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// What is said about a rule is not enough to know.
    Unsure,
    /// The value is there, its key is not.
    Unbound,
    /// The value is there beside its key, or the path is there.
    Bound,
    /// What is said about a rule has another value, is weaker, or takes it back.
    Changed,
    /// A sentence says the rule in other words: its anchors, and its force.
    Kept,
    /// The rule's own sentence is there.
    Stated,
}

/// Who wrote a text: it decides what counts as a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBy {
    /// It is the session's, as recorded: a rule counts only where it is stated.
    Session,
    /// A strategy or a summariser: a rule counts where it is said in other words, too.
    Compaction,
}

/// Whether a match preserves the fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum MatchStrength {
    /// Something is left, and whether it is the fact is not known.
    Unsure,
    /// Something else is said in its place.
    Changed,
    /// The fact is there.
    Strong,
}

impl Match {
    /// The strength of the match in a text; `None` where it does not count as one.
    pub fn strength(self, written_by: WrittenBy) -> Option<MatchStrength> {
        match (self, written_by) {
            (Self::Bound | Self::Stated, _) | (Self::Kept, WrittenBy::Compaction) => {
                Some(MatchStrength::Strong)
            }
            (Self::Unbound, _) | (Self::Unsure, WrittenBy::Compaction) => {
                Some(MatchStrength::Unsure)
            }
            (Self::Changed, WrittenBy::Compaction) => Some(MatchStrength::Changed),
            (Self::Kept | Self::Changed | Self::Unsure, WrittenBy::Session) => None,
        }
    }
}

/// One thing planted that a text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Index of the slot: see [`Survival::slots`].
    pub slot: usize,
    /// How the text holds it.
    pub found: Match,
    /// The byte of its last such occurrence; of a rule where the sentence begins.
    pub at: usize,
}

/// Everything planted in one session, ready to be searched for.
///
/// Everything that can be there or not is a *slot*: a value, a rule, one path of a list.
#[derive(Debug)]
pub struct Survival {
    /// For each probe, its slots: see [`Survival::slots`].
    slots: Vec<std::ops::Range<usize>>,
    /// For each slot, how it is searched for.
    searches: Vec<Search>,
    patterns: Patterns,
    /// The target of each pattern.
    targets: Vec<Target>,
    rules: rules::Rules,
    /// The slot of each rule.
    rule_slots: Vec<usize>,
    /// What recorded texts hold: rules only where they are stated.
    recorded: PerText<[Finding]>,
    /// What texts hold that a compaction wrote.
    written: PerText<[Finding]>,
}

/// The part that a pattern searches for.
#[derive(Debug)]
struct Target {
    /// Of an item of a plan the slot of the open one; the next is that of the done one.
    slot: usize,
    /// Index of the probe.
    probe: usize,
    search: Search,
    /// The content words of its key.
    key: Vec<String>,
}

impl Survival {
    /// Prepares the search for what `probes` ask about.
    pub fn new(probes: &[Probe]) -> Result<Self, PatternsError> {
        let mut slots = Vec::with_capacity(probes.len());
        let mut searches = Vec::new();
        let (mut patterns, mut targets) = (Vec::new(), Vec::new());
        let (mut rules, mut rule_slots) = (Vec::new(), Vec::new());
        for (index, probe) in probes.iter().enumerate() {
            let first = searches.len();
            for part in probe.fact.spec().parts {
                let slot = searches.len();
                let search = part.search;
                let mut texts = match search {
                    Search::Path => vec![canonical_path(part.text)],
                    Search::Rule | Search::Request | Search::Item => {
                        vec![sentence(part.text).to_owned()]
                    }
                    Search::Value | Search::Event | Search::Version | Search::Count => {
                        vec![part.text.to_owned()]
                    }
                };
                if search == Search::Count {
                    texts.extend(order::grouped(part.text));
                }
                let written: Vec<String> =
                    texts.iter().flat_map(|it| spellings(it, &part)).collect();
                texts.extend(written);
                // A value that only ends the one before it keeps its slot, and is never found.
                if part.unasked && search != Search::Event {
                    texts.clear();
                }
                for text in texts {
                    let boundary = match search {
                        Search::Path => Boundary::Path,
                        _ => Boundary::Word,
                    };
                    patterns.push(Pattern { text, boundary });
                    targets.push(Target {
                        slot,
                        probe: index,
                        search,
                        key: words::content_words(part.key),
                    });
                }
                if search == Search::Rule {
                    rules.push((part.text, part.key));
                    rule_slots.push(slot);
                }
                let width = if search == Search::Item { 2 } else { 1 };
                searches.extend(std::iter::repeat_n(search, width));
            }
            slots.push(first..searches.len());
        }
        Ok(Self {
            slots,
            searches,
            patterns: Patterns::new(patterns)?,
            targets,
            rules: rules::Rules::new(rules),
            rule_slots,
            recorded: PerText::default(),
            written: PerText::default(),
        })
    }

    /// The slots of the probe of this index. A list has one per path, in its order; a revised key
    /// one per value, oldest first, and so have requests and events; a plan two per item, open and
    /// done; a decision one for the choice and one for the reason; a failure one for its code and
    /// one for its place; handles, steps and arguments one each; a pair of instructions one for the
    /// value in force and one for the withdrawal.
    pub fn slots(&self, probe: usize) -> std::ops::Range<usize> {
        self.slots.get(probe).cloned().unwrap_or(0..0)
    }

    /// The slots of the probe of this index that its question is about, when it is asked before that
    /// message. A list grows: only what is on it by then is asked for. Of what has an order only the
    /// right answer is.
    pub fn asked_slots(&self, probe: usize, fact: &Fact, before: usize) -> Vec<usize> {
        let spec = fact.spec();
        let slots = self.slots(probe);
        let width = slots.len() / spec.parts.len().max(1);
        let slots = slots.step_by(width.max(1)).zip(&spec.parts);
        let current = slots.filter(|(_, part)| part.is_current(before));
        let mut asked: Vec<usize> = current.map(|(slot, _)| slot).collect();
        if spec.answers == Answers::Newest {
            asked.drain(..asked.len().saturating_sub(1));
        }
        asked
    }

    /// How many slots there are.
    pub fn slot_count(&self) -> usize {
        self.searches.len()
    }

    /// Whether the order matters in which the lines of one written text name the slots of a probe:
    /// a list of events gives their order.
    pub fn is_sequence(&self, slot: usize) -> bool {
        let search = self.searches.get(slot);
        matches!(search, Some(Search::Event | Search::Request))
    }

    /// The findings in `text`, by slot, each slot once with its best match; searched now if the
    /// text was never seen. What a recorded text says of a rule in other words is not looked for.
    pub fn find(&self, text: &Arc<str>, written_by: WrittenBy) -> Arc<[Finding]> {
        let known = match written_by {
            WrittenBy::Session => &self.recorded,
            WrittenBy::Compaction => &self.written,
        };
        known.get_or(text, || self.search(text, written_by).into())
    }

    /// The slots that a text of the session holds.
    pub(crate) fn held(&self, text: &Arc<str>) -> Vec<usize> {
        let found = self.find(text, WrittenBy::Session);
        let strong = found.iter().filter(|finding| {
            finding.found.strength(WrittenBy::Session) == Some(MatchStrength::Strong)
        });
        strong.map(|finding| finding.slot).collect()
    }

    fn search(&self, text: &str, written_by: WrittenBy) -> Vec<Finding> {
        let mut best: BTreeMap<usize, (Match, usize)> = BTreeMap::new();
        // The last place of the best match counts.
        let mut add = |slot: usize, found: Match, at: usize| {
            let known = best.entry(slot).or_insert((found, at));
            *known = (found, at).max(*known);
        };
        let mut seen = vec![0_usize; self.targets.len()];
        let mut versions: BTreeMap<usize, Vec<order::Version>> = BTreeMap::new();
        let mut requests: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
        for hit in self.patterns.search(text) {
            let pattern = hit.pattern as usize;
            seen[pattern] += 1;
            let length = self.patterns.patterns()[pattern].text.len();
            let place = hit.start..hit.start + length;
            let Target {
                slot,
                probe,
                search,
                key,
            } = &self.targets[pattern];
            match search {
                // `lib\a.rs` is not `a.rs`.
                Search::Path if !is_below(&text[..hit.start]) => {
                    add(*slot, Match::Bound, hit.start);
                }
                Search::Path => {}
                Search::Rule => add(*slot, Match::Stated, hit.start),
                Search::Request => requests.push((*slot, place)),
                _ if seen[pattern] > OCCURRENCES => {}
                Search::Item => match order::item_state(text, &place) {
                    ItemState::Done => add(slot + 1, Match::Bound, hit.start),
                    ItemState::Open => add(*slot, Match::Bound, hit.start),
                    ItemState::Unclear => add(*slot, Match::Unbound, hit.start),
                },
                Search::Version | Search::Count => {
                    versions.entry(*probe).or_default().push(order::Version {
                        slot: *slot,
                        is_bound: is_bound(text, hit, length, key),
                        place,
                    });
                }
                Search::Value | Search::Event => {
                    if is_bound(text, hit, length, key) {
                        add(*slot, Match::Bound, hit.start);
                        seen[pattern] = OCCURRENCES;
                    } else {
                        add(*slot, Match::Unbound, hit.start);
                    }
                }
            }
        }
        for (slot, place) in &requests {
            // One request may hold another; that does not repeat the inner one.
            if !is_part(place, requests.iter().map(|(_, other)| other)) {
                add(*slot, Match::Stated, place.start);
            }
        }
        for mut versions in versions.into_values() {
            // `1.4.2` is not `1.4` said once more.
            let places: Vec<_> = versions.iter().map(|it| it.place.clone()).collect();
            versions.retain(|version| !is_part(&version.place, places.iter()));
            for (at, version) in versions.iter().enumerate() {
                let found = if version.is_bound && !order::is_superseded(text, &versions, at) {
                    Match::Bound
                } else {
                    Match::Unbound
                };
                add(version.slot, found, version.place.start);
            }
        }
        let rules = match written_by {
            WrittenBy::Session => Vec::new(),
            WrittenBy::Compaction => self.rules.find(text),
        };
        for (rule, found) in rules.into_iter().enumerate() {
            let slot = self.rule_slots[rule];
            match found {
                // What is said later counts, even against the rule's own sentence.
                Some((Match::Changed, at)) if best.get(&slot).is_none_or(|known| known.1 < at) => {
                    best.insert(slot, (Match::Changed, at));
                }
                Some((found, at)) => {
                    let known = best.entry(slot).or_insert((found, at));
                    *known = (found, at).max(*known);
                }
                None => {}
            }
        }
        best.into_iter()
            .map(|(slot, (found, at))| Finding { slot, found, at })
            .collect()
    }
}

/// Whether a short text says a rule, by what [`rules`] make of it; a text much longer than the rule says more than that.
pub(crate) fn says_rule(statement: &str, topic: &str, text: &str) -> bool {
    let found = rules::Rules::new([(statement, topic)]).find(text);
    let is_short = word_count(text) <= word_count(statement) + SAID_AROUND;
    is_short && matches!(found[..], [Some((Match::Kept | Match::Stated, _))])
}

/// How else a text of this part may be written: a path with the separators of its recording, and all
/// of it as in a JSON string.
fn spellings(text: &str, part: &Part<'_>) -> Vec<String> {
    let mut all = Vec::new();
    if part.search == Search::Path && part.text.contains('\\') {
        all.push(text.replace('/', "\\"));
    }
    let escaped = |text: &str| {
        let json = serde_json::to_string(text).unwrap_or_default();
        let inner = json
            .get(1..json.len().saturating_sub(1))
            .unwrap_or_default();
        (inner != text).then(|| inner.to_owned())
    };
    let as_json: Vec<String> = [text]
        .into_iter()
        .chain(all.iter().map(String::as_str))
        .filter_map(escaped)
        .collect();
    all.extend(as_json);
    all
}

/// Whether a text ends in a folder and a backslash. `.\` is no folder.
fn is_below(before: &str) -> bool {
    let folder = before.trim_end_matches('\\');
    let is_here = folder.ends_with('.') && !folder.ends_with("..");
    let is_word =
        folder.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
    folder.len() < before.len() && is_word && !is_here
}

/// Whether a longer one of these places holds this one.
fn is_part<'a>(
    place: &std::ops::Range<usize>,
    mut others: impl Iterator<Item = &'a std::ops::Range<usize>>,
) -> bool {
    others.any(|other| {
        other.len() > place.len() && other.start <= place.start && place.end <= other.end
    })
}

/// The most bytes of a sentence that is quoted.
const QUOTED: usize = 200;

/// The sentence of a text around this byte, cut where it is long.
pub fn sentence_at(text: &str, at: usize) -> &str {
    let at = at.min(text.len());
    let from = text.ceil_char_boundary(at.saturating_sub(QUOTED));
    let around = &text[from..text.floor_char_boundary(at.saturating_add(QUOTED).min(text.len()))];
    let (mut start, mut end, mut sentence) = (0, around.len(), 0);
    words::each_word(around, |_, word| {
        let is_next = word.sentence != sentence;
        if is_next && from + word.start <= at {
            start = word.start;
        } else if is_next {
            end = end.min(word.start);
        }
        sentence = word.sentence;
    });
    around.get(start..end).unwrap_or(around).trim()
}

/// A sentence as it is searched for: without its full stop.
fn sentence(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '!', '。', '！'])
}

/// The path as it is compared: `/` between its parts, no `./` in front, no part empty or `.`.
pub fn canonical_path(path: &str) -> String {
    let path = path.trim().replace('\\', "/");
    let parts = path.split('/');
    let parts: Vec<&str> = parts.filter(|part| !matches!(*part, "" | ".")).collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Whether at least half of the key's content words are in the value's line or JSON object, or
/// within [`BINDING_WORDS`] of it.
fn is_bound(text: &str, hit: Hit, length: usize, key: &[String]) -> bool {
    if key.is_empty() {
        return true;
    }
    let from = text.floor_char_boundary(hit.start.saturating_sub(BINDING_BYTES));
    let to = text.floor_char_boundary((hit.start + length + BINDING_BYTES).min(text.len()));
    let around = &text[from..to];
    let value = hit.start - from..hit.start - from + length;
    let line = line_around(around, &value);
    let object = object_around(around, &value);
    let mut own = None;
    let mut places = Vec::new();
    words::each_word(around, |word, at| {
        if value.contains(&at.start) {
            let (_, last) = own.get_or_insert((at.word, at.word));
            *last = at.word;
        } else if let Some(index) = key.iter().position(|known| known == word) {
            places.push((index, at));
        }
    });
    let (first, last) = own.unwrap_or((0, 0));
    let is_near = |at: &words::Position| {
        let distance = first
            .saturating_sub(at.word)
            .max(at.word.saturating_sub(last));
        let is_in = |object: &std::ops::Range<usize>| object.contains(&at.start);
        (own.is_some() && distance <= BINDING_WORDS)
            || is_in(&line)
            || object.as_ref().is_some_and(is_in)
    };
    let bound = places.iter().filter(|(_, at)| is_near(at));
    let bound: BTreeSet<usize> = bound.map(|(index, _)| *index).collect();
    2 * bound.len() >= key.len()
}

/// The line around `value`; lines may be parted by the escape `\n`.
fn line_around(text: &str, value: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let before = &text[..value.start];
    let start = before.rfind('\n').max(before.rfind("\\n")).unwrap_or(0);
    let after = &text[value.end..];
    let ends = [after.find('\n'), after.find("\\n")].into_iter().flatten();
    start..value.end + ends.min().unwrap_or(after.len())
}

/// The innermost pair of braces around `value`.
fn object_around(text: &str, value: &std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let before = (0..value.start).rev().map(|at| (at, bytes[at]));
    let behind = (value.end..bytes.len()).map(|at| (at, bytes[at]));
    let start = unmatched(before, b'{', b'}')?;
    let end = unmatched(behind, b'}', b'{')?;
    Some(start..end)
}

/// The place of the first `brace` that no `other` before it pairs with.
fn unmatched(mut bytes: impl Iterator<Item = (usize, u8)>, brace: u8, other: u8) -> Option<usize> {
    let mut depth = 1_usize;
    let found = bytes.find(|(_, byte)| {
        depth += usize::from(*byte == other);
        depth -= usize::from(*byte == brace);
        depth == 0
    });
    found.map(|(at, _)| at)
}

#[cfg(test)]
mod tests;
