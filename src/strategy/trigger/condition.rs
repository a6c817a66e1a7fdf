//! Conditions: what a trigger can wait for.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::context::Applied;
use crate::settings::{Reader, Setting, SettingError, SettingValue, with_suggestion};
use crate::strategy::knob::KEYS;
use crate::strategy::percent;
use crate::strategy::situation::Situation;
use crate::units::Tokens;
use crate::window::{Window, WindowPart};

/// When a stage fires.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "snake_case"))]
pub enum Condition {
    /// Before every call.
    #[default]
    Always,
    /// The measured size is above this many tokens.
    TokensOver(Tokens),
    /// The measured size is at least this share of the window.
    WindowFraction(Relative<f64>),
    /// The measured size is at least the window less this many tokens. A strategy is not run in a window that is no
    /// larger.
    ReserveTokens(Relative<Tokens>),
    /// The measured size is at least a part of the window less this share of the whole.
    ReserveFraction(Relative<f64>),
    /// The provider refused the prompt as too long.
    Overflow,
    /// The last response called the tool of this name.
    Tool(String),
    /// The context holds more messages than this.
    MessagesOver(u64),
    /// The context holds more tool results than this, cleared ones included.
    ResultsOver(u64),
    /// This number of calls has passed since the stage last changed something, or since the
    /// beginning.
    RoundsEvery(u64),
    /// The user has typed this many messages since the stage last changed something, or since the beginning.
    TurnsEvery(u64),
    /// The user has typed something since the model last answered.
    Typed,
    /// The last response called no tool: one invocation of the agent is over, and another begins.
    TurnOver,
    /// The context holds more images than this.
    ImagesOver(u64),
    /// The window of the agent's model is larger than this.
    WindowOver(Tokens),
    /// The window of the agent's model is smaller than this.
    WindowUnder(Tokens),
    /// More minutes than this have passed since the model last answered. Never where the session
    /// has no times.
    IdleOverMinutes(u64),
    /// A phase of the work ended since the last call, where a person would ask for a compaction,
    /// or one did.
    Marker,
    /// A person asked for a compaction since the last call: the recorded product compacted because
    /// a setting says so.
    Manual,
    /// The stage of this name changed something in this same run of the pipeline.
    After(String),
    /// It did not.
    Unless(String),
    /// All of these hold.
    All(Vec<Condition>),
    /// Any of these holds.
    Any(Vec<Condition>),
}

/// An amount, and the part of the window that it is measured against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "T")]
pub struct Relative<T> {
    amount: T,
    of: WindowPart,
}

impl<T> From<T> for Relative<T> {
    fn from(amount: T) -> Self {
        Self { amount, of: WindowPart::default() }
    }
}

/// The state that conditions are compared with.
pub(super) struct Present<'a> {
    pub(super) size: Tokens,
    /// The effective window that it is compared with.
    pub(super) window: Tokens,
    pub(super) messages: u64,
    pub(super) results: u64,
    /// Calls since the stage last changed something.
    pub(super) calls: u64,
    /// Messages that the user typed since then.
    pub(super) turns: u64,
    pub(super) images: u64,
    /// Whether the context holds an answer.
    pub(super) is_answered: bool,
    /// The patches that were applied so far in this run of the pipeline.
    pub(super) applied: &'a [Applied],
    pub(super) cx: &'a Situation,
}

impl Present<'_> {
    fn was_applied(&self, stage: &str) -> bool {
        self.applied.iter().any(|applied| &*applied.stage == stage)
    }
}

