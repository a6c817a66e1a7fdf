//! The verdict on a comparison of two strategies, in one sentence.

use super::words::{around, listed};
use super::{Axis, AxisFinding, Findings, NoteCode, State, VerdictLine};
use crate::naming::short_name;

/// Names the one to use. It must be shown to be better on one axis, and not worse on each of the others.
pub(crate) fn of_pair(findings: &Findings) -> VerdictLine {
    let mut names = [&findings.baseline, &findings.candidate].map(|name| short_name(name));
    if names[0] == names[1] {
        names = ["the baseline", "the candidate"].map(str::to_owned);
    }
    let [other, name] = [0, 1].map(|side| format!("{}{}", names[side], findings.outlines[side]));
    if let [Some(old), Some(new)] = &findings.broken {
        let why = format!("Neither is to be used, as both break ({other}: {old}; {name}: {new}).");
        return VerdictLine::new(NoteCode::Broken, why);
    }
    let axes = judged(findings);
    if axes.is_empty() {
        let why = "Not decided: no axis could be compared; bill, facts and actions need values on both sides.";
        return VerdictLine::new(NoteCode::Undecided, why);
    }
    let better = listed(&of(&axes, State::Better));
    let worse = listed(&of(&axes, State::Worse));
    let chance = around("", &of(&axes, State::Unknown), " may be chance");
    let apart: Vec<String> = axes.iter().filter_map(|axis| not_known(axis)).collect();
    let held: Vec<String> =
        [State::Same, State::NotWorse].iter().filter_map(|state| held(&axes, *state)).collect();
    let rest = around("; ", &held, "");
    let chance = Some(chance).filter(|chance| !chance.is_empty());
    let open: Vec<String> = chance.into_iter().chain(apart.iter().cloned()).collect();
    let open = listed(&open);
    let code = match (better.as_str(), worse.as_str()) {
        (_, "") if !open.is_empty() => NoteCode::Undecided,
        ("", "") => NoteCode::NoDifference,
        (_, "") => NoteCode::Use,
        ("", _) => NoteCode::Keep,
        (_, _) => NoteCode::Trade,
    };
    let said = match code {
        NoteCode::Undecided if better.is_empty() => format!("Not decided: {open}{rest}"),
        NoteCode::Undecided => format!("Not decided: {name} is better on {better}; {open}{rest}"),
        NoteCode::NoDifference if axes.iter().all(|axis| axis.difference() == 0.0) => {
            format!("No difference: {name} and {other} are the same on every axis")
        }
        NoteCode::NoDifference => format!("No difference: {name} is {}", listed(&held)),
        NoteCode::Use => format!("Use {name}: better on {better}{rest}"),
        NoteCode::Keep => format!("Keep {other}: {name} is worse on {worse}{rest}"),
        _ => {
            let (name, apart) = (capital(&name), around("; ", &apart, ""));
            format!("{name} is a trade: better on {better}, and worse on {worse}{apart}")
        }
    };
    VerdictLine::new(code, format!("{said}{}.", notes(&axes)))
}

/// The axes that decide, and what never may be worse where it differs: the sides can change places.
fn judged(findings: &Findings) -> Vec<&AxisFinding> {
    let guarded = [Axis::Completion, Axis::Refused].map(|axis| findings.axis(axis));
    let never = guarded.into_iter().flatten().filter(|axis| axis.difference() != 0.0);
    let [bill, actions] = [Axis::Bill, Axis::Actions].map(|axis| findings.axis(axis));
    let deciding = [bill, findings.kept(), actions];
    never.chain(deciding.into_iter().flatten()).collect()
}

/// The axes in this state, in words.
fn of(axes: &[&AxisFinding], state: State) -> Vec<String> {
    let these = axes.iter().filter(|found| found.state == state && !found.is_turned_by_open());
    these.map(|found| with_margin(found, state)).collect()
}

/// A finding in words; a difference that is shown although it is within the margin says so.
fn with_margin(found: &AxisFinding, state: State) -> String {
    let words = found.in_words();
    if state != State::Unknown && found.difference().abs() <= found.margin {
        format!("{words} (within the margin)")
    } else {
        words
    }
}

/// The reason why nothing is known of an axis, if that is so.
fn not_known(found: &AxisFinding) -> Option<String> {
    if found.is_turned_by_open() {
        return Some(format!("{} is unknown: {}", found.in_words(), found.open()));
    }
    let why = found.note.as_ref().filter(|_| !found.is_comparable())?;
    Some(format!("{} are not compared: {why}", found.axis))
}

/// Lists the axes in this state, which is no worse. An axis without a difference is named without its number.
fn held(axes: &[&AxisFinding], state: State) -> Option<String> {
    let these = axes.iter().filter(|found| found.state == state);
    let words = these.map(|found| match found.difference() {
        0.0 => found.axis.to_string(),
        _ => found.in_words(),
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("{} on {}", state.name(), listed(&words)))
}

/// Who wrote what is compared.
fn notes(axes: &[&AxisFinding]) -> String {
    let noted = axes.iter().filter(|one| one.is_comparable());
    let mut notes: Vec<&str> = noted.filter_map(|one| one.note.as_deref()).collect();
    notes.dedup();
    match notes.as_slice() {
        [] => String::new(),
        notes => format!(", {}", notes.join(", ")),
    }
}

/// The same with a capital letter in front, unless it is a name.
fn capital(name: &str) -> String {
    match name.strip_prefix("the candidate") {
        Some(rest) => format!("The candidate{rest}"),
        None => name.to_owned(),
    }
}
