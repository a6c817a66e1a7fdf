//! A file that is read again and has not changed becomes a stub; older views of it make way.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::{BlockAt, CacheEffect, Context, Edit, Entry, Patch};
use crate::session::{ContentBlock, Role, ToolUse};
use crate::step::Step;
use crate::strategy::files::{self, View};
use crate::strategy::knob::KnobKind::{Flag, Text, Texts};
use crate::strategy::{
    Built, Knob, KnobReader, Law, PendingEdits, Planned, Situation, Stage, StageError, StageKind,
    Tools,
};
use crate::units::Tokens;

/// `kind = "dedupe_reads"`.
pub const KIND: StageKind = StageKind {
    name: "dedupe_reads",
    description: "a repeated read of an unchanged file becomes a stub as it comes in; older views \
                  of a file can be cleared",
    page: include_str!("../../../docs/stages/dedupe_reads.md"),
    knobs: KNOBS,
    // Results that just came in are what the user said last.
    breaks: &[Law::KeepsLastUserMessage],
    build,
};

const KNOBS: &[Knob] = &[
    Knob::new(
        "stub",
        Text("[File unchanged: what was read before still holds]"),
    ),
    Knob::new("supersede", Flag(false)),
    Knob::new("superseded", Text("[Older view of this file cleared]")),
    Knob::new("tools", Texts),
];

fn build(knobs: &mut KnobReader<'_>) -> Built {
    let stub = knobs.text("stub")?;
    Ok(Box::new(DedupeReads {
        stub: (!stub.is_empty()).then(|| stub.into()),
        supersedes: knobs.flag("supersede")?,
        superseded: knobs.text("superseded")?.into(),
        tools: Tools::only(knobs.texts("tools")?),
        seen: Seen::default(),
        expected: BTreeMap::new(),
        pending: PendingEdits::default(),
    }))
}

#[derive(Debug)]
struct DedupeReads {
    stub: Option<Arc<str>>,
    supersedes: bool,
    superseded: Arc<str>,
    tools: Tools,
    seen: Seen,
    /// Reads of the last response that ask for what is in the context already: by id, what they
    /// show if nothing has changed.
    expected: BTreeMap<Arc<str>, Arc<str>>,
    pending: PendingEdits,
}

/// What is known of the results so far: each is looked at once, until entries are replaced.
#[derive(Debug, Default)]
struct Seen {
    results: usize,
    /// [`Context::replacements`] at that time.
    replacements: u64,
    /// By path and range, the newest view; those of a file that was changed since are out of date.
    views: BTreeMap<View, Shown>,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    at: BlockAt,
    is_current: bool,
}

impl Stage for DedupeReads {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        self.look(context, cx);
        let edits = self
            .pending
            .edits(context, CacheEffect::Breaks, Tokens::ZERO);
        let reason = format!("{} older views of files", edits.len());
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn on_append(&mut self, entry: &Entry, cx: &Situation) -> Result<Patch, StageError> {
        if self.expected.is_empty() || entry.message.role() == Role::Assistant {
            return Ok(Patch::default());
        }
        let Some(stub) = &self.stub else {
            return Ok(Patch::default());
        };
        let mut edits = Vec::new();
        for (block, result) in entry.message.tool_results() {
            let Some(before) = self.expected.remove(&result.tool_use_id) else {
                continue;
            };
            let text = &entry.message.model_text()[block];
            let is_shorter = || cx.counts.size(stub).chars < cx.counts.size(text).chars;
            if !result.is_error && *text == before && is_shorter() {
                // The provider has not seen it yet.
                let at = BlockAt { entry: 0, block };
                edits.push(Edit::block(at, stub.clone(), CacheEffect::Breaks));
            }
        }
        let reason = format!("{} files read again unchanged", edits.len());
        Ok(Patch::new(reason, edits))
    }

    /// Finds out which reads of the response ask for what the context holds already.
    fn after_call<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> Planned<'a> {
        self.look(context, cx);
        self.expected.clear();
        let entries = context.entries().iter();
        let response = entries
            .rev()
            .take_while(|entry| entry.message.role() == Role::Assistant);
        let uses: Vec<&ToolUse> = response
            .flat_map(|entry| entry.message.tool_uses())
            .map(|(_, tool)| tool)
            .collect();
        let changed: Vec<String> = uses
            .iter()
            .flat_map(|tool| files::changed_by(tool))
            .collect();
        for tool in uses {
            let view = self.view(tool);
            let shown = view
                .filter(|view| !changed.contains(&view.path))
                .and_then(|view| self.seen.views.get(&view))
                .filter(|shown| shown.is_current);
            if let Some(text) = shown.and_then(|shown| as_it_was(context, shown.at)) {
                self.expected.insert(tool.id.clone(), text.clone());
            }
        }
        Step::Done(Ok(Patch::default()))
    }
}

