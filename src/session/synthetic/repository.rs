//! Work in a repository: what the agent does in a round, and what it remembers of earlier ones.
//!
//! Arguments of tools reuse what was shown before: mostly of the last rounds, and every third time
//! of any round, however far back.

use serde_json::json;

use super::Recipe;
use super::code;
use super::facts::{Channel, Planned, Ways};
use super::files::{Files, numbered};
use super::grammar::WORDS;
use super::output::{self, Names, Output, Place};
use super::prose::{self, Topic};
use super::random::Random;
use super::words::SIZES;
use super::workspace::{Action, Choice, Intent, Limits, Moment, Round, Workspace, WorkspaceKind};

/// From this size on, only logs and data are plausible.
const HUGE: usize = 30_000;

/// Bytes of a line of a log, about.
const LINE: usize = 120;

/// The files, and what was shown so far and can be named again.
#[derive(Debug)]
pub(crate) struct Repository {
    files: Files,
    module: usize,
    unread: Vec<usize>,
    focus: usize,
    visited: Vec<usize>,
    changed: Vec<usize>,
    known: Names,
    pages: Vec<String>,
    created: usize,
    just_changed: bool,
    ways: Ways,
}

/// One of `items`: two times of three one of the last eight, else any.
fn remembered<T: Clone>(random: &mut Random, items: &[T]) -> Option<T> {
    let recent = items.len().saturating_sub(8);
    let from = if random.percent(66) { recent } else { 0 };
    items.get(from + random.index(items.len() - from)).cloned()
}

fn bash(command: &str, about: &str, output: &Output) -> Action {
    Action {
        failed: output.failed,
        ..Action::new(
            "Bash",
            json!({"command": command, "description": about}),
            output.lines.join("\n"),
        )
    }
}

fn read(path: &str, lines: &[String]) -> Action {
    Action::new("Read", json!({"file_path": path}), numbered(lines, 0))
}

impl Repository {
    /// A repository with at least that number of files.
    pub(crate) fn new(recipe: &Recipe, files: u64, random: &mut Random) -> Self {
        let count = usize::try_from(files).unwrap_or(usize::MAX);
        let mut repository = Self {
            files: Files::new(recipe.seed, count, random.usual_percent()),
            module: 0,
            unread: Vec::new(),
            focus: 0,
            visited: Vec::new(),
            changed: Vec::new(),
            known: Names::default(),
            pages: Vec::new(),
            created: 0,
            just_changed: false,
            ways: Ways::of(recipe),
        };
        repository.enter(random);
        repository
    }

    /// Turns to another module.
    fn enter(&mut self, random: &mut Random) {
        self.module = self.files.next_module(random);
        let module = &self.files.modules[self.module];
        self.unread.clone_from(module);
        self.unread.retain(|at| !self.files.all[*at].seen);
        random.shuffle(&mut self.unread);
        let last = self.unread.last().copied();
        self.focus = last.unwrap_or_else(|| random.pick(module));
    }

    /// Another file of the module than the one in focus.
    fn beside(&self, random: &mut Random) -> usize {
        let module = &self.files.modules[self.module];
        let at = random.index(module.len());
        if module[at] == self.focus {
            module[(at + 1) % module.len()]
        } else {
            module[at]
        }
    }

    /// The next file of the module that was not read; with none left, of the next module.
    fn next_unread(&mut self, random: &mut Random) -> Option<usize> {
        for _ in 0..3 {
            while let Some(at) = self.unread.pop() {
                if !self.files.all[at].seen {
                    return Some(at);
                }
            }
            self.enter(random);
        }
        None
    }

