//! Where samples come from: a run or a baseline, and whether two of them may be compared.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::baseline::{FORMAT, VERSION};
use super::{Chance, Sample, prices};
use crate::metric::CellSummary;
use crate::metric::cost::{SessionPrices, SimulatedCost};
use crate::metric::fidelity::ReaderCeiling;
use crate::naming::base_name;
use crate::record::words::ModelKind;
use crate::record::{
    Arm, CellRecord, JUDGE_PROMPT, JUDGE_RUBRIC, JUDGED, Manifest, ModelEntry, PriceEntry,
    SessionEntry, repairs,
};

/// All strategies of a run, with what they were measured by: what a baseline's file holds.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "Baseline")]
#[schemars(description = "The file.")]
pub struct ComparedRun {
    /// Always `proctor-baseline`.
    pub format: String,
    /// [`VERSION`] of the build that wrote it.
    pub version: u32,
    /// The conditions of the measurement.
    pub conditions: Conditions,
    /// The sessions with the hash of their content.
    pub sessions: BTreeMap<String, String>,
    /// The hash of what is asked of each session, where it is known.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub probes: BTreeMap<String, String>,
    /// The main session of each side chain: both count as one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clusters: BTreeMap<String, String>,
    /// The prices of each session's tokens, relative to its model's input.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rates: BTreeMap<String, SessionPrices>,
    /// Names of the strategies, in the order of the run.
    pub order: Vec<String>,
    /// The strategies, by name.
    pub strategies: BTreeMap<String, Sample>,
    /// Question and value of each probe item, by session and item (`fact-3@50`). Only a run knows them:
    /// a baseline's file holds no text of a session.
    #[serde(skip)]
    pub texts: BTreeMap<(String, String), FactText>,
    /// What importers mended in its sessions, in a sentence. Only a run knows it.
    #[serde(skip)]
    pub repairs: Option<String>,
    /// How far simulated costs are from the bill. Only a run of billed sessions knows it.
    #[serde(skip)]
    pub simulated_cost: Option<SimulatedCost>,
}

/// Question and value of a probe item, in words.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct FactText {
    /// The question.
    pub question: String,
    /// The right answer at that point.
    pub value: String,
}

/// The conditions of the measurement.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conditions {
    /// The scenario's name.
    pub scenario: String,
    /// Version of Proctor.
    pub proctor: String,
    /// The token counter.
    pub counter: String,
    /// The window mode.
    pub window: String,
    /// Who writes summaries.
    pub summariser: ModelEntry,
    /// Who answers probes.
    pub reader: Option<ModelEntry>,
    /// Who judges answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judge: Option<ModelEntry>,
    /// The injected faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// Prices in force, one line per session that has any.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, String>,
    /// The other settings that decide results, by name; empty if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub settings: BTreeMap<String, String>,
    /// How many sessions were drawn from those of the scenario, where not all were replayed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<usize>,
    /// Repeats of each cell.
    pub repeats: u32,
    /// Strategies whose programs made two contexts of the same session, or whose agents ran.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub random: Vec<String>,
}

/// Something that differs between two sources and should not.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Mismatch {
    /// What: `counter`, `session review-1`.
    pub what: String,
    /// In the baseline.
    pub baseline: String,
    /// In the candidate.
    pub candidate: String,
}

/// The strategies of two sources, paired.
#[derive(Debug, Clone, PartialEq)]
pub struct StrategyPairs<'a> {
    /// Baseline and candidate, in the order of the baseline.
    pub pairs: Vec<(&'a Sample, &'a Sample)>,
    /// Names of strategies of the baseline without a counterpart.
    pub baseline_alone: Vec<&'a str>,
    /// Names of strategies of the candidate without a counterpart.
    pub candidate_alone: Vec<&'a str>,
}

/// What the reader of a run knows with everything in front of it.
fn ceiling(cells: &[CellRecord]) -> Option<ReaderCeiling> {
    let arms = [Arm::Reference, Arm::Floor].map(|arm| -> Vec<CellSummary> {
        let own = cells.iter().filter(|cell| cell.end.is_measured()).filter(|cell| cell.arm == arm);
        own.map(|cell| CellSummary::of(cell, None)).collect()
    });
    let [full, empty] = arms.each_ref().map(|own| own.iter().collect::<Vec<_>>());
    ReaderCeiling::of(&full, &empty)
}

