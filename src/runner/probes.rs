//! Files of facts that a scenario names: read, checked against their session, put in place.

use std::path::PathBuf;

use serde_json::json;

use super::loaded::LoadedSession;
use super::{Plan, PlanError, Result};
use crate::probe::ProbeExt as _;
use crate::probe::check::{Mistake, TruthFile};
use crate::probe::{Item, Probe, ProbeKind, Selection};
use crate::scenario::Scenario;
use crate::session::Session;
use crate::settings::Place;
use crate::units::ContentHash;

/// Hash of what is asked: all of a probe that decides its score. `None` where nothing is asked.
pub(super) fn hash(probes: &[Probe]) -> Option<String> {
    let values = probes.iter().map(|probe| json!(probe));
    (!probes.is_empty()).then(|| ContentHash::of_values(values).hex(16))
}

impl Plan {
    /// Items about something that was planted, session by session: what differences are made of. Decoys are
    /// asked as well, and are in none.
    pub fn planted_items(&self) -> Vec<usize> {
        self.planted_if(&self.scenario.selection)
    }

    /// The same where other items are selected.
    pub fn planted_if(&self, selection: &Selection) -> Vec<usize> {
        self.sessions.iter().map(|loaded| loaded.planted(selection)).collect()
    }
}

impl LoadedSession {
    /// The items that are asked of it.
    pub(super) fn items(&self, selection: &Selection) -> Vec<Item> {
        selection.items_at(self.id(), &self.calls, &self.probes)
    }

    /// How many of them are about something that was planted.
    fn planted(&self, selection: &Selection) -> usize {
        let items = self.items(selection).into_iter();
        items.filter(|item| self.probes[item.probe].kind() != ProbeKind::Decoy).count()
    }
}

/// Reads the files of facts that a scenario names, and says what is wrong in them.
pub fn check_facts(scenario: &Scenario) -> Result<()> {
    FactFiles::read(&scenario.probes).map(drop)
}

/// Files of facts that a scenario names, by name, until their session is found. They take the place of
/// what is known about it.
pub(super) struct FactFiles(Vec<(String, TruthFile)>);

impl FactFiles {
    /// Reads these files.
    pub(super) fn read(files: &[(PathBuf, Place)]) -> Result<Self> {
        let mut read = Vec::new();
        for (path, place) in files {
            let name = path.display().to_string();
            let text = super::read_named("facts", path, place)?;
            let file = TruthFile::read(&text).map_err(|mistake| wrong(&name, mistake))?;
            if let Some(mistake) = file.unread.first() {
                return Err(wrong(&name, mistake.clone()));
            }
            read.push((name, file));
        }
        Ok(Self(read))
    }

    /// Replaces the probes of a session where a file is about it.
    pub(super) fn put_in(&mut self, session: &Session, probes: &mut Vec<Probe>) -> Result<()> {
        for (name, file) in self.0.extract_if(.., |(_, file)| file.truth.session == session.id()) {
            if let Some(mistake) = file.mistakes(session).into_iter().next() {
                return Err(wrong(&name, mistake));
            }
            probes.clone_from(&file.truth.facts);
        }
        Ok(())
    }

    /// Whether each file is about a session of the scenario.
    pub(super) fn all_placed(&self) -> Result<()> {
        let Some((name, file)) = self.0.first() else {
            return Ok(());
        };
        let about = &file.truth.session;
        let mistake = Mistake {
            line: 1,
            fact: String::new(),
            problem: format!("it is about session `{about}`, which the scenario does not have"),
        };
        Err(wrong(name, mistake))
    }
}

fn wrong(file: &str, mistake: Mistake) -> PlanError {
    PlanError::Fact(file.to_owned(), mistake.line, mistake.problem)
}
