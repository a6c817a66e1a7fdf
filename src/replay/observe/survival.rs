//! Follows what was planted through a context: which patch lost it, and how much of it a prompt holds.
//!
//! From patch to patch only a count is kept for each slot (a value, a rule, one path of a list): a
//! patch that leaves a slot in no text is what lost it. The whole prompt is searched where probes are
//! asked; which of two values comes last is then a matter of the module `order`.

use super::prelude::*;
use super::sources::Pointers;
use super::{BilledRequest, CallView, Observer};
use crate::patterns::PatternsError;
use crate::probe::faithful::Quote;
use crate::probe::survival::{Match, SurvivalSlots, WrittenBy};
use crate::probe::{AnswerFormat, AnswerSet, Fact, Item, Probe, ProbeKind, Selection};
use crate::probe::{ProbeExt as _, Specified as _, weight};
use crate::record::{Fate, LostAt, PlaceInPrompt, ProbeRecord, SurvivalRecord};
use crate::session::ToolSchema;
use death::after_death;
use occurrences::{Occurrences, PromptOccurrences, PromptPosition};
use order::{OrderFate, Rank};
use recoverable::Sources;
use summary_requests::SummaryRequests;

mod death;
mod occurrences;
mod order;
mod recoverable;
mod summary_requests;

const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];

/// The compacted region: edited, derived, restored.
const COMPACTED: [usize; 3] = [2, 3, 4];

/// Everything about one session that its cells share: made once.
#[derive(Debug)]
pub struct SurvivalPlan {
    pub(super) survival: SurvivalSlots,
    pub(super) probes: Arc<[Probe]>,
    /// The session's items, in the order of the record.
    pub(super) items: Vec<Item>,
    /// For each item, the first call whose prompt could hold the answer.
    said_at: Vec<Option<usize>>,
    /// Findings in the system prompt and the tool definitions.
    pinned: Vec<(usize, Match)>,
    pub(super) messages: usize,
    sources: Sources,
}

impl SurvivalPlan {
    /// Prepares the search for those of `probes` that are selected, in every context of `session`.
    pub fn new(
        session: &Session,
        probes: Arc<[Probe]>,
        selection: &Selection,
    ) -> Result<Self, PatternsError> {
        let items = selection.items(session, &probes);
        Self::of_items(session, probes, items)
    }

    /// The same, with every probe asked at each of these calls at which the full history answers it.
    pub fn at_calls(
        session: &Session,
        probes: Arc<[Probe]>,
        calls: &[usize],
    ) -> Result<Self, PatternsError> {
        let mut items = Vec::new();
        for &call in calls {
            let before = session.calls()[call];
            let all = probes.iter().enumerate();
            let answerable = all.filter(|(_, probe)| probe.is_answerable(before));
            items.extend(answerable.map(|(probe, _)| Item { probe, percent: 0, call }));
        }
        Self::of_items(session, probes, items)
    }

    fn of_items(
        session: &Session,
        probes: Arc<[Probe]>,
        items: Vec<Item>,
    ) -> Result<Self, PatternsError> {
        let survival = SurvivalSlots::new(&probes)?;
        let calls = session.calls();
        let first_calls = items.iter().map(|item| {
            let evidence = probes[item.probe].evidence_before(calls[item.call]);
            // Of what was said bit by bit, the oldest bit has the longest way.
            let said = evidence.first()?;
            Some(calls.partition_point(|answer| answer <= said))
        });
        let said_at = first_calls.collect();
        let tools = session.tools().iter().map(ToolSchema::text);
        let mut pinned = Vec::new();
        for text in session.system().into_iter().chain(tools) {
            let found = survival.find(text, WrittenBy::Session);
            pinned.extend(found.iter().map(|one| (one.slot, one.found)));
        }
        Ok(Self {
            sources: Sources::new(session, &probes, &survival),
            survival,
            probes,
            items,
            said_at,
            pinned,
            messages: session.messages().len(),
        })
    }

