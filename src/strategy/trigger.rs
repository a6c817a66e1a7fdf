//! Triggers: when a stage fires.

use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

use super::knob::KEYS;
use super::situation::Situation;
use crate::context::{self, Applied, Context};
use crate::settings::{CheckedTable, Reader, Setting, SettingError};
use crate::tokens::{COUNTERS, Size};
use crate::units::Tokens;
use crate::window::WindowPart;

pub mod condition;
mod langchain;

pub use condition::Condition;
use condition::{Depth, Present, read_condition};

/// A condition, with the unit it measures in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trigger {
    /// The condition, which is read apart.
    #[serde(skip_deserializing)]
    pub condition: Condition,
    /// The counter it measures with.
    pub counter: TriggerUnit,
    /// The part of the prompt that it measures.
    pub scope: TriggerScope,
    /// The window that it measures against.
    pub window: WindowOf,
    /// The part of it, for conditions that name none: shares of the stage itself are measured against it, too.
    pub of: WindowPart,
    /// The number of calls that must pass after firing before it fires again; 0 for none.
    pub min_rounds_between: u64,
}

/// When a stage changed something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Fired {
    /// Before which call.
    pub call: usize,
    /// How many messages the user had typed by then.
    pub turn: usize,
}

/// The unit a trigger measures in. It may differ from the true count, as it does in products; the
/// difference is itself worth measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum TriggerUnit {
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
    /// The tokens that the last prompt of this cell truly took, plus characters divided by four for
    /// what was appended since, less what was freed since. Before the first prompt all of it is
    /// estimated.
    Usage,
    /// The same without what was appended: what the last call is known to have taken.
    LastUsage,
    /// [`Usage`](Self::Usage), plus the reasoning tokens of all turns before the last message that a
    /// person typed: Codex's `get_total_token_usage` (`codex-rs/core/src/context_manager/history.rs`).
    UsageAndReasoning,
    /// LangChain's `count_tokens_approximately`, of the messages. Every message is looked at before each call.
    LangChain,
    /// A counter that encodes. Where the scenario counts otherwise, every message is looked at before each
    /// call; each text is encoded once.
    Encoding(&'static str),
}

/// The measures that are not counters of texts, by the words that settings use.
const MEASURES: [(&str, TriggerUnit); 9] = [
    ("scenario", TriggerUnit::Scenario),
    ("chars/4", TriggerUnit::CharsPer4),
    ("chars/3", TriggerUnit::CharsPer3),
    ("bytes/4", TriggerUnit::BytesPer4),
    ("padded", TriggerUnit::Padded),
    ("usage", TriggerUnit::Usage),
    ("last_usage", TriggerUnit::LastUsage),
    ("usage_and_reasoning", TriggerUnit::UsageAndReasoning),
    ("langchain", TriggerUnit::LangChain),
];

/// The window that shares and reserves of a trigger are measured against.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "snake_case"))]
pub enum WindowOf {
    /// The effective window of the scenario.
    #[default]
    Scenario,
    /// The one that the recorded product is known to work in ([`Situation::product_window`]), where it is
    /// another.
    Product,
}

/// The part of a prompt that a trigger measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all(deserialize = "snake_case"))]
pub enum TriggerScope {
    /// The whole prompt: system prompt, tool definitions and messages.
    Prompt,
    /// The messages alone.
    Messages,
}

/// The words for [`TriggerUnit`]: the scenario's counter, the bill, and every counter by name.
pub fn measures() -> Vec<&'static str> {
    let counters: Vec<&str> = COUNTERS.iter().map(|(name, _)| *name).collect();
    let mut measures = MEASURES.map(|(name, _)| name).to_vec();
    measures.retain(|name| !counters.contains(name));
    [measures, counters].concat()
}

impl Default for Trigger {
    /// Fires before every call.
    fn default() -> Self {
        Self::always()
    }
}

impl Trigger {
    /// Fires before every call.
    pub fn always() -> Self {
        Self::of(Condition::Always)
    }

