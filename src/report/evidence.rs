//! What the verdict of a run rests on: each strategy against its control, axis by axis.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::build::Material;
use super::sections::{cost, models, sizes};
use super::strategy_summary::StrategySummary;
use super::{display, escape, headline};
use crate::compare::NoteCode;
use crate::compare::advice::{Answer, FULL, RECORDED, Rows, RunRow, Verdict};
use crate::compare::prediction::Prediction;
use crate::compare::tasks::{TaskRun, TasksSolved};
use crate::compare::{ComparedRun, JudgingRule, Sample};
use crate::metric::cost::SchemeCost;
use crate::metric::live::LiveTotals;
use crate::metric::{CellSummary, PooledValue};
use crate::naming::{base_name, short_name};
use crate::record::words::{Fidelity, ModelKind, product};
use crate::record::{Arm, CellRecord, Manifest, StrategyEntry, kinds_of, repairs};
use crate::stats::Estimate;
use crate::units::{Usd, many};
use crate::window::Window;

/// The format of generated sessions.
const SYNTHETIC: &str = "synthetic";

/// Of strategies of which the same is said, so many are named.
const MOST_NAMED: usize = 4;

/// The verdict of a run; `manifest` and `cells` hold the controls that it added, `material` does not.
pub(super) fn verdict(
    manifest: &Manifest,
    cells: &[CellRecord],
    material: &Material<'_>,
) -> Verdict {
    let source = ComparedRun::with_added(manifest, cells);
    let clusters = manifest.clusters();
    let ran = material.cells.iter().filter_map(|cell| clusters.get(&*cell.session));
    let (nothing, fits) = nothing(&source, material);
    // Where the agent compacted, that is doing nothing, and no strategy beside it.
    let beside = nothing.strategy != RECORDED;
    let compared = material.compared().filter(|strategy| beside || strategy.name != RECORDED);
    let strategies = compared.filter_map(|strategy| row(strategy, &source, material));
    let rows = Rows {
        population: population(manifest, true),
        clusters: ran.collect::<BTreeSet<_>>().len(),
        nothing,
        fits,
        strategies: strategies.collect(),
        rule: rule(manifest),
    };
    let mut verdict = rows.advise();
    let trials = task_runs(&material.summaries);
    verdict.tasks = TasksSolved::of(&trials);
    verdict.prediction = (!trials.is_empty()).then(|| Prediction::of(&trials));
    if material.live.is_some() && verdict.tasks.is_empty() {
        verdict.answer(Answer::NoOutcomes);
    }
    if let (Some(reader), Some(ceiling)) = (&manifest.reader, material.ceiling) {
        let kept = kept_of_a_hundred(material, verdict.strategy.as_deref());
        let sentences = [Some(ceiling.sentence(&reader.name)), kept];
        let sentences = display::joined(sentences.into_iter().flatten(), " ");
        verdict.begin_with(NoteCode::ReaderRefused, sentences);
    }
    verdict
}

/// Of 100 facts that the reader can use, how many strategies keep: fidelity in words, that of the `named` one first
/// and then the best. `None` where it was not measured.
fn kept_of_a_hundred(material: &Material<'_>, named: Option<&str>) -> Option<String> {
    let measured = material.compared().filter_map(|strategy| {
        let fidelity = strategy.answers.as_ref()?.fidelity.ok()?;
        Some((strategy.name.as_str(), fidelity))
    });
    let mut measured: Vec<(&str, Estimate)> = measured.collect();
    measured.sort_by(|(left, more), (right, less)| {
        let by_name = (Some(*right) == named).cmp(&(Some(*left) == named));
        by_name.then(less.point_estimate.total_cmp(&more.point_estimate))
    });
    let kept = measured.iter().take(MOST_NAMED).map(|(name, fidelity)| {
        let kept = display::whole(fidelity.point_estimate);
        let mut text = format!("{} keeps {kept}", short_name(name));
        if let Some(interval) = fidelity.confidence_interval {
            let [low, high] = [interval.lower_bound, interval.upper_bound].map(display::whole);
            let _ = write!(text, " ({low} to {high})");
        }
        text
    });
    display::listed(kept, ", ").map(|kept| format!("Of 100 facts that it can use, {kept}."))
}

