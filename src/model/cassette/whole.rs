//! Answers to whole prompts: those to prompts that a server cut are found out, and not kept.

use std::collections::BTreeMap;

use super::{Cassette, CassetteEntry, CassetteState, ReplayMode, file};
use crate::model::cut::{self, ReadSizes};
use crate::model::{CallFailure, ModelKind};
use crate::units::Tokens;

/// The failure of each model whose server was seen to cut prompts, and the largest prompt that it read.
pub(super) type CutModels = BTreeMap<String, (CallFailure, Tokens)>;

/// Whether an answer may be to a cut prompt.
pub(super) fn is_doubtful(cut: &CutModels, entry: &CassetteEntry) -> bool {
    let read = entry.answer.usage.prompt();
    let window = cut.get(&entry.model).map(|(_, window)| *window);
    entry.kind == ModelKind::Live && window.is_some_and(|window| cut::is_doubtful(read, window))
}

impl CassetteState {
    /// Whether a kept answer is to the whole prompt, of `sent` tokens: later answers may show that
    /// it is not.
    pub(super) fn is_whole(&self, entry: &CassetteEntry, sent: Tokens) -> bool {
        let read = entry.answer.usage.prompt();
        !cut::is_cut(sent, read, read)
            || !cut::is_cut(sent, read, largest_read(&self.entries, &entry.model))
    }
}

/// The largest prompt of the kept answers of a model, as its server reported it.
fn largest_read(entries: &BTreeMap<String, CassetteEntry>, model: &str) -> Tokens {
    let own = entries.values().filter(|entry| entry.model == model);
    own.map(|entry| entry.answer.usage.prompt()).max().unwrap_or_default()
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
        let CassetteState { read: by_model, entries, cut, .. } = &mut *state;
        let asked = (model.to_owned(), address.map(str::to_owned));
        let sizes =
            by_model.entry(asked).or_insert_with(|| ReadSizes::after(largest_read(entries, model)));
        if let Some(proof) = sizes.add(sent, read) {
            let failure = sizes.failure(&proof, address);
            let known = cut.entry(model.to_owned());
            known.or_insert((failure, sizes.largest));
            self.forget_doubtful(&mut state);
        }
        match state.cut.get(model) {
            Some((failure, window)) if cut::is_doubtful(read, *window) => Err(failure.clone()),
            Some(_) | None => Ok(()),
        }
    }

    /// Forgets answers that may be to cut prompts, here and in the files.
    fn forget_doubtful(&self, state: &mut CassetteState) {
        let CassetteState { entries, fresh, shared, cut, failure, .. } = state;
        entries.retain(|_, entry| !is_doubtful(cut, entry));
        fresh.retain(|key| entries.contains_key(key));
        let mut forgotten: Vec<_> =
            shared.iter().map(|shared| shared.forget(&|entry| is_doubtful(cut, entry))).collect();
        if self.mode != ReplayMode::Off && self.path.exists() {
            forgotten.push(file::forget(&self.path, &|entry| is_doubtful(cut, entry)));
        }
        if let Some(error) = forgotten.into_iter().find_map(Result::err) {
            failure.get_or_insert(error.to_string());
        }
    }
}