    /// The words that say each part of each fact, as its evidence says it first, in the order of the messages.
    pub(in crate::replay) fn quotes(&self, session: &Session) -> Vec<Quote> {
        let mut quotes: BTreeMap<usize, (usize, Arc<str>)> = BTreeMap::new();
        for (number, probe) in self.probes.iter().enumerate() {
            for at in probe.messages() {
                for text in session.message(at).model_text() {
                    let found = self.survival.find(text, WrittenBy::Session);
                    let own = self.survival.slots(number);
                    for finding in found.iter().filter(|finding| own.contains(&finding.slot)) {
                        if !quotes.contains_key(&finding.slot)
                            && let Some(said) = self.survival.quote(text, finding)
                        {
                            quotes.insert(finding.slot, (at, said));
                        }
                    }
                }
            }
        }
        let quotes: BTreeSet<(usize, Arc<str>)> = quotes.into_values().collect();
        quotes.into_iter().map(|(_, said)| vec![said]).collect()
    }

    /// The slots that answer the item of this index, as it is asked before that message.
    pub(super) fn asked_slots(&self, index: usize, before: usize) -> Vec<usize> {
        let probe = self.items[index].probe;
        let fact = &self.probes[probe].fact;
        self.survival.asked_slots(probe, fact, before)
    }

    /// The numbers of the items that are asked at this call.
    pub(in crate::replay) fn due_range(&self, call: usize) -> std::ops::Range<usize> {
        let from = self.items.partition_point(|item| item.call < call);
        let to = self.items.partition_point(|item| item.call <= call);
        from..to
    }

    /// The number under which a message of the session is counted as it was: behind all slots.
    fn message_slot(&self, entry: &Entry) -> Option<usize> {
        let Origin::Verbatim(message) = entry.origin else {
            return None;
        };
        (message < self.messages).then_some(self.survival.slot_count() + message)
    }

    /// The slots that an entry holds, the message itself included, once for each text.
    fn held_by(&self, entry: &Entry) -> Vec<usize> {
        let mut held: Vec<usize> = self.message_slot(entry).into_iter().collect();
        each_finding(&self.survival, entry, |found| {
            if found.found.is_kept() {
                held.push(found.slot);
            }
        });
        held
    }

    /// All occurrences in a prompt.
    fn occurrences<'c>(&self, context: &'c Context) -> PromptOccurrences<'c> {
        let mut slots = vec![Occurrences::default(); self.survival.slot_count()];
        let mut is_verbatim = vec![false; self.messages];
        for &(slot, found) in &self.pinned {
            slots[slot].add(0, found, (None, (0, 0)), (0, 0));
        }
        for (at, entry) in context.entries().iter().enumerate() {
            if let Some(slot) = self.message_slot(entry) {
                is_verbatim[slot - slots.len()] = true;
            }
            each_finding(&self.survival, entry, |found| {
                let position = (Some(at), found.within);
                slots[found.slot].add(found.place, found.found, position, found.at);
            });
        }
        PromptOccurrences { context, slots, is_verbatim }
    }
}

/// Follows what was planted through one cell, and writes [`CellRecord::probes`].
#[derive(Debug)]
pub struct SurvivalObserver {
    plan: Arc<SurvivalPlan>,
    /// In how many texts each slot is, and each message as it was.
    counts: Vec<u32>,
    lost: BTreeMap<usize, LostAt>,
    /// Where something else was last said in the place of a slot.
    changed: BTreeMap<usize, LostAt>,
    /// Requests for summaries.
    sent: Option<SummaryRequests>,
    /// By item.
    results: Vec<Option<SurvivalRecord>>,
}

impl SurvivalObserver {
    /// An observer for one cell of the plan's session.
    pub fn new(plan: Arc<SurvivalPlan>) -> Self {
        let slots = plan.survival.slot_count() + plan.messages;
        let mut counts = vec![0; slots];
        for (slot, found) in &plan.pinned {
            counts[*slot] += u32::from(found.is_kept());
        }
        Self {
            counts,
            lost: BTreeMap::new(),
            changed: BTreeMap::new(),
            sent: None,
            results: vec![None; plan.items.len()],
            plan,
        }
    }

