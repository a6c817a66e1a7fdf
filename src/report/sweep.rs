//! Sweeps as reports: the verdict, the settings on the front, and those off it.

use super::comparison::signed;
use super::{Cell, Column, Report, ReportData, Role, Row, RowMark, Section};
use crate::compare::sweep::{
    Confirmation, Neighbours, Sensitivity, Shape, Standing, Sweep, SweepPoint, Trade,
};
use crate::compare::{Axis, NoteCode};
use crate::record::words::Worth;
use crate::report::display::{self, many};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::stats::{ConfidenceInterval, Estimate};

mod grid;
mod screen;

pub(crate) use screen::screen;

/// The most settings off the front that a terminal shows.
const MOST_OFF_FRONT: usize = 12;

/// The report of a sweep.
pub(crate) fn report(sweep: Sweep) -> Report {
    let (front, off): (Vec<&SweepPoint>, Vec<&SweepPoint>) =
        sweep.points.iter().partition(|point| point.on_front);
    let mut shown: Vec<&SweepPoint> = Vec::new();
    for point in &front {
        // Knobs that change nothing give the same point many times: it is listed once.
        let mut others = shown.iter().map(|other| (other.cost, other.quality));
        if point.standing.is_some() || !others.any(|other| other == (point.cost, point.quality)) {
            shown.push(point);
        }
    }
    let more = front.len() - shown.len();
    let same = (more > 0)
        .then(|| format!("… and {more} on the front that came out the same as one above"));
    let mut notes: Vec<String> =
        vec![format!("± is half of the 95 % interval over {}", sessions(&sweep))];
    if !sweep.left_out.is_empty() {
        notes.push(format!(
            "left out for all, because not every setting was measured on them: {}",
            sweep.left_out.join(", ")
        ));
    }
    let knobs = sweep.sensitivity.iter();
    notes.extend(knobs.filter_map(|knob| moved(&sweep, knob)));
    notes.extend(sweep.hints.iter().cloned().chain(sweep.notes()));
    let mut sections = vec![
        section("on_front", &sweep, &shown).with_notes(same),
        section("off_front", &sweep, &off).at_most(MOST_OFF_FRONT),
    ];
    sections.retain(|section| !section.table.rows.is_empty());
    if let Some(last) = sections.last_mut() {
        last.notes.extend(notes);
    }
    let mut lines = verdict(&sweep);
    lines.extend(idle(&sweep));
    lines.push(kept(&sweep));
    lines.extend(overflow(&sweep));
    lines.push(chosen_on(&sweep));
    Report {
        title: format!("Sweep of {} settings", settings(&sweep)),
        lines,
        sections,
        subject: ReportData::Sweep(Box::new(sweep)),
        ..Report::default()
    }
}

/// `17 sessions (10 of them independent)`.
pub(crate) fn independent(sessions: usize, independent: usize) -> String {
    let all = many(sessions, "session", "sessions");
    match independent {
        count if count == sessions => all,
        count => format!("{all} ({count} of them independent)"),
    }
}

fn sessions(sweep: &Sweep) -> String {
    let used = sweep.tune.len() - sweep.left_out.len();
    independent(used, sweep.independent_tune)
}

fn section(id: &'static str, sweep: &Sweep, points: &[&SweepPoint]) -> Section {
    Section::new(id, points.iter().map(|point| row(point))).more_columns([
        Column::new("cost", sweep.cost.name(), 0),
        Column::new("quality", sweep.quality.name(), 0),
    ])
}

fn row(point: &SweepPoint) -> Row {
    let standing = point.standing.map(|standing| standing.words().into());
    let broken = point.broken.clone().map(RowMark::BrokenSetting);
    let [saved, kept] = [point.cost, point.quality]
        .map(|found| Cell { interval: found.and_then(interval), ..Cell::savings(found) });
    Row {
        name: point.label(),
        role: Role::Strategy,
        marks: standing.into_iter().chain(broken).collect(),
        ranked: point.broken.is_none(),
        cells: vec![saved, kept],
    }
}