    /// Measures the whole prompt with the scenario's counter.
    pub fn of(condition: Condition) -> Self {
        Self {
            condition,
            counter: TriggerUnit::Scenario,
            scope: TriggerScope::Prompt,
            window: WindowOf::Scenario,
            of: WindowPart::default(),
            min_rounds_between: 0,
        }
    }

    /// Reads a `when`: a word (`"always"`, `"overflow"`, `"typed"`, `"marker"`, `"manual"`) or a table with one condition and,
    /// optionally, `counter`, `scope`, `window`, `of` and `min_rounds_between`.
    pub fn read(path: &str, setting: &Setting) -> Result<Self, SettingError> {
        let part = WindowPart::default();
        let condition = read_condition(path, setting, Depth::Outermost, part)?;
        let Some(table) = setting.as_table() else {
            return Ok(Self::of(condition));
        };
        KEYS.check(&mut Reader::new(table, path), "when")?;
        let keys = CheckedTable::unchecked(table, path, (&KEYS, "when"));
        let trigger = Self { condition, ..keys.read()? };
        if trigger.window == WindowOf::Product && trigger.of != WindowPart::Effective {
            let problem =
                format!("`{path}.of` beside `window = \"product\"`, of which one part is known");
            return Err(SettingError::new(&setting.place, problem)
                .with_hint("leave `of` out: it is the effective window"));
        }
        Ok(trigger)
    }

    /// Whether it fires now. `last_fired` says when the stage last changed something,
    /// `applied` what earlier stages changed in the same run of the pipeline.
    pub fn holds(
        &self,
        context: &Context,
        cx: &Situation,
        last_fired: Option<Fired>,
        applied: &[Applied],
    ) -> bool {
        let Fired { call, turn } = last_fired.unwrap_or_default();
        let since = [cx.call.saturating_sub(call), cx.turn.saturating_sub(turn)];
        let [calls, turns] = since.map(|since| since as u64);
        // A refused prompt cannot wait.
        if last_fired.is_some() && cx.overflow.is_none() && calls < self.min_rounds_between {
            return false;
        }
        let present = Present { calls, turns, ..self.present(context, cx, applied) };
        self.condition.holds(&present)
    }

    /// Whether the context is over one of the sizes that it waits for, whatever else it waits for;
    /// where a prompt was refused, whether it would be refused again.
    pub fn is_over(&self, context: &Context, cx: &Situation) -> bool {
        if cx.overflow.is_some() {
            return cx.window.overflows(cx.prompt(context));
        }
        self.condition.is_over(&self.present(context, cx, &[]))
    }

    fn present<'a>(
        &self,
        context: &Context,
        cx: &'a Situation,
        applied: &'a [Applied],
    ) -> Present<'a> {
        let product = cx.product_window.filter(|_| self.window == WindowOf::Product);
        Present {
            window: product.unwrap_or_else(|| cx.window.effective()),
            size: self.counter.of(self.scope, context, cx),
            messages: context.entries().len() as u64,
            results: context.result_count() as u64,
            calls: 0,
            turns: 0,
            images: context.attachments().images(),
            is_answered: context.answered() > 0,
            applied,
            cx,
        }
    }

    /// The trigger where all strategies fire at a `common` one: what fires before every call, on
    /// overflow alone, or after other stages alone stays as it is; everything else fires at the
    /// common trigger, still answers an overflow if it did, and still heeds what other stages did.
    #[must_use]
    pub fn matched_to(self, common: &Self) -> Self {
        let order = self.condition.order();
        if matches!(self.condition, Condition::Always | Condition::Overflow)
            || order.first() == Some(&self.condition)
        {
            return self;
        }
        let mut condition = common.condition.clone();
        if self.condition.answers_overflow() {
            condition = Condition::Any(vec![condition, Condition::Overflow]);
        }
        if !order.is_empty() {
            condition = Condition::All([vec![condition], order].concat());
        }
        Self { condition, ..common.clone() }
    }
}

