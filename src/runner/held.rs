//! The sessions of a run: loaded one after the other, and held as far as they are few.
//!
//! Each is loaded once to be counted and checked. Those that are more than [`MOST`] together are let
//! go, and loaded again when their cells are run: then only those are held that the workers are in.

use std::collections::BTreeSet;
use std::sync::Arc;

use rayon::prelude::*;

use super::{NotReady, PlanError, Prepared, prices, probes};
use crate::bill::Bill;
use crate::model::price::Prices;
use crate::probe::Probe;
use crate::record::SessionEntry;
use crate::scenario::{Scenario, SessionSource};
use crate::session::import::{self, Beginnings, ImportError, Repeated};
use crate::session::{Session, ToolSchema, native, synthetic};
use crate::tokens::{CountedTexts, counter};
use crate::units::{ContentHash, Tokens};
use probes::Facts;

/// So many bytes of text are held of all sessions together, whatever the workers are in: to load and
/// count again what is small costs more than to hold it.
pub(super) const MOST: usize = 64 << 20;

/// A session of a run.
#[derive(Debug, Clone)]
pub(super) struct LoadedSession {
    pub(super) id: String,
    pub(super) probes: Vec<Probe>,
    /// How many of its items are about something that was planted.
    pub(super) planted: usize,
    /// The session; none if it is loaded again when its cells are run.
    pub(super) held: Option<Held>,
    /// The session made ready, where it is kept from run to run.
    pub(super) kept: Option<Arc<Prepared>>,
    source: SessionSource,
    /// The hash of its content, as the manifest has it.
    hash: String,
    /// What it repeats of an earlier one.
    repeated: Option<Repeated>,
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

impl LoadedSession {
    /// The session, which is loaded again if it is not held.
    pub(super) fn open(&self, scenario: &Scenario) -> Result<Held, NotReady> {
        if let Some(held) = &self.held {
            return Ok(held.clone());
        }
        let loaded = load(&self.source, &scenario.counter)?;
        let changed = || NotReady::Changed(self.id.clone());
        let (mut held, _) = loaded.into_iter().next().ok_or_else(changed)?;
        if let Some(repeated) = &self.repeated {
            let session = Arc::unwrap_or_clone(held.session);
            held.session = Arc::new(repeated.after(session).map_err(PlanError::from)?);
        }
        if hash_of(&held.session) != self.hash {
            return Err(changed());
        }
        Ok(held)
    }
}

/// Loads sessions, and lets go of those that are too many.
pub(super) struct Loading<'s> {
    scenario: &'s Scenario,
    prices: &'s Prices,
    facts: Facts,
    beginnings: Beginnings,
    seen: BTreeSet<String>,
    /// How many bytes of text are held.
    held: usize,
    most: usize,
    sessions: Vec<LoadedSession>,
    entries: Vec<SessionEntry>,
    passed_over: Vec<String>,
}

/// All sessions of a run, in order.
pub(super) struct Loaded {
    pub(super) sessions: Vec<LoadedSession>,
    /// What the manifest says of each.
    pub(super) entries: Vec<SessionEntry>,
    /// Why what was found in folders is none of them.
    pub(super) passed_over: Vec<String>,
}

impl<'s> Loading<'s> {
    pub(super) fn new(
        scenario: &'s Scenario,
        prices: &'s Prices,
        most: usize,
    ) -> Result<Self, PlanError> {
        Ok(Self {
            scenario,
            prices,
            facts: Facts::read(&scenario.probes)?,
            beginnings: Beginnings::default(),
            seen: BTreeSet::new(),
            held: 0,
            most,
            sessions: Vec::new(),
            entries: Vec::new(),
            passed_over: Vec::new(),
        })
    }

    /// Loads the sessions of some sources, in parallel.
    pub(super) fn load(&mut self, sources: &[SessionSource]) -> Result<(), PlanError> {
        let loaded: Vec<Result<Counted, ImportError>> = sources
            .par_iter()
            .map(
                |source| match (load(source, &self.scenario.counter), source) {
                    (Err(PlanError::Import(error)), SessionSource::Found(_))
                        if error.is_no_recording() =>
                    {
                        Ok(Err(error))
                    }
                    (loaded, _) => loaded.map(Ok),
                },
            )
            .collect::<Result<_, PlanError>>()?;
        let mut new: Vec<(Held, LoadedSession, bool)> = Vec::new();
        for (source, loaded) in sources.iter().zip(loaded) {
            let loaded = match loaded {
                Ok(loaded) => loaded,
                Err(error) => {
                    self.passed_over.push(error.to_string());
                    continue;
                }
            };
            // A file of several sessions would be read again for each of them.
            let is_alone = loaded.len() == 1;
            for (mut held, mut probes) in loaded {
                let repeated = self.beginnings.repeated(&held.session);
                if let Some(repeated) = &repeated {
                    let session = Arc::unwrap_or_clone(held.session);
                    held.session = Arc::new(repeated.after(session)?);
                }
                self.facts.put_in_place(&held.session, &mut probes)?;
                let id = held.session.id().to_owned();
                if !self.seen.insert(id.clone()) {
                    return Err(PlanError::SessionTwice { id });
                }
                let loaded = LoadedSession {
                    id,
                    planted: probes::planted(&held.session, &probes, &self.scenario.selection),
                    probes,
                    held: None,
                    kept: None,
                    source: source.clone(),
                    hash: String::new(),
                    repeated,
                };
                new.push((held, loaded, is_alone));
            }
        }
        let entries: Vec<SessionEntry> = new
            .par_iter()
            .map(|(held, loaded, _)| entry_of(held, &loaded.probes, self.scenario, self.prices))
            .collect();
        for ((held, mut loaded, is_alone), mut entry) in new.into_iter().zip(entries) {
            let model = prices::model(&self.scenario.cache, &held.session);
            entry.cache = Some(prices::scheme(self.scenario, self.prices, &held.session));
            entry.price = model.and_then(|model| prices::entry(self.prices, model));
            loaded.hash.clone_from(&entry.hash);
            let size: usize = held.session.texts().map(|text| text.len()).sum();
            if !is_alone || self.held.saturating_add(size) <= self.most {
                self.held = self.held.saturating_add(size);
                loaded.held = Some(held);
            }
            self.sessions.push(loaded);
            self.entries.push(entry);
        }
        Ok(())
    }

