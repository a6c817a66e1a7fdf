//! Survival: whether a planted value can still be read off a text, by string matching alone.
//!
//! [`Survival`] holds what was planted in one session and looks for it in one text at a time; each
//! distinct text is searched once, however many contexts it stands in. It says that a value is
//! *there*, bound to its key, and nothing about what a model would answer.
//!
//! | kind | a match |
//! |---|---|
//! | `recall`, `decoy` | the value as a whole word; **bound** where at least half of the key's content words stand in the same line or JSON object, or within 40 words |
//! | `constraint` | content-word recall of the rule within one window of words about as long as the rule, and no flipped negation |
//! | `artifact` | the whole path, for each path |
//! | `decision` | the choice as a value bound by its key, and the reason as a rule |
//! | `update`, `numeric` | each value that was ever said, bound by the key; which one stands last is a matter of the prompt, not of one text |
//! | `rejected-path` | the unguessable part of the reason, bound by what was tried |
//! | `error` | the code, and the file and line, each bound by what failed |
//! | `binding` | the value bound by its key, as for `recall` |
//! | `order` | each event bound by what it belongs to; their order is a matter of the prompt |
//! | `last-request` | each request word for word; which one stands last is a matter of the prompt |
//! | `open-handle` | each name bound by what it belongs to; which are open is a matter of the prompt |
//! | `obsolete` | the value in force bound by its key, and the withdrawal as a rule |
//! | `indirect` | the value bound by the key it was said with, as for `recall` |
//! | `two-step`, `act` | each of the values bound by its key |
//! | `open` | nothing is searched: its evidence is there, message by message, or not |
//! | `unanswerable` | nothing |
//! | `continuation` | each item, open or ticked off in its line or JSON object or by the heading above |

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Gold, Probe};
use crate::needles::{Boundary, Hit, Needles, NeedlesError, Pattern, PerText};

mod order;
mod statement;
mod words;

pub use statement::{PARAPHRASE, STATED, content_word_recall, is_flipped};

/// A value is bound by words of its key at most so many words away.
const BINDING_WORDS: usize = 40;

/// Lines and JSON objects count as far as this many bytes to either side of a value: minified
/// files are one line of megabytes, and nothing in them binds across it.
const BINDING_BYTES: usize = 1_024;

/// So many occurrences of one value in one text are looked at for one that is bound. A planted
/// value stands a few times; one that stands more often is no value but a word.
const OCCURRENCES: usize = 256;

/// How something planted stands in a text; of two matches in one text, the greater counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Match {
    /// The value stands there, its key does not.
    Unbound,
    /// The value stands there beside its key, or the path does.
    Bound,
    /// A rule's words stand there with the meaning turned round.
    Distorted,
    /// A sentence shares at least [`PARAPHRASE`] of the rule's content words.
    Paraphrased,
    /// A sentence shares at least [`STATED`] of the rule's content words.
    Stated,
}

/// Who wrote a text: it decides what counts as a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBy {
    /// It is the session's, as recorded: a rule counts only where it is stated.
    Session,
    /// A strategy or a summariser: a rule counts where it is paraphrased.
    Compaction,
}

/// Whether a match saves what was planted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// Something is left, but not the fact: unbound or distorted.
    Weak,
    /// The fact stands there.
    Strong,
}

impl Match {
    /// What the match is worth in a text; nothing where it is no match at all.
    pub fn strength(self, written_by: WrittenBy) -> Option<Strength> {
        match (self, written_by) {
            (Self::Bound | Self::Stated, _) | (Self::Paraphrased, WrittenBy::Compaction) => {
                Some(Strength::Strong)
            }
            (Self::Unbound, _) | (Self::Distorted, WrittenBy::Compaction) => Some(Strength::Weak),
            (Self::Paraphrased | Self::Distorted, WrittenBy::Session) => None,
        }
    }
}

/// One thing planted that stands in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// Index of the slot: see [`Survival::slots`].
    pub slot: usize,
    /// How it stands there.
    pub found: Match,
    /// The byte at which it stands so for the last time; 0 for rules.
    pub at: usize,
}

/// What was planted in one session, ready to be looked for.
///
/// Everything that can be there or not is a *slot*: a value, a rule, one path of a list.
#[derive(Debug)]
pub struct Survival {
    /// For each probe, its slots: see [`Survival::slots`].
    slots: Vec<std::ops::Range<usize>>,
    /// For each slot, whether and how its place among its probe's slots matters.
    ordered: Vec<Ordering>,
    needles: Needles,
    /// What each pattern stands for.
    targets: Vec<Target>,
    rules: statement::Rules,
    /// The slot of each rule.
    rule_slots: Vec<usize>,
    found: PerText<[Finding]>,
}

