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

const MEASURES: &[&str] = &[
    "scenario", "chars/4", "chars/3", "bytes/4", "padded", "usage",
];

const CONDITIONS: &[&str] = &[
    "always",
    "tokens_over",
    "window_fraction",
    "reserve_tokens",
    "overflow",
    "tool",
    "messages_over",
    "results_over",
    "rounds_every",
    "idle_over_minutes",
    "marker",
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

    /// Reads a `when`: a word (`"always"`, `"overflow"`, `"marker"`) or a table with one condition and,
    /// optionally, `counter`, `scope` and `min_rounds_between`.
    pub fn read(path: &str, setting: &Setting) -> Result<Self, SettingError> {
        let mut trigger = Self::of(read_condition(path, setting)?);
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

fn read_condition(path: &str, setting: &Setting) -> Result<Condition, SettingError> {
    let wrong = |problem: String| SettingError::new(&setting.place, format!("`{path}` {problem}"));
    let table = match &setting.value {
        Value::Text(word) => {
            return match word.as_str() {
                "always" => Ok(Condition::Always),
                "overflow" => Ok(Condition::Overflow),
                "marker" => Ok(Condition::Marker),
                other => Err(with_suggestion(
                    wrong(format!(
                        "must be `always`, `overflow`, `marker` or a table, not `{other}`"
                    )),
                    other,
                    ["always", "overflow", "marker"],
                )),
            };
        }
        Value::Table(table) => table,
        _ => {
            let problem = "must be `always`, `overflow`, `marker` or a table";
            return Err(wrong(problem.to_owned()));
        }
    };
    let mut reader = Reader::new(table, path);
    let mut conditions = Vec::new();
    if reader.flag("always")? == Some(true) {
        conditions.push(Condition::Always);
    }
    if reader.flag("overflow")? == Some(true) {
        conditions.push(Condition::Overflow);
    }
    if reader.flag("marker")? == Some(true) {
        conditions.push(Condition::Marker);
    }
    for (key, low, high, make) in [
        (
            "messages_over",
            0,
            u64::MAX,
            Condition::MessagesOver as fn(_) -> _,
        ),
        ("results_over", 0, u64::MAX, Condition::ResultsOver),
        ("rounds_every", 1, u64::MAX, Condition::RoundsEvery),
        (
            "idle_over_minutes",
            0,
            1_000_000,
            Condition::IdleOverMinutes,
        ),
    ] {
        if let Some(number) = reader.whole(key, low, high)? {
            conditions.push(make(number));
        }
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
