//! What the agent does in a round, and what it remembers of earlier ones.
//!
//! Arguments of tools reuse what was shown before: mostly of the last rounds, and every third time
//! of any round, however far back.

use serde_json::{Value, json};

use super::profile::{Limits, Talk};
use crate::session::synthetic::Language as Spoken;
use crate::session::synthetic::grammar::names::OBJECTS;
use crate::session::synthetic::grammar::output::{self, Output, Place};
use crate::session::synthetic::grammar::prose::{self, Intent, Topic};
use crate::session::synthetic::grammar::source::Language;
use crate::session::synthetic::random::{Quantiles, Random};
use crate::session::synthetic::tools::Tool;
use crate::session::synthetic::workspace::{Workspace, numbered};

mod background;
mod reveal;

/// Sizes of tool results other than whole files, in bytes: close to a log-normal distribution with
/// a median of 2.9 KB, and a tail up to 500 KB.
const RESULT_SIZES: &Quantiles = &[
    (0, 200),
    (10_000, 600),
    (25_000, 1_300),
    (50_000, 2_900),
    (75_000, 5_600),
    (90_000, 10_500),
    (95_000, 16_000),
    (98_500, 27_000),
    (99_700, 45_000),
    (99_910, 90_000),
    (100_000, 500_000),
];

/// What the agent does next, with the weights of its family.
const CHOICES: [Intent; 9] = [
    Intent::Read,
    Intent::Search,
    Intent::Test,
    Intent::Observe,
    Intent::Edit,
    Intent::Create,
    Intent::History,
    Intent::Orient,
    Intent::Fetch,
];

/// From this size on, only logs and data are plausible.
const HUGE: usize = 30_000;

/// A tool use with its result.
#[derive(Debug)]
pub(crate) struct Action {
    pub(crate) tool: Tool,
    pub(crate) input: Value,
    pub(crate) output: String,
    pub(crate) failed: bool,
}

/// What the agent says and does in one round.
#[derive(Debug)]
pub(crate) struct Round {
    pub(crate) thought: Option<String>,
    pub(crate) text: String,
    pub(crate) actions: Vec<Action>,
}

/// What was shown so far and can be named again.
#[derive(Debug)]
pub(crate) struct Memory {
    module: usize,
    unread: Vec<usize>,
    focus: usize,
    visited: Vec<usize>,
    changed: Vec<usize>,
    requests: Vec<String>,
    tests: Vec<String>,
    commits: Vec<String>,
    pages: Vec<String>,
    created: usize,
    just_changed: bool,
    language: Spoken,
}

/// One of `items`: two times of three one of the last eight, else any.
fn remembered<T: Clone>(random: &mut Random, items: &[T]) -> Option<T> {
    let recent = items.len().saturating_sub(8);
    let from = if random.percent(66) { recent } else { 0 };
    items.get(from + random.index(items.len() - from)).cloned()
}

impl Memory {
    pub(crate) fn new(workspace: &mut Workspace, random: &mut Random, language: Spoken) -> Self {
        let mut memory = Self {
            module: 0,
            unread: Vec::new(),
            focus: 0,
            visited: Vec::new(),
            changed: Vec::new(),
            requests: Vec::new(),
            tests: Vec::new(),
            commits: Vec::new(),
            pages: Vec::new(),
            created: 0,
            just_changed: false,
            language,
        };
        memory.enter(workspace, random);
        memory
    }

    fn enter(&mut self, workspace: &mut Workspace, random: &mut Random) {
        self.module = workspace.next_module(random);
        self.unread = workspace.module(self.module).to_vec();
        self.unread.retain(|at| !workspace.file(*at).seen);
        random.shuffle(&mut self.unread);
        let any = workspace.module(self.module);
        self.focus = self
            .unread
            .last()
            .copied()
            .unwrap_or_else(|| random.pick(any));
    }

    /// The work turns to another module, or stays where there is much left to read.
    pub(crate) fn turn(&mut self, workspace: &mut Workspace, random: &mut Random) -> Topic {
        if self.unread.len() < 3 && !self.visited.is_empty() {
            self.enter(workspace, random);
        }
        self.topic(workspace, random)
    }

