//! Follows what is done to files, so that at any message it is known on which list each one is.

use std::collections::BTreeMap;

use super::shell::shown_files;
use super::{ArtifactVerb, TouchedFile};

/// The change to each file, with the message from which on it counts.
///
/// A file that was created stays so while it is changed; one that was only read is modified as soon
/// as it is written to; one that was removed is neither, until it is made again.
#[derive(Debug, Default)]
pub struct FileLog {
    touched: BTreeMap<String, Vec<(ArtifactVerb, usize)>>,
    /// Files that a shell command showed, with the first message that did.
    shown: BTreeMap<String, usize>,
}

impl FileLog {
    /// Notes what the message of this index does to a file; messages come in their order.
    pub fn record(&mut self, verb: ArtifactVerb, path: &str, message: usize) {
        use ArtifactVerb::{Created, Deleted, Modified, Read};
        let known = self.touched.entry(path.to_owned()).or_default();
        let now = match (known.last().map(|(verb, _)| *verb), verb) {
            (None, verb) => verb,
            (Some(last), Read) => last,
            (Some(_), Deleted) => Deleted,
            (Some(Created | Deleted), Created | Modified) => Created,
            // A file that was read before and is written as a whole existed already.
            (Some(Read | Modified), Created | Modified) => Modified,
        };
        if known.last().is_none_or(|(last, _)| *last != now) {
            known.push((now, message));
        }
    }

    /// Notes the files that a shell command of the message of this index shows.
    pub fn record_command(&mut self, command: &str, message: usize) {
        for path in shown_files(command) {
            self.shown.entry(path).or_insert(message);
        }
    }

    /// The files that may be on the list of what was only read: a shell command showed them, and
    /// nothing created, changed or removed them. By message, then by path.
    pub fn optional(&self, verb: ArtifactVerb) -> Vec<TouchedFile> {
        if verb != ArtifactVerb::Read {
            return Vec::new();
        }
        let files = self.shown.iter().map(|(path, message)| {
            let mut done = self.touched.get(path).into_iter().flatten();
            let changed = done.find(|(verb, _)| *verb != ArtifactVerb::Read);
            TouchedFile {
                path: path.clone(),
                message: *message,
                until: changed.map(|(_, message)| *message),
            }
        });
        let mut files: Vec<TouchedFile> =
            files.filter(|file| file.until.is_none_or(|until| until > file.message)).collect();
        files.sort_by(|a, b| (a.message, &a.path).cmp(&(b.message, &b.path)));
        files
    }

    /// The files that were on this list at any time, by message, then by path.
    pub fn files(&self, verb: ArtifactVerb) -> Vec<TouchedFile> {
        let mut files: Vec<TouchedFile> = Vec::new();
        for (path, done) in &self.touched {
            for (at, (state, message)) in done.iter().enumerate() {
                let until = done.get(at + 1).map(|(_, next)| *next);
                // A state that ends in the message that began it never held.
                if *state == verb && until != Some(*message) {
                    files.push(TouchedFile { path: path.clone(), message: *message, until });
                }
            }
        }
        files.sort_by(|a, b| (a.message, &a.path).cmp(&(b.message, &b.path)));
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(log: &FileLog, verb: ArtifactVerb, before: usize, expected: &[&str]) {
        let files = log.files(verb);
        let listed = files.iter().filter(|file| file.is_listed(before));
        let listed: Vec<&str> = listed.map(|file| file.path.as_str()).collect();
        assert_eq!(listed, expected, "{verb:?} before {before}");
    }

    #[test]
    fn a_file_is_on_the_list_of_what_was_done_to_it_so_far() {
        use ArtifactVerb::{Created, Deleted, Modified, Read};
        let mut log = FileLog::default();
        log.record(Read, "a", 1);
        log.record(Created, "b", 2);
        log.record(Read, "b", 3);
        log.record(Modified, "b", 4);
        log.record(Modified, "a", 5);
        log.record(Deleted, "b", 7);
        log.record(Created, "b", 9);
        check(&log, Read, 1, &[]);
        check(&log, Read, 5, &["a"]);
        check(&log, Read, 6, &[]);
        check(&log, Modified, 6, &["a"]);
        check(&log, Created, 7, &["b"]);
        check(&log, Created, 8, &[]);
        check(&log, Deleted, 8, &["b"]);
        check(&log, Deleted, 10, &[]);
        check(&log, Created, 10, &["b"]);
    }

    #[test]
    fn a_file_that_a_command_showed_may_be_called_read_until_it_is_changed() {
        let mut log = FileLog::default();
        log.record(ArtifactVerb::Created, "mine", 1);
        log.record_command("tail -n 20 logs/a.log | grep -v x; cat src/b.rs mine", 3);
        log.record(ArtifactVerb::Modified, "src/b.rs", 5);
        let optional = |before| {
            let files = log.optional(ArtifactVerb::Read).into_iter();
            files.filter(|file| file.is_listed(before)).map(|file| file.path).collect::<Vec<_>>()
        };
        assert!(optional(3).is_empty());
        assert_eq!(optional(5), ["logs/a.log", "src/b.rs"]);
        assert_eq!(optional(6), ["logs/a.log"]);
        assert_eq!(log.optional(ArtifactVerb::Modified), []);
    }
}
