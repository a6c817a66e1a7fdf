//! The sessions of a run: loaded, counted and checked before its first cell.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::probes::{self, Facts};
use super::sample::{Unit, sample};
use super::{PlanError, Prepared, prices};
use crate::bill::Bill;
use crate::model::price::Prices;
use crate::probe::Probe;
use crate::record::shard::{Partition, PlannedSource};
use crate::record::{Manifest, SessionEntry};
use crate::replay::PreparedSession;
use crate::scenario::{Scenario, SessionSource, WindowMode};
use crate::session::import::{self, ForkIndex, ImportError};
use crate::session::synthetic::{self, FAMILIES};
use crate::session::{Session, ToolSchema, native};
use crate::tokens::{CountedTexts, counter};
use crate::units::{ContentHash, Tokens};

/// A session of a run with the sizes of its texts.
#[derive(Debug, Clone)]
pub(super) struct LoadedSession {
    pub(super) session: Arc<Session>,
    pub(super) counts: Arc<CountedTexts>,
    pub(super) probes: Vec<Probe>,
    /// Which of the manifest's sessions it is.
    pub(super) place: usize,
    /// The id of the main session of a side chain, where there is one.
    cluster: Option<String>,
    /// How many of its items are about planted values.
    pub(super) planted: usize,
    /// The prepared session, where it is kept from run to run.
    pub(super) cached: Option<Arc<Prepared>>,
}

impl LoadedSession {
    pub(super) fn new(session: Session, counts: Arc<CountedTexts>, probes: Vec<Probe>) -> Self {
        Self {
            session: Arc::new(session),
            counts,
            probes,
            place: 0,
            cluster: None,
            planted: 0,
            cached: None,
        }
    }

    pub(super) fn id(&self) -> &str {
        self.session.id()
    }

    /// The format of a recording, the family of a generated session.
    fn kind(&self) -> &str {
        let format = &self.session.source().format;
        let families = FAMILIES.iter().map(|family| family.name);
        let mut families = families.filter(|family| self.id().starts_with(family));
        let family = families.next().filter(|_| format == synthetic::FORMAT);
        family.unwrap_or(format)
    }

    /// The sizes of its prompts, as the scenario wants them.
    pub(super) fn bill(&self, scenario: &Scenario) -> Bill {
        let head = scenario.window.head;
        Bill::of(&self.session, &self.counts, scenario.sizes, head)
    }
}

/// Why recordings in folders are left out that other programs have damaged, or do not let be read.
const UNREADABLE: &str = "their files cannot be read (`--strict` makes that an error)";

/// All sessions of a run, in order.
#[derive(Default)]
pub(super) struct SessionStore {
    pub(super) sessions: Vec<LoadedSession>,
    /// The manifest's entry of each.
    pub(super) entries: Vec<SessionEntry>,
    /// Why files that were found in folders are not sessions.
    pub(super) passed_over: Vec<String>,
    /// The first recording among them: it cannot be read.
    unreadable: Option<ImportError>,
    /// How many sessions are not replayed, by the reason.
    pub(super) left_out: BTreeMap<String, usize>,
    /// The sessions of each source of the scenario.
    pub(super) sources: Vec<PlannedSource>,
}

impl SessionStore {
    /// Passes over a file that was found in a folder. One that may be a recording is counted among what
    /// is left out: a report says so.
    fn pass_over(&mut self, error: ImportError) {
        if error.is_no_recording() {
            return self.passed_over.push(error.to_string());
        }
        let cause = error.source().map(|cause| format!(": {cause}"));
        let hint = error.hint().map(|hint| format!("; {hint}"));
        let [cause, hint] = [cause, hint].map(Option::unwrap_or_default);
        self.passed_over.push(format!("{error}{cause}{hint}"));
        self.leave_out(1, UNREADABLE.to_owned());
        self.unreadable.get_or_insert(error);
    }

    fn leave_out(&mut self, count: usize, reason: String) {
        if count > 0 {
            *self.left_out.entry(reason).or_default() += count;
        }
    }

    /// Leaves out all but the scenario's sample, if it wants one.
    fn sample(&mut self, scenario: &Scenario) {
        let Some(count) = scenario.sample else {
            return;
        };
        let main = self.sessions.iter().filter(|it| it.cluster.is_none());
        let units = main.map(|loaded| Unit {
            kind: loaded.kind().to_owned(),
            calls: loaded.session.calls().len(),
            id: loaded.id().to_owned(),
        });
        let taken = sample(units.collect(), count, scenario.seed);
        self.retain(
            |loaded, _| {
                let main = loaded.cluster.as_deref();
                taken.contains(main.unwrap_or(loaded.id()))
            },
            format!("they are not in the sample of {count} (`sample`)"),
        );
    }

