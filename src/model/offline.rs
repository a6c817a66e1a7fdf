//! The model that needs no key and no network: rules where a language model would write.
//!
//! It extracts lines for summaries; it neither acts, answers nor judges. It lets the whole pipeline run, and what it writes says nothing about what a language
//! model would have written: reports name it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{CallFailure, Model, ModelKind, Reply, Request, Response, Stop, Task, bill};
use crate::tokens::CountedTexts;
use crate::units::Usage;

mod summary;

/// The lists of words that come with the model, by name.
static WORDS: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| toml::from_str(include_str!("offline/words.toml")).unwrap_or_default());

/// The words of the list of this name.
fn listed(name: &str) -> impl Iterator<Item = &'static str> + Clone {
    WORDS.get(name).into_iter().flatten().map(String::as_str)
}

/// Rules instead of a language model. One value serves all cells of a session: it counts as the
/// session does.
#[derive(Debug)]
pub struct Offline {
    counts: Arc<CountedTexts>,
}

impl Offline {
    /// Bills by the session's own counter.
    pub fn new(counts: Arc<CountedTexts>) -> Self {
        Self { counts }
    }
}

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Deterministic
    }

    fn answer(&self, request: &Request, _: u32, _: &CountedTexts) -> Reply {
        let text = match &request.task {
            Task::Agent | Task::Answer | Task::Judge => {
                return Reply::once(Err(CallFailure::Unsupported));
            }
            Task::Summarise { sections } => {
                summary::write(&request.messages, sections, request.max_output)
            }
            Task::Select => summary::ranking(&request.messages),
            Task::Recorded { answer } => answer.to_string(),
        };
        Reply::once(Ok(Response {
            usage: Usage::uncached(
                bill::input(request, &self.counts),
                self.counts.counter().count(&text),
            ),
            text: text.into(),
            stop: Stop::End,
            model: Arc::from(self.name()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;
    use crate::tokens::CharsPer4;
    use crate::units::Tokens;

    #[test]
    fn it_summarises_but_neither_acts_answers_nor_judges() {
        let offline = Offline::new(Arc::new(CountedTexts::new(Arc::new(CharsPer4))));
        let ask = |task, text: &str| {
            let request = Request::of_text(Purpose::Compaction, task, text, Tokens(100));
            offline.respond(&request)
        };
        let sections = Vec::new();
        let summary = ask(Task::Summarise { sections }, "You must read it.").unwrap();
        assert_eq!(summary.usage.input_uncached, Tokens(5));
        for task in [Task::Answer, Task::Judge, Task::Agent] {
            assert_eq!(ask(task, "x"), Err(CallFailure::Unsupported));
        }
    }
}
