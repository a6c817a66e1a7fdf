//! A session while it is written: messages with times, ids and the size so far.

use std::sync::Arc;

use super::facts::Facts;
use super::family::{Family, Work};
use super::random::{Random, whole};
use super::screenshots::Screen;
use super::words::{Pace, SIZES};
use super::workspace::{Action, Talk, WorkMoment};
use super::{Length, Recipe, session_id, tools};
use proctor_sessions::tokens::CountedTexts;
use proctor_sessions::units::{ApiCallId, Timestamp, Tokens};
use proctor_sessions::{
    ContentBlock, JsonText, Message, Missing, Role, Session, SessionError, SessionParts, Source,
    Tag, ToolSchema, ToolUse,
};

/// Bytes of a token in results, roughly: it only bounds one result.
const BYTES_PER_TOKEN: u64 = 3;

/// A result may always have this many bytes, whatever share is requested.
const LEAST_ROOM: usize = 600;

/// Bytes that a result that says a fact has besides it, at most.
const LARGEST_ASIDE: usize = 9_000;

/// Tokens by which a session may be longer, at most, so that all of its facts are said.
const LAST_ROOM: u64 = 1_000;

/// Bytes of a huge result, from the fewest to the most.
pub(crate) const LARGE: (usize, usize) = (60_000, 500_000);

/// Writes one session, message by message.
pub(crate) struct Transcript<'a> {
    counts: &'a CountedTexts,
    pub(crate) pace: &'static Pace,
    recipe: &'a Recipe,
    pub(crate) random: Random,
    parts: SessionParts,
    /// Tokens that every call sends: the system prompt and the tools.
    fixed: Tokens,
    /// Tokens of all messages so far,
    said: Tokens,
    /// and those of tool results.
    observed: Tokens,
    /// The tokens of images so far.
    pictured: Tokens,
    screen: Option<Screen>,
    pub(crate) now: i64,
    pub(crate) calls: u64,
    uses: u64,
    /// How often the person was away.
    absences: u64,
}

impl<'a> Transcript<'a> {
    pub(crate) fn new(
        family: &Family,
        recipe: &'a Recipe,
        counts: &'a CountedTexts,
        system: &str,
        tools: Vec<ToolSchema>,
    ) -> Self {
        let (pace, has_screen) = match &family.work {
            Work::Tasks(tasks) => (&SIZES.tasks, tasks.screenshots),
            Work::Phases(_) => (&SIZES.phases, false),
        };
        let head_tokens = Some(recipe.head_tokens).filter(|tokens| *tokens > Tokens::ZERO);
        let missing = |tokens| Missing { system_prompt: true, tools: true, tokens: Some(tokens) };
        let random = Random::new(recipe.seed, &recipe.family);
        let mut transcript = Self {
            counts,
            pace,
            recipe,
            now: pace.first_morning,
            random: random.with_usual(recipe.result_percent.into()),
            parts: SessionParts {
                id: session_id(recipe),
                system: Some(Arc::from(system)),
                tools,
                model: Some(super::MODEL.to_owned()),
                context_window: Some(Tokens(recipe.window.map_or(200_000, u64::from))),
                source: Source {
                    format: super::FORMAT.to_owned(),
                    missing: head_tokens.map(missing),
                    ..Source::default()
                },
                ..SessionParts::default()
            },
            fixed: Tokens::ZERO,
            said: Tokens::ZERO,
            observed: Tokens::ZERO,
            pictured: Tokens::ZERO,
            screen: has_screen.then(|| Screen::new(recipe.seed)),
            calls: 0,
            uses: 0,
            absences: 0,
        };
        if transcript.is_measured() {
            let SessionParts { system, tools, .. } = &transcript.parts;
            let texts = system.iter().chain(tools.iter().map(ToolSchema::text));
            transcript.fixed = texts.map(|text| counts.size(text).tokens).sum();
        }
        transcript
    }

