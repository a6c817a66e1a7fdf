//! A model writes a summary, and the summary takes the place of what it summarises.

use std::sync::Arc;

use crate::context::{Context, Edit, Entry, Origin, Patch};
use crate::model::{Purpose, Request, Response, Stop, Task};
use crate::session::{Message, Role, Tag, wire};
use crate::settings::SettingError;
use crate::step::{Answer, Step};
use crate::strategy::cut::Cut;
use crate::strategy::knob::{Default, Knob, KnobKind, KnobReader};
use crate::strategy::law::Law;
use crate::strategy::{Situation, Stage, StageError, StageKind};
use crate::units::{ContentHash, Tokens};

/// `kind = "summarize"`.
pub const KIND: StageKind = StageKind {
    name: "summarize",
    description: "a model writes a summary that takes the place of the messages",
    knobs: KNOBS,
    breaks: &[Law::KeepsLastUserMessage, Law::IdempotentAtRest],
    build,
};

const KNOBS: &[Knob] = &[
    Knob {
        name: "template",
        kind: KnobKind::Choice(&["continuity", "five-points", "plain"]),
        default: Default::Text("plain"),
        doc: "what the summary is asked to hold",
    },
    Knob {
        name: "input_first_chars",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "the summariser sees only so many characters of the messages' JSON; 0 for all",
    },
    Knob {
        name: "max_output_tokens",
        kind: KnobKind::Whole(1, u64::MAX),
        default: Default::Whole(4_096),
        doc: "the summary is cut off after this many tokens",
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
        name: "keep_last_messages",
        kind: KnobKind::Whole(0, u64::MAX),
        default: Default::Whole(0),
        doc: "so many messages stay behind the summary, which covers them all the same",
    },
    Knob {
        name: "cut",
        kind: KnobKind::Choice(Cut::WORDS),
        default: Default::Text("pair"),
        doc: "where it may be cut in front of them: `pair` never between a tool use and its result, \
              `none` anywhere; more stay where the cut has to move",
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

fn build(knobs: &mut KnobReader<'_>) -> Result<Box<dyn Stage>, SettingError> {
    Ok(Box::new(Summarize {
        template: match knobs.choice("template")? {
            "continuity" => &CONTINUITY,
            "five-points" => &FIVE_POINTS,
            _ => &PLAIN,
        },
        input_first_chars: knobs.count("input_first_chars")?,
        max_output: knobs.tokens("max_output_tokens")?,
        prefix: knobs.text("prefix")?,
        acknowledgement: knobs.text("acknowledgement")?,
        keep_last_messages: knobs.count("keep_last_messages")?,
        cut: Cut::named(knobs.choice("cut")?),
        transcript: knobs.flag("transcript")?,
        folder: knobs.text("folder")?,
    }))
}

/// What a summary is asked to hold.
#[derive(Debug)]
struct Template {
    instructions: &'static str,
    sections: &'static [&'static str],
}

static CONTINUITY: Template = Template {
    instructions: include_str!("../template/continuity.md"),
    sections: &[
        "Done so far",
        "State of the work",
        "Decisions and constraints",
        "Next steps",
    ],
};

static FIVE_POINTS: Template = Template {
    instructions: include_str!("../template/five-points.md"),
    sections: &[
        "Goal",
        "Findings",
        "Files changed",
        "Remaining work",
        "Constraints",
    ],
};

static PLAIN: Template = Template {
    instructions: include_str!("../template/plain.md"),
    sections: &[],
};

#[derive(Debug)]
struct Summarize {
    template: &'static Template,
    input_first_chars: usize,
    max_output: Tokens,
    prefix: String,
    acknowledgement: String,
    keep_last_messages: usize,
    cut: Cut,
    transcript: bool,
    folder: String,
}

impl Stage for Summarize {
    fn plan<'a>(
        &'a mut self,
        context: &Context,
        cx: &'a Situation,
    ) -> Step<'a, Result<Patch, StageError>> {
        let entries = context.entries();
        let kept = entries.len().saturating_sub(self.keep_last_messages);
        let replaced = self.cut.snap_back(entries, kept);
        if replaced == 0 {
            return Step::Done(Ok(Patch::default()));
        }
        let lines: Vec<String> = entries
            .iter()
            .map(|entry| wire::anthropic_json(&entry.message))
            .collect();
        let request = Request {
            purpose: if cx.overflow.is_some() {
                Purpose::Recovery
            } else {
                Purpose::Compaction
            },
            task: Task::Summarise {
                sections: self
                    .template
                    .sections
                    .iter()
                    .map(|&title| title.to_owned())
                    .collect(),
            },
            system: None,
            messages: vec![Arc::new(Message::text(Role::User, self.prompt(&lines)))],
            max_output: self.max_output,
        };
        let saved = if self.transcript {
            let text: Arc<str> = (lines.join("\n") + "\n").into();
            let name = ContentHash::of(text.as_bytes()).hex(12);
            vec![(format!("{}/transcript_{name}.jsonl", self.folder), text)]
        } else {
            Vec::new()
        };
        let origin = Origin::derived_from(&entries[..replaced]);
        Step::ask(request, move |answer| {
            Step::Done(summary_of(answer).map(|summary| {
                let text = format!("{}{summary}", self.prefix);
                let message = Message::text(Role::User, text).with_tags([Tag::CompactSummary]);
                let mut with = vec![Entry::new(origin, Arc::new(message), &cx.counts)];
                if !self.acknowledgement.is_empty() {
                    let message = Message::text(Role::Assistant, self.acknowledgement.as_str());
                    with.push(Entry::new(Origin::Authored, Arc::new(message), &cx.counts));
                }
                Patch {
                    edits: vec![Edit::Replace {
                        entries: 0..replaced,
                        with,
                    }],
                    reason: format!("a summary in place of {replaced} messages"),
                    saved,
                }
            }))
        })
    }
}

impl Summarize {
    fn prompt(&self, lines: &[String]) -> String {
        let mut json = format!("[{}]", lines.join(", "));
        if self.input_first_chars > 0
            && let Some((end, _)) = json.char_indices().nth(self.input_first_chars)
        {
            json.truncate(end);
        }
        format!("{}\n\n{json}", self.template.instructions.trim_end())
    }
}

/// The summary, if the answer is one. A history is never replaced by anything else.
fn summary_of(answer: Answer) -> Result<Arc<str>, StageError> {
    let Response { text, stop, .. } = answer?;
    match stop {
        Stop::ToolUse => Err(StageError::ToolCall),
        Stop::Refusal => Err(StageError::Refused),
        Stop::End | Stop::Length if text.trim().is_empty() => Err(StageError::EmptySummary),
        Stop::End | Stop::Length => Ok(text),
    }
}
