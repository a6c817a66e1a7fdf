//! Survival: whether a planted value can still be read off a text, by string matching alone.
//!
//! [`SurvivalSlots`] holds what was planted in one session and looks for it in one text at a time; each
//! distinct text is searched once, however many contexts hold it. It says that a value is *there*,
//! bound to its key, and nothing about what a model would answer.
//!
//! | kind | a match |
//! |---|---|
//! | `recall`, `decoy` | the value, no part of a longer one; **bound** where at least half of the key's content words are in the same line or JSON object, or within 40 words; **changed** where its sentence denies it, says that another value took its place, or the whole key names another value of its form |
//! | `constraint` | a sentence that speaks of the rule, with its anchors and its force: see `rules` |
//! | `artifact` | the whole path, for each path |
//! | `decision` | the choice as a value bound by its key, and the reason as a rule |
//! | `update`, `numeric` | each value that was ever said, bound by the key and not said to be an older one; which one comes last is a matter of the prompt, not of one text |
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

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::kind::{SearchBy, SpecPart};
use super::{Fact, Probe};
use crate::patterns::{Boundary, Pattern, Patterns, PatternsError, PerText};
use crate::probe::Specified as _;
use crate::script::word_count;

mod anchors;
mod beside;
mod bound;
mod compare;
mod lists;
mod nearby;
mod order;
mod quantity;
mod rules;
mod sentence;
mod words;

use beside::{KeyWords, goes_on};
use bound::{around, is_bound, line_around, object_around};
use lists::{LISTS, WordClass};
use order::ItemState;
pub(crate) use quantity::is_same_quantity;
use quantity::{Quantity, quantities};
use rules::SearchedRule;
pub(crate) use rules::{RuleMarks, heads_rules, is_order, marks};
pub(crate) use sentence::has_digit;
use sentence::is_alike;
pub use words::content_word_recall;
pub(crate) use words::each_word;

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
    /// The text does not say enough: the value is there, and its key is not.
    Unsure,
    /// Another value is said, a weaker rule, or the opposite.
    Changed,
    /// A sentence that has the whole key gives another value, or takes the rule back: it counts against what is said
    /// before, too.
    Overruled,
    /// The value is there beside its key, the path is there, or a sentence says the rule in other words.
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

impl Match {
    /// Whether the match preserves the fact.
    pub fn is_kept(self) -> bool {
        self >= Self::Kept
    }

    /// Whether it says something else.
    pub fn is_changed(self) -> bool {
        matches!(self, Self::Changed | Self::Overruled)
    }
}

/// One thing planted that a text holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SurvivalFinding {
    /// Index of the slot: see [`SurvivalSlots::slots`].
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
pub struct SurvivalSlots {
    /// For each probe, its slots: see [`Survival::slots`].
    slots: Vec<Range<usize>>,
    /// For each slot, how it is searched for.
    searches: Vec<SearchBy>,
    patterns: Patterns,
    /// The targets, each with patterns for its spellings.
    targets: Vec<SoughtPart>,
    /// The target of each pattern.
    owners: Vec<usize>,
    /// The targets that may be written as another amount or date.
    measured: Vec<(usize, Quantity)>,
    keys: KeyWords,
    rules: Vec<SearchedRule>,
    /// The slot of each rule.
    rule_slots: Vec<usize>,
    /// Findings in recorded texts: rules only where they are stated.
    recorded: PerText<[SurvivalFinding]>,
    /// Findings in texts that a compaction wrote.
    written: PerText<[SurvivalFinding]>,
}

/// A part that is searched for.
#[derive(Debug)]
struct SoughtPart {
    /// Of an item of a plan the slot of the open one; the next is that of the done one.
    slot: usize,
    /// Index of the probe.
    probe: usize,
    search: SearchBy,
    /// The content words of its key.
    key: Vec<String>,
    /// Its text in lower case.
    value: String,
    /// An amount of a unit or a date.
    quantity: Option<Quantity>,
    /// Whether a heading may set it aside; what was tried and what happened it may not.
    lapses: bool,
    /// In lower case, what was not chosen in its place.
    rejected: Vec<String>,
}