    fn intent(&mut self, random: &mut Random, choice: Choice<'_>, size: usize) -> Intent {
        if size >= HUGE {
            return Intent::Observe;
        }
        if matches!(choice, Choice::First) {
            return Intent::Orient;
        }
        if std::mem::take(&mut self.just_changed) && random.percent(55) {
            return Intent::Test;
        }
        let drawn = match choice {
            Choice::Weighted(weights) => random.weighted_key(weights),
            // Draws as well, so that the rest of the session does not depend on it.
            Choice::ReadOnly => [Intent::Read][random.weighted(&[1])],
            Choice::First => Intent::Orient,
            Choice::Aside => Intent::Aside,
        };
        match drawn {
            Intent::Edit | Intent::Create if self.visited.is_empty() => Intent::Read,
            drawn => drawn,
        }
    }

    /// The agent's words about its actions.
    fn saying(
        &mut self,
        random: &mut Random,
        intent: Intent,
        limits: Limits,
        actions: Vec<Action>,
    ) -> Round {
        let topic = self.topic(random);
        let mut text = prose::announcement(random, &topic, intent);
        for _ in 0..limits.talk.explanations(random, 58, 3) {
            let code = self.quotation(random);
            let explanation = prose::explanation(random, &topic, &code);
            text = format!("{explanation}\n\n{text}");
        }
        let thinks = limits.talk.thinks(random, 70);
        Round {
            thought: thinks.then(|| prose::thought(random, &topic)),
            text,
            actions,
        }
    }

    /// Some lines of a file that was read.
    fn quotation(&mut self, random: &mut Random) -> Vec<String> {
        let Some(at) = remembered(random, &self.visited) else {
            return Vec::new();
        };
        let lines = self.files.lines(at);
        let from = random.index(lines.len());
        let to = (from + random.count(8, 48)).min(lines.len());
        lines[from..to].to_vec()
    }

    fn orient(&mut self, random: &mut Random, size: usize) -> Vec<Action> {
        let path = self.place(random).path;
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        let module = self.files.modules[self.module].iter();
        let mut paths: Vec<&str> = module.map(|at| self.files.all[*at].path.as_str()).collect();
        paths.sort_unstable();
        let input = json!({"pattern": format!("{folder}/**")});
        let glob = Action::new("Glob", input, paths.join("\n"));
        match random.below(4) {
            0 => vec![glob],
            1 => vec![glob, self.search(random, size)],
            _ => vec![self.search(random, size)],
        }
    }