impl Condition {
    pub(super) fn holds(&self, present: &Present<'_>) -> bool {
        let Present { size, window: effective, cx, .. } = *present;
        match self {
            Self::Always => cx.overflow.is_none(),
            Self::TokensOver(_)
            | Self::WindowFraction(_)
            | Self::ReserveTokens(_)
            | Self::ReserveFraction(_) => {
                let line = self.line(cx.window, effective);
                line.is_some_and(|line| size >= line)
            }
            Self::Overflow => cx.overflow.is_some(),
            Self::Tool(name) => cx.tool_requests.iter().any(|tool| &**tool == name),
            Self::MessagesOver(limit) => present.messages > *limit,
            Self::ResultsOver(limit) => present.results > *limit,
            Self::RoundsEvery(calls) => present.calls >= *calls,
            Self::TurnsEvery(turns) => present.turns >= *turns,
            Self::Typed => cx.has_typed,
            Self::TurnOver => present.is_answered && cx.tool_requests.is_empty(),
            Self::ImagesOver(limit) => present.images > *limit,
            Self::WindowOver(limit) => cx.window.tokens > *limit,
            Self::WindowUnder(limit) => cx.window.tokens < *limit,
            Self::IdleOverMinutes(minutes) => idle(cx).is_some_and(|idle| idle > *minutes * 60_000),
            Self::Marker => cx.phase_ended || cx.was_asked,
            Self::Manual => cx.was_asked,
            Self::After(stage) => present.was_applied(stage),
            Self::Unless(stage) => !present.was_applied(stage),
            Self::All(conditions) => conditions.iter().all(|inner| inner.holds(present)),
            // After a refusal, the conditions that make it fire at other times do not count.
            Self::Any(conditions) => conditions.iter().any(|inner| {
                (cx.overflow.is_none() || inner.answers_overflow()) && inner.holds(present)
            }),
        }
    }

    /// The smallest size at which it holds, where it alone waits for a size: in this window, of which so much is
    /// effective.
    pub fn line(&self, window: Window, effective: Tokens) -> Option<Tokens> {
        let of = match self {
            Self::TokensOver(limit) => return Some(*limit + Tokens(1)),
            Self::WindowFraction(share) | Self::ReserveFraction(share) => share.of,
            Self::ReserveTokens(reserve) => reserve.of,
            _ => return None,
        };
        let whole = if of == WindowPart::Effective { effective } else { window.part(of) };
        match self {
            Self::ReserveTokens(reserve) => Some(whole - reserve.amount),
            Self::ReserveFraction(reserve) => Some(whole - window.tokens.fraction(reserve.amount)),
            Self::WindowFraction(share) => {
                let below = whole.fraction(share.amount);
                let reached = below.0 as f64 >= whole.0 as f64 * share.amount;
                Some(below + Tokens(u64::from(!reached)))
            }
            _ => None,
        }
    }

    /// The smallest size from which on it holds, whatever else is the case, where there is one.
    pub(crate) fn holds_from(&self, window: Window) -> Option<Tokens> {
        match self {
            Self::Always => Some(Tokens::ZERO),
            Self::WindowOver(limit) => (window.tokens > *limit).then_some(Tokens::ZERO),
            Self::WindowUnder(limit) => (window.tokens < *limit).then_some(Tokens::ZERO),
            Self::Any(inner) => inner.iter().filter_map(|one| one.holds_from(window)).min(),
            Self::All(inner) => {
                let mut lines = inner.iter().map(|one| one.holds_from(window));
                lines.try_fold(Tokens::ZERO, |most, line| Some(most.max(line?)))
            }
            other => other.line(window, window.effective()),
        }
    }

    /// At this share of the effective window.
    pub fn window_fraction(share: f64) -> Self {
        Self::WindowFraction(share.into())
    }

    /// The same, measured against this part of the window where it says no other.
    fn measured_against(mut self, part: WindowPart) -> Self {
        match &mut self {
            Self::WindowFraction(share) | Self::ReserveFraction(share) => share.of = part,
            Self::ReserveTokens(reserve) => reserve.of = part,
            _ => {}
        }
        self
    }

    /// The conditions that it combines; itself if it combines none.
    fn simple(&self) -> Vec<&Self> {
        match self {
            Self::All(inner) | Self::Any(inner) => inner.iter().flat_map(Self::simple).collect(),
            _ => vec![self],
        }
    }

