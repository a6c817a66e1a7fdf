//! What can be set on a summary, and what is made of it.

use super::Summarize;
use super::place::Placement;
use super::prompt::{Input, Mode, Offered, Previous, Prompt};
use super::select::{Covers, Select, Tail, UserMessages};
use crate::session::Role;
use crate::strategy::knob::KnobKind::{Choice, Flag, Fraction, Range, Text, Texts, Whole};
use crate::strategy::own_prompt::{self, OwnPrompt, Variable};
use crate::strategy::stage::summarize::retry::Retry;
use crate::strategy::{Built, Cut, Knob, KnobReader, Tools, template};

pub(super) const KNOBS: &[Knob] = &[
    Knob::new("template", Choice(template::WORDS, "plain")),
    own_prompt::PROMPT,
    own_prompt::PROMPT_TEXT,
    Knob::new("instructions", Text("")),
    Knob::new(
        "mode",
        Choice(&["fresh", "append", "append_without_tools"], "fresh"),
    ),
    Knob::new("model", Text("same")),
    Knob::new(
        "previous",
        Choice(&["as_message", "ignore", "update", "append"], "as_message"),
    ),
    Knob::new("input_first_chars", Whole(0, 0)),
    Knob::new("input_last_chars", Whole(0, 0)),
    Knob::new("input_result_chars", Whole(0, 0)),
    Knob::new("max_output_tokens", Whole(1, 4_096)),
    Knob::new("stream_retries", Range(0, 1_000, 0)),
    Knob::new("verify_pass", Flag(false)),
    Knob::new(
        "select",
        Choice(&["all", "until_tail", "every_rounds"], "all"),
    ),
    Knob::new("select_rounds", Whole(1, 21)),
    Knob::new("keep_first_messages", Whole(0, 0)),
    Knob::new("keep_last_messages", Whole(0, 0)),
    Knob::new("keep_last_rounds", Whole(0, 0)),
    Knob::new("keep_last_tokens", Whole(0, 0)),
    Knob::new("keep_last_fraction", Fraction(0.0)),
    Knob::new("keep_fraction_of", Choice(&["window", "history"], "window")),
    Knob::new("keep_min_tokens", Whole(0, 0)),
    Knob::new("keep_max_tokens", Whole(0, u64::MAX)),
    Knob::new("keep_to_fit", Flag(false)),
    Knob::new("cut", Choice(Cut::WORDS, "pair")),
    Knob::new("user_messages", Choice(&["none", "all", "budget"], "none")),
    Knob::new("user_messages_max_tokens", Whole(0, 20_000)),
    Knob::new("keep_markers", Texts),
    Knob::new("protected_tools", Texts),
    Knob::new("protect_tagged", Flag(false)),
    Knob::new("keep_unanswered", Flag(false)),
    Knob::new("role", Choice(&["user", "assistant"], "user")),
    Knob::new("prefix", Text("")),
    Knob::new("acknowledgement", Text("")),
    Knob::new("boundary", Flag(false)),
    Knob::new("transcript", Flag(false)),
    Knob::new("folder", Text(".transcripts")),
];

pub(super) fn build(knobs: &mut KnobReader<'_>) -> Built {
    let previous = match knobs.choice("previous")? {
        "ignore" => Previous::Ignore,
        "update" => Previous::Update,
        "append" => Previous::Append,
        _ => Previous::AsMessage,
    };
    let select = Select {
        covers: match knobs.choice("select")? {
            "until_tail" => Covers::UntilTail,
            "every_rounds" => Covers::EveryRounds(knobs.count("select_rounds")?),
            _ => Covers::All,
        },
        keep_first_messages: knobs.count("keep_first_messages")?,
        keeps_summaries: previous == Previous::Append,
        tail: Tail {
            messages: knobs.count("keep_last_messages")?,
            rounds: knobs.count("keep_last_rounds")?,
            tokens: knobs.tokens("keep_last_tokens")?,
            fraction: knobs.number("keep_last_fraction")?,
            is_of_history: knobs.choice("keep_fraction_of")? == "history",
            min: knobs.tokens("keep_min_tokens")?,
            max: knobs.tokens("keep_max_tokens")?,
            beside: knobs
                .flag("keep_to_fit")?
                .then_some(knobs.tokens("max_output_tokens")?),
        },
        cut: Cut::named(knobs.choice("cut")?),
        user_messages: match knobs.choice("user_messages")? {
            "all" => UserMessages::All,
            "budget" => UserMessages::Budget(knobs.tokens("user_messages_max_tokens")?),
            _ => UserMessages::None,
        },
        keep_markers: knobs.texts("keep_markers")?,
        protected: Tools::only(knobs.texts("protected_tools")?),
        protects_tagged: knobs.flag("protect_tagged")?,
        keeps_unanswered: knobs.flag("keep_unanswered")?,
    };
    if select.tail.min > select.tail.max {
        return Err(knobs.wrong("keep_min_tokens", "is more than `keep_max_tokens`"));
    }
    let mode = match knobs.choice("mode")? {
        "append" => Mode::Append(Offered::Tools),
        "append_without_tools" => Mode::Append(Offered::Nothing),
        _ => Mode::Fresh,
    };
    let mut unfit = Vec::new();
    if mode != Mode::Fresh {
        let why = "and where `mode` is `append` the conversation stands in front of the prompt";
        unfit.push((Variable::Conversation, why));
    }
    if previous != Previous::Update {
        let why = "which needs `previous = \"update\"`: else an earlier summary is not shown apart";
        unfit.push((Variable::PreviousSummary, why));
    }
    let own = OwnPrompt::read(knobs, &unfit)?;
    let template = template::named(knobs.choice("template")?);
    let prompt = Prompt {
        template: own.as_ref().map_or(template, OwnPrompt::template),
        own,
        instructions: knobs.text("instructions")?,
        when: knobs.when.clone(),
        mode,
        previous,
        input: Input {
            first: knobs.count("input_first_chars")?,
            last: knobs.count("input_last_chars")?,
            of_result: knobs.count("input_result_chars")?,
        },
        max_output: knobs.tokens("max_output_tokens")?,
        model: match knobs.text("model")?.as_str() {
            "same" => None,
            other => Some(other.into()),
        },
    };
    if prompt.model.as_deref() == Some("") {
        return Err(knobs.wrong("model", "must name a model, or be `same` or `fast`"));
    }
    let is_appended = matches!(prompt.mode, Mode::Append(_));
    if is_appended && prompt.model.is_some() {
        let problem = "must be `same` where `mode` is `append`: another model has another cache";
        return Err(knobs.wrong("model", problem));
    }
    if is_appended && let Some(limit) = prompt.input.limit() {
        return Err(knobs.wrong(limit, "has no meaning where `mode` is `append`"));
    }
    let retry = Retry {
        stream_retries: knobs.whole("stream_retries")?,
        guards: knobs.guards,
        verify: knobs.flag("verify_pass")?,
    };
    let place = Placement {
        role: match knobs.choice("role")? {
            "assistant" => Role::Assistant,
            _ => Role::User,
        },
        prefix: knobs.text("prefix")?,
        acknowledgement: knobs.text("acknowledgement")?,
        boundary: knobs.flag("boundary")?.then(|| knobs.when.clone()),
        folder: if knobs.flag("transcript")? {
            Some(knobs.text("folder")?)
        } else {
            None
        },
    };
    Ok(Box::new(Summarize {
        select,
        prompt,
        retry,
        place,
    }))
}
