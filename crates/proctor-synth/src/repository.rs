//! Work in a repository: what the agent does in a round, and what it remembers of earlier ones.
//!
//! Arguments of tools reuse what was shown before: mostly of the last rounds, and every third time
//! of any round, however far back.

use serde_json::json;

use super::Recipe;
use super::code;
use super::facts::{Channel, Content, Ways};
use super::files::{Files, Hunk, numbered};
use super::output::{self, Output, OutputNames, SourcePlace};
use super::prose::{self, Topic};
use super::random::{Random, whole};
use super::words::SIZES;
use super::workspace::{Action, Intent, Round, WorkChoice, WorkMoment, Workspace, WorkspaceKind};

/// From this size on, only logs and data are plausible.
const HUGE: usize = 30_000;

/// The files, and what was shown so far and can be named again.
#[derive(Debug)]
pub(crate) struct Repository {
    random: Random,
    files: Files,
    module: usize,
    unread: Vec<usize>,
    focus: usize,
    visited: Vec<usize>,
    changed: Vec<usize>,
    known: OutputNames,
    created: usize,
    just_changed: bool,
    ways: Ways,
}

fn read(path: &str, lines: &[String]) -> Action {
    Action::new("Read", json!({"file_path": path}), numbered(lines, 0))
}

impl Repository {
    /// A repository with at least that number of files.
    pub(crate) fn new(recipe: &Recipe, files: u64, random: &Random) -> Self {
        let mut repository = Self {
            random: random.clone(),
            files: Files::new(recipe.seed, whole(files), random.usual_percent()),
            module: 0,
            unread: Vec::new(),
            focus: 0,
            visited: Vec::new(),
            changed: Vec::new(),
            known: OutputNames::default(),
            created: 0,
            just_changed: false,
            ways: Ways::of(recipe),
        };
        repository.enter();
        repository
    }

    /// Turns to another module.
    fn enter(&mut self) {
        self.module = self.files.next_module(&self.random);
        let module = &self.files.modules[self.module];
        self.unread.clone_from(module);
        self.unread.retain(|at| !self.files.all[*at].seen);
        self.random.shuffle(&mut self.unread);
        let last = self.unread.last().copied();
        self.focus = last.unwrap_or_else(|| self.random.pick(module));
    }

    fn place(&self) -> SourcePlace {
        self.files.place(self.focus, &self.random)
    }

    /// One of `items`: two times of three one of the last eight, else any.
    fn remembered<T: Clone>(&self, items: &[T]) -> Option<T> {
        let recent = items.len().saturating_sub(8);
        let from = if self.random.percent(66) { recent } else { 0 };
        items.get(from + self.random.index(items.len() - from)).cloned()
    }

    /// The same in `share` of 100 draws.
    fn sometimes<T: Clone>(&self, items: &[T], share: u64) -> Option<T> {
        self.remembered(items).filter(|_| self.random.percent(share))
    }

    fn path(&self, at: usize) -> String {
        self.files.all[at].path.clone()
    }

    /// Another file of the module than the one in focus.
    fn neighbour(&self) -> usize {
        let module = &self.files.modules[self.module];
        let at = self.random.index(module.len());
        let next = usize::from(module[at] == self.focus);
        module[(at + next) % module.len()]
    }

    /// The next file of the module that was not read; with none left, of the next module.
    fn next_unread(&mut self) -> Option<usize> {
        for _ in 0..3 {
            while let Some(at) = self.unread.pop() {
                if !self.files.all[at].seen {
                    return Some(at);
                }
            }
            self.enter();
        }
        None
    }

    fn intent(&mut self, choice: WorkChoice<'_>, size: usize) -> Intent {
        if size >= HUGE {
            return Intent::Observe;
        }
        if matches!(choice, WorkChoice::Only(Intent::Orient)) {
            return Intent::Orient;
        }
        if std::mem::take(&mut self.just_changed) && self.random.percent(55) {
            return Intent::Test;
        }
        let drawn = match choice {
            WorkChoice::Weighted(weights) => self.random.weighted_key(weights),
            // Draws as well, so that the rest of the session does not depend on it.
            WorkChoice::Only(intent) => [intent][self.random.weighted(&[1])],
        };
        match drawn {
            Intent::Edit | Intent::Create if self.visited.is_empty() => Intent::Read,
            drawn => drawn,
        }
    }

    /// Some lines of a file that was read.
    fn quotation(&mut self) -> Vec<String> {
        let Some(at) = self.remembered(&self.visited) else {
            return Vec::new();
        };
        let lines = self.files.lines(at);
        let from = self.random.index(lines.len());
        let to = (from + self.random.count(8, 48)).min(lines.len());
        lines[from..to].to_vec()
    }