    fn read(&mut self, random: &mut Random, size: usize, limits: Limits) -> Vec<Action> {
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
                self.next_unread(random)
            };
            let known = if random.percent(45) && !self.changed.is_empty() {
                remembered(random, &self.changed)
            } else {
                remembered(random, &self.visited)
            };
            let Some(at) = fresh.or(known) else {
                break;
            };
            self.focus = at;
            if self.visited.last() != Some(&at) {
                self.visited.push(at);
            }
            self.files.all[at].seen = true;
            let path = self.files.all[at].path.clone();
            let lines = self.files.lines(at);
            let whole: usize = lines.iter().map(|line| line.len() + 8).sum();
            let fits = u64::try_from(whole).unwrap_or(u64::MAX) <= limits.most;
            if fits && (fresh.is_some() || whole <= size || random.percent(65)) {
                actions.push(read(&path, lines));
                continue;
            }
            let limit = (size / 42).clamp(10, lines.len().max(10));
            let offset = random.index(lines.len().saturating_sub(limit) + 1);
            let to = (offset + limit).min(lines.len());
            let input = json!({"file_path": path, "offset": offset + 1, "limit": limit});
            actions.push(Action::new(
                "Read",
                input,
                numbered(&lines[offset..to], offset),
            ));
        }
        if actions.is_empty() {
            actions.push(self.search(random, size));
        }
        actions
    }

    fn search(&mut self, random: &mut Random, size: usize) -> Action {
        let at = if random.percent(60) {
            self.focus
        } else {
            remembered(random, &self.visited).unwrap_or(self.focus)
        };
        let symbol = self.files.place(at, random).symbol;
        let around = (size / 300).min(20);
        let found = self.files.search(at, &symbol, around, size.max(400));
        let mut input = json!({"pattern": symbol});
        if around > 0 {
            input["context"] = json!(around);
        }
        let is_empty = found.is_empty();
        let output = if is_empty {
            "no matches".to_owned()
        } else {
            found.join("\n")
        };
        Action::new("Grep", input, output)
    }

    /// The place in focus, and others of its module.
    fn places(&self, random: &mut Random) -> Vec<Place> {
        let mut places = vec![self.place(random)];
        for _ in 0..3 {
            let at = random.pick(&self.files.modules[self.module]);
            let place = self.files.place(at, random);
            if place.language == places[0].language && place.noun == places[0].noun {
                places.push(place);
            }
        }
        places
    }

    fn shell(&mut self, command: &str, about: &str, output: &Output) -> Action {
        // Of long outputs the agent remembers the end, as a reader would.
        let tail = |names: &[String]| names[names.len().saturating_sub(5)..].to_vec();
        self.known.requests.extend(tail(&output.names.requests));
        self.known.tests.extend(tail(&output.names.tests));
        self.known.commits.extend(tail(&output.names.commits));
        bash(command, about, output)
    }

    fn test(&mut self, random: &mut Random, size: usize, now: i64) -> Action {
        let places = self.places(random);
        let Place { noun, language, .. } = places[0];
        if random.percent(22) {
            let command = language.fill("check_command", &[("noun", noun)]);
            let output = output::diagnostics(random, &places, size.min(12_000));
            return self.shell(&command, "check types without building", &output);
        }
        let command = match remembered(random, &self.known.tests).filter(|_| random.percent(45)) {
            None => language.fill("test_command", &[("noun", noun)]),
            Some(test) => format!("scripts/test --only '{test}'"),
        };
        let output = output::test_run(random, &places, now, size);
        self.shell(&command, "run the tests of the module", &output)
    }

    fn observe(&mut self, random: &mut Random, size: usize, now: i64) -> Action {
        let place = self.place(random);
        let noun = place.noun;
        if random.percent(35) {
            let command = format!("scripts/api get {noun} --format json");
            let output = output::json(random, &place, size);
            return self.shell(&command, "show recorded entries", &output);
        }
        let output = output::log(random, &place, now, size);
        let command = match remembered(random, &self.known.requests).filter(|_| random.percent(55))
        {
            Some(request) => format!("scripts/logs {noun} --around {request}"),
            None => format!("tail -n {} logs/{noun}.log", output.lines.len()),
        };
        self.shell(&command, "read the log of the service", &output)
    }

    fn edit(&mut self, random: &mut Random) -> Vec<Action> {
        let mut actions = Vec::new();
        for _ in 0..=random.weighted(&[80, 20]) {
            let Some(at) = remembered(random, &self.visited) else {
                break;
            };
            let Some(change) = self.files.change(at, random) else {
                continue;
            };
            self.focus = at;
            self.just_changed = true;
            self.changed.push(at);
            let path = self.files.all[at].path.clone();
            let from = change.at.saturating_sub(12);
            let lines = self.files.lines(at);
            let to = (change.at + change.length + 12).min(lines.len());
            let shown = numbered(&lines[from..to], from);
            let output = format!("Changed {path}. The lines around the change are now:\n{shown}");
            let (old, new) = (change.old, change.new);
            let input = json!({"file_path": path, "old_string": old, "new_string": new});
            actions.push(Action::new("Edit", input, output));
        }
        if actions.is_empty() {
            actions.push(self.search(random, 800));
        }
        actions
    }

    fn create(&mut self, random: &mut Random) -> Action {
        let at = remembered(random, &self.visited).unwrap_or(self.focus);
        self.created += 1;
        let topic = format!("{}_{}", WORDS.pick(random, "objects"), self.created);
        let bytes = random.count(2_000, 12_000);
        let (path, lines, tests) = code::test_file(random, &self.files.all[at], &topic, bytes);
        self.known.tests.extend(tests);
        self.just_changed = true;
        let content = lines.join("\n") + "\n";
        let output = format!(
            "Created {path}: {} lines, {} bytes. The file is new; it is part of the next test run \
             of its module, and nothing imports it. Run that module's tests to see the result.",
            lines.len(),
            content.len()
        );
        Action::new(
            "Write",
            json!({"file_path": path, "content": content}),
            output,
        )
    }

    fn history(&mut self, random: &mut Random, size: usize) -> Action {
        let changed = remembered(random, &self.changed);
        let is_changed = |at: &usize| !self.files.all[*at].hunks.is_empty();
        if let Some(at) = changed.filter(|at| is_changed(at) && random.percent(45)) {
            let command = format!("git diff {}", self.files.all[at].path);
            let output = self.files.diff(at).into();
            return self.shell(&command, "show what changed in the file", &output);
        }
        let commit = remembered(random, &self.known.commits).filter(|_| random.percent(45));
        if let (Some(commit), Some(at)) = (commit, remembered(random, &self.visited)) {
            let path = self.files.all[at].path.clone();
            let mut lines = vec![
                format!("commit {commit}"),
                String::new(),
                format!("    {}", WORDS.say(random, "reason", &[])),
                String::new(),
                format!("diff --git a/{path} b/{path}"),
            ];
            let text = self.files.lines(at);
            let count = (size / 40).clamp(6, 90);
            let from = random.index(text.len());
            for line in text.iter().skip(from).take(count) {
                let mark = if random.percent(25) { '+' } else { ' ' };
                lines.push(format!("{mark}{line}"));
            }
            let command = format!("git show {commit}");
            return self.shell(&command, "show one commit", &lines.into());
        }
        let place = self.place(random);
        let output = output::history(random, &place, size.min(9_000));
        let (count, path) = (output.lines.len(), place.path);
        let command = format!("git log --oneline -n {count} -- {path}");
        self.shell(&command, "list recent commits", &output)
    }

    fn fetch(&mut self, random: &mut Random, size: usize) -> Action {
        let place = self.place(random);
        let noun = place.noun;
        let known = remembered(random, &self.pages).filter(|_| random.percent(25));
        let slots = [("noun", noun)];
        let url = known.unwrap_or_else(|| WORDS.say(random, "address", &slots));
        self.pages.push(url.clone());
        let prompt = WORDS.say(random, "doc", &slots);
        let output = output::page(random, &place, size.min(20_000));
        let input = json!({"url": url, "prompt": prompt});
        Action::new("WebFetch", input, output.lines.join("\n"))
    }
}

