//! Sessions in other languages: twins of the English ones, in everything but the words.

use std::sync::Arc;

use proctor::metric::survival::Survival;
use proctor::model::offline::Offline;
use proctor::probe::ProbeExt as _;
use proctor::probe::ProbeKind;
use proctor::replay::{Models, NoClock, PreparedSession, Replayed, replay};
use proctor::session::synthetic::{Language, Length, Recipe, SyntheticError, generate};
use proctor::session::{ContentBlock, Message};
use proctor::tokens::{CharsPer4, CountedTexts};
use proctor::units::Tokens;
use proctor::window::Window;

use crate::support::{cell, strategy};

const FAMILIES: [&str; 2] = ["policy-support", "code-review"];

fn recipe(family: &str, seed: u64, language: Language) -> Recipe {
    Recipe {
        family: family.to_owned(),
        seed,
        length: Length::Rounds(80),
        language,
        ..Recipe::default()
    }
}

fn twin(family: &str, seed: u64, language: Language) -> PreparedSession {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let made = generate(&recipe(family, seed, language), &counts).unwrap();
    let probes = made.truth.facts.clone();
    PreparedSession::new(Arc::new(made.session), counts, probes).unwrap()
}

/// Of a message: its role, and the kinds of its blocks with the ids and names of tools.
fn shape(message: &Message) -> (String, Vec<String>) {
    let blocks = message.content().iter().map(|block| match block {
        ContentBlock::ToolUse(tool) => format!("{} {}", tool.id, tool.name),
        ContentBlock::ToolResult(result) => format!("{} {}", result.tool_use_id, result.is_error),
        ContentBlock::Thinking(_) => "thinking".to_owned(),
        _ => "text".to_owned(),
    });
    let head = format!("{:?} {:?}", message.role(), message.details.timestamp);
    (head, blocks.collect())
}

/// English words that are in nearly every English sentence, and in no id, path or command.
const ENGLISH: [&str; 8] = ["the", "and", "is", "was", "that", "which", "please", "what"];

#[test]
fn a_translation_has_the_same_messages_tools_and_facts_and_no_english_sentence() {
    for family in FAMILIES.as_slice() {
        for (language, seed) in Language::ALL.into_iter().skip(1).zip([1, 5]) {
            for seed in seed..seed + 2 {
                let english = twin(family, seed, Language::English);
                let other = twin(family, seed, language);
                let shapes = |session: &PreparedSession| -> Vec<_> {
                    let messages = session.session().messages().iter();
                    messages.map(|message| shape(message)).collect()
                };
                assert_eq!(shapes(&english), shapes(&other), "{family} {seed}");
                let asked = |session: &PreparedSession| -> Vec<_> {
                    let probes = session.probes().iter();
                    let probes = probes.map(|it| (it.id.clone(), it.evidence.clone()));
                    probes.collect()
                };
                assert_eq!(asked(&english), asked(&other), "{family} {seed}");
                let questions = other.probes().iter();
                let questions = questions.filter(|it| it.kind() != ProbeKind::Artifact);
                let mut said: Vec<String> = questions.map(|it| it.question.clone()).collect();
                for message in other.session().messages() {
                    let texts = message.content().iter().filter_map(|block| match block {
                        ContentBlock::Text(text) => Some(text.to_string()),
                        ContentBlock::Thinking(thinking) => Some(thinking.text.to_string()),
                        _ => None,
                    });
                    said.extend(texts);
                }
                for text in &said {
                    let mut prose = String::new();
                    // Code is quoted as it is.
                    for part in text.split("```").step_by(2) {
                        prose.push_str(part);
                    }
                    let mut words = prose.split(|c: char| !c.is_alphanumeric());
                    let word = words.find(|word| ENGLISH.contains(&word.to_lowercase().as_str()));
                    assert_eq!(word, None, "{family} {seed}: {text}");
                }
            }
        }
    }
}

/// Strategies that act by counts of messages and results, never by size: they do the same to both.
const BY_COUNT: [&str; 5] = [
    "none",
    "observation-masking[clear_results.keep_last=4]",
    "observation-masking[clear_results.every=5]",
    "claude-code-snip-drop",
    "aloop-deletion[drop_oldest.when={messages_over=60}]",
];

/// The same facts survive the same strategies. Exactly so: they change the same messages, and the
/// tables translate every template and every word of a fact, so a fact that is verbatim in one twin
/// is verbatim in the other. The window is far above both sessions, so nothing fires by size.
#[test]
fn a_translation_survives_as_its_english_twin_does() {
    for family in FAMILIES.as_slice() {
        for language in Language::ALL.into_iter().skip(1) {
            let twins = [Language::English, language].map(|language| twin(family, 3, language));
            for name in BY_COUNT {
                let [english, other] = twins.each_ref().map(|twin| {
                    let models = Models {
                        summariser: Arc::new(Offline::new(twin.counts().clone())),
                        reader: None,
                        judge: None,
                        times: proctor::replay::Repetitions::default(),
                    };
                    let spec = strategy(name).build().unwrap();
                    let window = Window::new(Tokens(2_000_000));
                    let replayed = Replayed::Strategy(Box::new(spec), window);
                    let record = replay(twin, cell(name), replayed, &models, &NoClock).record;
                    (record.compactions.len(), Survival::of(&record))
                });
                assert_eq!(english.0, other.0, "{family}: {name} fires as often");
                for kind in ProbeKind::ALL {
                    let of = |survival: &Survival| survival.of_kind(kind).mean();
                    let (english, other) = (of(&english.1), of(&other.1));
                    println!("{family} {name} {}: {english:?} {other:?}", kind.name());
                    let apart = english.unwrap_or(0.0) - other.unwrap_or(0.0);
                    assert!(apart.abs() < 1e-9, "{family} {name} {}", kind.name());
                }
                if name == "none" {
                    assert_eq!(other.1.planted().mean(), Some(1.0), "{family}");
                }
            }
        }
    }
}

#[test]
fn a_family_without_a_table_says_which_have_one() {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let error = generate(&recipe("teaching", 1, Language::Chinese), &counts).unwrap_err();
    assert!(matches!(error, SyntheticError::Untranslated { .. }));
    let said = error.to_string();
    assert!(said.contains("`teaching` is not written in `zh`, only `code-review`"), "{said}");
}
