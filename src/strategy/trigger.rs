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
}

/// What a trigger measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole prompt: system prompt, tool definitions and messages.
    Prompt,
    /// The messages alone.
    Messages,
}

const CONDITIONS: &[&str] = &[
    "always",
    "tokens_over",
    "window_fraction",
    "reserve_tokens",
    "overflow",
    "tool",
    "all",
    "any",
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

    /// Reads a `when`: a word (`"always"`, `"overflow"`) or a table with one condition and,
    /// optionally, `counter`, `scope` and `min_rounds_between`.
    pub fn read(path: &str, setting: &Setting) -> Result<Self, SettingError> {
        let mut trigger = Self::of(read_condition(path, setting)?);
        if let Value::Table(table) = &setting.value {
            let mut reader = Reader::new(table, path);
            trigger.counter = match reader.choice("counter", &["scenario", "chars/4"])? {
                Some("chars/4") => Measure::CharsPer4,
                _ => Measure::Scenario,
            };
            trigger.scope = match reader.choice("scope", &["prompt", "messages"])? {
                Some("messages") => Scope::Messages,
                _ => Scope::Prompt,
            };
            trigger.min_rounds_between = reader
                .whole("min_rounds_between", 0, u64::MAX)?
                .unwrap_or(0);
            for name in CONDITIONS {
                reader.setting(name);
            }
            reader.finish()?;
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
        self.condition.holds(self.counter.of(size), cx)
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
    fn of(self, size: Size) -> Tokens {
        match self {
            Self::Scenario => size.tokens,
            Self::CharsPer4 => Tokens(size.chars.div_ceil(4)),
        }
    }
}

impl Condition {
    fn holds(&self, size: Tokens, cx: &Situation) -> bool {
        let effective = cx.window.effective();
        match self {
            Self::Always => cx.overflow.is_none(),
            Self::TokensOver(limit) => size > *limit,
            Self::WindowFraction(fraction) => size.0 as f64 >= effective.0 as f64 * fraction,
            Self::ReserveTokens(reserve) => size >= effective - *reserve,
            Self::Overflow => cx.overflow.is_some(),
            Self::Tool(name) => cx.tool_requests.iter().any(|tool| &**tool == name),
            Self::All(conditions) => conditions.iter().all(|inner| inner.holds(size, cx)),
            Self::Any(conditions) => conditions.iter().any(|inner| inner.holds(size, cx)),
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
            | Self::Tool(_) => false,
        }
    }
}

fn read_condition(path: &str, setting: &Setting) -> Result<Condition, SettingError> {
    let wrong = |problem: String| SettingError::new(&setting.place, format!("`{path}` {problem}"));
    let table = match &setting.value {
        Value::Text(word) => {
            return match word.as_str() {
                "always" => Ok(Condition::Always),
                "overflow" => Ok(Condition::Overflow),
                other => Err(with_suggestion(
                    wrong(format!(
                        "must be `always`, `overflow` or a table, not `{other}`"
                    )),
                    other,
                    ["always", "overflow"],
                )),
            };
        }
        Value::Table(table) => table,
        _ => return Err(wrong("must be `always`, `overflow` or a table".to_owned())),
    };
    let mut reader = Reader::new(table, path);
    let mut conditions = Vec::new();
    if reader.flag("always")? == Some(true) {
        conditions.push(Condition::Always);
    }
    if reader.flag("overflow")? == Some(true) {
        conditions.push(Condition::Overflow);
    }
    if let Some(limit) = reader.whole("tokens_over", 0, u64::MAX)? {
        conditions.push(Condition::TokensOver(Tokens(limit)));
    }
    if let Some(fraction) = reader.fraction("window_fraction")? {
        conditions.push(Condition::WindowFraction(fraction));
    }
    if let Some(reserve) = reader.whole("reserve_tokens", 0, u64::MAX)? {
        conditions.push(Condition::ReserveTokens(Tokens(reserve)));
    }
    if let Some(tool) = reader.text("tool")? {
        conditions.push(Condition::Tool(tool.to_owned()));
    }
    for (key, make) in [
        ("all", Condition::All as fn(_) -> _),
        ("any", Condition::Any),
    ] {
        if let Some(inner) = reader.setting(key) {
            let Value::List(items) = &inner.value else {
                return Err(wrong(format!(": `{key}` must be a list of conditions")));
            };
            let inner: Result<Vec<_>, _> = items
                .iter()
                .map(|item| read_condition(&format!("{path}.{key}"), item))
                .collect();
            conditions.push(make(inner?));
        }
    }
    for key in ["counter", "scope", "min_rounds_between"] {
        reader.setting(key);
    }
    reader.finish()?;
    match conditions.pop() {
        Some(condition) if conditions.is_empty() => Ok(condition),
        Some(_) => Err(wrong(
            "names several conditions: combine them with `all` or `any`".into(),
        )),
        None => Err(wrong("names no condition".into())
            .with_hint(format!("there are `{}`", CONDITIONS.join("`, `")))),
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)?;
        match self.counter {
            Measure::Scenario => {}
            Measure::CharsPer4 => f.write_str(" (chars/4)")?,
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
            Self::All(conditions) => joined(f, conditions, " and "),
            Self::Any(conditions) => joined(f, conditions, " or "),
        }
    }
}
