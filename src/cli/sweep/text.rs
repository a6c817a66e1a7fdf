//! A sweep on a terminal, and the preset it recommends.

use std::fmt::Write as _;

use super::Point;
use crate::compare::sweep::{Recommendation, Sweep, SweepPoint};
use crate::report::escape::plain;
use crate::report::figure::{many, percent};
use crate::report::layout;
use crate::report::versus::signed;
use crate::settings::Value;
use crate::stats::Estimate;

/// So many settings off the front are listed.
const MOST_OFF_FRONT: usize = 12;

/// Between columns.
const GAP: &str = "  ";

/// A label is never broken into less than this.
const NARROWEST_LABEL: usize = 20;

/// One setting as its cells.
struct Line {
    label: String,
    /// Cost, quality, and how often it is on the front.
    figures: [String; 3],
    mark: String,
}

/// The sweep as text, its table as wide as the terminal where that is known.
pub(super) fn render(sweep: &Sweep, columns: Option<usize>) -> String {
    let mut out = String::new();
    let sheet = Sheet::of(sweep, columns);
    sheet.write(
        &mut out,
        &Line {
            label: "setting".to_owned(),
            figures: [sweep.cost.as_str(), sweep.quality.as_str(), "front"].map(str::to_owned),
            mark: String::new(),
        },
    );
    let (front, off): (Vec<&SweepPoint>, Vec<&SweepPoint>) =
        sweep.points.iter().partition(|point| point.on_front);
    let mut shown: Vec<&SweepPoint> = Vec::new();
    for point in &front {
        // What does nothing gives the same point many times: it is listed once.
        let same =
            |other: &&&SweepPoint| (other.cost, other.quality) == (point.cost, point.quality);
        if point.recommended || !shown.iter().any(|other| same(&other)) {
            sheet.write(&mut out, &Line::of(point));
            shown.push(point);
        }
    }
    if front.len() > shown.len() {
        let more = front.len() - shown.len();
        let _ = writeln!(
            out,
            "… and {more} on the front that came out the same as one above"
        );
    }
    if !off.is_empty() {
        out.push_str("off the front:\n");
    }
    for point in off.iter().take(MOST_OFF_FRONT) {
        sheet.write(&mut out, &Line::of(point));
    }
    if off.len() > MOST_OFF_FRONT {
        let _ = writeln!(out, "… and {} more", off.len() - MOST_OFF_FRONT);
    }
    let sessions = sweep.tune.len() - sweep.left_out.len();
    let _ = writeln!(
        out,
        "± is half of the 95 % interval over {}; front: how often a setting stays on it with one left out",
        many(sessions, "session", "sessions")
    );
    if !sweep.left_out.is_empty() {
        let _ = writeln!(
            out,
            "left out for all, because not every setting was measured on them: {}",
            plain(&sweep.left_out.join(", "))
        );
    }
    for knob in &sweep.sensitivity {
        let _ = writeln!(
            out,
            "{} moves {} by {:.1} pts and {} by {:.1} pts",
            plain(&knob.knob),
            sweep.cost,
            knob.cost_range * 100.0,
            sweep.quality,
            knob.quality_range * 100.0
        );
    }
    out.push_str(&recommendation(sweep));
    out
}

impl Line {
    fn of(point: &SweepPoint) -> Self {
        let figure = |estimate: Option<Estimate>| {
            estimate.map_or_else(
                || "not measured".to_owned(),
                |estimate| {
                    // Of two sessions an interval is wider than anything that is measured.
                    let interval = estimate
                        .confidence_interval
                        .filter(|_| estimate.n.sessions > 2);
                    let half = interval.map(|i| i.half_width() * 100.0);
                    let half = half.map_or_else(String::new, |half| format!(" ± {half:.1}"));
                    format!("{}{half}", percent(estimate.point_estimate))
                },
            )
        };
        let share = point
            .front_share
            .map_or_else(String::new, |share| format!("{:.0} %", share * 100.0));
        Self {
            label: plain(&point.label()),
            figures: [figure(point.cost), figure(point.quality), share],
            mark: match (&point.broken, point.recommended) {
                (Some(why), _) => format!("broken: {why}"),
                (None, true) => "recommended".to_owned(),
                (None, false) => String::new(),
            },
        }
    }
}

/// How wide the columns are.
struct Sheet {
    label: usize,
    figures: [usize; 3],
    columns: Option<usize>,
}

impl Sheet {
    fn of(sweep: &Sweep, columns: Option<usize>) -> Self {
        let lines: Vec<Line> = sweep.points.iter().map(Line::of).collect();
        let heads = [sweep.cost.as_str(), sweep.quality.as_str(), "front"];
        let figures = [0, 1, 2].map(|at| {
            let all = lines.iter().map(|line| layout::width(&line.figures[at]));
            all.chain([layout::width(heads[at])]).max().unwrap_or(0)
        });
        let labels = lines.iter().map(|line| layout::width(&line.label));
        let widest = labels.chain(["setting".len()]).max().unwrap_or(0);
        let taken: usize = figures.iter().map(|width| width + GAP.len()).sum();
        let room = columns.map_or(usize::MAX, |columns| columns.saturating_sub(taken));
        Self {
            label: widest.min(room.max(NARROWEST_LABEL)),
            figures,
            columns,
        }
    }

