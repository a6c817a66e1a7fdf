//! Every bill is an anchor: what it grew by is the size of what came since the one before.

use std::ops::Range;

use super::follow::{Anchor, BillStep, FollowedRates, anchors, drops};
use super::held_out::{self, Predicted};
use super::points::{BillPoint, Points, bill, counted, hides_thinking, largest, signed, tokens};
use super::{
    Bill, Factor, Fit, HeldOut, HiddenThinking, LeftOutParts, Scale, SessionSizes, Sizes, TextSizes,
};
use crate::session::{CompactedTo, ContentBlock, Recorded, Role, Session, Tag};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, median};

/// The head of a session that begins in the middle, an assumption: measured ones are 12,000 to 42,000 tokens for Claude
/// Code, and 1,000 to 19,000 for Codex.
const USUAL_HEAD: i64 = 20_000;

/// A head above this is missing history, not system prompt and tools: measured heads reach 42,000
/// tokens, and each connected tool server may add some thousands.
const LARGEST_HEAD: i64 = 120_000;

/// What a walk over the anchors finds.
pub(super) struct Walk<'a> {
    pub(super) session: &'a Session,
    pub(super) counts: &'a CountedTexts,
    pub(super) points: &'a Points,
    pub(super) rates: FollowedRates,
    texts: TextSizes,
    /// What of the hidden parts is still in the prompt, oldest first.
    pool: Vec<(usize, Tokens)>,
    pub(super) head: i64,
    /// As it was at the first bill.
    pub(super) first_head: i64,
    ratio: Factor,
    /// What the head lost, and may get back.
    owed: i64,
    is_head_known: bool,
    warnings: Vec<String>,
    /// Billed and expected first prompts after recorded compactions.
    pub(super) removals: Vec<Predicted>,
}

