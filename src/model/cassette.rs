//! Recorded answers of models: an answer that was paid for is never asked for again.
//!
//! A cassette is a file of JSON lines. An answer is found by a hash of the exact request, the model
//! and which repeat it is; the request itself is kept as its shape, enough to say how one that is
//! not found differs. Failures, refusals and verdicts that cannot be read are
//! never kept: they are asked again.
//!
//! Each line has a checksum. Each answer is written at once, in one piece, so that a process that is killed loses nothing that
//! was answered. Closing sorts the file: the same answers are the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::api::Dialect;
use super::cut::{self, ReadSizes};
use super::spending::Spending;
use super::{CallFailure, Model, ModelKind, Purpose, Reply, Request, Response, bill};
use crate::files::checked::Damage;
use crate::tokens::CountedTexts;
use crate::units::{ContentHash, Tokens};

mod deferred;
mod file;
mod missed;
mod served;
mod shape;
mod shared;
mod whole;

use deferred::Deferral;
pub use deferred::Deferred;
pub use file::{Contents, canonical, read, renew, write_sorted};
use shape::RequestShape;
pub use shared::Sharing;
use shared::{Claim, SharedAnswers};
use whole::{CutModels, is_doubtful};

/// The value of `format` in a cassette's first line.
pub const FORMAT: &str = "proctor-cassette";

/// Version of the file.
pub const VERSION: u32 = 1;

/// How recorded answers are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplayMode {
    /// A recorded answer where there is one; else the model is asked, and its answer kept.
    #[default]
    Auto,
    /// Recorded answers only: a request that has none stops the run.
    Strict,
    /// Every request is asked anew, and its answer takes the place of an older one.
    Record,
    /// Nothing is read and nothing kept.
    Off,
}

impl ReplayMode {
    /// All modes, in the order of the documentation.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Strict, Self::Record, Self::Off];

    /// The name used in scenarios and on the command line.
    pub fn name(self) -> &'static str {
        ["auto", "strict", "record", "off"][self as usize]
    }
}

/// One recorded answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CassetteEntry {
    /// Hash of the exact request, the model and the repeat: 64 hexadecimal digits.
    pub key: String,
    /// The use to which its answers may be put.
    pub kind: ModelKind,
    /// The model that was asked, by the name it was asked under.
    pub model: String,
    /// Whose API the request was written for.
    pub provider: String,
    /// Whose bill it went on.
    pub purpose: Purpose,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The shape of the request.
    pub request: RequestShape,
    /// The answer.
    pub answer: Response,
}

/// A cassette, open for a run.
#[derive(Debug)]
pub struct Cassette {
    path: PathBuf,
    mode: ReplayMode,
    state: Mutex<CassetteState>,
    answered: Condvar,
}

#[derive(Debug, Default)]
struct CassetteState {
    entries: BTreeMap<String, CassetteEntry>,
    /// Keys that were answered in this run.
    fresh: BTreeSet<String>,
    /// Keys that are being asked for; other workers wait for the answer.
    under_way: BTreeSet<String>,
    /// Whether an answer was written, by this process or by one that was killed.
    is_unsorted: bool,
    /// Whether an answer was written that may not be on disk yet.
    is_unsynced: bool,
    /// Why nothing can be kept any more.
    failure: Option<String>,
    /// The first request that was wanted and not recorded, in words.
    miss: Option<String>,
    misses: usize,
    /// Requests that wait for a batch, if this cassette defers.
    deferral: Option<Deferral>,
    /// Where other processes find answers of this one.
    shared: Vec<Arc<SharedAnswers>>,
    /// The sizes of prompts that each live model read in this run, by its name and its server's address.
    read: BTreeMap<(String, Option<String>), ReadSizes>,
    /// The models whose servers were seen to cut prompts: nothing more is asked of them.
    cut: CutModels,
    /// What each model on this machine called itself in its first answer, by its name and its server's address.
    served: BTreeMap<(String, Option<String>), Arc<str>>,
}

/// Whether an answer is worth keeping: refusals and unreadable verdicts are not.
pub type KeepFilter = fn(&Request, &Response) -> bool;

