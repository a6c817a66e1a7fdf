//! The sentences that the agent and the user say about their work.

use super::Language;
use super::grammar::bank;
use super::random::Random;
use super::words::Bank;
use super::workspace::{Intent, WorkspaceKind};

/// The subject of the conversation at the moment.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    pub(crate) random: Random,
    pub(crate) workspace: WorkspaceKind,
    pub(crate) language: Language,
    pub(crate) noun: &'static str,
    pub(crate) path: String,
    pub(crate) symbol: String,
    pub(crate) other_place: String,
    /// Something that was looked at before; empty at the beginning.
    pub(crate) earlier: String,
}

impl Topic {
    /// A template about it; slots that it does not know are among `more`.
    pub(crate) fn fill(&self, template: &str, more: &[(&str, &str)]) -> String {
        let mut slots = vec![
            ("noun", self.noun),
            ("path", &self.path),
            ("symbol", &self.symbol),
            ("elsewhere", &self.other_place),
        ];
        slots.extend(more);
        self.language.fill(template, &slots)
    }

    /// One sentence of each bank.
    pub(crate) fn say(&self, banks: &[&[&'static str]]) -> String {
        self.list(banks).join(self.language.gap())
    }

    /// The sentence before a kind of work.
    pub(crate) fn opening(&self, intent: Intent) -> &'static [&'static str] {
        self.workspace.facts().intents.get(&intent).map_or(&[], Bank::as_slice)
    }

    fn list(&self, banks: &[&[&'static str]]) -> Vec<String> {
        let mut used = Vec::new();
        let sentences = banks.iter().map(|bank| {
            let template = self.template(bank, &used);
            match self.workspace {
                WorkspaceKind::HelpDesk => {
                    self.fill(template, &[("earlier", self.earlier(&self.path))])
                }
                WorkspaceKind::Repository => {
                    used.push(template);
                    self.sentence(template)
                }
            }
        });
        sentences.collect()
    }

    /// Draws a template that needs nothing earlier where there is nothing earlier, and that is not
    /// among `used`; after some misses, any.
    fn template(&self, bank: &[&'static str], used: &[&'static str]) -> &'static str {
        let misses = match self.workspace {
            WorkspaceKind::HelpDesk => 8,
            WorkspaceKind::Repository => 12,
        };
        let mut drawn = self.random.pick(bank);
        for _ in 0..misses {
            let early = self.earlier.is_empty() && drawn.contains("{earlier}");
            if !early && !used.contains(&drawn) {
                break;
            }
            drawn = self.random.pick(bank);
        }
        drawn
    }

    /// A template about a repository.
    fn sentence(&self, template: &str) -> String {
        let rules = ["things", "things", "raised", "handled"];
        let [object, thing, fault, done] = rules.map(|rule| self.random.draw(rule));
        let slots = [
            ("earlier", self.earlier(&self.symbol)),
            ("object", &object),
            ("thing", &thing),
            ("fault", &fault),
            ("done", &done),
        ];
        self.fill(template, &slots)
    }

    fn earlier<'a>(&'a self, otherwise: &'a str) -> &'a str {
        if self.earlier.is_empty() { otherwise } else { &self.earlier }
    }
}

/// The agent's one to four sentences before it uses tools.
pub(crate) fn announcement(topic: &Topic, intent: Intent) -> String {
    let opening = topic.opening(intent);
    let (findings, next) = (bank("findings"), bank("next"));
    match topic.random.below(4) {
        0 => topic.say(&[opening]),
        1 => topic.say(&[findings, opening]),
        2 => topic.say(&[findings, opening, next]),
        _ => topic.say(&[findings, findings, opening, next]),
    }
}

/// The agent's thoughts before it speaks.
pub(crate) fn thought(topic: &Topic) -> String {
    let thoughts = bank("thoughts");
    let banks = vec![thoughts; topic.random.count(3, thoughts.len())];
    topic.say(&banks)
}

/// A longer explanation, with a quotation of code where there is one.
pub(crate) fn explanation(topic: &Topic, code: &[String]) -> String {
    let (findings, thoughts) = (bank("findings"), bank("thoughts"));
    let next = bank("next");
    let first = topic.say(&[findings, findings, findings, thoughts]);
    let second = topic.say(&[thoughts, findings, thoughts, findings, next]);
    if code.is_empty() {
        return format!("{first}\n\n{second}");
    }
    format!("{first}\n\n```\n{}\n```\n\n{second}", code.join("\n"))
}

/// The end of a piece of work: what was found, as a list.
pub(crate) fn report(topic: &Topic) -> String {
    let head = topic.say(&[bank("report_heads")]);
    let points = bank("report_points");
    let banks = vec![points; topic.random.count(3, points.len())];
    let points = topic.list(&banks).join("\n- ");
    let end = topic.say(&[bank("findings"), bank("next")]);
    format!("{head}\n\n- {points}\n\n{end}")
}

/// A request of the user.
pub(crate) fn request(topic: &Topic) -> String {
    let rule = if topic.earlier.is_empty() { "openings" } else { "requests" };
    topic.say(&[bank(rule)])
}