/// About sessions like these, with the margins of the run.
fn rule(manifest: &Manifest) -> JudgingRule {
    let mut rule = JudgingRule::of_population(manifest.seed);
    for (name, margin) in &manifest.margins {
        // A name was checked when the run began.
        let _ = rule.margins.set(name, *margin);
    }
    rule
}

/// A strategy before it is judged; `None` where nothing was measured of it.
fn row(strategy: &StrategySummary, run: &ComparedRun, material: &Material<'_>) -> Option<RunRow> {
    let name = strategy.name.as_str();
    let sample = run.strategy(name)?;
    // Where the recorded agent compacted, full history changes what it did.
    let changed = if name == FULL { RECORDED } else { name };
    let fired = material.summaries_of(changed).filter(|cell| cell.fired());
    let fired: BTreeSet<&str> = fired.map(|cell| cell.cluster.as_str()).collect();
    let all = material.summaries.iter();
    let elsewhere =
        all.filter(|cell| cell.arm == Arm::Reference && !fired.contains(cell.cluster.as_str()));
    let entry = entry_of(material, strategy);
    // The recorded agent compacted: doing nothing is what it did then, and not full history.
    let mut recorded = material.cells_of(RECORDED);
    let agent_compacted = recorded.any(|cell| !cell.compactions.is_empty());
    let tokens_saved = strategy.estimate("tokens").map(|one| one.point_estimate);
    let breakage = strategy.broken();
    Some(RunRow {
        control: run.strategy(&format!("tail@{name}")).cloned(),
        fired: fired.len(),
        largest_elsewhere: elsewhere.filter_map(|cell| cell.peak_prompt).max(),
        broken: breakage.as_ref().map(ToString::to_string),
        is_too_large: breakage.is_some_and(|breakage| breakage.is_too_large()),
        is_program: entry.is_some_and(|one| one.toml.contains("kind = \"external\"")),
        tokens_saved: tokens_saved.filter(|_| !agent_compacted),
        cause: cause(strategy, material).filter(|_| !agent_compacted),
        sample: sample.clone(),
    })
}

/// The entry of a strategy in the manifest.
fn entry_of<'a>(material: &Material<'a>, strategy: &StrategySummary) -> Option<&'a StrategyEntry> {
    material.manifest.strategies.iter().find(|entry| entry.name == strategy.name)
}

/// The largest cause of what a strategy costs beyond full history, with the money where prices are known: edits
/// that break the prompt cache, its own calls, or prompts of which less is read.
fn cause(strategy: &StrategySummary, material: &Material<'_>) -> Option<String> {
    let (mut edits, mut calls, mut all, mut is_priced) = (0.0, 0.0, 0.0, true);
    let mut is_read_alike = false;
    for cell in material.summaries_of(&strategy.name) {
        let Some(cost) = cell.costs.first() else {
            continue;
        };
        let input = cell.price.as_ref().and_then(|price| price.per_token.input);
        is_priced &= input.is_some();
        // Thousandths of an input token, in dollars where its price is known.
        let unit = input.map_or(1.0, Usd::in_dollars) / 1_000.0;
        let rates = cost.prices.rates;
        let again = f64::from(rates.write.unwrap_or(1_000)) - f64::from(rates.read);
        let at_rates = rates.cost(&cost.paid.strategy);
        let own = at_rates.saturating_add(cost.other_models_cost.unwrap_or_default());
        edits += cost.broken().0 as f64 * again * unit;
        calls += own as f64 * unit;
        is_read_alike |= cost.is_billed() && !cost.reads_less();
        all += (cost.cost as f64 - cost.reference_cost as f64) * unit;
    }
    let rest = all - edits - calls;
    // A running agent may have made other calls, and read no less of each prompt.
    if is_read_alike && calls < rest {
        return None;
    }
    let (words, amount) = if edits >= calls && edits >= rest {
        let patches = strategy.stages.values().map(|stage| stage.patches).sum();
        let patches = many(patches, "edit breaks", "edits break");
        (format!("as {patches} the prompt cache"), edits)
    } else if calls >= rest {
        let asked = strategy.model_calls.total().calls;
        let asked = many(asked, "call", "calls");
        (format!("as {asked} of its own"), calls)
    } else {
        let words = "as less of each prompt is read from the cache";
        (words.to_owned(), rest)
    };
    let dollars = is_priced.then(|| format!(" ({})", Usd::of_dollars(amount)));
    Some(words + &dollars.unwrap_or_default())
}

