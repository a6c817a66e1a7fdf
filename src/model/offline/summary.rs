//! The offline summariser: it copies lines that carry rules, errors, paths, decisions and open
//! ends, newest first, into the sections that are asked for.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memchr2;
use regex::{Captures, Regex};

use super::listed;
use crate::script::{first_chars, is_unspaced};
use crate::session::{ContentBlock, Message, Role};
use crate::units::Tokens;
use InformationKind::{Decision, Error, Path, Pending, Rule};

/// Characters to a token: the summariser only has to stay below its limit.
const CHARS_PER_TOKEN: usize = 4;

/// Longer lines are cut off.
const LINE_CHARS: usize = 300;

/// The kinds of information that a line may carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum InformationKind {
    Rule,
    Decision,
    Pending,
    Error,
    Path,
}

const ALL: [InformationKind; 5] = [Rule, Decision, Pending, Error, Path];

/// The lists of marks, by what a line with one of them carries.
const MARKS: [(InformationKind, &str); 4] = [
    (Rule, "rule_marks"),
    (Decision, "decision_marks"),
    (Pending, "pending_marks"),
    (Error, "error_marks"),
];

/// Headings, by what belongs under them: the first that fits counts.
const HEADINGS: [(&[&str], &[InformationKind]); 6] = [
    (&["next", "pending", "todo"], &[Pending]),
    (&["decision"], &[Decision, Rule]),
    (&["constraint", "instruction"], &[Rule]),
    (&["error"], &[Error]),
    (&["file"], &[Path]),
    (&["state"], &[Error]),
];

/// A summary of `messages` with these sections, within `max_output` tokens.
pub(super) fn write(messages: &[Arc<Message>], sections: &[String], max_output: Tokens) -> String {
    let informative = lines(messages);
    let budget =
        usize::try_from(max_output.0).unwrap_or(usize::MAX).saturating_mul(CHARS_PER_TOKEN);
    let mut left = budget;
    let mut seen = HashSet::new();
    let mut out = String::new();
    let plan: Vec<(Option<&str>, &[InformationKind])> = if sections.is_empty() {
        ALL.chunks(1).map(|one| (None, one)).collect()
    } else {
        sections.iter().map(String::as_str).map(|title| (Some(title), under(title))).collect()
    };
    let everywhere: Vec<_> = plan.iter().flat_map(|(_, wanted)| *wanted).collect();
    for (at, (title, wanted)) in plan.iter().enumerate() {
        let mut section = title.map_or_else(String::new, |title| format!("## {title}\n"));
        let head = size(&section);
        let mut room = (left / (plan.len() - at)).saturating_sub(head);
        let mut any = false;
        for line in informative.iter().rev() {
            if room == 0 {
                break;
            }
            // A line goes under the heading for the most important thing it carries.
            let carried = line.carries.iter().find(|carried| everywhere.contains(carried));
            if !carried.is_some_and(|carried| wanted.contains(carried)) {
                continue;
            }
            let text = cut(&line.text);
            let cost = size(text) + 3;
            if cost > room || !seen.insert(text) {
                continue;
            }
            section.extend(["- ", text, "\n"]);
            room -= cost;
            any = true;
        }
        if !any && title.is_some() {
            section.push_str("- nothing\n");
        }
        let cost = size(&section);
        if cost > left {
            break;
        }
        left -= cost;
        out.push_str(&section);
    }
    if out.is_empty() {
        out.push_str("- nothing to note\n");
        out.truncate(budget);
    }
    out
}

/// The numbers of the listed pieces, those first that carry most kinds of information; of two that carry as many, the
/// newer one.
pub(super) fn ranking(messages: &[Arc<Message>]) -> String {
    let texts = messages.last().into_iter().flat_map(|message| message.model_text());
    let pieces = texts.flat_map(|text| text.lines()).filter_map(|line| {
        let (number, rest) = line.strip_prefix('[')?.split_once(']')?;
        let number: usize = number.parse().ok()?;
        Some((carried(rest, true).len(), number))
    });
    let mut pieces: Vec<_> = pieces.collect();
    pieces.sort_unstable();
    pieces.iter().rev().map(|(_, number)| number.to_string()).collect::<Vec<_>>().join(", ")
}

/// Characters of a text; one of Chinese, Japanese or Korean is a token of its own.
fn size(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    let unspaced = text.chars().filter(|c| is_unspaced(*c)).count();
    text.chars().count() + unspaced * (CHARS_PER_TOKEN - 1)
}

