//! Differences in words: the same for run, compare, gate and sweep.

use super::axis::Kind;
use super::judge::{AxisFinding, LEVEL, State};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::{Tokens, Usd, many, whole};

impl AxisFinding {
    /// `bill −12 % [−16, −8]`, `facts +10 [+8, +12]`; exact differences have no interval.
    pub(crate) fn in_words(&self) -> String {
        format!("{} {}", self.axis, self.change())
    }

    /// The same without the name.
    pub(crate) fn change(&self) -> String {
        let Some(bounds) = self.bounds else {
            return "not known".to_owned();
        };
        let unit = match self.kind {
            // Of a total, a note says that dollars would not tell of all.
            Kind::Total if self.note.is_some() => " % of input tokens",
            Kind::Total => " %",
            Kind::Probes | Kind::Share | Kind::Count => "",
        };
        let text = self.signed(self.axis.turned(bounds.difference)) + unit;
        match self.ends().filter(|_| !bounds.is_exact()) {
            Some(ends) => format!("{text} [{}]", ends.map(|end| self.signed(end)).join(", ")),
            None => text,
        }
    }

    /// The ends of its interval, in the direction of the number itself, not of what is good.
    pub(crate) fn ends(&self) -> Option<[f64; 2]> {
        let bounds = self.bounds?;
        let ends = [bounds.interval_lower, bounds.interval_upper].map(|end| self.axis.turned(end));
        Some([ends[0].min(ends[1]), ends[0].max(ends[1])])
    }

    /// A value in the direction of the number itself, with its sign.
    fn signed(&self, value: f64) -> String {
        match self.kind {
            Kind::Total => signed(value, &percent(value)),
            Kind::Probes | Kind::Share => signed(value, &points(value)),
            Kind::Count => signed(value, &format!("{:.1}", value.abs())),
        }
    }

    /// The pairs that could turn it: `4 items need a judge`, `3 pairs were not scored`.
    pub(crate) fn open(&self) -> String {
        let (unsure, unscored) = (self.paired.unsure, self.paired.unscored);
        let parts = [
            (unsure, "item needs a judge", "items need a judge"),
            (unscored, "pair was not scored", "pairs were not scored"),
        ];
        let open = parts.into_iter().filter(|(count, ..)| *count > 0);
        let words = open.map(|(count, one, more)| many(count, one, more));
        listed(&words.collect::<Vec<_>>())
    }

    /// Which sessions a total is of, where it is not all of these to their end: `over 4 of 8 sessions`.
    pub(crate) fn scope(&self, sessions: usize) -> Option<String> {
        let (own, died) = (self.paired.by_session.n.sessions, self.unfinished_sessions);
        let some = (own < sessions).then(|| format!("over {own} of {sessions} sessions"));
        let short = (died > 0).then(|| {
            format!("of {} up to the call at which both died", many(died, "session", "sessions"))
        });
        let parts: Vec<String> = some.into_iter().chain(short).collect();
        (self.kind == Kind::Total && !parts.is_empty()).then(|| parts.join(", "))
    }

    /// Whether it is open only for what a judge or a score would tell.
    pub(crate) fn is_turned_by_open(&self) -> bool {
        self.state == State::Unknown && self.ends.is_some()
    }

    /// Why an interval on one side of 0 shows nothing: too many strategies, or too few sessions that differ.
    pub(crate) fn why_not_shown(&self, strategies: usize) -> Option<String> {
        let bounds = self.bounds?;
        let one_sided = self.is_above_0() || bounds.interval_upper < 0.0;
        let shown = self.adjusted_p.is_some_and(|p| p <= LEVEL);
        if !one_sided || shown || bounds.is_exact() {
            return None;
        }
        let differing = self.differing();
        Some(if differing < FEWEST_SESSIONS {
            format!("only {differing} sessions differ")
        } else {
            format!("{strategies} strategies are judged")
        })
    }
}

impl State {
    /// Its name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::NotComparable => "not comparable",
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Same => "the same",
            Self::NotWorse => "not worse",
            Self::Unknown => "not decided",
        }
    }
}

/// A total in the unit of a bill: `$76.30`, `12.3M input tokens`.
pub(crate) fn money(amount: f64, is_dollars: bool) -> String {
    if is_dollars {
        Usd::of_dollars(amount.abs()).to_string()
    } else {
        let tokens = whole(amount.abs().round());
        format!("{} input tokens", Tokens(tokens).in_short())
    }
}

/// A number's text with its sign; nothing in front of 0.
fn signed(value: f64, text: &str) -> String {
    match () {
        () if text.bytes().all(|byte| matches!(byte, b'0' | b'.')) => "0".to_owned(),
        () if value < 0.0 => format!("−{text}"),
        () => format!("+{text}"),
    }
}

/// Points of a share, without a sign: whole ones, and a tenth where that would be 0.
pub(crate) fn points(share: f64) -> String {
    let value = share.abs() * 100.0;
    format!("{value:.*}", usize::from((0.05..0.5).contains(&value)))
}

/// A share in percent, without sign and unit: one digit below 10.
pub(crate) fn percent(share: f64) -> String {
    let value = share.abs() * 100.0;
    let text = format!("{value:.*}", usize::from(value < 9.95));
    text.trim_end_matches(".0").to_owned()
}

/// `a, b and c`.
pub(crate) fn listed(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [one] => one.clone(),
        [many @ .., last] => format!("{} and {last}", many.join(", ")),
    }
}

/// The same between these words; nothing without an item.
pub(crate) fn around(before: &str, items: &[String], after: &str) -> String {
    if items.is_empty() {
        return String::new();
    }
    format!("{before}{}{after}", listed(items))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_short_and_nothing_has_no_sign() {
        let of = |share| signed(share, &percent(share));
        assert_eq!(of(0.014), "+1.4");
        assert_eq!(of(-0.12), "−12");
        assert_eq!(of(-0.000_1), "0");
        assert_eq!(percent(0.02), "2");
        assert_eq!(money(76.3, true), "$76.30");
        let names = ["a", "b", "c"].map(str::to_owned);
        assert_eq!(listed(&names), "a, b and c");
    }
}
