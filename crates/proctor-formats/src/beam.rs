//! BEAM: chats of up to ten million tokens with an assistant, and questions about them.
//!
//! The shape is that of `mohammadtavakoli78/BEAM` (commit 5a64c99): a row of the data set holds the
//! `chat` and its `probing_questions`, as JSON or as a text of Python. In the repository the two are
//! files of their own (`chat.json`, `probing_questions.json` beside it or in a folder of that name).
//!
//! Instructions and preferences that an answer should follow are no questions with an answer, and are
//! left out, as is a question whose evidence has an id that several turns have.

use super::benchmark::{Chat, Question, plain, recordings};
use super::prelude::*;

/// How dates are written: `March-15-2024`.
const DATE: &str = "%B-%d-%Y";

/// Abilities that a rubric tests, and no answer.
const RUBRICS: &str = "instruction_following preference_following";

/// The shapes of a row, and that of a chat in a file of its own: a batch of turns.
const SHAPES: &str = "chat probing_questions | conversation_id conversation_seed | \
     chat/0/0/role chat/0/0/time_anchor:s | chat/0/0/role chat/0/0/id:n | \
     chat/0/turns/0/0/role chat/0/turns/0/0/time_anchor:s | \
     chat/0/turns/0/0/role chat/0/turns/0/0/id:n | batch_number turns/0/0/role";
const BATCH: &str = "batch_number turns/0/0/role";

pub(super) const IMPORTER: Importer = Importer::of_file("beam", Detect::Item(SHAPES), import);

/// The questions of the chat in a file.
const QUESTIONS: &[&str] = &["probing_questions.json", "probing_questions/probing_questions.json"];

/// A chat in a file of its own, with its questions if they are there; any other file as it is.
fn with_questions(file: SourceFile) -> Result<SourceFile> {
    let name = file.path.file_name();
    if name.is_none_or(|name| name != "chat.json") || !Head::of(&file.bytes).item_is(BATCH) {
        return Ok(file);
    }
    let path = file.path.clone();
    let left = MAX_FILE.saturating_sub(file.length);
    let mut found = QUESTIONS.iter().map(|name| path.with_file_name(name));
    let opened = found.find(|path| path.is_file()).map(|path| SourceFile::open(&path, left));
    let text = opened.transpose()?.map(|file| file.text().text);
    let (chat, questions) = (file.text().text, text.as_deref().unwrap_or("null"));
    let joined = format!(r#"{{"chat":{chat},"probing_questions":{questions}}}"#);
    SourceFile::read(&path, &mut joined.as_bytes(), MAX_FILE)
}

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    recordings(with_questions(file)?, "a row is an object with `chat`", conversation)
}

/// The turns so far, by their ids, and the date of the last one.
#[derive(Default)]
struct Turns {
    seen: BTreeSet<String>,
    ambiguous: BTreeSet<String>,
    date: Text,
}

fn conversation(mut row: Object<'_>) -> Option<Chat> {
    let (mut chat, mut turns) = (Chat::default(), Turns::default());
    read(row.take("chat")?, &mut chat, &mut turns);
    let questions = match row.value("probing_questions") {
        Value::String(text) => from_python(&text),
        questions => questions,
    };
    for (ability, questions) in questions.as_object().into_iter().flatten() {
        for one in questions.as_array().into_iter().flatten() {
            question(ability, one, &turns, &mut chat);
        }
    }
    row.count_left("key", &mut chat.assembler);
    Some(chat)
}

/// Reads turns in lists, which may be in batches and plans.
fn read(raw: &RawValue, chat: &mut Chat, turns: &mut Turns) {
    if let Some(inner) = items(raw) {
        return inner.into_iter().for_each(|raw| read(raw, chat, turns));
    }
    let Some(mut object) = Object::read(raw) else {
        return keep_unread("malformed", raw, &mut chat.assembler);
    };
    if let Some(date) = object.take_words("time_anchor")
        && turns.date.as_ref() != Some(&date)
    {
        chat.sitting(&date, DATE);
        turns.date = Some(date);
    }
    let Some(text) = object.take_text("content") else {
        let lists =
            object.into_entries().map(|(_, raw)| raw).filter(|raw| raw.get().starts_with('['));
        return lists.for_each(|raw| read(raw, chat, turns));
    };
    let Some(role) = object.take_as("role") else {
        return keep_unread("of unknown role", raw, &mut chat.assembler);
    };
    let id = object.take("id").and_then(|raw| plain(&value(raw))).unwrap_or_default();
    if !turns.seen.insert(id.clone()) {
        turns.ambiguous.insert(id.clone());
    }
    chat.turn(&id.into(), role, text);
}

fn question(ability: &str, one: &Value, turns: &Turns, chat: &mut Chat) {
    let mut evidence = Vec::new();
    let sources = &one["source_chat_ids"];
    // What was true before does not answer the question.
    flatten(sources.get("updated_info").unwrap_or(sources), &mut evidence);
    let answers = ["answer", "ideal_answer", "ideal_summary", "ideal_response"];
    let answer = answers.iter().find_map(|key| plain(&one[*key]));
    let ambiguous = evidence.iter().any(|id| turns.ambiguous.contains(&**id));
    let question = Question {
        id: format!("{ability}-{}", chat.next()),
        answer: answer.filter(|_| !is_one_of(RUBRICS, ability)),
        evidence,
        ..Question::default()
    };
    let words = plain(&one["question"]).filter(|_| !ambiguous);
    chat.ask(words, ability == "abstention", question);
}

/// The ids in lists, and in lists by what they are evidence of.
fn flatten(value: &Value, ids: &mut Vec<Arc<str>>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| flatten(item, ids)),
        Value::Object(entries) => entries.values().for_each(|entry| flatten(entry, ids)),
        other => ids.extend(plain(other).map(Arc::from).filter(|id| !ids.contains(id))),
    }
}

/// The value of a Python literal; `null` where it cannot be read.
fn from_python(text: &str) -> Value {
    let mut json = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '\'' | '"' => {
                let (said, behind) = python_text(rest, c);
                json.push_str(&Value::String(said).to_string());
                rest = behind;
            }
            '(' => json.push('['),
            ')' => json.push(']'),
            c if c.is_alphabetic() => {
                let end = rest.find(|c: char| !c.is_alphabetic());
                let (word, behind) = rest.split_at(end.unwrap_or(rest.len()));
                json.push_str(match (c, word) {
                    ('T', "rue") => "true",
                    ('F', "alse") => "false",
                    _ => "null",
                });
                rest = behind;
            }
            c => json.push(c),
        }
    }
    serde_json::from_str(&json).unwrap_or_default()
}

/// The text up to a quotation mark, and the rest behind it.
fn python_text(text: &str, quote: char) -> (String, &str) {
    let mut said = String::new();
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return (said, &text[at + 1..]);
        }
        if c != '\\' {
            said.push(c);
            continue;
        }
        let Some((_, escaped)) = chars.next() else {
            break;
        };
        let mut digits = 0;
        match escaped {
            'n' => said.push('\n'),
            't' => said.push('\t'),
            'r' => said.push('\r'),
            'a' | 'b' | 'f' | 'v' | '0' => said.push(' '),
            'x' => digits = 2,
            'u' => digits = 4,
            'U' => digits = 8,
            other => said.push(other),
        }
        let code: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
        let code = u32::from_str_radix(&code, 16).ok();
        said.extend(code.filter(|_| digits > 0).and_then(char::from_u32));
    }
    (said, "")
}