fn under(title: &str) -> &'static [InformationKind] {
    let lower = title.to_lowercase();
    let heading = HEADINGS.iter().find(|(words, _)| words.iter().any(|word| lower.contains(word)));
    heading.map_or(&[Path], |(_, carried)| *carried)
}

fn cut(line: &str) -> &str {
    first_chars(line.trim().trim_start_matches(['-', '*', '#', ' ']), LINE_CHARS)
}

struct InformativeLine<'a> {
    text: Cow<'a, str>,
    carries: Vec<InformationKind>,
}

impl<'a> InformativeLine<'a> {
    fn of(text: Cow<'a, str>, is_speech: bool) -> Option<Self> {
        let carries = carried(&text, is_speech);
        (!carries.is_empty()).then_some(Self { text, carries })
    }
}

/// The lines that carry something, oldest first.
///
/// A conversation may come as messages with the request at its end, or as JSON inside the request;
/// then only the JSON is read.
fn lines(messages: &[Arc<Message>]) -> Vec<InformativeLine<'_>> {
    let mut lines = Vec::new();
    let conversation = match messages {
        [request] => std::slice::from_ref(request),
        [conversation @ .., _] => conversation,
        [] => &[],
    };
    for message in conversation {
        for (block, text) in message.content().iter().zip(message.model_text()) {
            let json = text.find(r#"[{"role":"#).filter(|_| messages.len() == 1);
            if let Some(start) = json {
                each_string(&text[start..], |role, key, value| {
                    let speech = role == "user" && key == "text";
                    each_line(value, true, |line| lines.extend(InformativeLine::of(line, speech)));
                });
                continue;
            }
            let speech = message.role() == Role::User && matches!(block, ContentBlock::Text(_));
            let escaped = matches!(block, ContentBlock::ToolUse(_));
            each_line(text, escaped, |line| lines.extend(InformativeLine::of(line, speech)));
        }
    }
    lines
}

/// All marks in one automaton, and what each says; none where it cannot be built.
static MARK: LazyLock<Option<(AhoCorasick, Vec<InformationKind>)>> = LazyLock::new(|| {
    let marks =
        MARKS.into_iter().flat_map(|(what, list)| listed(list).map(move |mark| (mark, what)));
    let (texts, says): (Vec<&str>, Vec<InformationKind>) = marks.unzip();
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(texts);
    Some((automaton.ok()?, says))
});

fn carried(line: &str, is_speech: bool) -> Vec<InformationKind> {
    if line.trim().len() < 4 {
        return Vec::new();
    }
    let mut carries = Vec::new();
    let marks = MARK.iter();
    for what in marks.flat_map(|(marks, says)| {
        let found = marks.find_overlapping_iter(line);
        found.map(|found| says[found.pattern().as_usize()])
    }) {
        // Rules are what the user says, not what a file says.
        if (what != Rule || is_speech) && !carries.contains(&what) {
            carries.push(what);
        }
    }
    carries.sort_unstable();
    if line.contains('/') && line.split_whitespace().any(is_path) {
        carries.push(Path);
    }
    carries
}

fn is_path(token: &str) -> bool {
    let path = token.trim_matches(|c: char| !c.is_ascii_alphanumeric() && c != '/');
    let name = path.rsplit('/').next().unwrap_or_default();
    path.len() < 200
        && !path.contains("://")
        && path.contains('/')
        && name.split_once('.').is_some_and(|(stem, suffix)| !stem.is_empty() && !suffix.is_empty())
}

/// Calls `each` with every string value of the JSON: the role of its message, its key, and the
/// string as written, still escaped. Text that ends early is read as far as it goes.
fn each_string<'a>(json: &'a str, mut each: impl FnMut(&'a str, &'a str, &'a str)) {
    let (mut role, mut key) = ("", "");
    let mut rest = json;
    while let Some((_, string)) = rest.split_once('"') {
        let (string, after) = string.split_at(string_end(string));
        rest = after.get(1..).unwrap_or_default();
        if rest.trim_start_matches(' ').starts_with(':') {
            key = string;
        } else if key == "role" {
            role = string;
        } else if !matches!(
            key,
            "type" | "id" | "tool_use_id" | "name" | "signature" | "media_type" | "data"
        ) {
            each(role, key, string);
        }
    }
}

/// Where a string of JSON ends: at its closing quote, or where the text ends.
fn string_end(string: &str) -> usize {
    let mut is_escaped = false;
    let end = string.bytes().position(|byte| {
        let closes = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        closes
    });
    end.unwrap_or(string.len())
}

