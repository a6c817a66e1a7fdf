//! The word of a judge, and how it is read from a reply.

use serde_json::Value;

use crate::model::api::without_thoughts;

/// A judge's word for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Word {
    /// It says the same as the reference.
    Right,
    /// A part of it is missing, or it is left open which value holds.
    Incomplete,
    /// It was true earlier.
    Stale,
    /// It belongs to something else.
    Anothers,
    /// It contradicts the reference in any other way.
    Invented,
    /// It says that it does not know.
    Abstained,
    /// It is not right, and the judge did not say in which way.
    Incorrect,
}

/// The words that are taken for each verdict, in lower case and without apostrophes: the first is the one
/// that is asked for.
const WORDS: [(Word, &[&str]); 7] = [
    (Word::Right, &["right", "correct"]),
    (Word::Incomplete, &["incomplete", "partial", "partially correct"]),
    (Word::Stale, &["stale", "outdated"]),
    (Word::Anothers, &["anothers", "another", "others", "other"]),
    (Word::Invented, &["invented", "made up"]),
    (Word::Abstained, &["abstained", "abstention"]),
    (Word::Incorrect, &["incorrect", "wrong"]),
];

impl Word {
    /// The verdict of this word; case, apostrophes and punctuation around it do not matter.
    pub fn parse(word: &str) -> Option<Self> {
        let bare = word.trim_matches(|c: char| c.is_whitespace() || "\"'`*_.!,’".contains(c));
        let joined = bare.to_lowercase().replace(['\'', '’'], "");
        let word = joined.replace(['_', '-'], " ");
        WORDS.iter().find(|(_, names)| names.contains(&word.as_str())).map(|(word, _)| *word)
    }

    /// The verdict in a reply: in the objects that have a `verdict`, whatever else is in or around
    /// them; else in a line `verdict: right`, or in a reply that is nothing but the word. Thoughts
    /// are left out. Two different verdicts are none.
    pub fn in_reply(reply: &str) -> Option<Self> {
        let reply = without_thoughts(reply);
        let said = objects(reply);
        if !said.is_empty() {
            return only(said.iter().map(|said| said.as_str().and_then(Self::parse)));
        }
        let mut words = reply.lines().filter_map(labelled).peekable();
        if words.peek().is_some() {
            return only(words.map(Self::parse));
        }
        Self::parse(reply.trim().trim_matches('`'))
    }

    /// Yes or no in a reply: its first word or its last, as right or not. Where these differ it is neither.
    pub fn yes_or_no(reply: &str) -> Option<Self> {
        let reply = without_thoughts(reply).to_lowercase();
        let mut words = reply.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        let ends = [words.next(), words.next_back()];
        only(ends.into_iter().flatten().filter_map(|word| match word {
            "yes" => Some(Some(Self::Right)),
            "no" => Some(Some(Self::Incorrect)),
            _ => None,
        }))
    }
}

/// The word in a line `verdict: right`.
fn labelled(line: &str) -> Option<&str> {
    let (label, word) = line.split_once(':')?;
    let bare = label.trim_matches(['`', '*', ' ', '-', '"']);
    bare.eq_ignore_ascii_case("verdict").then_some(word)
}

/// The one verdict that all of these are.
fn only(mut words: impl Iterator<Item = Option<Word>>) -> Option<Word> {
    let first = words.next()??;
    words.all(|word| word == Some(first)).then_some(first)
}

/// The values of `verdict` in the JSON objects of a text, in order. An object inside another is looked at only
/// where the outer one has none.
fn objects(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut from = 0;
    // The number of openings that are tried: a reply is short, but a hostile one may be long.
    for _ in 0..OPENINGS {
        let Some(open) = text[from..].find('{') else {
            break;
        };
        let start = from + open;
        from = start + 1;
        let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
        let Some(Ok(Value::Object(object))) = values.next() else {
            continue;
        };
        let said = object.iter().find(|(key, _)| key.trim().eq_ignore_ascii_case("verdict"));
        if let Some((_, said)) = said {
            found.push(said.clone());
            from = start + values.byte_offset();
        }
    }
    found
}