    fn orient(&mut self, size: usize) -> Vec<Action> {
        let path = self.place().path;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let module = self.files.modules[self.module].iter();
        let mut paths: Vec<&str> = module.map(|at| self.files.all[*at].path.as_str()).collect();
        paths.sort_unstable();
        let input = json!({"pattern": format!("{folder}/**")});
        let glob = Action::new("Glob", input, paths.join("\n"));
        match self.random.below(4) {
            0 => vec![glob],
            1 => vec![glob, self.search(size)],
            _ => vec![self.search(size)],
        }
    }

    fn read(&mut self, size: usize, moment: WorkMoment) -> Vec<Action> {
        let again = moment.reads == 0 && !self.visited.is_empty() && self.random.percent(38);
        let count = match moment.reads {
            0 if again => 1,
            0 => 1 + self.random.weighted(&[66, 25, 9]),
            reads => reads,
        };
        let mut actions = Vec::new();
        for _ in 0..count {
            let fresh = if again { None } else { self.next_unread() };
            let changed = self.random.percent(45) && !self.changed.is_empty();
            let known = self.remembered(if changed { &self.changed } else { &self.visited });
            let Some(at) = fresh.or(known) else {
                break;
            };
            self.focus = at;
            if self.visited.last() != Some(&at) {
                self.visited.push(at);
            }
            self.files.all[at].seen = true;
            let path = self.path(at);
            let lines = self.files.lines(at);
            let whole: usize = lines.iter().map(|line| line.len() + 8).sum();
            if whole <= moment.most && (fresh.is_some() || whole <= size || self.random.percent(65))
            {
                actions.push(read(&path, lines));
                continue;
            }
            let limit = (size / 42).clamp(10, lines.len().max(10));
            let offset = self.random.index(lines.len().saturating_sub(limit) + 1);
            let to = (offset + limit).min(lines.len());
            let input = json!({"file_path": path, "offset": offset + 1, "limit": limit});
            let shown = numbered(&lines[offset..to], offset);
            actions.push(Action::new("Read", input, shown));
        }
        if actions.is_empty() {
            actions.push(self.search(size));
        }
        actions
    }

    fn search(&mut self, size: usize) -> Action {
        let other = if self.random.percent(60) { None } else { self.remembered(&self.visited) };
        let at = other.unwrap_or(self.focus);
        let symbol = self.files.place(at, &self.random).symbol;
        let around = (size / 300).min(20);
        let mut found = self.files.search(at, &symbol, around, size.max(400));
        let mut input = json!({"pattern": symbol});
        if around > 0 {
            input["context"] = json!(around);
        }
        if found.is_empty() {
            found.push("no matches".to_owned());
        }
        Action::new("Grep", input, found.join("\n"))
    }

    /// The place in focus, and others of its module.
    fn places(&self) -> Vec<SourcePlace> {
        let mut places = vec![self.place()];
        for _ in 0..3 {
            let at = self.random.pick(&self.files.modules[self.module]);
            let place = self.files.place(at, &self.random);
            if place.language == places[0].language && place.noun == places[0].noun {
                places.push(place);
            }
        }
        places
    }

    /// Runs a command that prints this.
    fn bash(&self, command: &str, slots: &[(&str, &str)], output: &Output) -> Action {
        let text = self.random.say(&format!("shell.{command}"), slots);
        let (command, about) = text.split_once('\n').unwrap_or_default();
        let input = json!({"command": command, "description": about});
        Action { failed: output.failed, ..Action::new("Bash", input, output.lines.join("\n")) }
    }

    /// The same, and the agent remembers the names in it.
    fn shell(&mut self, command: &str, slots: &[(&str, &str)], output: &Output) -> Action {
        // Of long outputs the agent remembers the end, as a reader would.
        let tail = |names: &[String]| names[names.len().saturating_sub(5)..].to_vec();
        self.known.requests.extend(tail(&output.names.requests));
        self.known.tests.extend(tail(&output.names.tests));
        self.known.commits.extend(tail(&output.names.commits));
        self.bash(command, slots, output)
    }

    /// Reads the end of the log of a service.
    fn read_log(&mut self, noun: &str, log: &Output) -> Action {
        let count = log.lines.len().to_string();
        self.shell("log", &[("noun", noun), ("count", &count)], log)
    }

