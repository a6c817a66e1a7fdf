//! CSV: one row per cell, and beside it one row per probe item, for spreadsheets and data frames.

use crate::metric::CellSummary;
use crate::metric::answers::Answers;
use crate::metric::cost::SchemeCost;
use crate::probe::Verdict;
use crate::report::{Artifact, ItemOutcome, RenderError, Renderer, Report, escape, figure};

/// Writes `report.csv` with one row per cell, and `report.probes.csv` with one per probe item.
///
/// Shares are fractions of 1. What nobody measured is `NA`, never blank and never 0. Texts are
/// escaped as on a terminal, and neutralised: a spreadsheet would run one that begins with `=`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Csv;

/// What stands where nobody measured.
const NOT_MEASURED: &str = "NA";

impl Renderer for Csv {
    fn format(&self) -> &'static str {
        "csv"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let cells = report.cells.iter().map(cell);
        let items = report.items.iter().map(item);
        Ok(vec![
            Artifact {
                name: "report.csv".to_owned(),
                bytes: table(CELL_COLUMNS, cells)?,
            },
            Artifact {
                name: "report.probes.csv".to_owned(),
                bytes: table(ITEM_COLUMNS, items)?,
            },
        ])
    }
}

fn table(head: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Result<Vec<u8>, RenderError> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(head).map_err(RenderError::Csv)?;
    for row in rows {
        writer.write_record(row).map_err(RenderError::Csv)?;
    }
    writer
        .into_inner()
        .map_err(|error| RenderError::Csv(csv::Error::from(error.into_error())))
}

/// A text with nothing in it that a terminal or a spreadsheet obeys.
fn text(text: &str) -> String {
    let plain = escape::plain(text);
    // Tabs and carriage returns are looked for before they are escaped: what was meant is clear.
    let is_formula = |c: char| matches!(c, '=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠');
    if text.starts_with(|c| is_formula(c) || matches!(c, '\t' | '\r')) {
        format!("'{plain}")
    } else {
        plain
    }
}

fn count(count: impl std::fmt::Display) -> String {
    count.to_string()
}

fn or_na(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| NOT_MEASURED.to_owned(), |value| value.to_string())
}

const CELL_COLUMNS: &[&str] = &[
    "session",
    "strategy",
    "repeat",
    "arm",
    "calls_planned",
    "calls_reached",
    "died_at",
    "failed_at",
    "token_savings",
    "token_savings_without_calls",
    "calls_compared",
    "prompt_tokens",
    "strategy_tokens_compared",
    "reference_tokens",
    "cache_scheme",
    "cost_savings",
    "cost_thousandths",
    "reference_cost_thousandths",
    "cache_read_share",
    "tokens_uncached",
    "tokens_cache_written",
    "tokens_cache_read",
    "cache_broken",
    "cache_again",
    "break_even_call",
    "peak_prompt",
    "survival_uncorrected",
    "survival_items",
    "survival_compacted_uncorrected",
    "survival_compacted_items",
    "decoys_found",
    "decoy_items",
    "extract",
    "accuracy",
    "answers_scored",
    "answers_unscored",
    "action_support",
    "action_atoms",
    "action_support_compacted",
    "action_atoms_compacted",
    "compactions",
    "retained",
    "strategy_calls",
    "strategy_calls_failed",
    "strategy_tokens",
    "rejected",
    "warnings",
    "overflows",
    "blocked_turns",
    "blocked_agents",
    "thrash",
    "futile",
    "retriggered",
    "unseen_altered",
    "unseen_reachable",
    "unseen_gone",
    "blocking_calls",
    "auto_compact_calls",
    "warned_calls",
    "agent_failures",
    "retried_calls",
    "wasted_calls",
    "prompt_area",
    "headroom",
    "action_reachable",
    "next_call",
];

