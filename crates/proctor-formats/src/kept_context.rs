//! The context after a compaction: messages that stayed, blocks that were replaced, and messages
//! that the product wrote.

use super::prelude::*;

/// The text that the model reads instead of a cleared result, in Claude Code and opencode. Anthropic's API does not say
/// what it shows.
pub(super) const CLEARED: &str = "[Old tool result content cleared]";

/// Texts that replace blocks, by message and block.
pub(super) type Edits = BTreeMap<usize, BTreeMap<usize, Arc<str>>>;

/// The context before message `at`: the messages that the last compaction left and those since.
/// None if its result cannot be read.
pub(super) fn context(compactions: &[RecordedCompaction], at: usize) -> Option<Vec<Recorded>> {
    let (mut pieces, since) = match compactions.last() {
        None => (Vec::new(), 0),
        Some(last) => match &last.after {
            CompactedTo::Replaced(pieces) => (pieces.clone(), last.at),
            CompactedTo::Encrypted | CompactedTo::Missing => return None,
        },
    };
    keep(since..at, &mut pieces);
    Some(pieces)
}

/// The pieces with these blocks replaced. A message that is in no piece stays out.
pub(super) fn edited(pieces: &[Recorded], edits: &Edits) -> Vec<Recorded> {
    let mut result = Vec::with_capacity(pieces.len());
    // The blocks of one message that were replaced before are together.
    let runs = pieces.chunk_by(|piece, next| match (piece, next) {
        (Recorded::Edited { message, .. }, Recorded::Edited { message: other, .. }) => {
            message == other
        }
        _ => false,
    });
    for run in runs {
        match &run[0] {
            Recorded::Edited { message, .. } => {
                let mut blocks = BTreeMap::new();
                for piece in run {
                    if let Recorded::Edited { block, text, .. } = piece {
                        blocks.insert(*block, text.clone());
                    }
                }
                blocks.extend(edits.get(message).cloned().unwrap_or_default());
                replace(*message, blocks, &mut result);
            }
            Recorded::Kept(range) => {
                let mut start = range.start;
                for (message, blocks) in edits.range(range.clone()) {
                    keep(start..*message, &mut result);
                    start = message + 1;
                    replace(*message, blocks.clone(), &mut result);
                }
                keep(start..range.end, &mut result);
            }
            written @ Recorded::Written(_) => result.push(written.clone()),
        }
    }
    result
}

fn replace(message: usize, blocks: BTreeMap<usize, Arc<str>>, pieces: &mut Vec<Recorded>) {
    let edits = blocks.into_iter().map(|(block, text)| Recorded::Edited { message, block, text });
    pieces.extend(edits);
}

/// The pieces with neighbouring ranges as one, so that equal contexts are equal lists.
pub(super) fn joined(pieces: Vec<Recorded>) -> Vec<Recorded> {
    let mut result: Vec<Recorded> = Vec::with_capacity(pieces.len());
    for piece in pieces {
        match (result.last_mut(), piece) {
            (Some(Recorded::Kept(last)), Recorded::Kept(next)) if last.end == next.start => {
                last.end = next.end;
            }
            (_, piece) => result.push(piece),
        }
    }
    result
}

/// Adds these messages, if there are any.
pub(super) fn keep(range: Range<usize>, pieces: &mut Vec<Recorded>) {
    pieces.extend((!range.is_empty()).then_some(Recorded::Kept(range)));
}

/// A record of a context after a compaction.
#[derive(Debug, Clone)]
pub(super) struct Shown {
    /// The record's name, by which the history may know it.
    pub(super) name: Text,
    /// Who speaks.
    pub(super) role: Role,
    /// Its blocks.
    pub(super) blocks: Blocks,
    /// Its tags.
    pub(super) tags: Vec<Tag>,
}

impl Shown {
    /// A record that says these blocks.
    pub(super) fn of(name: Text, role: Role, blocks: Blocks, tags: Vec<Tag>) -> Self {
        Self { name, role, blocks, tags }
    }
}

/// The records of the history by their names; several may make one message.
#[derive(Debug, Default)]
pub(super) struct Records(BTreeMap<Arc<str>, Blocks>);

