//! What the verdict of a run rests on: each strategy against its control, axis by axis.

use std::collections::{BTreeMap, BTreeSet};

use super::build::Material;
use super::escape;
use super::sections::comparison::writers;
use super::sections::{cost, models, sizes};
use super::strategy_summary::StrategySummary;
use crate::compare::verdict::{
    Axis, Candidate, FullHistory, MARGIN, Obstacle, TaskRun, TasksSolved, Verdict, differences,
};
use crate::compare::{ComparedRun, Sample};
use crate::record::words::ModelKind;
use crate::record::{CellRecord, Manifest};
use crate::window::Window;

/// The verdict of a run; `manifest` and `cells` hold the controls that it added, `material` does not.
pub(super) fn verdict(
    manifest: &Manifest,
    cells: &[CellRecord],
    material: &Material<'_>,
) -> Verdict {
    let source = ComparedRun::with_added(manifest, cells);
    let writers = writers(material).unwrap_or_default();
    let strategies: Vec<&StrategySummary> = material.compared().collect();
    let evidence = Evidence {
        source: &source,
        full_fits: full_fits(material),
        facts: facts_axis(&strategies),
        has_items: material.has_items(),
        seed: manifest.seed,
        writers,
    };
    let candidates = strategies.iter().map(|it| evidence.of(it, &strategies));
    let candidates = candidates.collect();
    let clusters = manifest.clusters();
    let of = |session: &'_ str| clusters.get(session).copied();
    let ran: BTreeSet<&str> = (material.cells.iter())
        .filter_map(|it| of(&it.session))
        .collect();
    let mut verdict = Verdict::of(
        (population(manifest), manifest.sessions.len()),
        ran.len(),
        candidates,
    );
    verdict.tasks = TasksSolved::of(&task_runs(manifest, &material.cells));
    if is_closed(material) && verdict.tasks.is_empty() {
        verdict.obstacle = Some(Obstacle::NoOutcomes);
    }
    verdict
}

/// The runs of tasks whose results are known.
fn task_runs<'a>(manifest: &'a Manifest, cells: &[&'a CellRecord]) -> Vec<TaskRun<'a>> {
    let runs = cells.iter().filter_map(|cell| {
        let live = cell.live.as_ref()?;
        let session = manifest.sessions.iter().find(|it| it.id == cell.session);
        let price = session.and_then(|session| session.price.as_ref());
        // A call without usage, or a price that is not the agent's, is no part of a sum.
        let is_known = live.unbilled == 0 && cell.model_calls.iter().all(|it| it.model.is_none());
        let price = price.filter(|_| is_known);
        let dollars = price.and_then(|price| price.per_token.cost(&(live.billed + live.strategy)));
        Some(TaskRun {
            task: &cell.session,
            strategy: &cell.strategy,
            score: live.score?,
            dollars,
        })
    });
    runs.collect()
}

/// A graded axis goes before string search.
fn facts_axis(strategies: &[&StrategySummary]) -> Axis {
    let mut graded = strategies
        .iter()
        .filter_map(|it| it.answers.as_ref()?.accuracy);
    graded.next().map_or(Axis::Facts, |_| Axis::Answers)
}

/// The sessions whose full history fits the window at every call.
fn full_fits<'a>(material: &Material<'a>) -> BTreeSet<&'a str> {
    let windows = material
        .cells
        .iter()
        .filter_map(|cell| Some((cell.session.as_str(), cell.window?)));
    let windows: BTreeMap<&str, Window> = windows.collect();
    let fits = |cell: &&CellRecord| {
        let window = windows.get(cell.session.as_str());
        window.is_some_and(|window| {
            !cell
                .prompt_tokens
                .iter()
                .any(|prompt| window.overflows(*prompt))
        })
    };
    let fitting = material.references().filter(fits);
    fitting.map(|cell| cell.session.as_str()).collect()
}

struct Evidence<'a> {
    source: &'a ComparedRun,
    /// Sessions in which doing nothing is a choice.
    full_fits: BTreeSet<&'a str>,
    facts: Axis,
    has_items: bool,
    seed: u64,
    /// Strategies whose summaries a model would have written, where none did.
    writers: BTreeSet<&'a str>,
}