impl<'de> Deserialize<'de> for TriggerUnit {
    /// Reads the word that settings use.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let counters = COUNTERS.iter().map(|(name, _)| (*name, Self::Encoding(name)));
        let mut known = MEASURES.into_iter().chain(counters);
        let found = known.find(|(known, _)| *known == name);
        Ok(found.map_or(Self::Scenario, |(_, measure)| measure))
    }
}

impl TriggerUnit {
    /// The size of the prompt, or of its messages alone.
    ///
    /// The scenario's counter sizes prompts as billed. Counters of a product's own count texts as the
    /// product does; the head, of which no text is known, counts as billed.
    fn of(self, scope: TriggerScope, context: &Context, cx: &Situation) -> Tokens {
        let (fixed, head) = match scope {
            TriggerScope::Prompt => (cx.fixed, cx.scale.head),
            TriggerScope::Messages => (Size::default(), Tokens::ZERO),
        };
        let texts = fixed + context.size();
        let own = match self {
            Self::Scenario => match scope {
                TriggerScope::Prompt => return cx.prompt(context),
                TriggerScope::Messages => texts.tokens,
            },
            Self::CharsPer4 => Tokens(texts.chars.div_ceil(4)),
            Self::CharsPer3 => Tokens(texts.chars.div_ceil(3)),
            Self::BytesPer4 => Tokens(texts.bytes.div_ceil(4)),
            // 4/3 × (chars / 4 + 2,000 × images), over one denominator.
            Self::Padded => {
                Tokens((texts.chars + 8_000 * context.attachments().count()).div_ceil(3))
            }
            Self::LangChain => {
                Tokens(fixed.chars.div_ceil(4)) + Tokens(langchain::tokens(context.entries()))
            }
            Self::UsageAndReasoning => {
                return Self::Usage.of(scope, context, cx) + cx.past_reasoning;
            }
            Self::Usage | Self::LastUsage => match cx.last_usage {
                None => Tokens(texts.chars.div_ceil(4)),
                // The bill of the last call, and an estimate of what was appended since, less one
                // of what was removed.
                Some(usage) => {
                    let last = match scope {
                        TriggerScope::Prompt => usage.total(),
                        TriggerScope::Messages => cx.last_messages.tokens,
                    };
                    let now = context.size().chars;
                    let then = cx.last_messages.chars + cx.appended.chars;
                    let freed = Tokens(then.saturating_sub(now).div_ceil(4));
                    let added = Tokens(now.saturating_sub(then).div_ceil(4));
                    let appended = match self {
                        Self::LastUsage => Tokens::ZERO,
                        _ => Tokens(cx.appended.chars.div_ceil(4)),
                    };
                    return last + appended + added - freed;
                }
            },
            Self::Encoding(name) if name == cx.counts.counter_name() => texts.tokens,
            Self::Encoding(name) => {
                // The names are those of counters: a test holds them together.
                let counts = cx.counts.by_counter(name);
                counts.map_or(texts.tokens, |counts| {
                    let entries = context.entries().iter();
                    let messages = entries.map(|entry| context::measure(&entry.message, &counts));
                    let fixed = match scope {
                        TriggerScope::Prompt => cx.fixed_by(&counts),
                        TriggerScope::Messages => Size::default(),
                    };
                    (fixed + messages.sum::<Size>()).tokens
                })
            }
        };
        head + own
    }