/// Calls `each` with every line; where line feeds and quotes are `escaped`, they are read as such.
fn each_line<'a>(text: &'a str, escaped: bool, mut each: impl FnMut(Cow<'a, str>)) {
    if !escaped {
        text.lines().for_each(|line| each(Cow::Borrowed(line)));
        return;
    }
    let (mut from, mut at) = (0, 0);
    while let Some(found) = memchr2(b'\n', b'\\', &text.as_bytes()[at..]) {
        let start = at + found;
        // A backslash before anything but ASCII escapes nothing.
        let ascii = text.as_bytes().get(start + 1).is_some_and(u8::is_ascii);
        at = start + 1 + usize::from(text[start..].starts_with('\\') && ascii);
        if matches!(&text[start..at], "\n" | "\\n") {
            each(unescaped(&text[from..start]));
            from = at;
        }
    }
    each(unescaped(&text[from..]));
}

static ESCAPE: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\\(?:u(.{0,4})|(.)|$)").ok());

fn unescaped(line: &str) -> Cow<'_, str> {
    let Some(escapes) = ESCAPE.as_ref().filter(|_| line.contains('\\')) else {
        return Cow::Borrowed(line);
    };
    escapes.replace_all(line, |escape: &Captures<'_>| {
        if let Some(code) = escape.get(1) {
            let code = u32::from_str_radix(code.as_str(), 16).ok();
            return code.and_then(char::from_u32).unwrap_or('\u{fffd}').into();
        }
        match escape.get(2).map_or("", |escaped| escaped.as_str()) {
            "t" | "r" => " ".to_owned(),
            escaped => escaped.to_owned(),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::wire;

    fn history() -> Vec<Arc<Message>> {
        let say = |role, text: &str| Arc::new(Message::text(role, text));
        vec![
            say(Role::User, "Hi.\nNever touch \"db/schema.sql\".\nThanks"),
            say(Role::Assistant, "We decided on sqlite because it is small.\nwrote src/a.rs"),
            say(Role::User, "error: cannot open b"),
            say(Role::Assistant, "TODO: the tests"),
        ]
    }

    fn wired(instructions: &str) -> Vec<Arc<Message>> {
        let lines: Vec<String> = history().iter().map(|m| wire::anthropic_json(m)).collect();
        let text = format!("{instructions}\n\n[{}]", lines.join(", "));
        vec![Arc::new(Message::text(Role::User, text))]
    }

    #[test]
    fn lines_that_carry_something_come_under_their_heading() {
        let titles =
            ["Done so far", "State of the work", "Decisions and constraints", "Next steps"];
        let sections = titles.map(str::to_owned);
        let expected = "## Done so far\n- wrote src/a.rs\n\
            ## State of the work\n- error: cannot open b\n\
            ## Decisions and constraints\n- We decided on sqlite because it is small.\n\
            - Never touch \"db/schema.sql\".\n\
            ## Next steps\n- TODO: the tests\n";
        let written = write(&wired("You must keep all names."), &sections, Tokens(4_000));
        assert_eq!(written, expected);
        let mut messages = history();
        messages.push(Arc::new(Message::text(Role::User, "You must summarise.")));
        assert_eq!(write(&messages, &sections, Tokens(4_000)), expected);
    }

    #[test]
    fn it_stays_within_its_limit_and_reads_json_that_ends_early() {
        for limit in [0, 1, 5, 10, 20, 40, 1_000] {
            let written = write(&wired("Go."), &[], Tokens(limit));
            assert!(written.chars().count() as u64 <= 4 * limit, "{limit}: {written}");
        }
        let whole = wired("Go.")[0].model_text()[0].to_string();
        for end in (0..whole.len()).filter(|end| whole.is_char_boundary(*end)) {
            let cut = Arc::new(Message::text(Role::User, &whole[..end]));
            write(&[cut], &[], Tokens(100));
        }
    }

    #[test]
    fn a_chinese_character_takes_a_token_of_its_limit() {
        let rules: Vec<String> = (0..40).map(|n| format!("第{n}条规则必须遵守。")).collect();
        let rules = rules.join("\n");
        let said = Arc::new(Message::text(Role::User, rules));
        let asked = Arc::new(Message::text(Role::User, "Go."));
        let written = write(&[said, asked], &[], Tokens(100));
        assert!(written.contains("第39条规则必须遵守。"), "{written}");
        assert!(written.chars().filter(|c| is_unspaced(*c)).count() <= 100);
    }
}