impl Records {
    /// Takes note of a record of the history.
    pub(super) fn note(&mut self, name: Option<&Arc<str>>, blocks: &[ContentBlock]) {
        self.0.extend(name.map(|name| (name.clone(), blocks.to_vec())));
    }

    /// A context of records, as what stayed of the history before message `at` and what was
    /// written. A message of which only a part is shown counts as written.
    pub(super) fn pieces(&self, all: &[Shown], at: usize, assembler: &Assembler) -> Vec<Recorded> {
        let mut sizes: BTreeMap<usize, usize> = BTreeMap::new();
        for message in self.0.keys().filter_map(|name| assembler.message_of(name)) {
            *sizes.entry(message).or_default() += 1;
        }
        let runs = all.chunk_by(|record, next| {
            let [one, other] = [record, next].map(|record| self.unchanged(record, at, assembler));
            one == other && record.role == next.role
        });
        let mut pieces: Vec<Recorded> = Vec::new();
        for run in runs {
            match self.unchanged(&run[0], at, assembler) {
                Some(message) if sizes.get(&message) == Some(&run.len()) => {
                    Recorded::keep(message, &mut pieces);
                }
                _ => pieces.extend(written(run)),
            }
        }
        pieces
    }

    /// The message before `at` that has this record unchanged.
    fn unchanged(&self, record: &Shown, at: usize, assembler: &Assembler) -> Option<usize> {
        let name = record.name.as_ref()?;
        let same = self.0.get(name) == Some(&record.blocks);
        assembler.message_of(name).filter(|message| same && *message < at)
    }
}

/// One message of several records in a row; tool results first.
fn written(run: &[Shown]) -> Option<Recorded> {
    let mut blocks: Blocks = run.iter().flat_map(|one| one.blocks.clone()).collect();
    if blocks.is_empty() {
        return None;
    }
    blocks.sort_by_key(|block| !block.is_result());
    let tags: Vec<Tag> = run.iter().flat_map(|one| one.tags.clone()).collect();
    Some(Recorded::written(run.first()?.role, blocks, &tags))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[Recorded]) -> String {
        let piece = |piece: &Recorded| match piece {
            Recorded::Kept(range) => format!("{range:?}"),
            Recorded::Edited { message, block, text } => format!("{message}.{block}={text}"),
            Recorded::Written(_) => "+".to_owned(),
        };
        pieces.iter().map(piece).collect::<Vec<_>>().join(" ")
    }

    /// Edits the context before message 6 after a compaction that left `left`.
    #[track_caller]
    fn check(left: Vec<Recorded>, edits: &[(usize, usize)], expected: &str) {
        let compaction = RecordedCompaction {
            at: 4,
            trigger: None,
            pre_tokens: None,
            usage: None,
            after: CompactedTo::Replaced(left),
        };
        let mut by_message = Edits::new();
        for (message, block) in edits {
            let blocks = by_message.entry(*message).or_default();
            blocks.insert(*block, "x".into());
        }
        let pieces = context(&[compaction], 6).expect("it can be read");
        assert_eq!(shown(&edited(&pieces, &by_message)), expected);
    }

    #[test]
    fn blocks_are_replaced_wherever_their_message_still_stands() {
        let old = |block| Recorded::Edited { message: 2, block, text: "o".into() };
        check(vec![Recorded::Kept(0..4)], &[], "0..4 4..6");
        check(
            vec![Recorded::Kept(0..4)],
            &[(1, 0), (1, 2), (5, 0)],
            "0..1 1.0=x 1.2=x 2..4 4..5 5.0=x",
        );
        check(vec![], &[(1, 0), (4, 1)], "4.1=x 5..6");
        check(
            vec![old(0), old(3), Recorded::Kept(3..4)],
            &[(2, 1), (2, 3)],
            "2.0=o 2.1=x 2.3=x 3..4 4..6",
        );
    }

    #[test]
    fn what_is_encrypted_leaves_no_context_to_edit() {
        let compaction = RecordedCompaction {
            at: 1,
            trigger: None,
            pre_tokens: None,
            usage: None,
            after: CompactedTo::Encrypted,
        };
        assert!(context(&[compaction], 2).is_none());
        assert_eq!(shown(&context(&[], 2).expect("nothing was compacted")), "0..2");
    }
}
