//! Results that were marked as no longer needed become a placeholder.

use super::prelude::*;

#[derive(Debug, Deserialize)]
pub(super) struct Snip {
    marks: Vec<String>,
    tool: String,
    placeholder: Arc<str>,
    #[serde(skip)]
    notes: PositionNotes<MarkedResults>,
}

/// The results so far: each is read once.
#[derive(Debug, Default)]
struct MarkedResults {
    /// Where the result of a call is.
    at: BTreeMap<Arc<str>, BlockAt>,
    /// The reads of a file since it was changed last.
    reads: BTreeMap<String, Vec<BlockAt>>,
    /// Marked results that the model has not answered yet.
    waiting: BTreeSet<BlockAt>,
    marked: BTreeSet<BlockAt>,
    pending: PendingEdits,
}

impl Stage for Snip {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let mut notes = std::mem::take(&mut self.notes);
        let (results, new) = notes.with_new(context);
        for at in context.results_in(new) {
            self.look(results, context, at);
        }
        // A result that the model has not read yet cannot count as unneeded.
        let entry = context.answered();
        let later = results.waiting.split_off(&BlockAt { entry, block: 0 });
        let new = cx.counts.size(&self.placeholder);
        for at in std::mem::replace(&mut results.waiting, later) {
            let message = &context.entries()[at.entry].message;
            let old = cx.counts.size(&message.model_text()[at.block]);
            if old.chars > new.chars && results.marked.insert(at) {
                let gain = old.tokens - new.tokens;
                results.pending.push(at, self.placeholder.clone(), gain);
            }
        }
        let pending = &mut results.pending;
        let due = pending.due(context, Tokens::ZERO);
        self.notes = notes;
        let reason = format!("{} results that were marked", due.len());
        let edits = Edit::blocks(context.entries(), due, CacheEffect::Breaks, &cx.counts);
        Step::Done(Ok(Patch::new(reason, edits)))
    }
}

impl Snip {
    /// Whether results are marked in this way: by the tool, where nothing is said.
    fn heeds(&self, mark: &str) -> bool {
        if self.marks.is_empty() {
            return mark == "tool";
        }
        self.marks.iter().any(|heeded| heeded == mark)
    }

    /// Takes note of one result, and of what it marks.
    fn look(&self, results: &mut MarkedResults, context: &Context, at: BlockAt) {
        let message = &context.entries()[at.entry].message;
        let Some(result) = message.content().get(at.block).and_then(ContentBlock::as_result) else {
            return;
        };
        results.at.insert(result.tool_use_id.clone(), at);
        if self.heeds("tag") && message.has_tag(Tag::Snip) {
            results.waiting.insert(at);
        }
        if let Some(tool) = context.tool_use_of(at) {
            self.mark_earlier(results, tool, result, at);
        }
    }

    /// Marks the earlier results that the answered tool use says are not needed. One that failed
    /// says nothing.
    fn mark_earlier(
        &self,
        results: &mut MarkedResults,
        tool: &ToolUse,
        result: &ToolResult,
        at: BlockAt,
    ) {
        if result.is_error {
            return;
        }
        if self.heeds("tool") && tool.name.eq_ignore_ascii_case(&self.tool) {
            each_text(&tool.input.value(), &mut |id| {
                let named = results.at.get(id).filter(|named| **named != at);
                results.waiting.extend(named);
            });
        }
        if self.heeds("read_then_edited") {
            for path in files::changed_by(tool) {
                let reads = results.reads.remove(&path);
                results.waiting.extend(reads.unwrap_or_default());
            }
            if let Some(view) = files::view_of(tool) {
                results.reads.entry(view.path).or_default().push(at);
            }
        }
    }
}

