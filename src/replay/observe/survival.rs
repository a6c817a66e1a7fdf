//! Follows every planted value through a context, from appended entries and patches alone.
//!
//! For each slot (a value, a rule, one path of a list) the observer counts the texts in which it
//! stands, by place. A patch subtracts what it removed and adds what it wrote; where that leaves a
//! slot without any place, the patch is what lost it. Where it matters which of two values stands
//! last, the module `order` follows the positions too.

use std::sync::Arc;

use super::{Asked, CallView, Observer};
use crate::context::{Applied, Entry, Origin};
use crate::model::{AnswerFormat, Task};
use crate::needles::NeedlesError;
use crate::probe::survival::{Strength, Survival, WrittenBy};
use crate::probe::{Fact, Item, Probe, ProbeKind, Selection};
use crate::record::{CellRecord, Fate, LostAt, PlaceInPrompt, ProbeRecord, SurvivalRecord};
use crate::session::Session;

mod death;
mod evidence;
mod order;
mod reach;
mod sent;

use death::after_death;
use evidence::Evidence;
use order::{Mention, Order, Ranks};
use reach::{Named, Sources};
use sent::Sent;

/// The places, best first: where a value stands in several, the first one is reported.
const PLACES: [PlaceInPrompt; 6] = [
    PlaceInPrompt::Pinned,
    PlaceInPrompt::Verbatim,
    PlaceInPrompt::Edited,
    PlaceInPrompt::Derived,
    PlaceInPrompt::Restored,
    PlaceInPrompt::Authored,
];

/// The compacted region: edited, derived, restored.
const COMPACTED: [usize; 3] = [2, 3, 4];

/// Everything about one session that its cells share: made once.
#[derive(Debug)]
pub struct SurvivalPlan {
    survival: Survival,
    probes: Arc<[Probe]>,
    items: Vec<Item>,
    /// For each item, the message before which it is asked.
    before: Vec<usize>,
    /// For each item, the first call whose prompt could hold the answer.
    said_at: Vec<Option<usize>>,
    /// What stands in the system prompt and the tool definitions.
    pinned: Vec<(usize, Strength)>,
    messages: usize,
    /// Whether any probe asks what stands last.
    is_ordered: bool,
    sources: Sources,
}

impl SurvivalPlan {
    /// The slots that answer the item of this index.
    pub fn asked_slots(&self, index: usize) -> Vec<usize> {
        let item = self.items[index];
        let fact = &self.probes[item.probe].fact;
        self.survival
            .asked_slots(item.probe, fact, self.before[index])
    }

    /// Prepares the search for those of `probes` that are selected, in every context of `session`.
    pub fn new(
        session: &Session,
        probes: Arc<[Probe]>,
        selection: &Selection,
    ) -> Result<Self, NeedlesError> {
        let survival = Survival::new(&probes)?;
        let items = selection.items(session, &probes);
        let before: Vec<usize> = items
            .iter()
            .map(|item| session.calls()[item.call])
            .collect();
        let said_at = |(item, before): (&Item, &usize)| {
            let evidence = probes[item.probe].evidence_before(*before);
            // Of what was said bit by bit, the oldest bit has the longest way.
            let said = evidence.first()?;
            Some(session.calls().partition_point(|answer| answer <= said))
        };
        let said_at: Vec<Option<usize>> = items.iter().zip(&before).map(said_at).collect();
        let tools = session.tools().iter().map(crate::session::ToolSchema::text);
        let mut pinned = Vec::new();
        for text in session.system().into_iter().chain(tools) {
            for finding in survival.find(text).iter() {
                if let Some(strength) = finding.found.strength(WrittenBy::Session) {
                    pinned.push((finding.slot, strength));
                }
            }
        }
        Ok(Self {
            sources: Sources::new(session, &probes, &survival),
            is_ordered: (0..survival.slot_count()).any(|slot| survival.is_ordered(slot)),
            survival,
            probes,
            items,
            said_at,
            before,
            pinned,
            messages: session.messages().len(),
        })
    }

    /// The session's probes.
    pub fn probes(&self) -> &Arc<[Probe]> {
        &self.probes
    }

    /// The session's items, in the order of the record.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The items that are asked at this call.
    pub fn due(&self, call: usize) -> &[Item] {
        &self.items[self.due_range(call)]
    }

    /// The search for what was planted.
    pub fn survival(&self) -> &Survival {
        &self.survival
    }

