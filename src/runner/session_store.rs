//! The sessions of a run: read, counted and checked before its first cell, a batch of files at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use super::loaded::{LoadedSession, ReadSession, SessionTexts, TextSource, found, read};
use super::probes::FactFiles;
use super::sample::{SampleUnit, sample};
use super::{PlanError, Result, prices};
use crate::model::price::Prices;
use crate::probe::Probe;
use crate::record::shard::{Partition, PlannedSource};
use crate::record::{Manifest, SessionEntry};
use crate::replay::PreparedSession;
use crate::scenario::{Scenario, SessionSource, WindowMode};
use crate::session::import::{ForkIndex, ImportError};
use crate::session::synthetic::{self, FAMILIES};
use crate::session::{Session, ToolSchema, native};
use crate::tokens::counter;
use crate::units::{ContentHash, Tokens};

mod roots;

/// Why recordings in folders are left out that other programs have damaged, or do not let be read.
const UNREADABLE: &str = "their files cannot be read (`--set strict=true` makes that an error)";

/// Bytes of texts that are kept from the time they are read. A run over more reads the rest again, session by
/// session.
const KEPT_BYTES: usize = 64 << 20;

/// Bytes of files that are read together, and files at most.
const BATCH_BYTES: u64 = 16 << 20;
const BATCH_FILES: usize = 512;

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
    /// The lines of recordings that could not be read, in words.
    pub(super) lost_lines: BTreeSet<String>,
    /// How many sessions are not replayed, by the reason.
    pub(super) left_out: BTreeMap<String, usize>,
    /// The sessions of each source of the scenario.
    pub(super) sources: Vec<PlannedSource>,
    /// The ids of recordings that are shorter than the scenario's floor.
    small: BTreeSet<String>,
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
        self.leave_out(1, UNREADABLE);
        self.unreadable.get_or_insert(error);
    }

    fn leave_out(&mut self, count: usize, reason: &str) {
        if count > 0 {
            *self.left_out.entry(reason.to_owned()).or_default() += count;
        }
    }

    /// Leaves out all but the scenario's sample, if it wants one.
    fn sample(&mut self, scenario: &Scenario) {
        let Some(count) = scenario.sample else {
            return;
        };
        // Of a main session that is not there, the first that names it stands for all.
        let ids: BTreeSet<&str> = self.entries.iter().map(|entry| &*entry.id).collect();
        let mut absent = BTreeSet::new();
        let main = self.entries.iter().filter(|entry| {
            let root = entry.cluster.as_deref();
            root.is_none_or(|root| !ids.contains(root) && absent.insert(root))
        });
        let units = main.map(|entry| SampleUnit {
            kind: kind_of(entry).to_owned(),
            calls: entry.calls,
            id: entry.cluster().to_owned(),
        });
        let taken = sample(units.collect(), count, scenario.seed);
        self.retain(
            |entry| taken.contains(entry.cluster()),
            &format!("they are not in the sample of {count} (`sample`)"),
        );
    }

    /// Leaves out recordings for whose window the scenario asks too small a share of them.
    fn leave_out_small(&mut self, scenario: &Scenario) {
        let (window, floor) = (&scenario.window, scenario.window.floor);
        let small = std::mem::take(&mut self.small);
        self.retain(
            |entry| !small.contains(&entry.id),
            &format!(
                "their windows ({window}) would hold less than {floor} tokens of conversation (`window.floor`)"
            ),
        );
    }

    /// Leaves out all sessions but these, for this reason.
    fn retain(&mut self, is_kept: impl Fn(&SessionEntry) -> bool, reason: &str) {
        let before = self.sessions.len();
        let sessions =
            std::mem::take(&mut self.sessions).into_iter().zip(std::mem::take(&mut self.entries));
        (self.sessions, self.entries) = sessions.filter(|(_, entry)| is_kept(entry)).unzip();
        self.leave_out(before - self.sessions.len(), reason);
    }
}

/// The format of a recording, the family of a generated session.
fn kind_of(entry: &SessionEntry) -> &str {
    let mut families = FAMILIES.iter().map(|family| family.name);
    let family = families.find(|family| entry.id.starts_with(family));
    family.filter(|_| entry.format == synthetic::FORMAT).unwrap_or(&entry.format)
}

