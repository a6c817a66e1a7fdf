//! Adds to a session what a compaction left of it.

use super::bills::{bill, bills_of, pay};
use super::said::{holds_answer, summaries_in, sums_up, written};
use super::thread::SessionThread;
use super::{FOR_SUMMARY, LoggedRequest};
use crate::prelude::*;

impl SessionThread {
    /// Adds a request that shows what a compaction left; these summaries were asked for apart.
    pub(super) fn compact(
        &mut self,
        mut request: LoggedRequest,
        said: &[Arc<str>],
        asked: &[Arc<str>],
    ) {
        self.adopt_ids(&mut request);
        let looks = &request.looks;
        self.names.extend(request.agent.name.clone());
        self.agent = request.agent.clone();
        let one = request.one.clone();
        let mut parts = one.session.into_parts();
        let answer = parts.messages.pop();
        self.drop_request_for_summary(&parts.messages, looks);
        let at = self.session.parts().messages.len();
        let places: Vec<Option<(usize, bool)>> = looks.iter().map(|one| self.place(one)).collect();
        let mut found = places.iter().enumerate().rev();
        let last_found = found.find_map(|(index, place)| Some((index, place.as_ref()?.0)));
        let ends_whole = last_found.is_some_and(|(_, place)| place + 1 == at);
        let last = parts.messages.split_last();
        let last_new = last.is_some_and(|(last, front)| {
            !sums_up(last, said) && front.iter().any(|message| sums_up(message, said))
        });
        let sealed = request.is_sealed();
        let mut left = Vec::new();
        let mut added = Vec::new();
        let compactions = parts.compactions.into_iter();
        let (of_answer, known): (Vec<_>, Vec<_>) =
            compactions.partition(|one| one.at >= looks.len() + usize::from(sealed));
        for (index, message) in parts.messages.into_iter().enumerate() {
            // The provider does not send on what it summed up.
            for one in known.iter().filter(|one| one.at == index) {
                if let CompactedTo::Replaced(pieces) = &one.after {
                    left.clone_from(pieces);
                }
            }
            match places[index] {
                Some((place, true)) => Recorded::keep(place, &mut left),
                Some((place, false)) => left.push(self.edited(place, message)),
                None if last_found.is_none_or(|(last, _)| index > last)
                    && (ends_whole
                        || last_new && index + 1 == looks.len()
                        || self.answers_last(&message)) =>
                {
                    let (results, notes) = parted(message);
                    added.push(results);
                    if let Some(notes) = notes {
                        let mut each = left.iter();
                        let after = each.rposition(|value| matches!(value, Recorded::Written(_)));
                        left.insert(after.map_or(0, |at| at + 1), Recorded::Written(notes));
                    }
                }
                None => left.push(written(&message, said, asked)),
            }
        }
        if sealed {
            self.seal();
        } else if !self.is_context(&left, at) {
            self.client_compacted(None, CompactedTo::Replaced(left));
        }
        pay(&mut self.session, at, std::mem::take(&mut self.summary_bills));
        let own = self.session.parts();
        let (at, earlier) = (own.messages.len(), own.compactions.len());
        self.told(one.compaction, at, earlier);
        add_counts(&mut self.session.parts_mut().source, parts.source);
        let kept = looks.len() - added.len();
        self.shows(&request, kept);
        self.provider_compacted(of_answer, kept);
        added.extend(answer);
        self.add(added);
    }

    /// Adds a compaction of the provider's, unless the request for it did.
    fn seal(&mut self) {
        let own = self.session.parts();
        match own.compactions.last() {
            Some(last) if last.at == own.messages.len() && last.after == CompactedTo::Encrypted => {
            }
            _ => self.client_compacted(None, CompactedTo::Encrypted),
        }
    }

    /// Adds the compaction that a request asks the provider for, which is billed so.
    pub(super) fn compacted_by_provider(&mut self, request: LoggedRequest, usage: Option<Usage>) {
        let model = request.one.session.parts().model.as_deref();
        self.summary_bills.extend(usage.map(|usage| bill(FOR_SUMMARY, model, usage)));
        self.take_results(request);
        self.seal();
    }

