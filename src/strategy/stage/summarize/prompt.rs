//! Makes the request to the summariser.

use super::overlap::Overlap;
use super::select::SummarySelection;
use crate::model::Task;
use crate::script::first_chars;
use crate::session::wire;
use crate::strategy::Trigger;
use crate::strategy::own_prompt::add;
use crate::strategy::stage::prelude::*;
use crate::strategy::template::{self, SummarySpan, Template, UPDATE};

/// How a summary is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct SummaryPrompt {
    template: String,
    #[serde(skip)]
    pub(super) own: Option<OwnPrompt>,
    instructions: String,
    /// When the stage fires: a person who asked for it may have said what to keep.
    #[serde(skip)]
    pub(super) when: Trigger,
    pub(super) mode: PromptMode,
    pub(super) previous: Previous,
    /// How many characters are shown of the JSON of the conversation; 0 for all.
    input_first_chars: usize,
    input_last_chars: usize,
    input_result_chars: usize,
    /// Only the newest messages within this size; 0 for all.
    input_last_tokens: Tokens,
    max_output_tokens: Tokens,
    pub(super) model: Arc<str>,
}

/// The place of the conversation in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum PromptMode {
    /// As JSON in one message.
    Fresh,
    /// As it is: the request goes on with the agent's own prompt, tools included.
    Append,
    /// The same, and the agent's tools are not offered.
    AppendWithoutTools,
}

/// The handling of earlier summaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Previous {
    AsMessage,
    Ignore,
    Update,
    Append,
}

/// The parts that are left out of a request because a longer one was refused.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RequestReduction {
    /// The number of messages from the front.
    pub(super) from: usize,
    /// This share of the tool results, those in the middle first.
    pub(super) results_percent: u64,
    /// What is behind this many characters of each text.
    pub(super) longest_chars: Option<usize>,
}

/// The text in place of a tool result that was left out.
const NO_RESULT: &str = "[left out]";

/// The text before the hint of a person who asked for the compaction.
const HINT: &str = "The user asked for this summary, and said:";

/// The text in front of a request that would begin with the model.
const CUT_OFF: &str = "[The beginning of the conversation was left out.]";

