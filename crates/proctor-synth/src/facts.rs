//! The facts of a session: what is planted, who says it when, and how it is asked for.
//!
//! [`Facts::plan`] draws everything before the first message is written. The writer then asks, message
//! by message, for what the user, the agent and the tools have to say by now.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::family::Family;
use super::grammar::{Grammar, WORDS, bank, fill};
use super::random::{Random, whole};
use super::workspace::{Action, Round, WorkMoment, Workspace};
use super::{Language, Recipe};
use proctor_sessions::ground_truth::{
    Fact, Handle, Importance, KeyValue, PlanItem, PlantedFact, Revision,
};

mod gathered;
mod kinds;
mod planner;

use planner::Planner;

/// Events of the agent and its tools in one round, but for the last one; and where a family says
/// all facts early, so that there is room for them.
const AT_ONCE: usize = 3;
const AT_ONCE_EARLY: usize = 5;

/// Who says a part of a fact, or what shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    /// The user types it.
    User,
    /// The agent says it.
    Agent,
    /// The agent writes its list of steps: each time but the first, one more is done.
    List,
    /// A configuration file that is read once.
    Config,
    /// A line in the output of a command.
    Log,
    /// A comment in a source file that is read once.
    Comment,
    /// A page of working instructions that is read once.
    Runbook,
    /// The output of a command that fails.
    Failure,
    /// A command that prints what is set.
    Settings,
    /// A command that counts.
    Count,
}

/// The text of a fact.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// A sentence that is said as it is.
    Line(String),
    /// A sentence, and what it adds to a fact of several messages.
    Part(String, String),
    /// Keys with their values, which are said together: one is planted, and the others have its
    /// attribute, so that only its key shows which value is its own.
    Pairs(Vec<KeyValue>),
}

/// A text that waits for its moment.
#[derive(Debug)]
struct DueEvent {
    /// When it is due, in thousandths of the session.
    due: u64,
    channel: Channel,
    content: Content,
    /// Index of the fact that it says or is a part of. Two events of one fact are never in one
    /// message: they would have no order.
    fact: usize,
    /// Index of a second fact that it says: about a key beside the planted one.
    second_fact: Option<usize>,
}

/// How a planted fact is said: in which language, and in how many ways, from a single one, whose
/// words give every fact away, to as many as there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ways {
    most: usize,
    pub(crate) language: Language,
}

/// The facts of one session, as far as they were said, and what is still to come.
#[derive(Debug)]
pub(crate) struct Facts {
    /// Draws the words.
    random: Random,
    /// Draws what distinguishes one request from all others.
    requests: Random,
    phrases: &'static Grammar,
    ways: Ways,
    at_once: usize,
    /// The names of the chapters.
    chapters: Vec<String>,
    planted: Vec<PlantedFact>,
    /// The earliest first.
    events: Vec<DueEvent>,
    /// Attempts that failed, and about which the agent said nothing yet.
    failed: Vec<usize>,
}

impl Ways {
    pub(crate) fn of(recipe: &Recipe) -> Self {
        let most = recipe.phrasings.map_or(usize::MAX, |most| whole(most.into()));
        Self { most, language: recipe.language }
    }

    /// One of the first of these, which must not be none.
    fn pick<T: Copy>(self, random: &Random, bank: &[T]) -> T {
        random.pick(&bank[..bank.len().min(self.most)])
    }

    /// The template in the language of the facts.
    pub(crate) fn fill(self, template: &str, slots: &[(&str, &str)]) -> String {
        self.language.fill(template, slots)
    }

    /// One of the first of these templates.
    fn say(self, random: &Random, bank: &[&str], slots: &[(&str, &str)]) -> String {
        self.fill(self.pick(random, bank), slots)
    }

    /// One of the first of these templates, about a key and its value.
    fn pair(self, random: &Random, bank: &[&str], KeyValue { key, value }: &KeyValue) -> String {
        self.say(random, bank, &[("key", key), ("value", value)])
    }

    /// The question about a fact of that kind.
    pub(crate) fn ask(self, kind: &str, slots: &[(&str, &str)]) -> String {
        self.fill(WORDS.one(&format!("ask.{kind}")), slots)
    }
}

impl Channel {
    /// Whether the result of a tool says it.
    fn is_tool(self) -> bool {
        !matches!(self, Self::User | Self::Agent | Self::List)
    }
}

impl DueEvent {
    /// Whether the user can say it where nothing else said it in time.
    fn can_be_typed(&self) -> bool {
        let work = matches!(self.channel, Channel::Settings | Channel::Count);
        self.channel == Channel::User || (self.channel.is_tool() && !work)
    }
}

