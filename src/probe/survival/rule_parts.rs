//! The words of a rule that it forbids, asks for, or names as exceptions.

use super::words::{self, Cue, CueReader, Cues, Position};
use crate::probe::holds;

/// The number of words after a negation that it governs in a rule.
const GOVERNED_IN_RULE: usize = 8;

/// In a duty, words before the time at which it holds: "run the linter before every commit".
const TIMES: &str = "\
    after before during each every for if on once per unless until upon when whenever while";

/// Before a word that leaves something as it is: "it must stay untouched until Friday".
const STAYING: &str = "are be is please remain remains stay stays";

/// In a rule that leaves something as it is, the words that say so beside its cue.
const LEAVING: &str = "hands keep leave off";

/// In a rule that forbids, words before what makes an exception.
const EXCEPTIONS: &str = "before except till unless until without";

/// The content words of a rule by their part in it, each a bit.
#[derive(Debug, Default)]
pub(super) struct RuleParts {
    /// The number of words.
    pub(super) length: usize,
    pub(super) governed: u64,
    pub(super) exceptions: u64,
    pub(super) duty: u64,
    pub(super) negated: bool,
}

impl RuleParts {
    pub(super) fn new(statement: &str, content: &[String]) -> Self {
        let mut cues = CueReader::default();
        let mut all: Vec<(String, Position)> = Vec::new();
        words::each_word(statement, |word, at| {
            cues.read(word, at);
            all.push((word.to_owned(), at));
        });
        // A rule that leaves something as it is can be said without a cue, and is no ban; and
        // "unchanged files" are no rule to change none.
        let spares = |cue: &Cue| {
            let word = cue.at.word;
            let ends = all
                .get(word + 1)
                .is_none_or(|(_, next)| next.clause != cue.at.clause);
            let before = word.checked_sub(1).map(|before| &all[before]);
            let begins = before.is_none_or(|(before, at)| {
                at.sentence != cue.at.sentence || holds(STAYING, before)
            });
            ends || begins
        };
        let (mut sparing, cues): (Vec<Cue>, Vec<Cue>) = cues
            .found
            .into_iter()
            .partition(|cue| cue.kind == Cues::Sparing);
        sparing.retain(spares);
        let mut parts = Self::default();
        // The sentence that names an exception, and the clause that names a time.
        let (mut exception, mut time) = (None, None);
        for (word, at) in &all {
            parts.length += 1;
            let of_sentence = || cues.iter().filter(|cue| cue.at.sentence == at.sentence);
            let mut before = of_sentence().filter(|cue| cue.at.word < at.word);
            if holds(EXCEPTIONS, word) && before.clone().next().is_some() {
                exception = Some(at.sentence);
            }
            if holds(TIMES, word) {
                time = Some(at.clause);
            }
            let mut forbidden = before.any(|cue| at.word - cue.at.word <= GOVERNED_IN_RULE);
            if let Some(cue) = of_sentence().find(|cue| cue.at.word == at.word) {
                parts.negated = true;
                forbidden &= cue.kind == Cues::Ban;
            }
            let Some(bit) = content.iter().position(|known| known == word) else {
                continue;
            };
            if forbidden {
                parts.governed |= 1 << bit;
            }
            if exception == Some(at.sentence) {
                parts.exceptions |= 1 << bit;
            }
            let mut spared = sparing.iter().filter(|cue| cue.at.clause == at.clause);
            let is_spared = spared.clone().next().is_some()
                && !spared.any(|cue| cue.at.word == at.word)
                && !holds(LEAVING, word);
            if time != Some(at.clause) && !is_spared {
                parts.duty |= 1 << bit;
            }
        }
        if parts.duty == 0 {
            parts.duty = u64::MAX;
        }
        parts
    }
}
