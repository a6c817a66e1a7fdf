//! Asking before a run spends more than a limit.

use std::io::{self, BufRead as _, IsTerminal as _};

use super::{Exit, Stop, say};
use crate::metric::forecast::Spend;
use crate::units::Usd;

/// What is spent without asking, in dollars: a mistake in a scenario should cost no more.
pub(super) const DEFAULT_LIMIT: f64 = 1.0;

/// What is to be done about a run that costs something.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// Nothing: it is cheap, or it was agreed to.
    GoOn,
    /// Ask the person, in these words.
    Ask(String),
}

/// `--cost-limit`: dollars, as an amount of at least 0.
pub(super) fn dollars(typed: &str) -> Result<f64, String> {
    let typed = typed.trim_start_matches('$');
    let number = typed.parse().ok();
    let number = number.filter(|dollars: &f64| dollars.is_finite() && *dollars >= 0.0);
    number.ok_or_else(|| "it must be an amount of dollars, such as 2.50".to_owned())
}

/// Whether somebody has to be asked: where the most that the run may cost is above the limit, or
/// nobody knows what it costs.
fn weigh(spend: &Spend, limit: f64, agreed: bool) -> Answer {
    if agreed || (spend.calls == 0 && spend.judged_at_most == 0) {
        return Answer::GoOn;
    }
    let limit = nano(limit);
    match spend.dollars {
        Some(dollars) if dollars.high <= limit => Answer::GoOn,
        Some(dollars) => Answer::Ask(format!(
            "this run may cost {} ({} expected), above the limit of {limit}",
            dollars.high, dollars.expected
        )),
        None => Answer::Ask(format!(
            "this run asks live models {} times, and no price file knows what that costs",
            spend.calls
        )),
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float that is too large becomes the largest amount, and none is below 0"
)]
pub(super) fn nano(dollars: f64) -> Usd {
    Usd((dollars * 1e9).round() as u64)
}

/// Asks on a terminal, and refuses where nobody can be asked.
pub(super) fn confirm(spend: &Spend, limit: f64, agreed: bool) -> anyhow::Result<()> {
    let Answer::Ask(question) = weigh(spend, limit, agreed) else {
        return Ok(());
    };
    let refuse = |what: String| {
        Stop::new(Exit::Usage, what)
            .with_hint("`--yes` agrees to it, `--cost-limit` says what may be spent unasked, and `proctor plan` shows where it goes")
    };
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(refuse(question).into());
    }
    say(&format!("{question}; go on? [y/N]"));
    let mut typed = String::new();
    io::stdin().lock().read_line(&mut typed)?;
    if matches!(typed.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    Err(refuse("nothing was run".to_owned()).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::forecast::Span;

    #[track_caller]
    fn check(high: Option<f64>, limit: f64, agreed: bool, asks: bool) {
        let spend = Spend {
            calls: 3,
            dollars: high.map(|high| Span {
                low: Usd(0),
                expected: Usd(1),
                high: nano(high),
            }),
            ..Spend::default()
        };
        let answer = weigh(&spend, limit, agreed);
        assert_eq!(matches!(answer, Answer::Ask(_)), asks, "{answer:?}");
    }

    #[test]
    fn what_costs_more_than_the_limit_or_who_knows_what_is_asked_about() {
        check(Some(1.0), 1.0, false, false);
        check(Some(1.000_000_001), 1.0, false, true);
        check(Some(9.0), 1.0, true, false);
        check(None, 1.0, false, true);
        check(None, 1.0, true, false);
        assert_eq!(weigh(&Spend::default(), 0.0, false), Answer::GoOn);
        let message = match weigh(
            &Spend {
                calls: 1,
                dollars: Some(Span::exact(nano(2.5))),
                ..Spend::default()
            },
            0.5,
            false,
        ) {
            Answer::Ask(message) => message,
            Answer::GoOn => String::new(),
        };
        assert_eq!(
            message,
            "this run may cost $2.5000 ($2.5000 expected), above the limit of $0.5000"
        );
    }

    #[test]
    fn an_amount_is_dollars_and_never_less_than_nothing() {
        assert_eq!(dollars("2.50"), Ok(2.5));
        assert_eq!(dollars("$3"), Ok(3.0));
        for wrong in ["-1", "much", "inf", "NaN", ""] {
            assert!(dollars(wrong).is_err(), "{wrong}");
        }
    }
}