    /// Adds the results that a request for a summary was the first to hold.
    pub(super) fn take_results(&mut self, mut request: LoggedRequest) {
        self.adopt_ids(&mut request);
        let mut new = request.asked().iter().rev().filter(|message| self.answers_last(message));
        if let Some(message) = new.next() {
            let results = message.content().iter().take_while(|block| block.is_result()).cloned();
            let results = Arc::new(Message::new(Role::User, results.collect()));
            self.remember(&results, false);
            self.session.parts_mut().messages.push(results);
        }
    }

    /// Removes a request for a summary, and its answer, from the history. If it was asked for in
    /// the middle of a turn, the tool results in front of the request stay.
    fn drop_request_for_summary(&mut self, sent: &[Arc<Message>], looks: &[Look]) {
        let parts = self.session.parts_mut();
        let [.., question, answer] = &parts.messages[..] else {
            return;
        };
        let at = parts.messages.len() - 2;
        let summaries = summaries_in(answer);
        let held = sent.iter().any(|value| holds_answer(value, &summaries));
        let whole = Look::of(answer).whole;
        let sent_back = looks.iter().any(|look| look.whole == whole);
        let recent = parts.compactions.last().is_none_or(|last| last.at <= at);
        let content = question.content();
        let results = content.iter().take_while(|block| block.is_result()).count();
        let asked = question.role() == Role::User && results < content.len();
        if !(asked && held && !sent_back && recent) {
            return;
        }
        let kept = (results > 0).then(|| {
            let mut kept = Message::new(Role::User, content[..results].to_vec());
            kept.details.timestamp = question.details.timestamp;
            let tags = question.tags.iter();
            kept.with_tags(tags.filter(|tag| matches!(tag, Tag::Orphan | Tag::Protected)))
        });
        parts.source.skip(FOR_SUMMARY);
        self.summary_bills.extend(bills_of(answer, FOR_SUMMARY, parts.model.as_deref()));
        self.truncate(at);
        if let Some(kept) = kept {
            let kept = Arc::new(kept);
            self.remember(&kept, false);
            self.session.parts_mut().messages.push(kept);
        }
    }

    /// Whether a message answers the last tool uses.
    fn answers_last(&self, message: &Message) -> bool {
        let last = self.session.parts().messages.last();
        let asked: BTreeSet<&Arc<str>> =
            last.into_iter().flat_map(|last| last.tool_uses()).map(|(_, call)| &call.id).collect();
        message.tool_results().any(|(_, result)| asked.contains(&result.tool_use_id))
    }

    /// A message that stayed with another text.
    fn edited(&self, place: usize, message: Arc<Message>) -> Recorded {
        let own = &self.session.parts().messages[place];
        let (before, after) = (own.model_text(), message.model_text());
        let changed =
            before.iter().zip(after).enumerate().filter(|(_, (before, after))| before != after);
        let changed: Vec<(usize, &Arc<str>)> = changed.map(|(at, (_, text))| (at, text)).collect();
        match changed[..] {
            [(block, text)] if before.len() == after.len() && own.content()[block].is_result() => {
                Recorded::Edited { message: place, block, text: text.clone() }
            }
            _ => Recorded::Written(message),
        }
    }
}

/// The results in a message, and the notes that the product itself put behind them: after a compaction they are its own.
fn parted(message: Arc<Message>) -> (Arc<Message>, Option<Arc<Message>>) {
    let content = message.content();
    let results = content.iter().take_while(|block| block.is_result()).count();
    let products = message.has_tag(Tag::Meta) && !message.has_tag(Tag::TypedUser);
    if results == 0 || results == content.len() || !products {
        return (message, None);
    }
    let (results, notes) = content.split_at(results);
    let mut own = Message::new(Role::User, results.to_vec());
    own.details.timestamp = message.details.timestamp;
    let notes = Message::new(Role::User, notes.to_vec()).with_tags([Tag::Meta]);
    (Arc::new(own), Some(Arc::new(notes)))
}