impl SummaryPrompt {
    /// How the answer is read, and what is asked unless a prompt of the user's own is.
    pub(super) fn template(&self) -> &'static Template {
        self.own.as_ref().map_or_else(|| template::named(&self.template), OwnPrompt::template)
    }

    /// Who is asked, where it is not the agent's model.
    pub(super) fn other_model(&self) -> Option<Arc<str>> {
        (&*self.model != "same").then(|| self.model.clone())
    }

    /// The knob of a limit on the conversation's JSON that is set, if one is.
    pub(super) fn limit(&self) -> Option<&'static str> {
        let limits = [
            ("input_first_chars", self.input_first_chars > 0),
            ("input_last_chars", self.input_last_chars > 0),
            ("input_result_chars", self.input_result_chars > 0),
            ("input_last_tokens", self.input_last_tokens > Tokens::ZERO),
        ];
        limits.into_iter().find(|(_, is_set)| *is_set).map(|(name, _)| name)
    }

    /// The entries that are shown, of the whole context.
    pub(super) fn shown(
        &self,
        entries: &[Entry],
        selected: &SummarySelection,
        overlap: &Overlap,
    ) -> Vec<Entry> {
        let covered = match self.mode {
            PromptMode::Fresh => selected.covered.clone(),
            // The agent's prompt from its beginning on: that is what the cache holds.
            PromptMode::Append | PromptMode::AppendWithoutTools => 0..selected.covered.end,
        };
        let (standing, rest) = entries.split_at(covered.start);
        let shown = overlap.in_front_of(&rest[..covered.len()], standing);
        let from = match self.input_last_tokens {
            Tokens::ZERO => 0,
            limit => cut::newest_within(&shown, limit).min(shown.len() - 1),
        };
        shown[from..].to_vec()
    }

    /// The request for a summary of `shown`.
    pub(super) fn request(
        &self,
        shown: &[Entry],
        span: SummarySpan,
        less: RequestReduction,
        cx: &Situation,
    ) -> Request {
        let shown = without_some_results(&shown[less.from.min(shown.len())..], less);
        let apart = matches!(self.previous, Previous::Ignore | Previous::Update);
        let (mut earlier, shown): (Vec<_>, Vec<_>) =
            shown.into_iter().partition(|message| apart && message.has_tag(Tag::CompactSummary));
        if self.previous == Previous::Ignore {
            earlier.clear();
        }
        let json = match self.mode {
            PromptMode::Fresh => self.json(&shown),
            PromptMode::Append | PromptMode::AppendWithoutTools => String::new(),
        };
        let (text, sections) = if let Some(own) = &self.own {
            own.request(&PromptValues {
                previous: &in_one(&earlier),
                focus: &self.focus(cx),
                ..PromptValues::new(&json, self.max_output_tokens, cx)
            })
        } else {
            let mut text = self.words(&earlier, span, cx);
            if self.mode == PromptMode::Fresh {
                text = format!("{text}\n\n{json}");
            }
            add(&mut text, self.template().around()[1]);
            (text, self.template().sections(span))
        };
        let task = Task::Summarise { sections };
        let mut request = Request::of_text(cx.purpose(), task, text, self.max_output_tokens);
        request.model = self.other_model();
        if self.mode != PromptMode::Fresh {
            request.system.clone_from(&cx.system);
            request.tools = (self.mode == PromptMode::Append).then(|| cx.tools.clone());
            let mut messages = shown;
            let first = messages.first();
            if first.is_some_and(|first| first.role() == Role::Assistant) {
                messages.insert(0, user(CUT_OFF.to_owned()));
            }
            messages.append(&mut request.messages);
            request.messages = messages;
        }
        request
    }

    /// The request that has a summary checked, in these words.
    pub(super) fn verification(mut request: Request, answer: &Arc<str>, words: String) -> Request {
        let answer = Message::text(Role::Assistant, answer.clone());
        request.messages.push(Arc::new(answer));
        request.messages.push(user(words));
        request
    }

    /// The request in words: rule, place of the conversation, template, instructions, the hint of
    /// who asked for it, earlier summary.
    fn words(&self, earlier: &[Arc<Message>], span: SummarySpan, cx: &Situation) -> String {
        let place = match self.mode {
            PromptMode::Fresh => {
                "Below is the record of a conversation between a user and a coding agent, as JSON."
            }
            PromptMode::Append | PromptMode::AppendWithoutTools => {
                "Stop the work here: this is no part of the task."
            }
        };
        let template = self.template();
        let mut text = template.around()[0].trim_end().to_owned();
        add(&mut text, &format!("{place} {}", template.body(span)));
        add(&mut text, &self.focus(cx));
        if !earlier.is_empty() {
            add(&mut text, UPDATE);
            add(&mut text, &in_one(earlier));
        }
        text
    }

    /// The focus beyond what every summary holds: instructions, and the hint of the person who
    /// asked for the compaction.
    fn focus(&self, cx: &Situation) -> String {
        let mut text = self.instructions.clone();
        if let Some(hint) = &cx.compact_hint
            && self.when.condition.is_manual(cx)
        {
            add(&mut text, &format!("{HINT} {hint}"));
        }
        text
    }

    fn json(&self, shown: &[Arc<Message>]) -> String {
        let limit = self.input_result_chars;
        let lines = shown.iter().map(|message| {
            let short = with_short_texts(message, limit, |block| limit > 0 && block.is_result());
            wire::anthropic_json(&short)
        });
        let mut json = format!("[{}]", lines.collect::<Vec<String>>().join(", "));
        if self.input_first_chars > 0 {
            json.truncate(first_chars(&json, self.input_first_chars).len());
        }
        if self.input_last_chars > 0
            && let Some((start, _)) = json.char_indices().nth_back(self.input_last_chars - 1)
        {
            json.drain(..start);
        }
        json
    }
}

/// Earlier summaries, part by part.
fn in_one(earlier: &[Arc<Message>]) -> String {
    let mut text = String::new();
    for message in earlier {
        for part in message.model_text() {
            add(&mut text, part);
        }
    }
    text
}

fn user(text: String) -> Arc<Message> {
    Arc::new(Message::text(Role::User, text))
}

/// The message with the blocks of this kind cut to so many characters.
fn with_short_texts(
    message: &Arc<Message>,
    chars: usize,
    is_cut: impl Fn(&ContentBlock) -> bool,
) -> Arc<Message> {
    let mut short = message.clone();
    let blocks = message.content().iter().zip(message.model_text());
    for (block, (_, text)) in blocks.enumerate().filter(|(_, (block, _))| is_cut(block)) {
        let first = first_chars(text, chars);
        if first.len() < text.len() {
            short = Arc::new(short.with_block_text(block, &first.into()));
        }
    }
    short
}

/// The messages, some of the tool results in the middle left out.
fn without_some_results(shown: &[Entry], less: RequestReduction) -> Vec<Arc<Message>> {
    let mut messages: Vec<Arc<Message>> = shown.iter().map(|entry| entry.message.clone()).collect();
    let results = messages.iter().enumerate().flat_map(|(at, message)| {
        let results = message.tool_results();
        results.map(move |(block, _)| (at, block))
    });
    let results: Vec<(usize, usize)> = results.collect();
    let total = results.len();
    let gone = (total as u64 * less.results_percent).div_ceil(100);
    let mut ranked: Vec<usize> = (0..total).collect();
    ranked.sort_by_key(|at| ((2 * at + 1).abs_diff(total), *at));
    ranked.truncate(usize::try_from(gone).unwrap_or(total));
    ranked.sort_unstable();
    for at in ranked {
        let (message, block) = results[at];
        messages[message] = Arc::new(messages[message].with_block_text(block, &NO_RESULT.into()));
    }
    if let Some(chars) = less.longest_chars {
        for message in &mut messages {
            *message = with_short_texts(message, chars, |block| !block.is_use());
        }
    }
    messages
}
