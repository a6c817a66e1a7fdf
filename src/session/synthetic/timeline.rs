//! What happens over a session besides keys and rules: settings that are revised, counts that move,
//! options taken and left, attempts that fail, and plans of which more and more is done.
//!
//! The family says how much of it there is, and in which words. The schedule draws when it happens;
//! it is told in the words of the person, of the agent and of tools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::facts::{self, Pair, Ways};
use super::family::{Phrases, TimelinePlan};
use super::output;
use super::prose::Topic;
use super::random::Random;
use super::workspace::{Action, Spot, Workspace};
use crate::session::ground_truth::{Fact, PlantedFact, Revision};

mod schedule;

/// What waits for its moment.
#[derive(Debug)]
struct Event {
    /// In thousandths of the session.
    due: u64,
    /// Whether the user says it.
    is_typed: bool,
    kind: Kind,
    /// Index of the item it happens to.
    item: usize,
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

/// Something that happens in one message or over several.
#[derive(Debug)]
struct Item {
    /// What was said of it so far.
    fact: PlantedFact,
    /// The values to come, the next one last.
    ahead: Vec<String>,
}

/// What happens in one session, and what of it was told.
#[derive(Debug)]
pub(crate) struct Timeline {
    plan: &'static TimelinePlan,
    phrases: &'static Phrases,
    ways: Ways,
    /// The names of the chapters.
    chapters: Vec<String>,
    items: Vec<Item>,
    /// The earliest last.
    events: Vec<Event>,
    names: BTreeSet<String>,
    /// Attempts that failed, and about which the agent said nothing yet.
    failed: Vec<usize>,
}

/// When the agent acts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// In thousandths of the session.
    pub(crate) progress: u64,
    /// The index of the message in which it asks for tools.
    pub(crate) asking: usize,
    pub(crate) now: i64,
    /// About so many bytes may be shown besides what is told.
    pub(crate) room: usize,
}

/// What the agent says and does besides its work.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) paragraphs: Vec<String>,
    pub(crate) actions: Vec<Action>,
}

impl Item {
    /// The next value, said in the message of that index, and its key.
    fn next(&mut self, message: usize) -> Option<(String, String)> {
        let value = self.ahead.pop()?;
        let (Fact::Update { key, values } | Fact::Numeric { key, values, .. }) =
            &mut self.fact.fact
        else {
            return None;
        };
        values.push(Revision::new(value.clone(), message));
        self.fact.evidence.push(message);
        Some((key.clone(), value))
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

    /// Whether there is something for the person to type.
    pub(crate) fn is_typed_due(&self, progress: u64) -> bool {
        let due = self
            .events
            .iter()
            .rev()
            .take_while(|event| event.due < progress);
        due.into_iter().any(|event| event.is_typed)
    }

    /// Takes up to `limit` due events, of each thing at most one.
    fn take(&mut self, progress: u64, limit: usize, is_typed: bool) -> Vec<(Kind, usize)> {
        let due = self
            .events
            .iter()
            .rev()
            .take_while(|event| event.due < progress);
        let first = self.events.len() - due.count();
        let mut taken = Vec::new();
        let mut at = self.events.len();
        while at > first && taken.len() < limit {
            at -= 1;
            let event = &self.events[at];
            let what = (event.kind, event.item);
            if event.is_typed == is_typed && !taken.contains(&what) {
                self.events.remove(at);
                taken.push(what);
            }
        }
        taken
    }

    /// What the person has to tell now, in the message of that index.
    pub(crate) fn typed(
        &mut self,
        random: &mut Random,
        progress: u64,
        message: usize,
    ) -> Vec<String> {
        let mut parts = Vec::new();
        for (_, item) in self.take(progress, usize::MAX, true) {
            if let Some((key, value)) = self.items[item].next(message) {
                let slots = [("key", key.as_str()), ("value", &value)];
                parts.push(self.ways.say(random, &self.phrases.revised, &slots));
            }
        }
        parts
    }

    /// What the agent has to say about what failed, in the message of that index.
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
        let taken = self.take(moment.progress, 2, false);
        if taken.is_empty() {
            return None;
        }
        let mut told = Told::default();
        for (kind, item) in taken {
            match kind {
                Kind::Decide => told
                    .paragraphs
                    .extend(self.decide(random, item, moment.asking)),
                Kind::Revise => told
                    .actions
                    .extend(self.revise(random, item, moment, workspace)),
                Kind::Count => told
                    .actions
                    .extend(self.count(random, item, moment, workspace)),
                Kind::Fail => told
                    .actions
                    .extend(self.fail(random, item, moment, workspace)),
                Kind::Step => {
                    let template = random.pick(&self.phrases.listing);
                    let topic = workspace.topic(random);
                    if let Some((chapter, list)) = self.step(item, moment.asking) {
                        told.paragraphs.push(about(template, &topic, &chapter));
                        told.actions.push(list);
                    }
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

    /// A tool prints settings, one of which is a new value.
    fn revise(
        &mut self,
        random: &mut Random,
        item: usize,
        moment: Moment,
        workspace: &dyn Workspace,
    ) -> Option<Action> {
        let spot = moment.spot(random, workspace);
        let (key, value) = self.items[item].next(moment.asking + 1)?;
        let line = facts::logged(
            random,
            &Pair {
                key,
                value,
                ways: self.ways,
            },
        );
        Some(workspace.settings(random, &spot, line))
    }

    /// A tool says how many there are by now.
    fn count(
        &mut self,
        random: &mut Random,
        item: usize,
        moment: Moment,
        workspace: &dyn Workspace,
    ) -> Option<Action> {
        let spot = moment.spot(random, workspace);
        let (key, value) = self.items[item].next(moment.asking + 1)?;
        let slots = [("key", key.as_str()), ("value", &value)];
        let line = self.ways.say(random, &self.phrases.counted, &slots);
        Some(workspace.count(random, &spot, line))
    }

    /// A tool fails; the agent says next what it makes of it.
    fn fail(
        &mut self,
        random: &mut Random,
        item: usize,
        moment: Moment,
        workspace: &dyn Workspace,
    ) -> Option<Action> {
        let spot = moment.spot(random, workspace);
        let fact = &mut self.items[item].fact;
        fact.evidence.push(moment.asking + 1);
        self.failed.push(item);
        let Fact::RejectedPath { approach, reason } = &fact.fact else {
            return None;
        };
        let fault = output::fault(random);
        let slots = [
            ("approach", approach.as_str()),
            ("reason", reason),
            ("fault", &fault),
        ];
        let mut action = workspace.failure(random, &spot);
        action.output.push('\n');
        action.output += &self.ways.say(random, &self.phrases.collapsed, &slots);
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

    /// What was told, as facts.
    pub(crate) fn facts(self) -> impl Iterator<Item = PlantedFact> {
        let facts = self.items.into_iter().map(|item| item.fact);
        facts.filter(|fact| !fact.evidence.is_empty())
    }
}

impl Moment {
    /// Where the work is now.
    fn spot(self, random: &mut Random, workspace: &dyn Workspace) -> Spot {
        Spot {
            place: workspace.place(random),
            now: self.now,
            room: self.room,
        }
    }
}

/// A template about the topic, in a chapter of that name.
pub(crate) fn about(template: &str, topic: &Topic, chapter: &str) -> String {
    topic.fill(template, &[("chapter", chapter)])
}