impl Cassette {
    /// Reads a cassette; one that is not there yet is empty.
    pub fn open(path: &Path, mode: ReplayMode) -> Result<Arc<Self>, CassetteError> {
        match mode {
            ReplayMode::Strict if !path.exists() => {
                return Err(CassetteError::Missing(path.to_owned()));
            }
            ReplayMode::Auto | ReplayMode::Record => file::drop_zeroed(path)?,
            ReplayMode::Strict | ReplayMode::Off => {}
        }
        let contents = match mode {
            ReplayMode::Off => Contents::default(),
            _ => read(path)?,
        };
        let entries = contents.entries.into_iter().map(|entry| (entry.key.clone(), entry));
        Ok(Arc::new(Self {
            path: path.to_owned(),
            mode,
            state: Mutex::new(CassetteState {
                entries: entries.collect(),
                is_unsorted: contents.is_unsorted && mode != ReplayMode::Strict,
                ..CassetteState::default()
            }),
            answered: Condvar::new(),
        }))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it has an answer whose name begins with these digits.
    pub fn holds(&self, digits: &str) -> bool {
        let state = self.state();
        let mut from = state.entries.range(digits.to_owned()..);
        from.next().is_some_and(|(name, _)| name.starts_with(digits))
    }

    /// How its answers are used.
    pub fn mode(&self) -> ReplayMode {
        self.mode
    }

    /// The kind of the answers recorded of a model; `None` without any.
    pub fn kind_of(&self, model: &str) -> Option<ModelKind> {
        let state = self.state();
        state.entries.values().find(|entry| entry.model == model).map(|entry| entry.kind)
    }

    /// Why answers could not be kept, if they could not.
    pub fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// Waits until all answers are on disk: a cell that is written then rests on none that a power cut takes.
    pub fn sync(&self) -> Result<(), CassetteError> {
        // Taken before: an answer that is written meanwhile is synced with the next cell.
        if std::mem::take(&mut self.state().is_unsynced) {
            file::sync(&self.path)?;
        }
        Ok(())
    }

    /// Puts the file into its canonical form, if it is not. What another process has
    /// kept there meanwhile stays.
    pub fn close(&self) -> Result<(), CassetteError> {
        let mut state = self.state();
        for shared in &state.shared {
            shared.close()?;
        }
        if !std::mem::take(&mut state.is_unsorted) {
            return Ok(());
        }
        file::sort(&self.path)
    }

    fn state(&self) -> MutexGuard<'_, CassetteState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether an answer may also answer a second, equal request. The same answer gets the same
    /// verdict, whatever the mode.
    fn is_shared(&self, purpose: Purpose) -> bool {
        self.mode != ReplayMode::Off || purpose == Purpose::Judge
    }

    /// The recorded answer; or the right to ask, which must be given back. None of them once the run `is_stopped` while
    /// another process asks for the same.
    fn find<'a>(
        &'a self,
        key: &'a str,
        purpose: Purpose,
        sent: Tokens,
        is_stopped: &dyn Fn() -> bool,
    ) -> Option<Result<Response, AskGuard<'a>>> {
        let mut asking = AskGuard { cassette: self, key, claims: Vec::new(), is_given_back: false };
        if !self.is_shared(purpose) {
            return Some(Err(asking));
        }
        let mut state = self.state();
        loop {
            // An answer of this run is not asked for again, in any mode.
            let counts = self.mode != ReplayMode::Record || state.fresh.contains(key);
            let entry = state.entries.get(key).filter(|_| counts);
            if let Some(entry) = entry.filter(|entry| state.is_whole(entry, sent)) {
                asking.is_given_back = true;
                return Some(Ok(entry.answer.clone()));
            }
            if state.under_way.insert(key.to_owned()) {
                break;
            }
            let answered = self.answered.wait(state);
            state = answered.unwrap_or_else(PoisonError::into_inner);
        }
        let shared = state.shared.clone();
        drop(state);
        for shared in shared.iter().filter(|shared| shared.takes(purpose)) {
            let answer = self.answer_of(shared, key, sent);
            if answer.is_none() {
                asking.claims.push(shared.claim(key, is_stopped)?);
            }
            if let Some(entry) = answer.or_else(|| self.answer_of(shared, key, sent)) {
                let answer = entry.answer.clone();
                if self.keep(&mut self.state(), entry) {
                    return Some(Ok(answer));
                }
            }
        }
        Some(Err(asking))
    }

    /// The answer that another process has by now.
    fn answer_of(&self, shared: &SharedAnswers, key: &str, sent: Tokens) -> Option<CassetteEntry> {
        shared.answer(key).filter(|entry| self.state().is_whole(entry, sent))
    }

    /// Gives the right to ask back, with what was answered if it is to be kept. Returns false if it could not
    /// be kept.
    fn settle(&self, key: &str, entry: Option<CassetteEntry>) -> bool {
        let mut state = self.state();
        let mut is_kept = true;
        state.under_way.remove(key);
        if let Some(entry) = entry.filter(|entry: &CassetteEntry| {
            self.is_shared(entry.purpose) && !is_doubtful(&state.cut, entry)
        }) {
            for shared in state.shared.iter().filter(|shared| shared.takes(entry.purpose)) {
                shared.add(&entry);
            }
            is_kept = self.keep(&mut state, entry);
        }
        drop(state);
        self.answered.notify_all();
        is_kept
    }

    /// Keeps an answer, and returns whether it could be written. One that could not serves no request: a cell
    /// that used it would be done, and the file would lack it for ever.
    fn keep(&self, state: &mut CassetteState, entry: CassetteEntry) -> bool {
        if self.mode != ReplayMode::Off {
            if let Err(error) = file::append(&self.path, &entry) {
                state.failure.get_or_insert(error.to_string());
                return false;
            }
            state.is_unsorted = true;
            state.is_unsynced = true;
        }
        state.fresh.insert(entry.key.clone());
        state.entries.insert(entry.key.clone(), entry);
        true
    }

    /// Shares answers with the other processes that use this file, each of which also has a cassette of its own. Only
    /// where recorded answers are used and missing ones asked: any other mode says itself what is read.
    pub fn share(&self, path: &Path, sharing: Sharing) -> Result<(), CassetteError> {
        if self.mode == ReplayMode::Auto && path != self.path {
            let shared = SharedAnswers::open(path, sharing)?;
            self.state().shared.push(Arc::new(shared));
        }
        Ok(())
    }
}

