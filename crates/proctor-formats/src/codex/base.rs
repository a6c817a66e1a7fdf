//! The beginning of a rollout that another rollout holds: newer forks, reverts and sub-agents copy nothing, and name
//! a thread and how many bytes of its rollout they go on from.

use crate::prelude::*;

/// How a rollout names what comes before it.
#[derive(Deserialize)]
pub(super) struct HistoryBase {
    thread_id: String,
    end_byte_offset: usize,
}

/// How deep rollouts lie in their folder: year, month and day.
const DEPTH: usize = 3;

/// The rollouts that were read for the sessions of a file.
pub(super) struct Rollouts {
    /// Those of the session under way, which goes on from each once.
    read: BTreeSet<PathBuf>,
    /// How many bytes may still be read: each session of a file that was joined may name the same rollout.
    left: u64,
}

impl Rollouts {
    /// None is read yet.
    pub(super) fn new() -> Self {
        Self { read: BTreeSet::new(), left: MAX_FILE }
    }

    /// Another session begins.
    pub(super) fn begin_session(&mut self) {
        self.read.clear();
    }

    /// The text that a base names, if all of it is in a rollout beside this one that was not read yet.
    pub(super) fn text(&mut self, from: &Path, base: &HistoryBase) -> Option<SourceText> {
        self.read.insert(from.to_owned());
        let mut folders = from.ancestors().skip(1).take(DEPTH + 1);
        let folder = folders.find(|folder| !folder.file_name().is_some_and(is_date))?;
        let path = rollout(&Folder::open(folder).ok()?, &format!("-{}", base.thread_id), DEPTH)?;
        if !self.read.insert(path.clone()) {
            return None;
        }
        let mut file = SourceFile::open(&path, self.left).ok()?;
        self.left = self.left.saturating_sub(file.length);
        if file.bytes.len() < base.end_byte_offset {
            return None;
        }
        file.bytes.truncate(base.end_byte_offset);
        Some(file.text())
    }
}

/// Whether a folder is named after a year, a month or a day.
fn is_date(name: &std::ffi::OsStr) -> bool {
    name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
}

/// The rollout in a folder whose name ends so. The end comes from a file: it is compared, and makes no path.
fn rollout(folder: &Folder, end: &str, depth: usize) -> Option<PathBuf> {
    if let Some(name) = folder.names().iter().find(|name: &&String| {
        name.starts_with("rollout-")
            && compressed::stem(Path::new(name.as_str())).trim_end_matches(".jsonl").ends_with(end)
    }) {
        return Some(folder.child(name));
    }
    let folders = folder.names().iter().filter(|_| depth > 0);
    folders.filter_map(|name| folder.folder(name)).find_map(|inner| rollout(&inner, end, depth - 1))
}
