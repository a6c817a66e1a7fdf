//! What is around the work: its history, pages of documentation.

use serde_json::json;

use super::{Action, Memory, remembered};
use crate::session::synthetic::grammar::names::OBJECTS;
use crate::session::synthetic::grammar::output::{self, Output};
use crate::session::synthetic::grammar::prose;
use crate::session::synthetic::random::Random;
use crate::session::synthetic::tools::Tool;
use crate::session::synthetic::workspace::Workspace;

impl Memory {
    pub(super) fn history(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        size: usize,
    ) -> Action {
        let changed = remembered(random, &self.changed);
        if let Some(at) = changed.filter(|at| workspace.is_changed(*at) && random.percent(45)) {
            let command = format!("git diff {}", workspace.file(at).path);
            let output = Output {
                lines: workspace.diff(at),
                ..Output::default()
            };
            return self.shell(&command, "show what changed in the file", &output);
        }
        let commit = remembered(random, &self.commits).filter(|_| random.percent(45));
        if let (Some(commit), Some(at)) = (commit, remembered(random, &self.visited)) {
            let path = workspace.file(at).path.clone();
            let mut lines = vec![
                format!("commit {commit}"),
                String::new(),
                format!("    {}", prose::reason(random)),
                String::new(),
                format!("diff --git a/{path} b/{path}"),
            ];
            let text = workspace.lines(at);
            let count = (size / 40).clamp(6, 90);
            let from = random.index(text.len());
            for line in text.iter().skip(from).take(count) {
                let mark = if random.percent(25) { '+' } else { ' ' };
                lines.push(format!("{mark}{line}"));
            }
            let output = Output {
                lines,
                ..Output::default()
            };
            return self.shell(&format!("git show {commit}"), "show one commit", &output);
        }
        let place = workspace.place(self.focus, random);
        let output = output::history(random, &place, size.min(9_000));
        let command = format!(
            "git log --oneline -n {} -- {}",
            output.lines.len(),
            place.path
        );
        self.shell(&command, "list recent commits", &output)
    }

    pub(super) fn fetch(
        &mut self,
        workspace: &Workspace,
        random: &mut Random,
        size: usize,
    ) -> Action {
        let place = workspace.place(self.focus, random);
        let url = match remembered(random, &self.pages).filter(|_| random.percent(25)) {
            Some(url) => url,
            None => format!(
                "https://docs.example.org/{}/{}",
                place.noun,
                random.pick(OBJECTS)
            ),
        };
        self.pages.push(url.clone());
        let prompt = prose::doc(random, place.noun);
        let output = output::page(random, &place, size.min(20_000));
        Action {
            tool: Tool::WebFetch,
            input: json!({"url": url, "prompt": prompt}),
            output: output.lines.join("\n"),
            failed: false,
        }
    }
}
