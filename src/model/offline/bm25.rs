//! `bm25-extract`: finds the line that fits a question, and reads the answer off it.
//!
//! Lines are ranked by BM25 (Robertson and Zaragoza, *The Probabilistic Relevance Framework: BM25
//! and Beyond*, 2009). The answer is the atom of the asked form nearest to the question's words in
//! the best line that has one; where two lines score the same, the newer wins. It abstains where no
//! line holds enough of what the question asks about. It makes the mistakes a reader makes: it
//! takes an older value, or another key's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use foldhash::fast::FixedState;

use self::index::{Index, Posting, each_word, hash};
pub(crate) use self::index::{gain, rarity};
use super::{NOT_IN_CONTEXT, QUESTION, listed};
use crate::model::AnswerFormat;
use crate::patterns::PerText;
use crate::script::{ends_clause, ends_sentence, is_unspaced};
use crate::session::{ContentBlock, Message, ToolClass};

mod forms;
mod index;
mod question;
pub mod search;

/// A line must hold at least this share of the question's words, weighted by how rare they are.
const ENOUGH: f64 = 0.5;

/// The number of best lines that are searched for an atom.
const BEST_LINES: usize = 16;

/// An answer of one sentence is cut off after this many characters.
const SENTENCE_CHARS: usize = 400;

/// The words for the treatments of files.
static VERBS: LazyLock<HashMap<&str, Verb, FixedState>> = LazyLock::new(|| {
    let lists = [
        (Verb::Read, "read_verbs"),
        (Verb::Created, "created_verbs"),
        (Verb::Modified, "modified_verbs"),
        (Verb::Deleted, "deleted_verbs"),
    ];
    let words = |(verb, list)| listed(list).map(move |word| (word, verb));
    lists.into_iter().flat_map(words).collect()
});

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verb {
    Read,
    Created,
    Modified,
    Deleted,
}

fn verb_of(word: &str) -> Option<Verb> {
    VERBS.get(word).copied()
}

/// Answers questions about conversations; each distinct text is split and indexed once.
#[derive(Debug, Default)]
pub struct Reader {
    known: PerText<Index>,
    /// Tool uses apart: their arguments say more than their text.
    tool_uses: PerText<Index>,
    /// The last messages that were asked about.
    last: Mutex<Indexed>,
}

/// Messages, and their texts with the index of each. Many questions in a row are asked about the same messages.
#[derive(Debug, Default)]
struct Indexed {
    messages: Vec<Arc<Message>>,
    texts: Vec<IndexedText>,
}

/// A text of the conversation with its index.
type IndexedText = (Arc<str>, Arc<Index>);

/// A line of the conversation and how well it fits.
#[derive(Debug, Clone, Copy)]
struct RankedLine {
    text: usize,
    line: usize,
    score: f64,
}

impl Reader {
    /// The answer to the question at the end of the last message, read off everything before it.
    pub fn answer(&self, messages: &[Arc<Message>], format: AnswerFormat) -> String {
        let Some((question, texts)) = self.open(messages) else {
            return NOT_IN_CONTEXT.to_owned();
        };
        let found = match format {
            AnswerFormat::Paths => paths(&question, &texts),
            AnswerFormat::Value | AnswerFormat::Number => {
                let terms = Terms::new(&question, &texts);
                let mut lines = terms.rank().into_iter();
                lines.find_map(|ranked| {
                    let (text, index) = &texts[ranked.text];
                    value_in(&text[index.lines[ranked.line].clone()], &terms.words)
                })
            }
            AnswerFormat::Sentence | AnswerFormat::Choice | AnswerFormat::Fault => {
                best_line(&question, &texts)
            }
            AnswerFormat::YesNo => forms::yes_or_no(&question, &texts),
            // A rule that is found was said, and is taken to hold.
            AnswerFormat::YesOrNo => best_line(&question, &texts).map(|_| "yes".to_owned()),
            AnswerFormat::Sequence => forms::in_order(&question, &texts),
            AnswerFormat::Letter => forms::letter(&question, &texts),
            AnswerFormat::Call => forms::call(&question, &texts),
            AnswerFormat::Quote => forms::last_said(messages),
            AnswerFormat::Items => open_items(&question, &texts),
        };
        found.unwrap_or_else(|| NOT_IN_CONTEXT.to_owned())
    }