impl Evidence<'_> {
    fn axes(&self) -> [Axis; 3] {
        [Axis::Cost, self.facts, Axis::Actions]
    }

    fn of(&self, strategy: &StrategySummary, all: &[&StrategySummary]) -> Candidate {
        let name = strategy.name.as_str();
        let share = |metric| Some(strategy.estimate(metric)?.point_estimate);
        let mut candidate = Candidate {
            name: name.to_owned(),
            fired: strategy.fired,
            broken: strategy.broken().map(|breakage| breakage.to_string()),
            saved: strategy.estimate("cost_savings"),
            saved_edge: share("cost_savings_edge"),
            tokens_saved: share("token_savings"),
            edits: strategy.stages.values().map(|stage| stage.patches).sum(),
            ..Candidate::default()
        };
        if candidate.fired == 0 || candidate.broken.is_some() {
            return candidate;
        }
        let control = format!("tail@{name}");
        let samples = self
            .source
            .strategy(name)
            .zip(self.source.strategy(&control));
        if let Some((own, other)) = samples {
            candidate.control = Some(control);
            candidate.full_history = FullHistory::beside(own, &self.full_fits);
            candidate.uncompared = self.uncompared(name, own, other);
            let uncompared = &candidate.uncompared;
            let compared = self.axes().into_iter();
            let compared = compared.filter(|axis| uncompared.iter().all(|(it, _)| it != axis));
            candidate.differences = differences(other, own, compared, self.seed);
        }
        candidate.dominated = self.dominator(strategy, all);
        candidate
    }

    /// Axes on which a strategy and its control say nothing about each other.
    fn uncompared(&self, name: &str, own: &Sample, control: &Sample) -> Vec<(Axis, &'static str)> {
        let mut found = Vec::new();
        for axis in self.axes() {
            let is_known = [own, control].iter().all(|it| axis.is_measured(it));
            let why = match axis {
                Axis::Facts if !self.has_items => "nothing was planted in these sessions",
                Axis::Facts | Axis::Answers if self.writers.contains(name) => {
                    "no model wrote the summaries"
                }
                _ if is_known => continue,
                Axis::Facts | Axis::Answers | Axis::Cost => "they were not measured",
                Axis::Actions => "no later action names a detail",
            };
            found.push((axis, why));
        }
        found
    }

    /// A strategy that is at least as good on each axis, and shown to be better on one.
    fn dominator(
        &self,
        strategy: &StrategySummary,
        all: &[&StrategySummary],
    ) -> Option<(String, crate::compare::verdict::Difference)> {
        let facts = match self.facts {
            Axis::Answers => "accuracy",
            _ => "survival",
        };
        let values = |it: &StrategySummary| {
            ["cost_savings", facts, "action_support"]
                .map(|metric| it.estimate(metric).map(|it| it.point_estimate))
        };
        let own = values(strategy);
        let is_written = |it: &StrategySummary| self.writers.contains(it.name.as_str());
        let is_as_good = |other: &&&StrategySummary| {
            let pairs = values(other).into_iter().zip(own);
            other.name != strategy.name
                && other.fired > 0
                && other.broken().is_none()
                && is_written(other) == is_written(strategy)
                && own[0].is_some()
                && pairs.clone().all(|(other, own)| other >= own)
        };
        let others = all.iter().filter(is_as_good);
        let best = others.max_by(|left, right| {
            let [left, right] = [left, right].map(|it| values(it)[0].unwrap_or(f64::NAN));
            left.total_cmp(&right)
        })?;
        let own = self.source.strategy(&strategy.name)?;
        let other = self.source.strategy(&best.name)?;
        let axes = self.axes().into_iter().filter(|it| it.is_measured(own));
        let found = differences(own, other, axes, self.seed).into_iter();
        // Less than the margin is no reason to avoid anything.
        let better = found.filter(|it| it.bounds.lower > 0.0 && it.bounds.difference >= MARGIN);
        let better = better.max_by(|a, b| a.bounds.lower.total_cmp(&b.bounds.lower))?;
        Some((best.name.clone(), better))
    }
}

/// The sessions in words: `12 generated sessions (code-review)`.
fn population(manifest: &Manifest) -> String {
    let sessions = &manifest.sessions;
    let is_made = |format: &str| format == "synthetic";
    let made = sessions.iter().filter(|entry| is_made(&entry.format));
    let families: BTreeSet<&str> = made.clone().map(|entry| family(&entry.id)).collect();
    let families: Vec<&str> = families.into_iter().collect();
    let many = |one: &str, more: &str| super::display::many(sessions.len(), one, more);
    match made.count() {
        0 => many("recorded session", "recorded sessions"),
        count if count == sessions.len() => {
            let sessions = many("generated session", "generated sessions");
            format!("{sessions} ({})", families.join(", "))
        }
        _ => many("session", "sessions"),
    }
}

