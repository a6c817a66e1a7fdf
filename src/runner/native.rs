//! The window of a session's own model, as its product used it.

use crate::bill::Bill;
use crate::model::price::Prices;
use crate::replay::PreparedSession;
use crate::scenario::{LineSource, WindowSetting};
use crate::session::{RecordedCompaction, Session};
use crate::units::Tokens;
use crate::window::{AUTO_COMPACT_BUFFER, KnownBy, NativeWindow, Window};

/// The larger window of a model for which no price file names one: that of all models with two.
const LARGER: Tokens = Tokens(1_000_000);

/// Claude Code before this version keeps so much of a window for a response.
const FORMER_RESERVE: ([u64; 3], Tokens) = ([2, 1, 20], Tokens(32_000));

/// The native window of a session: what the recording says, else the model's, else 200,000. Where a
/// larger prompt was billed, the next larger window.
///
/// Claude Code uses a window of 200,000 tokens unless it is configured otherwise, whatever the
/// model offers, and compacts by itself at a fixed distance before its end: a bill beyond that line
/// without any automatic compaction was one in a larger window, where the model has one.
pub fn window(session: &Session, bill: &Bill, prices: &Prices) -> NativeWindow {
    let model = session.model().and_then(|model| prices.of(model)).map(|(_, price)| price);
    let offered = model.map_or(&[][..], |price| &price.windows);
    let smallest = offered.first().copied();
    let claude_code = is_claude_code(session);
    let max_output = if claude_code {
        model.and_then(|price| price.max_output).unwrap_or(Window::LARGEST_RESERVED_OUTPUT)
    } else {
        Tokens::ZERO
    };
    let (tokens, known_by) = match (session.context_window(), smallest) {
        (Some(recorded), _) => (recorded, KnownBy::Recording),
        (None, Some(smallest)) if claude_code => {
            (smallest.min(Window::DEFAULT_TOKENS), KnownBy::Model)
        }
        (None, Some(smallest)) => (smallest, KnownBy::Model),
        (None, None) => (Window::DEFAULT_TOKENS, KnownBy::Assumed),
    };
    let own = Window { max_output, ..Window::new(tokens) };
    let compacts = session.compactions().iter().any(RecordedCompaction::is_automatic);
    let largest = bill.largest();
    let effective = by_version(session, own).unwrap_or(own.effective());
    let passes_line = largest > effective - AUTO_COMPACT_BUFFER;
    let mut larger = match offered {
        [] => &[LARGER][..],
        offered => offered,
    }
    .iter()
    .filter(|larger| **larger > tokens && **larger >= largest);
    let next = if largest > tokens {
        Some(larger.next().copied().unwrap_or(largest))
    } else if claude_code && !compacts && passes_line {
        larger.next().copied()
    } else {
        None
    };
    NativeWindow {
        tokens: next.unwrap_or(tokens),
        max_output,
        known_by: next.map_or(known_by, |_| KnownBy::Bill),
    }
}

/// The window in which a session is replayed, whose own is `native`.
pub fn resolved(setting: &WindowSetting, native: NativeWindow, of: &PreparedSession) -> Window {
    setting.resolve(native, of.largest_prompt(), of.bill().scale(0).head)
}

/// The effective windows that Claude Code is known to work in where it is not that of `native`, each with
/// the first call that it holds for: its version's, and behind an automatic compaction the one that this
/// shows, which none before can know. None where the window is not the product's own.
pub fn product_windows(
    session: &Session,
    native: NativeWindow,
    setting: &WindowSetting,
) -> Vec<(usize, Tokens)> {
    let Some(line) = setting.line().filter(|_| is_claude_code(session)) else {
        return Vec::new();
    };
    let first = by_version(session, native.own()).map(|window| (0, window));
    let automatic = session.compactions().iter().filter(|event| event.is_automatic());
    let shown = automatic.filter(|_| line == LineSource::Recorded).filter_map(|event| {
        let calls = session.calls();
        let next = session.call_after(event.at);
        let line = event.pre_tokens.or_else(|| {
            let last = session.message(*calls[..next].last()?);
            Some(last.details.usage?.total())
        })?;
        Some((next, line + AUTO_COMPACT_BUFFER))
    });
    first.into_iter().chain(shown).collect()
}

