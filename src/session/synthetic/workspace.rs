//! The simulated repository: the truth that reads, searches and diffs are made from.
//!
//! The names of all files and what they define are fixed at the start, so that references hang
//! together; the text of a file is written when it is first looked at.

use std::collections::BTreeMap;

use super::grammar::names::{NOUNS, OBJECTS, ROLES, VERBS, pascal};
use super::grammar::output::Place;
use super::grammar::source::{self, Import, Language, Outline};
use super::random::{Quantiles, Random};

/// Sizes of source files in bytes.
const FILE_SIZES: &Quantiles = &[
    (0, 500),
    (10_000, 1_300),
    (25_000, 2_300),
    (50_000, 4_600),
    (75_000, 7_900),
    (90_000, 13_500),
    (97_000, 20_000),
    (100_000, 32_000),
];

/// A repository of modules; a module is one noun in one language.
#[derive(Debug)]
pub(crate) struct Workspace {
    files: Vec<File>,
    modules: Vec<Vec<usize>>,
    module: usize,
    random: Random,
}

/// One source file.
#[derive(Debug)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) noun: &'static str,
    pub(crate) role: &'static str,
    pub(crate) language: Language,
    pub(crate) functions: Vec<String>,
    /// Never shown again: it holds something that is said only once.
    pub(crate) sealed: bool,
    /// Whether the agent has read it.
    pub(crate) seen: bool,
    type_name: String,
    imports: Vec<Import>,
    importers: Vec<usize>,
    lines: Option<Vec<String>>,
    hunks: Vec<Hunk>,
}

#[derive(Debug)]
struct Hunk {
    at: usize,
    old: Vec<String>,
    new: Vec<String>,
}

/// A change of a file, as an edit tool takes it.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) old: String,
    pub(crate) new: String,
    /// Index of the first changed line.
    pub(crate) at: usize,
    /// How many lines the new text has.
    pub(crate) length: usize,
}