    fn add(&mut self, entry: &Entry) {
        for slot in self.plan.held_by(entry) {
            self.counts[slot] += 1;
            self.lost.remove(&slot);
        }
    }

    /// Takes entries out, and returns the slots that they held.
    fn remove(&mut self, entries: &[Entry]) -> Vec<usize> {
        let held: Vec<usize> = entries.iter().flat_map(|entry| self.plan.held_by(entry)).collect();
        for slot in &held {
            self.counts[*slot] = self.counts[*slot].saturating_sub(1);
        }
        held
    }

    /// Notes for each slot that is in no text any more that this patch is what lost it.
    fn note_lost(&mut self, touched: &[usize], applied: &Applied) {
        for &slot in touched.iter().filter(|slot| self.counts[**slot] == 0) {
            self.lost.insert(slot, self.at(slot, applied));
        }
    }

    /// Notes for each slot in whose place this patch says something else that it does.
    fn note_changed(&mut self, entry: &Entry, applied: &Applied) {
        let mut changed = Vec::new();
        each_finding(&self.plan.survival, entry, |found| {
            if found.found.is_changed() {
                changed.push(found.slot);
            }
        });
        for slot in changed {
            self.changed.insert(slot, self.at(slot, applied));
        }
    }

    fn at(&self, slot: usize, applied: &Applied) -> LostAt {
        LostAt {
            call: applied.call,
            stage: applied.stage.to_string(),
            reason: applied.reason.clone(),
            seen_by_summariser: self.sent.as_ref().map(|sent| sent.has(slot, applied)),
        }
    }

    fn judge(&self, index: usize, before: usize, prompt: &PromptOccurrences<'_>) -> SurvivalRecord {
        let plan = &self.plan;
        let item = plan.items[index];
        let probe = &plan.probes[item.probe];
        let evidence = probe.evidence_before(before);
        let messages = plan.survival.slot_count();
        // The evidence of an open question is searched for as whole messages.
        let open = probe.kind() == ProbeKind::Open;
        let asked = if open {
            evidence.iter().map(|message| messages + message).collect()
        } else {
            plan.asked_slots(index, before)
        };
        // The evidence is no longer wholly verbatim; for a decoy, which has none, a part of the
        // history is not.
        let rewritten = if probe.kind().is_never_said() {
            prompt.is_verbatim.iter().filter(|verbatim| **verbatim).count() < before
        } else {
            !open && evidence.iter().any(|message| !prompt.is_verbatim[*message])
        };
        let found: Vec<Occurrences> = asked.iter().map(|slot| prompt.of(*slot)).collect();
        let weak_slots = asked.iter().zip(&found).filter(|(_, found)| !found.is_strong());
        let lost = weak_slots.filter_map(|(slot, found)| {
            let changed = found.changed.and_then(|_| self.changed.get(slot));
            self.lost.get(slot).or(changed)
        });
        let lost_at = lost.max_by_key(|lost| lost.call).cloned();
        let found: Vec<&Occurrences> = found.iter().collect();
        let changed = found.iter().filter_map(|slot| slot.changed).next_back();
        let unsure =
            ALL.into_iter().find(|place: &usize| found.iter().any(|slot| slot.unsure[*place]));
        let weak = changed.map(|change| change.place).or(unsure);
        let mentions = found.iter().filter_map(|slot| slot.unsure_at);
        let mention = mentions.max_by_key(|mention| (mention.entry, mention.at));
        if let Some(last) = self.last(item.probe, before, prompt, &ALL) {
            let compacted = rewritten.then(|| self.last(item.probe, before, prompt, &COMPACTED));
            let fate = match (last.fate, weak) {
                (Fate::Lost, _) if changed.is_some() => Fate::Changed,
                (Fate::Lost, Some(_)) => Fate::Unsure,
                (fate, _) => fate,
            };
            return SurvivalRecord {
                fate,
                score: last.score,
                most: (fate == Fate::Unsure).then_some(1.0),
                place: last.place.or(weak).map(|place| PlaceInPrompt::ALL[place]),
                compacted_score: compacted.map(|last| last.map_or(0.0, |last| last.score)),
                lost_at,
                said: match last.older {
                    Some(older) => {
                        let versions = probe.fact.spec().current(before);
                        versions.get(older).map(|value| (*value).to_owned())
                    }
                    None => prompt.sentence(mention.filter(|_| fate == Fate::Unsure)),
                },
                judged: None,
            };
        }
        // A decoy is there as soon as its value is: its key may well be another's.
        let any = probe.kind() == ProbeKind::Decoy;
        let score = share(&probe.fact, &found, &ALL, any);
        let most = share(&probe.fact, &found, &ALL, true);
        let strong =
            ALL.into_iter().find(|place| found.iter().any(|slot| slot.is_in(&[*place], any)));
        let fate = match () {
            () if score >= 1.0 => Fate::Kept,
            () if score > 0.0 => Fate::Partial,
            () if changed.is_some() => Fate::Changed,
            () if unsure.is_some() => Fate::Unsure,
            () => Fate::Lost,
        };
        SurvivalRecord {
            fate,
            score,
            most: (most > score).then_some(most),
            place: strong.or(weak).map(|place| PlaceInPrompt::ALL[place]),
            compacted_score: rewritten.then(|| match &probe.fact {
                // Of a list, only what is no longer where it was said.
                Fact::Artifact { files, .. } => {
                    let listed = files.iter().filter(|file| file.is_listed(before)).zip(&found);
                    let gone = listed.filter(|(file, _)| !prompt.is_verbatim[file.message]);
                    let gone: Vec<&Occurrences> = gone.map(|(_, found)| *found).collect();
                    share(&probe.fact, &gone, &COMPACTED, any)
                }
                _ => share(&probe.fact, &found, &COMPACTED, any),
            }),
            lost_at,
            said: match fate {
                Fate::Changed => prompt.sentence(changed),
                fate => prompt.sentence(mention.filter(|_| fate == Fate::Unsure)),
            },
            judged: None,
        }
    }

