//! Why a strategy is not recommended, in a clause.

use super::case::{Case, Three, is_above};
use super::{Rows, RunRow};
use crate::compare::judge::{AxisFinding, LEVEL, State, least_differing};
use crate::compare::words::listed;
use crate::naming::short_name;
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::many;

const UNKNOWN_BILL: &str = "its bill is not known";

impl Rows {
    /// Why a row is not recommended where doing nothing is no choice, in a clause. The yardstick of money is the
    /// cheapest other row that keeps as much. A row beside which only its own, cheaper control runs has no yardstick.
    pub(super) fn hindrance(&self, row: &RunRow, own: Option<f64>) -> Option<String> {
        let Some(own) = own else {
            return Some(UNKNOWN_BILL.to_owned());
        };
        if self.is_dearer_everywhere(row) {
            return Some(
                "it costs more than doing nothing wherever that runs to the end".to_owned(),
            );
        }
        let control = row.control.as_ref().map(|one| &*one.strategy);
        let mut alone = true;
        for other in self.others(self.strategies.iter()) {
            if other.strategy == row.name() {
                continue;
            }
            let cheaper = self.total(other, |_| true).is_some_and(|total| total < own);
            if cheaper && Three::between(&row.sample, other, &self.rule).keeps() {
                let beats = Three::between(other, &row.sample, &self.rule).dominates();
                let name = short_name(&other.strategy);
                return (!beats).then(|| format!("{name} costs less and keeps as much"));
            }
            alone &= cheaper && control == Some(&other.strategy);
        }
        let beside = control.map_or_else(String::new, |name| {
            format!(", and its control {} is not shown to keep as much", short_name(name))
        });
        let why =
            format!("no other strategy runs to the end{beside}: name one more with `--strategy`");
        alone.then_some(why)
    }

    /// Why a case is not recommended, in a clause.
    pub(super) fn obstacle(
        &self,
        case: &Case<'_>,
        dominator: Option<(String, AxisFinding)>,
        strategies: usize,
    ) -> String {
        if self.clusters < FEWEST_SESSIONS {
            return format!("fewer than {FEWEST_SESSIONS} sessions decide nothing");
        }
        if let Some(three) = &case.nothing {
            let bill = bill_obstacle(three.bill.as_ref(), strategies);
            if let Some(why) = bill.or_else(|| loss(three)) {
                return why;
            }
        }
        if let Some(why) = &case.hindrance {
            return why.clone();
        }
        if !case.beats_control() {
            return control_obstacle(case, strategies);
        }
        if case.adjusted_p > LEVEL {
            let findings = case.nothing.iter().chain(&case.control).flat_map(Three::all);
            let better = findings.filter(|found| found.difference() > 0.0);
            let differing = better.map(AxisFinding::differing).min().unwrap_or(0);
            // How many more would show it depends on their size too: another number would contradict that one.
            let (judged, p) = (many(strategies, "strategy is", "strategies are"), case.adjusted_p);
            return if differing < least_differing(strategies) {
                format!("{judged} judged, and only {differing} sessions differ")
            } else {
                let among = match strategies {
                    1 => String::new(),
                    all => format!("among {all} strategies "),
                };
                format!("{among}it may be chance (p {p:.2})")
            };
        }
        let Some((other, better)) = dominator else {
            return "it is not shown".to_owned();
        };
        let (other, better) = (short_name(&other), better.in_words());
        format!("{other} is better on {better} and not worse on the others")
    }
}

/// Why a control is not beaten.
fn control_obstacle(case: &Case<'_>, strategies: usize) -> String {
    let Some((three, control)) = case.control.as_ref().zip(case.row.control.as_ref()) else {
        return "this run has no controls at equal budget (`controls = false`)".to_owned();
    };
    let name = short_name(&control.strategy);
    if three.is_identical() {
        return format!("it does the same as its control {name}");
    }
    if let Some(why) = unknowable(three) {
        return why;
    }
    let lost = three.in_state(|state| state == State::Worse);
    if !lost.is_empty() {
        return format!("it loses to its control {name} on {}", listed(&lost));
    }
    let known = three.all().filter(|found| found.is_comparable());
    let axes: Vec<String> = known.map(AxisFinding::in_words).collect();
    let mut above = three.quality().filter(|found| found.is_above_0());
    let turning = above.find_map(AxisFinding::turning_cluster);
    let alone = turning.map(|session| format!("{session} alone makes the difference"));
    let why = alone.or_else(|| three.quality().find_map(|found| found.why_not_shown(strategies)));
    let reason = why.map_or_else(String::new, |why| format!(" ({why})"));
    let words = axes.join(", ");
    format!("it is not shown to beat its control {name}: {words}{reason}")
}

/// Why a bill is not shown to be lower.
fn bill_obstacle(bill: Option<&AxisFinding>, strategies: usize) -> Option<String> {
    let Some(bill) = bill else {
        return Some(UNKNOWN_BILL.to_owned());
    };
    if is_above(bill) {
        return None;
    }
    if bill.difference() == 0.0 {
        return Some("it costs as much as doing nothing".to_owned());
    }
    if bill.difference() < 0.0 {
        return Some(format!("it costs more than doing nothing ({})", bill.in_words()));
    }
    if let Some(session) = bill.turning_cluster() {
        return Some(format!("without {session} it saves nothing"));
    }
    let differing = bill.differing();
    let why = match bill.why_not_shown(strategies) {
        Some(why) => format!(" ({why})"),
        None if differing < FEWEST_SESSIONS => format!(" (only {differing} sessions differ)"),
        None => String::new(),
    };
    Some(format!("it may be chance{why}"))
}

/// What cannot be compared.
fn unknowable(three: &Three) -> Option<String> {
    if three.quality().next().is_none() {
        let why = "nothing was planted in these sessions and no later action names a detail, so what it keeps is \
                   not known";
        return Some(why.to_owned());
    }
    let apart: Vec<&AxisFinding> = three.quality().filter(|found| !found.is_comparable()).collect();
    let names: Vec<String> = apart.iter().map(|found| found.axis.to_string()).collect();
    let why = apart.first()?.note.as_deref()?;
    Some(format!("{} are not compared: {why}", listed(&names)))
}

/// A loss against doing nothing that is shown, or not ruled out.
fn loss(three: &Three) -> Option<String> {
    if let Some(why) = unknowable(three) {
        return Some(why);
    }
    let lost = three.in_state(|state| state == State::Worse);
    if !lost.is_empty() {
        let lost = listed(&lost);
        return Some(format!("it keeps less than doing nothing ({lost})"));
    }
    let mut quality = three.quality();
    if let Some(found) = quality.find(|found| found.is_turned_by_open()) {
        let (axis, open) = (found.axis, found.open());
        return Some(format!("whether it keeps {axis} is unknown: {open}"));
    }
    let open = three.in_state(|state| !state.is_not_worse());
    let words = listed(&open);
    if !open.is_empty() {
        return Some(format!("it may keep less than doing nothing ({words})"));
    }
    let unpaid = three.unpaid();
    let words = listed(&unpaid);
    (!unpaid.is_empty()).then(|| {
        format!("what it saves is within the margin of the bill, and pays for no loss ({words})")
    })
}
