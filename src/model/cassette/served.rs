//! Whether a server on this machine still answers as the same model.

use std::sync::Arc;

use super::{CassetteModel, State};
use crate::model::{CallFailure, Model, Reply};

impl CassetteModel {
    /// The model that is asked at once, if one is.
    pub(super) fn asked(&self) -> Option<&Arc<dyn Model>> {
        self.model.as_ref().filter(|_| !self.defers())
    }

    /// An error where the server on this machine answers as another model than before: somebody has started that
    /// one in its place.
    pub(super) fn is_same(
        &self,
        model: &Arc<dyn Model>,
        answered: &Reply,
    ) -> Result<(), CallFailure> {
        let (Ok(response), Some(_)) = (&answered.answer, model.slots()) else {
            return Ok(());
        };
        let name = &self.dialect.model;
        let mut state = self.cassette.state();
        let State {
            entries, served, ..
        } = &mut *state;
        let first = served.entry(name.clone()).or_insert_with(|| {
            let mut own = entries.values().filter(|entry| entry.model == *name);
            let recorded = own.next().map(|entry| entry.answer.model.clone());
            recorded.unwrap_or_else(|| response.model.clone())
        });
        if *first == response.model {
            return Ok(());
        }
        Err(CallFailure::Denied(format!(
            "{} answers as `{}`, and answered as `{first}` before: start that model again",
            model.address().unwrap_or_default(),
            response.model
        )))
    }
}