    /// What is talked about now.
    pub(crate) fn topic(&self, workspace: &Workspace, random: &mut Random) -> Topic {
        let here = workspace.place(self.focus, random);
        let beside = self.beside(workspace, random);
        let earlier = self.visited.get(random.index(self.visited.len())).copied();
        Topic {
            language: self.language,
            noun: here.noun,
            path: here.path,
            symbol: here.symbol,
            elsewhere: workspace.file(beside).path.clone(),
            earlier: earlier.map_or_else(String::new, |at| workspace.place(at, random).symbol),
        }
    }

    /// Another file of the module than the one in focus.
    fn beside(&self, workspace: &Workspace, random: &mut Random) -> usize {
        let module = workspace.module(self.module);
        let at = random.index(module.len());
        if module[at] == self.focus {
            module[(at + 1) % module.len()]
        } else {
            module[at]
        }
    }

    /// The next file of the module that was not read; with none left, of the next module.
    fn next_unread(&mut self, workspace: &mut Workspace, random: &mut Random) -> Option<usize> {
        for _ in 0..3 {
            while let Some(at) = self.unread.pop() {
                if !workspace.file(at).seen {
                    return Some(at);
                }
            }
            self.enter(workspace, random);
        }
        None
    }

    fn intent(&mut self, random: &mut Random, weights: Option<&[u64; 9]>, size: usize) -> Intent {
        if size >= HUGE {
            return Intent::Observe;
        }
        let Some(weights) = weights else {
            return Intent::Orient;
        };
        if std::mem::take(&mut self.just_changed) && random.percent(55) {
            return Intent::Test;
        }
        let choice = CHOICES[random.weighted(weights)];
        match choice {
            Intent::Edit | Intent::Create if self.visited.is_empty() => Intent::Read,
            choice => choice,
        }
    }

    /// One round of work, of a kind drawn with these weights; a first round, which has none, looks
    /// around.
    pub(crate) fn round(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        weights: Option<&[u64; 9]>,
        now: i64,
        limits: Limits,
    ) -> Round {
        let drawn = random.size(RESULT_SIZES) * limits.scale_percent / 100;
        let drawn = drawn.max(limits.least);
        let size = usize::try_from(drawn.min(limits.most)).unwrap_or(2_900);
        let intent = self.intent(random, weights, size);
        let actions = match intent {
            Intent::Orient => self.orient(workspace, random, size),
            Intent::Read => self.read(workspace, random, size, limits),
            Intent::Search => vec![self.search(workspace, random, size)],
            Intent::Test => vec![self.test(workspace, random, size, now)],
            Intent::Observe => vec![self.observe(workspace, random, size, now)],
            Intent::Edit => self.edit(workspace, random),
            Intent::Create => vec![self.create(workspace, random)],
            Intent::History => vec![self.history(workspace, random, size)],
            Intent::Fetch => vec![self.fetch(workspace, random, size)],
            Intent::Aside => Vec::new(),
        };
        self.saying(workspace, random, intent, limits, actions)
    }

    /// A round in which the agent does something besides its work.
    pub(crate) fn aside(
        &self,
        workspace: &mut Workspace,
        random: &mut Random,
        limits: Limits,
    ) -> Round {
        self.saying(workspace, random, Intent::Aside, limits, Vec::new())
    }

    /// What the agent says to what it does.
    fn saying(
        &self,
        workspace: &mut Workspace,
        random: &mut Random,
        intent: Intent,
        limits: Limits,
        actions: Vec<Action>,
    ) -> Round {
        let topic = self.topic(workspace, random);
        let mut text = prose::announcement(random, &topic, intent);
        let explanations = match limits.talk {
            Talk::AsItComes => usize::from(random.percent(58)),
            Talk::Little => 0,
            Talk::Much => 3,
        };
        for _ in 0..explanations {
            let code = self.quotation(workspace, random);
            let explanation = prose::explanation(random, &topic, &code);
            text = format!("{explanation}\n\n{text}");
        }
        let thinks = match limits.talk {
            Talk::AsItComes => random.percent(70),
            Talk::Little => false,
            Talk::Much => true,
        };
        Round {
            thought: thinks.then(|| prose::thought(random, &topic)),
            text,
            actions,
        }
    }