    /// The question, and every text before it with its index.
    fn open(&self, messages: &[Arc<Message>]) -> Option<(String, Vec<IndexedText>)> {
        let (last, before) = messages.split_last()?;
        let asked = last.model_text().last()?;
        let question = asked.split("\n\n").next()?;
        let question = question.strip_prefix(QUESTION).unwrap_or(question);
        let mut texts = self.indexed(before);
        let beside: Vec<_> = spoken(last).collect();
        let (_, beside) = beside.split_last()?;
        texts.extend(beside.iter().map(|it| self.index(*it)));
        Some((question.to_owned(), texts))
    }

    /// The texts of messages, each with its index.
    fn indexed(&self, messages: &[Arc<Message>]) -> Vec<IndexedText> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = last.messages.len() == messages.len();
        let mut pairs = last.messages.iter().zip(messages);
        if is_same && pairs.all(|(ours, theirs)| Arc::ptr_eq(ours, theirs)) {
            return last.texts.clone();
        }
        drop(last);
        let all = messages.iter().flat_map(|message| spoken(message));
        let texts: Vec<IndexedText> = all.map(|it| self.index(it)).collect();
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Indexed {
            messages: messages.to_vec(),
            texts: texts.clone(),
        };
        texts
    }

    fn index(&self, (block, text): (&ContentBlock, &Arc<str>)) -> IndexedText {
        let known = match block {
            ContentBlock::ToolUse(_) => &self.tool_uses,
            _ => &self.known,
        };
        let index = known.get_or(text, || Arc::new(Index::new(text, block)));
        (text.clone(), index)
    }
}

/// The blocks of a message that have text, with it.
fn spoken(message: &Message) -> impl Iterator<Item = (&ContentBlock, &Arc<str>)> {
    let blocks = message.content().iter().zip(message.model_text());
    blocks.filter(|(_, text)| !text.is_empty())
}

/// The content words of a question, and where they are said.
#[derive(Debug)]
struct Terms<'a> {
    words: BTreeSet<String>,
    /// Inverse document frequency of each word.
    weights: Vec<f64>,
    average: f64,
    /// By text, then by word.
    hits: Vec<Hit<'a>>,
}

/// The lines of a text that hold a word.
#[derive(Debug)]
struct Hit<'a> {
    text: usize,
    word: usize,
    index: &'a Index,
    lines: &'a [Posting],
}

impl<'a> Terms<'a> {
    fn new(question: &str, texts: &'a [IndexedText]) -> Self {
        let words = question::words(question);
        let hashes: Vec<u64> = words.iter().map(|word| hash(word)).collect();
        let (mut lines, mut length) = (0, 0);
        let mut holding = vec![0; hashes.len()];
        let mut hits = Vec::new();
        for (text, (_, index)) in texts.iter().enumerate() {
            lines += index.lines.len();
            length += index.postings.words;
            for (word, hash) in hashes.iter().enumerate() {
                let lines = index.postings.of(*hash);
                holding[word] += lines.len();
                if !lines.is_empty() {
                    hits.push(Hit {
                        text,
                        word,
                        index,
                        lines,
                    });
                }
            }
        }
        Self {
            words,
            weights: holding.into_iter().map(|of| rarity(lines, of)).collect(),
            average: (length as f64 / lines.max(1) as f64).max(1.0),
            hits,
        }
    }

    /// The best lines that hold enough of the question, best first, newer first among equals.
    fn rank(&self) -> Vec<RankedLine> {
        let all: f64 = self.weights.iter().sum();
        let mut ranked = Vec::new();
        for hits in self.hits.chunk_by(|a, b| a.text == b.text) {
            // By line: weight of the words it holds, and its score.
            let mut lines: BTreeMap<u32, (f64, f64)> = BTreeMap::new();
            for hit in hits {
                let weight = self.weights[hit.word];
                for &(_, line, count) in hit.lines {
                    let (held, score) = lines.entry(line).or_default();
                    *held += weight;
                    let length = hit.index.postings.length(line);
                    *score += weight * gain(count, length, self.average);
                }
            }
            for (line, (held, score)) in lines {
                if held >= ENOUGH * all {
                    ranked.push(RankedLine {
                        text: hits[0].text,
                        line: line as usize,
                        // A line that holds two of three words is not an answer if another holds
                        // all: the score is weighted by coordination, the share that is held.
                        score: score * held / all,
                    });
                }
            }
        }
        ranked.sort_by(|a, b| {
            let newer = (b.text, b.line).cmp(&(a.text, a.line));
            b.score.total_cmp(&a.score).then(newer)
        });
        ranked.truncate(BEST_LINES);
        ranked
    }
}

