//! Triggers: when a stage fires.

use std::fmt;

use super::situation::Situation;
use crate::context::Context;
use crate::settings::{Reader, Setting, SettingError, Value, with_suggestion};
use crate::tokens::Size;
use crate::units::Tokens;

/// A condition, with the unit it measures in.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    /// The condition.
    pub condition: Condition,
    /// The counter it measures with.
    pub counter: Measure,
    /// What it measures.
    pub scope: Scope,
    /// After firing, so many calls must pass before it fires again; 0 for none.
    pub min_rounds_between: u64,
}

/// When a stage fires.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// Before every call.
    Always,
    /// The measured size is above this many tokens.
    TokensOver(Tokens),
    /// The measured size is at least this share of the effective window.
    WindowFraction(f64),
    /// The measured size is at least the effective window less this many tokens.
    ReserveTokens(Tokens),
    /// The provider refused the prompt as too long.
    Overflow,
    /// The last response called the tool of this name.
    Tool(String),
    /// The context holds more messages than this.
    MessagesOver(u64),
    /// The context holds more tool results than this, cleared ones included.
    ResultsOver(u64),
    /// So many calls have passed since the stage last changed something, or since the beginning.
    RoundsEvery(u64),
    /// More minutes than this have passed since the model last answered. Never where the session
    /// has no times.
    IdleOverMinutes(u64),
    /// A phase of the work ended since the last call.
    Marker,
    /// All of these hold.
    All(Vec<Condition>),
    /// Any of these holds.
    Any(Vec<Condition>),
}

/// The unit a trigger measures in. It may differ from the true count, as it does in products; the
/// difference is itself worth measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The scenario's counter.
    Scenario,
    /// All characters together divided by four, rounded up.
    CharsPer4,
    /// All characters together divided by three, rounded up.
    CharsPer3,
    /// All bytes together divided by four, rounded up.
    BytesPer4,
    /// `4/3 × (characters / 4 + 2,000 per image or document)`, rounded up: the cautious estimate
    /// of Claude Code. A document's own JSON is counted beside its 2,000.
    Padded,
    /// What the last prompt of this cell truly took, characters divided by four for what was
    /// appended since, less what was freed since. Before the first prompt all of it is estimated.
    Usage,
}

/// What a trigger measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole prompt: system prompt, tool definitions and messages.
    Prompt,
    /// The messages alone.
    Messages,
}

/// The words for [`Measure`].
pub const MEASURES: &[&str] = &[
    "scenario", "chars/4", "chars/3", "bytes/4", "padded", "usage",
];

/// A condition as a `when` names it.
#[derive(Debug, Clone, Copy)]
pub struct ConditionKind {
    /// Its name: the key of a table, or the word alone.
    pub name: &'static str,
    /// What stands behind it.
    pub takes: Takes,
    /// When it holds.
    pub doc: &'static str,
}

/// What stands behind a condition's name.
#[derive(Debug, Clone, Copy)]
pub enum Takes {
    /// `true`; the name alone says the same.
    Word(fn() -> Condition),
    /// A whole number, from the first to the second.
    Whole(u64, u64, fn(u64) -> Condition),
    /// A number from 0 to 1.
    Fraction(fn(f64) -> Condition),
    /// Text.
    Text(fn(String) -> Condition),
    /// A list of conditions.
    Conditions(fn(Vec<Condition>) -> Condition),
}

/// All conditions.
pub const CONDITIONS: &[ConditionKind] = &[
    ConditionKind {
        name: "always",
        takes: Takes::Word(|| Condition::Always),
        doc: "before every call",
    },
    ConditionKind {
        name: "tokens_over",
        takes: Takes::Whole(0, u64::MAX, |limit| Condition::TokensOver(Tokens(limit))),
        doc: "above this size",
    },
    ConditionKind {
        name: "window_fraction",
        takes: Takes::Fraction(Condition::WindowFraction),
        doc: "at this share of the effective window",
    },
    ConditionKind {
        name: "reserve_tokens",
        takes: Takes::Whole(0, u64::MAX, |less| Condition::ReserveTokens(Tokens(less))),
        doc: "at the effective window less this",
    },
    ConditionKind {
        name: "overflow",
        takes: Takes::Word(|| Condition::Overflow),
        doc: "when the provider refused the prompt as too long",
    },
    ConditionKind {
        name: "tool",
        takes: Takes::Text(Condition::Tool),
        doc: "when the model called this tool",
    },
    ConditionKind {
        name: "messages_over",
        takes: Takes::Whole(0, u64::MAX, Condition::MessagesOver),
        doc: "above so many messages",
    },
    ConditionKind {
        name: "results_over",
        takes: Takes::Whole(0, u64::MAX, Condition::ResultsOver),
        doc: "above so many tool results, cleared ones included",
    },
    ConditionKind {
        name: "rounds_every",
        takes: Takes::Whole(1, u64::MAX, Condition::RoundsEvery),
        doc: "so many calls after the stage last changed something",
    },
    ConditionKind {
        name: "idle_over_minutes",
        takes: Takes::Whole(0, 1_000_000, Condition::IdleOverMinutes),
        doc: "more minutes than this after the model last answered",
    },
    ConditionKind {
        name: "marker",
        takes: Takes::Word(|| Condition::Marker),
        doc: "when a phase of the work ended",
    },
    ConditionKind {
        name: "all",
        takes: Takes::Conditions(Condition::All),
        doc: "when all of these hold",
    },
    ConditionKind {
        name: "any",
        takes: Takes::Conditions(Condition::Any),
        doc: "when any of these holds",
    },
];

