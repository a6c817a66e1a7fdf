//! Prompts that a server cut: it reports fewer tokens than it was sent, and answers all the same.
//!
//! A server of one's own may drop what does not fit its context window, and say so in its log only.
//! An answer to a part of a prompt says nothing about the context that was measured.

use std::collections::BTreeSet;

use super::{CallFailure, Request};
use crate::session::ContentBlock;
use crate::tokens::CountedTexts;
use crate::units::Tokens;

/// A smaller prompt proves nothing: no agent's context is in question there.
const LEAST_SENT: Tokens = Tokens(4_000);

/// A smaller number proves nothing: nobody serves such a window, and servers that report only what their
/// prompt cache did not hold report a question so.
const LEAST_READ: Tokens = Tokens(1_000);

/// A prompt that was read whole has at least this share, in percent, of what is counted here. It has about
/// 100 or more, because [`sent`] leaves out what a server may leave out, and counts by the vocabulary that
/// needs the fewest tokens for most texts. In recordings of 16 models the least was 86 percent of the
/// count; the rest is room for texts and vocabularies that are not among them.
const LEAST_PERCENT: u64 = 60;

/// Prompts of equal reported size are of different size if the larger has this many percent of the smaller:
/// more than two vocabularies differ by from text to text.
const DIFFERENT_PERCENT: u64 = 110;

/// Where a server reports less than this share, in percent, of both prompts, which no recording shows of a
/// prompt that was read whole, fewer tokens of difference suffice.
const FAR_PERCENT: u64 = 80;

/// Prompts of nearly one size must be this many tokens apart: two questions about one context differ by fewer, and a
/// server that estimates may not count the question.
const DIFFERENT_TOKENS: Tokens = Tokens(100);

/// Prompts of nearly one size must have this many sizes: by chance, a server that estimates its numbers may report its
/// largest one for a few of them.
const DIFFERENT_SIZES: usize = 5;

const VOCABULARY: &str = "o200k";

/// The tokens that any model reads of a request, at least: texts, by the vocabulary that needs the
/// fewest tokens in most languages, whatever the scenario counts by.
///
/// Tool definitions are left out, because servers leave them out where no tool may be called; so are
/// images, whose size is the model's own, and thoughts, which are not sent.
pub(super) fn sent(request: &Request, counts: &CountedTexts) -> Tokens {
    let other = (counts.counter_name() != VOCABULARY).then(|| counts.by_counter(VOCABULARY));
    let counts = other.as_ref().and_then(Option::as_deref).unwrap_or(counts);
    let messages = request.messages.iter();
    let blocks = messages.flat_map(|message| message.content().iter().zip(message.model_text()));
    let texts = blocks.filter_map(|(block, text)| match block {
        ContentBlock::Text(_)
        | ContentBlock::ToolUse(_)
        | ContentBlock::ToolResult(_)
        | ContentBlock::Opaque(_) => Some(text),
        ContentBlock::Thinking(_) | ContentBlock::Image(_) => None,
    });
    texts.chain(&request.system).map(|text| counts.size(text).tokens).sum()
}

/// Whether a server cut a prompt of `sent` tokens, of which it read no more than `most`.
pub(super) fn is_cut(sent: Tokens, read: Tokens, most: Tokens) -> bool {
    sent >= LEAST_SENT && read >= LEAST_READ && most.max(read).0 * 100 < sent.0 * LEAST_PERCENT
}

/// Whether an answer may be to a cut prompt, where the server is known to cut prompts to `window` tokens: no
/// prompt that it cut is larger, and servers that drop whole messages, or half of their window, still fill half
/// of it.
pub fn is_doubtful(read: Tokens, window: Tokens) -> bool {
    read <= window && read.0.saturating_mul(2) > window.0
}

/// The sizes of prompts that one model read, as its server reports them.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadSizes {
    /// The largest that is recorded of an earlier run: the server may still hold that prompt in its cache.
    earlier: Tokens,
    /// The largest of this run.
    pub(super) largest: Tokens,
    /// The sizes of the prompts, as counted here, for which it reported that.
    sent: BTreeSet<Tokens>,
    /// The largest prompt, as counted here, for which it reported less.
    below: Tokens,
}

impl ReadSizes {
    /// Sizes of a model of which `earlier` is the largest that is recorded.
    pub(super) fn after(earlier: Tokens) -> Self {
        Self { earlier, ..Self::default() }
    }

    /// Takes a prompt of `sent` tokens of which the server reported `read`. Returns in words what proves that the server
    /// cuts prompts, if something does.
    ///
    /// Some servers report only what their prompt cache did not hold, and that is at most the largest prompt so far: a
    /// small number proves nothing if it makes up for the rest together with that prompt.
    pub(super) fn add(&mut self, sent: Tokens, read: Tokens) -> Option<String> {
        let most = self.earlier.max(self.largest + read);
        if read > self.largest {
            self.largest = read;
            let before = std::mem::take(&mut self.sent);
            self.below = self.below.max(before.last().copied().unwrap_or_default());
        } else if read < self.largest {
            self.below = self.below.max(sent);
        }
        if is_cut(sent, read, most) {
            return Some(format!("read {read} of about {sent} tokens of a prompt"));
        }
        if read < self.largest || sent < LEAST_SENT || read < LEAST_READ {
            return None;
        }
        self.sent.insert(sent);
        let (least, most) = (*self.sent.first()?, *self.sent.last()?);
        let differ = most.0 * 100 > least.0 * DIFFERENT_PERCENT && read < most;
        let far = read.0 * 100 < least.0 * FAR_PERCENT
            && most - least >= DIFFERENT_TOKENS
            && self.sent.len() >= DIFFERENT_SIZES
            && self.below < least;
        (differ || far).then(|| {
            format!("read {read} tokens of a prompt of about {least} and of one of about {most}")
        })
    }