impl SoughtPart {
    fn is_value(&self) -> bool {
        self.is_version() || matches!(self.search, SearchBy::Value | SearchBy::Event)
    }

    /// Whether several of the values of its fact were right, one after the other.
    fn is_version(&self) -> bool {
        self.search == SearchBy::Version
    }
}

/// The best match of each slot in one text, and the last place of such a match.
#[derive(Debug, Default)]
struct Best(BTreeMap<usize, (Match, usize)>);

impl Best {
    fn add(&mut self, slot: usize, found: Match, at: usize) {
        let known = self.0.entry(slot).or_insert((found, at));
        *known = (found, at).max(*known);
    }

    /// The same of a value: of two sentences that say whether it holds the later decides.
    fn revise(&mut self, slot: usize, found: Match, at: usize) {
        let known = self.0.entry(slot).or_insert((found, at));
        if (found > Match::Unsure, at) > (known.0 > Match::Unsure, known.1) {
            *known = (found, at);
        }
    }
}

impl SurvivalSlots {
    /// Prepares the search for what `probes` ask about.
    pub fn new(probes: &[Probe]) -> Result<Self, PatternsError> {
        let mut slots = Vec::with_capacity(probes.len());
        let mut searches = Vec::new();
        let (mut patterns, mut owners) = (Vec::new(), Vec::new());
        let (mut targets, mut measured) = (Vec::new(), Vec::new());
        let (mut rules, mut rule_slots) = (Vec::new(), Vec::new());
        for (probe, planted) in probes.iter().enumerate() {
            let first = searches.len();
            let spec = planted.fact.spec();
            for part in &spec.parts {
                let (slot, search) = (searches.len(), part.search);
                for text in spellings(part) {
                    let boundary = match search {
                        SearchBy::Path => Boundary::Path,
                        _ => Boundary::Word,
                    };
                    patterns.push(Pattern { text, boundary });
                    owners.push(targets.len());
                }
                let target = SoughtPart {
                    slot,
                    probe,
                    search,
                    key: words::content_words(part.key),
                    value: part.text.to_lowercase(),
                    quantity: Quantity::of(part.text).filter(|own| !own.is_plain()),
                    lapses: search != SearchBy::Event
                        && !matches!(planted.fact, Fact::RejectedPath { .. } | Fact::Error { .. }),
                    rejected: spec.others.iter().map(|other| other.to_lowercase()).collect(),
                };
                if target.is_value() && !part.unasked {
                    measured.extend(Quantity::of(part.text).map(|own| (targets.len(), own)));
                }
                targets.push(target);
                if search == SearchBy::Rule {
                    rules.push(SearchedRule::new(part.text, part.key));
                    rule_slots.push(slot);
                }
                let width = if search == SearchBy::Item { 2 } else { 1 };
                searches.extend(std::iter::repeat_n(search, width));
            }
            slots.push(first..searches.len());
        }
        Ok(Self {
            slots,
            searches,
            patterns: Patterns::new(patterns)?,
            keys: KeyWords::of(&targets),
            targets,
            owners,
            measured,
            rules,
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
    pub fn slots(&self, probe: usize) -> Range<usize> {
        self.slots.get(probe).cloned().unwrap_or(0..0)
    }

    /// The slots of the probe of this index that its question is about, when it is asked before that
    /// message. A list grows: only what is on it by then is asked for. Of what has an order only the
    /// right answer is.
    pub fn asked_slots(&self, probe: usize, fact: &Fact, before: usize) -> Vec<usize> {
        let spec = fact.spec();
        let slots = self.slots(probe);
        let width = slots.len() / spec.parts.len().max(1);
        spec.holding(before).into_iter().map(|at| slots.start + at * width).collect()
    }

    /// How many slots there are.
    pub fn slot_count(&self) -> usize {
        self.searches.len()
    }

    /// Whether the order matters in which the lines of one written text name the slots of a probe:
    /// a list of events gives their order.
    pub fn is_sequence(&self, slot: usize) -> bool {
        let search = self.searches.get(slot);
        matches!(search, Some(SearchBy::Event | SearchBy::Request))
    }

    /// The findings in `text`, by slot, each slot once with its best match; searched now if the
    /// text was never seen. What a recorded text says of a rule in other words is not looked for.
    pub fn find(&self, text: &Arc<str>, written_by: WrittenBy) -> Arc<[SurvivalFinding]> {
        let known = match written_by {
            WrittenBy::Session => &self.recorded,
            WrittenBy::Compaction => &self.written,
        };
        known.get_or(text, || self.search(text, written_by).into())
    }

    /// The least words of a text that hold a finding by themselves: of its line, or of what stands around it, at most
    /// [`BINDING_BYTES`] to a side. `None` where more would be needed.
    pub(crate) fn quote(&self, text: &str, finding: &SurvivalFinding) -> Option<Arc<str>> {
        let start = text[..finding.at].rfind('\n').map_or(0, |at| at + 1);
        let rest = text[finding.at..].find('\n');
        let line = start..rest.map_or(text.len(), |rest| finding.at + rest);
        let radii = [40, 80, 160, 400, BINDING_BYTES];
        let wide = radii.map(|radius| {
            // No word is cut: half a number is another one.
            let start = text.ceil_char_boundary(finding.at.saturating_sub(radius));
            let start = text[..start].rfind(char::is_whitespace);
            let end = text.floor_char_boundary(finding.at.saturating_add(radius));
            let rest = text[end..].find(char::is_whitespace);
            start.unwrap_or(0)..rest.map_or(text.len(), |rest| end + rest)
        });
        let narrow = wide.clone().map(|part| {
            let end = part.end.min(line.end);
            part.start.max(line.start)..end
        });
        let quote = narrow.into_iter().chain(wide).map(|part| text[part].trim()).find(|quote| {
            let found = self.search(quote, WrittenBy::Compaction);
            found.iter().any(|other| {
                other.slot == finding.slot
                    && other.found.min(Match::Kept) == finding.found.min(Match::Kept)
            })
        });
        quote.map(Arc::from)
    }

    /// The slots that a text of the session holds.
    pub(crate) fn held(&self, text: &Arc<str>) -> Vec<usize> {
        let found = self.find(text, WrittenBy::Session);
        let kept = found.iter().filter(|finding| finding.found.is_kept());
        kept.map(|finding| finding.slot).collect()
    }

    /// Every place of a target in a text, by its end.
    fn hits(&self, text: &str) -> Vec<(usize, Range<usize>)> {
        let hits = self.patterns.search(text).into_iter().map(|hit| {
            let pattern = hit.pattern as usize;
            let length = self.patterns.patterns()[pattern].text.len();
            (self.owners[pattern], hit.start..hit.start + length)
        });
        let mut hits: Vec<(usize, Range<usize>)> = hits.collect();
        let said = if self.measured.is_empty() { Vec::new() } else { quantities(text) };
        for (place, said) in &said {
            for (target, own) in &self.measured {
                if own.is_said_by(said) {
                    hits.retain(|(other, hit)| other != target || !is_part(hit, place));
                    hits.push((*target, place.clone()));
                } else if !own.is_plain() {
                    // `$1,500 million` is not `$1,500`.
                    hits.retain(|(other, hit)| other != target || !is_part(hit, place));
                }
            }
        }
        hits.sort_by_key(|(_, place)| place.end);
        hits.dedup();
        hits
    }

    fn search(&self, text: &str, written_by: WrittenBy) -> Vec<SurvivalFinding> {
        let mut best = Best::default();
        let mut seen = vec![0_usize; self.targets.len()];
        let hits = self.hits(text);
        let mut versions: BTreeMap<usize, Vec<(usize, Range<usize>)>> = BTreeMap::new();
        let mut requests: Vec<(usize, Range<usize>)> = Vec::new();
        for (at, place) in hits {
            seen[at] += 1;
            let target = &self.targets[at];
            let slot = target.slot;
            match target.search {
                // `lib\a.rs` is not `a.rs`.
                SearchBy::Path if is_below(&text[..place.start]) => {}
                SearchBy::Path => best.add(slot, Match::Kept, place.start),
                SearchBy::Rule if written_by == WrittenBy::Compaction => {
                    let found = rules::stated(text, &place);
                    // Where it is taken back, what was said before does not count.
                    if found == Match::Overruled {
                        best.0.remove(&slot);
                    }
                    best.add(slot, found, place.start);
                }
                SearchBy::Rule => best.add(slot, Match::Stated, place.start),
                SearchBy::Request => requests.push((slot, place)),
                _ if seen[at] > OCCURRENCES => {}
                SearchBy::Item => match order::item_state(text, &place) {
                    ItemState::Done => best.add(slot + 1, Match::Kept, place.start),
                    ItemState::Open => best.add(slot, Match::Kept, place.start),
                    ItemState::Unclear => best.add(slot, Match::Unsure, place.start),
                },
                _ if goes_on(text, &place) => {
                    if !target.is_version() {
                        best.add(slot, Match::Unsure, place.start);
                    }
                }
                SearchBy::Version => {
                    versions.entry(target.probe).or_default().push((at, place));
                }
                SearchBy::Value | SearchBy::Event => {
                    let found = self.holds(text, &place, target, written_by, false);
                    best.revise(slot, found, place.start);
                    if found == Match::Kept && written_by == WrittenBy::Session {
                        seen[at] = OCCURRENCES;
                    }
                }
            }
        }
        for (slot, place) in &requests {
            // One request may hold another; that does not repeat the inner one.
            if !requests.iter().any(|(_, other)| is_part(place, other)) {
                best.add(*slot, Match::Stated, place.start);
            }
        }
        for mut versions in versions.into_values() {
            // `1.4.2` is not `1.4` said once more.
            let places: Vec<Range<usize>> =
                versions.iter().map(|(_, place)| place.clone()).collect();
            versions.retain(|(_, place)| !places.iter().any(|other| is_part(place, other)));
            let several = versions.iter().any(|(at, _)| *at != versions[0].0);
            for (at, place) in &versions {
                let target = &self.targets[*at];
                let found = self.holds(text, place, target, written_by, several);
                best.revise(target.slot, found, place.start);
            }
        }
        if written_by == WrittenBy::Compaction {
            for (slot, at) in self.replaced(text) {
                match best.0.get(&slot).copied() {
                    Some((Match::Kept, known)) if known > at => {}
                    // Two sentences with the whole key give two values.
                    Some((Match::Kept, _)) => best.0.extend([(slot, (Match::Unsure, at))]),
                    _ => best.add(slot, Match::Changed, at),
                }
            }
            let found = rules::find(&self.rules, text).into_iter();
            for (slot, found) in self.rule_slots.iter().zip(found) {
                let Some((found, at)) = found else { continue };
                let revised = best.0.get(slot).is_none_or(|(_, known)| *known < at);
                if found == Match::Overruled && revised {
                    best.0.insert(*slot, (found, at));
                }
                best.add(*slot, found, at);
            }
        }
        let found = best.0.into_iter();
        found.map(|(slot, (found, at))| SurvivalFinding { slot, found, at }).collect()
    }

    /// How a text holds a value that has its own boundaries there.
    fn holds(
        &self,
        text: &str,
        place: &Range<usize>,
        target: &SoughtPart,
        written_by: WrittenBy,
        is_one_of: bool,
    ) -> Match {
        match written_by {
            _ if !is_bound(text, place, &target.key) => Match::Unsure,
            WrittenBy::Compaction => self.said(text, place, target, is_one_of),
            // A recorded text is the truth itself; of several values it may still hold one that is no longer current.
            WrittenBy::Session if is_one_of && self.is_former(text, place, target) => Match::Unsure,
            WrittenBy::Session => Match::Kept,
        }
    }
}

/// Whether a short text says a rule, by what [`rules`] make of it; a text much longer than the rule says more than that.
pub(crate) fn says_rule(statement: &str, topic: &str, text: &str) -> bool {
    let found = rules::find(&[SearchedRule::new(statement, topic)], text);
    word_count(text) <= word_count(statement) + SAID_AROUND
        && matches!(found[..], [Some((found, _))] if found.is_kept())
}

/// The texts by which a part is found: a path with either separator, and all of it as in a JSON string.
/// A value that only ends the one before it keeps its slot, and is never found.
fn spellings(part: &SpecPart<'_>) -> Vec<String> {
    if part.unasked && part.search != SearchBy::Event {
        return Vec::new();
    }
    let mut all = vec![match part.search {
        SearchBy::Path => canonical_path(part.text),
        SearchBy::Rule | SearchBy::Request | SearchBy::Item => sentence(part.text).to_owned(),
        SearchBy::Value | SearchBy::Event | SearchBy::Version => part.text.to_owned(),
    }];
    if part.search == SearchBy::Path && all[0].contains('/') {
        all.push(all[0].replace('/', "\\"));
    }
    if let Some((file, line)) = part.text.rsplit_once(':')
        && part.search == SearchBy::Value
        && line.parse::<u32>().is_ok()
        && file.contains('.')
    {
        let forms = LISTS.of(WordClass::Places).flatten();
        let lines = forms.map(|form| form.replace('_', " ").replace('N', line));
        all.extend(lines.map(|form| form.replace('F', file)));
    }
    for at in 0..all.len() {
        let json = serde_json::to_string(&all[at]).unwrap_or_default();
        let inner = json.get(1..json.len().saturating_sub(1));
        all.extend(inner.filter(|inner| *inner != all[at]).map(str::to_owned));
    }
    all
}

/// Whether a text ends in a folder and a backslash. `.\` is no folder.
fn is_below(before: &str) -> bool {
    let folder = before.trim_end_matches('\\');
    folder.len() < before.len()
        && folder.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'))
        && (!folder.ends_with('.') || folder.ends_with(".."))
}

/// Whether the other of these places is longer and holds this one.
fn is_part(place: &Range<usize>, other: &Range<usize>) -> bool {
    other.len() > place.len() && other.start <= place.start && place.end <= other.end
}

/// The most bytes of a sentence that is quoted.
const QUOTED: usize = 200;

/// The sentence of a text around this byte, cut where it is long.
pub fn sentence_at(text: &str, at: usize) -> &str {
    let byte = at.min(text.len());
    let from = text.ceil_char_boundary(byte.saturating_sub(QUOTED));
    let around = &text[from..text.floor_char_boundary((byte + QUOTED).min(text.len()))];
    let mut sentences = words::sentences(around).into_iter();
    let own = sentences.rfind(|own| own.start == 0 || from + own.start <= byte);
    own.map_or(around, |own| &around[own]).trim()
}

/// A sentence as it is searched for: without its full stop.
fn sentence(text: &str) -> &str {
    text.trim().trim_end_matches(['.', '!', '。', '！'])
}

/// The path as it is compared: `/` between its parts, no `./` in front, no part empty or `.`.
pub fn canonical_path(path: &str) -> String {
    let slashed = path.trim().replace('\\', "/");
    let mut parts: Vec<&str> = slashed.split('/').collect();
    parts.retain(|part| !matches!(*part, "" | "."));
    let root = if slashed.starts_with('/') { "/" } else { "" };
    format!("{root}{}", parts.join("/"))
}

#[cfg(test)]
mod tests;