/// Doing nothing, session by session, and the sessions in which it completes: what the recorded product did where it compacted and that is known, else
/// full history.
fn nothing(source: &ComparedRun, material: &Material<'_>) -> (Sample, BTreeSet<String>) {
    let references: Vec<&CellRecord> = material.references().collect();
    let by_session = references.iter().map(|cell| (&*cell.session, *cell)).collect();
    let mut sample = Sample::of("none", "", &references, &by_session, material.manifest);
    source.place_in_clusters(&mut sample);
    let mut fits: BTreeSet<String> = full_fits(material).into_iter().map(str::to_owned).collect();
    // An agent ran with it, whatever window the strategies were told.
    let ran = references.iter().filter(|cell| cell.live.is_some());
    fits.extend(ran.map(|cell| cell.session.clone()));
    if let Some(recorded) = source.strategy(RECORDED) {
        let cells = material.cells_of(RECORDED);
        let fired: BTreeSet<&str> =
            cells.filter(|cell| !cell.compactions.is_empty()).map(|cell| &*cell.session).collect();
        for (id, session) in &recorded.sessions {
            if fired.contains(id.as_str()) && session.dead == 0 {
                RECORDED.clone_into(&mut sample.strategy);
                sample.sessions.insert(id.clone(), session.clone());
                fits.insert(id.clone());
            }
        }
        sample.writer.clone_from(&recorded.writer);
    }
    (sample, fits)
}

/// The trials whose results are known, each with its bill.
fn task_runs(cells: &[CellSummary]) -> Vec<TaskRun<'_>> {
    let runs = cells.iter().filter_map(|cell| {
        let billed = cell.costs.first().is_some_and(SchemeCost::is_billed);
        Some(TaskRun {
            task: &cell.session,
            strategy: &cell.strategy,
            score: cell.score?,
            dollars: cell.dollars().filter(|_| billed),
            support: cell.support.share(),
        })
    });
    runs.collect()
}

/// The sessions whose full history fits the window at every call.
fn full_fits<'a>(material: &Material<'a>) -> BTreeSet<&'a str> {
    let cells = material.cells.iter();
    let windows: BTreeMap<&str, Window> =
        cells.filter_map(|cell| Some((cell.session.as_str(), cell.window?))).collect();
    let fitting = material.references().filter(|cell| {
        let window = windows.get(cell.session.as_str());
        let mut prompts = cell.prompt_tokens.iter();
        window.is_some_and(|window| !prompts.any(|prompt| window.overflows(*prompt)))
    });
    fitting.map(|cell| cell.session.as_str()).collect()
}

/// The sessions in words, a recording and its sub-agents as one: `12 generated sessions (code-review)`, the
/// families where they are wanted, or `10 Claude Code sessions`.
pub(super) fn population(manifest: &Manifest, with_families: bool) -> String {
    let clusters: BTreeSet<&str> = manifest.clusters().into_values().collect();
    let sessions = manifest.sessions.iter();
    let (made, recorded): (Vec<_>, Vec<_>) = sessions.partition(|entry| entry.format == SYNTHETIC);
    let formats: BTreeSet<&str> = recorded.iter().map(|entry| entry.format.as_str()).collect();
    let kind = match (made.len(), formats.first()) {
        (0, Some(format)) if formats.len() == 1 => format!("{} ", product(format)),
        (0, _) => "recorded ".to_owned(),
        (_, None) => "generated ".to_owned(),
        (_, Some(_)) => String::new(),
    };
    let families: BTreeSet<&str> = made.iter().map(|entry| family(&entry.id)).collect();
    let [one, more] = ["session", "sessions"].map(|noun| format!("{kind}{noun}"));
    let sessions = many(clusters.len(), &one, &more);
    match display::listed(families, ", ") {
        Some(names) if with_families && recorded.is_empty() => format!("{sessions} ({names})"),
        Some(_) | None => sessions,
    }
}

/// Whether no session was generated.
pub(super) fn is_recorded(manifest: &Manifest) -> bool {
    manifest.sessions.iter().all(|entry| entry.format != SYNTHETIC)
}

/// The sessions, and what they cost as they ran and with full history.
pub(super) fn heading(material: &Material<'_>) -> String {
    let sessions = population(material.manifest, false);
    match cost::totals(material) {
        Some(totals) => format!("{sessions}: {totals}"),
        None => sessions,
    }
}

