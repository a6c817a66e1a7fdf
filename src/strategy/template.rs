//! Templates: what a summary is asked to hold, and how it is read from the answer.

use std::sync::Arc;

/// The contents that a request for a summary asks for.
#[derive(Debug)]
pub(super) struct Template {
    /// The word in `template = "…"`.
    pub(super) name: &'static str,
    /// A line with the sections of the summary, and what is asked.
    text: &'static str,
    /// The request for each part of a conversation, if the template distinguishes them.
    spans: Option<[&'static str; 3]>,
    markup: Markup,
}

/// Which part of a conversation is summarised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SummarySpan {
    /// All of it.
    Full,
    /// The recent part; what is older stays in front of the summary.
    From,
    /// The older part; what is newer stays behind the summary.
    UpTo,
}

/// The markup around a summary in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Markup {
    /// Nothing: the answer is the summary.
    None,
    /// `<analysis>`, which is dropped, and `<summary>`, of which the text is kept.
    AnalysisAndSummary,
    /// A scratchpad, which is dropped, and `<state_snapshot>`, which is kept as it is.
    StateSnapshot,
}

static TEMPLATES: &[Template] = &[
    Template::new("continuity", include_str!("template/continuity.md")),
    Template::new("five-points", include_str!("template/five-points.md")),
    Template {
        spans: Some([
            include_str!("template/nine-sections.full.md"),
            include_str!("template/nine-sections.from.md"),
            include_str!("template/nine-sections.up-to.md"),
        ]),
        markup: Markup::AnalysisAndSummary,
        ..Template::new("nine-sections", include_str!("template/nine-sections.md"))
    },
    Template::new("checkpoint", include_str!("template/checkpoint.md")),
    Template::new("task-tracking", include_str!("template/task-tracking.md")),
    Template {
        markup: Markup::StateSnapshot,
        ..Template::new("state-snapshot", include_str!("template/state-snapshot.md"))
    },
    Template::new("objective", include_str!("template/objective.md")),
    Template::new("six-sections", include_str!("template/six-sections.md")),
    PLAIN,
];

const PLAIN: Template = Template::new("plain", include_str!("template/plain.md"));

const TEXT_ONLY: &str = include_str!("template/text-only.md");
const TEXT_ONLY_CLOSING: &str = include_str!("template/text-only.closing.md");

/// Asks for the same summary once more, checked.
pub(super) const VERIFY: &str = include_str!("template/verify.md");

/// Asks for an earlier summary to be continued.
pub(super) const UPDATE: &str = include_str!("template/update.md");

/// The request to write a summary again that lacks these identifiers.
pub(super) fn with_missing(identifiers: &[&str]) -> String {
    let listed = identifiers.join("\n- ");
    format!(
        "Your summary leaves out names that the work goes on with. Write it again in the same form, with these \
         in it, letter for letter:\n\n- {listed}"
    )
}

/// The template of that name; any other name is `plain`.
pub(super) fn named(name: &str) -> &'static Template {
    static DEFAULT: Template = PLAIN;
    TEMPLATES.iter().find(|template| template.name == name).unwrap_or(&DEFAULT)
}

/// The template whose markup a prompt of the user's own asks for; `plain` where it asks for none.
pub(super) fn asking_for(prompt: &str) -> &'static Template {
    if prompt.contains("<state_snapshot>") {
        named("state-snapshot")
    } else if prompt.contains("<summary>") {
        named("nine-sections")
    } else {
        named("plain")
    }
}