/// The family of a generated session: `code-review` of `code-review-s7-r40`.
fn family(id: &str) -> &str {
    let mut places = id.match_indices("-s");
    let is_seed = |at: usize| id[at + 2..].starts_with(|c: char| c.is_ascii_digit());
    let seed = places.find(|(at, _)| is_seed(*at));
    seed.map_or(id, |(at, _)| &id[..at])
}

/// How far to trust the numbers: who found the facts and wrote the summaries, how prompts were sized, and
/// which cache was simulated.
pub(super) fn trust(material: &Material<'_>) -> String {
    let manifest = material.manifest;
    let (reader, summariser) = (&manifest.reader, &manifest.summariser);
    let mut found = Vec::new();
    if material.has_items() {
        found.push(match reader {
            None => "facts are found by string search".to_owned(),
            Some(reader) if reader.kind == ModelKind::Live => {
                format!("the answers are by {}", reader.name)
            }
            Some(_) => "answers were scripted".to_owned(),
        });
        if reader.is_some() {
            let judges = models::judges_in_words(&models::judges(manifest));
            let judges = judges.map(|judges| format!("judge {judges}"));
            found.push(judges.unwrap_or_else(|| "rules judged".to_owned()));
        }
    }
    if material.has_calls() {
        found.push(match summariser.kind {
            ModelKind::Deterministic => "rules wrote the summaries, no model was asked".to_owned(),
            ModelKind::Scripted => "summaries were scripted".to_owned(),
            ModelKind::Live => format!("the summaries are by {}", summariser.name),
        });
    }
    let random = manifest.strategies.iter().filter(|it| it.is_random);
    let random: Vec<&str> = random.map(|it| it.name.as_str()).collect();
    if !random.is_empty() {
        let names = random.join(", ");
        found.push(format!(
            "the same session got different contexts under {names}: repeats show how much that matters"
        ));
    }
    let actions = if is_closed(material) {
        "an agent ran under each strategy and chose its own actions; apart from tasks and bills, the numbers are of a replay"
    } else {
        "the recorded agent's actions are fixed"
    };
    found.push(actions.to_owned());
    let sizes = Some(sizes::line(material));
    let cache = cost::billed(material).map(|it| format!("{it}, usual breakpoints"));
    let dollars = cost::full_history(material).or_else(|| cost::unpriced(material));
    let parts = [Some(found.join("; ")), sizes, cache, dollars];
    let parts: Vec<String> = parts.into_iter().flatten().map(|it| capital(&it)).collect();
    parts.join(". ") + "."
}

/// Whether agents ran, and nothing was recorded before.
pub(super) fn is_closed(material: &Material<'_>) -> bool {
    material.cells.iter().any(|cell| cell.live.is_some())
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + chars.as_str()
}

/// Knobs worth a sweep, with the range to try: those of the first stage that is on and has one.
const KNOBS: &[(&str, &str)] = &[
    ("keep_last", "2..12:5"),
    ("when.window_fraction", "0.6..0.9:0.1"),
    ("when.tokens", "40000..120000:40000"),
    ("budget_tokens", "10000..40000:10000"),
];

/// The words of a sweep of the strategy that saves most; a flag with its value is one word. The scenario or
/// the recordings go behind the first, where they are known.
pub(super) fn next(manifest: &Manifest, verdict: &Verdict) -> Vec<String> {
    let contender = verdict.contenders.first();
    let entry = contender.and_then(|it| {
        let mut strategies = manifest.strategies.iter();
        strategies.find(|entry| entry.name == it.strategy)
    });
    let command = entry.and_then(|entry| {
        let table: toml::Table = entry.toml.parse().ok()?;
        let stages = table.get("stage")?.as_array()?;
        let mut stages = stages.iter().filter(|stage| is_on(stage));
        let (stage, (knob, range)) = stages.find_map(|stage| {
            let has = |path: &str| {
                let value = path.split('.').try_fold(stage, |value, key| value.get(key));
                value.is_some_and(|it| !it.is_table())
            };
            let knob = KNOBS.iter().find(|(knob, _)| has(knob))?;
            Some((stage, *knob))
        })?;
        let name = stage.get("name").or_else(|| stage.get("kind"))?.as_str()?;
        Some(vec![
            "proctor sweep".to_owned(),
            escape::flag("--strategy", &entry.name),
            escape::flag("-P", &format!("{name}.{knob}={range}")),
        ])
    });
    command.unwrap_or_default()
}

fn is_on(stage: &toml::Value) -> bool {
    stage.get("enabled").and_then(toml::Value::as_bool) != Some(false)
}