    /// The word that settings use.
    fn name(self) -> &'static str {
        let mut known = MEASURES.iter().filter(|(_, measure)| *measure == self);
        match self {
            Self::Encoding(name) => name,
            _ => known.next().map_or("", |(name, _)| name),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.condition.fmt(f)?;
        if self.counter != TriggerUnit::Scenario {
            write!(f, " ({})", self.counter.name())?;
        }
        match self.scope {
            TriggerScope::Prompt => {}
            TriggerScope::Messages => f.write_str(" (messages only)")?,
        }
        match self.window {
            WindowOf::Scenario => {}
            WindowOf::Product => f.write_str(" (the recorded product's window)")?,
        }
        if self.min_rounds_between > 0 {
            write!(f, ", at most every {} calls", self.min_rounds_between)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Place, SettingTable};

    fn read(text: &str) -> String {
        let table = SettingTable::parse("t.toml", text).unwrap();
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
            (
                "when = { all = [{ tokens_over = 9 }, { unless = 'memory' }, { after = 'snip' }] }",
                "over 9 tokens and unless `memory` did something and after `snip`",
            ),
            (
                "when = { reserve_tokens = 9, counter = 'usage_and_reasoning', window = 'product' }",
                "at the effective window − 9 tokens (usage_and_reasoning) (the recorded product's window)",
            ),
            (
                "when = { any = [{ window_fraction = 0.85 }, { reserve_tokens = 0, of = 'input' }], of = 'window' }",
                "at 85 % of the whole window or at the window less the output",
            ),
            (
                "when = { reserve_fraction = 0.1, of = 'input' }",
                "at the window less the output − 10 % of the whole",
            ),
            (
                "when = { reserve_tokens = 9, of = 'usable' }",
                "`t.toml`: line 1: `when.of` must be one of `window`, `input`, `effective`, not `\"usable\"`",
            ),
        ] {
            assert_eq!(read(text), shown);
        }
    }

    #[test]
    fn an_encoding_counts_as_if_the_scenario_did() {
        use crate::context::{Entry, Origin};
        use crate::session::{Message, Role};
        use crate::strategy::stage::trial::situation;
        use crate::tokens::{CountedTexts, counter};
        use std::sync::Arc;

        for name in ["o200k", "cl100k", "cl100k-content"] {
            let sized = |own: &str, scope: TriggerScope| {
                let counts = Arc::new(CountedTexts::new(counter(own).unwrap()));
                let mut cx = situation(counts.clone());
                let system: Arc<str> = "You are an agent, über alles.".into();
                cx.fixed = counts.size(&system);
                cx.system = Some(system);
                let mut context = Context::default();
                for text in ["fn main() {}", "naïve façade", "1234567"] {
                    let message = Arc::new(Message::text(Role::User, text));
                    context.append(Entry::new(Origin::Authored, message, &counts));
                }
                TriggerUnit::Encoding(name).of(scope, &context, &cx)
            };
            for scope in [TriggerScope::Prompt, TriggerScope::Messages] {
                assert_eq!(sized(name, scope), sized("chars/4", scope), "{name}");
                assert!(sized(name, scope) > Tokens(5));
            }
        }
        let table = SettingTable::parse("t.toml", "when = { tokens_over = 9, counter = 'cl100k' }")
            .unwrap();
        let read = Trigger::read("when", table.get("when").unwrap()).unwrap();
        assert_eq!(read.to_string(), "over 9 tokens (cl100k)");
        for (name, _) in COUNTERS {
            let text = format!("when = {{ tokens_over = 9, counter = '{name}' }}");
            let table = SettingTable::parse("t.toml", &text).unwrap();
            let read = Trigger::read("when", table.get("when").unwrap()).unwrap();
            assert_eq!(read.counter.name(), *name);
        }
    }

