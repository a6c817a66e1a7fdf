//! Halves and parts of a sweep's sessions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::{Args, GridPoint, SweepRun};
use crate::cli::{Exit, Result};
use crate::report::display::many;
use crate::report::sweep::independent;
use crate::runner::Plan;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::ContentHash;

/// The sessions of a sweep in two halves.
pub(super) struct Halves {
    /// Sessions to choose on.
    pub(super) tune: Vec<String>,
    /// Sessions to confirm on; none where there are too few for two halves.
    pub(super) confirm: Vec<String>,
    /// How many sessions of each half are independent: side chains stay with their main session.
    pub(super) independent: [usize; 2],
}

/// The fewest independent sessions that can be halved.
pub(super) const FEWEST: usize = 2 * FEWEST_SESSIONS;

impl Halves {
    /// Half and half, by a hash of seed and id; all to choose on where they are too few to confirm anything.
    pub(super) fn of(plan: &Plan, seed: u64) -> Self {
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
        let half = match clusters.len() {
            all if all < FEWEST => all,
            all => all.div_ceil(2),
        };
        let confirm = clusters.split_off(half);
        Self {
            independent: [clusters.len(), confirm.len()],
            tune: all_sessions(clusters),
            confirm: all_sessions(confirm),
        }
    }

    /// Says before anything runs how many settings are tried, and on how many sessions.
    pub(super) fn announce(&self, settings: usize) {
        let [tune, confirm] = self.independent;
        say!(
            "{}; chosen on {}, tried on {}",
            many(settings, "setting", "settings"),
            independent(self.tune.len(), tune),
            self.confirm.len()
        );
        let all = tune + confirm;
        if all < FEWEST {
            say!(
                "warning: {} too few to choose on one half and confirm on the other; {FEWEST} are needed",
                many(all, "independent session is", "independent sessions are")
            );
        }
    }
}

fn all_sessions(clusters: Vec<(&str, Vec<String>)>) -> Vec<String> {
    clusters.into_iter().flat_map(|(_, sessions)| sessions).collect()
}

/// Where a sweep is kept that names no folder.
pub(super) const DEFAULT_FOLDER: &str = "reports/sweep";

impl Args {
    /// The sweep's folder, or that of the part.
    pub(super) fn folder(&self) -> PathBuf {
        let named = self.out.clone();
        named.unwrap_or_else(|| self.part.folder(PathBuf::from(DEFAULT_FOLDER)))
    }
}

impl SweepRun<'_> {
    /// Runs the part of the sessions to choose on. Choosing and confirming is for the same sweep over the
    /// joined folders.
    pub(super) fn only_part(&mut self, points: &[GridPoint], tune: &[String]) -> Result<Exit> {
        self.on("tune", points, tune)?;
        say!(
            "one part of the sweep is in `{}`: `proctor merge FOLDER… --out SWEEP` joins all, and the same command with \
             `--out SWEEP` and without `--partition` chooses",
            self.args.folder().display()
        );
        Ok(Exit::Done)
    }
}