    /// All that was loaded.
    pub(super) fn finish(self) -> Result<Loaded, PlanError> {
        self.facts.all_placed()?;
        if self.sessions.is_empty() {
            return Err(PlanError::NoSession);
        }
        Ok(Loaded {
            sessions: self.sessions,
            entries: self.entries,
            passed_over: self.passed_over,
        })
    }
}

/// The sessions of a source, counted, with the probes that were planted in them.
type Counted = Vec<(Held, Vec<Probe>)>;

/// Loads and counts the sessions of a source.
fn load(source: &SessionSource, counter_name: &str) -> Result<Counted, PlanError> {
    let counts = |model: Option<&str>| -> Result<Arc<CountedTexts>, PlanError> {
        let counter = counter(counter_name).ok_or_else(|| PlanError::NoCounter {
            name: counter_name.to_owned(),
        })?;
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
        price: None,
        cache: None,
        unknown: session.source().unknown.clone(),
        warnings: session.source().warnings.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::path::Path;
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::record::CellRecord;
    use crate::record::journal::{Journal, Run};
    use crate::runner::{Plan, Progress, Workers, run};
    use crate::settings::Table;

    struct Silent;

    impl Progress for Silent {
        fn cell(&self, _: &CellRecord) {}
        fn session(&self, _: &str, _: usize) {}
    }

    /// What a run of these sessions records, holding so much of them; and how many it held.
    fn recorded(folder: &Path, sessions: &str, most: usize) -> (String, usize) {
        let text = format!(
            "counter = \"chars/4\"\n[window]\ntokens = 20000\n{sessions}\
             [[strategies]]\npreset = \"observation-masking\"\n"
        );
        let table = Table::parse("held.toml", &text).unwrap();
        let plan = Plan::holding(Scenario::read(&table, folder).unwrap(), most).unwrap();
        let out = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(out.path(), plan.manifest()).unwrap();
        let workers = Workers {
            threads: 2,
            stop: &AtomicBool::new(false),
        };
        let outcome = run(&plan, &mut journal, &workers, &Silent).unwrap();
        assert_eq!((outcome.outstanding, outcome.broken.len()), (0, 0));
        let mut cells = Run::read(out.path()).unwrap().cells;
        cells.sort_by_key(CellRecord::key);
        let held = plan.sessions.iter().filter(|it| it.held.is_some()).count();
        let entries = serde_json::to_string(plan.manifest()).unwrap();
        let forecast = plan.forecast().unwrap().len();
        let cells = serde_json::to_string(&cells).unwrap();
        (format!("{entries}\n{cells}\n{forecast}"), held)
    }

    #[test]
    fn a_run_records_the_same_whether_its_sessions_are_held_or_loaded_again() {
        let folder = tempfile::tempdir().unwrap();
        let mut files = String::new();
        for (name, end) in [
            ("a", ""),
            (
                "b",
                r#"{"role":"user","content":[{"type":"text","text":"On."}]}"#,
            ),
        ] {
            // The second goes on where the first one ends.
            let header = format!(r#"{{"format":"proctor-session","version":1,"id":"{name}"}}"#);
            let asked = r#"{"role":"user","content":[{"type":"text","text":"Why?"}]}"#;
            let said = r#"{"role":"assistant","content":[{"type":"text","text":"It is dry."}],"api_call":"msg_0123456789abcdef"}"#;
            let session = format!("{header}\n{asked}\n{said}\n{end}");
            std::fs::write(folder.path().join(format!("{name}.session.jsonl")), session).unwrap();
            let _ = writeln!(files, "[[sessions]]\npath = \"{name}.session.jsonl\"");
        }
        let sessions = format!(
            "[[sessions]]\nsynthetic = {{ family = \"code-review\", seed = 1, rounds = 6 }}\ncount = 2\n{files}"
        );
        let (expected, held) = recorded(folder.path(), &sessions, MOST);
        assert_eq!(held, 4);
        let (got, held) = recorded(folder.path(), &sessions, 0);
        assert_eq!(held, 0);
        assert_eq!(got, expected);
        assert!(
            got.contains("the first 2 messages are those of session `a`"),
            "{got}"
        );
    }
}
