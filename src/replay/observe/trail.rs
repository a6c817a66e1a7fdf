//! The artifact trail: which files were read, created, modified and deleted, as far as the next
//! prompt still says so.
//!
//! The tool uses of the full history are the truth. The prompt's claims are the tool uses that are
//! still in it, and the lines of texts that replaced messages: `modified src/a.rs`, or `- src/a.rs`
//! below `Files changed:`.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::prelude::*;
use super::{CallView, Observer};
use crate::patterns::PerText;
use crate::record::{Arm, ArtifactTrail};
use crate::session::ground_truth::ArtifactVerb;
use crate::strategy::files::touched_by;

/// Something done to a file.
type Touch = (ArtifactVerb, Arc<str>);

/// Words that say what was done to a file.
static VERBS: LazyLock<BTreeMap<ArtifactVerb, String>> =
    LazyLock::new(|| toml::from_str(include_str!("trail/verbs.toml")).unwrap_or_default());

/// The changes to the files of a session, message by message: made once, shared by all cells.
#[derive(Debug, Default)]
pub struct TrailPlan {
    by_message: HashMap<usize, Vec<Touch>>,
    /// All paths of the session.
    paths: BTreeSet<Arc<str>>,
    /// The same by how they may be written shorter: from some folder on. `None` where several end so.
    by_end: HashMap<Box<str>, Option<Arc<str>>>,
    told: PerText<[Touch]>,
}

impl TrailPlan {
    /// Reads the tool uses of a session.
    pub fn new(session: &Session) -> Self {
        let mut paths: BTreeSet<Arc<str>> = BTreeSet::new();
        let mut by_message = HashMap::new();
        for (at, message) in session.messages().iter().enumerate() {
            let touched = message.tool_uses().flat_map(|(_, tool)| touched_by(tool));
            for (verb, path) in touched {
                let path: Arc<str> = path.into();
                let known = paths.get(&path).cloned().unwrap_or(path);
                paths.insert(known.clone());
                let touches: &mut Vec<Touch> = by_message.entry(at).or_default();
                touches.push((verb, known));
            }
        }
        let mut by_end: HashMap<Box<str>, Option<Arc<str>>> = HashMap::new();
        for path in &paths {
            for (at, _) in path.match_indices('/') {
                let same_end = by_end.entry(path[at + 1..].into());
                let several = same_end.and_modify(|path| *path = None);
                several.or_insert_with(|| Some(path.clone()));
            }
        }
        Self { by_message, paths, by_end, told: PerText::default() }
    }

    /// The changes to files that an entry names: the same when it is removed as when it was added.
    fn told_by(&self, entry: &Entry) -> Vec<Touch> {
        match &entry.origin {
            Origin::Verbatim(at) => self.by_message.get(at).cloned().unwrap_or_default(),
            // Arguments that were cleared no longer name a file.
            Origin::Edited { .. } | Origin::Restored(_) | Origin::Authored => {
                let touched = entry.message.tool_uses().flat_map(|(_, tool)| touched_by(tool));
                touched.map(|(verb, path)| (verb, path.into())).collect()
            }
            Origin::Derived(_) => {
                let texts = entry.message.model_text().iter();
                let told = texts.map(|text| self.told.get_or(text, || self.read(text).into()));
                told.flat_map(|told| told.to_vec()).collect()
            }
        }
    }

    /// The files of which a text says what was done to them.
    ///
    /// The verb of a path is the nearest one before it in its line, else the first one behind it,
    /// else that of the heading above the line: a line without a path that names a verb and ends
    /// with a colon, or begins with `#` or `<`.
    fn read(&self, text: &str) -> Vec<Touch> {
        let mut told = Vec::new();
        let mut heading = None;
        for line in text.lines() {
            let mut verbs: Vec<(usize, ArtifactVerb)> = Vec::new();
            let mut paths: Vec<(usize, Arc<str>)> = Vec::new();
            for (at, token) in tokens(line) {
                if let Some(verb) = verb_of(token) {
                    verbs.push((at, verb));
                } else if let Some(path) = self.path_of(token) {
                    paths.push((at, path));
                }
            }
            let words = line.trim();
            if paths.is_empty() {
                if words.ends_with(':') || words.starts_with(['#', '<']) {
                    heading = verbs.first().map(|(_, verb)| *verb);
                }
                continue;
            }
            for (at, path) in paths {
                let before = verbs.iter().rev().find(|(verb, _)| *verb < at);
                let verb = before.or(verbs.first()).map(|(_, verb)| *verb);
                told.extend(verb.or(heading).map(|verb| (verb, path)));
            }
        }
        told
    }

    /// The path that a token is: one of the session's, whole or from some folder on, or any other
    /// name with a folder and an ending.
    fn path_of(&self, token: &str) -> Option<Arc<str>> {
        let path = token.split_once(':').map_or(token, |(path, _)| path).trim_start_matches("./");
        if path.is_empty() {
            return None;
        }
        if let Some(known) = self.paths.get(path) {
            return Some(known.clone());
        }
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (stem, ending) = name.rsplit_once('.')?;
        let file_name = !stem.is_empty()
            && (1..=5).contains(&ending.len())
            && ending.starts_with(|c: char| c.is_ascii_alphabetic());
        if !file_name {
            return None;
        }
        if let Some(Some(known)) = self.by_end.get(path) {
            return Some(known.clone());
        }
        // A name alone that fits no file, or several, is not a path.
        (!folders.is_empty()).then(|| path.into())
    }
}