    /// Leaves out recordings for whose window the scenario asks too small a share of them.
    fn leave_out_small(&mut self, scenario: &Scenario) {
        let WindowMode::Fit(_) = scenario.window.mode else {
            return;
        };
        let (window, floor) = (&scenario.window, scenario.window.floor);
        self.retain(
            |loaded, entry| !is_small(loaded, entry, scenario),
            format!(
                "their windows ({window}) would hold less than {floor} tokens of conversation (`window.floor`)"
            ),
        );
    }

    /// Leaves out all sessions but these, for this reason.
    fn retain(
        &mut self,
        is_kept: impl Fn(&LoadedSession, &SessionEntry) -> bool + Sync,
        reason: String,
    ) {
        let before = self.sessions.len();
        let sessions = std::mem::take(&mut self.sessions);
        let entries = std::mem::take(&mut self.entries);
        (self.sessions, self.entries) = sessions
            .into_par_iter()
            .zip(entries)
            .filter(|(loaded, entry)| is_kept(loaded, entry))
            .unzip();
        self.leave_out(before - self.sessions.len(), reason);
    }
}

/// Whether the window of a recording is below the scenario's floor. A generated session is as long
/// as its recipe asks.
fn is_small(loaded: &LoadedSession, entry: &SessionEntry, scenario: &Scenario) -> bool {
    let (session, counts) = (loaded.session.clone(), loaded.counts.clone());
    if session.source().format == synthetic::FORMAT {
        return false;
    }
    let prepared = PreparedSession::selecting(session, counts, Vec::new(), &scenario.selection);
    prepared.is_ok_and(|prepared| {
        let prepared = prepared.billed(Arc::new(loaded.bill(scenario)));
        let (largest, head) = (prepared.largest_prompt(), prepared.bill().scale(0).head);
        let window = scenario.window.resolve(entry.native_window, largest, head);
        scenario.window.is_below_floor(window, head)
    })
}

/// The file that a found source is read from.
fn found(source: &SessionSource) -> Option<&Path> {
    match source {
        SessionSource::Found(path) => Some(path),
        SessionSource::File(..) | SessionSource::Synthetic(_) => None,
    }
}

/// Whether Proctor wrote this file of a session.
fn is_written(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".session.jsonl")
}

/// The ids of found sessions that Proctor wrote.
fn written_ids(
    scenario: &Scenario,
    read: &[Result<Vec<LoadedSession>, ImportError>],
) -> BTreeSet<String> {
    let sources = scenario.sessions.iter().zip(read);
    let written = sources.filter(|(source, _)| found(source).is_some_and(is_written));
    let sessions = written.filter_map(|(_, read)| read.as_ref().ok()).flatten();
    sessions.map(|loaded| loaded.id().to_owned()).collect()
}

/// A part of a run that was planned before: the sources of other parts are not read.
pub(super) struct PlannedPart<'a> {
    pub(super) manifest: &'a Manifest,
    /// The place of each of its sessions in the manifest, by id.
    own: BTreeMap<&'a str, usize>,
    /// Whether each source of the scenario is read.
    reads: Vec<bool>,
}

impl<'a> PlannedPart<'a> {
    /// The part's own sessions, and the sources that have them or what they repeat.
    pub(super) fn of(
        scenario: &Scenario,
        (manifest, sources): (&'a Manifest, &'a [PlannedSource]),
        part: Partition,
    ) -> Result<Self, PlanError> {
        let names = scenario.sessions.iter().map(name_of);
        if !names.eq(sources.iter().map(|source| source.name.clone())) {
            return Err(PlanError::OtherSources {
                planned: sources.len(),
                here: scenario.sessions.len(),
            });
        }
        let sessions = manifest.sessions.iter().enumerate();
        let shards = part.by.shards(part.of, manifest);
        let own = sessions.zip(shards);
        let own = own.filter(|(_, shard)| *shard == part.shard);
        let own = own.map(|((place, session), _)| (&*session.id, place));
        let own: BTreeMap<&str, usize> = own.collect();
        let mut wanted: BTreeSet<&str> = own.keys().copied().collect();
        let mut reads = vec![false; sources.len()];
        // From the last to the first: a session repeats one that came before it.
        for (source, reads) in sources.iter().zip(&mut reads).rev() {
            *reads = source.sessions.iter().any(|id| wanted.contains(&**id));
            wanted.extend(source.after.iter().filter(|_| *reads).map(String::as_str));
        }
        Ok(Self {
            manifest,
            own,
            reads,
        })
    }

