//! A run against a baseline: the comparison, the gate, and the baseline that is saved.

use std::path::PathBuf;

use crate::cli::compare::{MarginOptions, against, rules};
use crate::cli::comparison::{self, ComparisonOptions, OutputFormat, RunSide};
use crate::cli::report::PrintedTables;
use crate::cli::{Exit, Result, baseline, stop_with};
use crate::record::journal::RecordedRun;
use crate::scenario::GateSetting;

/// Comparing with a baseline, and keeping one.
#[derive(Debug, clap::Args)]
pub(super) struct AgainstBaseline {
    /// Fail if anything got worse than the baseline, by the rules of the scenario's `[gate]`
    #[arg(long, conflicts_with = "partition")]
    gate: bool,
    /// Compare with this baseline, a name or a file
    #[arg(long, value_name = "NAME", conflicts_with = "partition")]
    baseline: Option<String>,
    /// Save the scores of the run under this name, after the comparison
    #[arg(long, value_name = "NAME", value_parser = comparison::baseline_name, conflicts_with = "partition")]
    save_baseline: Option<String>,
    #[command(flatten)]
    pub(super) margins: MarginOptions,
    /// Folder of the named baselines
    #[arg(long, value_name = "DIR", default_value = comparison::FOLDER)]
    baselines: PathBuf,
    /// Also write the comparison to this file; the ending sets the format: .md for a comment,
    /// .full.md, .json, .txt, .junit.xml, or .svg for a forest plot; an older file is
    /// removed before the run begins (repeatable)
    #[arg(long, value_name = "FILE")]
    comparison_output: Vec<PathBuf>,
}

impl AgainstBaseline {
    /// Whether a comparison, a gate or a new baseline is asked for.
    pub(super) fn is_asked(&self) -> bool {
        self.is_compared() || self.save_baseline.is_some()
    }

    fn is_compared(&self) -> bool {
        self.gate || self.baseline.is_some()
    }

    /// Refuses files of a comparison that is not asked for, and removes those of an earlier one.
    pub(super) fn prepare_files(&self, is_json: bool) -> Result<()> {
        let files = &self.comparison_output;
        if !self.is_compared() && !files.is_empty() {
            let problem = "`--comparison-output` has no comparison to write";
            let hint = "name what to compare with: `--baseline NAME`, or `--gate`";
            return stop_with(Exit::Usage, problem, hint);
        }
        if let Some(name) = &self.save_baseline {
            baseline::refuse_other(name, &self.baselines)?;
        }
        comparison::prepare(files, is_json)
    }

    /// Finds mistakes in the rules, and baselines that are missing, before any work is done.
    pub(super) fn check(&self, setting: &GateSetting) -> Result<()> {
        rules(setting)?;
        let mut names = self.names(setting)?.into_iter();
        names.try_for_each(|name| RunSide::find(name, &self.baselines).map(drop))
    }

    /// The baselines that are asked for, the newest first.
    pub(super) fn names<'a>(&'a self, setting: &'a GateSetting) -> Result<Vec<&'a str>> {
        if !self.is_compared() {
            return Ok(Vec::new());
        }
        let Some(named) = self.baseline.as_deref().or(setting.baseline.as_deref()) else {
            let problem = "`--gate` has no baseline to compare with";
            let hint = "name one with `--baseline NAME`, or with `baseline` in `[gate]`";
            return stop_with(Exit::Usage, problem, hint);
        };
        let anchor = setting.anchor.as_deref().filter(|anchor| self.gate && named != *anchor);
        Ok(std::iter::once(named).chain(anchor).collect())
    }

    /// Compares, gates and keeps. `exit` is how the run itself ended, which goes before the gate.
    pub(super) fn apply(
        &self,
        setting: &GateSetting,
        run: &RecordedRun,
        folder: &str,
        exit: Exit,
        tables: Option<&PrintedTables>,
    ) -> Result<Exit> {
        let names = self.names(setting)?;
        if names.is_empty() && self.save_baseline.is_none() {
            return Ok(exit);
        }
        let candidate = RunSide::of_run(folder, run);
        let mut ending = exit;
        if !names.is_empty() {
            let rules = rules(setting)?;
            let others = tables.map(PrintedTables::of_another);
            let printed = others.as_ref().map_or(OutputFormat::Nothing, OutputFormat::Text);
            let options = ComparisonOptions {
                baselines: self.baselines.clone(),
                ..ComparisonOptions::default()
            };
            let (files, seed) = (&self.comparison_output, run.manifest.seed);
            let gated = against(&candidate, &names, &options, &rules, seed, files, printed)?;
            if exit == Exit::Done && self.gate {
                ending = gated;
            }
        }
        if let Some(name) = &self.save_baseline {
            // Later changes may be as bad as the baseline.
            let why = match ending {
                Exit::Done => comparison::unfit(run).map(|(_, why)| why),
                Exit::GateFailed | Exit::GateInconclusive => {
                    Some("it did not pass the gate".to_owned())
                }
                _ => Some("the run is not valid, or not whole".to_owned()),
            };
            match why {
                None => {
                    baseline::save(&candidate.source, name, &self.baselines)?;
                }
                Some(why) => say!(
                    "warning: baseline `{name}` is not saved: {why}; \
                     `proctor baseline save {folder} {name} --force` saves it all the same"
                ),
            }
        }
        Ok(ending)
    }
}