/// The effective window of a version that keeps more for a response than later ones do.
///
/// Measured: versions 2.1.7 to 2.1.19 compact at 155,000 tokens of 200,000 (16 of 16 compactions), those
/// from 2.1.20 on at 167,000 (42 of 42). That is the output which it asks for, 32,000 at most, without
/// the limit of 20,000 that a summary has.
fn by_version(session: &Session, window: Window) -> Option<Tokens> {
    let numbers = session.source().version.as_deref()?.split(|one: char| !one.is_ascii_digit());
    let numbers: Vec<u64> = numbers.map_while(|one| one.parse().ok()).collect();
    let (later, reserve) = FORMER_RESERVE;
    (is_claude_code(session) && !numbers.is_empty() && numbers < later.to_vec())
        .then(|| window.tokens - reserve)
}

fn is_claude_code(session: &Session) -> bool {
    session.source().format == "claude-code"
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::scenario::WindowMode;
    use crate::session::{CompactedTo, Message, Role, SessionParts, Source, Tag};
    use crate::units::Usage;

    /// Four calls of Claude Code's, each billed 1,000 tokens more than the one before, and compactions before
    /// these of its messages.
    fn session(version: &str, compactions: &[(usize, &str, Option<u64>)]) -> Session {
        let messages = (0..8_u64).map(|at| {
            let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
            let mut message = Message::text(role, format!("message {at}"));
            if role == Role::Assistant {
                message.details.usage = Some(Usage::uncached(Tokens(at / 2 * 1_000), Tokens(7)));
            } else {
                message = message.with_tags([Tag::TypedUser]);
            }
            Arc::new(message)
        });
        let compactions = compactions.iter().map(|(at, trigger, tokens)| RecordedCompaction {
            at: *at,
            trigger: Some(trigger.to_owned().into()),
            pre_tokens: tokens.map(Tokens),
            usage: None,
            after: CompactedTo::Missing,
        });
        Session::new(SessionParts {
            id: "a".to_owned(),
            messages: messages.collect(),
            compactions: compactions.collect(),
            source: Source {
                format: "claude-code".to_owned(),
                version: Some(version.to_owned()),
                ..Source::default()
            },
            ..SessionParts::default()
        })
        .unwrap()
    }

    #[track_caller]
    fn check(session: &Session, line: LineSource, mode: WindowMode, expected: &[(usize, u64)]) {
        let setting = WindowSetting {
            mode,
            is_matched: false,
            line,
            max_output: None,
            overflow_reserve: Tokens::ZERO,
            head: None,
            floor: Tokens::ZERO,
        };
        let native = window(session, &Bill::default(), &Prices::built_in().unwrap());
        let lines = product_windows(session, native, &setting).into_iter();
        let lines = lines.map(|(from, window)| (from, (window - AUTO_COMPACT_BUFFER).0));
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn versions_before_2_1_20_compact_at_155_000() {
        let own = WindowMode::Native(None);
        for version in ["2.1.20", "2.2", "3.0.0", "2.1.100", "next", ""] {
            check(&session(version, &[]), LineSource::Recorded, own, &[]);
        }
        for version in ["2.1.19", "2.1.7", "2.1", "1.0.98", "2.1.19-beta.21"] {
            check(&session(version, &[]), LineSource::Rule, own, &[(0, 155_000)]);
        }
    }

    #[test]
    fn the_line_that_an_automatic_compaction_shows_holds_from_the_next_call_on() {
        let session = session(
            "2.1.19",
            &[
                (2, "manual", Some(9_000)),
                (4, "auto", Some(468_102)),
                (6, "auto", None),
                (8, "microcompact", Some(5)),
            ],
        );
        let own = WindowMode::Native(None);
        let shown = [(0, 155_000), (2, 468_102), (3, 2_007)];
        check(&session, LineSource::Recorded, own, &shown);
        check(&session, LineSource::Rule, own, &shown[..1]);
        for other in [WindowMode::Native(Some(Tokens(9))), WindowMode::Fit(0.6)] {
            check(&session, LineSource::Recorded, other, &[]);
        }
    }
}
