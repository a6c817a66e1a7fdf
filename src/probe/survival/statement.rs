//! Rules the user set, found again by the words they share with a sentence.

use std::collections::HashMap;

use super::Match;
use super::rule_parts::RuleParts;
use super::words::{self, Cue, CueReader, Cues, Position};
use crate::units::whole;

/// At least this share of a rule's content words makes a paraphrase.
///
/// COMPINT's 50 human-labelled summaries: between 0.30 and 0.33 the share agrees best with the
/// human, κ 0.92. The threshold was seen on the same sample.
pub const PARAPHRASE: f64 = 0.33;

/// The least share of a rule's content words with which a text states the rule.
///
/// Texts of the session itself are held to it: only a compaction paraphrases, and of the thousands
/// of sentences of a long session many share a third of a rule's words by chance.
pub const STATED: f64 = 0.8;

/// A sentence that says the same is at most this many times as long,
const REACH_FACTOR: usize = 2;
/// or has at most this many words.
const REACH_WORDS: usize = 24;

/// The number of words after a negation that it governs in a text that contradicts a rule.
const GOVERNED_IN_TEXT: usize = 3;

/// The share of the content words of `statement` that occur anywhere in `text`.
///
/// `|words(statement) ∩ words(text)| / |words(statement)|` over distinct lower-case words without
/// stop words: COMPINT's measure, AUC 0.984 against the human. It is only meaningful where `text`
/// is a summary or an answer; a long text holds the words of any rule somewhere.
pub fn content_word_recall(statement: &str, text: &str) -> f64 {
    let rules = Rules::new([(statement, "")]);
    let mut found = 0_u64;
    words::each_word(text, |word, _| {
        for &(_, bit) in rules.of(word) {
            found |= 1 << bit;
        }
    });
    match rules.known.first() {
        Some(rule) if rule.words > 0 => f64::from(found.count_ones()) / f64::from(rule.words),
        _ => 0.0,
    }
}

/// Whether `text`, a summary or an answer, turns the meaning of `statement` round.
pub fn is_flipped(statement: &str, text: &str) -> bool {
    let rules = Rules::new([(statement, "")]);
    let Some(rule) = rules.known.first() else {
        return false;
    };
    let events = rules.events(text);
    rule.is_flipped(&events.of[0], &events.cues)
}

/// The rules of a session, searched together.
#[derive(Debug)]
pub(super) struct Rules {
    known: Vec<Rule>,
    /// Each content word, with the rules it belongs to and its bit there.
    by_word: HashMap<String, Vec<(usize, u32)>>,
    /// For each first byte, which lengths (up to 31) occur: most words are passed over by this.
    lengths: [u32; 256],
}

#[derive(Debug)]
struct Rule {
    /// Distinct content words, at most 64.
    words: u32,
    /// How many of them make a paraphrase, and the rule itself.
    paraphrase: u32,
    stated: u32,
    /// The content words of the topic, and how many of them must be there.
    topic: u64,
    topic_needed: u32,
    /// The words that the rule forbids, and those of what makes an exception.
    governed: u64,
    exceptions: u64,
    /// The words of a duty, without the time at which it holds; of one to leave something as it is,
    /// those that say so.
    duty: u64,
    negated: bool,
    /// Width in words of the window that is looked at.
    reach: usize,
}

/// A content word of a rule in a text.
#[derive(Debug, Clone, Copy)]
struct Event {
    at: Position,
    bit: u32,
}

struct Events {
    of: Vec<Vec<Event>>,
    cues: Vec<Cue>,
}