impl DedupeReads {
    fn view(&self, tool: &ToolUse) -> Option<View> {
        files::view_of(tool).filter(|_| self.tools.include(Some(tool)))
    }

    /// Takes note of the results that are new.
    fn look(&mut self, context: &Context, cx: &Situation) {
        if self.seen.replacements != context.replacements() {
            self.pending.clear();
            self.seen = Seen {
                replacements: context.replacements(),
                ..Seen::default()
            };
        }
        for at in context.results().iter().skip(self.seen.results) {
            let message = &context.entries()[at.entry].message;
            let failed = match &message.content()[at.block] {
                ContentBlock::ToolResult(result) => result.is_error,
                _ => true,
            };
            let Some(tool) = context.tool_use_of(*at).filter(|_| !failed) else {
                continue;
            };
            for path in files::changed_by(tool) {
                for (_, shown) in self.views_of(&path) {
                    shown.is_current = false;
                }
            }
            // A stub shows nothing, and neither does what was cleared or cut.
            if as_it_was(context, *at).is_some()
                && let Some(view) = self.view(tool)
            {
                self.shows(context, view, *at, cx);
            }
        }
        self.seen.results = context.results().len();
    }

    fn views_of<'s>(
        &'s mut self,
        path: &'s str,
    ) -> impl Iterator<Item = (&'s View, &'s mut Shown)> {
        let first = View {
            path: path.to_owned(),
            range: String::new(),
        };
        let views = self.seen.views.range_mut(first..);
        views.take_while(move |(view, _)| view.path == path)
    }

    /// A view came in: older ones that it covers are superseded.
    fn shows(&mut self, context: &Context, view: View, at: BlockAt, cx: &Situation) {
        if self.supersedes {
            let covers = |older: &View| view.range.is_empty() || older.range == view.range;
            let older: Vec<(View, BlockAt)> = self
                .views_of(&view.path)
                // What came in one turn is one look at the file.
                .filter(|(older, shown)| covers(older) && is_earlier(context, shown.at, at))
                .map(|(older, shown)| (older.clone(), shown.at))
                .collect();
            let new = cx.counts.size(&self.superseded);
            for (older, at) in older {
                self.seen.views.remove(&older);
                if let Some(text) = as_it_was(context, at) {
                    let old = cx.counts.size(text);
                    if old.chars > new.chars {
                        let gain = old.tokens - new.tokens;
                        self.pending.push(at, self.superseded.clone(), gain);
                    }
                }
            }
        }
        let is_current = true;
        self.seen.views.insert(view, Shown { at, is_current });
    }
}

/// The result, where it still says what the tool said.
fn as_it_was(context: &Context, at: BlockAt) -> Option<&Arc<str>> {
    let entry = context.entries().get(at.entry)?;
    let text = entry.message.model_text().get(at.block)?;
    entry.is_verbatim(at.block).then_some(text)
}