/// The right to ask for an answer. It is given back also where asking panics: others wait for it.
struct AskGuard<'a> {
    cassette: &'a Cassette,
    key: &'a str,
    /// The same right among processes. Dropped last, once the answer is written.
    claims: Vec<Claim>,
    is_given_back: bool,
}

impl AskGuard<'_> {
    fn give_back(mut self, entry: Option<CassetteEntry>) -> bool {
        self.is_given_back = true;
        self.cassette.settle(self.key, entry)
    }
}

impl Drop for AskGuard<'_> {
    fn drop(&mut self) {
        if !self.is_given_back {
            self.cassette.settle(self.key, None);
        }
    }
}

/// A model whose answers are kept in a cassette.
#[derive(Debug)]
pub struct CassetteModel {
    /// Where they are kept.
    pub cassette: Arc<Cassette>,
    /// How the model is spoken to.
    pub dialect: Dialect,
    /// The use to which its answers may be put.
    pub kind: ModelKind,
    /// Asked where nothing is recorded; without one, recorded answers are all there is.
    pub model: Option<Arc<dyn Model>>,
    /// What is paid for its answers.
    pub spending: Arc<Spending>,
    /// The answers that are kept.
    pub keeps: KeepFilter,
}

impl CassetteModel {
    /// The key of a request: a hash of its exact bytes, the model, and the repeat.
    pub fn key(dialect: &Dialect, request: &Request, repeat: u32) -> ContentHash {
        let body = dialect.body(request);
        ContentHash::of_parts([
            dialect.provider.name().as_bytes(),
            dialect.model.as_bytes(),
            body.as_bytes(),
            &repeat.to_le_bytes()[..],
        ])
    }

    /// The failure of an answer that cannot be kept, once one could not.
    fn not_kept(&self) -> Option<CallFailure> {
        let why = self.cassette.failure()?;
        let path = self.cassette.path().display();
        Some(CallFailure::NotKept(format!("`{path}`: {why}")))
    }
}

impl Model for CassetteModel {
    fn name(&self) -> &str {
        &self.dialect.model
    }

    fn kind(&self) -> ModelKind {
        self.kind
    }

