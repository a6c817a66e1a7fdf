//! The strategies to avoid, and why.

use super::case::Case;
use super::{Avoid, Rows};
use crate::compare::words::percent;
use crate::compare::{Axis, Code};
use crate::naming::short_name;
use crate::stats::paired::FEWEST_SESSIONS;

impl Rows {
    /// The strategies to avoid, the worst first.
    pub(super) fn avoid(&self, cases: &[Case<'_>], recommended: &[usize]) -> Vec<Avoid> {
        let mut found = Vec::new();
        for (at, case) in cases.iter().enumerate().rev() {
            if recommended.contains(&at) {
                continue;
            }
            found.extend(self.why_avoid(case).map(|why| Avoid {
                strategy: case.row.name().to_owned(),
                why,
                is_broken: false,
                code: Code::Avoid,
            }));
        }
        let broken = self.strategies.iter().filter_map(|row| {
            Some(Avoid {
                strategy: row.name().to_owned(),
                why: row.broken.clone()?,
                is_broken: true,
                code: Code::Broken,
            })
        });
        found.extend(broken);
        found
    }

    fn why_avoid(&self, case: &Case<'_>) -> Option<String> {
        let margin = self.rule.margins.get(Axis::Bill).unwrap_or_default();
        let bill = case.nothing.as_ref().and_then(|three| three.bill.as_ref());
        let is_dearer = bill.is_some_and(|bill| {
            let is_shown = bill.bounds.is_some_and(|one| one.interval_upper < 0.0);
            is_shown && bill.difference() < -margin
        });
        if is_dearer || self.is_dearer_everywhere(case, margin) {
            return Some(self.dearer(case));
        }
        if let Some((lost, of)) = case.row.sample.unseen_losses() {
            return Some(format!(
                "{lost} of {of} facts are lost before its summariser sees them"
            ));
        }
        if self.clusters < FEWEST_SESSIONS {
            return None;
        }
        let (other, better) = self.dominator(case)?;
        if better.difference() < better.margin {
            return None;
        }
        let mut why = String::new();
        if case.nothing.is_none() && self.saves(case).is_some_and(|saved| saved < 0.0) {
            why = self.dearer(case) + "; ";
        }
        let (other, better) = (short_name(&other), better.in_words());
        Some(format!(
            "{why}{other} is no worse on any axis, and better on {better}"
        ))
    }

    /// Whether it costs more than doing nothing in every session, of few: exact at any number.
    fn is_dearer_everywhere(&self, case: &Case<'_>, margin: f64) -> bool {
        let sessions = &self.nothing.sample.sessions;
        let is_dearer = |id: &String| {
            let [own, nothing] = [&case.row.sample, &self.nothing.sample]
                .map(|sample| self.total(sample, |other| other == id));
            own.zip(nothing)
                .is_some_and(|(own, nothing)| own > nothing * (1.0 + margin))
        };
        let is_few = self.clusters < FEWEST_SESSIONS && !sessions.is_empty();
        is_few && self.fits_everywhere() && sessions.keys().all(is_dearer)
    }

    /// `31 % fewer tokens, 4.9 times the bill of doing nothing, as 921 edits break the prompt cache`.
    fn dearer(&self, case: &Case<'_>) -> String {
        let tokens = case.row.tokens_saved.filter(|tokens| *tokens > 0.005);
        let tokens = tokens.map(|tokens| format!("{} % fewer tokens, ", percent(tokens)));
        let saved = self.saves(case).zip(self.nothing_costs());
        let times = saved.map_or(f64::NAN, |(saved, nothing)| 1.0 - saved / nothing);
        let of = if case.nothing.is_some() || self.fits_everywhere() {
            "doing nothing"
        } else {
            "full history"
        };
        let dearer = if times < 1.1 {
            format!("{} % more than {of} costs", percent(times - 1.0))
        } else {
            format!("{times:.1} times the bill of {of}")
        };
        let cause = case.row.cause.as_ref().map(|cause| format!(", {cause}"));
        [tokens, Some(dearer), cause]
            .into_iter()
            .flatten()
            .collect()
    }
}