/// Every text in a value, names of fields left out.
fn each_text(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => found(text),
        Value::Array(values) => values.iter().for_each(|value| each_text(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| each_text(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::stage::trial::{Trial, answers, asks, build, fails, said, typed};

    const LONG: &str = "a result that is longer than what stands for it once it is cleared";
    const GONE: &str = "[Old tool result content cleared]";

    /// Two reads, the second tagged, then `then`.
    fn trial(knobs: &str, then: Vec<crate::session::Message>) -> Trial {
        let mut trial = Trial::new("snip", knobs);
        trial.append([
            typed("go"),
            asks(&[("r1", "Read", r#"{"path":"a.rs"}"#), ("r2", "Read", r#"{"path":"b.rs"}"#)]),
            answers(&[("r1", LONG)]),
            answers(&[("r2", LONG)]).with_tags([Tag::Snip]),
        ]);
        trial.append(then);
        trial
    }

    fn results(trial: &Trial) -> Vec<&str> {
        let texts = trial.texts();
        vec![texts[3], texts[4]]
    }

    #[test]
    fn each_mark_clears_what_it_names_and_nothing_else() {
        let snip = |input: &str, ok: bool| {
            let answer = if ok { answers(&[("s", "marked")]) } else { fails("s", "no") };
            vec![asks(&[("s", "Snip", input)]), answer]
        };
        let edit = |path: &str, ok: bool| {
            let input = format!(r#"{{"path":"{path}"}}"#);
            let answer = if ok { answers(&[("e", "done")]) } else { fails("e", "no") };
            vec![asks(&[("e", "Edit", &input)]), answer]
        };
        for (knobs, then, left) in [
            ("", snip(r#"{"results":["r1"]}"#, true), [GONE, LONG]),
            ("", snip(r#"{"results":["r1"]}"#, false), [LONG, LONG]),
            ("", snip(r#"{"ids":[{"id":"r1"},{"id":"r2"}]}"#, true), [GONE, GONE]),
            ("", snip(r#"{"results":["r9","s"]}"#, true), [LONG, LONG]),
            ("tool = 'forget'", snip(r#"{"results":["r1"]}"#, true), [LONG, LONG]),
            // The model has not seen it yet; then it has.
            ("marks = ['tag']", vec![], [LONG, LONG]),
            ("marks = ['tag']", vec![said("ok")], [LONG, GONE]),
            ("", vec![said("ok")], [LONG, LONG]),
            ("marks = ['read_then_edited']", edit("a.rs", true), [GONE, LONG]),
            ("marks = ['read_then_edited']", edit("a.rs", false), [LONG, LONG]),
            ("marks = ['read_then_edited']", edit("c.rs", true), [LONG, LONG]),
            ("", edit("a.rs", true), [LONG, LONG]),
            (
                "",
                vec![
                    asks(&[("n", "Read", "{}"), ("s", "snip", r#"["r1", "n"]"#)]),
                    answers(&[("n", LONG), ("s", "ok")]),
                ],
                [GONE, LONG],
            ),
        ] {
            let mut trial = trial(knobs, then);
            trial.fire().unwrap();
            assert_eq!(results(&trial), left, "{knobs}");
            assert_eq!(trial.fire().unwrap(), None, "{knobs}");
        }
    }

    #[test]
    fn marks_are_found_again_after_entries_were_replaced() {
        let mut trial = trial("", vec![]);
        trial.fire().unwrap();
        trial.replace(0..1, "instead");
        trial.append([asks(&[("s", "snip", r#"["r2"]"#)]), answers(&[("s", "ok")])]);
        assert_eq!(trial.fire().unwrap().unwrap(), "1 results that were marked");
        assert_eq!(results(&trial), [LONG, GONE]);
    }

    #[test]
    fn what_a_guard_refused_comes_back_with_the_next_mark() {
        let mark = |id: &str, named: &str| {
            [asks(&[(id, "snip", &format!(r#"["{named}"]"#))]), answers(&[(id, "ok")])]
        };
        let mut trial = trial("", mark("s1", "r1").to_vec());
        assert_eq!(trial.refuse(), 1);
        assert_eq!(trial.refuse(), 0);
        assert_eq!(results(&trial), [LONG, LONG]);
        trial.append(mark("s2", "r2"));
        assert_eq!(trial.fire().unwrap().unwrap(), "2 results that were marked");
        assert_eq!(results(&trial), [GONE, GONE]);
    }

    #[test]
    fn a_short_result_stays() {
        let mut trial = Trial::new("snip", "placeholder = 'gone'");
        trial.append([
            typed("go"),
            asks(&[("r1", "Read", "{}"), ("r2", "Read", "{}")]),
            answers(&[("r1", "four"), ("r2", "fives")]),
            asks(&[("s", "snip", r#"["r1", "r2"]"#)]),
            answers(&[("s", "ok")]),
        ]);
        trial.fire().unwrap();
        assert_eq!(trial.texts()[3..5], ["four", "gone"]);
    }

    #[test]
    fn an_unknown_mark_is_refused() {
        let error = build("snip", "marks = ['tool', 'taste']").unwrap_err();
        assert_eq!(
            error.to_string(),
            "`own.toml`: line 1: `snip.marks` names `taste`: it must be of `tool`, `tag`, \
             `read_then_edited`"
        );
    }
}
