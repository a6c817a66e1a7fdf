//! What can be set on a summary, and what is made of it.

use super::Summarize;
use super::place::Placement;
use super::prompt::{Input, Mode, Offered, Previous, Prompt};
use super::select::{Covers, Select, Tail, UserMessages};
use crate::session::Role;
use crate::settings::SettingError;
use crate::strategy::Stage;
use crate::strategy::cut::Cut;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::own_prompt::{self, OwnPrompt, Variable};
use crate::strategy::stage::summarize::ladder::Ladder;
use crate::strategy::template;
use crate::strategy::tools::Tools;

pub(super) const KNOBS: &[Knob] = &[
    Knob {
        name: "template",
        kind: KnobKind::Choice(template::WORDS),
        default: Default::Text("plain"),
        doc: "what the summary is asked to hold",
    },
    own_prompt::PROMPT,
    own_prompt::PROMPT_TEXT,
    Knob {
        name: "instructions",
        kind: KnobKind::Text,
        default: Default::Text(""),
        doc: "said to the summariser beside the template: what a person or a hook adds",
    },
    Knob {
        name: "mode",
        kind: KnobKind::Choice(&["fresh", "append", "append_without_tools"]),
        default: Default::Text("fresh"),
        doc: "`fresh` sends the messages as JSON in a prompt of its own; `append` goes on with \
              the agent's own prompt, system prompt and tools included, and so reads its cache; \
              `append_without_tools` offers no tools, and so reads none of a cache whose prefixes \
              begin with them",
    },
    Knob {
        name: "model",
        kind: KnobKind::Text,
        default: Default::Text("same"),
        doc: "who writes the summary: `same` is the agent's model, `fast` its provider's small one \
              as the price file names it, anything else a model that a price file knows; its \
              calls are billed at its prices. Only `same` can have `mode = \"append\"`: another \
              model has another cache",
    },
    Knob {
        name: "previous",
        kind: KnobKind::Choice(&["as_message", "ignore", "update", "append"]),
        default: Default::Text("as_message"),
        doc: "earlier summaries: `as_message` summarised like any message; `ignore` not shown; \
              `update` shown apart, to be continued; `append` left where they are, in front of \
              the new one",
    },
    Knob {
        name: "input_first_chars",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "in `fresh` mode: the summariser sees only so many characters of the messages' \
              JSON, from its beginning; 0 for all",
    },
    Knob {
        name: "input_last_chars",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "the same, from its end",
    },
    Knob {
        name: "input_result_chars",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "in `fresh` mode: the summariser sees only so many characters of each tool \
              result; 0 for all",
    },
    Knob {
        name: "max_output_tokens",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(4_096),
        doc: "the summary is cut off after this many tokens",
    },
    Knob {
        name: "stream_retries",
        kind: KnobKind::Whole(0, 1_000),
        default: Default::Whole(0),
        doc: "a request that failed on the way is sent again so often; each is billed",
    },
    Knob {
        name: "verify_pass",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "the summariser is asked a second time, to check and correct its summary",
    },
    Knob {
        name: "select",
        kind: KnobKind::Choice(&["all", "until_tail", "every_rounds"]),
        default: Default::Text("all"),
        doc: "what the summary covers: `all`, what stays behind it too; `until_tail` only what \
              it replaces; `every_rounds` so many rounds at a time, as `select_rounds` says",
    },
    Knob {
        name: "select_rounds",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(21),
        doc: "for `every_rounds`: as many of the oldest API rounds are summarised, once they \
              are there",
    },
    Knob {
        name: "keep_first_messages",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "so many messages stay in front of the summary",
    },
    Knob {
        name: "keep_last_messages",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "so many messages stay behind the summary",
    },
    Knob {
        name: "keep_last_rounds",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "so many API rounds stay behind the summary",
    },
    Knob {
        name: "keep_last_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "the newest messages within so many tokens stay behind the summary",
    },
    Knob {
        name: "keep_last_fraction",
        kind: KnobKind::Fraction,
        default: Default::Fraction(0.0),
        doc: "the newest messages within this share of `keep_fraction_of` stay behind the \
              summary",
    },
    Knob {
        name: "keep_fraction_of",
        kind: KnobKind::Choice(&["window", "history"]),
        default: Default::Text("window"),
        doc: "what `keep_last_fraction` is a share of: the effective window, or all messages",
    },
    Knob {
        name: "keep_min_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "the share is at least so many tokens",
    },
    Knob {
        name: "keep_max_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(u64::MAX),
        doc: "the share is at most so many tokens",
    },
    Knob {
        name: "keep_to_fit",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "the newest messages stay that fit into the window beside the longest summary (of \
              which no more than a quarter of the window is kept free)",
    },
    Knob {
        name: "cut",
        kind: KnobKind::Choice(Cut::WORDS),
        default: Default::Text("pair"),
        doc: "where it may be cut: `pair` never between a tool use and its result, `none` \
              anywhere. Where a number of messages or rounds is kept, more stay where the cut \
              has to move; where a budget is kept, fewer",
    },
    Knob {
        name: "user_messages",
        kind: KnobKind::Choice(&["none", "all", "budget"]),
        default: Default::Text("none"),
        doc: "messages a user typed that stay in front of the summary, oldest first; of a \
              `budget` the newest, and the one that crosses it without its middle",
    },
    Knob {
        name: "user_messages_max_tokens",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(20_000),
        doc: "the budget of `user_messages`; 20,000 in Codex",
    },
    Knob {
        name: "keep_markers",
        kind: KnobKind::Texts,
        default: Default::Empty,
        doc: "user messages that hold one of these texts are kept like typed ones: `<turn- \
              aborted>`",
    },
    Knob {
        name: "protected_tools",
        kind: KnobKind::Texts,
        default: Default::Empty,
        doc: "results of these tools stay behind the summary, with their calls; `class:todo` \
              names a class",
    },
    Knob {
        name: "protect_tagged",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "tool results in messages that the session tags `protected` stay behind the summary, \
              with their calls, whatever the tool: a read with critical data",
    },
    Knob {
        name: "keep_unanswered",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "tool uses that nothing answers stay behind the summary, as AgenticLoop's do; \
              providers refuse them, summarised or not",
    },
    Knob {
        name: "role",
        kind: KnobKind::Choice(&["user", "assistant"]),
        default: Default::Text("user"),
        doc: "whose message the summary is; providers refuse a conversation that begins with \
              an `assistant`",
    },
    Knob {
        name: "prefix",
        kind: KnobKind::Text,
        default: Default::Text(""),
        doc: "stands before the summary in its message",
    },
    Knob {
        name: "acknowledgement",
        kind: KnobKind::Text,
        default: Default::Text(""),
        doc: "an assistant message after the summary; empty for none",
    },
    Knob {
        name: "boundary",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "a message in front of the summary says what made the stage fire, how large the \
              prompt was, how many messages are summarised, and which message came last before \
              it",
    },
    Knob {
        name: "transcript",
        kind: KnobKind::Flag,
        default: Default::Flag(false),
        doc: "the messages are put aside as JSON lines before they are replaced",
    },
    Knob {
        name: "folder",
        kind: KnobKind::Text,
        default: Default::Text(".transcripts"),
        doc: "where transcripts are put",
    },
];

pub(super) fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
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
            fraction: knobs.fraction("keep_last_fraction")?,
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
        protected: Tools {
            only: knobs.texts("protected_tools")?,
            except: Vec::new(),
        },
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
    let ladder = Ladder {
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
        ladder,
        place,
    }))
}