    pub(crate) fn is_manual(&self, cx: &Situation) -> bool {
        self.simple().into_iter().any(|one| match one {
            Self::Tool(name) => cx.tool_requests.iter().any(|tool| &**tool == name),
            Self::Marker => cx.phase_ended || cx.was_asked,
            Self::Manual => cx.was_asked,
            _ => false,
        })
    }

    /// Whether it can hold when a prompt was refused. A stage that follows another does so then too.
    pub(crate) fn answers_overflow(&self) -> bool {
        self.simple().into_iter().any(|one| matches!(one, Self::Overflow | Self::After(_)))
    }

    /// Whether one of the sizes in it is exceeded.
    pub(super) fn is_over(&self, present: &Present<'_>) -> bool {
        self.simple().into_iter().any(|one| {
            let line = one.line(present.cx.window, present.window);
            line.is_some_and(|line| present.size >= line)
        })
    }

    /// The reserve in it that leaves no more of its part of the window than the least prompt, and that part: it would
    /// hold before every call. A share of nothing would, too.
    pub(crate) fn too_large_reserve(
        &self,
        window: Window,
        least: Tokens,
    ) -> Option<(Tokens, WindowPart)> {
        let (reserve, of) = match self {
            Self::ReserveTokens(reserve) => (reserve.amount, reserve.of),
            Self::ReserveFraction(reserve) => (window.tokens.fraction(reserve.amount), reserve.of),
            Self::WindowFraction(share) => {
                let whole = window.part(share.of);
                return (whole == Tokens::ZERO).then_some((whole, share.of));
            }
            Self::Any(inner) => {
                return inner.iter().find_map(|one| one.too_large_reserve(window, least));
            }
            Self::All(inner) => {
                let found = inner.iter().find_map(|one| one.too_large_reserve(window, least))?;
                // What else must hold says when it fires, or leaves small windows out.
                let idle = inner.iter().all(|one| match one {
                    Self::Always => true,
                    Self::WindowOver(limit) => *limit < found.0 && window.tokens > *limit,
                    Self::WindowUnder(limit) => window.tokens < *limit,
                    other => other.too_large_reserve(window, least).is_some(),
                });
                return idle.then_some(found);
            }
            _ => return None,
        };
        (reserve + least >= window.part(of)).then_some((reserve, of))
    }

    /// The stages it names.
    pub(crate) fn stages(&self) -> Vec<&str> {
        let named = self.simple().into_iter().filter_map(|one| match one {
            Self::After(stage) | Self::Unless(stage) => Some(stage.as_str()),
            _ => None,
        });
        named.collect()
    }

    /// The conditions on other stages that must hold whenever this one does, and depend on nothing
    /// else.
    pub(super) fn order(&self) -> Vec<Self> {
        match self {
            Self::After(_) | Self::Unless(_) => vec![self.clone()],
            Self::All(inner) => inner.iter().flat_map(Self::order).collect(),
            Self::Any(inner) if inner.iter().all(|one| !one.order().is_empty()) => {
                vec![self.clone()]
            }
            _ => Vec::new(),
        }
    }
}

/// Milliseconds since the model last answered.
fn idle(cx: &Situation) -> Option<u64> {
    let idle = cx.now?.0.checked_sub(cx.last_answer?.0)?;
    u64::try_from(idle).ok()
}

/// The names of all conditions.
pub fn names() -> Vec<&'static str> {
    KEYS.in_words("condition").iter().map(|key| key.name).collect()
}

/// The conditions that a word alone names.
pub fn words() -> Vec<&'static str> {
    KEYS.names_of("condition", "word")
}

fn of_json<T: DeserializeOwned>(setting: &Setting, json: Json) -> Result<T, SettingError> {
    serde_json::from_value(json)
        .map_err(|error: serde_json::Error| SettingError::new(&setting.place, error.to_string()))
}

/// The keys of a trigger as a whole; a condition within `all` or `any` cannot have its own.
const OF_THE_WHOLE: [&str; 4] = ["counter", "scope", "window", "min_rounds_between"];