impl Content {
    /// The lines that say it by this channel.
    pub(crate) fn lines(&self, random: &Random, ways: Ways, channel: Channel) -> Vec<String> {
        match self {
            Self::Line(line) | Self::Part(line, _) => vec![line.clone()],
            Self::Pairs(pairs) => {
                let logged = matches!(channel, Channel::Config | Channel::Log | Channel::Comment);
                let phrases = bank(if logged { "logged" } else { "said" });
                pairs.iter().map(|pair| ways.pair(random, phrases, pair)).collect()
            }
        }
    }

    /// A configuration file in one of four notations: path and lines.
    pub(crate) fn configuration(&self, random: &Random, noun: &str) -> (String, Vec<String>) {
        let number = random.between(10, 99_999).to_string();
        let notation = random.word("notations");
        let rule = |part: &str| format!("{notation}.{part}");
        let slots = [("noun", noun), ("number", &number), ("notation", notation)];
        let mut text = random.say(&rule("head"), &slots);
        if let Self::Pairs(pairs) = self {
            let joint = random.word(&rule("joint"));
            for KeyValue { key, value } in pairs {
                let slots = [("key", &*key.replace(' ', joint)), ("value", value)];
                text += &random.say(&rule("pair"), &slots);
            }
        }
        text += &random.draw(&rule("foot"));
        let path = fill("deploy/{noun}-{number}.{notation}", &slots);
        (path, text.lines().map(str::to_owned).collect())
    }
}

/// A fact that was not said yet.
pub(crate) fn unsaid(kind: &str, number: usize, question: String, fact: Fact) -> PlantedFact {
    PlantedFact {
        id: format!("{kind}-{number:02}"),
        fact,
        question,
        evidence: Vec::new(),
        until: None,
        importance: Importance::Normal,
    }
}

impl Facts {
    /// Draws the facts of a session with about that number of rounds; their words are drawn when
    /// they are said.
    pub(crate) fn plan(
        family: &'static Family,
        recipe: &Recipe,
        rounds: u64,
        random: &Random,
    ) -> Self {
        let mut planner = Planner::new(family, recipe, rounds);
        planner.plan();
        let Planner { ways, chapters, facts, mut events, .. } = planner;
        events.sort_by_key(|event| (event.due, event.fact));
        Self {
            random: random.clone(),
            requests: Random::new(recipe.seed, "requests"),
            phrases: &family.phrases,
            ways,
            at_once: if family.said_by < 1_000 { AT_ONCE_EARLY } else { AT_ONCE },
            chapters,
            planted: facts,
            events,
            failed: Vec::new(),
        }
    }

    /// How many chapters there are.
    pub(crate) fn chapters(&self) -> u64 {
        self.chapters.len() as u64
    }

    /// The name of a chapter.
    pub(crate) fn chapter(&self, at: u64) -> &str {
        self.chapters.get(whole(at)).map_or("it", String::as_str)
    }

    /// Whether nothing is left that the user could say,
    pub(crate) fn is_all_said(&self) -> bool {
        !self.events.iter().any(DueEvent::can_be_typed)
    }

    /// and nothing that the agent and its tools could.
    pub(crate) fn is_all_shown(&self) -> bool {
        self.events.iter().all(|event| event.channel == Channel::User)
    }