impl Walk<'_> {
    /// Tokens of this call as they are kept: in those of the first one.
    fn kept(&self, billed: i64) -> Tokens {
        self.ratio.count(tokens(billed))
    }

    /// The texts of messages are billed so.
    fn sizes(&mut self, messages: Range<usize>, billed: i64) {
        let counted = tokens(self.points.added(messages.clone()).text);
        let factor = Factor::of(self.kept(billed), counted).unwrap_or(Factor::ONE);
        self.texts.factors.resize(messages.end, factor);
    }

    fn hides(&mut self, message: usize, billed: i64) -> Tokens {
        let hidden = self.kept(billed);
        if hidden > Tokens::ZERO {
            *self.texts.hidden.entry(message).or_default() += hidden;
        }
        hidden
    }

    /// It hides thinking, which may leave the prompt.
    fn thinks(&mut self, message: usize, billed: i64) {
        let hidden = self.hides(message, billed);
        if hidden > Tokens::ZERO {
            self.pool.push((message, hidden));
        }
    }

    /// System prompt and tools, as far as they are recorded.
    pub(super) fn fixed(&self, factor: Factor) -> i64 {
        signed(factor.bill(self.points.fixed.scaled) + self.points.fixed.billed)
    }

    /// The size of a message with what is known of it so far, as it is kept.
    fn size(&self, message: usize) -> Tokens {
        let counted = self.points.sizes[message].get();
        self.texts.size(message, counted).billed
    }

    /// How a call is sized at this place.
    fn scale(&self, call: usize) -> Scale {
        let factor = self.rates.factor(self.points.by_call[call]);
        Scale { head: tokens(self.head), factor, ratio: self.ratio }
    }

    /// The first bill of all, or of what a compaction left.
    fn begin(&mut self, since: usize, point: &BillPoint, is_first: bool) {
        let factor = self.rates.factor(point.model);
        let pending = since..point.message;
        let added = self.points.added(pending.clone());
        self.sizes(pending.clone(), bill(factor, added.text));
        if let Some(event) = point.segment.checked_sub(1) {
            self.pool.clear();
            return self.compacted(event, point, is_first);
        }
        let texts = bill(factor, added.text) + added.images;
        self.head = point.billed - self.fixed(factor) - texts;
        self.check_head(pending, point);
    }

    /// History that is not there is in front of the first bill, or there is less than none.
    fn check_head(&mut self, pending: Range<usize>, point: &BillPoint) {
        if self.head < 0 {
            self.warnings.push(format!(
                "the first bill is {} tokens below what is recorded of its prompt: the head is taken as 0",
                -self.head
            ));
            let left = self.points.added(pending.clone()).text;
            let factor = self.rates.factor(point.model);
            self.texts.factors.truncate(pending.start);
            self.sizes(pending, (bill(factor, left) + self.head).max(0));
            self.head = 0;
        }
        let opening = self.session.messages().first();
        if opening.is_some_and(|opening| {
            opening.role() == Role::Assistant || opening.has_tag(Tag::Orphan)
        }) || self.head > LARGEST_HEAD
        {
            self.is_head_known = false;
            // History can be compacted: it goes with the first message.
            let history = (self.head - USUAL_HEAD).max(0);
            self.hides(0, history);
            self.head -= history;
            self.warnings.push(format!(
                "the recording begins in the middle of a session: {} tokens are taken as system prompt and tools, \
                 and {history} as history that is not recorded",
                self.head
            ));
        }
    }

    /// The first bill after a compaction: what the product wrote in it has the size that the rest leaves for it.
    /// Of a session that begins so, that rest is the head and what else is not recorded.
    fn compacted(&mut self, event: usize, point: &BillPoint, is_first: bool) {
        let recorded = &self.session.compactions()[event];
        let pieces: &[Recorded] = match &recorded.after {
            CompactedTo::Replaced(pieces) => pieces,
            CompactedTo::Encrypted | CompactedTo::Missing => &[],
        };
        let mut written = Size::default();
        let mut is_summary = false;
        let since = recorded.at.min(point.message)..point.message;
        let mut ranges = Vec::new();
        for piece in pieces {
            match piece {
                Recorded::Kept(range) => ranges.push(range.clone()),
                Recorded::Written(message) => {
                    is_summary |= message.has_tag(Tag::CompactSummary);
                    written += counted(message, self.counts);
                }
                Recorded::Edited { .. } => {}
            }
        }
        // What was cleared only is an event, and no test of sizes.
        if !is_summary && !is_first {
            return;
        }
        let factor = self.rates.factor(point.model);
        let (mut counted, mut kept) = (0, Tokens::ZERO);
        for Range { start, end } in ranges.into_iter().chain([since]) {
            let range = start..end.min(point.message);
            counted += self.points.expected(range.clone(), factor, HiddenThinking::Dropped);
            kept += range.map(|at| self.size(at)).sum();
        }
        let summary = signed(factor.bill(written.scaled) + written.billed);
        let rest = self.fixed(factor) + summary;
        let expected = rest + signed(self.ratio.share(kept));
        if is_first {
            self.head = (point.billed - expected).max(0);
            self.is_head_known = false;
            self.warnings.push(format!(
                "the first billed call follows a compaction: the head is unknown, and {} tokens are taken for it",
                self.head
            ));
            return;
        }
        let left = summary + point.billed - self.head - expected;
        let share = Factor::of(self.kept(left - signed(written.billed)), written.scaled);
        self.texts.written.extend(share.map(|share| (event, share)));
        self.removals.push(Predicted {
            billed: point.billed,
            by_anchors: self.head + expected,
            by_factor: self.head + rest + counted,
        });
    }

    /// From one bill to the next.
    fn go_on(&mut self, one: &BillPoint, two: &BillPoint) {
        let pending = one.message..two.message;
        let factor = self.rates.factor(one.model);
        let added = self.points.added(pending.clone());
        let text = bill(factor, added.text);
        let expected = text + added.images;
        if one.model != two.model {
            // All that is there is counted otherwise from now on.
            self.sizes(pending.clone(), text);
            let thinking = self.rates.thinking;
            let hidden = self.points.thought(pending.clone(), factor, thinking);
            if let Some(answer) = self.answer(pending) {
                self.thinks(answer, hidden);
            }
            let old = tokens(one.billed + expected + hidden);
            return self.recount(tokens(two.billed).0, old.0);
        }
        let grown = two.billed - one.billed;
        if grown >= expected {
            let rest = self.rises(&pending, factor, grown - expected);
            let more = rest.min(text);
            match self.answer(pending.clone()).filter(|_| rest > more) {
                Some(answer) => _ = self.hides(answer, rest - more),
                None => self.head += rest - more,
            }
            return self.sizes(pending, text + more);
        }
        let missing = self.left_out(&pending, two, expected - grown);
        // What is there may be a half less than expected, and not nothing.
        if missing <= expected / 2 {
            return self.sizes(pending, text - missing.min(text));
        }
        self.sizes(pending, text);
        let of_head = missing.min(self.head);
        (self.head, self.owed) = (self.head - of_head, self.owed + of_head);
        if missing > of_head {
            let old = tokens(two.billed + missing - of_head);
            self.recount(tokens(two.billed).0, old.0);
        }
    }

    /// All that is in the prompt is multiplied by `new / old`.
    fn recount(&mut self, new: u64, old: u64) {
        let [ratio, head] = [self.ratio.0, self.head.unsigned_abs()].map(|tokens| {
            let quotient = u128::from(tokens) * u128::from(new) / u128::from(old.max(1));
            u64::try_from(quotient).unwrap_or(u64::MAX)
        });
        // Beyond a thousandth sizes are no sizes.
        self.ratio = Factor(ratio.clamp(1_000, 1_000_000_000));
        self.head = i64::try_from(head).unwrap_or(i64::MAX);
    }

    /// The entry that owns what no text explains.
    fn answer(&self, mut pending: Range<usize>) -> Option<usize> {
        let last = pending.clone().last();
        pending.find(|at| self.session.message(*at).role() == Role::Assistant).or(last)
    }

    /// The bill grew by more than texts explain: what the head lost comes back, documents have a size, and thinking.
    /// Returns what is left.
    fn rises(&mut self, pending: &Range<usize>, factor: Factor, more: i64) -> i64 {
        let back = self.owed.min(more);
        (self.head, self.owed) = (self.head + back, self.owed - back);
        let mut rest = more - back;
        let session = self.session;
        let document =
            pending.clone().find(|at| session.message(*at).content().iter().any(is_document));
        if let Some(document) = document {
            self.hides(document, rest);
            return 0;
        }
        for at in pending.clone() {
            if rest == 0 || !hides_thinking(session.message(at), &session.source().format) {
                continue;
            }
            let thought = if self.points.is_output_partial {
                rest
            } else {
                let thinking = self.rates.thinking;
                self.points.thought(at..at + 1, factor, thinking).min(rest)
            };
            self.thinks(at, thought);
            rest -= thought;
        }
        rest
    }

    /// When a user types, hidden parts of the turns before may leave the prompt, the newest first. Returns what they
    /// do not explain.
    fn left_out(&mut self, pending: &Range<usize>, point: &BillPoint, missing: i64) -> i64 {
        let Some(typed) = self.points.typed(pending.clone()) else {
            return missing;
        };
        let mut rest = self.kept(missing);
        let mut left = Vec::new();
        while rest > Tokens::ZERO
            && let Some((message, hidden)) = self.pool.pop()
        {
            let part = hidden.min(rest);
            rest = rest - part;
            left.push((message, part));
            if hidden > part {
                self.pool.push((message, hidden - part));
            }
        }
        left.sort_unstable();
        if let Some((first, _)) = left.first() {
            let in_front = self.points.billed(*first);
            let left_out = LeftOutParts {
                is_cache_kept: in_front.is_some_and(|billed| point.read > billed),
                parts: left,
            };
            self.texts.left_out.insert(typed, left_out);
        }
        signed(self.ratio.share(rest))
    }
}

