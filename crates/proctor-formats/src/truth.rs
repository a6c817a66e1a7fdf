//! Reads the ground truth of a recording: its file holds it, or the file `ID.truth.json` beside it, where `ID` names
//! the session.
//!
//! A session in the native format has a file of its own, so that nothing a strategy is given can hold an answer.

use crate::prelude::*;

use super::native;
use proctor_sessions::ground_truth::GroundTruth;

/// A session, and what is known about it.
#[derive(Debug)]
pub struct Recording {
    /// The session.
    pub session: Session,
    /// Facts that can be asked for.
    pub truth: Option<GroundTruth>,
    /// Questions of the recording that cannot be asked: they have no answer, or it is not known
    /// which messages answer them.
    pub left_out: usize,
}

impl Recording {
    /// Gives the session another id.
    pub(super) fn rename(&mut self, id: String) {
        if let Some(truth) = &mut self.truth {
            truth.session.clone_from(&id);
        }
        self.session.parts_mut().id = id;
    }
}

impl From<Session> for Recording {
    fn from(session: Session) -> Self {
        Self { session, truth: None, left_out: 0 }
    }
}

/// How many sessions of a file a warning names.
const SHOWN_IDS: usize = 3;

/// The largest ground truth that is read.
const MAX_TRUTH: u64 = 1 << 28;

/// Adds the ground truth that a file beside the recording holds, if there is one. It takes the place of the
/// recording's own.
pub(super) fn add_from_file(path: &Path, recording: &mut Recording) -> Result<()> {
    let path = truth_path(path, recording.session.id());
    if !path.is_file() {
        return Ok(());
    }
    let file = SourceFile::open(&path, MAX_TRUTH)?;
    let truth: GroundTruth = serde_json::from_slice(&file.bytes)
        .map_err(|error| ImportError::Facts(path.clone(), error.to_string()))?;
    if let Some(problem) = problem(&truth, &recording.session) {
        return Err(ImportError::Facts(path, problem));
    }
    recording.truth = Some(truth);
    Ok(())
}

/// Warns of a file of facts that is named after the recording's file, and not after a session in it.
pub(super) fn warn_of_another(path: &Path, recordings: &mut [Recording]) {
    let name = format!("{}.truth.json", compressed::stem(path));
    let beside = path.with_file_name(&name);
    let ids = recordings.iter().map(|recording| recording.session.id());
    if ids.clone().any(|id| truth_path(path, id) == beside) || !beside.is_file() {
        return;
    }
    let ids: Vec<String> = ids.take(SHOWN_IDS).map(|id| format!("`{id}`")).collect();
    let problem = format!("facts in `{name}` are of no session here: there is {}", ids.join(", "));
    if let Some(first) = recordings.first_mut() {
        first.session.parts_mut().source.warn(&problem);
    }
}

/// `NAME.truth.json`, where the path is `NAME.session.jsonl`, compressed or not; else the name is the session's id.
fn truth_path(path: &Path, id: &str) -> PathBuf {
    let named = native::stem(path);
    let stem = named.as_deref().unwrap_or(id);
    path.with_file_name(format!("{stem}.truth.json"))
}

/// Why a ground truth is not about that session.
fn problem(truth: &GroundTruth, session: &Session) -> Option<String> {
    if truth.format != GroundTruth::FORMAT {
        return Some(format!("`format` must be `{}`", GroundTruth::FORMAT));
    }
    if truth.version > GroundTruth::VERSION {
        let supported = GroundTruth::VERSION;
        return Some(format!(
            "version {} is newer than this build, which reads up to {supported}",
            truth.version
        ));
    }
    if truth.session != session.id() {
        return Some(format!("it is about session `{}`, not `{}`", truth.session, session.id()));
    }
    let mut ids = BTreeSet::new();
    if let Some(again) = truth.facts.iter().find(|fact| !ids.insert(&fact.id)) {
        return Some(format!("two facts have the id `{}`", again.id));
    }
    let messages = session.messages().len();
    let outside = truth.facts.iter().find(|fact| {
        let mut named = fact.messages().into_iter();
        !fact.evidence.is_sorted() || named.any(|message| message >= messages)
    });
    outside.map(|fact| format!("fact `{}` names messages out of order or after the last", fact.id))
}