    /// The numbers of the items that are asked at this call.
    pub fn due_range(&self, call: usize) -> std::ops::Range<usize> {
        let from = self.items.partition_point(|item| item.call < call);
        let to = self.items.partition_point(|item| item.call <= call);
        from..to
    }
}

/// In how many texts a slot stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Standing {
    /// By place, in the order of [`PLACES`].
    strong: [u32; 6],
    weak: [u32; 6],
}

impl Standing {
    fn is_strong(&self) -> bool {
        self.strong.iter().any(|count| *count > 0)
    }
}

/// Follows what was planted through one cell, and writes [`CellRecord::probes`].
#[derive(Debug)]
pub struct SurvivalObserver {
    plan: Arc<SurvivalPlan>,
    standing: Vec<Standing>,
    order: Order,
    lost: Vec<Option<LostAt>>,
    /// How often each message of the session stands in the context as it was.
    verbatim: Vec<u32>,
    /// How many messages do.
    whole: usize,
    evidence: Evidence,
    /// What the summariser was sent.
    sent: Option<Sent>,
    /// By item.
    results: Vec<Option<SurvivalRecord>>,
}

impl SurvivalObserver {
    /// An observer for one cell of the plan's session.
    pub fn new(plan: Arc<SurvivalPlan>) -> Self {
        let slots = plan.survival.slot_count();
        let mut standing = vec![Standing::default(); slots];
        for &(slot, strength) in &plan.pinned {
            match strength {
                Strength::Strong => standing[slot].strong[0] += 1,
                Strength::Weak => standing[slot].weak[0] += 1,
            }
        }
        Self {
            standing,
            order: Order::default(),
            lost: vec![None; slots],
            verbatim: vec![0; plan.messages],
            whole: 0,
            evidence: Evidence::of(&plan.probes),
            sent: None,
            results: vec![None; plan.items.len()],
            plan,
        }
    }

    /// Counts what stands in `entry`, and says where what has an order stands in it.
    fn add(&mut self, entry: &Entry) -> Box<[Mention]> {
        let survival = &self.plan.survival;
        let mut mentions = Vec::new();
        each_finding(survival, entry, |found| {
            let standing = &mut self.standing[found.slot];
            match found.strength {
                Strength::Strong => {
                    standing.strong[found.place] += 1;
                    self.lost[found.slot] = None;
                    if survival.is_ordered(found.slot) {
                        mentions.push(Mention {
                            slot: found.slot,
                            place: found.place,
                            within: found.within,
                        });
                    }
                }
                Strength::Weak => standing.weak[found.place] += 1,
            }
        });
        if let Origin::Verbatim(message) = entry.origin
            && let Some(count) = self.verbatim.get_mut(message)
        {
            *count += 1;
            self.whole += usize::from(*count == 1);
        }
        mentions.into()
    }

    /// Takes `entry` out, and notes in `touched` what stood strongly in it.
    fn remove(&mut self, entry: &Entry, touched: &mut Vec<usize>) {
        each_finding(&self.plan.survival, entry, |found| {
            let standing = &mut self.standing[found.slot];
            let counts = match found.strength {
                Strength::Strong => {
                    touched.push(found.slot);
                    &mut standing.strong
                }
                Strength::Weak => &mut standing.weak,
            };
            counts[found.place] = counts[found.place].saturating_sub(1);
        });
        if let Origin::Verbatim(message) = entry.origin
            && let Some(count) = self.verbatim.get_mut(message)
        {
            self.whole -= usize::from(*count == 1);
            *count = count.saturating_sub(1);
        }
    }

    /// Notes for each slot that stands nowhere any more that this patch is what lost it.
    fn note_lost(&mut self, touched: Vec<usize>, applied: &Applied) {
        for slot in touched {
            if !self.standing[slot].is_strong() {
                self.lost[slot] = Some(LostAt {
                    call: applied.call,
                    stage: applied.stage.to_string(),
                    reason: applied.reason.clone(),
                    seen_by_summariser: self.sent.as_ref().map(|it| it.has(slot, applied)),
                });
            }
        }
    }

