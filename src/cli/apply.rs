//! `--apply`: what is recommended as a preset's file. What is not recommended is not written.

use std::path::{Path, PathBuf};

use super::programs::CALLER;
use super::{CliError, Exit, Result, outputs, refuse_existing, stop_with, write_new};
use crate::report::escape::plain;
use crate::strategy::StrategySpec;
use crate::strategy::preset::is_free;

/// Where a recommended preset is written.
#[derive(Debug, Default, clap::Args)]
pub(super) struct ApplyOptions {
    /// Write what is recommended as a preset for `--strategy`, by default to a file named after the strategy; if
    /// nothing is recommended, nothing is written and the exit code is 4
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
    pub(super) fn path(&self, unnamed: PathBuf) -> Option<PathBuf> {
        let path = self.apply.clone()?;
        Some(if path == Path::new(UNNAMED) { unnamed } else { path })
    }

    /// Refuses a file that cannot be written, or is there already, before anything is run.
    pub(super) fn check(&self, unnamed: PathBuf) -> Result<()> {
        let Some(path) = self.path(unnamed) else {
            return Ok(());
        };
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.strip_suffix(".toml").unwrap_or_default();
        if !is_free(stem) {
            let problem = format!("`{}` cannot be the file of a strategy", path.display());
            let hint = "a file for `--strategy` is `NAME.toml`, and names are `[a-z0-9][a-z0-9._@-]*`; a scenario or a \
                        recording goes before `--apply`";
            return stop_with(Exit::Usage, problem, hint);
        }
        outputs::check(&path)?;
        refuse_existing(&path, self.force)
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

/// The file where none is named: beside the strategy's programs, as their paths start at its folder.
pub(super) fn unnamed(spec: &StrategySpec, what: &str) -> PathBuf {
    let programs = spec.programs();
    let folder = programs.first().map_or(Path::new(""), |(.., place)| place.folder());
    folder.join(format!("{}-{what}.toml", spec.base_name()))
}

/// The folder that a file is in, whatever way leads there.
fn folder_of(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()?.parent()?.canonicalize().ok()
}

/// Refuses a file from which the strategy's commands would not start: in another folder than that at which their paths
/// start, or where the program started Proctor.
pub(super) fn check_programs(path: &Path, spec: &StrategySpec) -> Result<()> {
    for (command, _, place) in spec.programs() {
        if *command == [CALLER] {
            let problem = format!(
                "`{}` would start nothing: `-` is the program that started this one",
                path.display()
            );
            let hint = "name its command, as in `--strategy-cmd 'python3 mine.py' --apply`";
            return stop_with(Exit::Usage, problem, hint);
        }
        let beside = place.folder().join(path.file_name().unwrap_or_default());
        let mut words = command.iter().map(Path::new).filter(|word| word.is_relative());
        if words.any(|word| place.folder().join(word).is_file())
            && folder_of(&beside) != folder_of(path)
        {
            let problem = format!("`{}` would not start `{}`", path.display(), command.join(" "));
            let beside = beside.display();
            let hint =
                format!("paths in a command start at the folder of the file: `--apply {beside}`");
            return stop_with(Exit::Usage, problem, hint);
        }
    }
    Ok(())
}

/// The end of a command that writes nothing, and why.
pub(super) fn not_written(file: &str, why: &str) -> anyhow::Error {
    let problem = format!("{file} is not written: {}", plain(why));
    CliError::new(Exit::NothingSelected, problem.trim_end_matches('.')).into()
}