fn is_document(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Opaque(opaque) if &*opaque.kind == "document")
}

/// Walks over these anchors: `each` sees the walk behind each of them.
pub(super) fn walk<'a>(
    session: &'a Session,
    counts: &'a CountedTexts,
    points: &'a Points,
    rates: FollowedRates,
    anchors: &[Anchor],
    mut each: impl FnMut(&Walk<'_>, &BillPoint),
) -> Walk<'a> {
    let mut walk = Walk {
        session,
        counts,
        points,
        rates,
        texts: TextSizes::default(),
        pool: Vec::new(),
        head: 0,
        first_head: 0,
        ratio: Factor::ONE,
        owed: 0,
        is_head_known: true,
        warnings: Vec::new(),
        removals: Vec::new(),
    };
    let mut last: Option<BillPoint> = None;
    for Anchor { point, .. } in anchors {
        if let Some(last) = last.filter(|last| last.segment == point.segment) {
            walk.go_on(&last, point);
        } else {
            if let Some(last) = last {
                let [new, old] = [point, &last].map(|point| walk.rates.factor(point.model).0);
                walk.recount(new, old);
            }
            walk.begin(last.map_or(0, |last| last.message), point, last.is_none());
            if last.is_none() {
                walk.first_head = walk.head;
            }
        }
        each(&walk, point);
        last = Some(*point);
    }
    // Only what is of an earlier turn had a chance to leave.
    let turn = last.map_or(0, |last| walk.points.turns[last.message]);
    let earlier: Tokens = walk.texts.hidden.range(..turn).map(|(_, hidden)| *hidden).sum();
    let left =
        walk.texts.left_out.values().flat_map(|left_out| &left_out.parts).map(|(_, part)| *part);
    if walk.rates.thinking == HiddenThinking::Kept && left.sum::<Tokens>().0 * 2 > earlier.0 {
        walk.rates.thinking = HiddenThinking::KeptForTurn;
    }
    walk
}

