//! The sessions of a run: loaded, counted and checked before its first cell.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::{PlanError, Prepared, prices, probes};
use crate::bill::Bill;
use crate::model::price::Prices;
use crate::probe::Probe;
use crate::record::SessionEntry;
use crate::scenario::{Scenario, SessionSource};
use crate::session::import::{self, Beginnings, ImportError};
use crate::session::{Session, ToolSchema, native, synthetic};
use crate::tokens::{CountedTexts, counter};
use crate::units::{ContentHash, Tokens};
use probes::Facts;

/// A session of a run.
#[derive(Debug, Clone)]
pub(super) struct LoadedSession {
    pub(super) id: String,
    pub(super) probes: Vec<Probe>,
    /// How many of its items are about something that was planted.
    pub(super) planted: usize,
    pub(super) held: Held,
    /// The session made ready, where it is kept from run to run.
    pub(super) kept: Option<Arc<Prepared>>,
}

/// A session with the sizes of its texts.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) session: Arc<Session>,
    pub(super) counts: Arc<CountedTexts>,
}

impl Held {
    /// The sizes of its prompts, as the scenario wants them.
    pub(super) fn bill(&self, scenario: &Scenario) -> Bill {
        let head = scenario.window.head;
        Bill::of(&self.session, &self.counts, scenario.sizes, head)
    }
}

/// All sessions of a run, in order.
pub(super) struct Loaded {
    pub(super) sessions: Vec<LoadedSession>,
    /// What the manifest says of each.
    pub(super) entries: Vec<SessionEntry>,
    /// Why what was found in folders is none of them.
    pub(super) passed_over: Vec<String>,
}

/// Loads and counts the sessions of a scenario, in parallel.
pub(super) fn load_all(scenario: &Scenario, prices: &Prices) -> Result<Loaded, PlanError> {
    let of = |source: &SessionSource| match (load(source, &scenario.counter), source) {
        (Err(PlanError::Import(error)), SessionSource::Found(_)) if error.is_no_recording() => {
            Ok(Err(error))
        }
        (loaded, _) => loaded.map(Ok),
    };
    let loaded: Vec<Result<Counted, ImportError>> = scenario
        .sessions
        .par_iter()
        .map(of)
        .collect::<Result<_, PlanError>>()?;
    let mut facts = Facts::read(&scenario.probes)?;
    let mut beginnings = Beginnings::default();
    let mut seen = BTreeSet::new();
    let mut sessions: Vec<LoadedSession> = Vec::new();
    let mut passed_over = Vec::new();
    for loaded in loaded {
        let loaded = loaded.unwrap_or_else(|error| {
            passed_over.push(error.to_string());
            Vec::new()
        });
        for (mut held, mut probes) in loaded {
            if let Some(repeated) = beginnings.repeated(&held.session) {
                let session = Arc::unwrap_or_clone(held.session);
                held.session = Arc::new(repeated.after(session)?);
            }
            facts.put_in_place(&held.session, &mut probes)?;
            let id = held.session.id().to_owned();
            if !seen.insert(id.clone()) {
                return Err(PlanError::SessionTwice(id));
            }
            sessions.push(LoadedSession {
                id,
                planted: probes::planted(&held.session, &probes, &scenario.selection),
                probes,
                held,
                kept: None,
            });
        }
    }
    facts.all_placed()?;
    if sessions.is_empty() {
        return Err(PlanError::NoSession);
    }
    let entries = sessions.par_iter();
    let entries = entries.map(|loaded| entry_of(&loaded.held, &loaded.probes, scenario, prices));
    Ok(Loaded {
        entries: entries.collect(),
        sessions,
        passed_over,
    })
}

/// The sessions of a source, counted, with the probes that were planted in them.
type Counted = Vec<(Held, Vec<Probe>)>;

/// Loads and counts the sessions of a source.
fn load(source: &SessionSource, counter_name: &str) -> Result<Counted, PlanError> {
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
                    counts.preload(recording.session.texts());
                    let probes = recording.truth.as_ref().map(Probe::planted);
                    let session = Arc::new(recording.session);
                    Ok((Held { session, counts }, probes.unwrap_or_default()))
                })
                .collect()
        }
        SessionSource::Synthetic(recipe) => {
            let counts = counts(None)?;
            let made = synthetic::generate(recipe, &counts)?;
            counts.preload(made.session.texts());
            let session = Arc::new(made.session);
            Ok(vec![(
                Held { session, counts },
                Probe::planted(&made.truth),
            )])
        }
    }
}

fn hash_of(session: &Session) -> String {
    let mut bytes = Vec::new();
    // Writing to memory cannot fail; if it did, the hash would only be of less.
    let _ = native::write(session, &mut bytes);
    ContentHash::of(&bytes).to_string()
}

fn entry_of(held: &Held, probes: &[Probe], scenario: &Scenario, prices: &Prices) -> SessionEntry {
    let session = &held.session;
    let counts = &held.counts;
    let messages = session.messages().iter();
    let tools = session.tools().iter().map(ToolSchema::text);
    let tokens: Tokens = messages
        .flat_map(|message| message.blocks())
        .map(|block| counts.block(&block))
        .chain(tools.map(|tool| counts.schema(tool)))
        .chain(session.system().map(|text| counts.size(text)))
        .map(|size| size.tokens)
        .sum();
    let bill = held.bill(scenario);
    let model = prices::model(&scenario.cache, session);
    SessionEntry {
        id: session.id().to_owned(),
        hash: hash_of(session),
        format: session.source().format.clone(),
        messages: session.messages().len(),
        calls: session.calls().len(),
        tokens,
        items: scenario.selection.items(session, probes).len(),
        probes: probes::hash(probes),
        compactions: session.compactions().len(),
        native_window: super::native::window(session, &bill, prices),
        sizes: bill.sizes().clone(),
        price: model.and_then(|model| prices::entry(prices, model)),
        cache: Some(prices::scheme(scenario, prices, session)),
        unknown: session.source().unknown.clone(),
        warnings: session.source().warnings.clone(),
    }
}
