//! Answers to whole prompts: those to prompts that a server cut are found out, and not kept.

use std::collections::BTreeMap;

use super::{Cassette, Entry, ReplayMode, State, file};
use crate::model::cut::{self, ReadSizes};
use crate::model::{CallFailure, ModelKind};
use crate::units::Tokens;

/// The failure of each model whose server was seen to cut prompts.
pub(super) type CutModels = BTreeMap<String, CallFailure>;

/// Whether an answer may be to a cut prompt.
pub(super) fn is_doubtful(cut: &CutModels, entry: &Entry) -> bool {
    match cut.get(&entry.model) {
        Some(CallFailure::CutPrompt { window, .. }) => {
            let read = entry.answer.usage.prompt();
            entry.kind == ModelKind::Live && cut::is_doubtful(read, *window)
        }
        _ => false,
    }
}

impl State {
    /// Whether a kept answer is to the whole prompt, of `sent` tokens: later answers may show that
    /// it is not.
    pub(super) fn is_whole(&self, entry: &Entry, sent: Tokens) -> bool {
        let read = entry.answer.usage.prompt();
        let may_be_cut = entry.kind == ModelKind::Live && cut::is_cut(sent, read, read);
        !may_be_cut || !cut::is_cut(sent, read, self.largest_read(&entry.model))
    }

    /// The largest prompt of the kept answers of a model, as its server reported it.
    fn largest_read(&self, model: &str) -> Tokens {
        let entries = self.entries.values().filter(|entry| entry.model == model);
        let sizes = entries.map(|entry| entry.answer.usage.prompt());
        sizes.max().unwrap_or_default()
    }
}

impl Cassette {
    /// Takes the size of a prompt that a model read, `None` if its server does not report one. An error if the
    /// server cuts prompts: answers that may be to cut ones are forgotten, and none is kept from then on.
    pub(super) fn check_read(
        &self,
        model: &str,
        sent: Tokens,
        read: Option<Tokens>,
        address: Option<&str>,
    ) -> Result<(), CallFailure> {
        let Some(read) = read else {
            return Ok(());
        };
        let mut state = self.state();
        let at = (model.to_owned(), address.map(str::to_owned));
        if !state.read.contains_key(&at) {
            let earlier = state.largest_read(model);
            state.read.insert(at.clone(), ReadSizes::after(earlier));
        }
        let sizes = state.read.entry(at).or_default();
        if let Some(proof) = sizes.add(sent, read) {
            let failure = sizes.failure(&proof, address);
            state.cut.entry(model.to_owned()).or_insert(failure);
            self.forget_doubtful(&mut state);
        }
        match state.cut.get(model) {
            Some(failure @ CallFailure::CutPrompt { window, .. })
                if cut::is_doubtful(read, *window) =>
            {
                Err(failure.clone())
            }
            _ => Ok(()),
        }
    }

    /// Forgets answers that may be to cut prompts, here and in the files.
    fn forget_doubtful(&self, state: &mut State) {
        let State {
            entries,
            fresh,
            shared,
            cut,
            failure,
            ..
        } = state;
        let is_void = |entry: &Entry| is_doubtful(cut, entry);
        entries.retain(|_, entry| !is_void(entry));
        fresh.retain(|key| entries.contains_key(key));
        let mut forgotten: Vec<_> = shared.iter().map(|it| it.forget(&is_void)).collect();
        if self.mode != ReplayMode::Off && self.path.exists() {
            forgotten.push(file::forget(&self.path, &is_void));
        }
        if let Some(error) = forgotten.into_iter().find_map(Result::err) {
            failure.get_or_insert(error.to_string());
        }
    }
}