impl ComparedRun {
    /// Reduces a run. Controls that the run added are left out.
    pub fn of(manifest: &Manifest, cells: &[CellRecord]) -> Self {
        Self::reduced(manifest, cells, false)
    }

    /// The same with the controls that the run added.
    pub(crate) fn with_added(manifest: &Manifest, cells: &[CellRecord]) -> Self {
        Self::reduced(manifest, cells, true)
    }

    fn reduced(manifest: &Manifest, cells: &[CellRecord], with_added: bool) -> Self {
        let references = cells.iter().filter(|cell| cell.arm == Arm::Reference);
        let references: BTreeMap<&str, &CellRecord> =
            references.map(|cell| (&*cell.session, cell)).collect();
        let all = manifest.strategies.iter();
        let strategies = all.clone().filter(|entry| with_added || !entry.is_added);
        let samples = strategies.clone().map(|entry| {
            let measured = cells.iter().filter(|cell| {
                cell.arm == Arm::Strategy && cell.strategy == entry.name && cell.end.is_measured()
            });
            let own: Vec<&CellRecord> = measured.collect();
            let mut sample = Sample::of(&entry.name, &entry.toml, &own, &references, manifest);
            sample.worth.clone_from(&entry.worth);
            (entry.name.clone(), sample)
        });
        let closed = cells.iter().any(|cell| cell.live.is_some());
        let random = all.filter(|entry| entry.is_random || closed).map(|entry| entry.name.clone());
        let sessions = &manifest.sessions;
        let mut source = Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            conditions: Conditions {
                scenario: manifest.scenario.clone(),
                proctor: manifest.proctor.clone(),
                counter: manifest.counter.clone(),
                window: manifest.window.clone(),
                summariser: manifest.summariser.clone(),
                reader: manifest.reader.clone(),
                judge: manifest.judge.clone(),
                faults: manifest.faults.clone(),
                sample: manifest.sample,
                prices: by_id(sessions, |entry| condition(entry.price.as_ref()?)),
                settings: manifest.conditions.clone(),
                repeats: manifest.repeats,
                random: random.collect(),
            },
            probes: by_id(sessions, |entry| entry.probes.clone()),
            sessions: by_id(sessions, |entry| Some(entry.hash.clone())),
            clusters: by_id(sessions, |entry| entry.cluster.clone()),
            rates: prices::of_sessions(cells),
            order: strategies.map(|entry| entry.name.clone()).collect(),
            strategies: samples.collect(),
            texts: texts(cells),
            repairs: repairs(&manifest.sessions),
            simulated_cost: SimulatedCost::of(cells.iter()),
        };
        source.place_all();
        let reader = manifest.reader.as_ref();
        let live = reader.is_some_and(|reader| reader.kind == ModelKind::Live);
        if live && ceiling(cells).is_some_and(|ceiling| ceiling.is_refused()) {
            source.forget_answers();
        }
        source
    }

    /// Writes into each session of a sample which cluster it belongs to.
    pub(crate) fn place_in_clusters(&self, sample: &mut Sample) {
        place(sample, &self.clusters);
    }

    /// The same for all samples.
    pub(super) fn place_all(&mut self) {
        for sample in self.strategies.values_mut() {
            place(sample, &self.clusters);
        }
    }

    /// The measurements that depend on chance.
    pub fn chance(&self) -> Chance {
        let conditions = &self.conditions;
        let mut graders = conditions.reader.iter().chain(&conditions.judge);
        if conditions.summariser.kind == ModelKind::Live || !conditions.random.is_empty() {
            Chance::Everywhere
        } else if graders.any(|model| model.kind == ModelKind::Live) {
            Chance::Answers
        } else {
            Chance::Nowhere
        }
    }

    /// Why answers to probes say nothing about each other, in a sentence without a full stop: only those of one and
    /// the same reader do. Without answers there is nothing to mix.
    pub fn other_reader(&self, candidate: &Self) -> Option<String> {
        let readers = [&self.conditions.reader, &candidate.conditions.reader];
        let [Some(left), Some(right)] = readers.map(Option::as_ref) else {
            return None;
        };
        let (left_name, right_name) = (&left.name, &right.name);
        let text = format!(
            "`{left_name}` and `{right_name}` are two readers: their answers say nothing about each other"
        );
        (left != right).then_some(text)
    }

    /// Whether one judge graded the answers of both, shown the same and in the same prompt, as far as both tell.
    pub fn same_judge(&self, candidate: &Self) -> bool {
        let (old, new) = (&self.conditions, &candidate.conditions);
        let keys = [JUDGE_RUBRIC, JUDGE_PROMPT, JUDGED].into_iter();
        let mut known = keys.filter_map(|key| old.settings.get(key).zip(new.settings.get(key)));
        old.judge == new.judge && known.all(|(old, new)| old == new)
    }

    /// Leaves out what readers answered: the numbers of two readers make no difference.
    pub fn forget_answers(&mut self) {
        let samples = self.strategies.values_mut();
        let sessions = samples.flat_map(|sample| sample.sessions.values_mut());
        for probe in sessions.flat_map(|session| session.probes.values_mut()) {
            probe.accuracy.clear();
            probe.answers.clear();
        }
    }

    /// The strategies, in the order of the run.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.order.iter().filter_map(|name| self.strategy(name))
    }

    /// The strategy of this name.
    pub fn strategy(&self, name: &str) -> Option<&Sample> {
        self.strategies.get(name)
    }

    /// Pairs the strategies with those of `candidate`, in three rounds: those of the same name; of the
    /// rest those of the same name without overrides, where it is clear which one is meant; and where
    /// each side has one strategy in all, these.
    pub fn pairs<'a>(&'a self, candidate: &'a Self) -> StrategyPairs<'a> {
        let sides = [self, candidate];
        let same = self.samples().filter_map(|old| Some([old, candidate.strategy(&old.strategy)?]));
        let mut pairs: Vec<[&Sample; 2]> = same.collect();
        for name in self.samples().map(|sample| base_name(&sample.strategy)) {
            let alike = [0, 1].map(|side| -> Vec<&Sample> {
                let open = sides[side].unpaired(&pairs, side);
                open.filter(|sample| base_name(&sample.strategy) == name).collect()
            });
            // The one without overrides is meant by the plain name among several.
            let meant = alike.each_ref().map(|own| match own.as_slice() {
                [one] => Some(*one),
                many => many.iter().copied().find(|sample| sample.strategy == name),
            });
            if let ([Some(old), Some(new)], true) = (meant, alike.iter().any(|own| own.len() < 2)) {
                pairs.push([old, new]);
            }
        }
        let each = sides.map(|side| side.samples().collect::<Vec<_>>());
        if let [[old], [new]] = each.each_ref().map(Vec::as_slice) {
            pairs = vec![[*old, *new]];
        }
        pairs.sort_by_key(|[old, _]| self.order.iter().position(|name| *name == old.strategy));
        let [baseline_alone, candidate_alone] = [0, 1].map(|side| {
            let alone = sides[side].unpaired(&pairs, side);
            alone.map(|sample| sample.strategy.as_str()).collect()
        });
        StrategyPairs {
            pairs: pairs.into_iter().map(|[old, new]| (old, new)).collect(),
            baseline_alone,
            candidate_alone,
        }
    }

    /// The strategies that are on this side of no pair.
    fn unpaired<'a>(
        &'a self,
        pairs: &[[&Sample; 2]],
        side: usize,
    ) -> impl Iterator<Item = &'a Sample> {
        self.samples().filter(move |sample| {
            pairs.iter().map(|pair| &pair[side].strategy).all(|name| *name != sample.strategy)
        })
    }

    /// The strategy of this name, or the only one of this name without overrides.
    pub fn named(&self, name: &str) -> Option<&Sample> {
        self.strategy(name).or_else(|| {
            let samples = self.samples();
            let mut alike = samples.filter(|own| base_name(&own.strategy) == base_name(name));
            alike.next().filter(|_| alike.next().is_none())
        })
    }

    /// Keeps one strategy only, [named](Self::named) so; false if there is none.
    pub fn keep(&mut self, name: &str) -> bool {
        let kept = self.named(name).map(|sample| sample.strategy.clone());
        self.order = kept.into_iter().collect();
        self.strategies.retain(|name, _| self.order.contains(name));
        !self.order.is_empty()
    }

    /// Leaves out sessions that `other` does not have with the same content.
    pub fn keep_sessions_of(&mut self, other: &Self) {
        self.keep_sessions(|id, hash| other.sessions.get(id).is_some_and(|known| known == hash));
    }

    /// Leaves out sessions that are not in the sample that `other` is of them; how many. None where it is no sample.
    pub fn keep_sample_of(&mut self, other: &Self) -> usize {
        let before = self.sessions.len();
        if other.conditions.sample.is_some() {
            self.keep_sessions(|id, _| other.sessions.contains_key(id));
        }
        before - self.sessions.len()
    }

    fn keep_sessions(&mut self, keeps: impl Fn(&str, &str) -> bool) {
        self.sessions.retain(|id, hash| keeps(id, hash));
        let sessions = &self.sessions;
        self.probes.retain(|id, _| sessions.contains_key(id));
        self.clusters.retain(|id, _| sessions.contains_key(id));
        for sample in self.strategies.values_mut() {
            sample.sessions.retain(|id, _| sessions.contains_key(id));
        }
    }

    /// The differences between the two that decide results, apart from the strategies themselves, and from
    /// prices: see [`Self::repriced`].
    pub fn mismatches(&self, candidate: &Self) -> Vec<Mismatch> {
        let mut found = self.conditions.mismatches(&candidate.conditions);
        found.extend(self.subject_mismatches(candidate));
        found
    }

    /// Sessions, and what is asked of them, that are not the same in both.
    pub fn subject_mismatches(&self, candidate: &Self) -> Vec<Mismatch> {
        let sessions = [&self.sessions, &candidate.sessions];
        let probes = [&self.probes, &candidate.probes];
        // The same questions, or nothing that is paired means the same.
        let mut found = mismatches("session", sessions, &|_| true);
        found.extend(mismatches("probes of", probes, &|id| {
            sessions[0].get(id) == sessions[1].get(id)
        }));
        found
    }

    /// Strategies that only one of them has, or that are defined in another way.
    pub fn definition_mismatches(&self, candidate: &Self) -> Vec<Mismatch> {
        let sides = [self, candidate].map(|side: &Self| -> BTreeMap<String, String> {
            let samples = side.samples();
            samples.map(|one| (one.strategy.clone(), one.definition.clone())).collect()
        });
        mismatches("strategy", sides.each_ref(), &|_| true)
    }
}

