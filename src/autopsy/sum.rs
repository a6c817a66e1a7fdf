//! Sums over autopsies: a session with its sub-agents, or all sessions of a folder.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{Autopsy, BreakCause, Breaks, Compaction, Kind, Thrown};
use crate::record::Fate;
use crate::units::{Tokens, Usd, many};

/// What many compactions cost and lost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Totals {
    /// Conversations, those of sub-agents too.
    pub conversations: usize,
    /// API calls.
    pub calls: usize,
    /// The cost of all calls whose prices are known.
    pub usd: Usd,
    /// Conversations of which a price is not known.
    pub unpriced: usize,
    /// Compactions that a call followed.
    pub compactions: usize,
    /// Of these, those of which the recording does not say what they left.
    pub opaque: usize,
    /// Their cost, where it is known.
    pub compactions_usd: Usd,
    /// Their tokens: those of the requests for summaries, and those that were sent anew.
    pub compactions_tokens: Tokens,
    /// Files that were read again.
    pub files_again: usize,
    /// Calls that were made again with the same result.
    pub calls_again: usize,
    /// The cost of what both brought, where it is known.
    pub again_usd: Usd,
    /// Its tokens.
    pub again_tokens: Tokens,
    /// Rules that were lost.
    pub rules_lost: usize,
    /// Rules that were changed.
    pub rules_changed: usize,
    /// Of both, those that a later call broke.
    pub rules_broken: usize,
    /// By kind, what became of all that stood in the prompts before.
    pub thrown: BTreeMap<Kind, Thrown>,
    /// What broke the prompt cache.
    pub breaks: BTreeMap<BreakCause, Breaks>,
}

impl Totals {
    /// The sum over these conversations.
    pub fn of<'a>(autopsies: impl IntoIterator<Item = &'a Autopsy>) -> Self {
        let mut sum = Self::default();
        for autopsy in autopsies {
            sum.add(autopsy);
        }
        sum
    }

    /// The sum over compactions alone.
    pub(super) fn of_compactions(compactions: &[Compaction]) -> Self {
        let mut sum = Self::default();
        sum.add_compactions(compactions);
        sum
    }

    fn add_compactions(&mut self, compactions: &[Compaction]) {
        for compaction in compactions {
            self.compactions += 1;
            self.opaque += usize::from(compaction.is_opaque);
            self.compactions_usd += compaction.usd.unwrap_or_default();
            let request = compaction.request.unwrap_or_default();
            self.compactions_tokens += request.total() + compaction.rewritten;
            let [files, calls] = compaction.again();
            self.files_again += files;
            self.calls_again += calls;
            for again in &compaction.again {
                self.again_usd += again.usd.unwrap_or_default();
                self.again_tokens += again.tokens;
            }
            for (kind, row) in &compaction.thrown {
                self.thrown.entry(*kind).or_default().add(row);
            }
        }
    }

    fn add(&mut self, autopsy: &Autopsy) {
        self.conversations += 1;
        self.calls += autopsy.calls;
        self.usd += autopsy.usd.unwrap_or_default();
        self.unpriced += usize::from(autopsy.usd.is_none());
        self.add_compactions(&autopsy.compactions);
        for rule in &autopsy.rules {
            let gone = rule.gone_at().map(|(_, fate)| fate);
            self.rules_changed += usize::from(gone == Some(Fate::Changed));
            self.rules_lost += usize::from(gone.is_some_and(|fate| fate != Fate::Changed));
            self.rules_broken += usize::from(rule.broken_at.is_some());
        }
        for (cause, more) in &autopsy.breaks {
            let known = self.breaks.entry(*cause).or_default();
            known.calls += more.calls;
            known.tokens += more.tokens;
            known.usd = known
                .usd
                .into_iter()
                .chain(more.usd)
                .reduce(|one, other| one + other);
            known.largest = known.largest.max(more.largest);
        }
    }

    /// What was lost, in a sentence: `Your agent compacted 3 times for $3.30; it read 14 files again for $2.10.`
    pub fn sentence(&self) -> String {
        let cost = |usd: Usd, tokens: Tokens| match usd {
            Usd(0) => format!("{} tokens", tokens.in_short()),
            usd => usd.to_string(),
        };
        let times = match self.compactions {
            0 => return "Your agent never compacted: nothing was thrown away.".to_owned(),
            1 => "once".to_owned(),
            2 => "twice".to_owned(),
            more => format!("{more} times"),
        };
        let spent = cost(self.compactions_usd, self.compactions_tokens);
        let mut lost = Vec::new();
        let again = [
            (self.files_again, "file", "files"),
            (self.calls_again, "call", "calls"),
        ];
        let again = again.iter().filter(|(count, _, _)| *count > 0);
        let again: Vec<String> = again
            .map(|(count, one, more)| many(*count, one, more))
            .collect();
        if !again.is_empty() {
            let verb = if self.files_again > 0 { "read" } else { "made" };
            let spent = cost(self.again_usd, self.again_tokens);
            lost.push(format!("{verb} {} again for {spent}", again.join(" and ")));
        }
        let told: usize = self.thrown.values().map(|row| row.told).sum();
        if told > 0 {
            lost.push(format!("was told {} again", many(told, "thing", "things")));
        }
        let changed = self.rules_changed;
        let rules = [
            (self.rules_lost, "lost"),
            (changed, "changed"),
            (self.rules_broken, "broke"),
        ];
        let rules = rules.iter().filter(|(count, _)| *count > 0);
        lost.extend(rules.map(|(count, verb)| format!("{verb} {}", many(*count, "rule", "rules"))));
        let last = lost.pop();
        let (joined, and) = (lost.join(", "), if lost.is_empty() { "" } else { " and " });
        let lost = last.map_or_else(
            || "nothing shows that it needed what was gone".to_owned(),
            |last| format!("it {joined}{and}{last}"),
        );
        format!("Your agent compacted {times} for {spent}; {lost}.")
    }
}

impl Thrown {
    fn add(&mut self, more: &Self) {
        self.before += more.before;
        self.stayed += more.stayed;
        self.needed += more.needed;
        self.fetched += more.fetched;
        self.told += more.told;
        self.without += more.without;
        self.unknown += more.unknown;
        self.broken += more.broken;
    }
}

impl Autopsy {
    /// How bad it is: dollars that compactions and what was fetched again cost, then what was needed and not there, then
    /// tokens.
    fn harm(&self) -> (Usd, usize, Tokens) {
        let sum = Totals::of(self.all());
        let missed = sum
            .thrown
            .values()
            .map(|row| row.told + row.without + row.broken);
        (
            sum.compactions_usd + sum.again_usd,
            missed.sum(),
            sum.compactions_tokens + sum.again_tokens,
        )
    }
}

/// Puts the conversations of sub-agents under their main sessions, and the worst session first. A sub-agent whose main
/// session is not there stays where it is.
pub fn with_sub_agents(mut all: Vec<Autopsy>) -> Vec<Autopsy> {
    let of_sub_agents = all.extract_if(.., |autopsy| autopsy.main.is_some());
    let of_sub_agents: Vec<Autopsy> = of_sub_agents.collect();
    for own in of_sub_agents {
        match all
            .iter_mut()
            .find(|main| own.main.as_deref() == Some(&*main.session))
        {
            Some(main) => main.sub_agents.push(own),
            None => all.push(own),
        }
    }
    all.sort_by_cached_key(|autopsy| Reverse(autopsy.harm()));
    all
}