/// The sessions of the choice, and how far it is to be trusted.
pub(crate) fn chosen_on(sweep: &Sweep) -> String {
    let tune = independent(sweep.tune.len(), sweep.independent_tune);
    let confirm = match sweep.confirm.len() {
        0 => "confirmed on none".to_owned(),
        count => format!("confirmed on {count} others"),
    };
    format!(
        "Chosen on {tune}, {confirm}. Nothing is tested over the grid: among many settings some look better by \
         chance."
    )
}

/// How many settings were tried: the default written out is the default.
fn settings(sweep: &Sweep) -> usize {
    let points = sweep.points.iter();
    points.filter(|point| !point.is_default || point.values.is_empty()).count()
}

/// Why the metric that is kept is this one, in brackets.
pub(crate) fn quality_reason(sweep: &Sweep) -> String {
    let reason = sweep.quality_reason.as_deref();
    reason.map_or_else(String::new, |reason| format!(" ({reason})"))
}

/// Which metric is kept, and why it is this one.
fn kept(sweep: &Sweep) -> String {
    format!("Saved is {}, kept is {}{}.", sweep.cost, sweep.quality, quality_reason(sweep))
}

/// Where full history does not fit, what is saved is against something that is no choice.
fn overflow(sweep: &Sweep) -> Option<String> {
    let all = sweep.tune.len() - sweep.left_out.len();
    let words = match sweep.full_fits {
        fitting if fitting >= all => return None,
        0 => "in no session".to_owned(),
        fitting => format!("in {fitting} of {}", many(all, "session", "sessions")),
    };
    Some(format!("Full history fits the window {words}; savings are shares of its bill."))
}

/// How far a knob moves the two metrics; `None` where neither is known for two of its values, or it does nothing.
fn moved(sweep: &Sweep, knob: &Sensitivity) -> Option<String> {
    let saved = knob.cost_range.map(|range| (sweep.cost, range));
    let kept = knob.quality_range.map(|range| (sweep.quality, range));
    let known = saved.into_iter().chain(kept);
    let ranges = known.map(|(axis, range)| format!("{axis} by {} pts", display::points(range)));
    let ranges = display::listed(ranges, " and ").filter(|_| !knob.does_nothing)?;
    Some(format!("{} moves {ranges}", knob.knob))
}

/// Whether no setting changed anything.
fn is_quiet(sweep: &Sweep) -> bool {
    let mut costs = sweep.points.iter().map(|point| point.cost);
    costs.all(|cost| cost.is_some_and(|cost| cost.point_estimate.abs() < 1e-12))
        && sweep.sensitivity.iter().all(|knob| knob.does_nothing)
}

/// The knobs that do nothing, in a sentence.
fn idle(sweep: &Sweep) -> Option<String> {
    // Of one value nothing can be said.
    let idle = sweep.sensitivity.iter().filter(|knob| knob.does_nothing && knob.by_value.len() > 1);
    let idle: Vec<String> = idle.map(|knob| format!("`{}`", knob.knob)).collect();
    match idle.as_slice() {
        _ if is_quiet(sweep) => None,
        [] => None,
        [one] => Some(format!("{one} does nothing here: all its values give the same numbers.")),
        all => Some(format!("{} do nothing here.", all.join(" and "))),
    }
}

/// The verdict on the choice, in sentences. The first begins with the word that decides.
pub(crate) fn verdict(sweep: &Sweep) -> Vec<String> {
    if is_quiet(sweep) {
        let text = "nothing fires, whatever the values: no prompt is large enough, or no session has what the stages \
                    act on. `--window fit:0.6` gives each session a window that it fills.";
        return vec![NoteCode::NothingFires.behind(text)];
    }
    let choice = &sweep.choice;
    let standing = choice.standing;
    let code = match standing {
        None | Some(Standing::NotConfirmed) => NoteCode::Undecided,
        Some(_) if sweep.confirm.is_empty() => NoteCode::FewSessions,
        Some(Standing::Default) => NoteCode::Keep,
        Some(Standing::Recommended) => NoteCode::Use,
    };
    let mut sentences = vec![code.behind(&first_sentence(sweep))];
    if let Some(found) = &choice.confirmation {
        sentences.push(confirmed(sweep, found));
    }
    let changed = standing.is_some_and(|standing| standing != Standing::Default);
    let beside = choice.neighbours.as_ref().filter(|_| changed);
    sentences.extend(beside.map(|beside| neighbours(sweep, beside)));
    if standing == Some(Standing::NotConfirmed) {
        let breaks = sweep.points.iter().any(|point| point.is_default && point.broken.is_some());
        let default = if breaks { "breaks" } else { "stays" };
        sentences.push(format!("Nothing is recommended; the default {default}."));
    }
    let refused = choice.trade.as_ref();
    sentences.extend(refused.map(|refused| trade(sweep, refused)));
    sentences
}