    /// Whether there is something for the user to type.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        self.events.iter().any(|event| event.due < progress && event.channel == Channel::User)
    }

    /// A request as it is typed in the message of that index: with a reference of its own, which
    /// distinguishes the last one from all others and cannot be guessed.
    pub(crate) fn request(&mut self, text: String, message: usize) -> String {
        let last = self.planted.iter_mut().find_map(|fact| match &mut fact.fact {
            Fact::LastRequest { requests } => Some((requests, &mut fact.evidence)),
            _ => None,
        });
        let Some((requests, evidence)) = last else {
            return text;
        };
        let reference = self.requests.draw("reference");
        let slots = [("reference", reference.as_str())];
        let filed = self.ways.say(&self.requests, bank("filed"), &slots);
        let request = format!("{text}{}{filed}", self.ways.language.gap());
        requests.push(Revision::new(request.clone(), message));
        evidence.push(message);
        request
    }

    /// The lines that the user types in the message of that index besides a request; at the close all
    /// that were not said yet, of each fact the next part only.
    pub(crate) fn typed(&mut self, progress: u64, message: usize, closing: bool) -> Vec<String> {
        let mut facts = BTreeSet::new();
        let due = self.events.extract_if(.., |event| {
            let due = closing || (event.channel == Channel::User && event.due < progress);
            due && event.can_be_typed() && facts.insert(event.fact)
        });
        let due: Vec<DueEvent> = due.collect();
        if closing {
            self.events.clear();
        }
        let said = due.into_iter().map(|event| {
            let lines = event.content.lines(&self.random, self.ways, Channel::User);
            self.note(event, message);
            lines.join("\n")
        });
        said.collect()
    }

    /// The agent's conclusions from failed attempts, for the message of that index.
    pub(crate) fn conclusions(&mut self, message: usize) -> Vec<String> {
        let bank = self.phrases.bank("given_up");
        let concluded = std::mem::take(&mut self.failed).into_iter().filter_map(|at| {
            let planted = &mut self.planted[at];
            let Fact::RejectedPath { approach, reason } = &planted.fact else {
                return None;
            };
            planted.evidence.push(message);
            let slots = [("approach", approach.as_str()), ("reason", reason)];
            Some(self.ways.say(&self.random, bank, &slots))
        });
        concluded.collect()
    }

    /// The agent's words and calls for the facts that are due now, with the results of its tools; and
    /// whether they take the place of other work.
    pub(crate) fn shown(
        &mut self,
        moment: WorkMoment,
        workspace: &mut dyn Workspace,
    ) -> (Round, bool) {
        let late = |event: &DueEvent| event.due < moment.progress && event.channel != Channel::User;
        let most = match moment.progress {
            0..1_000 => self.at_once,
            _ => usize::MAX,
        };
        let mut facts = BTreeSet::new();
        let due: Vec<DueEvent> = self
            .events
            .extract_if(.., |event| facts.len() < most && late(event) && facts.insert(event.fact))
            .collect();
        let (mut round, mut is_work) = (Round::default(), false);
        for event in due {
            is_work |= matches!(
                event.channel,
                Channel::List | Channel::Failure | Channel::Settings | Channel::Count
            );
            let message = moment.asking + usize::from(event.channel.is_tool());
            match event.channel {
                Channel::User | Channel::Agent => {
                    let lines = event.content.lines(&self.random, self.ways, event.channel);
                    round.paragraphs.extend(lines);
                }
                Channel::List => {
                    let listing = self.random.pick(self.phrases.bank("listing"));
                    round.paragraphs.push(workspace.topic().fill(listing, &[]));
                    round.actions.extend(self.next_step(event.fact, message));
                }
                shown => round.actions.push(workspace.show(shown, &event.content, moment)),
            }
            self.note(event, message);
        }
        (round, is_work)
    }

    /// The agent writes a plan, of which one more step is done, unless it is new; the first open one
    /// is in progress.
    fn next_step(&mut self, at: usize, message: usize) -> Option<Action> {
        let PlantedFact { fact, evidence, .. } = &mut self.planted[at];
        let Fact::Continuation { plan, items } = fact else {
            return None;
        };
        let next = items.iter_mut().find(|item| item.done.is_none());
        if let Some(next) = next.filter(|_| !evidence.is_empty()) {
            next.done = Some(message);
        }
        let open = items.iter().filter(|item| item.done.is_none()).count();
        let mut first_open = Some("in_progress");
        let todos = items.iter().map(|PlanItem { item, done }| {
            let status = match done {
                Some(_) => "done",
                None => first_open.take().unwrap_or("open"),
            };
            json!({"task": item, "status": status})
        });
        let todos: Vec<Value> = todos.collect();
        let output = format!("The list of `{plan}` was replaced: {open} of {} left.", todos.len());
        let input = json!({"plan": plan, "todos": todos});
        Some(Action::new("TodoWrite", input, output))
    }

    /// The message of that index says an event.
    fn note(&mut self, event: DueEvent, message: usize) {
        for at in [event.fact].into_iter().chain(event.second_fact) {
            self.planted[at].evidence.push(message);
        }
        match (&mut self.planted[event.fact].fact, event.content) {
            (Fact::RejectedPath { .. }, _) => self.failed.push(event.fact),
            (
                Fact::Order { events: values, .. }
                | Fact::Update { values, .. }
                | Fact::Numeric { values, .. },
                Content::Part(_, value),
            ) => values.push(Revision::new(value, message)),
            (Fact::OpenHandle { handles, .. }, Content::Part(_, name)) => {
                match handles.iter_mut().find(|known| known.name == name) {
                    Some(known) => known.ended = Some(message),
                    None => handles.push(Handle { name, started: message, ended: None }),
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
