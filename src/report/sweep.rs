//! Sweeps as reports: the verdict, the settings on the front, and those off it.

use super::comparison::signed;
use super::{Cell, Column, Report, Role, Row, RowMark, Section, Subject, Value};
use crate::compare::sweep::{
    Choice, Confirmation, Sensitivity, Standing, Sweep, SweepPoint, label,
};
use crate::report::display::{self, many};
use crate::stats::Estimate;

mod screen;

pub(crate) use screen::{screen, short_label};

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
        if point.standing.is_some() || !shown.iter().any(same) {
            shown.push(point);
        }
    }
    let same = front.len() - shown.len();
    let same = (same > 0)
        .then(|| format!("… and {same} on the front that came out the same as one above"));
    let section = |id, points: &[&SweepPoint]| {
        Section::new(id, points.iter().map(|point| row(point))).more_columns([
            Column::new("cost", sweep.cost.name(), 0),
            Column::new("quality", sweep.quality.name(), 0),
            Column::new("front", "on the front", 0),
        ])
    };
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
    notes.extend(sweep.sensitivity.iter().filter_map(|it| moved(&sweep, it)));
    notes.extend(sweep.hints.iter().cloned());
    let mut sections = vec![
        section("on_front", &shown).with_notes(same),
        section("off_front", &off).at_most(MOST_OFF_FRONT),
    ];
    sections.retain(|section| !section.table.rows.is_empty());
    if let Some(last) = sections.last_mut() {
        last.notes.extend(notes);
    }
    let verdicts = sweep.choices.iter().map(|it| verdict(&sweep, it));
    let method = [kept(&sweep), chosen_on(&sweep)];
    Report {
        title: format!("Sweep of {} settings", sweep.points.len()),
        lines: verdicts.flatten().chain(method).collect(),
        sections,
        subject: Subject::Sweep(Box::new(sweep)),
        ..Report::default()
    }
}

fn sessions(sweep: &Sweep) -> String {
    let used = sweep.tune.len() - sweep.left_out.len();
    many(used, "session", "sessions")
}

fn row(point: &SweepPoint) -> Row {
    let standing = point.standing.map(|standing| standing.words().into());
    let broken = point.broken.clone().map(RowMark::BrokenSetting);
    let share = point.front_share.filter(|_| point.broken.is_none());
    let share = share.map_or(Value::NotApplicable, Value::Share);
    // Of two sessions an interval is wider than anything that is measured.
    let estimate = |estimate: Option<Estimate>| {
        let cell = Cell::savings(estimate);
        let is_wide = cell.n.is_none_or(|n| n.sessions <= 2);
        let interval = cell.interval.filter(|_| !is_wide);
        Cell { interval, ..cell }
    };
    Row {
        name: point.label(),
        role: Role::Strategy,
        marks: standing.into_iter().chain(broken).collect(),
        ranked: point.broken.is_none(),
        cells: vec![
            estimate(point.cost),
            estimate(point.quality),
            Cell::exact(share),
        ],
    }
}

/// The sessions of the choice, and how far it is to be trusted.
pub(crate) fn chosen_on(sweep: &Sweep) -> String {
    format!(
        "Chosen on {}, confirmed on {} others. Nothing is tested over the grid: among many settings some \
         look better by chance.",
        many(sweep.tune.len(), "session", "sessions"),
        sweep.confirm.len()
    )
}

/// Which metric is kept, and why it is this one.
fn kept(sweep: &Sweep) -> String {
    let reason = sweep.quality_reason.as_deref();
    let reason = reason.map_or_else(String::new, |reason| format!(" ({reason})"));
    format!(
        "Saved is {}, kept is {}{reason}.",
        sweep.cost, sweep.quality
    )
}

/// How far a knob moves the two metrics; `None` where neither is known for two of its values.
fn moved(sweep: &Sweep, knob: &Sensitivity) -> Option<String> {
    let ranges = [
        (&sweep.cost, knob.cost_range),
        (&sweep.quality, knob.quality_range),
    ];
    let ranges = ranges.into_iter().filter_map(|(metric, range)| {
        let range = display::points(range?);
        Some(format!("{metric} by {range} pts"))
    });
    let ranges: Vec<String> = ranges.collect();
    (!ranges.is_empty()).then(|| format!("{} moves {}", knob.knob, ranges.join(" and ")))
}

/// The verdict on one choice, in sentences. The first begins with the word that decides.
pub(crate) fn verdict(sweep: &Sweep, choice: &Choice) -> Vec<String> {
    let place = match choice.window.as_slice() {
        [] => String::new(),
        window => format!(" in {}", label(window)),
    };
    let (Some(standing), Some(label)) = (choice.standing, choice.label()) else {
        let problem = choice.problem.as_deref().unwrap_or("nothing was measured");
        return vec![format!("no recommendation{place}: {problem}.")];
    };
    let best = match (&choice.best_kept, choice.best_quality) {
        (Some(best), Some(quality)) if *best != label => {
            format!("{best}, {}", display::percent(quality))
        }
        _ => "itself".to_owned(),
    };
    let kept = format!(
        "{} within {} pts",
        sweep.quality,
        display::points(sweep.margin)
    );
    let rule = match choice.kept_enough {
        0 | 1 => format!("no other setting keeps {kept} of it"),
        count => format!(
            "of the {count} settings that keep {kept} of the best kept ({best}), it saves the most"
        ),
    };
    let first = match standing {
        Standing::Default => {
            format!("keep the default{place}: {rule}. There is nothing to confirm.")
        }
        Standing::NotConfirmed | Standing::Recommended => {
            format!("{}{place}: {label}; {rule}.", standing.words())
        }
    };
    let mut sentences = vec![first];
    match &choice.confirmation {
        Some(found) => sentences.push(confirmed(sweep, found)),
        None if standing == Standing::NotConfirmed => {
            sentences.push("No session was left to confirm it on.".to_owned());
        }
        None => {}
    }
    if standing == Standing::NotConfirmed {
        sentences.push("Nothing is recommended; the default stays.".to_owned());
    }
    sentences
}

/// The outcome on the sessions that did not choose, with the differences and their intervals.
fn confirmed(sweep: &Sweep, found: &Confirmation) -> String {
    let points = |share: f64| signed(share * 100.0, 1);
    let change = |estimate: Option<Estimate>| {
        let Some(estimate) = estimate else {
            return "not measured".to_owned();
        };
        let interval = estimate.confidence_interval;
        let interval = interval.filter(|_| estimate.n.sessions > 2);
        let interval = interval.map_or_else(String::new, |it| {
            format!(" [{}, {}]", points(it.lower_bound), points(it.upper_bound))
        });
        format!("{}{interval} pts", points(estimate.point_estimate))
    };
    let sessions = many(found.sessions, "session", "sessions");
    let place = format!("on {sessions} that did not choose it");
    let differences = format!(
        "against the default: {} {}, {} {}",
        sweep.cost,
        change(found.cost),
        sweep.quality,
        change(found.quality)
    );
    if let Some(problem) = &found.problem {
        return format!("Nothing is shown {place}: {problem}.");
    }
    if found.is_confirmed {
        return format!(
            "Confirmed {place}, {differences}; no worse by more than {} pts.",
            display::points(sweep.margin)
        );
    }
    let claims = found.not_shown.iter().map(|missing| {
        let needed = missing.sessions_needed;
        let needed = needed.map(|it| format!(" (about {it} sessions to confirm on would show it)"));
        missing.claim.clone() + &needed.unwrap_or_default()
    });
    let claims = claims.collect::<Vec<_>>().join(", nor ");
    format!("Not shown {place}: {claims}; {differences}.")
}
