//! Sessions in tasks: a request, some rounds of work, a report, and the next request.

use super::Writer;
use crate::session::synthetic::family::Tasks;
use crate::session::synthetic::grammar::WORDS;
use crate::session::synthetic::prose;
use crate::session::synthetic::transcript::LARGE;
use crate::session::synthetic::workspace::{Choice, Limits};

/// Files that are read in one go.
const READS_AT_ONCE: usize = 5;

impl Writer<'_> {
    pub(super) fn write_tasks(&mut self, tasks: &Tasks) {
        self.next_task(false);
        let mut task = 0;
        let mut task_length = self.task_length(tasks);
        loop {
            let (last, closing) = self.out.ends(self.pending.is_empty());
            if last {
                break;
            }
            let waiting = tasks.interrupts && self.pending.is_typed_due(self.out.progress());
            if closing || task >= task_length || (waiting && task > 0) {
                self.end_task();
                self.next_task(closing);
                task = 0;
                task_length = self.task_length(tasks);
                continue;
            }
            if task > 0 && self.is_compaction_due() {
                let random = &mut self.out.random;
                let topic = self.workspace.topic(random);
                let [said, focus] =
                    ["compacting", "focus"].map(|it| topic.say(random, &[WORDS.bank(it)]));
                self.compact(said, &focus);
            } else {
                self.work_on(tasks, task == 0);
            }
            task += 1;
        }
        self.end_task();
    }

    /// Rounds between two requests.
    fn task_length(&mut self, tasks: &Tasks) -> u64 {
        self.out.random.between(tasks.rounds.0, tasks.rounds.1)
    }

    fn end_task(&mut self) {
        let topic = self.workspace.topic(&mut self.out.random);
        let report = prose::report(&mut self.out.random, &topic);
        self.report(report);
    }

    /// The user types: a new request, and whatever else is to be said now.
    fn next_task(&mut self, closing: bool) {
        let progress = self.out.progress();
        let message = self.out.next();
        let random = &mut self.out.random;
        let (planned, text) = if closing {
            let wrap_up = self.recipe.language.say(WORDS.pick(random, "wrap_ups"));
            (self.pending.rest(), wrap_up.to_owned())
        } else {
            let topic = self.workspace.turn(random);
            let text = topic.map(|topic| prose::request(random, &topic));
            (
                self.pending.take(progress, usize::MAX, true),
                text.unwrap_or_default(),
            )
        };
        let mut parts = vec![self.requests.ask(text, message)];
        for fact in planned {
            let part = self.type_fact(fact);
            let at = if self.out.random.percent(35) {
                0
            } else {
                parts.len()
            };
            parts.insert(at, part);
        }
        // A revised setting does not interrupt a task: the next request says it.
        parts.extend(self.timeline.typed(&mut self.out.random, progress, message));
        self.out.pass(self.family.away_percent);
        self.out.typed(parts.join("\n\n"), &[]);
    }

    /// The limits of a round: it may be one of a huge result, or of many files in one go.
    fn limits(&mut self, tasks: &Tasks) -> Limits {
        let (large, at_once) = (tasks.large_percent, tasks.at_once_percent);
        let mut limits = Limits::up_to(if large > 0 {
            self.out.largest_huge_result()
        } else {
            self.out.largest_result()
        });
        let random = &mut self.out.random;
        if large > 0 && random.percent(large) {
            limits.least = random.between(LARGE.0, LARGE.1);
        } else if at_once > 0 && random.percent(at_once) {
            limits.reads = READS_AT_ONCE;
        }
        self.out.lean(limits)
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work_on(&mut self, tasks: &Tasks, is_first: bool) {
        let limits = self.limits(tasks);
        let moment = self.moment(limits);
        let random = &mut self.out.random;
        let mut paragraphs = self.timeline.conclusions(random, moment.asking);
        let told = self.timeline.shown(random, moment, &*self.workspace);
        let told = told.unwrap_or_default();
        let is_usual = limits.least == 0 && limits.reads == 0;
        let choice = if !told.actions.is_empty() && is_usual {
            // It takes the place of the work of this round, as one tool is mostly used at a time.
            Choice::Aside
        } else if limits.reads > 0 {
            Choice::ReadOnly
        } else if is_first {
            Choice::First
        } else {
            Choice::Weighted(&tasks.weights)
        };
        let round = self.workspace.round(random, choice, moment.now, limits);
        paragraphs.extend(told.paragraphs);
        paragraphs.push(round.text);
        let mut actions = round.actions;
        actions.extend(told.actions);
        // Families that say all facts early need room for them.
        let most = if self.family.said_by < 1_000 { 3 } else { 2 };
        actions.extend(self.reveal(moment, most, limits));
        self.act(round.thought, &paragraphs, actions);
    }
}
