//! A comparison on a terminal.

use std::fmt::Write as _;

use super::{
    Versus, among, breaks, change, interval, level, margin, rests_on, unconfirmed, warnings,
};
use crate::compare::ChangedProbe;
use crate::report::escape::plain;

/// So many changed probes are listed.
const MOST_CHANGED: usize = 10;

/// The comparison as plain text: the verdict with its reason first, and the verdict of each comparison last.
pub fn render(versus: &Versus) -> String {
    let mut out = String::new();
    if let Some(verdict) = versus.verdict() {
        let why = versus.why().map(|why| format!(": {}", plain(&why)));
        let _ = writeln!(out, "{verdict}{}", why.unwrap_or_default());
    }
    for mismatch in &versus.mismatches {
        let _ = writeln!(
            out,
            "differs: {}: {} in the baseline, {} in the candidate",
            plain(&mismatch.what),
            plain(&mismatch.baseline),
            plain(&mismatch.candidate)
        );
    }
    for one in &versus.comparisons {
        let comparison = &one.comparison;
        let _ = writeln!(
            out,
            "\n{}: {} → {} ({})",
            plain(&one.title()),
            plain(&one.baseline_source),
            plain(&one.candidate_source),
            comparison.target
        );
        if let Some(note) = one.note() {
            let _ = writeln!(out, "  note: {}", plain(&note));
        }
        if one.is_unchanged() {
            out.push_str("  no change in any metric\n");
        }
        for metric in &comparison.metrics {
            let gated = one.gated_metric(metric.metric);
            let verdict = gated.map_or_else(String::new, |gated| {
                format!(
                    " · margin {} → {}",
                    margin(metric.kind, gated.margin),
                    gated.verdict
                )
            });
            let _ = writeln!(
                out,
                "  {:<15} {} → {}   Δ = {} {}{verdict}",
                metric.metric,
                level(metric, metric.baseline),
                level(metric, metric.candidate),
                change(metric),
                interval(metric, comparison.target),
            );
            let _ = writeln!(out, "  {:<15} {}", "", rests_on(metric, comparison));
            if let Some(reason) = gated.and_then(|gated| gated.reason.as_ref()) {
                let _ = writeln!(out, "  {:<15} {reason}", "");
            }
            for warning in warnings(metric) {
                let _ = writeln!(out, "  warning: {warning}");
            }
        }
        for slice in comparison.slices.iter().filter(|slice| slice.is_finding) {
            let _ = writeln!(
                out,
                "  exploratory: survival of {} {} pts (false discovery rate 0.10)",
                slice.kind,
                super::signed(slice.difference.point_estimate * 100.0, 1)
            );
        }
        // What is a hard break is listed as one.
        let is_break =
            |probe: &ChangedProbe| one.gated.iter().any(|gated| gated.lost.contains(probe));
        let survival = || {
            let changed = comparison.changed.iter();
            changed.filter(|probe| probe.metric != "extract" && !is_break(probe))
        };
        for probe in survival().take(MOST_CHANGED) {
            let place = probe
                .lost_at
                .as_deref()
                .map(|place| format!(", lost at {place}"));
            let _ = writeln!(
                out,
                "  {} {} of {}: {} {} → {}{}{}",
                probe.kind,
                plain(&probe.probe),
                plain(&probe.session),
                probe.metric,
                probe.baseline,
                probe.candidate,
                plain(&place.unwrap_or_default()),
                if probe.high_importance {
                    ", high importance"
                } else {
                    ""
                }
            );
        }
        let more = survival().count().saturating_sub(MOST_CHANGED);
        if more > 0 {
            let _ = writeln!(out, "  … and {more} more probes that changed");
        }
        if let Some(gated) = &one.gated {
            for line in breaks(gated) {
                let _ = writeln!(out, "  hard break: {}", plain(&line));
            }
            for line in unconfirmed(gated) {
                let _ = writeln!(out, "  {}", plain(&line));
            }
            if let Some(says) = among(one) {
                let _ = writeln!(out, "  {says}");
            }
            let _ = writeln!(out, "  verdict: {}", gated.verdict);
        }
    }
    out.trim_start_matches('\n').to_owned()
}