/// The token of the line that looks like a value and is nearest to a word of the question; the
/// later of two as near, because values follow their keys.
fn value_in(line: &str, words: &BTreeSet<String>) -> Option<String> {
    let mut keys = Vec::new();
    each_word(line, |word, at| {
        if words.contains(word) {
            keys.push(at);
        }
    });
    let mut best: Option<(usize, &str)> = None;
    for (start, token) in tokens(line) {
        let (mut parts, mut known) = (0, 0);
        each_word(token, |word, _| {
            parts += 1;
            known += usize::from(words.contains(word));
        });
        if known == parts || !token.contains(|c: char| c.is_ascii_digit()) || token.len() < 2 {
            continue;
        }
        let distances = keys.iter().map(|&key| start.abs_diff(key));
        let distance = distances.min().unwrap_or(usize::MAX);
        if best.is_none_or(|(nearest, _)| distance <= nearest) {
            best = Some((distance, token));
        }
    }
    best.map(|(_, token)| token.to_owned())
}

/// The line that fits best.
fn best_line(question: &str, texts: &[IndexedText]) -> Option<String> {
    let terms = Terms::new(question, texts);
    terms.rank().first().map(|ranked| {
        let (text, index) = &texts[ranked.text];
        let line = text[index.lines[ranked.line].clone()].trim();
        let line = line.trim_start_matches(['-', '*', '#', ' ']);
        line.chars().take(SENTENCE_CHARS).collect()
    })
}

/// The open items of the newest task list that holds a word of the question, one per line.
fn open_items(question: &str, texts: &[IndexedText]) -> Option<String> {
    let terms = Terms::new(question, texts);
    let mut meant = terms.hits.iter().rev();
    let list = meant.find(|hit| !hit.index.open.is_empty())?.index;
    Some(list.open.join("\n"))
}

/// The tasks of a list, each with its state, however its tool spells them.
pub(crate) fn tasks(input: &serde_json::Value) -> impl Iterator<Item = (&str, &str)> {
    let mut lists = ["todos", "tasks", "items", "plan"].iter();
    let list = lists.find_map(|name| input.get(name)?.as_array());
    list.into_iter().flatten().filter_map(|task| {
        let mut names = ["content", "task", "text", "step", "title"].iter();
        let text = names.find_map(|name| task.get(name)?.as_str())?;
        let state = task.get("status").and_then(serde_json::Value::as_str);
        Some((text, state.unwrap_or_default()))
    })
}

/// The paths that were treated as the question says, in the order of their first mention.
fn paths(question: &str, texts: &[IndexedText]) -> Option<String> {
    let mut asked = BTreeSet::new();
    each_word(question, |word, _| asked.extend(verb_of(word)));
    let mut first: Vec<&str> = Vec::new();
    let mut verbs: HashMap<&str, BTreeSet<Verb>> = HashMap::new();
    for (verb, path) in texts.iter().flat_map(|(_, index)| &index.touched) {
        let known = verbs.entry(path).or_default();
        if known.is_empty() {
            first.push(path);
        }
        // Writing to a file that was seen before changes it.
        known.insert(match verb {
            Verb::Created if !known.is_empty() && !known.contains(&Verb::Created) => Verb::Modified,
            verb => *verb,
        });
    }
    first.retain(|path| {
        let known = &verbs[*path];
        // Files that are only looked at count as read.
        let only_read = known.len() == 1;
        let mut known = known.iter();
        known.any(|verb| asked.contains(verb) && (*verb != Verb::Read || only_read))
    });
    (!first.is_empty()).then(|| first.join("\n"))
}

