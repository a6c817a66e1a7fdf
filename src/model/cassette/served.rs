//! Whether a server on this machine still answers as the same model.

use std::sync::Arc;

use super::{CassetteModel, ReplayMode};
use crate::model::{CallFailure, Model, Reply};
use crate::script::first_chars;

/// Characters of a model's name that are shown.
const SHOWN: usize = 100;

impl CassetteModel {
    /// The model that is asked at once, if one is.
    pub(super) fn asked(&self) -> Option<&Arc<dyn Model>> {
        self.model.as_ref().filter(|_| !self.defers())
    }

    /// An error where the server on this machine answers as another model than before: somebody has started that
    /// one in its place.
    pub(super) fn is_same(&self, model: &dyn Model, answered: &Reply) -> Result<(), CallFailure> {
        let (Ok(response), Some(_)) = (&answered.answer, model.slots()) else {
            return Ok(());
        };
        let name = (self.dialect.model.clone(), model.address());
        let mut state = self.cassette.state();
        let state = &mut *state;
        let first = state.served.entry(name.clone()).or_insert_with(|| {
            // Where all is asked again, what was answered before is past.
            let counts = self.cassette.mode() != ReplayMode::Record;
            let own = state.entries.values().find(|entry| counts && entry.model == name.0);
            own.map_or(&response.model, |entry| &entry.answer.model).clone()
        });
        if *first == response.model {
            return Ok(());
        }
        Err(CallFailure::Denied(format!(
            "{} answers as `{}`, and answered as `{}` before: start that model again",
            name.1.unwrap_or_default(),
            first_chars(&response.model, SHOWN),
            first_chars(first, SHOWN)
        )))
    }
}