pub(super) fn fit(session: &Session, counts: &CountedTexts, declared: Option<Tokens>) -> Bill {
    let mut messages = session.messages().iter();
    if !messages.any(|message| message.details.usage.is_some()) {
        return Bill::counted(declared);
    }
    let points = Points::of(session, counts);
    match &points.all[..] {
        [] => return Bill::unanchored(&points, declared, None),
        // The first prompt is its bill, however text is counted.
        [point] if point.call > 0 => {
            let why =
                "one call was billed, and not the first: that does not tell head and text apart";
            return Bill::unanchored(&points, declared, Some(why));
        }
        _ => {}
    }
    let Some((rates, anchors)) = anchors(&points, &points.all) else {
        let why = "the prompts of the recording do not grow as their bill does";
        return Bill::unanchored(&points, declared, Some(why));
    };
    let falls = anchors.iter().filter(|anchor| anchor.step == BillStep::Falls);
    let others = points.all.len() - anchors.len();
    if (falls.count() + others) * 4 > points.all.len() {
        let why = "the bill does not follow the prompts of the recording";
        return Bill::unanchored(&points, declared, Some(why));
    }
    Bill::anchored(session, counts, &points, rates, &anchors)
}

impl Bill {
    /// The bare counter, with what is known of the bills all the same, and why they are no anchors.
    fn unanchored(points: &Points, declared: Option<Tokens>, why: Option<&str>) -> Self {
        let mut bill = Self::counted(declared);
        bill.largest = largest(points.all.iter().copied());
        bill.sizes.warnings.clone_from(&points.warnings);
        bill.sizes.warnings.extend(why.map(str::to_owned));
        bill
    }

