//! Files of facts that a scenario names: read, checked against their session, put in place.

use super::{LoadedSession, Plan, PlanError};
use crate::probe::check::{Mistake, TruthFile};
use crate::probe::{self, Probe, ProbeKind};
use crate::scenario::ProbeFile;
use crate::units::ContentHash;

/// Hash of what is asked: all of a probe that decides its score. Nothing where nothing is asked.
pub(super) fn hash(probes: &[Probe]) -> Option<String> {
    let lines = probes.iter().map(|probe| {
        format!(
            "{} {} {:?} {:?} {:?} {:?}\n",
            probe.id,
            probe.kind.name(),
            probe.question,
            probe.gold,
            probe.evidence,
            probe.importance
        )
    });
    let text: String = lines.collect();
    (!text.is_empty()).then(|| ContentHash::of(text.as_bytes()).hex(16))
}

impl Plan {
    /// Items about something that was planted, session by session: what differences are made of. Decoys are
    /// asked as well, and are in none.
    pub fn planted_items(&self) -> Vec<usize> {
        let of = |loaded: &LoadedSession| {
            let items = probe::items(&loaded.session, &loaded.probes).into_iter();
            items
                .filter(|item| loaded.probes[item.probe].kind != ProbeKind::Decoy)
                .count()
        };
        self.sessions.iter().map(of).collect()
    }
}

/// Takes the facts of these files in place of what was known about their sessions.
pub(super) fn put_in_place(
    files: &[ProbeFile],
    sessions: &mut [LoadedSession],
) -> Result<(), PlanError> {
    for file in files {
        let name = file.path.display().to_string();
        let text = std::fs::read_to_string(&file.path).map_err(|cause| PlanError::Probes {
            file: name.clone(),
            place: file.place.clone(),
            cause,
        })?;
        let wrong = |mistake: Mistake| PlanError::Fact {
            file: name.clone(),
            line: mistake.line,
            problem: mistake.problem,
        };
        let truth = TruthFile::read(&text).map_err(wrong)?;
        let about = &truth.truth.session;
        let mut loaded = sessions.iter_mut();
        let Some(loaded) = loaded.find(|loaded| loaded.session.id() == about) else {
            return Err(wrong(Mistake {
                line: 1,
                fact: String::new(),
                problem: format!("it is about session `{about}`, which the scenario does not have"),
            }));
        };
        if let Some(mistake) = truth.mistakes(&loaded.session).into_iter().next() {
            return Err(wrong(mistake));
        }
        loaded.probes = Probe::planted(&truth.truth);
    }
    Ok(())
}
