//! A session of a run: what is known of it as long as the plan is, and its texts while they are needed.
//!
//! A run over a folder takes no more memory for a larger folder: the texts of the first sessions are kept
//! up to a number of bytes, and those of all others are read again when their cells are run.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::{PlanError, Result, native_hash};
use crate::bill::Bill;
use crate::patterns::PatternsError;
use crate::probe::Probe;
use crate::scenario::{Scenario, SessionSource};
use crate::session::Session;
use crate::session::import::{self, SharedPrefix};
use crate::session::synthetic;
use crate::tokens::{CountedTexts, counter};

/// A session with the sizes of its texts.
#[derive(Debug, Clone)]
pub(super) struct SessionTexts {
    pub(super) session: Arc<Session>,
    pub(super) counts: Arc<CountedTexts>,
}

impl SessionTexts {
    /// The sizes of its prompts, as the scenario wants them.
    pub(super) fn bill(&self, scenario: &Scenario) -> Bill {
        let head = scenario.window.head;
        Bill::of(&self.session, &self.counts, scenario.sizes, head)
    }

    /// About how many bytes it takes in memory.
    pub(super) fn bytes(&self) -> usize {
        let texts = self.session.texts().map(|text| text.len());
        texts.sum::<usize>() + 256 * self.session.messages().len()
    }
}

/// A session as it was read from its source.
#[derive(Debug)]
pub(super) struct ReadSession {
    pub(super) texts: SessionTexts,
    pub(super) probes: Vec<Probe>,
    /// What it repeats of another session.
    pub(super) repeated: Option<SharedPrefix>,
}

impl ReadSession {
    fn of(session: Session, counts: Arc<CountedTexts>, probes: Vec<Probe>) -> Self {
        let texts = SessionTexts { session: Arc::new(session), counts };
        Self { texts, probes, repeated: None }
    }

    /// Takes out what it repeats.
    pub(super) fn shorten(&mut self, repeated: SharedPrefix) -> Result<()> {
        self.texts.session = Arc::new(repeated.after(Session::clone(&self.texts.session))?);
        self.repeated = Some(repeated);
        Ok(())
    }
}

/// Reads the sessions of a source, with the probes that were planted in them.
pub(super) fn read(source: &SessionSource, counter_name: &str) -> Result<Vec<ReadSession>> {
    match source {
        SessionSource::File(path, _) => {
            let read = import::load_with_truth(path, None)?.into_iter().map(|recording| {
                let counts = counts_of(counter_name, recording.session.model())?;
                let probes = recording.truth.map(|truth| truth.facts.clone());
                Ok(ReadSession::of(recording.session, counts, probes.unwrap_or_default()))
            });
            read.collect()
        }
        SessionSource::Synthetic(recipe) => {
            let counts = counts_of(counter_name, None)?;
            let made = synthetic::generate(recipe, &counts)?;
            Ok(vec![ReadSession::of(made.session, counts, made.truth.facts.clone())])
        }
    }
}

/// An empty table of the sizes of texts, images counted as for this model.
pub(super) fn counts_of(name: &str, model: Option<&str>) -> Result<Arc<CountedTexts>> {
    let found = counter(name).ok_or_else(|| PlanError::NoCounter(name.to_owned()))?;
    Ok(Arc::new(CountedTexts::new(found).with_images_of(model)))
}