/// The part of the window that a table names by `of`.
fn part_of(reader: &mut Reader<'_>) -> Result<Option<WindowPart>, SettingError> {
    reader.choice("of", &KEYS.words_of("when", "of"))?;
    let named = reader.setting("of");
    named.map(|named| of_json(named, named.value.plain())).transpose()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    Outermost,
    Nested,
}

pub(super) fn read_condition(
    path: &str,
    setting: &Setting,
    depth: Depth,
    part: WindowPart,
) -> Result<Condition, SettingError> {
    let table = match &setting.value {
        SettingValue::Text(word) if words().contains(&word.as_str()) => {
            return of_json(setting, json!(word));
        }
        SettingValue::Table(table) => table,
        value => {
            let problem = format!("must be `{}` or a table", words().join("`, `"));
            let SettingValue::Text(word) = value else {
                return Err(wrong(path, setting, &problem));
            };
            let error = wrong(path, setting, &format!("{problem}, not `{word}`"));
            return Err(with_suggestion(error, word, words()));
        }
    };
    let mut reader = Reader::new(table, path);
    KEYS.check(&mut reader, "condition")?;
    let part = part_of(&mut reader)?.unwrap_or(part);
    let mut conditions = Vec::new();
    for (name, own) in table.entries() {
        conditions.extend(match name.as_str() {
            "all" | "any" => {
                let Some(items) = own.as_list().filter(|items| !items.is_empty()) else {
                    let problem =
                        format!("is wrong: `{name}` must be a list of conditions, one at least");
                    return Err(wrong(path, setting, &problem));
                };
                let path = format!("{path}.{name}");
                let read =
                    items.iter().map(|item| read_condition(&path, item, Depth::Nested, part));
                let nested = read.collect::<Result<Vec<_>, _>>()?;
                Some(if name == "all" { Condition::All(nested) } else { Condition::Any(nested) })
            }
            word if words().contains(&word) => match own.value {
                SettingValue::Flag(true) => Some(of_json(own, json!(word))?),
                _ => None,
            },
            kind if names().contains(&kind) => {
                Some(of_json(own, json!({ kind: own.value.plain() }))?)
            }
            _ => None,
        });
    }
    for key in OF_THE_WHOLE {
        if let Some(setting) = reader.setting(key)
            && depth == Depth::Nested
        {
            let problem = format!("`{path}.{key}` is set for one of several conditions");
            return Err(SettingError::new(&setting.place, problem)
                .with_hint("it holds for the whole `when`: set it beside `all` or `any`"));
        }
    }
    reader.finish()?;
    let Some(condition) = conditions.pop() else {
        let hint = format!("there are `{}`", names().join("`, `"));
        return Err(wrong(path, setting, "names no condition").with_hint(hint));
    };
    if !conditions.is_empty() {
        let problem = "names several conditions: combine them with `all` or `any`";
        return Err(wrong(path, setting, problem));
    }
    Ok(condition.measured_against(part))
}

fn wrong(path: &str, setting: &Setting, problem: &str) -> SettingError {
    SettingError::new(&setting.place, format!("`{path}` {problem}"))
}