    /// The failure of a request whose prompt was cut, by the server at this address.
    pub(super) fn failure(&self, proof: &str, address: Option<&str>) -> CallFailure {
        let server = address.map_or("its server".to_owned(), |at| format!("the server at {at}"));
        CallFailure::CutPrompt { proof: format!("{server} {proof}"), window: self.largest }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::model::{Purpose, Task};
    use crate::tokens::CharsPer4;

    /// Whether the last of these prompts, each as what was sent and read, proves that the server cuts.
    #[track_caller]
    fn check(prompts: &[(u64, u64)], expected: bool) {
        let mut sizes = ReadSizes::default();
        let proofs =
            prompts.iter().map(|(sent, read)| sizes.add(Tokens(*sent), Tokens(*read)).is_some());
        let proofs: Vec<bool> = proofs.collect();
        let (last, before) = proofs.split_last().unwrap();
        assert_eq!((*last, before.contains(&true)), (expected, false), "{prompts:?}");
    }

    #[test]
    fn a_server_cuts_prompts_if_it_never_reads_one_whole_or_reads_different_ones_alike() {
        check(&[(20_000, 8_192)], true);
        check(&[(20_000, 12_000)], false);
        check(&[(6_000, 3_700), (20_000, 8_192)], true);
        // Another vocabulary needs more tokens, and never so many fewer.
        check(&[(20_000, 26_000)], false);
        // Equal for prompts of clearly different size, in either order, at the largest that it ever read.
        check(&[(9_000, 8_192), (12_000, 8_192)], true);
        check(&[(12_000, 8_192), (9_000, 8_192)], true);
        check(&[(9_000, 8_192), (9_800, 8_192)], false);
        let near = |sizes: &[u64]| -> Vec<(u64, u64)> {
            sizes.iter().map(|sent| (*sent, 12_000)).collect()
        };
        check(&near(&[18_900, 18_910, 18_920, 18_960, 19_000]), true);
        check(&near(&[18_900, 18_910, 18_920, 18_960, 18_999]), false);
        check(&near(&[18_900, 19_000, 19_000, 18_900]), false);
        // A server that estimates has other numbers for prompts as large.
        let estimated = [&[(18_905, 11_998)], &near(&[18_900, 18_910, 18_920, 18_960, 19_000])[..]];
        check(&estimated.concat(), false);
        check(&[(9_000, 8_192), (9_000, 9_300), (12_000, 8_192)], false);
        check(&[(9_000, 12_100), (11_000, 12_100)], false);
        // Small prompts and small numbers prove nothing.
        check(&[(3_900, 1_024)], false);
        check(&[(9_000, 60)], false);
        check(&[(9_000, 0)], false);
        // The server may report what its prompt cache did not hold.
        check(&[(9_000, 9_400), (9_100, 1_500), (20_000, 11_200)], false);
        check(&[(6_000, 7_100), (20_000, 8_192)], false);
        check(&[(6_000, 7_100), (20_000, 8_192), (23_000, 8_192)], true);
        check(&[(9_000, 9_400), (60_000, 8_192)], true);
        let mut resumed = ReadSizes::after(Tokens(21_000));
        assert_eq!(resumed.add(Tokens(20_000), Tokens(1_200)), None);
        assert_eq!(resumed.add(Tokens(20_000), Tokens(4_096)), None);
        assert!(resumed.add(Tokens(23_000), Tokens(4_096)).is_some());
    }

    #[test]
    fn answers_are_doubtful_that_a_window_of_this_size_can_have_cut() {
        let is_it = |read| is_doubtful(Tokens(read), Tokens(4_096));
        assert_eq!([2_000, 3_000, 4_096, 30_000].map(is_it), [false, true, true, false]);
    }

    #[test]
    fn what_is_sent_is_the_texts_by_the_thriftiest_vocabulary() {
        let text = "अनुबंध की शर्तें बदल गई हैं, और नया मूल्य सूची में है। ".repeat(20);
        let request = Request {
            system: Some("You are a test.".into()),
            ..Request::of_text(Purpose::Probe, Task::Judge, text.clone(), Tokens(9))
        };
        let by = |name: &str| {
            let counter = crate::tokens::counter(name).unwrap();
            counter.count(&text) + counter.count("You are a test.")
        };
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        assert_eq!(sent(&request, &counts), by("o200k"));
        // By an older vocabulary a prompt that was read whole would look cut.
        assert!(by("o200k").0 * 100 < by("cl100k").0 * LEAST_PERCENT);
    }
}