    fn test(&mut self, size: usize, now: i64) -> Action {
        let places = self.places();
        let SourcePlace { noun, language, .. } = places[0];
        let slots = [("noun", noun)];
        if self.random.percent(22) {
            let command = language.fill("check_command", &slots);
            let output = output::diagnostics(&self.random, &places, size.min(12_000));
            return self.shell("check", &[("command", &command)], &output);
        }
        let test = self.sometimes(&self.known.tests, 45);
        let output = output::test_run(&self.random, &places, now, size);
        if let Some(test) = test {
            return self.shell("retest", &[("test", &test)], &output);
        }
        let command = language.fill("test_command", &slots);
        self.shell("test", &[("command", &command)], &output)
    }

    fn observe(&mut self, size: usize, now: i64) -> Action {
        let place = self.place();
        let noun = place.noun;
        if self.random.percent(35) {
            let output = output::json(&self.random, &place, size);
            return self.shell("records", &[("noun", noun)], &output);
        }
        let output = output::log(&self.random, &place, now, size);
        match self.sometimes(&self.known.requests, 55) {
            Some(id) => self.shell("trace", &[("noun", noun), ("request", &id)], &output),
            None => self.read_log(noun, &output),
        }
    }

    fn edit(&mut self) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..=self.random.weighted(&[80, 20]) {
            let Some(at) = self.remembered(&self.visited) else {
                break;
            };
            let path = self.path(at);
            let Some(Hunk { at: first, old, new }) = self.files.change(at, &self.random) else {
                continue;
            };
            let (from, end) = (first.saturating_sub(12), first + new.len() + 12);
            let (old, new) = (old.join("\n"), new.join("\n"));
            let lines = self.files.lines(at);
            let shown = numbered(&lines[from..end.min(lines.len())], from);
            self.focus = at;
            self.just_changed = true;
            self.changed.push(at);
            let output = format!("Changed {path}. The lines around the change are now:\n{shown}");
            let input = json!({"file_path": path, "old_string": old, "new_string": new});
            actions.push(Action::new("Edit", input, output));
        }
        if actions.is_empty() {
            actions.push(self.search(800));
        }
        actions
    }

    fn create(&mut self, most: usize) -> Action {
        let at = self.remembered(&self.visited).unwrap_or(self.focus);
        self.created += 1;
        let topic = format!("{}_{}", self.random.word("objects"), self.created);
        let bytes = self.random.count(2_000, 12_000).min(most);
        let file = &self.files.all[at];
        let (path, lines, tests) = code::test_file(&self.random, file, &topic, bytes);
        self.known.tests.extend(tests);
        self.just_changed = true;
        let content = lines.join("\n") + "\n";
        let output = format!(
            "Created {path}: {} lines, {} bytes. The file is new; it is part of the next test run \
             of its module, and nothing imports it. Run that module's tests to see the result.",
            lines.len(),
            content.len()
        );
        let input = json!({"file_path": path, "content": content});
        Action::new("Write", input, output)
    }

    fn history(&mut self, size: usize) -> Action {
        let changed = self.remembered(&self.changed);
        let edited = changed.filter(|at| !self.files.all[*at].hunks.is_empty());
        if let Some(at) = edited.filter(|_| self.random.percent(45)) {
            let output = self.files.diff(at).into();
            return self.shell("diff", &[("path", &self.path(at))], &output);
        }
        let commit = self.sometimes(&self.known.commits, 45);
        if let (Some(commit), Some(at)) = (commit, self.remembered(&self.visited)) {
            let path = self.path(at);
            let mut lines = vec![
                format!("commit {commit}"),
                String::new(),
                format!("    {}", self.random.draw("reason")),
                String::new(),
                format!("diff --git a/{path} b/{path}"),
            ];
            let text = self.files.lines(at);
            let count = (size / 40).clamp(6, 90);
            let from = self.random.index(text.len());
            for line in text.iter().skip(from).take(count) {
                let mark = if self.random.percent(25) { '+' } else { ' ' };
                lines.push(format!("{mark}{line}"));
            }
            return self.shell("show", &[("commit", &commit)], &lines.into());
        }
        let place = self.place();
        let output = output::history(&self.random, &place, size.min(9_000));
        let count = output.lines.len().to_string();
        self.shell("history", &[("count", &count), ("path", &place.path)], &output)
    }

    fn fetch(&mut self, size: usize) -> Action {
        let place = self.place();
        let slots = [("noun", place.noun)];
        let known = self.sometimes(&self.known.pages, 25);
        let url = known.unwrap_or_else(|| self.random.say("address", &slots));
        self.known.pages.push(url.clone());
        let prompt = self.random.say("doc", &slots);
        let output = output::page(&self.random, &place, size.min(20_000));
        let input = json!({"url": url, "prompt": prompt});
        Action::new("WebFetch", input, output.lines.join("\n"))
    }

    fn work(&mut self, intent: Intent, size: usize, moment: WorkMoment) -> Vec<Action> {
        match intent {
            Intent::Orient => self.orient(size),
            Intent::Read => self.read(size, moment),
            Intent::Search => vec![self.search(size)],
            Intent::Test => vec![self.test(size, moment.now)],
            Intent::Observe => vec![self.observe(size, moment.now)],
            Intent::Edit => self.edit(),
            Intent::Create => vec![self.create(moment.most)],
            Intent::History => vec![self.history(size)],
            Intent::Fetch => vec![self.fetch(size)],
            // Work at a help desk.
            _ => Vec::new(),
        }
    }
}

