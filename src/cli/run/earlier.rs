//! The run before this one: what differs since.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cli::{Result, print, say, sessions};
use crate::compare::{
    Axis, AxisFinding, Chance, ComparedRun, Findings, JudgingRule, Margins, Target, judge,
};
use crate::naming::base_name;
use crate::record::journal::{CELLS, RecordedRun};

/// Strategies that the line names one by one.
const NAMED: usize = 3;

/// The axes on which a run is compared with the one before.
const AXES: [Axis; 6] =
    [Axis::Completion, Axis::Refused, Axis::Bill, Axis::Answers, Axis::Facts, Axis::Actions];

/// An earlier run of a scenario of the same name.
pub(super) struct EarlierRun {
    when: Option<String>,
    results: ComparedRun,
}

impl EarlierRun {
    /// The run in `folder` if its cells are about to be computed again, else the newest one beside it. What cannot be
    /// read is no run before.
    pub(super) fn find(folder: &Path, scenario: &str, is_replaced: bool) -> Option<Self> {
        let found = is_replaced.then(|| folder.to_owned()).or_else(|| newest(folder, scenario))?;
        let run = RecordedRun::read(&found).ok()?;
        Some(Self { when: when(&found), results: ComparedRun::of(&run.manifest, &run.cells) })
    }

    /// The difference to a run of the same sessions, in one line; `None` without a strategy, whatever its settings, and
    /// session in common.
    /// Runs under other conditions are not compared, and the line says which.
    pub(super) fn difference(&self, run: &RecordedRun) -> Option<String> {
        let now = ComparedRun::of(&run.manifest, &run.cells);
        let dated = self.when.as_deref().map(|when| format!(" of {when}"));
        let since = dated.unwrap_or_else(|| " before".to_owned());
        let changed = self.results.conditions.mismatches(&now.conditions);
        if let Some(first) = changed.first() {
            let others = match changed.len() - 1 {
                0 => String::new(),
                more => format!(", and {more} more"),
            };
            return Some(format!(
                "not compared with the run{since}: {} was {}, and is {}{others}",
                first.what, first.baseline, first.candidate
            ));
        }
        let rule = JudgingRule {
            target: Target::Suite,
            margins: Margins::default(),
            chance: Chance::Nowhere,
            seed: run.manifest.seed,
        };
        let pairs = self.results.pairs(&now);
        let all = pairs.pairs.iter();
        let same = all.filter(|(old, new)| base_name(&old.strategy) == base_name(&new.strategy));
        let found = same.map(|(old, new)| judge::judge(old, new, &rule));
        let found: Vec<Findings> = found.filter(|found| !found.axes.is_empty()).collect();
        if found.is_empty() {
            return None;
        }
        let changed: Vec<String> = found.iter().filter_map(in_words).collect();
        let more = changed.len().saturating_sub(NAMED);
        let mut parts: Vec<String> = changed.iter().take(NAMED).cloned().collect();
        if more > 0 {
            parts.push(format!("{more} more changed"));
        }
        match (found.len() - changed.len(), parts.is_empty()) {
            (0, _) => {}
            (_, true) => parts.push("nothing changed".to_owned()),
            (same, false) => parts.push(format!("{same} as before")),
        }
        Some(format!("since the run{since}: {}", parts.join("; ")))
    }
}

/// A strategy, what it was before where it was set otherwise, and what changed: `codex: bill −12 %, facts +3`.
fn in_words(found: &Findings) -> Option<String> {
    let own = AXES.into_iter().filter_map(|axis| found.axis(axis));
    let differs = own.filter(|found| found.baseline.total_cmp(&found.candidate).is_ne());
    let changed: Vec<String> = differs.map(AxisFinding::in_words).collect();
    let (old, new) = (&found.baseline, &found.candidate);
    let before = if old == new { String::new() } else { format!(" against {old}") };
    (!changed.is_empty()).then(|| format!("{new}{before}: {}", changed.join(", ")))
}

/// The newest other folder of a run of this scenario beside `folder`.
fn newest(folder: &Path, scenario: &str) -> Option<PathBuf> {
    let beside = fs::read_dir(folder.parent()?).ok()?.flatten();
    let paths = beside.map(|entry| entry.path());
    let runs = paths.filter(|path| path != folder && is_of(path, scenario));
    let dated = runs.filter_map(|path| Some((sessions::written(&path.join(CELLS))?, path)));
    dated.max().map(|(_, path)| path)
}

/// Whether a folder has the name of a run of this scenario.
fn is_of(path: &Path, scenario: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix(scenario);
    let fingerprint = rest.and_then(|rest| rest.strip_prefix('-'));
    fingerprint.is_some_and(|fingerprint| fingerprint.len() == 8)
}

/// When the last cell of a run was written, in UTC.
pub(super) fn when(folder: &Path) -> Option<String> {
    sessions::in_utc(sessions::written(&folder.join(CELLS))?)
}

/// The last line of a screen; piped output is the same bytes each time, so it goes to standard error there.
pub(super) fn close_screen(line: &str, is_terminal: bool) -> Result<()> {
    if is_terminal {
        print(&format!("{line}\n"))?;
    } else {
        say(line);
    }
    Ok(())
}
