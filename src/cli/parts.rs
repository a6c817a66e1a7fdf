//! Parts of a run, for several machines: the options of `run`, and the command that makes a part.

use std::path::{Path, PathBuf};

use super::environment;
use super::models::Consent;
use crate::record::journal::{Journal, JournalError};
use crate::record::shard::{Partition, Shard};
use crate::report::escape::{plain, shell};
use crate::runner::Plan;

/// Which part of the sessions is run.
#[derive(Debug, Default, clap::Args)]
pub(super) struct PartOptions {
    /// Run one part of the sessions, to be joined by `proctor merge`: part K of N, divided by the work of
    /// sessions or by a hash of their ids; `auto` for the task of a Slurm, Kubernetes or GitLab job
    #[arg(long, value_name = "cost:K/N|hash:K/N|auto", value_parser = partition)]
    pub(super) partition: Option<Partition>,
}

fn partition(typed: &str) -> Result<Partition, String> {
    match typed {
        "auto" => Partition::of_engine(&environment),
        typed => typed.parse(),
    }
}

impl PartOptions {
    /// Leaves only the part to be run.
    pub(super) fn keep(&self, plan: &mut Plan) {
        if let Some(part) = self.partition {
            plan.keep_part(part);
        }
    }

    /// Leaves the part its share of the limits of the whole run, and of what may be spent unasked.
    pub(super) fn limit(&self, plan: &mut Plan, consent: &mut Consent) {
        if let Some(part) = self.partition {
            plan.divide_limits(part);
            consent.cost_limit *= plan.share(part);
        }
    }

    /// The folder of a part is named after it.
    pub(super) fn folder(&self, whole: PathBuf) -> PathBuf {
        match self.partition {
            None => whole,
            Some(part) => {
                let mut name = whole.into_os_string();
                name.push(format!("-{}-of-{}", part.shard, part.of));
                name.into()
            }
        }
    }

    /// Opens the folder of the run, or of the part.
    pub(super) fn open(&self, plan: &Plan, folder: &Path) -> Result<Journal, JournalError> {
        match self.shard() {
            None => Journal::open(folder, plan.manifest()),
            Some(shard) => Journal::open_shard(folder, plan.manifest(), &shard),
        }
    }

    /// Notes in the folder of a part that a limit stopped it.
    pub(super) fn note_stop(
        &self,
        journal: &Journal,
        stopped: Option<&str>,
    ) -> Result<(), JournalError> {
        match (self.shard(), stopped) {
            (Some(shard), Some(why)) => {
                journal.keep_shard(&Shard { stopped: Some(why.to_owned()), ..shard })
            }
            _ => Ok(()),
        }
    }

    fn shard(&self) -> Option<Shard> {
        Some(Shard::new(self.partition?, typed_command()))
    }
}

/// The words of this command, without those that name the part and its folder.
fn typed_command() -> Vec<String> {
    let mut words = std::env::args_os().skip(1);
    let mut kept = Vec::new();
    while let Some(typed) = words.next() {
        let word = typed.to_string_lossy().into_owned();
        match word.as_str() {
            "--partition" | "--out" => _ = words.next(),
            word if word.starts_with("--partition=") || word.starts_with("--out=") => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// The command that makes a part, as it is typed.
pub(super) fn command(words: &[String], part: Partition, folder: Option<&Path>) -> String {
    let mut line = vec!["proctor".to_owned()];
    line.extend(words.iter().map(|word| shell(word)));
    line.push(format!("--partition {part}"));
    line.extend(folder.map(|folder| format!("--out {}", shell(&folder.display().to_string()))));
    plain(&line.join(" "))
}
