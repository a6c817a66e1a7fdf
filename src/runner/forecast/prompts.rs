//! The prompts that questions are put to, and how a provider would cache them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::context::{CacheEffect, Entry, Origin};
use crate::model::price::{CacheScheme, Client, Prices, Reuse, Senders};
use crate::model::{Request, Task};
use crate::probe::Probe;
use crate::record::{ForecastCell, PromptDue};
use crate::replay::ceiling;
use crate::replay::observe::{BilledRequest, CallView, Observer};
use crate::replay::prompt_cache::{BlockList, EditedEntries, PromptCache, PromptLine};
use crate::scenario::ModelSetting;
use crate::session::wire::Provider;
use crate::session::{ContentBlock, Message, Session};
use crate::tokens::CountedTexts;
use crate::units::Tokens;

/// The breakpoints of a question: after the system prompt (the tools, where there is none), and at
/// the ends of the last two user messages as the strategy left them. What the question itself adds
/// is never cached.
const QUESTIONS: Client =
    Client { marks_tools: false, messages: 2, senders: Senders::User, forks: false };

/// The rules by which the provider of a model caches what Proctor sends; none where no document names
/// them, or the API that is spoken has no breakpoints.
pub(super) fn scheme_of(model: Option<&ModelSetting>, prices: &Prices) -> CacheScheme {
    let Some(ModelSetting::Live(live)) = model else {
        return CacheScheme::none();
    };
    let known = prices.of(&live.dialect.model);
    let scheme = known.and_then(|(list, price)| Some((list.schemes.first()?, price)));
    let provider = scheme.and_then(|(scheme, _)| match scheme.reuse {
        Reuse::Breakpoints => Some(Provider::Anthropic),
        Reuse::LongestPrefix => Some(Provider::OpenAi),
        Reuse::Nothing => None,
    });
    match scheme {
        Some((scheme, price)) if provider == Some(live.dialect.provider) => CacheScheme {
            minimum: price.minimum_cacheable.unwrap_or(scheme.minimum),
            ..scheme.clone()
        },
        Some(_) | None => CacheScheme::none(),
    }
}

/// One prompt after the other as the cells of a session put them to a reader. Entries of the cache are
/// taken to live as long as a session is worked on.
#[derive(Debug)]
pub(super) struct ReaderPrompts {
    line: PromptLine,
    /// The messages of the line.
    messages: Vec<BlockList>,
    cache: PromptCache,
    counts: Arc<CountedTexts>,
    /// The requests of the cell that is replayed, and the prompts that its readers are asked of.
    pub(super) found: ForecastCell,
}

impl ReaderPrompts {
    pub(super) fn new(session: &Session, counts: &Arc<CountedTexts>, scheme: CacheScheme) -> Self {
        Self {
            line: PromptLine::new(&BlockList::head(session.tools(), session.system(), counts)),
            messages: Vec::new(),
            cache: PromptCache::new(Arc::new(scheme), QUESTIONS),
            counts: counts.clone(),
            found: ForecastCell::default(),
        }
    }

    /// The system prompt and the tools alone.
    pub(super) fn floor(&mut self) -> PromptDue {
        self.put(std::iter::empty())
    }

    /// Puts questions to a prompt of these messages, as the reader is sent them. Its size is counted: a reader is not sent the
    /// tokens that only the agent's bill shows.
    fn put(&mut self, messages: impl Iterator<Item = BlockList>) -> PromptDue {
        let messages: Vec<BlockList> = messages.collect();
        let old = self.messages.iter();
        let same = old.zip(&messages).take_while(|(old, new)| old == new).count();
        if same < self.messages.len() {
            self.line.patch(&[EditedEntries {
                entries: same..self.messages.len(),
                with: messages[same..].to_vec(),
                cache: CacheEffect::Breaks,
            }]);
        } else {
            for message in &messages[same..] {
                self.line.append(message);
            }
        }
        self.messages = messages;
        let first = self.cache.send(&self.line, None, 0).split;
        self.line.sent(0);
        let again = self.cache.send(&self.line, None, 0).split;
        PromptDue {
            id: self.line.chain(self.line.len()),
            tokens: self.line.until(self.line.len()),
            read: first.read,
            written: first.written,
            read_again: again.read,
        }
    }
}

/// A message as a reader is sent it, without the thinking of another model; `None` where it has
/// nothing else.
fn sent(entry: &Entry, counts: &CountedTexts) -> Option<BlockList> {
    let message = &entry.message;
    if message.details.hidden == Tokens::ZERO && !message.content().iter().any(is_thinking) {
        return Some(BlockList::of(entry, counts));
    }
    let content: Vec<ContentBlock> =
        message.content().iter().filter(|block| !is_thinking(block)).cloned().collect();
    if content.is_empty() {
        return None;
    }
    let message = Arc::new(Message::new(message.role(), content));
    Some(BlockList::of(&Entry::new(Origin::Authored, message, counts), counts))
}

fn is_thinking(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Thinking(_))
}

/// Tokens of a request as it is sent: thinking is left out.
fn sent_tokens(request: &Request, counts: &CountedTexts) -> Tokens {
    let messages = request.messages.iter().filter_map(|message| {
        let entry = Entry::new(Origin::Authored, message.clone(), counts);
        Some(sent(&entry, counts)?.tokens())
    });
    let head = PromptLine::new(&BlockList::head(request.tools(), request.system.as_ref(), counts));
    messages.sum::<Tokens>() + head.until(head.len())
}

/// Notes the requests of a strategy, and the prompts that readers are asked of.
#[derive(Debug)]
pub(super) struct PromptWatch<'p> {
    pub(super) prompts: &'p mut ReaderPrompts,
    pub(super) probes: &'p [Probe],
    /// Indices of the probes that may be asked at each call.
    pub(super) asked: &'p BTreeMap<usize, Vec<usize>>,
    /// The reader's window, where no more than fits is sent.
    pub(super) window: Option<Tokens>,
}

impl Observer for PromptWatch<'_> {
    fn asked(&mut self, asked: &BilledRequest) {
        // No model is asked for an answer that the recording holds.
        if !matches!(asked.request.task, Task::Recorded { .. }) {
            let sent = sent_tokens(&asked.request, &self.prompts.counts);
            self.prompts.found.sent.insert(asked.number, sent);
            let longest = asked.request.max_output;
            self.prompts.found.asks.insert(asked.number, longest);
        }
    }

    fn called(&mut self, view: &CallView<'_>) {
        let prompts = &mut *self.prompts;
        let counts = prompts.counts.clone();
        for probe in self.asked.get(&view.call).into_iter().flatten() {
            let shown = ceiling::shown(view, &self.probes[*probe], self.window, &counts);
            if let Some((_, false)) = shown {
                if !prompts.found.prompts.contains_key(&view.call) {
                    let entries = view.context.entries().iter();
                    let due = prompts.put(entries.filter_map(|entry| sent(entry, &counts)));
                    prompts.found.prompts.insert(view.call, due);
                }
                continue;
            }
            let due = shown.map(|(messages, _)| {
                let entries = messages
                    .into_iter()
                    .map(|message| Entry::new(Origin::Authored, message, &counts));
                prompts.put(entries.filter_map(|entry| sent(&entry, &counts)))
            });
            let evidence = &mut prompts.found.evidence;
            evidence.insert((view.call, *probe), due);
        }
    }
}
