//! A session while it is written: messages with times, ids and the size so far.

use std::sync::Arc;

use super::code_review::act::Action;
use super::random::{Quantiles, Random};
use super::tools::Tool;
use super::{Length, Recipe, session_id};
use crate::session::{
    ContentBlock, JsonText, Message, Role, Session, SessionError, SessionParts, Source, Tag,
    ToolResult, ToolSchema, ToolUse,
};
use crate::tokens::CountedTexts;
use crate::units::{ApiCallId, Timestamp, Tokens};

/// Milliseconds between a tool result and the next response.
const THINKING_TIME: &Quantiles = &[
    (0, 2_500),
    (50_000, 14_000),
    (80_000, 40_000),
    (95_000, 110_000),
    (100_000, 240_000),
];

/// Milliseconds until a person has read an answer and typed the next request.
const READING_TIME: &Quantiles = &[(0, 20_000), (50_000, 90_000), (100_000, 280_000)];

/// Milliseconds that tools run.
const RUNNING_TIME: &Quantiles = &[(0, 40), (60_000, 900), (95_000, 20_000), (100_000, 110_000)];

/// Monday, 2 February 2026, 08:00 UTC.
const FIRST_MORNING: i64 = 1_770_019_200_000;

/// Writes one session, message by message.
pub(crate) struct Transcript<'a> {
    counts: &'a CountedTexts,
    length: Length,
    pub(crate) random: Random,
    system: Arc<str>,
    tools: Vec<ToolSchema>,
    messages: Vec<Arc<Message>>,
    tokens: Tokens,
    pub(crate) now: i64,
    pub(crate) calls: u64,
    uses: u64,
}

impl<'a> Transcript<'a> {
    pub(crate) fn new(
        recipe: &Recipe,
        counts: &'a CountedTexts,
        system: &str,
        tools: Vec<ToolSchema>,
    ) -> Self {
        let system: Arc<str> = Arc::from(system);
        let mut tokens = Tokens::ZERO;
        if let Length::Tokens(_) = recipe.length {
            let texts = tools.iter().map(ToolSchema::text);
            tokens = counts.size(&system).tokens;
            tokens += texts.map(|text| counts.size(text).tokens).sum();
        }
        let mut random = Random::new(recipe.seed, &recipe.family);
        let days = i64::try_from(random.below(200)).unwrap_or(0);
        let minutes = i64::try_from(random.below(300)).unwrap_or(0);
        Self {
            counts,
            length: recipe.length,
            now: FIRST_MORNING + days * 86_400_000 + minutes * 60_000,
            random,
            system,
            tools,
            messages: Vec::new(),
            tokens,
            calls: 0,
            uses: 0,
        }
    }

    /// The index of the next message.
    pub(crate) fn next(&self) -> usize {
        self.messages.len()
    }

    /// How far the session is, in thousandths, when the next message is written.
    pub(crate) fn progress(&self) -> u64 {
        match self.length {
            Length::Rounds(rounds) => (self.calls + 1) * 1_000 / u64::from(rounds),
            Length::Tokens(target) => self.tokens.0 * 1_000 / target.0,
        }
    }

    /// Whether it is long enough (but for the final answer), and whether the next request must be
    /// the last; `is_all_said` says that nothing waits for it.
    pub(crate) fn ends(&self, is_all_said: bool) -> (bool, bool) {
        match self.length {
            Length::Rounds(rounds) => {
                let rounds = u64::from(rounds);
                (self.calls + 1 >= rounds, self.calls + 2 >= rounds)
            }
            Length::Tokens(target) => {
                let reached = self.tokens >= target;
                (reached && is_all_said, reached)
            }
        }
    }

    /// The most bytes a result may have now: about a sixth of the session, and not much more than
    /// what is left to write.
    pub(crate) fn largest_result(&self) -> u64 {
        match self.length {
            Length::Rounds(rounds) => (u64::from(rounds) * 1_000).max(8_000),
            Length::Tokens(target) => (target.0 / 2)
                .min(target.0.saturating_sub(self.tokens.0).saturating_mul(3))
                .max(900),
        }
    }

    /// The user types.
    pub(crate) fn typed(&mut self, text: String, tags: &[Tag]) {
        self.wait(READING_TIME);
        let tags = [Tag::TypedUser].into_iter().chain(tags.iter().copied());
        self.push(Message::text(Role::User, text).with_tags(tags));
    }

    /// The agent answers.
    pub(crate) fn respond(&mut self, blocks: Vec<ContentBlock>) {
        self.wait(THINKING_TIME);
        self.calls += 1;
        let mut message = Message::new(Role::Assistant, blocks);
        let call = format!("msg_{}{:05}", self.random.hex(14), self.calls);
        message.api_call = Some(ApiCallId(call.into()));
        self.push(message);
    }

    /// The agent uses tools, and the tools answer; says which ids the tool uses got.
    pub(crate) fn act(
        &mut self,
        mut blocks: Vec<ContentBlock>,
        actions: Vec<Action>,
    ) -> Vec<Arc<str>> {
        let mut ids = Vec::new();
        let mut answers = Vec::new();
        for action in actions {
            self.uses += 1;
            let id: Arc<str> = format!("toolu_{}{:05}", self.random.hex(14), self.uses).into();
            let (name, class) = action.tool.name();
            blocks.push(ContentBlock::ToolUse(ToolUse {
                id: id.clone(),
                name: name.into(),
                class,
                input: JsonText::of(&action.input),
            }));
            answers.push(ContentBlock::ToolResult(ToolResult {
                tool_use_id: id.clone(),
                content: vec![ContentBlock::Text(action.output.into())],
                is_error: action.failed,
            }));
            ids.push(id);
        }
        self.respond(blocks);
        self.wait(RUNNING_TIME);
        self.push(Message::new(Role::User, answers));
        ids
    }

    /// The agent uses one tool of its own upkeep.
    pub(crate) fn keep_house(
        &mut self,
        said: String,
        tool: Tool,
        input: serde_json::Value,
        answer: &str,
    ) {
        let action = Action {
            tool,
            input,
            output: answer.to_owned(),
            failed: false,
        };
        self.act(vec![ContentBlock::Text(said.into())], vec![action]);
    }

    /// Tags a message that was written before.
    pub(crate) fn tag(&mut self, message: usize, tag: Tag) {
        if let Some(message) = self.messages.get_mut(message) {
            let tags: Vec<Tag> = message.tags.iter().copied().chain([tag]).collect();
            *message = Arc::new(Message::clone(message).with_tags(tags));
        }
    }

    /// The session.
    pub(crate) fn finish(self, recipe: &Recipe) -> Result<Session, SessionError> {
        Session::new(SessionParts {
            id: session_id(recipe),
            system: Some(self.system),
            tools: self.tools,
            messages: self.messages,
            compactions: Vec::new(),
            model: Some("synthetic-agent".to_owned()),
            context_window: Some(Tokens(200_000)),
            source: Source {
                format: "synthetic".to_owned(),
                ..Source::default()
            },
            resumed: None,
        })
    }

    fn wait(&mut self, time: &Quantiles) {
        let time = self.random.quantile(time).max(1);
        self.now += i64::try_from(time).unwrap_or(1);
    }

    fn push(&mut self, mut message: Message) {
        message.timestamp = Some(Timestamp(self.now));
        if let Length::Tokens(_) = self.length {
            let texts = message.model_text().iter();
            self.tokens += texts.map(|text| self.counts.size(text).tokens).sum();
        }
        self.messages.push(Arc::new(message));
    }
}
