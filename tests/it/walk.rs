//! A walk through a session, call by call: what fired and why, what was asked, what it cost, and
//! what the context was afterwards.

use std::sync::{Arc, Mutex};

use proctor::context::{Applied, Entry, Origin};
use proctor::model::Request;
use proctor::model::scripted::Scripted;
use proctor::record::CellRecord;
use proctor::replay::observe::lost_before_read::LostBeforeRead;
use proctor::replay::observe::validity::Validity;
use proctor::replay::observe::{CallView, Observer};
use proctor::replay::{NoClock, Replayed, replay_observed};
use proctor::session::{ContentBlock, Message, Role, Session};
use proctor::step::CallResult;
use proctor::strategy::{Strategy, StrategySpec};
use proctor::window::Window;

use crate::support::{cell, models, prepared};

/// What came of a walk.
pub(crate) struct Walk {
    pub(crate) record: CellRecord,
    /// What the model was asked, in order.
    pub(crate) requests: Vec<Request>,
    /// The context of each call, one line per message.
    pub(crate) contexts: Vec<Vec<String>>,
}

impl Walk {
    /// Replays a session through a strategy; `reply` is the model.
    pub(crate) fn of(
        session: Session,
        spec: &StrategySpec,
        window: Window,
        reply: impl Fn(usize, &Request) -> CallResult + Send + Sync + 'static,
    ) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let contexts = Arc::new(Mutex::new(Vec::new()));
        let asked = requests.clone();
        let model = Scripted::new().reply(move |request| {
            let mut asked = asked.lock().unwrap();
            asked.push(request.clone());
            reply(asked.len() - 1, request)
        });
        let strategy = Box::new(spec.build().unwrap());
        let unseen = LostBeforeRead::new(window, strategy.blocks_agents_at().unwrap_or(1.0));
        let done = replay_observed(
            &prepared(session),
            cell(spec.name()),
            Replayed::Strategy(strategy, window),
            &models(model),
            &NoClock,
            vec![
                Box::new(Watch(contexts.clone())),
                Box::new(Validity::default()),
                Box::new(unseen),
            ],
        );
        let requests = requests.lock().unwrap().clone();
        let contexts = contexts.lock().unwrap().clone();
        Self { record: done.record, requests, contexts }
    }
}

#[derive(Debug)]
struct Watch(Arc<Mutex<Vec<Vec<String>>>>);

impl Observer for Watch {
    fn appended(&mut self, _: &Entry) {}

    fn patched(&mut self, _: &Applied) {}

    fn called(&mut self, view: &CallView<'_>) {
        let lines = view.context.entries().iter().map(line).collect();
        self.0.lock().unwrap().push(lines);
    }
}

/// One message in one line: origin, speaker, blocks.
pub(crate) fn line(entry: &Entry) -> String {
    let origin = match &entry.origin {
        Origin::Verbatim(at) => format!("{at}"),
        Origin::Edited { message, .. } => format!("{message} edited"),
        Origin::Derived(ranges) => {
            let ranges = ranges.iter().map(|range| format!("{}..{}", range.start, range.end));
            format!("of {}", ranges.collect::<Vec<_>>().join(", "))
        }
        Origin::Restored(at) => format!("{at} restored"),
        Origin::Authored => "authored".to_owned(),
    };
    format!("{origin}: {}", said_in(&entry.message))
}

/// A message in one line: speaker, blocks.
pub(crate) fn said_in(message: &Message) -> String {
    let role = match message.role() {
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let blocks = message.content().iter().zip(message.model_text());
    let blocks: Vec<String> = blocks
        .map(|(block, text)| match block {
            ContentBlock::ToolUse(tool) => format!("<{} {}>", tool.name, tool.id),
            ContentBlock::ToolResult(result) => {
                format!("<result {}> {}", result.tool_use_id, short(text))
            }
            _ => short(text),
        })
        .collect();
    format!("{role} {}", blocks.join(" "))
}

/// A text in few words.
fn short(text: &str) -> String {
    let text = text.replace('\n', "⏎");
    let chars = text.chars().count();
    if chars <= 100 {
        return text;
    }
    let head: String = text.chars().take(40).collect();
    let tail: String = text.chars().skip(chars - 20).collect();
    format!("{head}[{} more]{tail}", chars - 60)
}