    #[test]
    fn usage_is_what_the_last_prompt_took_and_an_estimate_of_what_came_since() {
        use crate::context::{Entry, Origin};
        use crate::session::{Message, Role};
        use crate::strategy::stage::trial::situation;
        use crate::tokens::{CountedTexts, counter};
        use crate::units::Usage;
        use std::sync::Arc;

        let counts = Arc::new(CountedTexts::new(counter("o200k").unwrap()));
        let mut context = Context::default();
        let message = Arc::new(Message::text(Role::User, "word ".repeat(400)));
        context.append(Entry::new(Origin::Authored, message, &counts));
        let (size, mut cx) = (context.size(), situation(counts));
        let usage = |cx: &Situation| TriggerUnit::Usage.of(TriggerScope::Messages, &context, cx);
        // Before the first prompt all of it is estimated: 2,000 characters.
        assert_eq!(usage(&cx), Tokens(500));
        cx.last_usage = Some(Usage::uncached(Tokens(900), Tokens(30)));
        cx.last_messages = size;
        assert_eq!(usage(&cx), size.tokens);
        // Of a prompt the bill is known, answer included; of 1,000 characters that came since, 250
        // tokens are estimated, and of 600 that went, 150.
        let prompt = |cx: &Situation| TriggerUnit::Usage.of(TriggerScope::Prompt, &context, cx);
        assert_eq!(prompt(&cx), Tokens(930));
        cx.appended.chars = 1_000;
        cx.last_messages.chars -= 1_000;
        assert_eq!(prompt(&cx), Tokens(930 + 250));
        let last = |cx: &Situation| TriggerUnit::LastUsage.of(TriggerScope::Prompt, &context, cx);
        assert_eq!(last(&cx), Tokens(930));
        cx.last_messages.chars += 600;
        assert_eq!(prompt(&cx), Tokens(930 + 250 - 150));
        assert_eq!(last(&cx), Tokens(930 - 150));
        cx.past_reasoning = Tokens(70);
        let reasoning = TriggerUnit::UsageAndReasoning.of(TriggerScope::Prompt, &context, &cx);
        assert_eq!(reasoning, prompt(&cx) + Tokens(70));
    }

    #[test]
    fn the_window_of_the_recorded_product_counts_where_the_trigger_says_so() {
        use crate::strategy::stage::trial::situation;
        use crate::tokens::{CountedTexts, counter};
        use std::sync::Arc;

        let mut cx = situation(Arc::new(CountedTexts::new(counter("o200k").unwrap())));
        let mut trigger = Trigger::of(Condition::ReserveTokens(Tokens(0).into()));
        let holds =
            |trigger: &Trigger, cx: &Situation| trigger.holds(&Context::default(), cx, None, &[]);
        for (window, product, expected) in [
            (WindowOf::Scenario, None, false),
            (WindowOf::Product, None, false),
            (WindowOf::Scenario, Some(Tokens(0)), false),
            (WindowOf::Product, Some(Tokens(0)), true),
        ] {
            trigger.window = window;
            cx.product_window = product;
            assert_eq!(holds(&trigger, &cx), expected, "{window:?} {product:?}");
        }
    }

    #[test]
    fn a_common_trigger_leaves_the_order_of_stages_alone() {
        for (text, shown) in [
            ("when = { after = 'a' }", "after `a`"),
            (
                "when = { any = [{ after = 'a' }, { unless = 'b' }] }",
                "after `a` or unless `b` did something",
            ),
            ("when = { tokens_over = 9 }", "over 5 tokens"),
            ("when = { any = [{ tokens_over = 9 }, 'overflow'] }", "over 5 tokens or on overflow"),
            (
                "when = { all = [{ tokens_over = 9 }, { unless = 'a' }] }",
                "over 5 tokens and unless `a` did something",
            ),
        ] {
            let table = SettingTable::parse("t.toml", text).unwrap();
            let trigger = Trigger::read("when", table.get("when").unwrap()).unwrap();
            let common = Trigger::of(Condition::TokensOver(Tokens(5)));
            assert_eq!(trigger.matched_to(&common).to_string(), shown);
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
                "`t.toml`: line 1: `when` must be `always`, `overflow`, `typed`, `turn_over`, `marker`, `manual` or a table, not \
                 `markr`, did you mean `marker`?",
            ),
        ] {
            assert_eq!(read(text), error);
        }
    }

    #[test]
    fn the_table_of_conditions_covers_what_it_makes() {
        for key in KEYS.in_words("condition") {
            let value = match &*key.takes {
                "the word alone, or `true`" => "true",
                "whole number ≥ 0" | "whole number ≥ 1" | "whole number 0..=1000000" => "1",
                "number 0..=1" => "0.5",
                "list of conditions" => "['always']",
                _ => "'x'",
            };
            let setting = crate::settings::parse_value(
                &format!("{{ {} = {value} }}", key.name),
                &Place::BuiltIn,
            );
            let read = Trigger::read("when", &setting).map(|trigger| trigger.condition);
            assert!(read.is_ok(), "{}: {read:?}", key.name);
        }
    }
}
