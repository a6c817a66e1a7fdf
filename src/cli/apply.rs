//! `--apply`: what is recommended as a preset's file. What is not recommended is not written.

use std::path::{Path, PathBuf};

use super::{CliError, Exit, Result, outputs, refuse_existing, write_new};
use crate::report::escape::plain;

/// Where a recommended preset is written.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ApplyOptions {
    /// Write what is recommended as a preset for `--strategy`, by default to a file named after the strategy; if
    /// nothing is recommended, nothing is written and the exit code is 4. Of several windows each has a file, with the
    /// window in its name
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = UNNAMED, conflicts_with = "partition")]
    pub(super) apply: Option<PathBuf>,
    /// Overwrite the file of `--apply`
    #[arg(short, long, requires = "apply")]
    force: bool,
}

/// Stands for the file of `--apply` where none is typed.
const UNNAMED: &str = "STRATEGY.toml";

impl ApplyOptions {
    /// The file that is typed, else this one; `None` without the flag.
    pub(super) fn path(&self, unnamed: &str) -> Option<PathBuf> {
        let path = self.apply.clone()?;
        Some(if path == Path::new(UNNAMED) { unnamed.into() } else { path })
    }

    /// Refuses a file that cannot be written, or is there already, before anything is run.
    pub(super) fn check(&self, unnamed: &str) -> Result<()> {
        let Some(path) = self.path(unnamed) else {
            return Ok(());
        };
        refuse_existing(&path, self.force)?;
        outputs::check(&path)
    }

    /// Writes a preset under these comments, and says so.
    pub(super) fn write(&self, path: &Path, comments: &[String], preset: &str) -> Result<()> {
        let lines = comments.iter().map(|line| format!("# {}\n", plain(line)));
        let text = format!("{}\n{preset}", lines.collect::<String>());
        write_new(path, text.as_bytes(), self.force)?;
        say!("wrote `{}`", path.display());
        Ok(())
    }
}

/// The end of a command that writes nothing, and why.
pub(super) fn not_written(file: &str, why: &str) -> anyhow::Error {
    let problem = format!("{file} is not written: {}", plain(why));
    CliError::new(Exit::NothingSelected, problem.trim_end_matches('.')).into()
}