impl Template {
    pub(super) const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, spans: None, markup: Markup::None }
    }

    /// The line with the sections, and what is asked.
    fn parts(&self) -> (&'static str, &'static str) {
        let (head, body) = self.text.split_once('\n').unwrap_or((self.text, ""));
        (head.trim_start_matches("sections:").trim(), body)
    }

    /// The headings of the summary of this part, in order.
    pub(super) fn sections(&self, span: SummarySpan) -> Vec<String> {
        let listed = self.parts().0.split(" | ").filter(|one| !one.is_empty());
        let mut sections: Vec<String> = listed.map(str::to_owned).collect();
        if let (SummarySpan::UpTo, Some(_), Some(last)) = (span, self.spans, sections.last_mut()) {
            "Context for continuing work".clone_into(last);
        }
        sections
    }

    /// The opening of the request, before it says where the conversation is, and its closing; may be
    /// empty.
    pub(super) fn around(&self) -> [&'static str; 2] {
        match self.markup {
            Markup::AnalysisAndSummary => [TEXT_ONLY, TEXT_ONLY_CLOSING],
            Markup::None | Markup::StateSnapshot => ["", ""],
        }
    }

    /// The request for this part of a conversation.
    pub(super) fn body(&self, span: SummarySpan) -> String {
        let Some([full, from, up_to]) = self.spans else {
            return self.parts().1.trim_end().to_owned();
        };
        let parts = match span {
            SummarySpan::Full => full,
            SummarySpan::From => from,
            SummarySpan::UpTo => up_to,
        };
        let (scope, last) = parts.split_once("---\n").unwrap_or((parts, ""));
        let body = self.parts().1.replace("{scope}", scope.trim_end());
        body.replace("{last}", last.trim_end()).trim_end().to_owned()
    }

    /// The summary in the answer; empty if the answer holds none.
    ///
    /// An answer without the markup that was asked for is taken as it is, and one that was cut
    /// off inside its summary up to where it was cut off.
    pub(super) fn summary_in(&self, answer: &Arc<str>) -> Arc<str> {
        match self.markup {
            Markup::None => answer.clone(),
            Markup::AnalysisAndSummary => {
                read(answer, "analysis", "summary", |inner| format!("Summary:\n{inner}"))
            }
            Markup::StateSnapshot => read(answer, "scratchpad", "state_snapshot", |inner| {
                format!("<state_snapshot>\n{inner}\n</state_snapshot>")
            }),
        }
    }
}

/// The element `wanted` of an answer, written anew, without the element `dropped`.
fn read(answer: &str, dropped: &str, wanted: &str, write: fn(&str) -> String) -> Arc<str> {
    let text = without(answer, dropped);
    match between(&text, wanted) {
        Some("") => "".into(),
        Some(inner) => write(inner).into(),
        None => text.trim().into(),
    }
}

/// The text without its first element of this name. One that never ends takes all behind it.
fn without(text: &str, name: &str) -> String {
    let Some((before, rest)) = text.split_once(&format!("<{name}>")) else {
        return text.to_owned();
    };
    let after = rest.split_once(&format!("</{name}>"));
    format!("{before}{}", after.map_or("", |(_, after)| after))
}

/// The content of the first element of this name, to the end of the text if it never ends.
fn between<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    let inner = rest.split_once(&format!("</{name}>")).map_or(rest, |(inner, _)| inner);
    Some(inner.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_names_a_template_and_every_template_has_a_word() {
        let names: Vec<&str> = TEMPLATES.iter().map(|template| template.name).collect();
        let words = crate::strategy::knob::KEYS.words_of("summarize", "template");
        assert_eq!(names, words);
        for word in words {
            let body = named(word).body(SummarySpan::Full);
            assert!(!body.is_empty() && !body.contains('{'), "{word}: {body}");
        }
    }

    #[test]
    fn the_nine_sections_end_as_their_span_asks() {
        let template = named("nine-sections");
        let last = |span| {
            let sections = template.sections(span);
            assert_eq!(sections.len(), 9);
            let body = template.body(span);
            let heading = format!("9. {}", sections[8]);
            assert!(body.contains(&heading), "{body}");
            sections[8].clone()
        };
        assert_eq!(last(SummarySpan::Full), "Optional next step");
        assert_eq!(last(SummarySpan::From), "Optional next step");
        assert_eq!(last(SummarySpan::UpTo), "Context for continuing work");
        let scope = |span| template.body(span).lines().next().unwrap().to_owned();
        assert_ne!(scope(SummarySpan::Full), scope(SummarySpan::From));
        assert_ne!(scope(SummarySpan::From), scope(SummarySpan::UpTo));
    }

    #[test]
    fn a_summary_is_read_out_of_its_markup() {
        for (template, answer, summary) in [
            ("plain", " <summary>as it is</summary> ", " <summary>as it is</summary> "),
            (
                "nine-sections",
                "<analysis>\nfirst\n</analysis>\n\n<summary>\n1. All\n</summary>\n",
                "Summary:\n1. All",
            ),
            ("nine-sections", "no tags at all\n", "no tags at all"),
            ("nine-sections", "<analysis>only thoughts</analysis>\n", ""),
            ("nine-sections", "<analysis>never ends", ""),
            ("nine-sections", "<summary>cut off he", "Summary:\ncut off he"),
            ("nine-sections", "<summary> </summary>", ""),
            (
                "state-snapshot",
                "<scratchpad>x</scratchpad><state_snapshot><task_state>y</task_state></state_snapshot>",
                "<state_snapshot>\n<task_state>y</task_state>\n</state_snapshot>",
            ),
        ] {
            assert_eq!(&*named(template).summary_in(&answer.into()), summary, "{answer}");
        }
    }
}
