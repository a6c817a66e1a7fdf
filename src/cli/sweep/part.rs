//! Halves and parts of a sweep's sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Args, Point, SweepRun};
use crate::cli::{Exit, say, stop_with};
use crate::runner::Plan;
use crate::units::ContentHash;

/// Sessions to choose on and sessions to try on, by a hash of seed and id: half and half. Side chains
/// stay with their main session.
pub(super) fn split(plan: &Plan, seed: u64) -> (Vec<String>, Vec<String>) {
    let mut clusters: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for session in &plan.manifest().sessions {
        let own = clusters.entry(session.cluster()).or_default();
        own.push(session.id.clone());
    }
    let mut clusters: Vec<(&str, Vec<String>)> = clusters.into_iter().collect();
    clusters.sort_by_cached_key(|(id, _)| {
        let hash = ContentHash::of_parts([&seed.to_le_bytes()[..], id.as_bytes()]);
        (hash.hex(16), *id)
    });
    let confirm = clusters.split_off(clusters.len().div_ceil(2));
    let [tune, confirm] = [clusters, confirm].map(|half| {
        let sessions = half.into_iter().flat_map(|(_, sessions)| sessions);
        sessions.collect()
    });
    (tune, confirm)
}

/// Where a sweep is kept that names no folder.
pub(super) const DEFAULT_FOLDER: &str = "reports/sweep";

impl Args {
    /// The sweep's folder, or that of the part.
    pub(super) fn folder(&self) -> PathBuf {
        let default = || self.part.folder(PathBuf::from(DEFAULT_FOLDER));
        self.out.clone().unwrap_or_else(default)
    }

    /// Refuses rounds of which each depends on all cells of the one before.
    pub(super) fn has_whole_rounds(&self) -> anyhow::Result<()> {
        if self.halving && self.part.part().is_some() {
            let problem =
                "`--halving` chooses after each round, and one part has not all cells of a round";
            return stop_with(
                Exit::Usage,
                problem,
                "leave out `--halving`, or `--partition`",
            );
        }
        Ok(())
    }
}

impl SweepRun<'_> {
    /// Runs the part of the sessions to choose on. Choosing and confirming is for the same sweep over the
    /// joined folders.
    pub(super) fn only_part(&mut self, points: &[Point], tune: &[String]) -> anyhow::Result<Exit> {
        self.on("tune", points, tune)?;
        let folder = self.args.folder();
        say(&format!(
            "one part of the sweep is in `{}`: `proctor merge FOLDER… --out SWEEP` joins all, and the same command with \
             `--out SWEEP` and without `--partition` chooses",
            folder.display()
        ));
        Ok(Exit::Done)
    }
}