fn touched_by(class: ToolClass, input: &serde_json::Value) -> Vec<(Verb, String)> {
    let text = |fields: &[&str]| fields.iter().find_map(|name| input.get(name)?.as_str());
    let verb = match class {
        ToolClass::Read => Verb::Read,
        ToolClass::Write => Verb::Created,
        ToolClass::Edit => Verb::Modified,
        ToolClass::Shell => {
            let command = text(&["command", "cmd", "script"]).unwrap_or_default();
            let parts = command.split_whitespace().skip_while(|part| *part != "rm");
            return parts
                .skip(1)
                .take_while(|part| !matches!(*part, "&&" | ";" | "||" | "|"))
                .filter(|part| !part.starts_with('-'))
                .map(|part| (Verb::Deleted, clean_path(part)))
                .collect();
        }
        _ => return Vec::new(),
    };
    let path = text(&["file_path", "path", "filename", "file", "target_file"]);
    path.map(|path| (verb, clean_path(path)))
        .into_iter()
        .collect()
}

fn clean_path(path: &str) -> String {
    path.trim_start_matches("./").to_owned()
}

fn path_tokens(line: &str) -> impl Iterator<Item = String> + '_ {
    tokens(line).filter_map(|(_, token)| {
        let token = token.split_once(':').map_or(token, |(path, _)| path);
        let (_, name) = token.rsplit_once('/').unwrap_or(("", token));
        let (stem, suffix) = name.rsplit_once('.')?;
        let is_path = !stem.is_empty()
            && (1..=5).contains(&suffix.len())
            && suffix.starts_with(|c: char| c.is_ascii_alphabetic());
        is_path.then(|| clean_path(token))
    })
}

/// Runs without white space, quotes and brackets, and without punctuation around them; Chinese,
/// Japanese and Korean separate them.
fn tokens(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let between = |c: char| {
        c.is_whitespace()
            || is_unspaced(c)
            || ends_sentence(c)
            || ends_clause(c)
            || matches!(c, '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}')
            || matches!(c, '<' | '>' | ',' | ';' | '=' | '|' | '“' | '”' | '‘' | '’')
    };
    line.split(between).filter_map(move |token| {
        let trimmed = token.trim_matches(['.', ':', '!', '?', '*', '\\']);
        let start = trimmed.as_ptr().addr() - line.as_ptr().addr();
        (!trimmed.is_empty()).then_some((start, trimmed))
    })
}

#[cfg(test)]
mod tests {
    use super::index::{LINE_BYTES, Postings, split};
    use super::*;
    use crate::session::{JsonText, Role, ToolUse};

    fn check(context: &[&str], question: &str, format: AnswerFormat, expected: &str) {
        let mut messages: Vec<Arc<Message>> = context
            .iter()
            .map(|text| Arc::new(Message::text(Role::User, *text)))
            .collect();
        let asked = format!("{QUESTION}{question}\n\nAnswer with 12345 words.");
        messages.push(Arc::new(Message::text(Role::User, asked)));
        let reader = Reader::default();
        assert_eq!(reader.answer(&messages, format), expected, "{question}");
        assert_eq!(reader.answer(&messages, format), expected, "{question}");
    }

    #[test]
    fn one_reader_answers_about_each_conversation_from_that_one() {
        let reader = Reader::default();
        let said = |limit: u32| {
            let text = format!("the retry limit is {limit}");
            Arc::new(Message::text(Role::User, text))
        };
        let asked = Message::text(Role::User, format!("{QUESTION}What is the retry limit?"));
        let asked = Arc::new(asked);
        for limit in [31, 32, 31, 31, 33] {
            let messages = [said(limit), asked.clone()];
            for _ in 0..2 {
                let answer = reader.answer(&messages, AnswerFormat::Value);
                assert_eq!(answer, limit.to_string());
            }
        }
    }

    #[test]
    fn a_word_is_found_in_each_unit_that_holds_it() {
        let units: Vec<String> = (0..300).map(|n| format!("a{n} b {} é", n % 7)).collect();
        let postings = Postings::new(units.iter().map(String::as_str), |_, _| ());
        for (word, times) in [
            ("b", 300),
            ("é", 300),
            ("3", 43),
            ("a12", 1),
            ("a299", 1),
            ("c", 0),
        ] {
            assert_eq!(postings.of(hash(word)).len(), times, "{word}");
        }
        assert!(Postings::default().of(hash("b")).is_empty());
    }