    /// Some lines of a file that was read.
    fn quotation(&self, workspace: &mut Workspace, random: &mut Random) -> Vec<String> {
        let Some(at) = remembered(random, &self.visited) else {
            return Vec::new();
        };
        let lines = workspace.lines(at);
        let from = random.index(lines.len());
        let to = (from + random.count(8, 48)).min(lines.len());
        lines[from..to].to_vec()
    }

    fn orient(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        size: usize,
    ) -> Vec<Action> {
        let place = workspace.place(self.focus, random);
        let folder = place.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let mut paths: Vec<String> = workspace
            .module(self.module)
            .iter()
            .map(|at| workspace.file(*at).path.clone())
            .collect();
        paths.sort();
        let glob = Action {
            tool: Tool::Glob,
            input: json!({"pattern": format!("{folder}/**")}),
            output: paths.join("\n"),
            failed: false,
        };
        match random.below(4) {
            0 => vec![glob],
            1 => vec![glob, self.search(workspace, random, size)],
            _ => vec![self.search(workspace, random, size)],
        }
    }

    fn read(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        size: usize,
        limits: Limits,
    ) -> Vec<Action> {
        let again = limits.reads == 0 && !self.visited.is_empty() && random.percent(38);
        let count = if limits.reads > 0 {
            limits.reads
        } else if again {
            1
        } else {
            1 + random.weighted(&[66, 25, 9])
        };
        let mut actions = Vec::new();
        for _ in 0..count {
            let fresh = if again {
                None
            } else {
                self.next_unread(workspace, random)
            };
            let known = if random.percent(45) && !self.changed.is_empty() {
                remembered(random, &self.changed)
            } else {
                remembered(random, &self.visited)
            };
            let (at, fresh) = match (fresh, known) {
                (Some(at), _) => (at, true),
                (None, Some(at)) => (at, false),
                (None, None) => break,
            };
            self.focus = at;
            let known = self.visited.last() == Some(&at);
            workspace.see(at);
            if !known {
                self.visited.push(at);
            }
            let path = workspace.file(at).path.clone();
            let lines = workspace.lines(at);
            let whole: usize = lines.iter().map(|line| line.len() + 8).sum();
            let fits = u64::try_from(whole).unwrap_or(u64::MAX) <= limits.most;
            let action = if fits && (fresh || whole <= size || random.percent(65)) {
                Action {
                    tool: Tool::Read,
                    input: json!({"file_path": path}),
                    output: numbered(lines, 0),
                    failed: false,
                }
            } else {
                let limit = (size / 42).clamp(10, lines.len().max(10));
                let offset = random.index(lines.len().saturating_sub(limit) + 1);
                let to = (offset + limit).min(lines.len());
                Action {
                    tool: Tool::Read,
                    input: json!({"file_path": path, "offset": offset + 1, "limit": limit}),
                    output: numbered(&lines[offset..to], offset),
                    failed: false,
                }
            };
            actions.push(action);
        }
        if actions.is_empty() {
            actions.push(self.search(workspace, random, size));
        }
        actions
    }

    fn search(&mut self, workspace: &mut Workspace, random: &mut Random, size: usize) -> Action {
        let at = if random.percent(60) {
            self.focus
        } else {
            remembered(random, &self.visited).unwrap_or(self.focus)
        };
        let symbol = workspace.place(at, random).symbol;
        let around = size / 300;
        let found = workspace.search(at, &symbol, around.min(20), size.max(400));
        let mut input = json!({"pattern": symbol});
        if around > 0 {
            input["context"] = json!(around.min(20));
        }
        let output = if found.is_empty() {
            "no matches".to_owned()
        } else {
            found.join("\n")
        };
        Action {
            tool: Tool::Grep,
            input,
            output,
            failed: false,
        }
    }

    fn places(&self, workspace: &Workspace, random: &mut Random) -> Vec<Place> {
        let mut places = vec![workspace.place(self.focus, random)];
        for _ in 0..3 {
            let at = random.pick(workspace.module(self.module));
            let place = workspace.place(at, random);
            if place.language == places[0].language && place.noun == places[0].noun {
                places.push(place);
            }
        }
        places
    }