    /// Gives a session of this part its place in the manifest, and its main session. Returns false for one of another
    /// part.
    fn place(&self, loaded: &mut LoadedSession) -> bool {
        let place = self.own.get(loaded.id());
        if let Some(place) = place {
            loaded.place = *place;
            loaded
                .cluster
                .clone_from(&self.manifest.sessions[*place].cluster);
        }
        place.is_some()
    }

    /// Adds what the manifest says of all other sessions.
    fn complete(&self, all: &mut SessionStore) -> Result<(), PlanError> {
        let loaded: BTreeSet<&str> = all.sessions.iter().map(LoadedSession::id).collect();
        if let Some(id) = self.own.keys().find(|id| !loaded.contains(*id)) {
            return Err(PlanError::PlannedSession((*id).to_owned()));
        }
        let own = std::mem::replace(&mut all.entries, self.manifest.sessions.clone());
        for (loaded, entry) in all.sessions.iter().zip(own) {
            all.entries[loaded.place] = entry;
        }
        all.left_out.clone_from(&self.manifest.left_out);
        Ok(())
    }
}

/// The name by which a plan knows a source on any machine.
fn name_of(source: &SessionSource) -> String {
    match source {
        SessionSource::File(path, _) | SessionSource::Found(path) => {
            let name = path.file_name().unwrap_or_default();
            name.to_string_lossy().into_owned()
        }
        SessionSource::Synthetic(recipe) => synthetic::session_id(recipe),
    }
}

/// Loads and counts the sessions of a scenario, in parallel; of a planned part, its own.
pub(super) fn load_all(
    scenario: &Scenario,
    prices: &Prices,
    part: Option<&PlannedPart<'_>>,
) -> Result<SessionStore, PlanError> {
    // A vocabulary takes the most memory while it is loaded: that comes before the sessions.
    if let Some(counter) = counter(&scenario.counter) {
        counter.count("vocabulary");
    }
    let of = |source: &SessionSource| match (load(source, &scenario.counter), source) {
        (Err(PlanError::Import(error)), SessionSource::Found(_))
            if error.is_no_recording() || !scenario.strict =>
        {
            Ok(Err(error))
        }
        (loaded, _) => loaded.map(Ok),
    };
    let reads = |at: usize| part.is_none_or(|part| part.reads[at]);
    let of = |(at, source)| {
        if reads(at) {
            of(source)
        } else {
            Ok(Ok(Vec::new()))
        }
    };
    let read: Vec<Result<Vec<LoadedSession>, ImportError>> = scenario
        .sessions
        .par_iter()
        .enumerate()
        .map(of)
        .collect::<Result<_, PlanError>>()?;
    let mut facts = Facts::read(&scenario.probes)?;
    let mut forks = ForkIndex::default();
    // To know a session again later, all of it is hashed: the only one is not.
    let is_only = read.iter().flatten().map(Vec::len).sum::<usize>() < 2;
    let mut seen = BTreeSet::new();
    let mut all = SessionStore::default();
    let written = written_ids(scenario, &read);
    let (mut side_chains, mut both) = (0, Vec::new());
    for (source, read) in scenario.sessions.iter().zip(read) {
        let mut sessions = read.unwrap_or_else(|error| {
            all.pass_over(error);
            Vec::new()
        });
        // `record` and `import` write a session beside the recording that it is read from.
        if let Some(path) = found(source).filter(|path| !is_written(path)) {
            let before = sessions.len();
            sessions.retain(|loaded| !written.contains(loaded.id()));
            if sessions.len() < before {
                both.push(path);
            }
        }
        let mut main: Option<String> = None;
        let mut planned = PlannedSource {
            name: name_of(source),
            ..PlannedSource::default()
        };
        for mut loaded in sessions {
            planned.sessions.push(loaded.id().to_owned());
            if !is_only && let Some(repeated) = forks.repeated(&loaded.session) {
                planned.after.push(repeated.of.clone());
                let session = Arc::unwrap_or_clone(loaded.session);
                loaded.session = Arc::new(repeated.after(session)?);
            }
            facts.put_in_place(&loaded.session, &mut loaded.probes)?;
            let id = loaded.id().to_owned();
            if !seen.insert(id.clone()) {
                return Err(PlanError::SessionTwice(id));
            }
            if !scenario.side_chains && loaded.session.is_side_chain() {
                side_chains += 1;
                continue;
            }
            // A file may hold several main sessions; a side chain follows its own.
            match &main {
                Some(main) if loaded.session.is_side_chain() => {
                    loaded.cluster = Some(main.clone());
                }
                Some(_) | None => main = Some(id),
            }
            if part.is_some_and(|part| !part.place(&mut loaded)) {
                continue;
            }
            let selection = &scenario.selection;
            loaded.planted = probes::planted(&loaded.session, &loaded.probes, selection);
            all.sessions.push(loaded);
        }
        all.sources.push(planned);
    }
    // `proctor import` writes each into a file of its own, which names its main session.
    let sessions = all.sessions.iter_mut().filter(|_| part.is_none());
    for loaded in sessions.filter(|loaded| loaded.cluster.is_none()) {
        let main = loaded.session.source().main.clone();
        loaded.cluster = main.filter(|main| seen.contains(main));
    }
    if part.is_none() {
        facts.all_placed()?;
    }
    for path in both {
        let path = path.display();
        let why = format!("`{path}`: its sessions were written beside it, and are read from there");
        all.passed_over.push(why);
    }
    all.leave_out(
        side_chains,
        "they are side chains (`side_chains`)".to_owned(),
    );
    let sessions = all.sessions.par_iter();
    all.entries = sessions
        .map(|loaded| entry_of(loaded, scenario, prices))
        .collect();
    if let Some(part) = part {
        part.complete(&mut all)?;
        return Ok(all);
    }
    all.leave_out_small(scenario);
    all.sample(scenario);
    for (place, loaded) in all.sessions.iter_mut().enumerate() {
        loaded.place = place;
    }
    if !all.sessions.is_empty() {
        return Ok(all);
    }
    if let Some(error) = all.unreadable {
        return Err(error.into());
    }
    let reasons = all.left_out.iter();
    let reasons = reasons.map(|(reason, count)| format!("left out {count}: {reason}"));
    let reasons: Vec<String> = reasons.collect();
    Err(if reasons.is_empty() {
        PlanError::NoSession
    } else {
        PlanError::AllLeftOut(reasons.join("; "))
    })
}

