//! `ConvoMem`: conversations with an assistant, and questions that one or a few of their messages
//! answer.
//!
//! The shape is that of `SalesforceAIResearch/ConvoMem` (commit d30fc51) and of its data set: files of
//! `evidence_items`, each with its conversations, and test cases, each with the `evidenceItems` that
//! share theirs. The evidence of a question is the text of its messages, word for word.
//!
//! The right answer to a question that is not answered is one sentence, by which it is known.

use super::benchmark::{Chat, Question, recordings};
use super::prelude::*;

/// How the answer to a question begins that nothing answers.
const REFUSAL: &str = "There is no information in prior conversations";

/// The shapes of a file.
const SHAPES: &str = "question message_evidences | \
     evidence_items/0/question evidence_items/0/message_evidences | \
     evidenceItems/0/question evidenceItems/0/message_evidences";

pub(super) const IMPORTER: Importer = Importer::of_file("convomem", Detect::Item(SHAPES), import);

fn import(file: SourceFile) -> Result<Vec<Recording>> {
    recordings(file, "a file holds `evidence_items`, or test cases with `conversations`", chats)
}

/// The chats of a file of evidence, of a test case, or of one question.
fn chats(mut object: Object<'_>) -> Vec<Chat> {
    if let Some(inner) = object.take_list("evidence_items") {
        return inner.into_iter().filter_map(Object::read).flat_map(chats).collect();
    }
    let questions = object.take_list("evidenceItems");
    let Some(conversations) = object.take_list("conversations") else {
        return Vec::new();
    };
    let mut chat = Chat::default();
    let mut names: BTreeMap<Arc<str>, Arc<str>> = BTreeMap::new();
    for raw in conversations {
        for raw in Object::read(raw).unwrap_or_default().items("messages") {
            turn(raw, &mut names, &mut chat);
        }
    }
    match questions {
        Some(questions) => {
            let objects = questions.into_iter().filter_map(Object::read);
            objects.for_each(|one| question(one, &names, &mut chat));
        }
        None => question(object, &names, &mut chat),
    }
    vec![chat]
}

fn turn(raw: &RawValue, names: &mut BTreeMap<Arc<str>, Arc<str>>, chat: &mut Chat) {
    let mut message = Object::read(raw).unwrap_or_default();
    let speaker = message.take_text("speaker").unwrap_or_default();
    let role = match speaker.to_ascii_lowercase().as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => return keep_unread("of unknown speaker", raw, &mut chat.assembler),
    };
    let Some(text) = message.take_words("text") else {
        return chat.assembler.skip("turn without words");
    };
    let name: Arc<str> = format!("turn {}", names.len() + 1).into();
    let name = names.entry(text.trim().into()).or_insert(name).clone();
    chat.turn(&name, role, text);
}

fn question(mut one: Object<'_>, names: &BTreeMap<Arc<str>, Arc<str>>, chat: &mut Chat) {
    let answer: Option<String> = one.take_as("answer");
    let refused = answer.as_ref().is_some_and(|one| one.starts_with(REFUSAL));
    let words = one.take_as("question");
    let evidence = one.items("message_evidences").into_iter().map(|raw| {
        let text = Object::read(raw).and_then(|mut object| object.take_text("text"));
        let name = text.and_then(|text| names.get(text.trim()).cloned());
        // A message that is in no conversation leaves the question out.
        name.unwrap_or_default()
    });
    let question = Question {
        id: format!("q{}", chat.next()),
        answer,
        evidence: evidence.collect(),
        ..Question::default()
    };
    chat.ask(words, refused, question);
}