impl Workspace for Repository {
    fn turn(&mut self, random: &mut Random) -> Option<Topic> {
        if self.unread.len() < 3 && !self.visited.is_empty() {
            self.enter(random);
        }
        Some(self.topic(random))
    }

    fn topic(&self, random: &mut Random) -> Topic {
        let here = self.place(random);
        let beside = self.beside(random);
        let earlier = self.visited.get(random.index(self.visited.len()));
        Topic {
            workspace: WorkspaceKind::Repository,
            language: self.ways.language,
            noun: here.noun,
            path: here.path,
            symbol: here.symbol,
            elsewhere: self.files.all[beside].path.clone(),
            earlier: earlier.map_or_else(String::new, |at| self.files.place(*at, random).symbol),
        }
    }

    fn place(&self, random: &mut Random) -> Place {
        self.files.place(self.focus, random)
    }

    fn round(
        &mut self,
        random: &mut Random,
        choice: Choice<'_>,
        now: i64,
        limits: Limits,
    ) -> Round {
        if matches!(choice, Choice::Aside) {
            return self.saying(random, Intent::Aside, limits, Vec::new());
        }
        let size = limits.size(random.size(&SIZES.results));
        let intent = self.intent(random, choice, size);
        let actions = match intent {
            Intent::Orient => self.orient(random, size),
            Intent::Read => self.read(random, size, limits),
            Intent::Search => vec![self.search(random, size)],
            Intent::Test => vec![self.test(random, size, now)],
            Intent::Observe => vec![self.observe(random, size, now)],
            Intent::Edit => self.edit(random),
            Intent::Create => vec![self.create(random)],
            Intent::History => vec![self.history(random, size)],
            Intent::Fetch => vec![self.fetch(random, size)],
            // Work at a help desk.
            _ => Vec::new(),
        };
        self.saying(random, intent, limits, actions)
    }