    /// Draws the day and the hour at which the session begins.
    pub(crate) fn set_out(&mut self) {
        self.now += self.random.milliseconds(0, 199) * 86_400_000;
        self.now += self.random.milliseconds(0, 299) * 60_000;
    }

    /// Counting every text costs most of the time, and is needed for some recipes only.
    fn is_measured(&self) -> bool {
        self.recipe.observation_percent.is_some() || matches!(self.recipe.length, Length::Tokens(_))
    }

    fn tokens(&self) -> Tokens {
        self.fixed + self.said + self.pictured
    }

    /// The index of the next message.
    pub(crate) fn next(&self) -> usize {
        self.parts.messages.len()
    }

    /// How far the session is, in thousandths, when the next message is written.
    pub(crate) fn progress(&self) -> u64 {
        match self.recipe.length {
            Length::Rounds(rounds) => (self.calls + 1) * 1_000 / u64::from(rounds),
            Length::Tokens(target) => self.tokens().0 * 1_000 / target.0,
        }
    }

    /// Whether it is long enough (but for the final answer), and whether the next request must be
    /// the last: unless the agent has a little room for what is left of the facts.
    pub(crate) fn ends(&self, facts: &Facts) -> (bool, bool) {
        match self.recipe.length {
            Length::Rounds(rounds) => {
                let rounds = u64::from(rounds);
                (self.calls + 1 >= rounds, self.calls + 2 >= rounds)
            }
            Length::Tokens(target) => {
                let (tokens, target) = (self.tokens().0, target.0);
                let room = if facts.is_all_shown() { 0 } else { (target / 10).min(LAST_ROOM) };
                (tokens >= target + room && facts.is_all_said(), tokens >= target + room)
            }
        }
    }

    /// The most bytes a result may have now: about a sixth of the session, so that one huge log is
    /// not all there is to a short one; and not much more than what is left to write.
    pub(crate) fn largest_result(&self) -> usize {
        let room = self.recipe.window.map_or(u64::MAX, |window| u64::from(window) / 4);
        whole(match self.recipe.length {
            Length::Rounds(rounds) => (u64::from(rounds) * 1_000).max(8_000).min(room),
            Length::Tokens(target) => (target.0 / 2).min(self.left(target)).min(room).max(900),
        })
    }

    /// The same where huge results are the point: half a megabyte, or half of the session.
    pub(crate) fn largest_huge_result(&self) -> usize {
        match self.recipe.length {
            _ if self.recipe.window.is_some() => self.largest_result(),
            Length::Rounds(_) => LARGE.1,
            Length::Tokens(target) => whole((target.0 / 2 * 4).min(self.left(target)).max(900)),
        }
    }

    /// About the bytes that are left to write.
    fn left(&self, target: Tokens) -> u64 {
        target.0.saturating_sub(self.tokens().0).saturating_mul(3)
    }

    /// The next round as drawn, with results of up to `most` bytes.
    pub(crate) fn moment(&self, most: usize) -> WorkMoment {
        WorkMoment {
            progress: self.progress(),
            asking: self.next(),
            now: self.now,
            most,
            least: 0,
            reads: 0,
            aside: (most / 3).min(LARGEST_ASIDE),
            scale_percent: 100,
            talk: Talk::AsItComes,
        }
    }