impl Workspace for Repository {
    fn turn(&mut self) -> Option<Topic> {
        if self.unread.len() < 3 && !self.visited.is_empty() {
            self.enter();
        }
        Some(self.topic())
    }

    fn topic(&self) -> Topic {
        let here = self.place();
        let neighbour = self.neighbour();
        let visited = self.visited.get(self.random.index(self.visited.len()));
        let earlier = visited.map(|at| self.files.place(*at, &self.random).symbol);
        Topic {
            random: self.random.clone(),
            workspace: WorkspaceKind::Repository,
            language: self.ways.language,
            noun: here.noun,
            path: here.path,
            symbol: here.symbol,
            other_place: self.path(neighbour),
            earlier: earlier.unwrap_or_default(),
        }
    }

    fn round(&mut self, choice: WorkChoice<'_>, moment: WorkMoment) -> Round {
        let (mut intent, mut actions) = (Intent::Aside, Vec::new());
        if !matches!(choice, WorkChoice::Only(Intent::Aside)) {
            let size = moment.size(self.random.size(&SIZES.results));
            intent = self.intent(choice, size);
            actions = self.work(intent, size, moment);
        }
        let topic = self.topic();
        let mut text = prose::announcement(&topic, intent);
        for _ in 0..moment.talk.explanations(&self.random, 58, 3) {
            let code = self.quotation();
            text = format!("{}\n\n{text}", prose::explanation(&topic, &code));
        }
        let thinks = moment.talk.thinks(&self.random, 70);
        Round { thought: thinks.then(|| prose::thought(&topic)), paragraphs: vec![text], actions }
    }

    fn show(&mut self, channel: Channel, content: &Content, moment: WorkMoment) -> Action {
        let random = self.random.clone();
        let place = self.place();
        let noun = place.noun;
        let size = random.size(&SIZES.results).min(moment.aside);
        let said = content.lines(&random, self.ways, channel);
        if channel == Channel::Comment
            && let Some(at) = self.next_unread()
        {
            self.files.plant(at, &said, &random);
            let path = self.path(at);
            return read(&path, self.files.lines(at));
        }
        match channel {
            Channel::Config => {
                let (path, lines) = content.configuration(&random, noun);
                read(&path, &lines)
            }
            Channel::Log => {
                let mut log = output::log(&random, &place, moment.now, size);
                let mut slot = random.index(log.lines.len());
                for text in said {
                    let stamp = log.lines[slot].split(' ').next().unwrap_or("");
                    let line = format!("{stamp} INFO  {noun}: {text}");
                    log.lines.insert(slot, line);
                    slot = (slot + random.count(1, 4)).min(log.lines.len() - 1);
                }
                self.read_log(noun, &log)
            }
            Channel::Failure => {
                let mut log = output::log(&random, &place, moment.now, size.min(900));
                log.lines.extend(said);
                log.failed = true;
                self.bash("exercise", &[("noun", noun)], &log)
            }
            Channel::Settings => {
                let mut log = output::log(&random, &place, moment.now, size.min(1_200));
                let at = random.index(log.lines.len() + 1);
                log.lines.splice(at..at, said);
                self.bash("settings", &[("noun", noun)], &log)
            }
            Channel::Count => {
                let places = std::slice::from_ref(&place);
                let mut run = output::test_run(&random, places, moment.now, size.min(2_400));
                run.lines.extend(said);
                self.bash("count", &[("noun", noun)], &run)
            }
            _ => {
                let mut page = output::page(&random, &place, size);
                let slot = random.count(1, page.lines.len());
                let items = said.iter().map(|line| format!("- {line}"));
                page.lines.splice(slot..slot, items);
                let path = format!("docs/runbooks/{noun}-{}.md", random.between(10, 99_999));
                read(&path, &page.lines)
            }
        }
    }
}
