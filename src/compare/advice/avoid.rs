//! The strategies to avoid, and why.

use super::case::Case;
use super::{Avoid, Rows, RunRow};
use crate::compare::judge::AxisFinding;
use crate::compare::words::percent;
use crate::compare::{Axis, NoteCode};
use crate::naming::short_name;
use crate::stats::paired::FEWEST_SESSIONS;

impl Rows {
    /// The strategies to avoid, the worst first.
    pub(super) fn avoid(&self, cases: &[Case<'_>]) -> Vec<Avoid> {
        let refused = cases.iter().rev().filter(|case| !case.is_recommended);
        let others = refused.map(|case| (case.row, self.why_avoid(case), NoteCode::Avoid));
        let broken = self.strategies.iter().map(|row| (row, row.broken.clone(), NoteCode::Broken));
        let avoided = others.chain(broken).filter_map(|(row, why, code)| {
            Some(Avoid {
                strategy: row.name().to_owned(),
                why: why?,
                is_broken: code == NoteCode::Broken,
                code,
            })
        });
        avoided.collect()
    }

    fn why_avoid(&self, case: &Case<'_>) -> Option<String> {
        let margin = self.rule.margins.get(Axis::Bill).unwrap_or_default();
        if case.bill().is_some_and(|bill| {
            bill.bounds.is_some_and(|one| one.interval_upper < 0.0) && bill.difference() < -margin
        }) || self.is_dearer_everywhere(case.row)
        {
            return Some(self.dearer(case));
        }
        let unseen = case.row.sample.unseen_losses();
        if unseen.is_some() || self.clusters < FEWEST_SESSIONS {
            return unseen;
        }
        let (other, better) = self.dominator(case)?;
        if better.difference() < better.margin {
            return None;
        }
        let why = self.excess(case).map_or_else(String::new, |dearer| dearer + "; ");
        let (other, better) = (short_name(&other), better.in_words());
        let axes = "no worse on any axis";
        Some(format!("{why}{other} is {axes}, and better on {better}"))
    }

    /// Whether it costs more than doing nothing in every session in which that completes, of few: exact at any
    /// number.
    pub(super) fn is_dearer_everywhere(&self, row: &RunRow) -> bool {
        let most = 1.0 + self.rule.margins.get(Axis::Bill).unwrap_or_default();
        let few = (1..FEWEST_SESSIONS).contains(&self.fitting());
        let mut bills = self.fits.iter().map(|id| self.bills_in(row, id));
        few && bills.all(|bill| bill.is_some_and(|(own, nothing)| own > nothing * most))
    }

    /// How much dearer it is, where doing nothing is no choice and its bill is higher.
    pub(super) fn excess(&self, case: &Case<'_>) -> Option<String> {
        let dearer = case.nothing.is_none() && self.saves(case)? < 0.0;
        dearer.then(|| self.dearer(case))
    }

    /// `31 % fewer tokens, 4.9 times the bill of doing nothing, as 921 edits break the prompt cache`.
    fn dearer(&self, case: &Case<'_>) -> String {
        // Tokens and cause are those of all sessions.
        let whole = self.fits.is_empty() || self.fits_everywhere();
        let fewer = case.row.tokens_saved.filter(|share| whole && *share > 0.005);
        let tokens = fewer.map(|tokens| format!("{} % fewer tokens, ", percent(tokens)));
        let amounts = self.saves(case).zip(self.nothing_costs());
        let share = amounts.map(|(saved, nothing)| saved / nothing);
        let saved = case.bill().map(AxisFinding::difference).or(share);
        let times = saved.map_or(f64::NAN, |saved| 1.0 - saved);
        let place = if case.is_in_tokens() { " in input tokens".to_owned() } else { self.priced() };
        let of = if self.fits.is_empty() { "full history" } else { "doing nothing" };
        let dearer = if times < 1.1 {
            format!("{} % more than {of} costs{place}", percent(times - 1.0))
        } else {
            format!("{times:.1} times the bill of {of}{place}")
        };
        let cause = case.row.cause.as_ref().filter(|_| whole).map(|cause| format!(", {cause}"));
        let parts = [tokens, Some(dearer), cause].into_iter();
        parts.flatten().collect()
    }
}
