//! The files of the simulated repository: the truth that reads, searches and diffs are made from.
//!
//! The names of all files and what they define are fixed at the start, so that references hang
//! together; the text of a file is written when it is first looked at.

use std::collections::BTreeMap;

use super::code::{self, CodeLanguage, Import};
use super::grammar::{bank, fill};
use super::output::SourcePlace;
use super::random::Random;
use super::words::SIZES;

/// A repository of modules; a module is one noun in one language.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) all: Vec<File>,
    /// The files of each module.
    pub(crate) modules: Vec<Vec<usize>>,
    module: usize,
    random: Random,
}

/// One source file.
#[derive(Debug, Default)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) noun: &'static str,
    pub(crate) role: &'static str,
    pub(crate) language: CodeLanguage,
    pub(crate) functions: Vec<String>,
    /// Never shown again: it holds something that is said only once.
    pub(crate) sealed: bool,
    /// Whether the agent has read it.
    pub(crate) seen: bool,
    pub(crate) type_name: String,
    pub(crate) imports: Vec<Import>,
    importers: Vec<usize>,
    lines: Vec<String>,
    pub(crate) hunks: Vec<Hunk>,
}

/// A change of a file: new lines behind old ones.
#[derive(Debug)]
pub(crate) struct Hunk {
    /// Index of the first changed line.
    pub(crate) at: usize,
    pub(crate) old: Vec<String>,
    pub(crate) new: Vec<String>,
}

impl Files {
    /// A repository of at least `count` files (as far as there are names).
    pub(crate) fn new(seed: u64, count: usize, usual_percent: u64) -> Self {
        let random = Random::new(seed, "workspace");
        let pairs = |noun| CodeLanguage::all().map(move |language| (noun, language));
        let mut pairs: Vec<_> = bank("nouns").iter().copied().flat_map(pairs).collect();
        random.shuffle(&mut pairs);
        let mut files = Self { all: Vec::new(), modules: Vec::new(), module: 0, random };
        for (noun, language) in pairs {
            if files.all.len() >= count {
                break;
            }
            files.add_module(noun, language);
        }
        files.connect();
        // The text of the files, not what there is, has usual sizes.
        files.random = files.random.with_usual(usual_percent);
        files
    }

    fn add_module(&mut self, noun: &'static str, language: CodeLanguage) {
        let mut roles = bank("roles").to_vec();
        self.random.shuffle(&mut roles);
        roles.truncate(self.random.count(5, 12));
        let mut module = Vec::new();
        for role in roles {
            let slots = [("noun", noun), ("role", role)];
            let mut functions: Vec<String> = Vec::new();
            for _ in 0..self.random.count(2, 5) {
                let name = language.identifier(&self.random.say("function", &slots));
                if !functions.contains(&name) {
                    functions.push(name);
                }
            }
            module.push(self.all.len());
            self.all.push(File {
                path: language.path(noun, role),
                noun,
                role,
                language,
                functions,
                type_name: fill("{noun|pascal}{role|pascal}", &slots),
                ..Default::default()
            });
        }
        self.modules.push(module);
    }

    /// Lets every file use definitions of others in its language, mostly of its own module.
    fn connect(&mut self) {
        let mut by_language: BTreeMap<CodeLanguage, Vec<usize>> = BTreeMap::new();
        for (at, file) in self.all.iter().enumerate() {
            by_language.entry(file.language).or_default().push(at);
        }
        for module in 0..self.modules.len() {
            for at in self.modules[module].clone() {
                let mut used = vec![at];
                for _ in 0..self.random.count(1, 4) {
                    let pool = match by_language.get(&self.all[at].language) {
                        Some(all) if self.random.percent(40) => all,
                        _ => &self.modules[module],
                    };
                    let other = self.random.pick(pool);
                    if used.contains(&other) {
                        continue;
                    }
                    used.push(other);
                    let target = &self.all[other];
                    let import = Import {
                        noun: target.noun,
                        role: target.role,
                        symbol: target.functions[self.random.index(target.functions.len())].clone(),
                    };
                    self.all[at].imports.push(import);
                    self.all[other].importers.push(at);
                }
            }
        }
    }

    /// Turns to the next module, or back to an earlier one when all were visited.
    pub(crate) fn next_module(&mut self, random: &Random) -> usize {
        self.module += 1;
        if self.module <= self.modules.len() {
            self.module - 1
        } else {
            random.index(self.modules.len())
        }
    }

    /// A function of a file, as output can name it.
    pub(crate) fn place(&self, at: usize, random: &Random) -> SourcePlace {
        let file = &self.all[at];
        SourcePlace {
            noun: file.noun,
            path: file.path.clone(),
            symbol: file.functions[random.index(file.functions.len())].clone(),
            language: file.language,
        }
    }

    /// The lines of a file as they are now.
    pub(crate) fn lines(&mut self, at: usize) -> &[String] {
        if self.all[at].lines.is_empty() {
            let bytes = self.random.size(&SIZES.files);
            self.all[at].lines = code::file(&self.random, &self.all[at], bytes);
        }
        &self.all[at].lines
    }

