//! Sessions in tasks: a request, some rounds of work, a report, and the next request.

use super::Writer;
use crate::family::Tasks;
use crate::grammar::bank;
use crate::prose;
use crate::transcript::LARGE;
use crate::workspace::{Intent, WorkChoice, WorkMoment};

/// Files that are read in one go.
const READS_AT_ONCE: usize = 5;

impl Writer<'_> {
    pub(super) fn write_tasks(&mut self, tasks: &Tasks) {
        self.next_task(false);
        let mut task = 0;
        let mut task_length = self.task_length(tasks);
        loop {
            let (last, closing) = self.out.ends(&self.facts);
            if last {
                break;
            }
            let waiting = tasks.interrupts && self.facts.is_typed_due(self.out.progress());
            if closing || task >= task_length || (waiting && task > 0) {
                self.end_task();
                self.next_task(closing);
                task = 0;
                task_length = self.task_length(tasks);
                continue;
            }
            if task > 0 && self.is_compaction_due() {
                let topic = self.workspace.topic();
                let [said, focus] = ["compacting", "focus"].map(|rule| topic.say(&[bank(rule)]));
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
        let topic = self.workspace.topic();
        self.report(prose::report(&topic));
    }

    /// The user types: a new request, and whatever else is to be said now.
    fn next_task(&mut self, closing: bool) {
        let (progress, message) = (self.out.progress(), self.out.next());
        let text = if closing {
            let wrap_up = self.out.random.word("wrap_ups");
            self.recipe.language.say(wrap_up).to_owned()
        } else {
            let topic = self.workspace.turn();
            topic.map_or_else(String::new, |topic| prose::request(&topic))
        };
        let mut parts = vec![self.facts.request(text, message)];
        for said in self.facts.typed(progress, message, closing) {
            parts.insert(if self.out.random.percent(35) { 0 } else { parts.len() }, said);
        }
        self.out.pass(self.family.away_percent);
        self.out.typed(parts.join("\n\n"), None);
    }

    /// The next round: it may be one of a huge result, or of many files in one go.
    fn moment(&self, tasks: &Tasks) -> WorkMoment {
        let (large, at_once) = (tasks.large_percent, tasks.at_once_percent);
        let random = &self.out.random;
        let mut moment = self.out.moment(if large > 0 {
            self.out.largest_huge_result()
        } else {
            self.out.largest_result()
        });
        if large > 0 && random.percent(large) {
            moment.least = random.count(LARGE.0, LARGE.1);
        } else if at_once > 0 && random.percent(at_once) {
            moment.reads = READS_AT_ONCE;
        }
        self.out.lean(moment)
    }

    /// One round of work: the agent uses tools, and the tools answer.
    fn work_on(&mut self, tasks: &Tasks, is_first: bool) {
        let moment = self.moment(tasks);
        let concluded = self.facts.conclusions(moment.asking);
        let (told, is_work) = self.facts.shown(moment, &mut *self.workspace);
        let choice = if is_work && moment.least == 0 && moment.reads == 0 {
            // It takes the place of the work of this round, as one tool is mostly used at a time.
            WorkChoice::Only(Intent::Aside)
        } else if moment.reads > 0 {
            WorkChoice::Only(Intent::Read)
        } else if is_first {
            WorkChoice::Only(Intent::Orient)
        } else {
            WorkChoice::Weighted(&tasks.weights)
        };
        let mut round = self.workspace.round(choice, moment);
        round.paragraphs = [concluded, told.paragraphs, round.paragraphs].concat();
        round.actions.extend(told.actions);
        self.act(round);
    }
}