fn cell(cell: &CellSummary) -> Vec<String> {
    let planted = cell.survival.planted();
    let compacted = cell.survival.compacted;
    let decoys = cell.survival.decoys();
    let (extract, accuracy, scored, unscored) = match &cell.answers {
        Some(Answers::Extract(extract)) => (
            extract.right_share(),
            None,
            Some(extract.scored()),
            Some(extract.unscored),
        ),
        Some(Answers::Accuracy(accuracy)) => (
            None,
            accuracy.score.mean(),
            Some(accuracy.score.items),
            Some(accuracy.unscored),
        ),
        None => (None, None, None, None),
    };
    let calls = cell.model_calls.total();
    let cost = cell.costs.first();
    let total = cost.map(SchemeCost::total);
    vec![
        text(&cell.session),
        text(&cell.strategy),
        count(cell.repeat),
        match cell.arm {
            crate::record::Arm::Reference => "reference",
            crate::record::Arm::Floor => "floor",
            crate::record::Arm::Strategy => "strategy",
        }
        .to_owned(),
        count(cell.completion.planned),
        count(cell.completion.reached),
        or_na(cell.completion.died_at),
        or_na(cell.completion.failed_at),
        or_na(cell.savings.and_then(|savings| savings.share())),
        or_na(
            cell.savings
                .and_then(|savings| savings.share_without_calls()),
        ),
        or_na(cell.savings.map(|savings| savings.calls)),
        or_na(cell.savings.map(|savings| savings.prompts.0)),
        or_na(cell.savings.map(|savings| savings.strategy.0)),
        or_na(cell.savings.map(|savings| savings.reference.0)),
        cost.map_or_else(|| NOT_MEASURED.to_owned(), |cost| text(&cost.scheme)),
        or_na(cost.and_then(SchemeCost::share)),
        or_na(cost.map(|cost| cost.cost)),
        or_na(cost.map(|cost| cost.reference_cost)),
        or_na(cost.and_then(SchemeCost::read_share)),
        or_na(total.map(|total| total.input_uncached.0)),
        or_na(total.map(|total| (total.cache_write_5m + total.cache_write_1h).0)),
        or_na(total.map(|total| total.cache_read.0)),
        or_na(cost.map(|cost| cost.broken().0)),
        or_na(cost.map(|cost| cost.again.0)),
        or_na(cost.and_then(|cost| cost.break_even)),
        or_na(cell.peak_prompt.map(|tokens| tokens.0)),
        or_na(planted.mean()),
        count(planted.items),
        or_na(compacted.mean()),
        count(compacted.items),
        or_na(decoys.mean()),
        count(decoys.items),
        or_na(extract),
        or_na(accuracy),
        or_na(scored),
        or_na(unscored),
        or_na(cell.support.share()),
        count(cell.support.wanted),
        or_na(cell.support.compacted_share()),
        count(cell.support.compacted_wanted),
        count(cell.compactions()),
        or_na(cell.retained),
        count(calls.calls),
        count(calls.failed),
        count(calls.tokens.0),
        count(cell.findings.rejected),
        count(cell.findings.warnings),
        count(cell.findings.overflows),
        count(cell.strain.blocked_turns),
        count(cell.strain.blocked_agents),
        count(cell.strain.thrash),
        count(cell.strain.futile),
        count(cell.strain.retriggered),
        count(cell.strain.unseen_altered),
        count(cell.strain.unseen_reachable),
        count(cell.strain.unseen_gone),
        count(cell.strain.blocking_calls),
        count(cell.strain.auto_compact_calls),
        count(cell.strain.warned_calls),
        count(cell.strain.agent_failures),
        count(cell.strain.retried_calls),
        count(cell.strain.wasted_calls),
        count(cell.area.0),
        or_na(cell.headroom),
        or_na(cell.support.reachable_share()),
        count(cell.strain.next_call),
    ]
}

const ITEM_COLUMNS: &[&str] = &[
    "session",
    "strategy",
    "repeat",
    "probe",
    "kind",
    "percent",
    "call",
    "fate",
    "survival",
    "survival_compacted",
    "lost_at_call",
    "lost_by_stage",
    "lost_because",
    "answer",
    "outcome",
    "score",
];

fn item(item: &ItemOutcome) -> Vec<String> {
    let probe = &item.probe;
    let found = &probe.survival;
    let lost = found.lost_at.as_ref();
    let answer = probe.answer.as_ref();
    let (outcome, score) = match probe.verdict() {
        None => (NOT_MEASURED, None),
        Some(Verdict::Unscored { .. }) => ("unscored", None),
        Some(Verdict::Scored { score, outcome }) => (figure::outcome(outcome), Some(score)),
    };
    vec![
        text(&item.session),
        text(&item.strategy),
        count(item.repeat),
        text(&probe.probe),
        probe.kind.name().to_owned(),
        count(probe.percent),
        count(probe.call),
        figure::fate(found.fate).to_owned(),
        count(found.score),
        or_na(found.compacted_score),
        or_na(lost.map(|lost| lost.call)),
        lost.map_or_else(|| NOT_MEASURED.to_owned(), |lost| text(&lost.stage)),
        lost.map_or_else(|| NOT_MEASURED.to_owned(), |lost| text(&lost.reason)),
        answer
            .and_then(|answer| answer.text.as_deref())
            .map_or_else(|| NOT_MEASURED.to_owned(), text),
        outcome.to_owned(),
        or_na(score),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spreadsheet_runs_nothing_that_was_recorded() {
        for (recorded, written) in [
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1", "'\\u{9}=1"),
            ("\r=1", "'\\u{d}=1"),
            ("＝1", "'＝1"),
            ("a=1", "a=1"),
            ("", ""),
            ("two\nlines", "two\\u{a}lines"),
        ] {
            assert_eq!(text(recorded), written);
        }
    }
}