    /// Hides comments in a file that was not read yet, and seals the file: it is shown once.
    pub(crate) fn plant(&mut self, at: usize, comments: &[String], random: &Random) {
        let language = self.all[at].language;
        let length = self.lines(at).len();
        let start = random.count(length / 4, length * 3 / 4);
        let lines = &mut self.all[at].lines;
        // A comment comes before a line that is not inside a multi-line construct only if that line
        // is blank; falling back to the end of the file is always right.
        let slot = (start..lines.len()).find(|i| lines[*i].is_empty()).unwrap_or(lines.len());
        let written = comments.iter().map(|text| language.fill("comment", &[("text", text)]));
        lines.splice(slot..slot, written);
        self.all[at].sealed = true;
        self.all[at].seen = true;
    }

    /// `path:line:text` for every line with `symbol` in the file that defines it and in the files
    /// that may use it, with `around` lines before and after each.
    pub(crate) fn search(
        &mut self,
        at: usize,
        symbol: &str,
        around: usize,
        bytes: usize,
    ) -> Vec<String> {
        let mut found = Vec::new();
        let mut size = 0;
        let users = self.all[at].importers.clone();
        for candidate in [at].into_iter().chain(users) {
            if self.all[candidate].sealed {
                continue;
            }
            let path = self.all[candidate].path.clone();
            let lines = self.lines(candidate);
            let mut shown = 0;
            for (hit, _) in lines.iter().enumerate().filter(|(_, line)| line.contains(symbol)) {
                let from = hit.saturating_sub(around).max(shown);
                shown = shown.max(hit + around + 1);
                for (at, text) in lines.iter().enumerate().take(shown).skip(from) {
                    if size >= bytes {
                        return found;
                    }
                    let mark = if at == hit { ':' } else { '-' };
                    let line = format!("{path}{mark}{}{mark}{text}", at + 1);
                    size += line.len() + 1;
                    found.push(line);
                }
            }
        }
        found
    }

    /// Changes a file: new lines after one to three old ones, that check what the last of them binds.
    /// `None` if no place in the file can be named without ambiguity.
    pub(crate) fn change(&mut self, at: usize, random: &Random) -> Option<&Hunk> {
        let all = self.lines(at).join("\n");
        let file = &mut self.all[at];
        for _ in 0..40 {
            let start = random.index(file.lines.len());
            let end = (start + random.count(1, 3)).min(file.lines.len());
            let old = file.lines[start..end].to_vec();
            let last = &old[old.len() - 1];
            // New lines follow a line that binds a name, and use that name.
            let Some(bound) = code::bound_name(last) else {
                continue;
            };
            if !old[0].starts_with("  ") || all.matches(&old.join("\n")).nth(1).is_some() {
                continue;
            }
            let indent: String = last.chars().take_while(|c| *c == ' ').collect();
            let mut new = old.clone();
            for _ in 0..random.count(1, 2) {
                new.extend(code::inserted_guard(random, file, &indent, &bound));
            }
            file.lines.splice(start..end, new.iter().cloned());
            let at = start;
            file.hunks.push(Hunk { at, old, new });
            return file.hunks.last();
        }
        None
    }

    /// The differences of a file from what it was, newest change last.
    pub(crate) fn diff(&self, at: usize) -> Vec<String> {
        let file = &self.all[at];
        let mut lines = vec![
            format!("diff --git a/{0} b/{0}", file.path),
            format!("--- a/{}", file.path),
            format!("+++ b/{}", file.path),
        ];
        for Hunk { at, old, new } in &file.hunks {
            let (at, before, after) = (at + 1, old.len(), new.len());
            lines.push(format!("@@ -{at},{before} +{at},{after} @@"));
            lines.extend(old.iter().map(|line| format!(" {line}")));
            lines.extend(new[before..].iter().map(|line| format!("+{line}")));
        }
        lines
    }
}

/// Lines with their numbers, as a read tool shows them.
pub(crate) fn numbered(lines: &[String], first: usize) -> String {
    let numbered =
        lines.iter().zip(first + 1..).map(|(line, number)| format!("{number:>5}\t{line}"));
    numbered.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_finds_is_what_a_read_shows_after_an_edit() {
        let mut files = Files::new(3, 30, 100);
        let random = Random::new(3, "test");
        let symbol = files.all[0].functions[0].clone();
        assert!(!files.search(0, &symbol, 0, 10_000).is_empty());
        while files.change(0, &random).is_none() {}
        let new = files.all[0].hunks[0].new.join("\n");
        let text = files.lines(0).join("\n");
        assert!(text.contains(&new));
        assert!(files.diff(0).len() > 4);
        let hit = files.search(0, &symbol, 0, 10_000).remove(0);
        let line: usize = hit.split(':').nth(1).expect("a line").parse().expect("a number");
        assert!(files.lines(0)[line - 1].contains(&symbol));
    }

    #[test]
    fn imports_name_functions_that_exist() {
        let files = Files::new(9, 60, 100);
        for file in &files.all {
            for import in &file.imports {
                let path = file.language.path(import.noun, import.role);
                let target = files.all.iter().find(|f| f.path == path).expect(&path);
                assert!(target.functions.contains(&import.symbol), "{path}");
            }
        }
    }
}
