//! Files of facts that a scenario names: read, checked against their session, put in place.

use std::path::PathBuf;

use serde_json::json;

use super::{Plan, PlanError};
use crate::probe::check::{Mistake, TruthFile};
use crate::probe::{Probe, ProbeKind, Selection};
use crate::session::Session;
use crate::settings::Place;
use crate::units::ContentHash;

/// Hash of what is asked: all of a probe that decides its score. Nothing where nothing is asked.
pub(super) fn hash(probes: &[Probe]) -> Option<String> {
    let values = probes.iter().map(|probe| json!(probe));
    (!probes.is_empty()).then(|| ContentHash::of_values(values).hex(16))
}

impl Plan {
    /// Items about something that was planted, session by session: what differences are made of. Decoys are
    /// asked as well, and are in none.
    pub fn planted_items(&self) -> Vec<usize> {
        self.sessions.iter().map(|loaded| loaded.planted).collect()
    }

    /// The same where other items are selected.
    pub fn planted_if(&self, selection: &Selection) -> Vec<usize> {
        let sessions = self.sessions.iter();
        let planted =
            sessions.map(|loaded| planted(&loaded.held.session, &loaded.probes, selection));
        planted.collect()
    }
}

/// How many items of a session are about something that was planted.
pub(super) fn planted(session: &Session, probes: &[Probe], selection: &Selection) -> usize {
    let items = selection.items(session, probes).into_iter();
    items
        .filter(|item| probes[item.probe].kind() != ProbeKind::Decoy)
        .count()
}

/// The facts of files that a scenario names, which take the place of what is known about sessions.
pub(super) struct Facts(Vec<Named>);

/// A file of facts, and whether its session was found.
struct Named {
    name: String,
    file: TruthFile,
    is_placed: bool,
}

impl Facts {
    /// Reads these files.
    pub(super) fn read(files: &[(PathBuf, Place)]) -> Result<Self, PlanError> {
        let mut read = Vec::new();
        for (path, place) in files {
            let name = path.display().to_string();
            let text = super::read_named("facts", path, place)?;
            read.push(Named {
                file: TruthFile::read(&text).map_err(|mistake| wrong(&name, mistake))?,
                name,
                is_placed: false,
            });
        }
        Ok(Self(read))
    }

    /// Puts what is known of a session in the place of its probes, where a file is about it.
    pub(super) fn put_in_place(
        &mut self,
        session: &Session,
        probes: &mut Vec<Probe>,
    ) -> Result<(), PlanError> {
        let about = |named: &&mut Named| named.file.truth.session == session.id();
        for named in self.0.iter_mut().filter(about) {
            if let Some(mistake) = named.file.mistakes(session).into_iter().next() {
                return Err(wrong(&named.name, mistake));
            }
            *probes = Probe::planted(&named.file.truth);
            named.is_placed = true;
        }
        Ok(())
    }

    /// Whether each file is about a session of the scenario.
    pub(super) fn all_placed(&self) -> Result<(), PlanError> {
        let Some(named) = self.0.iter().find(|named| !named.is_placed) else {
            return Ok(());
        };
        let about = &named.file.truth.session;
        let mistake = Mistake {
            line: 1,
            fact: String::new(),
            problem: format!("it is about session `{about}`, which the scenario does not have"),
        };
        Err(wrong(&named.name, mistake))
    }
}

fn wrong(file: &str, mistake: Mistake) -> PlanError {
    PlanError::Fact(file.to_owned(), mistake.line, mistake.problem)
}
