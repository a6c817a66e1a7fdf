//! The events of a session besides keys and rules: settings that are revised, counts that move,
//! options that are taken and left, attempts that fail, and plans of which more and more is done.
//!
//! The family sets the amount and the words; [`plan`] draws the moments. The user, the agent and tools
//! say it.

use serde_json::{Value, json};

use super::facts::Ways;
use super::grammar::{Grammar, bank};
use super::prose::Topic;
use super::random::{Random, whole};
use super::schedule::Schedule;
use super::workspace::{Action, Moment, Round, Workspace};
use proctor_sessions::ground_truth::{Fact, KeyValue, PlanItem, PlantedFact, Revision};

mod plan;

/// Something that happens in one message or over several.
#[derive(Debug)]
struct Item {
    /// The fact, as far as it has been said.
    fact: PlantedFact,
    /// The values to come, the next one last.
    ahead: Vec<String>,
}

/// The events of one session, and the facts that they have made so far.
#[derive(Debug)]
pub(crate) struct Timeline {
    random: Random,
    phrases: &'static Grammar,
    ways: Ways,
    /// The names of the chapters.
    chapters: Vec<String>,
    items: Vec<Item>,
    /// The items to which something happens.
    events: Schedule<usize>,
    /// Attempts that failed, and about which the agent said nothing yet.
    failed: Vec<usize>,
}

impl Item {
    /// The key with its next value, which is said in the message of that index.
    fn next(&mut self, message: usize) -> Option<KeyValue> {
        let value = self.ahead.pop()?;
        let (Fact::Update { key, values } | Fact::Numeric { key, values, .. }) =
            &mut self.fact.fact
        else {
            return None;
        };
        values.push(Revision::new(value.clone(), message));
        self.fact.evidence.push(message);
        let key = key.clone();
        Some(KeyValue { key, value })
    }
}

impl Timeline {
    /// How many chapters there are.
    pub(crate) fn chapters(&self) -> u64 {
        self.chapters.len() as u64
    }

    /// The name of a chapter.
    pub(crate) fn chapter(&self, at: u64) -> &str {
        let chapter = self.chapters.get(whole(at));
        chapter.map_or("it", String::as_str)
    }

    /// Whether there is something for the user to type.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        self.events.is_typed_due(progress)
    }

    /// The due sentences of the user, for the message of that index.
    pub(crate) fn typed(&mut self, progress: u64, message: usize) -> Vec<String> {
        let due = self.events.take(progress, usize::MAX, true).into_iter();
        let pairs = due.filter_map(|item| self.items[item].next(message));
        let revised = self.phrases.bank("revised");
        let said = pairs.map(|pair| self.ways.pair(&self.random, revised, &pair));
        said.collect()
    }

    /// The agent's conclusions from failed attempts, for the message of that index.
    pub(crate) fn conclusions(&mut self, message: usize) -> Vec<String> {
        let failed = std::mem::take(&mut self.failed);
        let concluded = failed.into_iter().filter_map(|at| {
            let fact = &mut self.items[at].fact;
            fact.evidence.push(message);
            let Fact::RejectedPath { approach, reason } = &fact.fact else {
                return None;
            };
            let slots = [("approach", approach.as_str()), ("reason", reason)];
            Some(
                self.ways
                    .say(&self.random, self.phrases.bank("given_up"), &slots),
            )
        });
        concluded.collect()
    }

    /// The agent's decisions and notes that are due now, and the changes that its tools show.
    /// `None` if nothing is due.
    pub(crate) fn shown(&mut self, moment: Moment, workspace: &dyn Workspace) -> Option<Round> {
        let taken = self.events.take(moment.progress, 2, false);
        if taken.is_empty() {
            return None;
        }
        let mut told = Round::default();
        for item in taken {
            self.tell(item, moment, workspace, &mut told);
        }
        Some(told)
    }

    /// Tells the next event of an item: the agent settles a question or replaces a plan, or a tool
    /// prints a new value or fails.
    fn tell(&mut self, at: usize, moment: Moment, workspace: &dyn Workspace, told: &mut Round) {
        let (random, ways, phrases) = (&self.random, self.ways, self.phrases);
        let (asking, answer) = (moment.asking, moment.asking + 1);
        let planted = &mut self.items[at].fact;
        match &mut planted.fact {
            Fact::Decision {
                key,
                choice,
                reason,
                rejected,
            } => {
                planted.evidence.push(asking);
                let mut all: Vec<&str> = rejected.iter().map(String::as_str).collect();
                all.push(choice);
                random.shuffle(&mut all);
                let slots = [
                    ("key", key.as_str()),
                    ("all", &all.join(", ")),
                    ("choice", choice),
                    ("reason", reason),
                ];
                let decided = ways.say(random, phrases.bank("decided"), &slots);
                told.paragraphs.push(decided);
            }
            Fact::Continuation { plan, items } => {
                let template = random.pick(phrases.bank("listing"));
                told.paragraphs
                    .push(about(template, &workspace.topic(), plan));
                if !planted.evidence.is_empty()
                    && let Some(next) = items.iter_mut().find(|item| item.done.is_none())
                {
                    next.done = Some(asking);
                }
                planted.evidence.push(asking);
                told.actions.push(write_list(plan, items));
            }
            Fact::RejectedPath { approach, reason } => {
                let place = workspace.place();
                planted.evidence.push(answer);
                self.failed.push(at);
                let slots = [
                    ("approach", approach.as_str()),
                    ("reason", reason),
                    ("fault", &random.draw("fault")),
                ];
                let mut action = workspace.failure(&place, moment);
                action.output.push('\n');
                action.output += &ways.say(random, phrases.bank("collapsed"), &slots);
                told.actions.push(action);
            }
            revised => {
                let place = workspace.place();
                let is_count = matches!(revised, Fact::Numeric { .. });
                let Some(pair) = self.items[at].next(answer) else {
                    return;
                };
                told.actions.push(if is_count {
                    let line = ways.pair(random, phrases.bank("counted"), &pair);
                    workspace.count(&place, moment, line)
                } else {
                    let line = ways.pair(random, bank("logged"), &pair);
                    workspace.settings(&place, moment, line)
                });
            }
        }
    }

    /// The facts that were said.
    pub(crate) fn facts(self) -> impl Iterator<Item = PlantedFact> {
        let facts = self.items.into_iter().map(|item| item.fact);
        facts.filter(|fact| !fact.evidence.is_empty())
    }
}

/// The agent writes a plan, of which the first open item is in progress.
fn write_list(plan: &str, items: &[PlanItem]) -> Action {
    let open = items.iter().filter(|item| item.done.is_none()).count();
    let mut first_open = Some("in_progress");
    let todos = items.iter().map(|item| {
        let status = match item.done {
            Some(_) => "done",
            None => first_open.take().unwrap_or("open"),
        };
        json!({"task": item.item, "status": status})
    });
    let todos: Vec<Value> = todos.collect();
    let count = todos.len();
    let output = format!("The list of `{plan}` was replaced: {open} of {count} left.");
    Action::new("TodoWrite", json!({"plan": plan, "todos": todos}), output)
}

/// A template about the topic, in a chapter of that name.
pub(crate) fn about(template: &str, topic: &Topic, chapter: &str) -> String {
    topic.fill(template, &[("chapter", chapter)])
}