    fn answer(&self, request: &Request, repeat: u32, counts: &CountedTexts) -> Reply {
        let name = Self::key(&self.dialect, request, repeat);
        let key = &name.to_string();
        // A judge's answer of this run is found again in any mode, and is in no file where nothing is kept.
        let name = Some(name).filter(|_| self.cassette.mode() != ReplayMode::Off);
        let live = self.kind == ModelKind::Live;
        let sent = if live { cut::sent(request, counts) } else { Tokens::ZERO };
        let found = self.cassette.find(key, request.purpose, sent, &|| {
            self.model.as_ref().is_some_and(|model| model.is_stopped())
        });
        let asking = match found {
            Some(Err(asking)) => asking,
            Some(Ok(recorded)) => {
                let usage = bill::answered(request, &recorded, counts);
                return Reply { key: name, paid: name.map(|_| usage), ..Reply::once(Ok(recorded)) };
            }
            None => return Reply::once(Err(CallFailure::Stopped { was_sent: false })),
        };
        let mode = self.cassette.mode();
        let Some(model) = self.model.as_ref().filter(|_| mode != ReplayMode::Strict) else {
            let model = &self.dialect.model;
            self.cassette.note_miss(key, model, request, repeat);
            return Reply::once(Err(CallFailure::NotRecorded));
        };
        let cut = self.cassette.state().cut.get(&self.dialect.model).cloned();
        if let Some((failure, _)) = cut {
            return Reply::once(Err(failure));
        }
        // Every further answer would be paid for and lost.
        if let Some(failure) = self.not_kept().filter(|_| live) {
            return Reply::once(Err(failure));
        }
        if live && self.puts_off(key, request, repeat) {
            return Reply::once(Err(CallFailure::NotRecorded));
        }
        let mut answered = model.answer(request, repeat, counts);
        let failed = answered.failed.iter().chain(answered.answer.as_ref().err());
        for failure in failed {
            let usage = bill::failed(request, failure, counts);
            if usage.total() > Tokens::ZERO {
                self.spending.paid(&self.dialect.model, &usage);
            }
        }
        let checked = match &mut answered.answer {
            Ok(response) => {
                let read = self.spending.correct(request, response, counts);
                self.spending.paid(&self.dialect.model, &response.usage);
                let address = model.address();
                let (cassette, asked) = (&self.cassette, &self.dialect.model);
                cassette.check_read(asked, sent, read, address.as_deref())
            }
            Err(_) => Ok(()),
        };
        if let Err(failure) = checked.and_then(|()| self.is_same(&**model, &answered)) {
            answered.answer = Err(failure);
        }
        let response = answered.answer.as_ref().ok();
        let entry = response.filter(|response| (self.keeps)(request, response)).map(|response| {
            CassetteEntry::of(key, self.kind, &self.dialect, request, repeat, response)
        });
        answered.key = name.filter(|_| entry.is_some());
        answered.paid = response.map(|response| response.usage);
        if !asking.give_back(entry)
            && let Some(failure) = self.not_kept()
        {
            return Reply { failed: answered.failed, ..Reply::once(Err(failure)) };
        }
        answered
    }

    fn longest(&self, request: &Request) -> Tokens {
        self.dialect.longest(request)
    }

    fn at_once(&self) -> usize {
        // Deferring takes no time: one at a time is enough.
        self.asked().map_or(1, |model| model.at_once())
    }

    fn slots(&self) -> Option<usize> {
        self.asked()?.slots()
    }

    fn in_slot(&self, work: &mut dyn FnMut()) {
        match self.asked() {
            Some(model) => model.in_slot(work),
            None => work(),
        }
    }

    fn defers(&self) -> bool {
        self.kind == ModelKind::Live && self.cassette.state().deferral.is_some()
    }

    fn is_kept(&self, request: &Request, repeat: u32) -> bool {
        let key = Self::key(&self.dialect, request, repeat).to_string();
        match self.cassette.mode() {
            ReplayMode::Strict => true,
            ReplayMode::Auto => self.cassette.state().entries.contains_key(&key),
            ReplayMode::Record | ReplayMode::Off => false,
        }
    }
}

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The file cannot be read or written.
    #[error("cannot use cassette `{}`", .0.display())]
    Io(PathBuf, #[source] io::Error),
    /// Only recorded answers are wanted, and there is no such file.
    #[error("there is no cassette `{}`, but only recorded answers are allowed", .0.display())]
    Missing(PathBuf),
    /// The file is something else.
    #[error("`{}` is not a cassette that this build reads", .0.display())]
    NoCassette(PathBuf),
    /// This line of the file, from 1, is not what was written.
    #[error("line {line} of cassette `{}` is damaged", .0.display(), line = .1)]
    BadLine(PathBuf, usize, #[source] Damage),
}

impl CassetteError {
    /// How it is mended.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Missing(_) => {
                "`--replay auto` asks the models, and keeps their answers there".to_owned()
            }
            Self::BadLine(path, _, Damage::NoChecksum) => format!(
                "it was edited: `proctor cache renew {}` adds the checksums",
                path.display()
            ),
            Self::BadLine(_, 1, _) => {
                "write the first line of another cassette in its place".to_owned()
            }
            Self::BadLine(_, line, _) => format!(
                "delete line {line}: its answer is asked for again, and the others are kept"
            ),
            Self::NoCassette(_) => {
                "a run keeps its answers in `cassette.jsonl` in its folder".to_owned()
            }
            Self::Io(..) => return None,
        })
    }
}

#[cfg(test)]
mod tests;
