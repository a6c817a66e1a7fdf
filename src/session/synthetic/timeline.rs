//! What happens over a session besides keys and rules: settings that are revised, counts that move,
//! options taken and left, attempts that fail, and plans of which more and more is done.
//!
//! The family sets the amount and the words; [`plan`] draws the moments. The user, the agent and tools
//! say it.

use serde_json::{Value, json};

use super::facts::Ways;
use super::family::Phrases;
use super::grammar::WORDS;
use super::prose::Topic;
use super::random::Random;
use super::schedule::{Event, Schedule};
use super::workspace::{Action, Moment, Workspace};
use crate::session::ground_truth::{Fact, KeyValue, PlantedFact, Revision};

mod plan;

/// Something that happens to an item of the timeline.
#[derive(Debug)]
struct Happening {
    kind: Kind,
    /// Index of the item.
    item: usize,
    is_typed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// A decision falls.
    Decide,
    /// A setting gets its first or another value.
    Revise,
    /// A suite prints how many cases it has.
    Count,
    /// An approach fails.
    Fail,
    /// A plan is written, or its next step ticked off.
    Step,
}

impl Event for Happening {
    type Key = (Kind, usize);

    fn key(&self) -> (Kind, usize) {
        (self.kind, self.item)
    }

    fn is_typed(&self) -> bool {
        self.is_typed
    }
}

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
    phrases: &'static Phrases,
    ways: Ways,
    /// The names of the chapters.
    chapters: Vec<String>,
    items: Vec<Item>,
    events: Schedule<Happening>,
    /// Attempts that failed, and about which the agent said nothing yet.
    failed: Vec<usize>,
}

/// The agent's words and actions besides its work.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) paragraphs: Vec<String>,
    pub(crate) actions: Vec<Action>,
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
        let chapter = usize::try_from(at).ok();
        let chapter = chapter.and_then(|at| self.chapters.get(at));
        chapter.map_or("it", String::as_str)
    }

    /// Whether there is something for the user to type.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        self.events.is_typed_due(progress)
    }

    /// The due sentences of the user, for the message of that index.
    pub(crate) fn typed(
        &mut self,
        random: &mut Random,
        progress: u64,
        message: usize,
    ) -> Vec<String> {
        let due = self.events.take(progress, usize::MAX, true).into_iter();
        let pairs = due.filter_map(|event| self.items[event.item].next(message));
        let said = pairs.map(|pair| self.ways.pair(random, &self.phrases.revised, &pair));
        said.collect()
    }

    /// The agent's conclusions from failed attempts, for the message of that index.
    pub(crate) fn conclusions(&mut self, random: &mut Random, message: usize) -> Vec<String> {
        let failed = std::mem::take(&mut self.failed);
        let concluded = failed.into_iter().filter_map(|at| {
            let fact = &mut self.items[at].fact;
            fact.evidence.push(message);
            let Fact::RejectedPath { approach, reason } = &fact.fact else {
                return None;
            };
            let slots = [("approach", approach.as_str()), ("reason", reason)];
            Some(self.ways.say(random, &self.phrases.given_up, &slots))
        });
        concluded.collect()
    }

    /// What the agent decides and writes down now, and what its tools show of what changed. Nothing
    /// where nothing is due.
    pub(crate) fn shown(
        &mut self,
        random: &mut Random,
        moment: Moment,
        workspace: &dyn Workspace,
    ) -> Option<Told> {
        let taken = self.events.take(moment.progress, 2, false);
        if taken.is_empty() {
            return None;
        }
        let mut told = Told::default();
        for Happening { kind, item, .. } in taken {
            match kind {
                Kind::Decide => {
                    let decision = self.decide(random, item, moment.asking);
                    told.paragraphs.extend(decision);
                }
                Kind::Step => {
                    let template = random.pick(&self.phrases.listing);
                    let topic = workspace.topic(random);
                    if let Some((chapter, list)) = self.step(item, moment.asking) {
                        told.paragraphs.push(about(template, &topic, &chapter));
                        told.actions.push(list);
                    }
                }
                Kind::Revise | Kind::Count | Kind::Fail => {
                    let action = self.report(random, kind, item, moment, workspace);
                    told.actions.extend(action);
                }
            }
        }
        Some(told)
    }

    /// The agent settles a question.
    fn decide(&mut self, random: &mut Random, item: usize, message: usize) -> Option<String> {
        let fact = &mut self.items[item].fact;
        fact.evidence = vec![message];
        let Fact::Decision {
            key,
            choice,
            reason,
            rejected,
        } = &fact.fact
        else {
            return None;
        };
        let mut all: Vec<&str> = rejected.iter().map(String::as_str).collect();
        all.push(choice);
        random.shuffle(&mut all);
        let all = all.join(", ");
        let slots = [
            ("key", key.as_str()),
            ("all", &all),
            ("choice", choice),
            ("reason", reason),
        ];
        Some(self.ways.say(random, &self.phrases.decided, &slots))
    }

    /// A tool prints settings with a new value, or a count, or it fails; what it makes of a failure
    /// the agent says next.
    fn report(
        &mut self,
        random: &mut Random,
        kind: Kind,
        item: usize,
        moment: Moment,
        workspace: &dyn Workspace,
    ) -> Option<Action> {
        let (ways, phrases) = (self.ways, self.phrases);
        let place = workspace.place(random);
        let answer = moment.asking + 1;
        if kind != Kind::Fail {
            let pair = self.items[item].next(answer)?;
            return Some(if kind == Kind::Count {
                let line = ways.pair(random, &phrases.counted, &pair);
                workspace.count(random, &place, moment, line)
            } else {
                let line = ways.pair(random, WORDS.bank("logged"), &pair);
                workspace.settings(random, &place, moment, line)
            });
        }
        let fact = &mut self.items[item].fact;
        fact.evidence.push(answer);
        self.failed.push(item);
        let Fact::RejectedPath { approach, reason } = &fact.fact else {
            return None;
        };
        let slots = [
            ("approach", approach.as_str()),
            ("reason", reason),
            ("fault", &WORDS.say(random, "fault", &[])),
        ];
        let mut action = workspace.failure(random, &place, moment);
        action.output.push('\n');
        action.output += &ways.say(random, &phrases.collapsed, &slots);
        Some(action)
    }

    /// The agent writes a plan, or ticks off its next step: the chapter, and the list.
    fn step(&mut self, item: usize, message: usize) -> Option<(String, Action)> {
        let planted = &mut self.items[item].fact;
        let Fact::Continuation { plan, items } = &mut planted.fact else {
            return None;
        };
        if !planted.evidence.is_empty()
            && let Some(next) = items.iter_mut().find(|item| item.done.is_none())
        {
            next.done = Some(message);
        }
        planted.evidence.push(message);
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
        let input = json!({"plan": plan, "todos": todos});
        Some((plan.clone(), Action::new("TodoWrite", input, output)))
    }

    /// The facts that were said.
    pub(crate) fn facts(self) -> impl Iterator<Item = PlantedFact> {
        let facts = self.items.into_iter().map(|item| item.fact);
        facts.filter(|fact| !fact.evidence.is_empty())
    }
}

/// A template about the topic, in a chapter of that name.
pub(crate) fn about(template: &str, topic: &Topic, chapter: &str) -> String {
    topic.fill(template, &[("chapter", chapter)])
}
