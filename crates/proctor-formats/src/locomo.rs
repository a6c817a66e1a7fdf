//! `LoCoMo`: two people who talk over months, and questions about what they said.
//!
//! The first speaker is the user, the second the model; names come before what each says, for the
//! questions ask by them. A picture is the caption that comes with it.

use super::benchmark::{Chat, Question, plain, recordings};
use super::prelude::*;

/// The category of questions that the conversation does not answer.
const ADVERSARIAL: u64 = 5;

/// How dates are written: `1:56 pm on 8 May, 2023`.
const DATE: &str = "%I:%M %p on %d %B, %Y";

/// The shapes of a file.
const SHAPES: &str = "qa/0/question qa/0/evidence | conversation/speaker_a";

pub(super) const IMPORTER: Importer = Importer::of_file("locomo", Detect::Item(SHAPES), import);

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    recordings(file, "a sample is an object with `conversation`", conversation)
}

fn conversation(mut sample: Object<'_>) -> Option<Chat> {
    let mut talk = sample.take_object("conversation")?;
    let mut chat = Chat::default();
    let first = talk.take_text("speaker_a");
    let mut number = 1;
    // Dates are there for sittings that are not.
    while let Some(turns) = talk.take_list(&format!("session_{number}")) {
        if let Some(date) = talk.take_text(&format!("session_{number}_date_time")) {
            chat.sitting(&date, DATE);
        }
        for raw in turns {
            turn(raw, first.as_ref(), &mut chat);
        }
        number += 1;
    }
    for raw in sample.items("qa") {
        question(raw, &mut chat);
    }
    sample.count_left("key", &mut chat.assembler);
    Some(chat)
}

fn turn(raw: &RawValue, first: Option<&Arc<str>>, chat: &mut Chat) {
    let mut turn = Object::read(raw).unwrap_or_default();
    let (name, speaker) = (turn.take_text("dia_id"), turn.take_text("speaker"));
    let Some(speaker) = speaker else {
        return keep_unread("without speaker", raw, &mut chat.assembler);
    };
    let mut text = format!("{speaker}: {}", turn.take_text("text").unwrap_or_default());
    if let Some(caption) = turn.take_text("blip_caption") {
        text = format!("{text} (shares a picture: {caption})");
    }
    let role = role_of(first.is_some_and(|first| *first != speaker));
    chat.turn(&name.unwrap_or_default(), role, text.into());
}

fn question(raw: &RawValue, chat: &mut Chat) {
    let entry = value(raw);
    let [text, answer] = ["question", "answer"].map(|key| entry.get(key).and_then(plain));
    let lists = entry.get("evidence").and_then(Value::as_array).into_iter().flatten();
    // One place may be written as a list of several.
    let places = lists.filter_map(Value::as_str).flat_map(|list| list.split([' ', ';', ',']));
    // A question that asks of one what the other said: nothing answers it, whatever else is there.
    let adversarial = entry.get("category").and_then(Value::as_u64) == Some(ADVERSARIAL)
        || entry.get("answer").is_none() && entry.get("adversarial_answer").is_some();
    let question = Question {
        id: format!("q{}", chat.asked() + 1),
        answer,
        evidence: places.filter(|place| !place.is_empty()).map(Arc::from).collect(),
        ..Question::default()
    };
    chat.ask(text, adversarial, question);
}