    fn anchored(
        session: &Session,
        counts: &CountedTexts,
        points: &Points,
        rates: FollowedRates,
        anchors: &[Anchor],
    ) -> Self {
        let factors: Vec<Factor> = (0..points.models.len()).map(|at| rates.factor(at)).collect();
        let calls = points.by_call.len();
        let mut scales: Vec<Scale> = Vec::with_capacity(calls);
        let whole = walk(session, counts, points, rates, anchors, |walk, point| {
            let known = scales.len()..point.call + 1;
            // The calls in front of the first anchor are sized as it is.
            let before = scales.last().copied();
            scales.extend(known.map(|call| match before {
                Some(before) if call < point.call => {
                    Scale { factor: factors[points.by_call[call]], ..before }
                }
                _ => walk.scale(call),
            }));
        });
        scales.extend((scales.len()..calls).map(|call| whole.scale(call)));
        let mut warnings = [points.warnings.clone(), whole.warnings.clone()].concat();
        if whole.rates.factors.iter().all(Option::is_none) {
            let why = "the prompts grow too little to tell a factor: text is taken as counted";
            warnings.push(why.to_owned());
        }
        let others = points.all.len() - anchors.len();
        if others > 0 {
            warnings.push(format!("bills that are those of other requests: {others}"));
        }
        let names = points.models.iter().map(ToString::to_string);
        let head = whole.is_head_known.then(|| tokens(whole.first_head));
        let bills = anchors.iter().map(|anchor| anchor.point);
        let mut bill = Self {
            scales,
            billed: bills.clone().map(|point| (point.call, tokens(point.billed))).collect(),
            largest: largest(bills),
            sizes: SessionSizes {
                sizes: Sizes::Billed,
                head,
                factors: names.zip(factors).collect(),
                thinking: (points.added(0..session.messages().len()).written > 0
                    && !points.is_output_partial)
                    .then_some(whole.rates.thinking),
                fit: compare(points, anchors, held_out::of(&whole, anchors)),
                drops: drops(anchors),
                warnings,
            },
            texts: whole.texts,
        };
        bill.settle(points, anchors);
        bill
    }

    /// The prompts of the first history are their bills: what was rounded is in the head.
    fn settle(&mut self, points: &Points, anchors: &[Anchor]) {
        let (mut at, mut size) = (0, points.fixed);
        for Anchor { point, .. } in anchors.iter().take_while(|anchor| anchor.point.segment == 0) {
            for message in at..point.message {
                size += self.size(message, points.sizes[message].get());
                let left_out = self.left_out(message);
                for (_, left) in left_out.iter().flat_map(|left_out| &left_out.parts) {
                    size = size - Size::hidden(*left);
                }
            }
            at = point.message;
            self.scales[point.call] = self.as_sent(point.call, size);
        }
    }
}

/// The bills of the first history, and how well they can be predicted.
fn compare(points: &Points, anchors: &[Anchor], held_out: HeldOut) -> Option<Fit> {
    let first = anchors.iter().take_while(|anchor| anchor.point.segment == 0);
    let bills: Vec<BillPoint> = first.map(|anchor| anchor.point).collect();
    let mut sizes: Vec<Tokens> = bills.iter().map(|point| tokens(point.billed)).collect();
    let (first, last) = (*sizes.first()?, *sizes.last()?);
    let billed: Tokens = sizes.iter().copied().sum();
    let counted = bills.iter().map(|point| {
        let added = points.added(0..point.message);
        points.fixed.tokens + tokens(added.text + added.images)
    });
    let counted = Factor::of(counted.sum(), billed)?;
    sizes.sort_unstable();
    Some(Fit {
        calls: sizes.len(),
        first,
        median: median(&sizes, |one, two| Tokens(u64::midpoint(one.0, two.0)))?,
        last,
        counted,
        held_out,
    })
}