impl Rules {
    /// Rules and their topics.
    pub(super) fn new<'a>(given: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut rules = Self {
            known: Vec::new(),
            by_word: HashMap::new(),
            lengths: [0; 256],
        };
        words::cue_words().for_each(|word| rules.note(word));
        for (statement, topic) in given {
            let index = rules.known.len();
            let mut content = words::content_words(statement);
            content.truncate(64);
            let topic_words = words::content_words(topic);
            let mut topic = 0_u64;
            for (bit, word) in (0_u32..).zip(&content) {
                if topic_words.contains(word) {
                    topic |= 1 << bit;
                }
                rules.add(word, index, bit);
            }
            let parts = RuleParts::new(statement, &content);
            let words = u32::try_from(content.len()).unwrap_or(64);
            rules.known.push(Rule {
                words,
                paraphrase: share(words, PARAPHRASE).max(words.min(2)),
                stated: share(words, STATED).max(words.min(2)),
                topic,
                topic_needed: topic.count_ones().div_ceil(2),
                governed: parts.governed,
                exceptions: parts.exceptions,
                duty: parts.duty,
                negated: parts.negated,
                reach: (REACH_FACTOR * parts.length).max(REACH_WORDS),
            });
        }
        rules
    }

    fn add(&mut self, word: &str, rule: usize, bit: u32) {
        self.by_word
            .entry(word.to_owned())
            .or_default()
            .push((rule, bit));
        self.note(word);
    }

    fn note(&mut self, word: &str) {
        self.lengths[usize::from(word.as_bytes()[0])] |= 1 << word.len().min(31);
    }

    /// Whether the word can be one of a rule or a negation.
    fn may_matter(&self, word: &str) -> bool {
        self.lengths[usize::from(word.as_bytes()[0])] & (1 << word.len().min(31)) != 0
    }

    fn of(&self, word: &str) -> &[(usize, u32)] {
        self.by_word.get(word).map_or(&[], Vec::as_slice)
    }

    fn events(&self, text: &str) -> Events {
        let mut events = Events {
            of: vec![Vec::new(); self.known.len()],
            cues: Vec::new(),
        };
        let mut cues = CueReader::default();
        words::each_word(text, |word, at| {
            if !cues.is_open() && !self.may_matter(word) {
                return;
            }
            for &(rule, bit) in self.of(word) {
                events.of[rule].push(Event { at, bit });
            }
            cues.read(word, at);
        });
        events.cues = cues.found;
        events
    }

    /// The best match of each rule in `text`.
    ///
    /// A window of the rule's reach slides over the text; time is linear in the text.
    pub(super) fn find(&self, text: &str) -> Vec<Option<Match>> {
        if self.known.is_empty() {
            return Vec::new();
        }
        let events = self.events(text);
        self.known
            .iter()
            .zip(&events.of)
            .map(|(rule, of)| rule.best(of, &events.cues))
            .collect()
    }
}

fn share(words: u32, share: f64) -> u32 {
    u32::try_from(whole((f64::from(words) * share).ceil())).unwrap_or(words)
}

impl Rule {
    fn best(&self, events: &[Event], cues: &[Cue]) -> Option<Match> {
        let mut best = None;
        let mut counts = [0_u32; 64];
        let mut present = 0_u64;
        let mut first = 0;
        for (last, event) in events.iter().enumerate() {
            counts[event.bit as usize] += 1;
            present |= 1 << event.bit;
            while event.at.word - events[first].at.word >= self.reach {
                let gone = events[first].bit;
                counts[gone as usize] -= 1;
                if counts[gone as usize] == 0 {
                    present &= !(1 << gone);
                }
                first += 1;
            }
            let found = present.count_ones();
            if found < self.paraphrase || (present & self.topic).count_ones() < self.topic_needed {
                continue;
            }
            if found < self.stated && best == Some(Match::Paraphrased) {
                continue;
            }
            let this = if self.is_flipped(&events[first..=last], cues) {
                Match::Distorted
            } else if found >= self.stated {
                return Some(Match::Stated);
            } else {
                Match::Paraphrased
            };
            best = best.max(Some(this));
        }
        best
    }

    /// Whether the words in `events` say the opposite.
    ///
    /// Either the text holds a word that the rule forbids, and nothing in its sentences or between
    /// them forbids it or names the exception; or what the rule asks for is negated. A sentence counts
    /// as far as the reach of a window to either side.
    fn is_flipped(&self, events: &[Event], cues: &[Cue]) -> bool {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return false;
        };
        let from = cues.partition_point(|cue| {
            cue.at.sentence < first.at.sentence || cue.at.word + self.reach < first.at.word
        });
        let to = cues.partition_point(|cue| {
            cue.at.sentence <= last.at.sentence && cue.at.word <= last.at.word + self.reach
        });
        let near = &cues[from..to];
        let mut near = (0..near.len()).map(|at| (near, at));
        let own = if self.negated {
            self.governed
        } else {
            self.duty
        };
        let is_own = |cue: &Cue| {
            let mut events = events.iter();
            events.any(|event| event.at.word == cue.at.word && event.is_of(own))
        };
        let is_undone = |cues, at| is_undone(cues, at, events, is_own);
        if !self.negated {
            return near.any(|(near, at)| {
                let is_second = near[at].kind == Cues::Without && !near[at].is_first;
                near[at].kind != Cues::Sparing
                    && !is_second
                    && !is_undone(near, at)
                    && governed_by(&near[at], events).is_some_and(|event| event.is_of(self.duty))
            });
        }
        let forbids = near.any(|(near, at)| !is_own(&near[at]) && !is_undone(near, at));
        if forbids {
            return self.is_swapped(events, &cues[from..to]);
        }
        events.iter().any(|event| event.is_of(self.governed))
            && !events.iter().any(|event| event.is_of(self.exceptions))
    }

    /// Whether the text forbids what the rule asks for, and speaks of what the rule forbids with no cue:
    /// "use npm, never pnpm" of "use pnpm, never npm".
    fn is_swapped(&self, events: &[Event], cues: &[Cue]) -> bool {
        let asked = !(self.governed | self.exceptions);
        cues.iter().any(|cue| {
            let is_asked = governed_by(cue, events).is_some_and(|event| event.is_of(asked));
            let mut forbidden = events.iter().filter(|event| event.is_of(self.governed));
            let has_no_cue = |event: &Event| {
                let mut others = cues.iter();
                event.at.word < cue.at.word
                    && others.all(|other| {
                        other.at.clause != event.at.clause || other.at.word > event.at.word
                    })
            };
            is_asked && forbidden.clone().any(has_no_cue) && forbidden.all(has_no_cue)
        })
    }
}

