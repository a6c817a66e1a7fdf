//! Unsupported names in summaries: the cheapest sign that a summary makes things up.
//!
//! The *atoms* of a summary are its paths, identifiers, ids and numbers. One is *supported* when it
//! stands in a message that the summary replaces, or in something else that made way for it. What an
//! earlier summary said supports nothing: else a second summary would make an invention true.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::OnceLock;

use foldhash::fast::RandomState;

use super::action_support::entities;
use super::prelude::*;
use crate::record::{SummaryAtoms, UnsupportedAtom};

/// The messages that hold each name, ascending.
type ByName = HashMap<Box<str>, Vec<u32>, RandomState>;

/// The number of examples that are kept for reports.
const EXAMPLES: usize = 5;

/// The names in each message of a session: made when the first summary is written, and shared by
/// all cells.
#[derive(Debug)]
pub struct SaidNames {
    session: Arc<Session>,
    by_name: OnceLock<ByName>,
}

impl SaidNames {
    /// The names of this session.
    pub fn new(session: &Arc<Session>) -> Self {
        Self { session: session.clone(), by_name: OnceLock::new() }
    }

    /// Whether a message of these ranges holds the name.
    fn stands_in(&self, name: &str, ranges: &[Range<usize>]) -> bool {
        let by_name = self.by_name.get_or_init(|| self.index());
        let Some(at) = by_name.get(name) else {
            return false;
        };
        ranges.iter().any(|range| {
            let first = at.partition_point(|message| (*message as usize) < range.start);
            at.get(first).is_some_and(|message| (*message as usize) < range.end)
        })
    }

    fn index(&self) -> ByName {
        let mut by_name = ByName::default();
        for (at, message) in (0_u32..).zip(self.session.messages()) {
            each_supported(message, |name| match by_name.get_mut(name) {
                Some(known) if known.last() == Some(&at) => {}
                Some(known) => known.push(at),
                None => {
                    by_name.insert(name.into(), vec![at]);
                }
            });
        }
        by_name
    }
}

/// Everything that the texts of a message support.
fn each_supported(message: &Message, mut found: impl FnMut(&str)) {
    for (text, block) in message.model_text().iter().zip(message.content()) {
        // In the arguments of a tool a line feed is written `\n`, and would stick to a name.
        if matches!(block, ContentBlock::ToolUse(_)) {
            let plain = text.replace("\\n", "\n").replace("\\t", "\t");
            entities::supported(&plain, &mut found);
        } else {
            entities::supported(text, &mut found);
        }
    }
}

/// Looks at each summary as it is put in its place, and writes [`CellRecord::summary_atoms`].
#[derive(Debug)]
pub struct UnsupportedEntities {
    said: Arc<SaidNames>,
    found: SummaryAtoms,
}

impl UnsupportedEntities {
    /// An observer for one cell of the names' session.
    pub fn new(said: Arc<SaidNames>) -> Self {
        Self { said, found: SummaryAtoms::default() }
    }

    fn look(&mut self, entry: &Entry, ranges: &[Range<usize>], applied: &Applied) {
        self.found.summaries += 1;
        let mut names: BTreeSet<String> = BTreeSet::new();
        for text in entry.message.model_text() {
            entities::names(text, |name| {
                names.insert(name.to_owned());
            });
        }
        self.found.atoms += names.len() as u64;
        names.retain(|name| !self.said.stands_in(name, ranges));
        if names.is_empty() {
            return;
        }
        // A text that a stage wrote itself, such as the path of an offloaded result, supports
        // names.
        for removed in &applied.change.removed {
            match removed.origin {
                Origin::Derived(_) => {}
                // The index has its names.
                Origin::Verbatim(at) if ranges.iter().any(|range| range.contains(&at)) => {}
                Origin::Verbatim(at) => {
                    let own = at..at + 1;
                    let own = std::slice::from_ref(&own);
                    names.retain(|name| !self.said.stands_in(name, own));
                }
                Origin::Edited { .. } | Origin::Restored(_) | Origin::Authored => {
                    each_supported(&removed.message, |name| {
                        names.remove(name);
                    });
                }
            }
        }
        self.found.unsupported += names.len() as u64;
        let room = EXAMPLES.saturating_sub(self.found.examples.len());
        let examples = names.into_iter().take(room).map(|atom| UnsupportedAtom {
            call: applied.call,
            stage: applied.stage.to_string(),
            atom,
        });
        self.found.examples.extend(examples);
    }
}