fn verb_of(token: &str) -> Option<ArtifactVerb> {
    if !token.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return None;
    }
    let mut verbs = VERBS.iter();
    let found =
        verbs.find(|(_, words)| words.split(' ').any(|word| word.eq_ignore_ascii_case(token)));
    found.map(|(verb, _)| *verb)
}

/// Runs without white space, quotes and brackets, without the punctuation around them.
fn tokens(line: &str) -> impl Iterator<Item = (usize, &str)> {
    line.split(|c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}')
            || matches!(c, '<' | '>' | ',' | ';' | '=' | '|' | '*')
    })
    .filter_map(move |token| {
        let trimmed = token.trim_matches(['.', ':', '!', '?', '\\']);
        let start = trimmed.as_ptr().addr() - line.as_ptr().addr();
        (!trimmed.is_empty()).then_some((start, trimmed))
    })
}

/// Follows what the context says of files, and writes [`CellRecord::trail`].
#[derive(Debug, Default)]
pub struct ArtifactTrailObserver {
    plan: Arc<TrailPlan>,
    /// How often the context says each.
    told: BTreeMap<Touch, i64>,
    /// The changes before the first message that was not read yet.
    done: BTreeSet<Touch>,
    seen: usize,
    /// Now, by verb: files touched, named, and named rightly.
    now: ArtifactTrail,
    sums: ArtifactTrail,
}

impl ArtifactTrailObserver {
    /// An observer for one cell of the plan's session.
    pub fn new(plan: Arc<TrailPlan>) -> Self {
        Self { plan, ..Self::default() }
    }

    fn count(&mut self, entry: &Entry, by: i64) {
        for touch in self.plan.told_by(entry) {
            let now = self.now.entry(touch.0).or_default();
            let right = if self.done.contains(&touch) { by } else { 0 };
            let times = self.told.entry(touch).or_default();
            let before = *times > 0;
            *times += by;
            if before != (*times > 0) {
                now.mentioned = now.mentioned.saturating_add_signed(by);
                now.correct = now.correct.saturating_add_signed(right);
            }
        }
    }

    /// Files touched and named at the last call, by verb.
    #[cfg(test)]
    pub(super) fn now(&self) -> &ArtifactTrail {
        &self.now
    }
}

impl Observer for ArtifactTrailObserver {
    fn entered(&mut self, entry: &Entry) {
        self.count(entry, 1);
    }

    fn left(&mut self, entry: &Entry) {
        self.count(entry, -1);
    }

    fn called(&mut self, view: &CallView<'_>) {
        let plan = self.plan.clone();
        while self.seen < view.before {
            for touch in plan.by_message.get(&self.seen).into_iter().flatten() {
                if self.done.insert(touch.clone()) {
                    let now = self.now.entry(touch.0).or_default();
                    now.touched += 1;
                    now.correct += u64::from(self.told.get(touch).is_some_and(|times| *times > 0));
                }
            }
            self.seen += 1;
        }
        for (verb, now) in &self.now {
            *self.sums.entry(*verb).or_default() += *now;
        }
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        record.trail = (record.arm != Arm::Floor).then_some(self.sums);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{ContentBlock, JsonText, Message, Role, SessionParts, ToolClass, ToolUse};

    fn plan() -> TrailPlan {
        let tool = |id: &str, class, input: &str| {
            Arc::new(Message::new(
                Role::Assistant,
                vec![ContentBlock::ToolUse(Box::new(ToolUse {
                    id: id.into(),
                    name: "tool".into(),
                    class,
                    input: JsonText::parse(input).unwrap(),
                }))],
            ))
        };
        let user = || Arc::new(Message::text(Role::User, "go on"));
        let messages = vec![
            user(),
            tool("1", ToolClass::Read, r#"{"path":"/repo/src/a.rs"}"#),
            user(),
            tool("2", ToolClass::Edit, r#"{"path":"/repo/src/a.rs"}"#),
            user(),
            tool("3", ToolClass::Write, r#"{"path":"src/b.rs","content":"x"}"#),
        ];
        let session =
            Session::new(SessionParts { id: "s".into(), messages, ..SessionParts::default() });
        TrailPlan::new(&session.unwrap())
    }

    #[track_caller]
    fn check(text: &str, expected: &[(ArtifactVerb, &str)]) {
        let told = plan().read(text);
        let told: Vec<_> = told.iter().map(|(verb, path)| (*verb, &**path)).collect();
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn what_a_summary_says_of_files_is_read_off_its_lines() {
        use ArtifactVerb::{Created, Deleted, Modified, Read};
        check("Modified src/a.rs.", &[(Modified, "/repo/src/a.rs")]);
        check(
            "I read `a.rs` and changed b.rs:12",
            &[(Read, "/repo/src/a.rs"), (Modified, "src/b.rs")],
        );
        check("src/b.rs was created", &[(Created, "src/b.rs")]);
        check(
            "Files changed:\n- a.rs\n\nFiles read:\n- src/b.rs",
            &[(Modified, "/repo/src/a.rs"), (Read, "src/b.rs")],
        );
        // A file that the session does not know is named nevertheless, and wrongly.
        check("deleted lib/c.rs", &[(Deleted, "lib/c.rs")]);
        check("deleted c.rs, and a.rs is there", &[(Deleted, "/repo/src/a.rs")]);
        check("Files changed:\n\nNotes:\n- a.rs", &[]);
        check("the file a.rs", &[]);
    }
}
