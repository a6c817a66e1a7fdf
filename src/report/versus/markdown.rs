//! A comparison as a comment on a pull request: the verdict in the first line, and never too long.

use std::fmt::Write as _;

use super::{
    Outcome, Versed, Versus, among, breaks, change, interval, level, margin, rests_on, unconfirmed,
    warnings,
};
use crate::report::escape::markdown;
use crate::stats::gate::Verdict;

/// GitHub refuses comments of 65,536 characters; what is longer is cut at a line, and says so.
pub const MOST_CHARACTERS: usize = 65_000;

/// What stands where the rest was cut off.
const CUT: &str =
    "\n*The rest is left out: a comment holds 65,000 characters. The JSON has everything.*\n";

/// The comparison as GitHub Markdown.
pub fn render(versus: &Versus) -> String {
    let mut out = headline(versus);
    out.push_str("\n\n");
    for mismatch in &versus.mismatches {
        let _ = writeln!(
            out,
            "> [!WARNING]\n> {} differs: {} in the baseline, {} in the candidate\n",
            markdown(&mismatch.what),
            markdown(&mismatch.baseline),
            markdown(&mismatch.candidate)
        );
    }
    for one in &versus.comparisons {
        section(one, &mut out);
    }
    cut(out)
}

/// `**Proctor: regressed** …`: one line that says it all.
fn headline(versus: &Versus) -> String {
    let Some(verdict) = versus.verdict() else {
        return "**Proctor: compared**, nothing gated".to_owned();
    };
    let sign = match (versus.ending, verdict) {
        (Some(Outcome::Failed), _) => "❌",
        // It passes unless asked to fail, and is no success either.
        (Some(Outcome::Inconclusive), _) | (_, Verdict::Inconclusive) => "❔",
        (Some(Outcome::Passed) | None, _) => "✅",
    };
    let mut line = format!("**{sign} Proctor: {verdict}**");
    if let Some(why) = versus.why() {
        let _ = write!(line, ": {}", markdown(&why));
    }
    line
}

/// So many hard breaks stand open; a change that loses much loses hundreds.
const MOST_BREAKS: usize = 8;

fn section(one: &Versed, out: &mut String) {
    let comparison = &one.comparison;
    let _ = write!(out, "### {}\n\n", markdown(&one.title()));
    let _ = write!(
        out,
        "{} → {}, about the {}\n\n",
        markdown(&one.baseline_source),
        markdown(&one.candidate_source),
        comparison.target
    );
    if let Some(note) = one.note() {
        let _ = write!(out, "{}\n\n", markdown(&note));
    }
    if let Some(gated) = &one.gated {
        let all = breaks(gated);
        for line in all.iter().take(MOST_BREAKS) {
            let _ = writeln!(out, "- **hard break**: {}", markdown(line));
        }
        let more = all.len().saturating_sub(MOST_BREAKS);
        if more > 0 {
            let _ = writeln!(out, "- … and {more} more hard breaks, folded below");
        }
        for line in unconfirmed(gated) {
            let _ = writeln!(out, "- {}", markdown(&line));
        }
        if !(breaks(gated).is_empty() && unconfirmed(gated).is_empty()) {
            out.push('\n');
        }
    }
    if one.is_unchanged() {
        let sessions = comparison.coverage.paired_sessions;
        let _ = writeln!(out, "No change in any metric over {sessions} sessions.\n");
    }
    out.push_str("| metric | baseline | candidate | Δ | 95 % interval | margin | verdict |\n");
    out.push_str("| :-- | --: | --: | --: | :-- | --: | :-- |\n");
    for metric in &comparison.metrics {
        let gated = one.gated_metric(metric.metric);
        let verdict = gated.map_or_else(
            || "–".to_owned(),
            |gated| match &gated.reason {
                Some(reason) => format!("{}: {}", gated.verdict, markdown(reason)),
                None => gated.verdict.to_string(),
            },
        );
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {verdict} |",
            markdown(metric.metric),
            level(metric, metric.baseline),
            level(metric, metric.candidate),
            change(metric),
            markdown(&interval(metric, comparison.target)),
            gated.map_or_else(|| "–".to_owned(), |gated| margin(metric.kind, gated.margin)),
        );
    }
    out.push('\n');
    if let Some(says) = among(one) {
        let _ = writeln!(out, "- {}", markdown(&says));
    }
    for metric in &comparison.metrics {
        for warning in warnings(metric) {
            let _ = writeln!(out, "- warning: {}", markdown(&warning));
        }
    }
    out.push_str(
        "<details><summary>What this rests on, and every probe that changed</summary>\n\n",
    );
    let gated = one.gated.as_ref();
    for line in gated.map(breaks).iter().flatten().skip(MOST_BREAKS) {
        let _ = writeln!(out, "- **hard break**: {}", markdown(line));
    }
    for metric in &comparison.metrics {
        let basis = rests_on(metric, comparison);
        let _ = writeln!(out, "- {}: {}", markdown(metric.metric), markdown(&basis));
    }
    if !comparison.changed.is_empty() {
        out.push_str("\n| session | probe | kind | metric | was | is | lost at |\n");
        out.push_str("| :-- | :-- | :-- | :-- | --: | --: | :-- |\n");
    }
    for probe in &comparison.changed {
        let _ = writeln!(
            out,
            "| {} | {}{} | {} | {} | {:.2} | {:.2} | {} |",
            markdown(&probe.session),
            markdown(&probe.probe),
            if probe.high_importance {
                " (high importance)"
            } else {
                ""
            },
            markdown(&probe.kind),
            probe.metric,
            probe.baseline,
            probe.candidate,
            markdown(probe.lost_at.as_deref().unwrap_or("–")),
        );
    }
    out.push_str("\n</details>\n\n");
}

/// Cuts at the end of a line, and closes what was open.
pub(crate) fn cut(text: String) -> String {
    if text.chars().count() <= MOST_CHARACTERS {
        return text;
    }
    let room = MOST_CHARACTERS - CUT.chars().count() - "\n</details>\n".len();
    let mut kept = String::new();
    let mut used = 0;
    for line in text.split_inclusive('\n') {
        used += line.chars().count();
        if used > room {
            break;
        }
        kept.push_str(line);
    }
    if kept.matches("<details>").count() > kept.matches("</details>").count() {
        kept.push_str("\n</details>\n");
    }
    kept + CUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_never_too_long_and_closes_what_it_opens() {
        let line = "<details>| ein | zwei | drei | ∆ |\n";
        let text = cut(line.to_owned() + &"| ein | zwei | drei | ∆ |\n".repeat(5_000));
        assert!(text.chars().count() <= MOST_CHARACTERS);
        assert!(text.contains("</details>") && text.ends_with(CUT));
        assert_eq!(cut("short\n".to_owned()), "short\n");
    }
}