/// Whether the window of a recording is below the scenario's floor. A generated session is as long
/// as its recipe asks.
fn is_small(texts: &SessionTexts, entry: &SessionEntry, scenario: &Scenario) -> bool {
    let fitted = matches!(scenario.window.mode, WindowMode::Fit(_));
    if !fitted || texts.session.source().format == synthetic::FORMAT {
        return false;
    }
    let (session, counts) = (texts.session.clone(), texts.counts.clone());
    let prepared = PreparedSession::selecting(session, counts, Vec::new(), &scenario.selection);
    prepared.is_ok_and(|unbilled| {
        let prepared = unbilled.billed(Arc::new(texts.bill(scenario)));
        let window = super::native::resolved(&scenario.window, entry.native_window, &prepared);
        scenario.window.is_below_floor(window, prepared.bill().scale(0).head)
    })
}

/// Whether Proctor wrote this file of a session.
fn is_written(path: &Path) -> bool {
    native::stem(path).is_some()
}

/// The ids of found sessions that Proctor wrote, where recordings beside them may hold the same ones.
fn written_ids(scenario: &Scenario) -> BTreeSet<String> {
    let found = scenario.sessions.iter().filter_map(found);
    let (written, others): (Vec<&Path>, Vec<&Path>) = found.partition(|path| is_written(path));
    if others.is_empty() {
        return BTreeSet::new();
    }
    written.into_par_iter().filter_map(native::id_in).collect()
}

/// A part of a run that was planned before: the sources of other parts are not read.
pub(super) struct PlannedPart<'a> {
    pub(super) manifest: &'a Manifest,
    /// The place of each of its sessions in the manifest, by id.
    own: BTreeMap<&'a str, usize>,
    /// The place of a session of another part among them: programs are asked about the shortest of the run.
    pub(super) guest: Option<usize>,
    /// Whether each source of the scenario is read.
    reads: Vec<bool>,
}

impl<'a> PlannedPart<'a> {
    /// The part's own sessions, and the sources that have them or what they repeat.
    pub(super) fn of(
        scenario: &Scenario,
        (manifest, sources): (&'a Manifest, &'a [PlannedSource]),
        part: Partition,
    ) -> Result<Self> {
        let names = scenario.sessions.iter().map(name_of);
        if !names.eq(sources.iter().map(|source| source.name.clone())) {
            return Err(PlanError::OtherSources {
                planned: sources.len(),
                here: scenario.sessions.len(),
            });
        }
        let sessions = manifest.sessions.iter().enumerate();
        let mut own: BTreeMap<&str, usize> = sessions
            .zip(part.by.shards(part.of, manifest))
            .filter(|(_, shard)| *shard == part.shard)
            .map(|((place, session), _)| (&*session.id, place))
            .collect();
        let mut programs = manifest.strategies.iter().filter_map(|own| own.program.as_ref());
        let asks = programs.any(|program| program.answers.is_some());
        let all = manifest.sessions.iter().enumerate();
        let shortest = all.min_by_key(|(_, session)| session.messages).filter(|_| asks);
        let other = shortest.filter(|(_, session)| !own.contains_key(&*session.id));
        own.extend(other.map(|(place, session)| (&*session.id, place)));
        let guest = other.map(|(place, _)| place);
        let mut wanted: BTreeSet<&str> = own.keys().copied().collect();
        let mut reads = vec![false; sources.len()];
        // From the last to the first: a session repeats one that came before it.
        for (source, reads) in sources.iter().zip(&mut reads).rev() {
            *reads = source.sessions.iter().any(|id| wanted.contains(&**id));
            wanted.extend(source.after.iter().filter(|_| *reads).map(String::as_str));
        }
        Ok(Self { manifest, own, guest, reads })
    }

    /// Gives a session of this part its place in the manifest.
    fn place(&self, loaded: &mut LoadedSession) {
        if let Some(place) = self.own.get(loaded.id()) {
            loaded.place = *place;
        }
    }

    /// Adds what the manifest says of all other sessions.
    fn complete(&self, all: &mut SessionStore) -> Result<()> {
        let loaded: BTreeSet<&str> = all.sessions.iter().map(LoadedSession::id).collect();
        if let Some(id) = self.own.keys().find(|id| !loaded.contains(*id)) {
            return Err(PlanError::PlannedSession((*id).to_owned()));
        }
        let own = std::mem::replace(&mut all.entries, self.manifest.sessions.clone());
        for (loaded, entry) in all.sessions.iter().zip(own) {
            let planned = &mut all.entries[loaded.place];
            *planned = SessionEntry { cluster: planned.cluster.take(), ..entry };
        }
        all.left_out.clone_from(&self.manifest.left_out);
        Ok(())
    }
}