/// Whether the model spoke between the two.
fn is_earlier(context: &Context, earlier: BlockAt, later: BlockAt) -> bool {
    let between = context.entries().get(earlier.entry..later.entry);
    between.is_some_and(|between| {
        let mut between = between.iter();
        between.any(|entry| entry.message.role() == Role::Assistant)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Message;
    use crate::strategy::stage::trial::{Trial, answers, asks, fails, said, typed};

    const A: &str = "the file as it was when it was read for the first time, which is long";
    const B: &str = "the file as it was after it had been changed, which is just as long here";
    const STUB: &str = "[File unchanged: what was read before still holds]";
    const OLD: &str = "[Older view of this file cleared]";

    fn reads(id: &str, input: &str, text: &str) -> Vec<Message> {
        vec![asks(&[(id, "Read", input)]), answers(&[(id, text)])]
    }

    fn results(trial: &Trial) -> Vec<&str> {
        let results = trial.context.results().iter();
        results
            .map(|at| &*trial.context.entries()[at.entry].message.model_text()[at.block])
            .collect()
    }

    #[track_caller]
    fn check(knobs: &str, rounds: &[Vec<Message>], expected: &[&str]) {
        let mut trial = Trial::new(&KIND, knobs);
        trial.append([typed("go")]);
        for round in rounds {
            trial.append(round.clone());
            trial.fire().unwrap();
        }
        assert_eq!(results(&trial), expected, "{knobs}");
        assert_eq!(trial.fire().unwrap(), None, "{knobs}");
    }

    #[test]
    fn only_what_is_there_unchanged_becomes_a_stub() {
        let a = r#"{"file_path":"a.rs"}"#;
        let first = reads("1", a, A);
        let again = |input: &str, text: &str| vec![first.clone(), reads("2", input, text)];
        check("", &again(a, A), &[A, STUB]);
        check("", &again(r#"{"file_path":"./a.rs"}"#, A), &[A, STUB]);
        check("", &again(a, B), &[A, B]);
        check("", &again(r#"{"file_path":"a.rs","offset":3}"#, A), &[A, A]);
        check("", &again(r#"{"file_path":"b.rs"}"#, A), &[A, A]);
        check("stub = ''", &again(a, A), &[A, A]);
        check("tools = ['class:shell']", &again(a, A), &[A, A]);
        check(
            "",
            &[
                first.clone(),
                vec![asks(&[("2", "Read", a)]), fails("2", A)],
            ],
            &[A, A],
        );
        check(
            "stub = 'gone'",
            &[reads("1", a, "four"), reads("2", a, "four")],
            &["four", "four"],
        );
        // A stub is no view: the third read points to the first as well.
        check(
            "",
            &[first.clone(), reads("2", a, A), reads("3", a, A)],
            &[A, STUB, STUB],
        );
        // The same text, but a tool has written the file in between.
        let edit = vec![asks(&[("e", "Edit", a)]), answers(&[("e", "done")])];
        let failed = vec![asks(&[("e", "Edit", a)]), fails("e", "no")];
        let other = vec![
            asks(&[("e", "Edit", r#"{"file_path":"b.rs"}"#)]),
            answers(&[("e", "done")]),
        ];
        check(
            "",
            &[first.clone(), edit, reads("2", a, A)],
            &[A, "done", A],
        );
        check(
            "",
            &[first.clone(), failed, reads("2", a, A)],
            &[A, "no", STUB],
        );
        check(
            "",
            &[first.clone(), other, reads("2", a, A)],
            &[A, "done", STUB],
        );
        // Changed by the very response that reads it.
        let both = vec![
            asks(&[("e", "Edit", a), ("2", "Read", a)]),
            answers(&[("e", "done"), ("2", A)]),
        ];
        check("", &[first, both], &[A, "done", A]);
    }

    #[test]
    fn a_stub_never_points_to_what_is_gone() {
        let a = r#"{"file_path":"a.rs"}"#;
        let mut trial = Trial::new(&KIND, "");
        trial.append([typed("go")]);
        trial.append(reads("1", a, A));
        trial.replace(1..3, "summary");
        trial.append(reads("2", a, A));
        assert_eq!(results(&trial), [A]);
        // It moved, and is still there.
        trial.replace(0..2, "summary");
        trial.append(reads("3", a, A));
        assert_eq!(results(&trial), [A, STUB]);
    }

    #[test]
    fn a_newer_view_clears_the_ones_it_covers() {
        let whole = r#"{"file_path":"a.rs"}"#;
        let part = r#"{"file_path":"a.rs","offset":3}"#;
        let on = "supersede = true";
        check(on, &[reads("1", whole, A), reads("2", whole, B)], &[OLD, B]);
        check("", &[reads("1", whole, A), reads("2", whole, B)], &[A, B]);
        check(on, &[reads("1", part, A), reads("2", whole, B)], &[OLD, B]);
        check(on, &[reads("1", whole, A), reads("2", part, B)], &[A, B]);
        check(
            on,
            &[reads("1", whole, A), reads("2", whole, A)],
            &[A, STUB],
        );
        check(
            on,
            &[
                reads("1", whole, A),
                reads("2", r#"{"file_path":"b.rs"}"#, B),
            ],
            &[A, B],
        );
        let twice = vec![
            asks(&[("1", "Read", whole), ("2", "Read", whole)]),
            answers(&[("1", A), ("2", B)]),
        ];
        check(on, &[twice, vec![said("ok")]], &[A, B]);
    }
}