/// What is chosen, and why; or why nothing is.
fn first_sentence(sweep: &Sweep) -> String {
    let choice = &sweep.choice;
    let place = sweep.worth.as_ref().map_or_else(String::new, Worth::outline);
    let (Some(standing), Some(label)) = (choice.standing, choice.label()) else {
        let problem = choice.problem.as_deref().unwrap_or("nothing was measured");
        return format!("no recommendation{place}: {problem}.");
    };
    let best = match (&choice.best_kept, choice.best_quality) {
        (Some(best), Some(quality)) if *best != label => {
            format!("{best}, {}", display::percent(quality))
        }
        _ => "itself".to_owned(),
    };
    let (quality, margin) = (sweep.quality, display::points(sweep.margin));
    let kept = format!("{quality} within {margin} pts");
    let rule = match choice.kept_enough {
        _ if choice.dearer.is_some() => "what keeps more costs more".to_owned(),
        0 | 1 => format!("no other setting keeps {kept} of it"),
        count => format!(
            "of the {count} settings that keep {kept} of the best kept ({best}), it costs the least"
        ),
    };
    if sweep.confirm.is_empty() {
        let (these, few) = (on_these(sweep), few(sweep));
        return format!("{these}{place}: {label}; {rule}. {few}");
    }
    match (standing, &choice.dearer) {
        (Standing::Default, Some(dearer)) => format!(
            "keep the default{place}: of the settings that keep {kept} of the best kept ({best}) the cheapest, {dearer}, \
             costs more."
        ),
        (Standing::Default, None) => {
            format!("keep the default{place}: {rule}. There is nothing to confirm.")
        }
        (Standing::NotConfirmed | Standing::Recommended, _) => {
            format!("{}{place}: {label}; {rule}.", standing.words())
        }
    }
}

/// The sessions of a sweep that are too few for two halves.
fn on_these(sweep: &Sweep) -> String {
    match sweep.tune.len() {
        1 => "on this session".to_owned(),
        all if sweep.independent_tune == 1 => {
            format!("on these {all} conversations of one session")
        }
        all => format!("on these {}", independent(all, sweep.independent_tune)),
    }
}

/// Why so few decide nothing.
fn few(sweep: &Sweep) -> String {
    if sweep.independent_tune == 1 {
        return "One session decides nothing: give a folder.".to_owned();
    }
    format!(
        "{} independent sessions are the least that can choose and confirm.",
        2 * FEWEST_SESSIONS
    )
}

/// Whether the chosen setting is on a plateau.
fn neighbours(sweep: &Sweep, found: &Neighbours) -> String {
    let Neighbours { tried, alike, .. } = found;
    let [saved, kept] = [sweep.cost_margin, sweep.margin].map(display::points);
    let within = format!("the same, within {saved}/{kept} pts or chance");
    let words = match found.shape {
        Shape::Slope if *tried == 1 => {
            let comes = if *alike == 1 { "comes" } else { "does not come" };
            format!("One setting alone lies beside it, and {comes} out {within}.")
        }
        Shape::Plateau => format!("A plateau: all {tried} settings beside it come out {within}."),
        Shape::Slope if *alike == 0 => {
            format!("A slope: none of the {tried} settings beside it comes out {within}.")
        }
        Shape::Slope => {
            format!("A slope: {alike} of the {tried} settings beside it come out {within}.")
        }
        Shape::Spike => format!(
            "A spike: none of the {tried} settings beside it comes out {within}, and on both sides they are worse. It may be \
             chance."
        ),
    };
    let words = match found.broken {
        0 => words,
        1 => format!("{words} Another is broken: longer sessions may break this one too."),
        count => {
            format!("{words} {count} others are broken: longer sessions may break this one too.")
        }
    };
    let Some((knob, value)) = &found.edge else {
        return words;
    };
    format!("{words} `{knob}={value}` is at the end of the values tried: try more beyond it.")
}