    fn keep(&mut self, output: &Output) {
        // Of long outputs the agent remembers the end, as a reader would.
        let tail = |names: &[String]| names[names.len().saturating_sub(5)..].to_vec();
        self.requests.extend(tail(&output.requests));
        self.tests.extend(tail(&output.tests));
        self.commits.extend(tail(&output.commits));
    }

    fn shell(&mut self, command: &str, about: &str, output: &Output) -> Action {
        self.keep(output);
        Action {
            tool: Tool::Bash,
            input: json!({"command": command, "description": about}),
            failed: output.failed,
            output: output.lines.join("\n"),
        }
    }

    fn test(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        size: usize,
        now: i64,
    ) -> Action {
        let places = self.places(workspace, random);
        let (noun, language) = (places[0].noun, places[0].language);
        if random.percent(22) {
            let command = match language {
                Language::Rust => format!("cargo check -p {noun} --message-format short"),
                Language::Python => format!("mypy services/{noun}"),
                Language::TypeScript => "npx tsc --noEmit --project web".to_owned(),
            };
            let output = output::diagnostics(random, &places, size.min(12_000));
            return self.shell(&command, "check types without building", &output);
        }
        let single = remembered(random, &self.tests).filter(|_| random.percent(45));
        let command = match (language, single) {
            (Language::Rust, None) => format!("cargo test -p {noun}"),
            (Language::Python, None) => format!("pytest -v services/{noun}"),
            (Language::TypeScript, None) => format!("npx vitest run web/src/{noun}"),
            (_, Some(test)) => format!("scripts/test --only '{test}'"),
        };
        let output = output::test_run(random, &places, now, size);
        self.shell(&command, "run the tests of the module", &output)
    }

    fn observe(
        &mut self,
        workspace: &mut Workspace,
        random: &mut Random,
        size: usize,
        now: i64,
    ) -> Action {
        let place = workspace.place(self.focus, random);
        let noun = place.noun;
        if random.percent(35) {
            let command = format!("scripts/api get {noun} --format json");
            let output = output::json(random, &place, size);
            return self.shell(&command, "show recorded entries", &output);
        }
        let output = output::log(random, &place, now, size);
        let command = match remembered(random, &self.requests).filter(|_| random.percent(55)) {
            Some(request) => format!("scripts/logs {noun} --around {request}"),
            None => format!("tail -n {} logs/{noun}.log", output.lines.len()),
        };
        self.shell(&command, "read the log of the service", &output)
    }

    fn edit(&mut self, workspace: &mut Workspace, random: &mut Random) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..=random.weighted(&[80, 20]) {
            let Some(at) = remembered(random, &self.visited) else {
                break;
            };
            let Some(change) = workspace.change(at, random) else {
                continue;
            };
            self.focus = at;
            self.just_changed = true;
            self.changed.push(at);
            let path = workspace.file(at).path.clone();
            let from = change.at.saturating_sub(12);
            let lines = workspace.lines(at);
            let to = (change.at + change.length + 12).min(lines.len());
            let shown = numbered(&lines[from..to], from);
            actions.push(Action {
                tool: Tool::Edit,
                output: format!("Changed {path}. The lines around the change are now:\n{shown}"),
                input: json!({
                    "file_path": path,
                    "old_string": change.old,
                    "new_string": change.new,
                }),
                failed: false,
            });
        }
        if actions.is_empty() {
            actions.push(self.search(workspace, random, 800));
        }
        actions
    }

    fn create(&mut self, workspace: &mut Workspace, random: &mut Random) -> Action {
        let at = remembered(random, &self.visited).unwrap_or(self.focus);
        self.created += 1;
        let topic = format!("{}_{}", random.pick(OBJECTS), self.created);
        let bytes = random.count(2_000, 12_000);
        let (path, lines, tests) = workspace.test_file(at, random, &topic, bytes);
        self.tests.extend(tests);
        self.just_changed = true;
        let content = lines.join("\n") + "\n";
        let output = format!(
            "Created {path}: {} lines, {} bytes. The file is new; it is part of the next test run \
             of its module, and nothing imports it. Run that module's tests to see the result.",
            lines.len(),
            content.len()
        );
        Action {
            tool: Tool::Write,
            input: json!({"file_path": path, "content": content}),
            output,
            failed: false,
        }
    }
}