    /// The limits of the next round, so that results get the share that the recipe asks for: the
    /// further the share is off, the more the round leans the other way.
    pub(crate) fn lean(&self, moment: WorkMoment) -> WorkMoment {
        let Some(target) = self.recipe.observation_percent.map(u64::from) else {
            return moment;
        };
        let (said, observed) = (self.said.0, self.observed.0);
        let share = observed * 100 / said.max(1);
        // Whole files are read at their own size, so what is too large is capped as well.
        let (scale_percent, talk, cap) = match share {
            share if share + 8 < target => (400, Talk::Little, usize::MAX),
            share if share + 1 < target => (200, Talk::Little, usize::MAX),
            share if share > target + 4 => (12, Talk::Much, LEAST_ROOM),
            share if share > target => (40, Talk::Much, 2 * LEAST_ROOM),
            _ => (100, Talk::AsItComes, usize::MAX),
        };
        // One result lifts the share by six points at most: `(o + x) / (s + x) = t`, for x.
        let lifted = target + 6;
        let room = (lifted * said).saturating_sub(100 * observed) / (100 - lifted);
        let room = whole(room * BYTES_PER_TOKEN).min(cap).max(LEAST_ROOM);
        WorkMoment {
            most: moment.most.min(room),
            aside: moment.aside.min(room),
            scale_percent,
            talk,
            ..moment
        }
    }

    /// The person reads the new text, and is away before the next request in a percentage of cases.
    pub(crate) fn pass(&mut self, away_percent: u64) {
        self.wait(&self.pace.reading);
        if away_percent > 0 && !self.parts.messages.is_empty() && self.random.percent(away_percent)
        {
            // For a while, and for long: by turns, so that a session has both.
            let time = &SIZES.away[usize::from(self.absences % 2 == 1)];
            self.absences += 1;
            self.wait(time);
        }
    }

    /// The user types; at the end of a phase with a hint what a compaction here is to keep, which
    /// may be empty.
    pub(crate) fn typed(&mut self, text: String, phase_end: Option<String>) {
        let end = phase_end.as_ref().map(|_| Tag::PhaseEnd);
        let mut message = Message::text(Role::User, text);
        message.details.compact_hint = phase_end.filter(|hint| !hint.is_empty()).map(Into::into);
        self.push(message.with_tags([Tag::TypedUser].into_iter().chain(end)));
    }

    /// The agent answers.
    pub(crate) fn respond(&mut self, blocks: Vec<ContentBlock>) {
        self.wait(&self.pace.thinking);
        self.calls += 1;
        let mut message = Message::new(Role::Assistant, blocks);
        let call = format!("msg_{}{:05}", self.random.hex(14), self.calls);
        message.details.api_call = Some(ApiCallId(call.into()));
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
            let class = tools::class(action.tool);
            blocks.push(ContentBlock::ToolUse(Box::new(ToolUse {
                id: id.clone(),
                name: action.tool.into(),
                class,
                input: JsonText::of(&action.input),
            })));
            let shot = self.screen.as_mut().and_then(|screen| screen.shot(class));
            let text = ContentBlock::Text(action.output.into());
            let content = std::iter::once(text).chain(shot).collect();
            answers.push(ContentBlock::tool_result(id.clone(), content, action.failed));
            ids.push(id);
        }
        self.respond(blocks);
        self.wait(&SIZES.running);
        self.push(Message::new(Role::User, answers));
        ids
    }

    /// Tags a message that was written before.
    pub(crate) fn tag(&mut self, message: usize, tag: Tag) {
        if let Some(message) = self.parts.messages.get_mut(message) {
            Arc::make_mut(message).tags.set(tag, true);
        }
    }

    /// The session.
    pub(crate) fn finish(self) -> Result<Session, SessionError> {
        Session::new(self.parts)
    }

    fn wait(&mut self, time: &[(u64, u64)]) {
        let time = self.random.quantile(time).max(1);
        self.now += i64::try_from(time).unwrap_or(1);
    }

    fn push(&mut self, mut message: Message) {
        message.details.timestamp = Some(Timestamp(self.now));
        if self.is_measured() {
            let observed = message.tool_results().next().is_some();
            let texts = message.model_text().iter();
            let tokens = texts.map(|text| self.counts.size(text).tokens).sum();
            self.said += tokens;
            let pictured = message.blocks().map(|block| self.counts.images(&block));
            self.pictured += pictured.sum();
            if observed {
                self.observed += tokens;
            }
        }
        self.parts.messages.push(Arc::new(message));
    }
}
