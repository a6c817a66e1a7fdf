//! Looks at each session of a plan once, several at a time: none is held for longer than that.

use std::panic::{AssertUnwindSafe, catch_unwind};

use rayon::prelude::*;

use super::{Plan, prepare};
use crate::model::price::Prices;
use crate::record::SessionEntry;
use crate::replay::PreparedSession;

/// A session of a plan, ready to be replayed.
#[derive(Debug)]
pub struct PlannedSession<'p> {
    /// The name of its source: a file.
    pub file: String,
    /// Its entry in the manifest.
    pub entry: &'p SessionEntry,
    /// The session, asked nothing.
    pub prepared: PreparedSession,
    /// The prices in force.
    pub prices: &'p Prices,
}

impl Plan {
    /// The results of `look` for each session, in the order of the manifest; of one that cannot be looked at, why not.
    pub fn each_session<T: Send>(
        &self,
        look: impl Fn(&PlannedSession<'_>) -> T + Sync,
    ) -> Vec<Result<T, String>> {
        let results = self.sessions.par_iter().map(|loaded| {
            let prepared = prepare(self, loaded, Vec::new()).map_err(|error| error.to_string())?;
            let planned = PlannedSession {
                file: loaded.file(),
                entry: &self.manifest.sessions[loaded.place],
                prepared,
                prices: &self.prices,
            };
            // A panic is a mistake in Proctor; it costs one session.
            let looked = catch_unwind(AssertUnwindSafe(|| look(&planned)));
            looked.map_err(|_| format!("`{}`: Proctor itself failed on it", loaded.id()))
        });
        results.collect()
    }
}
