//! Where agents keep their sessions: the table of `docs/reference/formats.md`, which says how a path is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::cli::{environment, say};
use crate::report::display::listed;
use crate::report::escape::plain;

static PAGE: &str = include_str!("../../../docs/reference/formats.md");

/// Products, and the paths at which their sessions may be.
fn table() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let section = PAGE.split("\n## ").find(|section| section.starts_with("Where "));
    section.into_iter().flat_map(str::lines).filter_map(|row| {
        let (product, cells) = row.strip_prefix("| ")?.split_once(" | `")?;
        let (_, cells) = cells.split_once("` | ")?;
        Some((product, cells.split('`').skip(1).step_by(2).collect()))
    })
}

/// Where products keep the recordings of a project, from a hidden file or folder of this name on.
pub(in crate::cli) fn in_project(name: &str) -> impl Iterator<Item = &'static str> {
    table().flat_map(|(_, paths)| paths).filter(move |path| path.split('/').next() == Some(name))
}

/// The end of the help text: whose sessions are found.
pub(super) fn help() -> String {
    let products: Vec<&str> = table().map(|(product, _)| product).collect();
    format!(
        "Looks where these keep their sessions: {}. `docs/reference/formats.md` lists the places. Reads \
         them, and changes nothing.",
        listed(&products, ", ").unwrap_or_else(|| "none".to_owned())
    )
}

/// What paths begin with.
pub(super) struct Start<'a> {
    home: &'a Path,
    /// None where the folder of another home is looked at.
    here: Option<&'a Path>,
    variable: fn(&str) -> Option<String>,
}

impl<'a> Start<'a> {
    /// In one's own home the current folder and the variables are looked at too.
    pub(super) fn of_home(home: &'a Path, is_own: bool) -> Self {
        Self {
            home,
            here: is_own.then_some(Path::new(".")),
            variable: if is_own { environment } else { |_| None },
        }
    }

    /// The folder at which a path of the table begins, and the rest of it.
    fn of<'p>(&self, path: &'p str) -> Option<(PathBuf, &'p str)> {
        let (first, rest) = path.split_once('/').unwrap_or((path, ""));
        match first.strip_prefix('$') {
            Some(name) => Some(((self.variable)(name)?.into(), rest)),
            None if first == "~" => Some((self.home.to_owned(), rest)),
            None => Some((self.here?.to_owned(), path)),
        }
    }

    /// The files and folders of the table that are there, each once, and none that is looked at with another. Says which
    /// cannot be looked at.
    pub(super) fn places(&self) -> Vec<PathBuf> {
        let mut places: BTreeMap<PathBuf, PathBuf> = BTreeMap::new();
        let mut closed = BTreeSet::new();
        for path in table().flat_map(|(_, paths)| paths) {
            let Some((folder, rest)) = self.of(path) else {
                continue;
            };
            for path in matching(folder, rest, &mut closed) {
                match path.canonicalize() {
                    // A pattern also matches other programs' folders.
                    Err(error)
                        if rest.contains('*') && error.kind() == ErrorKind::PermissionDenied => {}
                    found => {
                        let itself = there(&path, found, &mut closed);
                        itself.map(|itself| places.entry(itself).or_insert(path));
                    }
                }
            }
        }
        for text in &closed {
            say(text);
        }
        let mut kept: Vec<(PathBuf, PathBuf)> = Vec::new();
        for (itself, path) in places {
            let outer = kept.last().map(|(outer, _)| outer);
            if outer.is_none_or(|outer| !is_walked(outer, &itself)) {
                kept.push((itself, path));
            }
        }
        kept.into_iter().map(|(_, path)| path).collect()
    }
}

/// Whether a walk through `outer` comes to `inner`: it passes over hidden names.
fn is_walked(outer: &Path, inner: &Path) -> bool {
    let below = inner.strip_prefix(outer);
    below.is_ok_and(|below| below.iter().all(|name| !name.to_string_lossy().starts_with('.')))
}

/// The paths below a folder that a pattern stands for: `*` in one of its names is any text.
fn matching(folder: PathBuf, pattern: &str, closed: &mut BTreeSet<String>) -> Vec<PathBuf> {
    let mut paths = vec![folder];
    for name in pattern.split('/').filter(|name| !name.is_empty()) {
        paths = match name.split_once('*') {
            None => paths.iter().map(|path| path.join(name)).collect(),
            Some((start, end)) => {
                let inner = paths.iter().flat_map(|path| entries(path, closed));
                inner.filter(|path| fits(path, start, end)).collect()
            }
        };
    }
    paths
}

/// Whether a file's name begins and ends so.
fn fits(path: &Path, start: &str, end: &str) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let rest = name.strip_prefix(start);
    rest.is_some_and(|rest| rest.ends_with(end))
}

/// What is in a folder; nothing where it is none.
fn entries(folder: &Path, closed: &mut BTreeSet<String>) -> Vec<PathBuf> {
    let found = there(folder, std::fs::read_dir(folder), closed);
    let entries = found.into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// What was asked of a path, if it is there; where that cannot be told, the reason is added to `closed`.
fn there<T>(path: &Path, asked: io::Result<T>, closed: &mut BTreeSet<String>) -> Option<T> {
    match asked {
        Ok(found) => Some(found),
        Err(error) => {
            if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
                let text = format!("passed over: cannot look at `{}`: {error}", path.display());
                closed.insert(plain(&text));
            }
            None
        }
    }
}