impl Workspace {
    /// A repository of at least `count` files (as far as there are names).
    pub(crate) fn new(seed: u64, count: usize) -> Self {
        let mut random = Random::new(seed, "workspace");
        let mut pairs: Vec<(&'static str, Language)> = NOUNS
            .iter()
            .flat_map(|noun| Language::ALL.map(|language| (*noun, language)))
            .collect();
        random.shuffle(&mut pairs);
        let mut workspace = Self {
            files: Vec::new(),
            modules: Vec::new(),
            module: 0,
            random,
        };
        for (noun, language) in pairs {
            if workspace.files.len() >= count {
                break;
            }
            workspace.add_module(noun, language);
        }
        workspace.connect();
        workspace
    }

    /// The same repository with files whose usual size is so many percent.
    pub(crate) fn with_usual(mut self, percent: u64) -> Self {
        self.random = self.random.with_usual(percent);
        self
    }

    fn add_module(&mut self, noun: &'static str, language: Language) {
        let mut roles = ROLES.to_vec();
        self.random.shuffle(&mut roles);
        roles.truncate(self.random.count(5, 12));
        let mut module = Vec::new();
        for role in roles {
            let mut functions: Vec<String> = Vec::new();
            for _ in 0..self.random.count(2, 5) {
                let (verb, object) = (self.random.pick(VERBS), self.random.pick(OBJECTS));
                let name = language.name(&format!("{verb}_{noun}_{object}"));
                if !functions.contains(&name) {
                    functions.push(name);
                }
            }
            module.push(self.files.len());
            self.files.push(File {
                path: language.path(noun, role),
                noun,
                role,
                language,
                functions,
                sealed: false,
                seen: false,
                type_name: format!("{}{}", pascal(noun), pascal(role)),
                imports: Vec::new(),
                importers: Vec::new(),
                lines: None,
                hunks: Vec::new(),
            });
        }
        self.modules.push(module);
    }

    /// Lets every file use definitions of others in its language, mostly of its own module.
    fn connect(&mut self) {
        let mut by_language: BTreeMap<Language, Vec<usize>> = BTreeMap::new();
        for (at, file) in self.files.iter().enumerate() {
            by_language.entry(file.language).or_default().push(at);
        }
        for module in 0..self.modules.len() {
            for at in self.modules[module].clone() {
                let mut used = vec![at];
                for _ in 0..self.random.count(1, 4) {
                    let pool = match by_language.get(&self.files[at].language) {
                        Some(all) if self.random.percent(40) => all,
                        _ => &self.modules[module],
                    };
                    let other = self.random.pick(pool);
                    if used.contains(&other) {
                        continue;
                    }
                    used.push(other);
                    let target = &self.files[other];
                    let import = Import {
                        noun: target.noun,
                        role: target.role,
                        symbol: target.functions[self.random.index(target.functions.len())].clone(),
                    };
                    self.files[at].imports.push(import);
                    self.files[other].importers.push(at);
                }
            }
        }
    }

    /// One file.
    pub(crate) fn file(&self, at: usize) -> &File {
        &self.files[at]
    }

    /// Marks a file as read.
    pub(crate) fn see(&mut self, at: usize) {
        self.files[at].seen = true;
    }

    /// Turns to the next module, or back to an earlier one when all were visited.
    pub(crate) fn next_module(&mut self, random: &mut Random) -> usize {
        let at = if self.module < self.modules.len() {
            self.module
        } else {
            random.index(self.modules.len())
        };
        self.module += 1;
        at
    }

    /// The files of a module.
    pub(crate) fn module(&self, module: usize) -> &[usize] {
        &self.modules[module]
    }

    /// What output can say about a file.
    pub(crate) fn place(&self, at: usize, random: &mut Random) -> Place {
        let file = &self.files[at];
        Place {
            noun: file.noun,
            path: file.path.clone(),
            symbol: file.functions[random.index(file.functions.len())].clone(),
            language: file.language,
        }
    }

    /// The lines of a file as they are now.
    pub(crate) fn lines(&mut self, at: usize) -> &[String] {
        let Self { files, random, .. } = self;
        let file = &mut files[at];
        let outline = Outline {
            language: file.language,
            noun: file.noun,
            type_name: &file.type_name,
            functions: &file.functions,
            imports: &file.imports,
        };
        file.lines.get_or_insert_with(|| {
            let bytes = usize::try_from(random.size(FILE_SIZES)).unwrap_or(4_000);
            source::file(random, &outline, bytes)
        })
    }

    /// Hides `text` as a comment in a file nobody has seen, and seals the file: it is shown once.
    pub(crate) fn plant(&mut self, at: usize, comments: &[String], random: &mut Random) {
        let language = self.files[at].language;
        let length = self.lines(at).len();
        let start = random.count(length / 4, length * 3 / 4);
        let Some(lines) = self.files[at].lines.as_mut() else {
            return;
        };
        // A comment stands before a line that is not inside a multi-line construct only if that
        // line is blank; falling back to the end of the file is always right.
        let slot = (start..lines.len())
            .find(|i| lines[*i].is_empty())
            .unwrap_or(lines.len());
        let comments: Vec<String> = comments.iter().map(|text| language.comment(text)).collect();
        lines.splice(slot..slot, comments);
        self.files[at].sealed = true;
        self.files[at].seen = true;
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
        let mut candidates = vec![at];
        candidates.extend(self.files[at].importers.iter().copied());
        for candidate in candidates {
            if self.files[candidate].sealed {
                continue;
            }
            let lines = self.lines(candidate);
            let mut block = Vec::new();
            let mut shown = 0;
            for (number, line) in lines.iter().enumerate() {
                if !line.contains(symbol) {
                    continue;
                }
                let from = number.saturating_sub(around).max(shown);
                let to = (number + around + 1).min(lines.len());
                for (shift, text) in lines[from.min(to)..to].iter().enumerate() {
                    let at = from + shift;
                    let mark = if at == number { ':' } else { '-' };
                    block.push(format!("{mark}{}{mark}{text}", at + 1));
                }
                shown = shown.max(to);
            }
            let path = &self.files[candidate].path;
            for line in block {
                if size >= bytes {
                    return found;
                }
                size += path.len() + line.len() + 1;
                found.push(format!("{path}{line}"));
            }
        }
        found
    }

    /// Changes a file: new lines after one to three old ones, that check what the last of them binds.
    /// `None` if no place in the file can be named without ambiguity.
    pub(crate) fn change(&mut self, at: usize, random: &mut Random) -> Option<Change> {
        let language = self.files[at].language;
        let length = self.lines(at).len();
        let lines = self.files[at].lines.as_mut()?;
        let all = lines.join("\n");
        for _ in 0..40 {
            let start = random.index(length);
            let take = random.count(1, 3).min(length - start);
            let old: Vec<String> = lines[start..start + take].to_vec();
            let joined = old.join("\n");
            let (Some(first), Some(last)) = (old.first(), old.last()) else {
                continue;
            };
            // New lines follow a line that binds a name, and use that name.
            let Some(bound) = source::bound_name(last) else {
                continue;
            };
            if !first.starts_with("  ") || all.matches(&joined).nth(1).is_some() {
                continue;
            }
            let indent: String = last.chars().take_while(|c| *c == ' ').collect();
            let mut new = old.clone();
            for _ in 0..random.count(1, 2) {
                new.extend(source::inserted_guard(random, language, &indent, &bound));
            }
            let change = Change {
                old: joined,
                new: new.join("\n"),
                at: start,
                length: new.len(),
            };
            lines.splice(start..start + take, new.iter().cloned());
            self.files[at].hunks.push(Hunk {
                at: start,
                old,
                new,
            });
            return Some(change);
        }
        None
    }

    /// The differences of a file from what it was, newest change last.
    pub(crate) fn diff(&self, at: usize) -> Vec<String> {
        let file = &self.files[at];
        let mut lines = vec![
            format!("diff --git a/{0} b/{0}", file.path),
            format!("--- a/{}", file.path),
            format!("+++ b/{}", file.path),
        ];
        for Hunk { at, old, new } in &file.hunks {
            lines.push(format!(
                "@@ -{},{} +{},{} @@",
                at + 1,
                old.len(),
                at + 1,
                new.len()
            ));
            lines.extend(old.iter().map(|line| format!(" {line}")));
            lines.extend(new[old.len()..].iter().map(|line| format!("+{line}")));
        }
        lines
    }

    /// Whether a file was changed.
    pub(crate) fn is_changed(&self, at: usize) -> bool {
        !self.files[at].hunks.is_empty()
    }

    /// A new test file for the module of `at`: path, lines, names of the tests.
    pub(crate) fn test_file(
        &self,
        at: usize,
        random: &mut Random,
        topic: &str,
        bytes: usize,
    ) -> (String, Vec<String>, Vec<String>) {
        let file = &self.files[at];
        let outline = Outline {
            language: file.language,
            noun: file.noun,
            type_name: &file.type_name,
            functions: &file.functions,
            imports: &file.imports,
        };
        let (lines, names) = source::test_file(random, &outline, bytes);
        (
            file.language.test_path(file.noun, file.role, topic),
            lines,
            names,
        )
    }
}

/// Lines with their numbers, as a read tool shows them.
pub(crate) fn numbered(lines: &[String], first: usize) -> String {
    let mut text = String::with_capacity(lines.iter().map(|line| line.len() + 8).sum());
    for (shift, line) in lines.iter().enumerate() {
        if shift > 0 {
            text.push('\n');
        }
        let number = (first + shift + 1).to_string();
        text.extend(std::iter::repeat_n(
            ' ',
            5_usize.saturating_sub(number.len()),
        ));
        text.push_str(&number);
        text.push('\t');
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_search_finds_is_what_a_read_shows_after_an_edit() {
        let mut workspace = Workspace::new(3, 30);
        let mut random = Random::new(3, "test");
        let symbol = workspace.file(0).functions[0].clone();
        assert!(!workspace.search(0, &symbol, 0, 10_000).is_empty());
        let change = (0..20)
            .find_map(|_| workspace.change(0, &mut random))
            .expect("a change");
        let text = workspace.lines(0).join("\n");
        assert!(text.contains(&change.new));
        assert!(workspace.diff(0).len() > 4);
        let hit = workspace.search(0, &symbol, 0, 10_000).remove(0);
        let line: usize = hit
            .split(':')
            .nth(1)
            .expect("a line")
            .parse()
            .expect("a number");
        assert!(workspace.lines(0)[line - 1].contains(&symbol));
    }

    #[test]
    fn imports_name_functions_that_exist() {
        let workspace = Workspace::new(9, 60);
        for file in &workspace.files {
            for import in &file.imports {
                let path = file.language.path(import.noun, import.role);
                let target = workspace
                    .files
                    .iter()
                    .find(|f| f.path == path)
                    .expect(&path);
                assert!(target.functions.contains(&import.symbol), "{path}");
            }
        }
    }
}
