//! A file that is read again and has not changed becomes a stub; older views of it make way.

use super::prelude::*;
use crate::strategy::files::{self, FileView};

/// Replaces an older view that is longer.
const SUPERSEDED: &str = "[Older view of this file cleared]";

#[derive(Debug, Deserialize)]
pub(super) struct DedupeReads {
    stub: Arc<str>,
    supersede: bool,
    tools: ToolList,
    #[serde(skip)]
    notes: PositionNotes<Views>,
    /// Reads of the last response that ask for what is in the context already: by id, what they
    /// show if nothing has changed.
    #[serde(skip)]
    expected: BTreeMap<Arc<str>, Arc<str>>,
}

/// The views in the results so far: each result is read once.
#[derive(Debug, Default)]
struct Views {
    /// By path and range, the newest view; those of a file that was changed since are out of date.
    newest: BTreeMap<FileView, ShownView>,
    /// Older views that are to be cleared.
    pending: PendingEdits,
}

#[derive(Debug, Clone, Copy)]
struct ShownView {
    at: BlockAt,
    is_current: bool,
}

impl Stage for DedupeReads {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let pending = &mut self.look(context, cx).pending;
        let due = pending.due(context, Tokens::ZERO);
        let reason = format!("{} older views of files", due.len());
        let edits = Edit::blocks(context.entries(), due, CacheEffect::Breaks, &cx.counts);
        Step::Done(Ok(Patch::new(reason, edits)))
    }

    fn on_append(&mut self, entry: &Entry, cx: &Situation) -> Result<Patch, StageError> {
        if self.expected.is_empty() || entry.message.role() == Role::Assistant {
            return Ok(Patch::default());
        }
        let mut stubs = Vec::new();
        for (block, result) in entry.message.tool_results() {
            let Some(before) = self.expected.remove(&result.tool_use_id) else {
                continue;
            };
            let text = &entry.message.model_text()[block];
            let shorter = cx.counts.size(&self.stub).chars < cx.counts.size(text).chars;
            if !result.is_error && *text == before && shorter {
                stubs.push((BlockAt { entry: 0, block }, self.stub.clone()));
            }
        }
        let reason = format!("{} files read again unchanged", stubs.len());
        // The provider has not seen it yet.
        let (entries, cache) = (std::slice::from_ref(entry), CacheEffect::Breaks);
        let edits = Edit::blocks(entries, stubs, cache, &cx.counts);
        Ok(Patch::new(reason, edits))
    }

    /// Finds out which reads of the response ask for what the context holds already.
    fn after_call<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        self.look(context, cx);
        self.expected.clear();
        if self.stub.is_empty() {
            return Step::Done(Ok(Patch::default()));
        }
        let newest = &self.notes.up_to_date(context).newest;
        let entries = context.entries().iter();
        let response =
            entries.rev().take_while(|entry: &&Entry| entry.message.role() == Role::Assistant);
        let uses: Vec<&ToolUse> =
            response.flat_map(|entry| entry.message.tool_uses()).map(|(_, tool)| tool).collect();
        let changed: Vec<String> = uses.iter().flat_map(|tool| files::changed_by(tool)).collect();
        for tool in uses {
            let shown = view(tool, &self.tools)
                .filter(|view| !changed.contains(&view.path))
                .and_then(|view| newest.get(&view))
                .filter(|shown| shown.is_current);
            if let Some(text) = shown.and_then(|shown| as_it_was(context, shown.at)) {
                self.expected.insert(tool.id.clone(), text.clone());
            }
        }
        Step::Done(Ok(Patch::default()))
    }
}

impl DedupeReads {
    /// Takes note of the results that are new.
    fn look(&mut self, context: &Context, cx: &Situation) -> &mut Views {
        let (views, new) = self.notes.with_new(context);
        for at in context.results_in(new) {
            let block = &context.entries()[at.entry].message.content()[at.block];
            let failed = block.as_result().is_none_or(|result| result.is_error);
            let Some(tool) = context.tool_use_of(at).filter(|_| !failed) else {
                continue;
            };
            for path in files::changed_by(tool) {
                for (_, shown) in views.of_file(&path) {
                    shown.is_current = false;
                }
            }
            // A stub shows nothing, and neither does what was cleared or cut.
            if as_it_was(context, at).is_some()
                && let Some(view) = view(tool, &self.tools)
            {
                if self.supersede {
                    views.supersede(context, &view, at, cx);
                }
                views.newest.insert(view, ShownView { at, is_current: true });
            }
        }
        views
    }
}