/// Writes conditions with a word between them.
fn joined(f: &mut fmt::Formatter<'_>, conditions: &[Condition], word: &str) -> fmt::Result {
    for (at, condition) in conditions.iter().enumerate() {
        write!(f, "{}{condition}", if at > 0 { word } else { "" })?;
    }
    Ok(())
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Always => f.write_str("before every call"),
            Self::TokensOver(limit) => write!(f, "over {limit} tokens"),
            Self::WindowFraction(Relative { amount, of }) => {
                write!(f, "at {} of {of}", percent(*amount))
            }
            Self::ReserveTokens(Relative { amount, of }) => match *amount {
                Tokens::ZERO => write!(f, "at {of}"),
                amount => write!(f, "at {of} − {amount} tokens"),
            },
            Self::ReserveFraction(Relative { amount, of }) => {
                write!(f, "at {of} − {} of the whole", percent(*amount))
            }
            Self::Overflow => f.write_str("on overflow"),
            Self::Tool(name) => write!(f, "when the model calls `{name}`"),
            Self::MessagesOver(limit) => write!(f, "over {limit} messages"),
            Self::ResultsOver(limit) => write!(f, "over {limit} tool results"),
            Self::RoundsEvery(calls) => write!(f, "every {calls} calls"),
            Self::TurnsEvery(turns) => write!(f, "every {turns} turns of the user"),
            Self::Typed => f.write_str("when the user has typed"),
            Self::TurnOver => f.write_str("when a turn is over"),
            Self::ImagesOver(limit) => write!(f, "over {limit} images"),
            Self::WindowOver(limit) => write!(f, "in windows over {limit} tokens"),
            Self::WindowUnder(limit) => write!(f, "in windows under {limit} tokens"),
            Self::IdleOverMinutes(minutes) => write!(f, "after {minutes} idle minutes"),
            Self::Marker => f.write_str("when a phase ends"),
            Self::Manual => f.write_str("when a person asks"),
            Self::After(stage) => write!(f, "after `{stage}`"),
            Self::Unless(stage) => write!(f, "unless `{stage}` did something"),
            Self::All(conditions) => joined(f, conditions, " and "),
            Self::Any(conditions) => joined(f, conditions, " or "),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::strategy::stage::trial::situation;
    use crate::tokens::{CharsPer4, CountedTexts};
    use crate::units::Timestamp;

    /// Whether a condition holds one below, at and one above the number it names.
    fn around(condition: &Condition, at: u64) -> [bool; 3] {
        let mut cx = situation(Arc::new(CountedTexts::new(Arc::new(CharsPer4))));
        cx.window = Window::new(Tokens(1_000));
        cx.last_answer = Some(Timestamp(1_000));
        [at - 1, at, at + 1].map(|number| {
            // A minute has 60,000 milliseconds: one of them is over.
            cx.now = i64::try_from(number).ok().map(|now| Timestamp(1_000 + now));
            condition.holds(&Present {
                window: cx.window.effective(),
                size: Tokens(number),
                messages: number,
                results: number,
                calls: number,
                turns: number,
                images: number,
                is_answered: true,
                applied: &[],
                cx: &cx,
            })
        })
    }

    #[test]
    fn what_is_over_is_strict_and_what_is_at_is_not() {
        let over = [false, false, true];
        let at = [false, true, true];
        for (condition, number, expected) in [
            (Condition::TokensOver(Tokens(500)), 500, over),
            (Condition::MessagesOver(50), 50, over),
            (Condition::ResultsOver(50), 50, over),
            (Condition::IdleOverMinutes(60), 3_600_000, over),
            (Condition::window_fraction(0.9), 900, at),
            (Condition::ReserveTokens(Tokens(130).into()), 870, at),
            (Condition::ReserveFraction(0.25.into()), 750, at),
            (Condition::RoundsEvery(7), 7, at),
            (Condition::TurnsEvery(7), 7, at),
            (Condition::ImagesOver(20), 20, over),
            // The window has 1,000 tokens.
            (Condition::WindowOver(Tokens(999)), 7, [true; 3]),
            (Condition::WindowOver(Tokens(1_000)), 7, [false; 3]),
            (Condition::WindowUnder(Tokens(1_001)), 7, [true; 3]),
            (Condition::WindowUnder(Tokens(1_000)), 7, [false; 3]),
        ] {
            assert_eq!(around(&condition, number), expected, "{condition}");
        }
    }

    #[test]
    fn a_reserve_leaves_room_for_the_least_prompt() {
        let reserve = Condition::ReserveTokens(Tokens(800).into());
        for (least, is_too_large) in [(0, false), (199, false), (200, true), (900, true)] {
            let window = Window::new(Tokens(1_000));
            let found = reserve.too_large_reserve(window, Tokens(least));
            assert_eq!(found.is_some(), is_too_large, "{least}");
        }
    }
}