/// Whether and how it matters where a slot stands among the slots of its probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ordering {
    /// It does not.
    Free,
    /// Which one stands last does; a text that a compaction wrote gives no order of its own.
    Last,
    /// The whole order does, that of the lines of a written text as well.
    Sequence,
}

#[derive(Debug)]
enum Target {
    /// A value with the content words of its key.
    Value { slot: usize, key: Vec<String> },
    /// A path.
    Path { slot: usize },
    /// A rule, word for word.
    Rule { slot: usize },
    /// A request, word for word.
    Request { slot: usize },
    /// A value that was revised, with the content words of its key.
    Version {
        slot: usize,
        /// Index of the probe.
        probe: usize,
        key: Vec<String>,
    },
    /// An item of a plan; the slot is that of the open item, the next that of the done one.
    Item { slot: usize },
}

impl Survival {
    /// Prepares the search for what `probes` ask about.
    pub fn new(probes: &[Probe]) -> Result<Self, NeedlesError> {
        let mut slots = Vec::with_capacity(probes.len());
        let mut ordered = Vec::new();
        let mut patterns = Vec::new();
        let mut targets = Vec::new();
        let mut rules = Vec::new();
        let mut rule_slots = Vec::new();
        for (index, probe) in probes.iter().enumerate() {
            let first = ordered.len();
            let mut value = |value: &str, key: &str, slot: usize| {
                patterns.push(word(value));
                let key = words::content_words(key);
                targets.push(Target::Value { slot, key });
            };
            match &probe.gold {
                Gold::Value {
                    key,
                    value: planted,
                }
                | Gold::Among {
                    key,
                    value: planted,
                    ..
                }
                | Gold::Absent {
                    key,
                    value: planted,
                } => {
                    value(planted, key, first);
                    ordered.push(Ordering::Free);
                }
                Gold::Tried { approach, reason } => {
                    value(reason, approach, first);
                    ordered.push(Ordering::Free);
                }
                Gold::Fault {
                    attempt,
                    code,
                    place,
                } => {
                    value(code, attempt, first);
                    value(place, attempt, first + 1);
                    ordered.extend([Ordering::Free; 2]);
                }
                Gold::Handles { owner, handles } => {
                    for (at, handle) in handles.iter().enumerate() {
                        value(&handle.name, owner, first + at);
                        ordered.push(Ordering::Free);
                    }
                }
                Gold::Steps { steps: pairs } | Gold::Arguments { arguments: pairs } => {
                    for (at, pair) in pairs.iter().enumerate() {
                        value(&pair.value, &pair.key, first + at);
                        ordered.push(Ordering::Free);
                    }
                }
                Gold::Obsolete {
                    withdrawn,
                    withdrawal,
                    standing,
                    ..
                } => {
                    value(&standing.value, &standing.key, first);
                    patterns.push(word(sentence(withdrawal)));
                    targets.push(Target::Rule { slot: first + 1 });
                    rules.push((withdrawal.as_str(), withdrawn.key.as_str()));
                    rule_slots.push(first + 1);
                    ordered.extend([Ordering::Free; 2]);
                }
                Gold::Sequence { name, events } => {
                    for (at, event) in events.iter().enumerate() {
                        value(&event.value, name, first + at);
                        ordered.push(Ordering::Sequence);
                    }
                }
                Gold::Requests { requests } => {
                    for (at, request) in requests.iter().enumerate() {
                        // What only ends the one before it keeps its slot, and is never found.
                        if !request.unasked {
                            patterns.push(word(sentence(&request.value)));
                            targets.push(Target::Request { slot: first + at });
                        }
                        ordered.push(Ordering::Sequence);
                    }
                }
                Gold::Choice {
                    key,
                    choice,
                    reason,
                    ..
                } => {
                    value(choice, key, first);
                    patterns.push(word(sentence(reason)));
                    targets.push(Target::Rule { slot: first + 1 });
                    rules.push((reason.as_str(), ""));
                    rule_slots.push(first + 1);
                    ordered.extend([Ordering::Free; 2]);
                }
                Gold::Statement {
                    topic, statement, ..
                } => {
                    patterns.push(word(sentence(statement)));
                    targets.push(Target::Rule { slot: first });
                    rules.push((statement.as_str(), topic.as_str()));
                    rule_slots.push(first);
                    ordered.push(Ordering::Free);
                }
                Gold::Files { files, .. } => {
                    for file in files {
                        patterns.push(Pattern {
                            text: canonical_path(&file.path),
                            boundary: Boundary::Path,
                        });
                        targets.push(Target::Path {
                            slot: ordered.len(),
                        });
                        ordered.push(Ordering::Free);
                    }
                }
                Gold::Versions { key, unit, values } => {
                    for version in values {
                        let slot = ordered.len();
                        let asked = (!version.unasked).then(|| version.value.clone());
                        let grouped = unit.as_ref().and(asked.as_deref());
                        let grouped = grouped.and_then(order::grouped);
                        for text in [asked, grouped].into_iter().flatten() {
                            patterns.push(word(&text));
                            targets.push(Target::Version {
                                slot,
                                probe: index,
                                key: words::content_words(key),
                            });
                        }
                        ordered.push(Ordering::Last);
                    }
                }
                Gold::Answer { .. } | Gold::Untold => {}
                Gold::Plan { items, .. } => {
                    for (item, _) in items {
                        patterns.push(word(sentence(item)));
                        targets.push(Target::Item {
                            slot: ordered.len(),
                        });
                        ordered.extend([Ordering::Last; 2]);
                    }
                }
            }
            slots.push(first..ordered.len());
        }
        Ok(Self {
            slots,
            ordered,
            needles: Needles::new(patterns)?,
            targets,
            rules: statement::Rules::new(rules),
            rule_slots,
            found: PerText::default(),
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
    pub fn asked_slots(&self, probe: usize, gold: &Gold, before: usize) -> Vec<usize> {
        let slots = self.slots(probe);
        match gold {
            Gold::Files { files, .. } => slots
                .clone()
                .zip(files)
                .filter(|(_, file)| file.is_listed(before))
                .map(|(slot, _)| slot)
                .collect(),
            Gold::Handles { handles, .. } => slots
                .clone()
                .zip(handles)
                .filter(|(_, handle)| handle.is_open(before))
                .map(|(slot, _)| slot)
                .collect(),
            Gold::Sequence { .. } => {
                let said = gold.events_before(before).len();
                (slots.start..slots.start + said).collect()
            }
            Gold::Versions { .. } | Gold::Requests { .. } => {
                let said = gold.versions_before(before).len();
                (slots.start + said.saturating_sub(1)..slots.start + said).collect()
            }
            Gold::Plan { items, .. } => slots
                .clone()
                .step_by(2)
                .zip(items)
                .filter(|(_, (_, done))| done.is_none_or(|done| done >= before))
                .map(|(slot, _)| slot)
                .collect(),
            Gold::Value { .. }
            | Gold::Statement { .. }
            | Gold::Choice { .. }
            | Gold::Tried { .. }
            | Gold::Fault { .. }
            | Gold::Among { .. }
            | Gold::Obsolete { .. }
            | Gold::Steps { .. }
            | Gold::Arguments { .. }
            | Gold::Answer { .. }
            | Gold::Untold
            | Gold::Absent { .. } => slots.clone().collect(),
        }
    }

    /// How many slots there are.
    pub fn slot_count(&self) -> usize {
        self.ordered.len()
    }

    /// Whether it matters where in a prompt the slot stands: an older value behind a newer one is
    /// the last word.
    pub fn is_ordered(&self, slot: usize) -> bool {
        let ordered = self.ordered.get(slot);
        ordered.is_some_and(|ordered| *ordered != Ordering::Free)
    }

    /// Whether the order matters in which the lines of one written text name the slots of a probe:
    /// a list of events tells what came first.
    pub fn is_sequence(&self, slot: usize) -> bool {
        self.ordered.get(slot) == Some(&Ordering::Sequence)
    }

    /// What stands in `text`, by slot, each slot once with its best match; searched now if the
    /// text was never seen.
    pub fn find(&self, text: &Arc<str>) -> Arc<[Finding]> {
        self.found.get_or(text, || self.search(text).into())
    }

    fn search(&self, text: &str) -> Vec<Finding> {
        let mut best: BTreeMap<usize, (Match, usize)> = BTreeMap::new();
        // The last place of the best match counts.
        let mut add = |slot: usize, found: Match, at: usize| {
            let known = best.entry(slot).or_insert((found, at));
            *known = (found, at).max(*known);
        };
        let mut seen = vec![0_usize; self.targets.len()];
        let mut versions: BTreeMap<usize, Vec<order::Version>> = BTreeMap::new();
        let mut requests: Vec<(usize, std::ops::Range<usize>)> = Vec::new();
        for hit in self.needles.search(text) {
            let pattern = hit.pattern as usize;
            seen[pattern] += 1;
            let length = self.needles.patterns()[pattern].text.len();
            match &self.targets[pattern] {
                Target::Path { slot } => add(*slot, Match::Bound, hit.start),
                Target::Rule { slot } => add(*slot, Match::Stated, 0),
                Target::Request { slot } => {
                    requests.push((*slot, hit.start..hit.start + length));
                }
                Target::Value { slot, key } => {
                    if seen[pattern] > OCCURRENCES {
                        continue;
                    }
                    if is_bound(text, hit, length, key) {
                        add(*slot, Match::Bound, hit.start);
                        seen[pattern] = OCCURRENCES;
                    } else {
                        add(*slot, Match::Unbound, hit.start);
                    }
                }
                Target::Version { slot, probe, key } => {
                    if seen[pattern] > OCCURRENCES {
                        continue;
                    }
                    versions.entry(*probe).or_default().push(order::Version {
                        slot: *slot,
                        place: hit.start..hit.start + length,
                        is_bound: is_bound(text, hit, length, key),
                    });
                }
                Target::Item { slot } => {
                    let is_done = order::is_ticked(text, &(hit.start..hit.start + length));
                    add(slot + usize::from(is_done), Match::Bound, hit.start);
                }
            }
        }
        for (slot, place) in &requests {
            // One request may hold another, which is not made again thereby.
            let is_part = requests.iter().any(|(_, other)| {
                other.len() > place.len() && other.start <= place.start && place.end <= other.end
            });
            if !is_part {
                add(*slot, Match::Stated, place.start);
            }
        }
        for versions in versions.into_values() {
            for (at, version) in versions.iter().enumerate() {
                let found = if version.is_bound && !order::is_superseded(text, &versions, at) {
                    Match::Bound
                } else {
                    Match::Unbound
                };
                add(version.slot, found, version.place.start);
            }
        }
        for (rule, found) in self.rules.find(text).into_iter().enumerate() {
            if let Some(found) = found {
                add(self.rule_slots[rule], found, 0);
            }
        }
        best.into_iter()
            .map(|(slot, (found, at))| Finding { slot, found, at })
            .collect()
    }
}

/// A sentence as it is looked for: without what ends it.
fn sentence(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '!', '。', '！'])
}

fn word(text: &str) -> Pattern {
    Pattern {
        text: text.to_owned(),
        boundary: Boundary::Word,
    }
}

/// The path as it is compared: `/` between its parts, no `./` in front, no part empty or `.`.
pub fn canonical_path(path: &str) -> String {
    let path = path.trim().replace('\\', "/");
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

/// Whether at least half of the key's content words stand in the value's line or JSON object, or
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
    let bound: BTreeSet<usize> = places
        .into_iter()
        .filter(|(_, at)| {
            let distance = first
                .saturating_sub(at.word)
                .max(at.word.saturating_sub(last));
            (own.is_some() && distance <= BINDING_WORDS)
                || line.contains(&at.start)
                || object
                    .as_ref()
                    .is_some_and(|object| object.contains(&at.start))
        })
        .map(|(index, _)| index)
        .collect();
    2 * bound.len() >= key.len()
}

/// The line around `value`; lines may be parted by the escape `\n`.
fn line_around(text: &str, value: &std::ops::Range<usize>) -> std::ops::Range<usize> {
    let before = &text[..value.start];
    let start = before.rfind('\n').max(before.rfind("\\n")).unwrap_or(0);
    let after = &text[value.end..];
    let end = after
        .find('\n')
        .unwrap_or(after.len())
        .min(after.find("\\n").unwrap_or(after.len()));
    start..value.end + end
}

/// The innermost pair of braces around `value`.
fn object_around(text: &str, value: &std::ops::Range<usize>) -> Option<std::ops::Range<usize>> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let start = (0..value.start).rev().find(|&at| match bytes[at] {
        b'}' => {
            depth += 1;
            false
        }
        b'{' if depth > 0 => {
            depth -= 1;
            false
        }
        byte => byte == b'{',
    })?;
    let mut depth = 0_usize;
    let end = (value.end..bytes.len()).find(|&at| match bytes[at] {
        b'{' => {
            depth += 1;
            false
        }
        b'}' if depth > 0 => {
            depth -= 1;
            false
        }
        byte => byte == b'}',
    })?;
    Some(start..end)
}

#[cfg(test)]
mod tests;