impl Observer for UnsupportedEntities {
    fn patched(&mut self, applied: &Applied) {
        for entry in applied.written() {
            let Origin::Derived(ranges) = &entry.origin else {
                continue;
            };
            // A summary that only moved is not a new one.
            if !applied.change.removed.iter().any(|removed| {
                matches!(removed.origin, Origin::Derived(_))
                    && removed.message.model_text() == entry.message.model_text()
            }) {
                self.look(entry, ranges, applied);
            }
        }
    }

    fn finish(self: Box<Self>, record: &mut CellRecord) {
        record.summary_atoms = (self.found.summaries > 0).then_some(self.found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::{Context, Edit};
    use crate::session::{Role, SessionParts};
    use crate::tokens::{CharsPer4, CountedTexts};

    fn session() -> Session {
        let texts = [
            "look at /repo/src/parser.rs and retry_limit",
            "the port is 48213, see HttpClient",
            "later: cache_size is 51001",
        ];
        let messages = texts.iter().enumerate().map(|(at, text)| {
            let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
            Arc::new(Message::text(role, *text))
        });
        Session::new(SessionParts {
            id: "s".into(),
            messages: messages.collect(),
            ..SessionParts::default()
        })
        .unwrap()
    }

    /// Replaces the first entries by summaries, one after the other.
    #[track_caller]
    fn check(summaries: &[(usize, &str)], expected: (u64, u64), examples: &[&str]) {
        let session = Arc::new(session());
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let mut observer = UnsupportedEntities::new(Arc::new(SaidNames::new(&session)));
        let mut context = Context::default();
        for (at, message) in session.messages().iter().enumerate() {
            context.append(Entry::new(Origin::Verbatim(at), message.clone(), &counts));
        }
        for (entries, text) in summaries {
            let origin = Origin::derived_from(&context.entries()[..*entries]);
            let message = Arc::new(Message::text(Role::User, *text));
            let edit = Edit::replacing(0..*entries, [Entry::new(origin, message, &counts)]);
            let change = context.apply(vec![edit]).unwrap();
            observer.patched(&Applied {
                call: 3,
                stage: "summarize".into(),
                reason: String::new(),
                change,
                is_still_over: false,
                prepared_at: None,
            });
        }
        let found = observer.found;
        assert_eq!((found.atoms, found.unsupported), expected, "{summaries:?}");
        let named: Vec<&str> = found.examples.iter().map(|it| it.atom.as_str()).collect();
        assert_eq!(named, examples, "{summaries:?}");
    }

    #[test]
    fn a_name_must_stand_in_what_the_summary_replaces() {
        check(&[(2, "src/parser.rs, parser.rs: port 48213.")], (3, 0), &[]);
        check(&[(2, "retry_limit HttpClient, plain words")], (2, 0), &[]);
        check(&[(2, "port 48214 in src/lexer.rs")], (2, 2), &["48214", "src/lexer.rs"]);
        // The session holds it, but after the messages that are replaced.
        check(&[(2, "cache_size")], (1, 1), &["cache_size"]);
        check(&[(3, "cache_size")], (1, 0), &[]);
    }

    #[test]
    fn a_second_summary_makes_no_invention_true() {
        let both = [(2, "port 99999"), (2, "port 99999, cache_size")];
        check(&both, (3, 2), &["99999", "99999"]);
        // The same text in another place is the same summary.
        check(&[(2, "port 99999"), (1, "port 99999")], (1, 1), &["99999"]);
    }
}