impl Trigger {
    /// Fires before every call.
    pub fn always() -> Self {
        Self::of(Condition::Always)
    }

    /// Measures the whole prompt with the scenario's counter.
    pub fn of(condition: Condition) -> Self {
        Self {
            condition,
            counter: Measure::Scenario,
            scope: Scope::Prompt,
            min_rounds_between: 0,
        }
    }

    /// Reads a `when`: a word (`"always"`, `"overflow"`, `"marker"`) or a table with one condition and,
    /// optionally, `counter`, `scope` and `min_rounds_between`.
    pub fn read(path: &str, setting: &Setting) -> Result<Self, SettingError> {
        let mut trigger = Self::of(read_condition(path, setting, Depth::Outermost)?);
        if let Value::Table(table) = &setting.value {
            let mut reader = Reader::new(table, path);
            trigger.counter = match reader.choice("counter", MEASURES)? {
                Some("chars/4") => Measure::CharsPer4,
                Some("chars/3") => Measure::CharsPer3,
                Some("bytes/4") => Measure::BytesPer4,
                Some("padded") => Measure::Padded,
                Some("usage") => Measure::Usage,
                _ => Measure::Scenario,
            };
            trigger.scope = match reader.choice("scope", &["prompt", "messages"])? {
                Some("messages") => Scope::Messages,
                _ => Scope::Prompt,
            };
            trigger.min_rounds_between = reader
                .whole("min_rounds_between", 0, u64::MAX)?
                .unwrap_or(0);
        }
        Ok(trigger)
    }

    /// Whether it fires now. `last_fired` is the call at which the stage last changed something.
    pub fn holds(&self, context: &Context, cx: &Situation, last_fired: Option<usize>) -> bool {
        // A refused prompt cannot wait.
        if let Some(last) = last_fired
            && cx.overflow.is_none()
            && ((cx.call - last.min(cx.call)) as u64) < self.min_rounds_between
        {
            return false;
        }
        let size = match self.scope {
            Scope::Prompt => cx.prompt(context),
            Scope::Messages => context.size(),
        };
        let present = Present {
            size: self.counter.of(size, context, cx),
            messages: context.entries().len() as u64,
            results: context.results().len() as u64,
            calls: (cx.call - last_fired.unwrap_or(0).min(cx.call)) as u64,
            cx,
        };
        self.condition.holds(&present)
    }

    /// The trigger where all strategies fire at a `common` one: what fires before every call, or
    /// on overflow alone, stays as it is; everything else fires at the common trigger, and still
    /// answers an overflow if it did.
    #[must_use]
    pub fn matched_to(self, common: &Self) -> Self {
        match self.condition {
            Condition::Always | Condition::Overflow => self,
            condition if condition.mentions_overflow() => Self {
                condition: Condition::Any(vec![common.condition.clone(), Condition::Overflow]),
                ..common.clone()
            },
            _ => common.clone(),
        }
    }

    /// Whether the model has just asked for it by calling a tool.
    pub fn is_manual(&self, cx: &Situation) -> bool {
        self.condition.is_manual(cx)
    }

    /// Whether it can fire when a prompt was refused.
    pub fn answers_overflow(&self) -> bool {
        self.condition.mentions_overflow()
    }
}

impl Measure {
    /// `size` is a part of the prompt, and the messages are in it.
    fn of(self, size: Size, context: &Context, cx: &Situation) -> Tokens {
        match self {
            Self::Scenario => size.tokens,
            Self::CharsPer4 => Tokens(size.chars.div_ceil(4)),
            Self::CharsPer3 => Tokens(size.chars.div_ceil(3)),
            Self::BytesPer4 => Tokens(size.bytes.div_ceil(4)),
            // 4/3 × (chars / 4 + 2,000 × images), over one denominator.
            Self::Padded => Tokens((size.chars + 8_000 * context.images()).div_ceil(3)),
            Self::Usage if cx.last_usage.is_none() => Self::CharsPer4.of(size, context, cx),
            // last + estimate − freed, where freed = last + appended − now.
            Self::Usage => size.tokens + Tokens(cx.appended.chars.div_ceil(4)) - cx.appended.tokens,
        }
    }