    fn judge(&self, index: usize, ranks: &Ranks, compacted: &Ranks) -> SurvivalRecord {
        let item = self.plan.items[index];
        let before = self.plan.before[index];
        let probe = &self.plan.probes[item.probe];
        if probe.kind() == ProbeKind::Open {
            let evidence = probe.evidence_before(before);
            let is_there = |at| stands(&self.verbatim, at);
            return self.evidence.judge(&evidence, is_there);
        }
        let slots = self.plan.survival.slots(item.probe);
        let is_compacted = self.is_compacted(probe, before);
        // What has an order is judged by what stands last.
        let said = probe.fact.current(before).len();
        let said = slots.start..slots.start + said;
        let last = |ranks: &Ranks| match &probe.fact {
            fact if fact.is_revised() => Some(ranks.newest(said.clone())),
            Fact::Continuation { items, .. } => {
                let done = items.iter().map(|it| it.done.is_some_and(|at| at < before));
                Some(ranks.pending(slots.start, done))
            }
            Fact::Order { .. } => Some(ranks.sequence(said.clone())),
            _ => None,
        };
        let asked = self.plan.asked_slots(index);
        let standing: Vec<&Standing> = asked.iter().map(|slot| &self.standing[*slot]).collect();
        let lost_at = asked
            .iter()
            .zip(&standing)
            .filter(|(_, standing)| !standing.is_strong())
            .filter_map(|(slot, _)| self.lost[*slot].as_ref())
            .max_by_key(|lost| lost.call)
            .cloned();
        // A decoy is there as soon as its value is: its key may well be another's.
        let any = probe.kind() == ProbeKind::Decoy;
        let holds = |standing: &Standing, place: usize| {
            standing.strong[place] > 0 || (any && standing.weak[place] > 0)
        };
        let share = |standing: &[&Standing], places: &[usize]| {
            let is_there = |standing: &&&Standing| places.iter().any(|at| holds(standing, *at));
            // A reason without its choice is nothing, and half of the way leads nowhere.
            let is_void = match &probe.fact {
                Fact::Decision { .. } => !standing.first().is_some_and(|choice| is_there(&choice)),
                Fact::TwoStep { .. } => !standing.iter().all(|step| is_there(&step)),
                _ => false,
            };
            if standing.is_empty() || is_void {
                0.0
            } else {
                standing.iter().filter(is_there).count() as f64 / standing.len() as f64
            }
        };
        let weak = (0..PLACES.len()).find(|place| standing.iter().any(|s| s.weak[*place] > 0));
        if let Some(found) = last(ranks) {
            let fate = match (found.fate, weak) {
                (Fate::Lost, Some(_)) => Fate::Unbound,
                (fate, _) => fate,
            };
            return SurvivalRecord {
                fate,
                score: found.score,
                place: found.place.or(weak).map(|place| PLACES[place]),
                compacted_score: is_compacted
                    .then(|| last(compacted).map_or(0.0, |found| found.score)),
                lost_at,
            };
        }
        let score = share(&standing, &[0, 1, 2, 3, 4, 5]);
        let strong = (0..PLACES.len()).find(|place| standing.iter().any(|s| holds(s, *place)));
        let fate = if score >= 1.0 {
            Fate::Survived
        } else if score > 0.0 {
            Fate::Partial
        } else if weak.is_none() {
            Fate::Lost
        } else if probe.kind() == ProbeKind::Constraint {
            Fate::Distorted
        } else {
            Fate::Unbound
        };
        SurvivalRecord {
            fate,
            score,
            place: strong.or(weak).map(|place| PLACES[place]),
            // Edited, derived, restored.
            compacted_score: is_compacted.then(|| match &probe.fact {
                // Of a list, only what no longer stands where it was said.
                Fact::Artifact { files, .. } => {
                    let files = files.iter().filter(|file| file.is_listed(before));
                    let gone = files.zip(&standing).filter(|(file, _)| {
                        let whole = self.verbatim.get(file.message);
                        whole.is_none_or(|count| *count == 0)
                    });
                    let gone: Vec<&Standing> = gone.map(|(_, standing)| *standing).collect();
                    share(&gone, &COMPACTED)
                }
                _ => share(&standing, &COMPACTED),
            }),
            lost_at,
        }
    }

    /// Whether the evidence is no longer wholly verbatim; for a decoy, which has none, whether
    /// anything of the history is not.
    fn is_compacted(&self, probe: &Probe, before: usize) -> bool {
        if probe.kind().is_never_said() {
            return self.whole < before;
        }
        probe
            .evidence_before(before)
            .into_iter()
            .any(|message| self.verbatim.get(message).is_none_or(|count| *count == 0))
    }
}

