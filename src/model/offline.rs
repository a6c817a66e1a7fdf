//! The model that needs no key and no network: rules where a language model would write.
//!
//! It extracts lines for summaries; it neither acts, answers nor judges. It lets the whole pipeline run, and what it writes says nothing about what a language
//! model would have written: reports name it.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use super::{CallFailure, Model, ModelKind, Request, Response, Stop, Task};
use crate::tokens::{Block, CountedTexts};
use crate::units::{Tokens, Usage};

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

    /// The tokens of a request. Its last text was written for this request alone (a question, or
    /// the record to be summarised): it is counted and not remembered.
    fn prompt_tokens(&self, request: &Request) -> Tokens {
        let blocks = request.messages.iter().flat_map(|message| message.blocks());
        let mut blocks: Vec<Block<'_>> = blocks.collect();
        let counter = self.counts.counter();
        let last = blocks.pop().map_or(Tokens::ZERO, |block| {
            let images = self.counts.images(&block);
            counter.count_block(&block, &|text| counter.count(text), images)
        });
        let system = request.system.iter().map(|text| self.counts.size(text));
        let tools = request.tools().iter();
        let tools = tools.map(|tool| self.counts.schema(tool.text()));
        let sizes = blocks.iter().map(|block| self.counts.block(block));
        let sizes = sizes.chain(system).chain(tools);
        last + sizes.map(|size| size.tokens).sum()
    }
}

impl Model for Offline {
    fn name(&self) -> &'static str {
        "offline"
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Deterministic
    }

    fn respond(&self, request: &Request) -> Result<Response, CallFailure> {
        let text = match &request.task {
            Task::Agent | Task::Answer | Task::Judge => return Err(CallFailure::Unsupported),
            Task::Summarise { sections } => {
                summary::write(&request.messages, sections, request.max_output)
            }
            Task::Select => summary::ranking(&request.messages),
            Task::Recorded { answer } => answer.to_string(),
        };
        Ok(Response {
            usage: Usage::uncached(
                self.prompt_tokens(request),
                self.counts.counter().count(&text),
            ),
            text: text.into(),
            stop: Stop::End,
            model: Arc::from(self.name()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Purpose;
    use crate::tokens::CharsPer4;

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
