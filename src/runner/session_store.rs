//! The sessions of a run: loaded, counted and checked before its first cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::probes::{self, Facts};
use super::{PlanError, Prepared, prices};
use crate::bill::Bill;
use crate::model::price::Prices;
use crate::probe::Probe;
use crate::record::SessionEntry;
use crate::scenario::{Scenario, SessionSource};
use crate::session::import::{self, ForkIndex, ImportError};
use crate::session::{Session, ToolSchema, native, synthetic};
use crate::tokens::{CountedTexts, counter};
use crate::units::{ContentHash, Tokens};

/// A session of a run with the sizes of its texts.
#[derive(Debug, Clone)]
pub(super) struct LoadedSession {
    pub(super) session: Arc<Session>,
    pub(super) counts: Arc<CountedTexts>,
    pub(super) probes: Vec<Probe>,
    /// The id of the main session of a side chain, where there is one.
    cluster: Option<String>,
    /// How many of its items are about planted values.
    pub(super) planted: usize,
    /// The prepared session, where it is kept from run to run.
    pub(super) cached: Option<Arc<Prepared>>,
}

impl LoadedSession {
    fn new(session: Session, counts: Arc<CountedTexts>, probes: Vec<Probe>) -> Self {
        counts.preload(session.texts());
        Self {
            session: Arc::new(session),
            counts,
            probes,
            cluster: None,
            planted: 0,
            cached: None,
        }
    }

    pub(super) fn id(&self) -> &str {
        self.session.id()
    }

    /// The sizes of its prompts, as the scenario wants them.
    pub(super) fn bill(&self, scenario: &Scenario) -> Bill {
        let head = scenario.window.head;
        Bill::of(&self.session, &self.counts, scenario.sizes, head)
    }
}

/// All sessions of a run, in order.
#[derive(Default)]
pub(super) struct SessionStore {
    pub(super) sessions: Vec<LoadedSession>,
    /// The manifest's entry of each.
    pub(super) entries: Vec<SessionEntry>,
    /// Why files that were found in folders are not sessions.
    pub(super) passed_over: Vec<String>,
}

/// Loads and counts the sessions of a scenario, in parallel.
pub(super) fn load_all(scenario: &Scenario, prices: &Prices) -> Result<SessionStore, PlanError> {
    // A vocabulary takes the most memory while it is loaded: that comes before the sessions.
    if let Some(counter) = counter(&scenario.counter) {
        counter.count("vocabulary");
    }
    let of = |source: &SessionSource| match (load(source, &scenario.counter), source) {
        (Err(PlanError::Import(error)), SessionSource::Found(_)) if error.is_no_recording() => {
            Ok(Err(error))
        }
        (loaded, _) => loaded.map(Ok),
    };
    let read: Vec<Result<Vec<LoadedSession>, ImportError>> = scenario
        .sessions
        .par_iter()
        .map(of)
        .collect::<Result<_, PlanError>>()?;
    let mut facts = Facts::read(&scenario.probes)?;
    let mut forks = ForkIndex::default();
    let mut seen = BTreeSet::new();
    let mut all = SessionStore::default();
    for read in read {
        let sessions = read.unwrap_or_else(|error| {
            all.passed_over.push(error.to_string());
            Vec::new()
        });
        let mut main: Option<String> = None;
        for mut loaded in sessions {
            if let Some(repeated) = forks.repeated(&loaded.session) {
                let session = Arc::unwrap_or_clone(loaded.session);
                loaded.session = Arc::new(repeated.after(session)?);
            }
            facts.put_in_place(&loaded.session, &mut loaded.probes)?;
            let id = loaded.id().to_owned();
            if !seen.insert(id.clone()) {
                return Err(PlanError::SessionTwice(id));
            }
            // A file may hold several main sessions; a side chain follows its own.
            match &main {
                Some(main) if loaded.session.is_side_chain() => {
                    loaded.cluster = Some(main.clone());
                }
                Some(_) | None => main = Some(id),
            }
            let selection = &scenario.selection;
            loaded.planted = probes::planted(&loaded.session, &loaded.probes, selection);
            all.sessions.push(loaded);
        }
    }
    // `proctor import` writes each into a file of its own, with the id of its main session in its own.
    for loaded in all.sessions.iter_mut().filter(|it| it.cluster.is_none()) {
        let named = loaded.session.id().rsplit_once("-side-");
        let main = named.map(|(main, _)| main.to_owned());
        loaded.cluster = main.filter(|main| loaded.session.is_side_chain() && seen.contains(main));
    }
    facts.all_placed()?;
    if all.sessions.is_empty() {
        return Err(PlanError::NoSession);
    }
    let sessions = all.sessions.par_iter();
    all.entries = sessions
        .map(|loaded| entry_of(loaded, scenario, prices))
        .collect();
    Ok(all)
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
                    let probes = recording.truth.as_ref().map(Probe::planted);
                    let probes = probes.unwrap_or_default();
                    Ok(LoadedSession::new(recording.session, counts, probes))
                })
                .collect()
        }
        SessionSource::Synthetic(recipe) => {
            let counts = counts(None)?;
            let made = synthetic::generate(recipe, &counts)?;
            let probes = Probe::planted(&made.truth);
            Ok(vec![LoadedSession::new(made.session, counts, probes)])
        }
    }
}

fn entry_of(loaded: &LoadedSession, scenario: &Scenario, prices: &Prices) -> SessionEntry {
    let LoadedSession {
        session, counts, ..
    } = loaded;
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
        price: model.and_then(|model| prices::entry(prices, model)),
        cache: Some(prices::scheme(scenario, prices, session)),
        unknown: session.source().unknown.clone(),
        warnings: session.source().warnings.clone(),
    }
}