/// The view that the tool use shows, if the stage handles its tool.
fn view(tool: &ToolUse, tools: &ToolList) -> Option<FileView> {
    files::view_of(tool).filter(|_| tools.allow(Some(tool)))
}

impl Views {
    fn of_file<'s>(
        &'s mut self,
        path: &'s str,
    ) -> impl Iterator<Item = (&'s FileView, &'s mut ShownView)> {
        let first = FileView { path: path.to_owned(), range: String::new() };
        let views = self.newest.range_mut(first..);
        views.take_while(move |(view, _)| view.path == path)
    }

    /// Has older views replaced that a new one covers.
    fn supersede(&mut self, context: &Context, view: &FileView, at: BlockAt, cx: &Situation) {
        let older: Vec<(FileView, BlockAt)> = self
            .of_file(&view.path)
            // The results of one turn are one view of the file.
            .filter(|(older, shown)| {
                (view.range.is_empty() || older.range == view.range)
                    && is_earlier(context, shown.at, at)
            })
            .map(|(older, shown)| (older.clone(), shown.at))
            .collect();
        let text: Arc<str> = SUPERSEDED.into();
        let new = cx.counts.size(&text);
        for (older, at) in older {
            self.newest.remove(&older);
            let old = as_it_was(context, at).map(|old| cx.counts.size(old));
            if let Some(old) = old.filter(|old| old.chars > new.chars) {
                self.pending.push(at, text.clone(), old.tokens - new.tokens);
            }
        }
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
    between
        .is_some_and(|between| between.iter().any(|entry| entry.message.role() == Role::Assistant))
}

#[cfg(test)]
mod tests {
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
        let results = trial.context.results();
        results
            .map(|at| &*trial.context.entries()[at.entry].message.model_text()[at.block])
            .collect()
    }

    #[track_caller]
    fn check(knobs: &str, rounds: &[Vec<Message>], expected: &[&str]) {
        let mut trial = Trial::new("dedupe_reads", knobs);
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
        check("", &[first.clone(), vec![asks(&[("2", "Read", a)]), fails("2", A)]], &[A, A]);
        check("stub = 'gone'", &[reads("1", a, "four"), reads("2", a, "four")], &["four", "four"]);
        // A stub is not a view: the third read points to the first as well.
        check("", &[first.clone(), reads("2", a, A), reads("3", a, A)], &[A, STUB, STUB]);
        // The same text, but a tool has written the file in between.
        let edit = vec![asks(&[("e", "Edit", a)]), answers(&[("e", "done")])];
        let failed = vec![asks(&[("e", "Edit", a)]), fails("e", "no")];
        let other =
            vec![asks(&[("e", "Edit", r#"{"file_path":"b.rs"}"#)]), answers(&[("e", "done")])];
        check("", &[first.clone(), edit, reads("2", a, A)], &[A, "done", A]);
        check("", &[first.clone(), failed, reads("2", a, A)], &[A, "no", STUB]);
        check("", &[first.clone(), other, reads("2", a, A)], &[A, "done", STUB]);
        // Changed by the very response that reads it.
        let both =
            vec![asks(&[("e", "Edit", a), ("2", "Read", a)]), answers(&[("e", "done"), ("2", A)])];
        check("", &[first, both], &[A, "done", A]);
    }

    #[test]
    fn a_stub_never_points_to_what_is_gone() {
        let a = r#"{"file_path":"a.rs"}"#;
        let mut trial = Trial::new("dedupe_reads", "");
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
        check(on, &[reads("1", whole, A), reads("2", whole, A)], &[A, STUB]);
        check(on, &[reads("1", whole, A), reads("2", r#"{"file_path":"b.rs"}"#, B)], &[A, B]);
        let twice = vec![
            asks(&[("1", "Read", whole), ("2", "Read", whole)]),
            answers(&[("1", A), ("2", B)]),
        ];
        check(on, &[twice, vec![said("ok")]], &[A, B]);
    }
}
