//! `LongMemEval`: chats with an assistant over many days, and one question about them.

use super::benchmark::{Chat, Question, plain, recordings};
use super::prelude::*;

/// How dates are written: `2023/05/20 (Sat) 02:21`.
const DATE: &str = "%Y/%m/%d (%a) %H:%M";

/// The shape of a file.
const SHAPE: &str = "question_id question_type haystack_sessions";

pub(super) const IMPORTER: Importer = Importer::of_file("longmemeval", Detect::Item(SHAPE), import);

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    recordings(file, "an instance is an object with `haystack_sessions`", instance)
}

fn instance(mut instance: Object<'_>) -> Option<Chat> {
    let sittings = instance.take_list("haystack_sessions")?;
    let dates = instance.items("haystack_dates");
    let mut chat = Chat::default();
    let mut evidence: Vec<Arc<str>> = Vec::new();
    let mut turns = 0;
    for (at, sitting) in sittings.into_iter().enumerate() {
        if let Some(date) = dates.get(at).and_then(|raw| content::text(raw)) {
            chat.sitting(&date, DATE);
        }
        let Some(said) = items(sitting) else {
            keep_unread("malformed", sitting, &mut chat.assembler);
            continue;
        };
        for raw in said {
            turns += 1;
            let name: Arc<str> = format!("turn {turns}").into();
            if turn(raw, &name, &mut chat) {
                evidence.push(name);
            }
        }
    }
    let id = instance.take_text("question_id").unwrap_or_default();
    let [question, answer, date] =
        ["question", "answer", "question_date"].map(|key| plain(&value(instance.take(key)?)));
    // To these it is the answer, in words of its own, that nothing is.
    let asked = Question {
        id: id.to_string(),
        // A question of a later day may be about that day.
        asked: date,
        answer,
        evidence,
        ..Question::default()
    };
    chat.ask(question, id.ends_with("_abs"), asked);
    Some(chat)
}

/// Reads a turn; says whether it answers the question.
fn turn(raw: &RawValue, name: &Arc<str>, chat: &mut Chat) -> bool {
    let mut turn = Object::read(raw).unwrap_or_default();
    let Some(role) = turn.take_as("role") else {
        keep_unread("of unknown role", raw, &mut chat.assembler);
        return false;
    };
    let text = turn.take_text("content").unwrap_or_default();
    if text.is_empty() {
        chat.assembler.skip("turn without words");
        return false;
    }
    chat.turn(name, role, text);
    turn.take_flag("has_answer")
}
