//! Reads what Cline and Roo showed the user: the bill of each call, and when the history was
//! condensed or cut.

use super::hidden::Marks;
use crate::prelude::*;

/// The records of one task that the user saw.
#[derive(Debug, Default)]
pub(super) struct TaskRecords {
    calls: Vec<(Timestamp, Counters)>,
    /// The record of each summary or marker, by its name.
    pub(super) compactions: BTreeMap<Arc<str>, ShownCompactionTime>,
    /// Which messages were left out from then on: after how many, or when; and the first and last
    /// of them.
    pub(super) left_out: Vec<OmittedRange>,
    /// Records that could not be read.
    unread: u64,
}

/// A part of the list that is left out of the context.
#[derive(Debug, Clone, Copy)]
pub(super) struct OmittedRange {
    pub(super) time: Timestamp,
    /// The place of the last message before it took effect.
    pub(super) index: Option<usize>,
    pub(super) first: usize,
    pub(super) last: usize,
}

/// When a compaction was shown, and the size of the context before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct ShownCompactionTime {
    pub(super) time: Timestamp,
    pub(super) pre_tokens: Option<Tokens>,
}

/// The bills of messages, by their places.
pub(super) type Usages = BTreeMap<usize, Usage>;

/// The bill of a call, as the user sees it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Counters {
    tokens_in: u64,
    tokens_out: u64,
    #[serde(default)]
    cache_reads: u64,
    #[serde(default)]
    cache_writes: u64,
}

impl Counters {
    fn cached(&self) -> u64 {
        self.cache_reads.saturating_add(self.cache_writes)
    }

    fn usage(&self, includes_cached: bool) -> Usage {
        let cached = if includes_cached { self.cached() } else { 0 };
        billed(self.tokens_in - cached, self.cache_writes, self.cache_reads, self.tokens_out)
    }
}

impl TaskRecords {
    /// Reads the file at `path`, a list of records.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = SourceFile::open(path, MAX_FILE)?.text();
        let mut shown = Self::default();
        for value in &text.values(&mut Source::default())? {
            for raw in value.parse::<Vec<&RawValue>>()? {
                shown.record(raw);
            }
        }
        Ok(shown)
    }

    fn record(&mut self, raw: &RawValue) {
        let Some(mut record) = Object::read(raw) else {
            self.unread += 1;
            return;
        };
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a float that is too large becomes the largest time"
        )]
        let time = Timestamp(record.take_as::<f64>("ts").unwrap_or_default() as i64);
        if let Some((first, last)) = record.take_as("conversationHistoryDeletedRange")
            && first <= last
            && !matches!(self.left_out.last(), Some(it) if (it.first, it.last) == (first, last))
        {
            self.left_out.push(OmittedRange {
                time,
                index: record.take_as("conversationHistoryIndex"),
                first,
                last,
            });
        }
        let mut compaction = match record.take_text("say").as_deref() {
            Some("api_req_started") => {
                // A call that was stopped says nothing of its size.
                let text = record.take_text("text").unwrap_or_default();
                let counters = serde_json::from_str::<Counters>(&text).ok();
                return self.calls.extend(counters.map(|counters| (time, counters)));
            }
            Some("condense_context") => record.inner("contextCondense"),
            Some("sliding_window_truncation") => record.inner("contextTruncation"),
            _ => return,
        };
        let pre_tokens = compaction.take_as("prevContextTokens").map(Tokens);
        let shown = ShownCompactionTime { time, pre_tokens };
        let name = compaction.first_text(&["name", "condenseId", "truncationId"]);
        self.compactions.extend(name.map(|name| (name, shown)));
    }

    /// The bills of the model's messages, by their place in the list.
    ///
    /// A call is shown when it begins, and its message is written when it is done. Messages without
    /// a time are matched by their order, if there is one for each call.
    pub(super) fn usages(&self, marks: &[Marks], assembler: &mut Assembler) -> Usages {
        assembler.warn_all(0..self.unread, "a record of what the user was shown cannot be read");
        let said = marks.iter().enumerate().filter(|(_, mark): &(usize, &Marks)| {
            mark.role.as_deref() == Some("assistant") && mark.is_summary != Some(true)
        });
        let said: Vec<(usize, Option<f64>)> = said.map(|(at, mark)| (at, mark.ts)).collect();
        // Some providers' input includes the cached tokens, and then always does.
        let mut each = self.calls.iter();
        let includes_cached = each.all(|(_, counters)| counters.tokens_in >= counters.cached());
        if said.len() == self.calls.len() {
            let bills = self.calls.iter().map(|(_, counters)| counters.usage(includes_cached));
            return said.iter().map(|(at, _)| *at).zip(bills).collect();
        }
        let mut usages = BTreeMap::new();
        let mut open = said.into_iter().peekable();
        for (number, (began, counters)) in self.calls.iter().enumerate() {
            let next = self.calls.get(number + 1).map(|(time, _)| time.0 as f64);
            while open.next_if(|(_, ts)| ts.is_some_and(|ts| ts < began.0 as f64)).is_some() {}
            match open.next_if(|(_, ts)| ts.is_some_and(|ts| next.is_none_or(|next| ts < next))) {
                Some((at, _)) => {
                    usages.insert(at, counters.usage(includes_cached));
                }
                None => assembler.warn("a call that the user was shown has no message"),
            }
        }
        usages
    }
}