/// The family of a generated session: `code-review` of `code-review-s7-r40`.
fn family(id: &str) -> &str {
    let mut places = id.match_indices("-s");
    let seed = places.find(|(at, _)| id[at + 2..].starts_with(|c: char| c.is_ascii_digit()));
    seed.map_or(id, |(at, _)| &id[..at])
}

/// How far to trust the numbers: who found the facts and wrote the summaries, how prompts were sized, and
/// which cache was simulated.
pub(super) fn trust(material: &Material<'_>) -> String {
    let manifest = material.manifest;
    let (reader, summariser) = (&manifest.reader, &manifest.summariser);
    let mut found = Vec::new();
    if material.has_items() {
        let names = models::judges_in_words(&models::judges(material));
        let judges = names.map(|names| format!("judge {names}"));
        found.push(match (reader, &judges) {
            (None, None) => "facts are found by string search".to_owned(),
            (None, Some(judges)) => {
                format!("facts are found by string search, {judges} decided the unsure")
            }
            (Some(reader), _) if reader.kind == ModelKind::Live => {
                format!("the answers are by {}", reader.name)
            }
            (Some(_), _) => NoteCode::Scripted.behind("answers were scripted"),
        });
        if reader.is_some() {
            found.push(judges.unwrap_or_else(|| "rules judged".to_owned()));
        }
    } else if is_recorded(manifest) {
        let none = "no facts are known (`proctor sessions facts` derives some)";
        found.push(NoteCode::NoFacts.behind(none));
    }
    if material.has_calls() {
        found.push(match summariser.kind {
            ModelKind::Deterministic if reader.is_none() => NoteCode::WrittenByRules.behind(
                "rules wrote the summaries, and no model was asked (`--graded local` asks one)",
            ),
            ModelKind::Deterministic => {
                NoteCode::WrittenByRules.behind("rules wrote the summaries")
            }
            ModelKind::Scripted => NoteCode::Scripted.behind("summaries were scripted"),
            ModelKind::Live => format!("the summaries are by {}", summariser.name),
        });
    }
    let random = manifest.strategies.iter().filter(|entry| entry.is_random);
    if let Some(names) = display::listed(random.map(|entry| &entry.name), ", ") {
        found.push(NoteCode::Random.behind(&format!(
            "the same session got different contexts under {names}: repeats show how much that matters"
        )));
    }
    let actions = if material.live.is_some() {
        "an agent ran under each strategy and chose its own actions; apart from tasks and what was billed, the numbers are of a replay"
    } else {
        "the recorded agent's actions are fixed"
    };
    found.push(actions.to_owned());
    let sizes = Some(sizes::line(material));
    let live = material.live.as_ref();
    let cache = cost::billed(material).map(|cache| match live.filter(|live| live.is_billed()) {
        Some(_) => {
            format!(
                "bills are the usage of the answers; modelled ones are of a replay with {cache}"
            )
        }
        None => format!("{cache}, usual breakpoints"),
    });
    let simulated = material.simulated_cost().map(|cost| cost.words());
    let partly = display::listed(cost::partly_known(material), "; ");
    let left_out: usize = manifest.left_out.values().sum();
    let left_out = (left_out > 0).then(|| {
        let sessions = many(left_out, "session is", "sessions are");
        format!("{sessions} left out, `--tables` says why")
    });
    let parts = [
        (None, sizes),
        (Some(NoteCode::SimulatedCost), simulated),
        (None, cache),
        (Some(NoteCode::PartlyKnown), partly),
        (Some(NoteCode::Unpriced), cost::unpriced(material)),
        (None, Some(found.join("; "))),
        (Some(NoteCode::FiresEarly), early(material)),
        (Some(NoteCode::NeverFired), silent(material)),
        (Some(NoteCode::Outline), worth(manifest)),
        (Some(NoteCode::LeftOut), left_out),
        (Some(NoteCode::Repaired), repairs(&manifest.sessions)),
        (None, cost::mixed(material)),
        (None, cost::fast(material)),
        (None, live.and_then(LiveTotals::waited)),
    ];
    let sentences = parts.into_iter().filter_map(|(code, text)| {
        let text = capital(&text?);
        Some(code.map_or_else(|| text.clone(), |code| code.behind(&text)))
    });
    display::joined(sentences, ". ") + "."
}