impl Conditions {
    /// The conditions that differ, prices left out.
    pub fn mismatches(&self, candidate: &Self) -> Vec<Mismatch> {
        let pairs = self.named().into_iter().zip(candidate.named());
        let mut found: Vec<Mismatch> = pairs
            .filter(|((_, baseline), (_, candidate))| baseline != candidate)
            .map(|((what, baseline), (_, candidate))| Mismatch {
                what: what.to_owned(),
                baseline,
                candidate,
            })
            .collect();
        let settings = [&self.settings, &candidate.settings];
        found.extend(mismatches("setting", settings, &|key| !is_optional(key)));
        found.extend(mismatches("setting", settings, &|key| {
            is_optional(key) && settings.iter().all(|side| side.contains_key(key))
        }));
        found
    }

    /// The conditions that are always there, by name.
    fn named(&self) -> [(&'static str, String); 6] {
        let models = [Some(&self.summariser), self.reader.as_ref(), self.judge.as_ref()];
        let [summariser, reader, judge] =
            models.map(|entry| Some(format!("{} ({:?})", entry?.name, entry?.kind)));
        let values = [
            ("counter", Some(self.counter.clone())),
            ("window", Some(self.window.clone())),
            ("summariser", summariser),
            ("reader", reader),
            ("judge", judge),
            ("faults", self.faults.clone()),
        ];
        values.map(|(what, value)| (what, value.unwrap_or_else(|| "none".to_owned())))
    }
}

/// A value of each session that has it, by its id.
fn by_id(
    sessions: &[SessionEntry],
    value: fn(&SessionEntry) -> Option<String>,
) -> BTreeMap<String, String> {
    sessions.iter().filter_map(|entry| Some((entry.id.clone(), value(entry)?))).collect()
}

fn place(sample: &mut Sample, clusters: &BTreeMap<String, String>) {
    for (id, session) in &mut sample.sessions {
        session.cluster = clusters.get(id).cloned();
    }
}

/// What a session is billed by, as a condition: what other models cost is none.
fn condition(price: &PriceEntry) -> Option<String> {
    let mut own = price.clone();
    (own.fast, own.read_shares) = (None, None);
    serde_json::to_string(&own).ok()
}

/// Questions and values of probe items; the records of full history hold them.
fn texts(cells: &[CellRecord]) -> BTreeMap<(String, String), FactText> {
    let texts = cells.iter().flat_map(|cell| {
        cell.probe_texts.iter().map(move |text| {
            let item = format!("{}@{}", text.probe, text.percent);
            let (question, value) = (text.question.clone(), text.gold.clone());
            ((cell.session.clone(), item), FactText { question, value })
        })
    });
    texts.collect()
}

/// Whether not every folder has this setting: verdicts that were given later do not know which answers
/// they would have been.
fn is_optional(key: &str) -> bool {
    matches!(key, JUDGE_RUBRIC | JUDGE_PROMPT | JUDGED)
}

/// The entries that are meant and not the same on both sides.
fn mismatches(
    what: &str,
    [baseline, candidate]: [&BTreeMap<String, String>; 2],
    is_meant: &dyn Fn(&str) -> bool,
) -> Vec<Mismatch> {
    let ids: BTreeSet<&String> = baseline.keys().chain(candidate.keys()).collect();
    let found = ids.into_iter().filter_map(|id| {
        let sides = [baseline, candidate].map(|side| side.get(id));
        (is_meant(id) && sides[0] != sides[1]).then(|| {
            let [baseline, candidate] =
                sides.map(|value| value.map_or("not there", String::as_str).to_owned());
            Mismatch { what: format!("{what} {id}"), baseline, candidate }
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(baseline: &[&str], candidate: &[&str], expected: &str) {
        let source = |names: &[&str]| -> ComparedRun {
            let model = || ModelEntry { name: "none".to_owned(), kind: ModelKind::Deterministic };
            ComparedRun {
                format: FORMAT.to_owned(),
                version: VERSION,
                conditions: Conditions {
                    scenario: "s".to_owned(),
                    proctor: "0".to_owned(),
                    counter: "chars/4".to_owned(),
                    window: "native".to_owned(),
                    summariser: model(),
                    reader: None,
                    judge: None,
                    faults: None,
                    prices: BTreeMap::new(),
                    settings: BTreeMap::new(),
                    repeats: 1,
                    random: Vec::new(),
                    sample: None,
                },
                sessions: BTreeMap::new(),
                probes: BTreeMap::new(),
                clusters: BTreeMap::new(),
                rates: BTreeMap::new(),
                order: names.iter().map(|name| (*name).to_owned()).collect(),
                strategies: names
                    .iter()
                    .map(|name| {
                        let strategy = (*name).to_owned();
                        let sample = Sample { strategy: strategy.clone(), ..Sample::default() };
                        (strategy, sample)
                    })
                    .collect(),
                texts: BTreeMap::new(),
                repairs: None,
                simulated_cost: None,
            }
        };
        let (baseline, candidate) = (source(baseline), source(candidate));
        let found = baseline.pairs(&candidate);
        let pairs: Vec<String> = found
            .pairs
            .iter()
            .map(|(old, new)| format!("{}>{}", old.strategy, new.strategy))
            .collect();
        let shown = format!(
            "{} | {} | {}",
            pairs.join(" "),
            found.baseline_alone.join(" "),
            found.candidate_alone.join(" ")
        );
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_strategy_is_held_against_the_one_whose_place_it_takes_and_never_against_a_control() {
        check(&["ours", "tail@2"], &["ours", "tail@2"], "ours>ours tail@2>tail@2 |  | ");
        // One strategy of many: the others have no counterpart, controls included.
        check(&["m", "m[k=5]", "tail@2"], &["m[k=2]"], "m>m[k=2] | m[k=5] tail@2 | ");
        check(&["m[k=2]"], &["m", "m[k=5]", "tail@2"], "m[k=2]>m |  | m[k=5] tail@2");
        check(&["m", "m[k=5]"], &["m", "m[k=7]"], "m>m m[k=5]>m[k=7] |  | ");
        check(&["m[k=1]", "m[k=2]"], &["m[k=3]"], " | m[k=1] m[k=2] | m[k=3]");
        check(&["a"], &["b"], "a>b |  | ");
        check(&["a"], &["b", "c"], " | a | b c");
        check(&["a", "m"], &["a", "b"], "a>a | m | b");
    }
}