    fn reveal(&mut self, random: &mut Random, fact: &Planned, now: i64, limits: Limits) -> Action {
        let place = self.place(random);
        let noun = place.noun;
        let (ways, content) = (self.ways, fact.content.shuffled(random));
        let size = usize::try_from(random.size(&SIZES.results)).unwrap_or(2_900);
        let size = size.min(limits.aside);
        if fact.channel == Channel::Comment
            && let Some(at) = self.next_unread(random)
        {
            let comments = content.lines(random, ways, "logged");
            self.files.plant(at, &comments, random);
            let path = self.files.all[at].path.clone();
            return read(&path, self.files.lines(at));
        }
        match fact.channel {
            Channel::Config => {
                let (path, lines) = content.configuration(random, noun);
                read(&path, &lines)
            }
            Channel::Log => {
                let mut log = output::log(random, &place, now, size);
                let mut slot = random.index(log.lines.len());
                for text in content.lines(random, ways, "logged") {
                    let stamp = log.lines[slot].split(' ').next().unwrap_or("").to_owned();
                    log.lines
                        .insert(slot, format!("{stamp} INFO  {noun}: {text}"));
                    slot = (slot + random.count(1, 4)).min(log.lines.len() - 1);
                }
                let command = format!("tail -n {} logs/{noun}.log", log.lines.len());
                self.shell(&command, "read the log of the service", &log)
            }
            Channel::Failure => {
                let mut log = output::log(random, &place, now, size.min(900));
                log.lines.extend(content.lines(random, ways, "logged"));
                log.failed = true;
                let number = random.between(10, 99_999);
                let command = format!("scripts/exercise {noun} --run {number}");
                bash(&command, "run the exercise that is due", &log)
            }
            Channel::User | Channel::Comment | Channel::Runbook => {
                let mut page = output::page(random, &place, size);
                let slot = random.count(1, page.lines.len());
                let said = content.lines(random, ways, "said");
                let items = said.iter().map(|line| format!("- {line}"));
                page.lines.splice(slot..slot, items);
                let path = format!("docs/runbooks/{noun}-{}.md", random.between(10, 99_999));
                read(&path, &page.lines)
            }
        }
    }

    fn settings(&self, random: &mut Random, place: &Place, moment: Moment, line: String) -> Action {
        let mut lines = vec![line];
        for _ in 0..random.count(4, 12).min(moment.room / LINE) {
            let line = output::log_line(random, place, moment.now, &mut Vec::new());
            lines.insert(random.index(lines.len() + 1), line);
        }
        let command = format!("scripts/settings show {}", place.noun);
        bash(&command, "show the settings in force", &lines.into())
    }

    fn count(&self, random: &mut Random, place: &Place, moment: Moment, line: String) -> Action {
        let size = random.count(400, 2_400).min(moment.room);
        let places = std::slice::from_ref(place);
        let mut run = output::test_run(random, places, moment.now, size);
        run.lines.push(line);
        let command = format!("scripts/verify {} --count", place.noun);
        bash(&command, "run the tests and count the cases", &run)
    }

    fn failure(&self, random: &mut Random, place: &Place, moment: Moment) -> Action {
        let size = random.count(300, 1_800).min(moment.room);
        let mut log = output::log(random, place, moment.now, size);
        log.failed = true;
        let command = format!("scripts/prototype {}", place.noun);
        bash(&command, "try the idea on recorded traffic", &log)
    }
}