    #[test]
    fn a_value_is_read_off_the_line_that_fits() {
        let context = [
            "hello\nthe staging gateway listens on port 48213, the build has id 77\nbye",
            r#"write {"text":"billing gateway:\nbilling gateway port = 51001\nend"}"#,
            "the retry limit is 31\nsome more text here",
            "the retry limit is 32",
        ];
        let value = AnswerFormat::Value;
        check(
            &context,
            "Which port does the staging gateway use?",
            value,
            "48213",
        );
        check(
            &context,
            "What is the billing gateway port?",
            value,
            "51001",
        );
        check(&context, "What is the retry limit?", value, "32");
        check(
            &context,
            "What is the checksum of the nightly archive?",
            value,
            NOT_IN_CONTEXT,
        );
        check(&[], "What is the retry limit?", value, NOT_IN_CONTEXT);
    }

    #[test]
    fn values_and_rules_are_found_in_chinese_japanese_and_korean() {
        let context = [
            "预发布网关端口是48213。计费网关端口改为51001。\n运行前必须通知值班人员。",
            "本番ゲートウェイのポートは48215です。\n作業の前に必ず担当者へ連絡してください。",
            "운영 게이트웨이 포트는 48217입니다.",
        ];
        let value = AnswerFormat::Value;
        for (question, expected) in [
            ("预发布网关端口是什么？", "48213"),
            ("计费网关端口是多少？", "51001"),
            ("本番ゲートウェイのポートは何ですか？", "48215"),
            ("운영 게이트웨이 포트는 무엇입니까?", "48217"),
            ("夜间归档的校验和是什么？", NOT_IN_CONTEXT),
        ] {
            check(&context, question, value, expected);
        }
        let sentence = AnswerFormat::Sentence;
        let expected = "运行前必须通知值班人员。";
        check(
            &context,
            "关于值班人员用户定了什么规则？",
            sentence,
            expected,
        );
    }

    #[test]
    fn a_rule_is_the_line_that_fits() {
        let context = [
            "hi\n- Never touch the migrations folder.\nok",
            "we saw a folder",
        ];
        check(
            &context,
            "What did the user say about the migrations folder?",
            AnswerFormat::Sentence,
            "Never touch the migrations folder.",
        );
    }

    #[test]
    fn files_are_read_off_tool_uses_and_summaries() {
        let tool = |class: ToolClass, input: &str| {
            ContentBlock::ToolUse(Box::new(ToolUse {
                id: "t".into(),
                name: class.name().into(),
                class,
                input: JsonText::parse(input).unwrap(),
            }))
        };
        let uses = vec![
            tool(ToolClass::Read, r#"{"file_path":"src/read.rs"}"#),
            tool(ToolClass::Read, r#"{"file_path":"src/edited.rs"}"#),
            tool(ToolClass::Edit, r#"{"file_path":"src/edited.rs"}"#),
            tool(ToolClass::Write, r#"{"path":"./src/new.rs","content":"x"}"#),
            tool(ToolClass::Write, r#"{"path":"src/read2.rs"}"#),
            tool(
                ToolClass::Shell,
                r#"{"command":"rm -f a.txt b.txt && ls c.txt"}"#,
            ),
        ];
        let messages = |question: &str| {
            vec![
                Arc::new(Message::text(Role::User, "- created lib/old.py: helpers")),
                Arc::new(Message::new(Role::Assistant, uses.clone())),
                Arc::new(Message::text(Role::User, question)),
            ]
        };
        for (question, expected) in [
            ("Which files were read?", "src/read.rs"),
            (
                "Which files were created?",
                "lib/old.py\nsrc/new.rs\nsrc/read2.rs",
            ),
            ("Which files were modified?", "src/edited.rs"),
            ("Which files were deleted?", "a.txt\nb.txt"),
        ] {
            let answer = Reader::default().answer(&messages(question), AnswerFormat::Paths);
            assert_eq!(answer, expected, "{question}");
        }
    }

    #[test]
    fn long_lines_are_cut() {
        let text = "ä".repeat(5_000) + "\\nx\n\n" + &"word ".repeat(1_000);
        let lines = split(&text);
        assert!(lines.iter().all(|line| line.len() <= LINE_BYTES));
        let kept: usize = lines.iter().map(ExactSizeIterator::len).sum();
        assert_eq!(kept, text.len() - 4);
    }
}