/// Below this share of the window a strategy that compacts at a limit may believe in a smaller one.
const EARLY: f64 = 0.4;

/// The strategies that fire far below the window in every session: they may believe in a smaller one.
fn early(material: &Material<'_>) -> Option<String> {
    let early = limited(material).filter_map(|strategy| {
        let (least, most) = match strategy.values.get("fired_at")? {
            PooledValue::AtLeast(least, most) => (least.point_estimate, *most),
            PooledValue::Estimate(only) => (only.point_estimate, only.point_estimate),
            _ => return None,
        };
        let name = short_name(&strategy.name);
        (most < EARLY).then(|| format!("{name} at {:.0} to {:.0} %", 100.0 * least, 100.0 * most))
    });
    let about = "fired far below the window in every session, so check what window it assumes";
    named(early).map(|names| format!("{about}: {names}"))
}

/// The strategies that never fired, and how full the window was at most.
fn silent(material: &Material<'_>) -> Option<String> {
    let silent = limited(material).filter(|strategy| strategy.cells > 0 && !strategy.has_acted());
    let names = named(silent.map(|strategy| short_name(&strategy.name)))?;
    let full = material.references().filter_map(|cell| {
        let effective = cell.window.map(|window| window.effective());
        let prompt = cell.prompt_tokens.iter().max();
        prompt.and_then(|prompt| prompt.share_of(effective?))
    });
    let most = 100.0 * full.reduce(f64::max)?;
    Some(format!("never fired: {names}; full history fills {most:.0} % of the window at most"))
}

/// The strategies that wait for a limit: no control, no recording, and not nothing.
fn limited<'a>(material: &'a Material<'_>) -> impl Iterator<Item = &'a StrategySummary> {
    material.compared().filter(|strategy| {
        let entry = entry_of(material, strategy);
        let kinds = entry.map(|entry| kinds_of(&entry.toml)).unwrap_or_default();
        let recorded = kinds.iter().any(|kind| kind == "recorded");
        !kinds.is_empty() && !recorded && !headline::is_control(&strategy.name)
    })
}

/// Some names in words, the others counted; `None` without any.
fn named(names: impl Iterator<Item = String>) -> Option<String> {
    let names: BTreeSet<String> = names.collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    display::listed(names.into_iter().take(MOST_NAMED).chain(more), ", ")
}

/// The strategies that are outlines of their products, and those that are close to theirs, some by name.
fn worth(manifest: &Manifest) -> Option<String> {
    let groups = [
        (Fidelity::Outline, "outlines of their products"),
        (Fidelity::Close, "close to their products"),
    ];
    let found = groups.into_iter().filter_map(|(fidelity, words)| {
        let own = manifest
            .strategies
            .iter()
            .filter(|entry| entry.worth.as_ref().is_some_and(|worth| worth.fidelity == fidelity));
        Some(format!("{words}: {}", named(own.map(|entry| base_name(&entry.name)))?))
    });
    display::listed(found, "; ")
}

pub(super) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default() + chars.as_str()
}

/// Stages that have nothing to tune.
const UNTUNED: [&str; 2] = ["recorded", "external"];

/// The words of the command that comes next, and what it is for: a smaller window where the cheapest strategy
/// fires in under half of the sessions, else a sweep of it. A flag with its value is one word. The scenario or the
/// recordings go behind the first, where they are known.
pub(super) fn next(manifest: &Manifest, verdict: &Verdict) -> (Vec<String>, &'static str) {
    let Some(contender) = verdict.contenders.iter().find(|one| one.strategy != FULL) else {
        return Default::default();
    };
    let native = manifest.window == "native";
    if native && verdict.answer == Answer::Keep && contender.fired * 2 < verdict.clusters {
        let words = ["proctor run", "--window fit:0.6"].map(str::to_owned);
        return (words.to_vec(), "a smaller window, in which all fire");
    }
    let mut tuned = manifest.strategies.iter().filter(|entry| {
        let kinds = kinds_of(&entry.toml);
        kinds.iter().any(|kind| !UNTUNED.contains(&&**kind))
    });
    let entry = tuned.find(|entry| entry.name == contender.strategy);
    entry.map_or_else(Default::default, |entry| {
        let strategy = escape::flag("--strategy", &entry.name);
        let words = vec!["proctor sweep".to_owned(), strategy];
        (words, "tunes its settings")
    })
}
