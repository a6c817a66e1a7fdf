//! Sweeps as reports: the settings on the front, those off it, and the one that is recommended.

use super::comparison::signed;
use super::{Cell, Column, Report, Role, Row, Section, Subject, Value};
use crate::compare::sweep::{Recommendation, Sweep, SweepPoint};
use crate::report::display::many;
use crate::stats::Estimate;

/// The most settings off the front that a terminal shows.
const MOST_OFF_FRONT: usize = 12;

/// The report of a sweep.
pub(crate) fn report(sweep: Sweep) -> Report {
    let (front, off): (Vec<&SweepPoint>, Vec<&SweepPoint>) =
        sweep.points.iter().partition(|point| point.on_front);
    let mut shown: Vec<&SweepPoint> = Vec::new();
    for point in &front {
        // Knobs that change nothing give the same point many times: it is listed once.
        let same = |other: &&SweepPoint| (other.cost, other.quality) == (point.cost, point.quality);
        if point.recommended || !shown.iter().any(same) {
            shown.push(point);
        }
    }
    let same = front.len() - shown.len();
    let same = (same > 0)
        .then(|| format!("… and {same} on the front that came out the same as one above"));
    let section = |id, points: &[&SweepPoint]| {
        Section::new(id, points.iter().map(|point| row(point))).more_columns([
            Column::new("cost", &sweep.cost, 0),
            Column::new("quality", &sweep.quality, 0),
            Column::new("front", "on the front", 0),
        ])
    };
    let recommended = sweep.recommendations.iter();
    let mut notes: Vec<String> = vec![format!(
        "± is half of the 95 % interval over {}; on the front: how often a setting stays on it with one \
         left out",
        sessions(&sweep)
    )];
    if !sweep.left_out.is_empty() {
        notes.push(format!(
            "left out for all, because not every setting was measured on them: {}",
            sweep.left_out.join(", ")
        ));
    }
    notes.extend(sweep.sensitivity.iter().map(|knob| {
        format!(
            "{} moves {} by {:.1} pts and {} by {:.1} pts",
            knob.knob,
            sweep.cost,
            knob.cost_range * 100.0,
            sweep.quality,
            knob.quality_range * 100.0
        )
    }));
    notes.extend(recommended.flat_map(|one| recommendation(&sweep, one)));
    if sweep.recommendations.is_empty() {
        notes.push(format!(
            "no recommendation: no setting that was tried has {} above 0, the default included",
            sweep.cost
        ));
    }
    let mut sections = vec![
        section("on_front", &shown).with_notes(same),
        section("off_front", &off).at_most(MOST_OFF_FRONT),
    ];
    sections.retain(|section| !section.table.rows.is_empty());
    if let Some(last) = sections.last_mut() {
        last.notes.extend(notes);
    }
    Report {
        title: format!("Sweep of {} settings", sweep.points.len()),
        lines: vec![format!(
            "Chosen on {}, tried on {} others. Nothing is tested over the grid: among many settings some \
             look better by chance.",
            many(sweep.tune.len(), "session", "sessions"),
            sweep.confirm.len()
        )],
        sections,
        subject: Subject::Sweep(Box::new(sweep)),
        ..Report::default()
    }
}

fn sessions(sweep: &Sweep) -> String {
    many(
        sweep.tune.len() - sweep.left_out.len(),
        "session",
        "sessions",
    )
}

fn row(point: &SweepPoint) -> Row {
    let recommended = point.recommended.then(|| "recommended".to_owned());
    let broken = point.broken.iter().map(|why| format!("broken: {why}"));
    let share = point
        .front_share
        .filter(|_| point.broken.is_none())
        .map_or(Value::NotApplicable, Value::Percent);
    // Of two sessions an interval is wider than anything that is measured.
    let estimate = |estimate: Option<Estimate>| {
        let mut cell = Cell::savings(estimate);
        cell.interval = cell
            .interval
            .filter(|_| cell.n.is_some_and(|n| n.sessions > 2));
        cell
    };
    Row {
        name: point.label(),
        role: Role::Strategy,
        marks: recommended.into_iter().chain(broken).collect(),
        ranked: point.broken.is_none(),
        cells: vec![
            estimate(point.cost),
            estimate(point.quality),
            Cell::exact(share),
        ],
    }
}

/// The recommendation, and whether it was confirmed: one line each.
pub(crate) fn recommendation(sweep: &Sweep, one: &Recommendation) -> [String; 2] {
    let change = |estimate: Option<Estimate>| {
        let Some(estimate) = estimate else {
            return "not measured".to_owned();
        };
        let point = signed(estimate.point_estimate * 100.0, 1);
        let interval = estimate.confidence_interval;
        let interval = interval.filter(|_| estimate.n.sessions > 2).map(|it| {
            let ends = [it.lower_bound, it.upper_bound];
            let [low, high] = ends.map(|end| signed(end * 100.0, 1));
            format!(" [{low}, {high}]")
        });
        format!("{point} pts{}", interval.unwrap_or_default())
    };
    let confirmed = match &one.confirmation {
        Some(found) => format!(
            "{}: {} {}, {} {}",
            found.says,
            sweep.cost,
            change(found.cost),
            sweep.quality,
            change(found.quality)
        ),
        None if one.is_default => {
            "the default is the best of those tried: there is nothing to confirm".to_owned()
        }
        None => "no session was left to confirm it on".to_owned(),
    };
    let recommended = format!(
        "recommended: {}, the knee of the front on {}",
        one.label(),
        sessions(sweep)
    );
    [recommended, confirmed]
}