    /// The word that settings use.
    fn name(self) -> &'static str {
        match self {
            Self::Scenario => "scenario",
            Self::CharsPer4 => "chars/4",
            Self::CharsPer3 => "chars/3",
            Self::BytesPer4 => "bytes/4",
            Self::Padded => "padded",
            Self::Usage => "usage",
        }
    }
}

/// What conditions are held against.
struct Present<'a> {
    size: Tokens,
    messages: u64,
    results: u64,
    /// Calls since the stage last changed something.
    calls: u64,
    cx: &'a Situation,
}

impl Condition {
    fn holds(&self, present: &Present<'_>) -> bool {
        let Present { size, cx, .. } = *present;
        let effective = cx.window.effective();
        match self {
            Self::Always => cx.overflow.is_none(),
            Self::TokensOver(limit) => size > *limit,
            Self::WindowFraction(fraction) => size.0 as f64 >= effective.0 as f64 * fraction,
            Self::ReserveTokens(reserve) => size >= effective - *reserve,
            Self::Overflow => cx.overflow.is_some(),
            Self::Tool(name) => cx.tool_requests.iter().any(|tool| &**tool == name),
            Self::MessagesOver(limit) => present.messages > *limit,
            Self::ResultsOver(limit) => present.results > *limit,
            Self::RoundsEvery(calls) => present.calls >= *calls,
            Self::IdleOverMinutes(minutes) => idle(cx).is_some_and(|idle| idle > *minutes * 60_000),
            Self::Marker => cx.phase_ended,
            Self::All(conditions) => conditions.iter().all(|inner| inner.holds(present)),
            Self::Any(conditions) => conditions.iter().any(|inner| inner.holds(present)),
        }
    }

    fn is_manual(&self, cx: &Situation) -> bool {
        match self {
            Self::Tool(name) => cx.tool_requests.iter().any(|tool| &**tool == name),
            Self::All(inner) | Self::Any(inner) => inner.iter().any(|one| one.is_manual(cx)),
            _ => false,
        }
    }

    fn mentions_overflow(&self) -> bool {
        match self {
            Self::Overflow => true,
            Self::All(conditions) | Self::Any(conditions) => {
                conditions.iter().any(Self::mentions_overflow)
            }
            Self::Always
            | Self::TokensOver(_)
            | Self::WindowFraction(_)
            | Self::ReserveTokens(_)
            | Self::Tool(_)
            | Self::MessagesOver(_)
            | Self::ResultsOver(_)
            | Self::RoundsEvery(_)
            | Self::IdleOverMinutes(_)
            | Self::Marker => false,
        }
    }
}

/// Milliseconds since the model last answered.
fn idle(cx: &Situation) -> Option<u64> {
    let idle = cx.now?.0.checked_sub(cx.last_answer?.0)?;
    u64::try_from(idle).ok()
}

/// What a trigger has as a whole; a condition within `all` or `any` cannot have its own.
const OF_THE_WHOLE: [&str; 3] = ["counter", "scope", "min_rounds_between"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    Outermost,
    Nested,
}