/// The name by which a plan knows a source on any machine.
fn name_of(source: &SessionSource) -> String {
    match source {
        SessionSource::File(path, _) => {
            path.file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        SessionSource::Synthetic(recipe) => synthetic::session_id(recipe),
    }
}

/// Reads and counts the sessions of a scenario, in parallel; of a planned part, its own.
pub(super) fn load_all(
    scenario: &Scenario,
    prices: &Prices,
    part: Option<&PlannedPart<'_>>,
) -> Result<SessionStore> {
    // A vocabulary takes the most memory while it is loaded: that comes before the sessions.
    if let Some(counter) = counter(&scenario.counter) {
        counter.count("vocabulary");
    }
    let mut reading = SessionReading {
        scenario,
        prices,
        part,
        facts: FactFiles::read(&scenario.probes)?,
        forks: ForkIndex::default(),
        ids: BTreeSet::new(),
        written: written_ids(scenario),
        all: SessionStore::default(),
        side_chains: 0,
        repeated: 0,
        both: Vec::new(),
        kept: 0,
    };
    let sources: Vec<(usize, &SessionSource)> = scenario.sessions.iter().enumerate().collect();
    let mut rest = &sources[..];
    while !rest.is_empty() {
        let (batch, others) = rest.split_at(batch_length(rest));
        reading.batch(batch)?;
        rest = others;
    }
    reading.finish()
}

/// How many of these sources are read together: one at least.
fn batch_length(sources: &[(usize, &SessionSource)]) -> usize {
    let mut bytes = 0;
    let together = sources.iter().take(BATCH_FILES).take_while(|(_, source)| {
        let first = bytes == 0;
        bytes += match source {
            SessionSource::File(path, _) => path.metadata().map_or(1, |file| file.len().max(1)),
            SessionSource::Synthetic(_) => BATCH_BYTES / 64,
        };
        first || bytes <= BATCH_BYTES
    });
    together.count()
}

/// A session that has its place in a run, before it is counted.
struct PlacedSession {
    read: ReadSession,
    source: Arc<TextSource>,
    /// The session that it belongs to, by its id or its product's name.
    main: Option<String>,
}

/// The sessions of a scenario while they are read.
struct SessionReading<'a> {
    scenario: &'a Scenario,
    prices: &'a Prices,
    part: Option<&'a PlannedPart<'a>>,
    facts: FactFiles,
    forks: ForkIndex,
    /// The ids of all sessions so far.
    ids: BTreeSet<String>,
    /// The ids of found sessions that Proctor wrote.
    written: BTreeSet<String>,
    all: SessionStore,
    side_chains: usize,
    /// Sessions of which nothing is left without what they repeat.
    repeated: usize,
    /// Recordings whose sessions were written beside them.
    both: Vec<PathBuf>,
    /// Bytes of texts that are kept.
    kept: usize,
}