    /// The fate of a probe of which the last occurrences in these places decide; nothing for others.
    fn last(
        &self,
        probe: usize,
        before: usize,
        prompt: &PromptOccurrences<'_>,
        places: &[usize],
    ) -> Option<OrderFate> {
        let fact = &self.plan.probes[probe].fact;
        let spec = fact.spec();
        let slots = prompt.slots[self.plan.survival.slots(probe)].iter();
        let ranks: Vec<Option<Rank>> = slots.map(|slot| slot.last(places)).collect();
        let said = &ranks[..ranks.len().min(spec.current(before).len())];
        match fact {
            _ if spec.answers == AnswerSet::Newest => Some(order::newest(said)),
            Fact::Order { .. } => Some(order::sequence(said)),
            Fact::Continuation { items, .. } => {
                let done = items.iter().map(|item| item.done.is_some_and(|at| at < before));
                Some(order::pending(&ranks, done))
            }
            _ => None,
        }
    }
}

/// The share of a fact's slots that are in one of these places; `any` counts places where they are unsure.
fn share(fact: &Fact, found: &[&Occurrences], places: &[usize], any: bool) -> f64 {
    let there = found.iter().filter(|slot| slot.is_in(places, any)).count();
    // A reason without its choice is nothing, and half of the way leads nowhere.
    let void = match fact {
        Fact::Decision { .. } => !found.first().is_some_and(|choice| choice.is_in(places, any)),
        Fact::TwoStep { .. } => there < found.len(),
        _ => false,
    };
    if void { 0.0 } else { there as f64 / found.len().max(1) as f64 }
}

fn place_of(origin: &Origin) -> usize {
    match origin {
        Origin::Verbatim(_) => 1,
        Origin::Edited { .. } => 2,
        Origin::Derived(_) => 3,
        Origin::Restored(_) => 4,
        Origin::Authored => 5,
    }
}

/// Something planted in one block of an entry.
struct SlotMatch {
    slot: usize,
    /// Index in [`PlaceInPrompt::ALL`].
    place: usize,
    found: Match,
    /// Block and byte. What a compaction wrote in one go has no order of its own.
    within: (usize, usize),
    /// Block and byte.
    at: (usize, usize),
}