fn read_condition(path: &str, setting: &Setting, depth: Depth) -> Result<Condition, SettingError> {
    let wrong = |problem: String| SettingError::new(&setting.place, format!("`{path}` {problem}"));
    let words = || {
        let is_word = |kind: &&ConditionKind| matches!(kind.takes, Takes::Word(_));
        CONDITIONS.iter().filter(is_word).map(|kind| kind.name)
    };
    let listed = || format!("`{}`", words().collect::<Vec<_>>().join("`, `"));
    let table = match &setting.value {
        Value::Text(word) => {
            let found = CONDITIONS.iter().find_map(|kind| match kind.takes {
                Takes::Word(make) if kind.name == word => Some(make()),
                _ => None,
            });
            return found.ok_or_else(|| {
                let problem = format!("must be {} or a table, not `{word}`", listed());
                with_suggestion(wrong(problem), word, words())
            });
        }
        Value::Table(table) => table,
        _ => return Err(wrong(format!("must be {} or a table", listed()))),
    };
    let mut reader = Reader::new(table, path);
    let mut conditions = Vec::new();
    for kind in CONDITIONS {
        let key = kind.name;
        conditions.extend(match kind.takes {
            Takes::Word(make) => (reader.flag(key)? == Some(true)).then(make),
            Takes::Whole(low, high, make) => reader.whole(key, low, high)?.map(make),
            Takes::Fraction(make) => reader.fraction(key)?.map(make),
            Takes::Text(make) => reader.text(key)?.map(|text| make(text.to_owned())),
            Takes::Conditions(make) => match reader.setting(key).map(|inner| &inner.value) {
                None => None,
                Some(Value::List(items)) if !items.is_empty() => {
                    let path = format!("{path}.{key}");
                    let read = |item| read_condition(&path, item, Depth::Nested);
                    Some(make(items.iter().map(read).collect::<Result<_, _>>()?))
                }
                Some(_) => {
                    return Err(wrong(format!(
                        "is wrong: `{key}` must be a list of conditions, one at least"
                    )));
                }
            },
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
    match conditions.pop() {
        Some(condition) if conditions.is_empty() => Ok(condition),
        Some(_) => Err(wrong(
            "names several conditions: combine them with `all` or `any`".into(),
        )),
        None => {
            let names: Vec<_> = CONDITIONS.iter().map(|kind| kind.name).collect();
            let hint = format!("there are `{}`", names.join("`, `"));
            Err(wrong("names no condition".into()).with_hint(hint))
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)?;
        if self.counter != Measure::Scenario {
            write!(f, " ({})", self.counter.name())?;
        }
        match self.scope {
            Scope::Prompt => {}
            Scope::Messages => f.write_str(" (messages only)")?,
        }
        if self.min_rounds_between > 0 {
            write!(f, ", at most every {} calls", self.min_rounds_between)?;
        }
        Ok(())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |f: &mut fmt::Formatter<'_>, conditions: &[Self], word: &str| {
            for (at, condition) in conditions.iter().enumerate() {
                write!(f, "{}{condition}", if at > 0 { word } else { "" })?;
            }
            Ok(())
        };
        match self {
            Self::Always => f.write_str("before every call"),
            Self::TokensOver(limit) => write!(f, "over {limit} tokens"),
            Self::WindowFraction(fraction) => {
                write!(
                    f,
                    "at {} of the effective window",
                    super::percent(*fraction)
                )
            }
            Self::ReserveTokens(reserve) => write!(f, "at the effective window − {reserve} tokens"),
            Self::Overflow => f.write_str("on overflow"),
            Self::Tool(name) => write!(f, "when the model calls `{name}`"),
            Self::MessagesOver(limit) => write!(f, "over {limit} messages"),
            Self::ResultsOver(limit) => write!(f, "over {limit} tool results"),
            Self::RoundsEvery(calls) => write!(f, "every {calls} calls"),
            Self::IdleOverMinutes(minutes) => write!(f, "after {minutes} idle minutes"),
            Self::Marker => f.write_str("when a phase ends"),
            Self::All(conditions) => joined(f, conditions, " and "),
            Self::Any(conditions) => joined(f, conditions, " or "),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Place, Table};

    fn read(text: &str) -> String {
        let table = Table::parse("t.toml", text).unwrap();
        match Trigger::read("when", table.get("when").unwrap()) {
            Ok(trigger) => trigger.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_condition_is_read_as_it_is_shown() {
        for (text, shown) in [
            ("when = 'always'", "before every call"),
            ("when = { marker = true }", "when a phase ends"),
            (
                "when = { any = [{ tokens_over = 9 }, 'overflow'], counter = 'chars/4', min_rounds_between = 3 }",
                "over 9 tokens or on overflow (chars/4), at most every 3 calls",
            ),
            (
                "when = { all = [{ rounds_every = 2 }, { any = [{ tool = 'compact' }, 'marker'] }] }",
                "every 2 calls and when the model calls `compact` or when a phase ends",
            ),
        ] {
            assert_eq!(read(text), shown);
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (text, error) in [
            (
                "when = { all = [{ tokens_over = 9, counter = 'chars/4' }] }",
                "`t.toml`: line 1: `when.all.counter` is set for one of several conditions",
            ),
            (
                "when = { any = [] }",
                "`t.toml`: line 1: `when` is wrong: `any` must be a list of conditions, one at least",
            ),
            (
                "when = { tokens_over = 9, marker = true }",
                "`t.toml`: line 1: `when` names several conditions: combine them with `all` or `any`",
            ),
            (
                "when = 'markr'",
                "`t.toml`: line 1: `when` must be `always`, `overflow`, `marker` or a table, not \
                 `markr`, did you mean `marker`?",
            ),
        ] {
            assert_eq!(read(text), error);
        }
    }

    #[test]
    fn the_table_of_conditions_covers_what_it_makes() {
        for kind in CONDITIONS {
            let value = match kind.takes {
                Takes::Word(_) => "true",
                Takes::Whole(low, ..) => &low.to_string(),
                Takes::Fraction(_) => "0.5",
                Takes::Text(_) => "'x'",
                Takes::Conditions(_) => "['always']",
            };
            let setting = crate::settings::parse_value(
                &format!("{{ {} = {value} }}", kind.name),
                &Place::BuiltIn,
            );
            let read = Trigger::read("when", &setting).map(|trigger| trigger.condition);
            assert!(read.is_ok(), "{}: {read:?}", kind.name);
        }
    }
}