impl Event {
    fn is_of(&self, words: u64) -> bool {
        words & (1 << self.bit) != 0
    }
}

/// The word of a rule that the cue negates.
fn governed_by<'e>(cue: &Cue, events: &'e [Event]) -> Option<&'e Event> {
    let behind = events.partition_point(|event| event.at.word <= cue.at.word);
    let event = events.get(behind)?;
    let is_near = event.at.word - cue.at.word <= GOVERNED_IN_TEXT && event.at.word <= cue.last;
    (event.at.clause == cue.at.clause && is_near).then_some(event)
}

/// Whether a negation and what it negates are this cue and its neighbour: "no ban on", "not
/// off-limits". A rule's own word is no such neighbour: "never skip".
fn is_undone(cues: &[Cue], at: usize, events: &[Event], is_own: impl Fn(&Cue) -> bool) -> bool {
    let undoes = |first: usize| {
        let (Some(negation), Some(ban)) = (cues.get(first), cues.get(first + 1)) else {
            return false;
        };
        let between = |event: &Event| (negation.at.word..ban.at.word).contains(&event.at.word);
        negation.kind == Cues::Negation
            && matches!(ban.kind, Cues::Ban | Cues::Sparing)
            && negation.at.clause == ban.at.clause
            && ban.at.word - negation.at.word <= GOVERNED_IN_TEXT
            && !events.iter().any(between)
            && !is_own(ban)
    };
    undoes(at) || at.checked_sub(1).is_some_and(undoes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(statement: &str, topic: &str, text: &str, expected: Option<Match>) {
        let found = Rules::new([(statement, topic)]).find(text);
        assert_eq!(found, [expected], "{statement} | {text}");
    }

    #[test]
    fn a_rule_is_found_where_one_sentence_shares_its_words() {
        use Match::{Distorted, Paraphrased, Stated};
        let rule = "Never touch the migrations folder without asking me first.";
        let topic = "migrations folder";
        for (text, expected) in [
            (rule, Some(Stated)),
            (
                r#"{"text":"ok\nNever touch the migrations folder without asking me first.\nbye"}"#,
                Some(Stated),
            ),
            ("- migrations folder: do not touch", Some(Paraphrased)),
            (
                "- the agent may touch the migrations folder",
                Some(Distorted),
            ),
            ("- the asking price comes first, touch nothing", None),
            ("", None),
        ] {
            check(rule, topic, text, expected);
        }
        let rule = "Never touch the migrations folder.";
        for (text, expected) in [
            ("Leave the migrations folder alone.", Paraphrased),
            ("The migrations folder is off-limits.", Paraphrased),
            ("Migrations folder: hands off!", Paraphrased),
            ("User forbids touching the migrations folder.", Paraphrased),
            ("Edits to the migrations folder are disallowed", Paraphrased),
            (
                "The migrations folder is excluded from changes",
                Paraphrased,
            ),
            ("There is no ban on the migrations folder.", Distorted),
            ("The migrations folder is no longer off-limits.", Distorted),
            ("The migrations folder was renamed.", Distorted),
        ] {
            check(rule, "migrations folder", text, Some(expected));
        }
        let rule = "Leave the migrations folder alone.";
        for (text, expected) in [
            ("Never touch the migrations folder.", Paraphrased),
            ("The migrations folder must be left as is.", Paraphrased),
            ("Do not leave the migrations folder alone.", Distorted),
        ] {
            check(rule, "migrations folder", text, Some(expected));
        }
        let rule = "Run the linter over changed files before every commit.";
        for (text, expected) in [
            (
                "Never commit without running the linter over changed files",
                Stated,
            ),
            (
                "Do not commit before the linter has run over changed files",
                Stated,
            ),
            (
                "Don't forget to run the linter before each commit",
                Paraphrased,
            ),
            ("No commit without the linter run on changed files", Stated),
            (
                "Run the linter over all changed files, not just staged ones",
                Stated,
            ),
            ("Commit without the linter over changed files", Distorted),
            (
                "Do not run the linter over changed files before a commit",
                Distorted,
            ),
            (
                "There is no need to run the linter over changed files",
                Distorted,
            ),
        ] {
            check(rule, "linter", text, Some(expected));
        }
        for text in [
            "Avoid running the linter before a commit.",
            "Do not execute the linter before a commit.",
        ] {
            check(rule, "linter", text, Some(Distorted));
        }
        let text = "Do not push until the linter has run before a commit.";
        check(rule, "linter", text, Some(Paraphrased));
        let rule = "Never just push to main.";
        check(rule, "push main", "Just push to main.", Some(Distorted));
        let rule = "Never commit without running the linter.";
        check(
            rule,
            "linter",
            "Run the linter before a commit.",
            Some(Paraphrased),
        );
        let rule = "Never skip the slow tests.";
        check(rule, "tests", "Skip the slow tests.", Some(Distorted));
        check(rule, "tests", "Do not skip slow tests.", Some(Stated));
        let rule = "Skip the slow tests in CI.";
        let text = "CI leaves the slow tests out.";
        check(rule, "tests", text, Some(Paraphrased));
        check(rule, "tests", "Never skip slow tests.", Some(Distorted));
        let rule = "Run the linter over unchanged files.";
        check(
            rule,
            "linter",
            "Run the linter over all files",
            Some(Stated),
        );
        let rule = "Always use pnpm, never npm.";
        for (text, expected) in [
            ("Use pnpm instead of npm.", Stated),
            ("Never npm, always pnpm.", Stated),
            ("Package manager: pnpm (npm is forbidden)", Stated),
            ("Use npm, never pnpm.", Distorted),
            ("Use npm rather than pnpm.", Distorted),
        ] {
            check(rule, "pnpm npm", text, Some(expected));
        }
        let rule = "Run the linter over changed files.";
        for (text, expected) in [
            ("Please run the linter over changed files.", Some(Stated)),
            ("Do not run the linter over changed files.", Some(Distorted)),
            (
                "That is not all: run the linter over changed files.",
                Some(Stated),
            ),
        ] {
            check(rule, "linter", text, expected);
        }
    }

    #[test]
    fn a_rule_in_chinese_japanese_or_korean_is_found() {
        use Match::{Distorted, Paraphrased, Stated};
        let rule = "未经我同意，绝不能修改迁移文件夹。";
        for (text, expected) in [
            (
                "好的。未经我同意，绝不能修改迁移文件夹。继续吧！",
                Some(Stated),
            ),
            ("- 迁移文件夹：不能修改", Some(Paraphrased)),
            ("- 助手可以修改迁移文件夹", Some(Distorted)),
            ("- 修改了配置，文件已经保存", None),
        ] {
            check(rule, "迁移文件夹", text, expected);
        }
        let rule = "移行フォルダーには確認なしで触らないでください。";
        check(
            rule,
            "移行フォルダー",
            &format!("次へ。{rule}以上。"),
            Some(Stated),
        );
        check(rule, "移行フォルダー", "フォルダーを作りました。", None);
        let rule = "마이그레이션 폴더는 제 허락 없이 건드리지 마세요.";
        check(
            rule,
            "마이그레이션 폴더",
            &format!("그리고 {rule} 계속"),
            Some(Stated),
        );
        check(rule, "마이그레이션 폴더", "폴더를 만들었습니다.", None);
    }

    #[test]
    fn words_scattered_over_a_large_context_are_no_rule() {
        let rule = "Never touch the migrations folder without asking me first.";
        let filler = "the build went on and printed one more line of output\n".repeat(40);
        let words = [
            "touch",
            "migrations",
            "folder",
            "asking",
            "first",
            "without",
        ];
        let scattered: String = words
            .map(|word| format!("{filler}a line with {word} in it\n"))
            .concat();
        assert!(content_word_recall(rule, &scattered) > 0.99);
        check(rule, "migrations folder", &scattered, None);
        let in_place = format!("{scattered}{rule}\n{filler}");
        check(rule, "migrations folder", &in_place, Some(Match::Stated));
    }

    #[test]
    fn a_summary_is_compared_as_a_whole() {
        assert!(content_word_recall("Draft emails, send nothing", "send drafts of emails") > 0.4);
        assert!(is_flipped("Never delete the logs", "The logs: delete them"));
        assert!(!is_flipped(
            "Never delete the logs",
            "Do not delete any logs"
        ));
        assert!(!is_flipped("use metric, not imperial", "uses metric units"));
        let recall = content_word_recall("", "anything");
        assert!(recall.abs() < f64::EPSILON);
    }
}