/// The most openings of objects in a reply that are looked at.
const OPENINGS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    fn check(reply: &str, expected: Option<Word>) {
        assert_eq!(Word::in_reply(reply), expected, "{reply}");
    }

    #[test]
    fn a_verdict_is_read_in_every_usual_shape() {
        let right = Some(Word::Right);
        check(r#"{"reason": "same value", "verdict": "right"}"#, right);
        check("```json\n{\"verdict\":\"stale\"}\n```", Some(Word::Stale));
        check(r#"{"verdict": "Correct"}"#, right);
        check(r#"{"Verdict": "Another's", "confidence": 0.9}"#, Some(Word::Anothers));
        check("<think>\nstale? {\"verdict\": \"stale\"}\n</think>\n{\"verdict\":\"right\"}", right);
        check("The answer is fine.\n\n{\"verdict\": \"right\"}\nDone.", right);
        check(r#"{"result": {"verdict": "invented"}}"#, Some(Word::Invented));
        check(r#"{"reason": "says {\"verdict\": \"stale\"}", "verdict": "right"}"#, right);
        check("correct", right);
        check("**Right.**", right);
        check("VERDICT: incorrect", Some(Word::Incorrect));
        check("It is old.\n**Verdict:** stale", Some(Word::Stale));
        check("`verdict: Incomplete.`\n", Some(Word::Incomplete));
        // The same twice is said once.
        check("{\"verdict\":\"right\"} {\"verdict\":\"right\"}", right);
    }

    #[test]
    fn what_is_no_one_verdict_is_none() {
        for reply in [
            "",
            "{\"verdict\":\"right\"} {\"verdict\":\"stale\"}",
            "VERDICT: right\nVERDICT: stale",
            "VERDICT: mostly right",
            "{\"verdict\": 1}",
            "{\"verdict\": \"maybe\"}",
            "{\"reason\": \"cut off",
            "{\"verdict\": \"rig",
            "I think it is right, all in all",
            "<think>{\"verdict\": \"right\"}",
        ] {
            check(reply, None);
        }
        check(&"{".repeat(5_000), None);
    }

    #[test]
    fn yes_or_no_is_the_first_word_or_the_last() {
        let check = |reply: &str, expected: Option<Word>| {
            assert_eq!(Word::yes_or_no(reply), expected, "{reply}");
        };
        for reply in ["yes", "**Yes.**", "Yes, and no other.", "{\"answer\": \"yes\"}"] {
            check(reply, Some(Word::Right));
        }
        for reply in ["No", "no, it says 7", "<think>yes?</think>\nNo.", "The answer is: no"] {
            check(reply, Some(Word::Incorrect));
        }
        for reply in
            ["", "yes or no", "No. Or yes?", "{\"verdict\": \"right\"}", "not yes, I think"]
        {
            check(reply, None);
        }
    }

    #[test]
    fn the_schema_allows_the_words_that_are_asked_for_and_no_others() {
        let schema: Value = serde_json::from_str(crate::model::api::VERDICT_SCHEMA).unwrap();
        let allowed = schema["properties"]["verdict"]["enum"].as_array().unwrap();
        let allowed: Vec<Option<Word>> =
            allowed.iter().map(|word| Word::parse(word.as_str().unwrap())).collect();
        let asked: Vec<Option<Word>> = WORDS[..6].iter().map(|(word, _)| Some(*word)).collect();
        assert_eq!(allowed, asked);
        for word in schema["properties"]["verdict"]["enum"].as_array().unwrap() {
            let line = format!("\n- {}:", word.as_str().unwrap());
            assert!(super::super::RUBRIC.contains(&line), "{line}");
        }
    }
}