fn each_finding(survival: &SurvivalSlots, entry: &Entry, mut each: impl FnMut(SlotMatch)) {
    let place = place_of(&entry.origin);
    let written = matches!(entry.origin, Origin::Derived(_) | Origin::Authored);
    for (block, text) in entry.message.model_text().iter().enumerate() {
        let recorded = entry.is_verbatim(block) || matches!(entry.origin, Origin::Restored(_));
        let written_by = if recorded { WrittenBy::Session } else { WrittenBy::Compaction };
        for finding in survival.find(text, written_by).iter() {
            let within = match (recorded || survival.is_sequence(finding.slot), written) {
                (true, _) => (block, finding.at),
                (false, true) => (0, 0),
                (false, false) => (block, 0),
            };
            each(SlotMatch {
                slot: finding.slot,
                place,
                found: finding.found,
                within,
                at: (block, finding.at),
            });
        }
    }
}

impl Observer for SurvivalObserver {
    fn asked(&mut self, asked: &BilledRequest) {
        if matches!(asked.request.task, Task::Summarise { .. }) && asked.answer.is_some() {
            let sent = self.sent.get_or_insert_default();
            sent.note(&self.plan.survival, asked);
        }
    }

    fn appended(&mut self, entry: &Entry) {
        self.add(entry);
    }

    /// Records as lost here what the message held before it was shortened and no other text holds.
    /// [`Observer::appended`] takes that back for what the shorter message still holds.
    fn shortened(&mut self, applied: &Applied) {
        for entry in &applied.change.removed {
            self.add(entry);
        }
        let mut touched = self.remove(&applied.change.removed);
        let slots = self.plan.survival.slot_count();
        touched.retain(|slot| *slot < slots);
        self.note_lost(&touched, applied);
    }

    fn patched(&mut self, applied: &Applied) {
        let touched = self.remove(&applied.change.removed);
        for entry in applied.written() {
            self.add(entry);
            self.note_changed(entry, applied);
        }
        self.note_lost(&touched, applied);
    }

    fn called(&mut self, view: &CallView<'_>) {
        let due = self.plan.due_range(view.call);
        if due.is_empty() {
            return;
        }
        let prompt = self.plan.occurrences(view.context);
        let mut pointers = None;
        for index in due {
            let mut found = self.judge(index, view.before, &prompt);
            let at = self.plan.items[index].probe;
            let probe = &self.plan.probes[at];
            // Nothing was searched for a person's question, and nothing is lost of it.
            if found.fate == Fate::Lost && probe.kind() != ProbeKind::Unanswerable {
                let evidence = probe.evidence_before(view.before);
                let known = pointers.get_or_insert_with(|| Pointers::of(view.context));
                let sources = &self.plan.sources;
                if sources.is_recoverable(at, &evidence, view.before, known) {
                    found.fate = Fate::Reachable;
                }
            }
            self.results[index] = Some(found);
        }
    }

    fn finish(mut self: Box<Self>, record: &mut CellRecord) {
        if self.sent.is_some() {
            // A summariser never saw what was lost before the first request to one.
            let found = self.results.iter_mut().flatten();
            for lost in found.filter_map(|found| found.lost_at.as_mut()) {
                lost.seen_by_summariser.get_or_insert(false);
            }
        }
        let plan = &self.plan;
        record.probes = plan
            .items
            .iter()
            .zip(&plan.said_at)
            .zip(self.results)
            .map(|((item, said_at), survival)| {
                let probe = &plan.probes[item.probe];
                ProbeRecord {
                    probe: probe.id.clone(),
                    kind: probe.kind(),
                    weight: weight::of(probe),
                    is_call: probe.answer_format() == AnswerFormat::Call,
                    percent: item.percent,
                    call: item.call,
                    survival: survival.unwrap_or_else(|| after_death(&record.end, probe.kind())),
                    said_at: *said_at,
                    answer: None,
                    more: Vec::new(),
                    qualifying: None,
                    from_summary: None,
                    of_evidence: false,
                }
            })
            .collect();
    }
}

#[cfg(test)]
mod tests;