/// Whether a message of the session stands in the context as it was, by how often it does.
fn stands(verbatim: &[u32], message: usize) -> bool {
    verbatim.get(message).is_some_and(|count| *count > 0)
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
struct Found {
    slot: usize,
    /// Index in [`PLACES`].
    place: usize,
    strength: Strength,
    /// Block and byte. What a compaction wrote in one go has no order of its own.
    within: (usize, usize),
}

fn each_finding(survival: &Survival, entry: &Entry, mut each: impl FnMut(Found)) {
    let place = place_of(&entry.origin);
    let is_written = matches!(entry.origin, Origin::Derived(_) | Origin::Authored);
    for (block, text) in entry.message.model_text().iter().enumerate() {
        let is_recorded = entry.is_verbatim(block) || matches!(entry.origin, Origin::Restored(_));
        let written_by = if is_recorded {
            WrittenBy::Session
        } else {
            WrittenBy::Compaction
        };
        for finding in survival.find(text).iter() {
            if let Some(strength) = finding.found.strength(written_by) {
                let is_sequence = survival.is_sequence(finding.slot);
                let within = match (is_recorded || is_sequence, is_written) {
                    (true, _) => (block, finding.at),
                    (false, true) => (0, 0),
                    (false, false) => (block, 0),
                };
                each(Found {
                    slot: finding.slot,
                    place,
                    strength,
                    within,
                });
            }
        }
    }
}

impl Observer for SurvivalObserver {
    fn asked(&mut self, asked: &Asked) {
        if matches!(asked.request.task, Task::Summarise { .. }) && asked.answer.is_some() {
            let sent = self.sent.get_or_insert_default();
            sent.note(&self.plan.survival, asked);
        }
    }

    fn appended(&mut self, entry: &Entry) {
        let mentions = self.add(entry);
        self.order.append(mentions);
    }

    /// What stood in the message before it was appended, and stands nowhere without it, is lost
    /// here; [`Observer::appended`] takes that back for what the shorter message still holds.
    fn shortened(&mut self, applied: &Applied) {
        let mut touched = Vec::new();
        for entry in &applied.change.removed {
            self.add(entry);
        }
        for entry in &applied.change.removed {
            self.remove(entry, &mut touched);
        }
        self.note_lost(touched, applied);
    }

    fn patched(&mut self, applied: &Applied) {
        let mut touched = Vec::new();
        for entry in &applied.change.removed {
            self.remove(entry, &mut touched);
        }
        let mut shift = 0;
        for edit in &applied.change.edits {
            let with = edit.with.iter().map(|entry| self.add(entry)).collect();
            shift = self.order.replace(&edit.entries, with, shift);
        }
        self.note_lost(touched, applied);
        let verbatim = &self.verbatim;
        self.evidence.patched(applied, |at| stands(verbatim, at));
    }

    fn called(&mut self, view: &CallView<'_>) {
        let due = self.plan.due_range(view.call);
        if due.is_empty() {
            return;
        }
        let (mut ranks, mut compacted) = (Ranks::default(), Ranks::default());
        if self.plan.is_ordered {
            let pinned = self.plan.pinned.iter();
            let pinned = pinned.filter(|(_, strength)| *strength == Strength::Strong);
            ranks = self.order.ranks(pinned.map(|(slot, _)| *slot), |_| true);
            let region = |place: usize| COMPACTED.contains(&place);
            compacted = self.order.ranks(std::iter::empty(), region);
        }
        let mut named = None;
        for index in due {
            let mut found = self.judge(index, &ranks, &compacted);
            // Nothing was searched for a person's question, and nothing is lost of it.
            let is_searched =
                |probe: usize| self.plan.probes[probe].kind() != ProbeKind::Unanswerable;
            if found.fate == Fate::Lost && is_searched(self.plan.items[index].probe) {
                let Item { probe, .. } = self.plan.items[index];
                let before = self.plan.before[index];
                let evidence = self.plan.probes[probe].evidence_before(before);
                let named = named.get_or_insert_with(|| Named::new(view.context));
                if self.plan.sources.reach(probe, &evidence, before, named) {
                    found.fate = Fate::Reachable;
                }
            }
            self.results[index] = Some(found);
        }
    }

    fn finish(mut self: Box<Self>, record: &mut CellRecord) {
        if self.sent.is_some() {
            // What was lost before anybody was asked, no summariser ever saw.
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
                    importance: probe.importance,
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
