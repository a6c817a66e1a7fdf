//! The files that a program consists of, each with a hash: whether it is still the one that made earlier results.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{Host, Launch};
use crate::files;
use crate::units::ContentHash;

/// Files by name, each with a hash of its content.
pub type LoadedFiles = BTreeMap<String, String>;

/// More files than this below a program's folder are not one program's: then those that the command names count.
const MOST_FILES: usize = 500;

/// The same of bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Folders that hold no source of a program: what tools install, build and write.
const NO_SOURCES: [&str; 5] = ["node_modules", "target", "__pycache__", "reports", "baselines"];

/// The same of files, by what their names end in.
const NO_SOURCE_FILES: [&str; 4] = [".html", ".log", ".pyc", ".svg"];

/// A folder that holds this file is the result of a run.
const RUN: &str = "run.json";

/// The files of a program that does not say which it loaded: all below the folders of the files that its command
/// names, by their path there. Where these are too many, the named files alone; where none is named, the program that
/// is started. What cannot be read has no part in it.
pub(super) fn below_folders(host: &Host, launch: &Launch) -> LoadedFiles {
    let named: Vec<&PathBuf> =
        launch.command.iter().filter_map(|word| host.files.get(word)).collect();
    if named.is_empty() {
        return started(host, launch).into_iter().collect();
    }
    let mut found = LoadedFiles::new();
    for folder in named.iter().filter_map(|path| path.parent()) {
        let mut walk = FolderWalk::default();
        if walk.take(folder, "") {
            found.append(&mut walk.found);
        }
    }
    // The named ones in any case: a folder may be too large, or its files hidden.
    found.extend(named.into_iter().filter_map(|path| hashed(path)));
    found
}

/// The program itself, looked up as the system does.
fn started(host: &Host, launch: &Launch) -> Option<(String, String)> {
    let program = Path::new(launch.command.first()?);
    host.search.iter().map(|folder| folder.join(program)).find_map(|path| hashed(&path))
}

fn hashed(path: &Path) -> Option<(String, String)> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let content = files::read(path).ok()?;
    Some((name, hash(&content)))
}

fn hash(content: &[u8]) -> String {
    ContentHash::of(content).hex(16)
}

/// The files below a folder, within limits.
#[derive(Default)]
struct FolderWalk {
    found: LoadedFiles,
    bytes: u64,
}

impl FolderWalk {
    /// Takes all files below a folder, whose own path there is `prefix`. Returns false once they are too many. Links to
    /// folders are not followed.
    fn take(&mut self, folder: &Path, prefix: &str) -> bool {
        let Ok(entries) = fs::read_dir(folder) else {
            return true;
        };
        for entry in entries.flatten() {
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            let fits = if kind.is_dir() {
                !holds_sources(&name, &path) || self.take(&path, &format!("{prefix}{name}/"))
            } else {
                !may_be_source(&name) || self.add(format!("{prefix}{name}"), &path)
            };
            if !fits {
                return false;
            }
        }
        true
    }

    fn add(&mut self, name: String, path: &Path) -> bool {
        // A device or a pipe has no content that could be read to its end.
        let Some(about) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else {
            return true;
        };
        self.bytes += about.len();
        if self.bytes > MOST_BYTES || self.found.len() >= MOST_FILES {
            return false;
        }
        if let Ok(content) = files::read(path) {
            self.found.insert(name, hash(&content));
        }
        true
    }
}

fn may_be_source(name: &str) -> bool {
    !name.starts_with('.') && !NO_SOURCE_FILES.iter().any(|end| name.ends_with(end))
}

fn holds_sources(name: &str, path: &Path) -> bool {
    !name.starts_with('.') && !NO_SOURCES.contains(&name) && !path.join(RUN).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every change below a program's folder is a change of the program; what runs and tools write there is none.
    #[test]
    fn a_program_is_all_that_lies_below_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("mine.sh", "one");
        let launch =
            Launch { command: vec!["sh".to_owned(), "mine.sh".to_owned()], ..Launch::default() };
        let host = Host {
            files: [("mine.sh".to_owned(), folder.path().join("mine.sh"))].into(),
            ..Host::default()
        };
        let state = || below_folders(&host, &launch);
        let first = state();
        for name in [".git/index", "runs/a/run.json", "runs/a/cells.jsonl", "reports/x", ".env"] {
            write(name, "written by others");
        }
        assert_eq!(state(), first);
        write("lib/helper.py", "two");
        let second = state();
        assert!(!first.contains_key("lib/helper.py") && second.contains_key("lib/helper.py"));
        write("lib/helper.py", "three");
        assert_ne!(state(), second);
        for number in 0..=MOST_FILES {
            write(&format!("data/{number}"), "");
        }
        assert_eq!(state().into_keys().collect::<Vec<_>>(), ["mine.sh"]);
    }
}
