//! Tool uses whose results say a planted fact, among others of its kind.

use serde_json::json;

use super::{Action, Memory, RESULT_SIZES};
use crate::session::synthetic::code_review::profile::Limits;
use crate::session::synthetic::facts::{self, Channel, Planned};
use crate::session::synthetic::grammar::output::{self, Place};
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools::Tool;
use crate::session::synthetic::workspace::{Workspace, numbered};

impl Memory {
    /// Where the work is now.
    pub(crate) fn here(&self, workspace: &Workspace, random: &mut Random) -> Place {
        workspace.place(self.focus, random)
    }

    /// The action whose result says a planted fact, among others of its kind.
    pub(crate) fn reveal(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        fact: &Planned,
        now: i64,
        limits: Limits,
    ) -> Action {
        let place = workspace.place(self.focus, random);
        let pairs = facts::shuffled(random, fact);
        let size = usize::try_from(random.size(RESULT_SIZES))
            .unwrap_or(2_900)
            .min(limits.aside);
        let unread = match fact.channel {
            Channel::Comment => self.next_unread(workspace, random),
            Channel::User
            | Channel::Config
            | Channel::Log
            | Channel::Runbook
            | Channel::Failure => None,
        };
        if let Some(at) = unread {
            let comments: Vec<String> = pairs
                .iter()
                .map(|pair| facts::logged(random, pair))
                .collect();
            workspace.plant(at, &comments, random);
            let path = workspace.file(at).path.clone();
            return Action {
                tool: Tool::Read,
                input: json!({"file_path": path}),
                output: numbered(workspace.lines(at), 0),
                failed: false,
            };
        }
        match fact.channel {
            Channel::Config => {
                let (path, lines) = facts::configuration(random, place.noun, &pairs);
                Action {
                    tool: Tool::Read,
                    input: json!({"file_path": path}),
                    output: numbered(&lines, 0),
                    failed: false,
                }
            }
            Channel::Log => {
                let mut log = output::log(random, &place, now, size);
                let mut slot = random.index(log.lines.len());
                let line = fact.statement().map(str::to_owned).into_iter();
                let logged = pairs.iter().map(|pair| facts::logged(random, pair));
                let said: Vec<String> = line.chain(logged).collect();
                for text in said {
                    let stamp = log.lines[slot].split(' ').next().unwrap_or("").to_owned();
                    log.lines
                        .insert(slot, format!("{stamp} INFO  {}: {text}", place.noun));
                    slot = (slot + random.count(1, 4)).min(log.lines.len() - 1);
                }
                let command = format!("tail -n {} logs/{}.log", log.lines.len(), place.noun);
                self.shell(&command, "read the log of the service", &log)
            }
            Channel::Failure => {
                let mut log = output::log(random, &place, now, size.min(900));
                log.lines.extend(fact.statement().map(str::to_owned));
                let number = random.between(10, 99_999);
                Action {
                    tool: Tool::Bash,
                    input: json!({
                        "command": format!("scripts/exercise {} --run {number}", place.noun),
                        "description": "run the exercise that is due",
                    }),
                    output: log.lines.join("\n"),
                    failed: true,
                }
            }
            Channel::User | Channel::Comment | Channel::Runbook => {
                let mut page = output::page(random, &place, size);
                let slot = random.count(1, page.lines.len());
                let said = pairs
                    .iter()
                    .map(|pair| format!("- {}", facts::said(random, pair)));
                let said: Vec<String> = said.collect();
                page.lines.splice(slot..slot, said);
                let path = format!(
                    "docs/runbooks/{}-{}.md",
                    place.noun,
                    random.between(10, 99_999)
                );
                Action {
                    tool: Tool::Read,
                    input: json!({"file_path": path}),
                    output: numbered(&page.lines, 0),
                    failed: false,
                }
            }
        }
    }
}