/// Loads and counts the sessions of a source, with the probes that were planted in them.
fn load(source: &SessionSource, counter_name: &str) -> Result<Vec<LoadedSession>, PlanError> {
    let counts = |model: Option<&str>| -> Result<Arc<CountedTexts>, PlanError> {
        let counter = counter(counter_name);
        let counter = counter.ok_or_else(|| PlanError::NoCounter(counter_name.to_owned()))?;
        Ok(Arc::new(CountedTexts::new(counter).with_images_of(model)))
    };
    match source {
        SessionSource::File(path, _) | SessionSource::Found(path) => {
            import::load_with_truth(path, None)?
                .into_iter()
                .map(|recording| {
                    let counts = counts(recording.session.model())?;
                    let probes = recording.truth.as_ref().map(|truth| truth.facts.clone());
                    let probes = probes.unwrap_or_default();
                    Ok(LoadedSession::new(recording.session, counts, probes))
                })
                .collect()
        }
        SessionSource::Synthetic(recipe) => {
            let counts = counts(None)?;
            let made = synthetic::generate(recipe, &counts)?;
            let probes = made.truth.facts.clone();
            Ok(vec![LoadedSession::new(made.session, counts, probes)])
        }
    }
}

pub(super) fn entry_of(
    loaded: &LoadedSession,
    scenario: &Scenario,
    prices: &Prices,
) -> SessionEntry {
    let LoadedSession {
        session, counts, ..
    } = loaded;
    counts.preload(session.texts());
    let messages = session.messages().iter();
    let tools = session.tools().iter().map(ToolSchema::text);
    let tokens: Tokens = messages
        .flat_map(|message| message.blocks())
        .map(|block| counts.block(&block))
        .chain(tools.map(|tool| counts.schema(tool)))
        .chain(session.system().map(|text| counts.size(text)))
        .map(|size| size.tokens)
        .sum();
    let bill = loaded.bill(scenario);
    let model = prices::model(&scenario.cache, session);
    let price = model.and_then(|model| prices::entry(prices, model));
    SessionEntry {
        id: session.id().to_owned(),
        hash: ContentHash::of_written(|out| native::write(session, out)).to_string(),
        cluster: loaded.cluster.clone(),
        format: session.source().format.clone(),
        messages: session.messages().len(),
        calls: session.calls().len(),
        tokens,
        items: scenario.selection.items(session, &loaded.probes).len(),
        probes: probes::hash(&loaded.probes),
        compactions: session.compactions().len(),
        native_window: super::native::window(session, &bill, prices),
        sizes: bill.sizes().clone(),
        unpriced: model
            .filter(|model| price.is_none() && *model != synthetic::MODEL)
            .map(str::to_owned),
        price,
        cache: prices::scheme(scenario, prices, session),
        unknown: session.source().unknown.clone(),
        warnings: session.source().warnings.clone(),
    }
}