/// Why a session is not ready for its cells.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotReady {
    #[error("the session's planted values cannot be searched: {0}")]
    Patterns(#[from] PatternsError),
    #[error("the session cannot be read again: {0}")]
    Unread(#[from] PlanError),
    #[error("`{0}` was changed after this run was planned: run the command again")]
    Changed(String),
}

/// Where the texts of sessions come from.
#[derive(Debug)]
pub(super) struct TextSource {
    source: SessionSource,
    counter: String,
    /// Whether its texts are kept once they are read.
    is_kept: bool,
    /// The sessions of it that are part of a plan.
    sessions: Mutex<Vec<Weak<HeldTexts>>>,
}

impl TextSource {
    pub(super) fn new(source: &SessionSource, counter: &str, is_kept: bool) -> Arc<Self> {
        Arc::new(Self {
            source: source.clone(),
            counter: counter.to_owned(),
            is_kept,
            sessions: Mutex::default(),
        })
    }

    fn name(&self) -> String {
        match &self.source {
            SessionSource::File(path, _) => path.display().to_string(),
            SessionSource::Synthetic(recipe) => synthetic::session_id(recipe),
        }
    }

    /// Reads the texts of all its sessions again, as far as they are what they were.
    fn read_again(&self, sessions: &[Weak<HeldTexts>]) -> Result<()> {
        let sessions: Vec<Arc<HeldTexts>> = sessions.iter().filter_map(Weak::upgrade).collect();
        for mut read in read(&self.source, &self.counter)? {
            let id = read.texts.session.id();
            let Some(held) = sessions.iter().find(|held| held.id == id) else {
                continue;
            };
            if let Some(repeated) = held.repeated.clone() {
                read.shorten(repeated)?;
            }
            if native_hash(&read.texts.session) == held.hash {
                *held.lock() = Some(read.texts);
            }
        }
        Ok(())
    }
}

/// The texts of a session, while they are held.
#[derive(Debug)]
struct HeldTexts {
    id: String,
    /// Hash of its content.
    hash: String,
    repeated: Option<SharedPrefix>,
    texts: Mutex<Option<SessionTexts>>,
}

impl HeldTexts {
    fn lock(&self) -> MutexGuard<'_, Option<SessionTexts>> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session of a run.
#[derive(Debug, Clone)]
pub(super) struct LoadedSession {
    /// The session that it belongs to, by its id or its product's name.
    pub(super) main: Option<String>,
    /// The messages that answer its calls.
    pub(super) calls: Arc<[usize]>,
    pub(super) probes: Vec<Probe>,
    /// Which of the manifest's sessions it is.
    pub(super) place: usize,
    source: Arc<TextSource>,
    held: Arc<HeldTexts>,
}

impl LoadedSession {
    /// A session whose content has this hash. Where its source is not kept, its texts are dropped.
    pub(super) fn new(
        read: ReadSession,
        source: &Arc<TextSource>,
        main: Option<String>,
        hash: &str,
    ) -> Self {
        let session = &read.texts.session;
        let calls = session.calls().into();
        let held = Arc::new(HeldTexts {
            id: session.id().to_owned(),
            hash: hash.to_owned(),
            repeated: read.repeated,
            texts: Mutex::new(Some(read.texts).filter(|_| source.is_kept)),
        });
        source.sessions.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(&held));
        Self { main, calls, probes: read.probes, place: 0, source: source.clone(), held }
    }

    pub(super) fn id(&self) -> &str {
        &self.held.id
    }

    /// The name of its source.
    pub(super) fn file(&self) -> String {
        self.source.name()
    }

    /// The session and the sizes of its texts, for as long as the caller holds them: texts that are not
    /// kept are read again, with those of the other sessions of their source, whose turn comes next.
    pub(super) fn texts(&self) -> Result<SessionTexts, NotReady> {
        if let Some(texts) = self.held() {
            return Ok(texts);
        }
        // One reads, and the others wait for it.
        let sessions = self.source.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(texts) = self.held() {
            return Ok(texts);
        }
        self.source.read_again(&sessions)?;
        self.held().ok_or_else(|| NotReady::Changed(self.source.name()))
    }

    /// The texts while they are held: they are taken out where they are not kept.
    fn held(&self) -> Option<SessionTexts> {
        let mut held = self.held.lock();
        if self.source.is_kept { held.clone() } else { held.take() }
    }
}

/// The file that a found source is read from.
pub(super) fn found(source: &SessionSource) -> Option<&Path> {
    match source {
        SessionSource::File(path, None) => Some(path),
        SessionSource::File(..) | SessionSource::Synthetic(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::session::native;

    /// Two conversations in one file, of which the second repeats the first and goes on.
    fn write(path: &Path, last: &str) {
        let chat = |more: &str| {
            format!(
                r#"[{{"role":"user","content":"go"}},{{"role":"assistant","content":"one"}}{more}]"#
            )
        };
        let more = format!(
            r#",{{"role":"user","content":"on"}},{{"role":"assistant","content":"{last}"}}"#
        );
        fs::write(path, format!("[{},{}]", chat(""), chat(&more))).unwrap();
    }

    fn written(session: &Session) -> Vec<u8> {
        let mut out = Vec::new();
        native::write(session, &mut out).unwrap();
        out
    }

    #[test]
    fn texts_that_are_dropped_are_read_again_as_they_were_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("two.json");
        write(&path, "two");
        for is_kept in [false, true] {
            let found = SessionSource::File(path.clone(), None);
            let source = TextSource::new(&found, "chars/4", is_kept);
            let sessions = read(&found, "chars/4").unwrap().into_iter();
            let sessions = sessions.enumerate().map(|(at, mut read)| {
                if at == 1 {
                    let of = "one".to_owned();
                    let (messages, is_all) = (2, false);
                    let repeated = SharedPrefix { messages, is_all, of };
                    read.shorten(repeated).unwrap();
                }
                let hash = native_hash(&read.texts.session);
                let bytes = written(&read.texts.session);
                (LoadedSession::new(read, &source, None, &hash), bytes)
            });
            let sessions: Vec<(LoadedSession, Vec<u8>)> = sessions.collect();
            for _ in 0..2 {
                for (loaded, bytes) in &sessions {
                    assert!(
                        loaded.held.lock().is_some() == is_kept
                            || loaded.id() != sessions[0].0.id()
                    );
                    assert_eq!(written(&loaded.texts().unwrap().session), *bytes);
                }
            }
            // The second is held from the last reading of the first until its turn comes.
            assert_eq!(sessions[1].0.held.lock().is_some(), is_kept);
            write(&path, "three");
            let again = sessions[1].0.texts();
            if is_kept {
                assert!(again.is_ok());
            } else {
                let error = again.unwrap_err().to_string();
                assert!(error.contains("two.json` was changed after"), "{error}");
            }
            write(&path, "two");
        }
    }
}
