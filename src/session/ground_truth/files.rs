//! Follows what is done to files, so that at any message it is known on which list each one is.

use std::collections::BTreeMap;

use super::{ArtifactVerb, TouchedFile};

/// What was done to each file, with the message from which on it counts.
///
/// A file that was created stays so while it is changed; one that was only read is modified as soon
/// as it is written to; one that was removed is neither, until it is made again.
#[derive(Debug, Default)]
pub struct FileLog(BTreeMap<String, Vec<(ArtifactVerb, usize)>>);

impl FileLog {
    /// Notes what the message of this index does to a file; messages come in their order.
    pub fn record(&mut self, verb: ArtifactVerb, path: &str, message: usize) {
        use ArtifactVerb::{Created, Deleted, Modified, Read};
        let known = self.0.entry(path.to_owned()).or_default();
        let now = match (known.last().map(|(verb, _)| *verb), verb) {
            (None, verb) => verb,
            (Some(last), Read) => last,
            (Some(_), Deleted) => Deleted,
            (Some(Created | Deleted), Created | Modified) => Created,
            // What was read before and is written as a whole was there already.
            (Some(Read | Modified), Created | Modified) => Modified,
        };
        if known.last().is_none_or(|(last, _)| *last != now) {
            known.push((now, message));
        }
    }

    /// The files that were on this list at any time, by message, then by path.
    pub fn files(&self, verb: ArtifactVerb) -> Vec<TouchedFile> {
        let mut files: Vec<TouchedFile> = Vec::new();
        for (path, done) in &self.0 {
            for (at, (state, message)) in done.iter().enumerate() {
                let until = done.get(at + 1).map(|(_, next)| *next);
                // What one message does in two steps was never the first of them.
                if *state == verb && until != Some(*message) {
                    files.push(TouchedFile {
                        path: path.clone(),
                        message: *message,
                        until,
                    });
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
}