/// The best trade that was refused, and the flag that chooses it: whether it is confirmed is another question.
fn trade(sweep: &Sweep, refused: &Trade) -> String {
    let choice = &sweep.choice;
    let mut points = sweep.points.iter();
    let chosen = points.find(|point| Some(&point.values) == choice.values.as_ref());
    let kept = choice.best_quality.unwrap_or_default() - refused.given_up;
    // Both against the chosen setting, where there is one.
    let (saved, given_up) = match chosen.and_then(|point| Some((point.cost?, point.quality?))) {
        Some((cost, quality)) => {
            let more = display::points(refused.saved - cost.point_estimate);
            let saved = format!("{more} points more of the {}", sweep.cost);
            (saved, quality.point_estimate - kept)
        }
        None => (display::percent(refused.saved), refused.given_up),
    };
    let (label, quality, margin) = (refused.label(), sweep.quality, refused.margin);
    let given_up = display::points(given_up);
    format!(
        "Refused: {label} saves {saved} and gives up {given_up} points of {quality}; `--margin {quality}={margin}` chooses it."
    )
}

/// The outcome on the sessions that did not choose, with the differences and their intervals.
fn confirmed(sweep: &Sweep, found: &Confirmation) -> String {
    let (one, more) = ("independent session", "independent sessions");
    let sessions = match found.sessions {
        0 => "the sessions".to_owned(),
        number => many(number, one, more),
    };
    let place = format!("on {sessions} not used to choose it");
    let saved = change(sweep.cost, found.cost);
    let kept = change(sweep.quality, found.quality);
    let differences = format!("against the default: {saved}, {kept}");
    if let Some(problem) = &found.problem {
        return format!("Nothing is shown {place}: {problem}.");
    }
    if found.is_confirmed {
        let margin = display::points(sweep.margin);
        return format!("Confirmed {place}, {differences}; no worse by more than {margin} pts.");
    }
    let claims = found.not_shown.iter().map(|missing| {
        let needed = missing.sessions_needed.map_or_else(String::new, |n| {
            format!(" (about {n} sessions to confirm on would show it)")
        });
        missing.claim.clone() + &needed
    });
    let claims = display::joined(claims, ", nor ");
    format!("Not shown {place}: {claims}; {differences}.")
}

/// The interval of an estimate; of two sessions it is wider than anything that is measured.
fn interval(found: Estimate) -> Option<ConfidenceInterval> {
    found.confidence_interval.filter(|_| found.n.sessions > 2)
}

/// `bill −12.0 % [−16.0, −8.0]` of a total, `facts +4.2 [+1.0, +7.4] pts` of a share.
fn change(axis: Axis, difference: Option<Estimate>) -> String {
    let Some(found) = difference else {
        return format!("{axis} not measured");
    };
    // In the direction of the number itself, not of what is good.
    let sign = if axis.is_saved() { -1.0 } else { 1.0 };
    let range = interval(found).map_or_else(String::new, |ends| {
        let mut ends = [ends.lower_bound, ends.upper_bound].map(|end| sign * end);
        ends.sort_by(f64::total_cmp);
        let [low, high] = ends.map(|end| signed(end * 100.0, 1));
        format!(" [{low}, {high}]")
    });
    let point = signed(sign * found.point_estimate * 100.0, 1);
    if axis.is_saved() {
        format!("{axis} {point} %{range}")
    } else {
        format!("{axis} {point}{range} pts")
    }
}