impl SessionReading<'_> {
    /// Reads, places and counts the sessions of some sources, and drops the texts for which there is no
    /// room.
    fn batch(&mut self, sources: &[(usize, &SessionSource)]) -> Result<()> {
        let each = sources.par_iter();
        let read = each.map(|(at, source)| self.read(*at, source));
        let read: Vec<_> = read.collect::<Result<_>>()?;
        let mut placed = Vec::new();
        for ((_, source), read) in sources.iter().zip(read) {
            match read {
                Ok(sessions) => self.place(source, sessions, &mut placed)?,
                Err(error) => {
                    self.all.pass_over(error);
                    self.all.sources.push(planned_source(source));
                }
            }
        }
        let entries = placed.par_iter().map(|one| {
            let (texts, probes) = (&one.read.texts, &one.read.probes);
            let entry = entry_of(texts, probes, self.scenario, self.prices);
            let small = is_small(texts, &entry, self.scenario);
            (entry, small)
        });
        let entries: Vec<(SessionEntry, bool)> = entries.collect();
        for (one, (entry, small)) in placed.into_iter().zip(entries) {
            let mut loaded = LoadedSession::new(one.read, &one.source, one.main, &entry.hash);
            if let Some(part) = self.part {
                part.place(&mut loaded);
            }
            if small {
                self.all.small.insert(entry.id.clone());
            }
            self.all.sessions.push(loaded);
            self.all.entries.push(entry);
        }
        Ok(())
    }

    /// Reads one source. What was found in a folder and cannot be read is passed over.
    fn read(
        &self,
        at: usize,
        source: &SessionSource,
    ) -> Result<Result<Vec<ReadSession>, ImportError>> {
        if self.part.is_some_and(|part| !part.reads[at]) {
            return Ok(Ok(Vec::new()));
        }
        match read(source, &self.scenario.counter) {
            Err(PlanError::Import(error))
                if found(source).is_some()
                    && (error.is_no_recording() || !self.scenario.strict) =>
            {
                Ok(Err(error))
            }
            read => read.map(Ok),
        }
    }

    /// Gives the sessions of a source their places: what repeats another session is taken out of them, and
    /// facts about them are put in.
    fn place(
        &mut self,
        source: &SessionSource,
        mut sessions: Vec<ReadSession>,
        placed: &mut Vec<PlacedSession>,
    ) -> Result<()> {
        // `record` and `import` write a session beside the recording that it is read from.
        if let Some(path) = found(source).filter(|path| !is_written(path)) {
            let before = sessions.len();
            sessions.retain(|read| !self.written.contains(read.texts.session.id()));
            if sessions.len() < before {
                self.both.push(path.to_owned());
            }
        }
        let bytes: usize = sessions.iter().map(|read| read.texts.bytes()).sum();
        let fits = self.kept + bytes <= KEPT_BYTES;
        self.kept += if fits { bytes } else { 0 };
        let texts = TextSource::new(source, &self.scenario.counter, fits);
        // To know a session again later, all of it is hashed: the only one is not.
        let only = self.scenario.sessions.len() == 1 && sessions.len() == 1;
        let mut last: Option<String> = None;
        let mut planned = planned_source(source);
        for mut read in sessions {
            planned.sessions.push(read.texts.session.id().to_owned());
            if !only && let Some(repeated) = self.forks.repeated(&read.texts.session) {
                planned.after.push(repeated.of.clone());
                read.shorten(repeated)?;
            }
            let session = &read.texts.session;
            if let SessionSource::File(path, _) = source {
                let lost =
                    session.source().losses().map(|what| format!("`{}`: {what}", path.display()));
                self.all.lost_lines.extend(lost);
            }
            self.facts.put_in(session, &mut read.probes)?;
            if read.repeated.is_some() && session.calls().is_empty() {
                self.repeated += 1;
                continue;
            }
            let id = session.id().to_owned();
            if !self.ids.insert(id.clone()) {
                return Err(PlanError::SessionTwice(id));
            }
            let named = session.source().main.clone();
            let side_chain = named.is_some() || session.is_side_chain();
            if !self.scenario.side_chains && side_chain {
                self.side_chains += 1;
                continue;
            }
            // A file may hold several main sessions; a side chain that names none follows its own.
            let main = named.or_else(|| last.clone().filter(|_| side_chain));
            if !side_chain {
                last = Some(id.clone());
            }
            if self.part.is_none_or(|part| part.own.contains_key(&*id)) {
                placed.push(PlacedSession { read, source: texts.clone(), main });
            }
        }
        self.all.sources.push(planned);
        Ok(())
    }

    /// Leaves out what the scenario does not want, once all sessions are known.
    fn finish(self) -> Result<SessionStore> {
        let (scenario, mut all) = (self.scenario, self.all);
        for path in self.both {
            all.passed_over.push(format!(
                "`{}`: its sessions were written beside it, and are read from there",
                path.display()
            ));
        }
        all.leave_out(self.side_chains, "they are side chains (`side_chains`)");
        all.leave_out(self.repeated, "all their calls stand in other sessions of the run");
        if let Some(part) = self.part {
            part.complete(&mut all)?;
            return Ok(all);
        }
        let links = all.sessions.iter().map(|loaded| (loaded.id(), loaded.main.as_deref()));
        let roots = roots::roots(&links.collect::<Vec<_>>(), &self.ids);
        for (entry, root) in all.entries.iter_mut().zip(roots) {
            entry.cluster = root;
        }
        self.facts.all_placed()?;
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
        let reasons =
            all.left_out.iter().map(|(reason, count)| format!("left out {count}: {reason}"));
        let reasons: Vec<String> = reasons.collect();
        Err(if reasons.is_empty() {
            PlanError::NoSession
        } else {
            PlanError::AllLeftOut(reasons.join("; "))
        })
    }
}

fn planned_source(source: &SessionSource) -> PlannedSource {
    PlannedSource { name: name_of(source), ..PlannedSource::default() }
}

/// Hash of the content of a session.
pub(super) fn native_hash(session: &Session) -> String {
    ContentHash::of_written(|out| native::write(session, out)).to_string()
}

pub(super) fn entry_of(
    texts: &SessionTexts,
    probes: &[Probe],
    scenario: &Scenario,
    prices: &Prices,
) -> SessionEntry {
    let SessionTexts { session, counts } = texts;
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
    let bill = texts.bill(scenario);
    let model = prices::model_of(&scenario.cache, session);
    let price = prices::of_session(&scenario.cache, prices, session);
    SessionEntry {
        id: session.id().to_owned(),
        hash: native_hash(session),
        cluster: None,
        format: session.source().format.clone(),
        messages: session.messages().len(),
        calls: session.calls().len(),
        tokens,
        items: scenario.selection.items(session, probes).len(),
        probes: super::probes::hash(probes),
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