    /// Writes a setting: its label may take several lines, and what is marked one of its own.
    fn write(&self, out: &mut String, line: &Line) {
        let labels = layout::wrap(&line.label, self.label);
        for (at, label) in labels.iter().enumerate() {
            let mut text = label.clone();
            if at == 0 {
                let blanks = self.label.saturating_sub(layout::width(label));
                text.push_str(&" ".repeat(blanks));
                for (figure, width) in line.figures.iter().zip(self.figures) {
                    let blanks = width.saturating_sub(layout::width(figure));
                    text.push_str(GAP);
                    text.push_str(&" ".repeat(blanks));
                    text.push_str(figure);
                }
                let room = self.columns.unwrap_or(usize::MAX);
                let wide = layout::width(&text) + GAP.len() + layout::width(&line.mark);
                if !line.mark.is_empty() && wide <= room {
                    text.push_str(GAP);
                    text.push_str(&line.mark);
                } else if !line.mark.is_empty() {
                    let _ = writeln!(out, "{}", text.trim_end());
                    text = format!("{GAP}{}", line.mark);
                }
            }
            let _ = writeln!(out, "{}", text.trim_end());
        }
    }
}

fn recommendation(sweep: &Sweep) -> String {
    if sweep.recommendations.is_empty() {
        return format!(
            "no recommendation: no setting that was tried has {} above 0, the default included\n",
            sweep.cost
        );
    }
    sweep
        .recommendations
        .iter()
        .map(|one| recommended(sweep, one))
        .collect()
}

fn recommended(sweep: &Sweep, one: &Recommendation) -> String {
    let sessions = sweep.tune.len() - sweep.left_out.len();
    let mut out = format!(
        "recommended: {}, the knee of the front on {}\n",
        plain(&one.label()),
        many(sessions, "session", "sessions")
    );
    match &one.confirmation {
        Some(found) => {
            let change = |estimate: Option<Estimate>| {
                estimate.map_or_else(
                    || "not measured".to_owned(),
                    |estimate| {
                        let interval = estimate
                            .confidence_interval
                            .filter(|_| estimate.n.sessions > 2);
                        let interval = interval.map_or_else(String::new, |i| {
                            let (low, high) = (i.lower_bound * 100.0, i.upper_bound * 100.0);
                            format!(" [{}, {}]", signed(low, 1), signed(high, 1))
                        });
                        let point = signed(estimate.point_estimate * 100.0, 1);
                        format!("{point} pts{interval}")
                    },
                )
            };
            let _ = writeln!(
                out,
                "{}: {} {}, {} {}",
                found.says,
                sweep.cost,
                change(found.cost),
                sweep.quality,
                change(found.quality)
            );
        }
        None if one.is_default => {
            out.push_str("the default is the best of those tried: there is nothing to confirm\n");
        }
        None => out.push_str("no session was left to confirm it on\n"),
    }
    out
}

/// The recommended preset: a file that `run --strategy` takes, with what it was chosen on.
pub(super) fn preset(
    sweep: &Sweep,
    one: &Recommendation,
    winner: &Point,
    scenario: &str,
    seed: u64,
) -> String {
    let mut out = format!(
        "# Recommended by a sweep of scenario `{scenario}`, seed {seed}: the knee of the front of {} and {}.\n",
        sweep.cost, sweep.quality
    );
    for line in recommended(sweep, one).lines() {
        let _ = writeln!(out, "# {line}");
    }
    let _ = writeln!(out, "# Chosen on: {}.", plain(&sweep.tune.join(", ")));
    if !sweep.confirm.is_empty() {
        let _ = writeln!(
            out,
            "# Not chosen on: {}.",
            plain(&sweep.confirm.join(", "))
        );
    }
    for (path, setting) in &winner.values {
        if path.starts_with("window.") {
            let _ = writeln!(
                out,
                "# It was chosen with `--set {path}={}`.",
                setting.value
            );
        }
    }
    out.push('\n');
    let knobs = winner.values.iter();
    let knobs: Vec<String> = knobs
        .filter(|(path, _)| !path.starts_with("window."))
        .map(|(path, setting)| format!("{path}={}", setting.value))
        .collect();
    for line in winner.spec.to_toml().lines() {
        // The preset's own sentence may tell of the values it had.
        if line.starts_with("description = ") && !knobs.is_empty() {
            let says = format!(
                "{} with {}, from a sweep",
                winner.spec.base_name(),
                knobs.join(", ")
            );
            let _ = writeln!(out, "description = {}", Value::Text(says));
        } else {
            let _ = writeln!(out, "{line}");
        }
    }
    out
}
