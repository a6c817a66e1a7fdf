//! Answers that qualify probes, kept beside the runs: the next run of the same questions finds them.
//!
//! They are never scored, so that sharing them makes no two runs alike. Each run keeps a copy of what it
//! took in its own cassette: its folder stays whole.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{Cassette, CassetteError, Entry, ReplayMode, file, read};
use crate::model::Purpose;

/// A cassette that several runs share.
#[derive(Debug)]
pub(super) struct Shared {
    path: PathBuf,
    pub(super) entries: BTreeMap<String, Entry>,
    has_appended: bool,
}

impl Shared {
    /// Keeps an answer that qualifies a probe.
    pub(super) fn keep(&mut self, entry: &Entry) {
        if entry.purpose != Purpose::Qualification {
            return;
        }
        // The run's own cassette has it: where there is no room here, the next run asks again.
        self.has_appended |= file::append(&self.path, entry).is_ok();
    }

    /// Puts the file into its canonical form, if anything was kept in it.
    pub(super) fn close(&mut self) -> Result<(), CassetteError> {
        if std::mem::take(&mut self.has_appended) {
            file::sort(&self.path)?;
        }
        Ok(())
    }
}

impl Cassette {
    /// Shares answers that qualify probes with the other runs that use this file. Only where recorded
    /// answers are used and missing ones asked: any other mode says itself what is read.
    pub fn share(&self, path: &Path) -> Result<(), CassetteError> {
        if self.mode != ReplayMode::Auto || path == self.path {
            return Ok(());
        }
        let entries = read(path)?.entries.into_iter();
        let qualifying = entries.filter(|entry| entry.purpose == Purpose::Qualification);
        let shared = Shared {
            path: path.to_owned(),
            entries: qualifying.map(|entry| (entry.key.clone(), entry)).collect(),
            has_appended: false,
        };
        self.state().shared = Some(shared);
        Ok(())
    }
}
