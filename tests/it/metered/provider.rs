//! A provider that meters as the documents of two providers say, and answers what is always the same.
//!
//! Written from the pages on prompt caching and on batches of Anthropic and OpenAI, and from nothing of
//! Proctor's own: a token is four characters, and a prefix is cached by its content.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use proctor::probe::judge::JudgeTask;
use proctor::probe::judge::known_answer::{KnownAnswer, known_answers};
use serde_json::{Value, json};

use crate::live::server::Reply;

/// What one request was billed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Billed {
    pub(crate) input: u64,
    pub(crate) written: u64,
    pub(crate) read: u64,
    pub(crate) output: u64,
    pub(crate) in_batch: bool,
}

/// The shortest prefix that is cached, by both documents for the models that are asked here.
const MINIMUM: u64 = 1_024;

#[derive(Default)]
pub(crate) struct Provider {
    cached: Mutex<BTreeSet<u64>>,
    billed: Mutex<Vec<Billed>>,
    files: Mutex<BTreeMap<String, String>>,
    /// The requests of each batch, and how often it was asked about.
    batches: Mutex<BTreeMap<String, (Vec<Value>, usize)>>,
    /// The metadata of batches that have any.
    labels: Mutex<BTreeMap<String, Value>>,
    /// How often a batch is asked about before it is done.
    patience: usize,
    /// Tokens that batches report beyond what they bill.
    exaggeration: u64,
}

fn tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

fn hash(parts: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    parts.hash(&mut hasher);
    hasher.finish()
}

/// All texts in a value, as a model reads them.
fn texts(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(texts).collect(),
        Value::Object(fields) => match fields.get("type").and_then(Value::as_str) {
            Some("text") => texts(&fields["text"]),
            Some("tool_result") => texts(&fields["content"]),
            Some("tool_use") => format!("{}{}", texts(&fields["name"]), fields["input"]),
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}

impl Provider {
    /// One whose batches are done when somebody has asked about them so often and once more.
    pub(crate) fn patient(patience: usize) -> Self {
        Self { patience, ..Self::default() }
    }

    /// One whose batches report so many tokens beyond what they bill.
    pub(crate) fn exaggerating(exaggeration: u64) -> Self {
        Self { exaggeration, ..Self::default() }
    }

    pub(crate) fn billed(&self) -> Vec<Billed> {
        self.billed.lock().unwrap().clone()
    }

    pub(crate) fn batches(&self) -> usize {
        self.batches.lock().unwrap().len()
    }

    /// How often anybody asked about a batch.
    pub(crate) fn polls(&self) -> usize {
        self.batches.lock().unwrap().values().map(|batch| batch.1).sum()
    }

    /// What is answered to a request.
    pub(crate) fn answer(&self, head: &str, body: &str) -> Reply {
        let mut words = head.split_whitespace();
        let (method, path) = (words.next().unwrap(), words.next().unwrap());
        let json = || serde_json::from_str::<Value>(body).unwrap();
        let path = path.split('?').next().unwrap();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match (method, &parts[..]) {
            ("POST", ["v1", "messages"]) => {
                let (text, bill) = self.anthropic(&json(), false);
                Reply::anthropic(&text, [bill.input, bill.written, bill.read, bill.output])
            }
            ("POST", ["v1", "chat", "completions"]) => {
                let (text, bill) = self.openai(&json(), false);
                Reply::openai_cached(&text, bill.input + bill.read, bill.read, bill.output)
            }
            ("POST", ["v1", "messages", "batches"]) => {
                let requests = json()["requests"].as_array().unwrap().clone();
                let made = json!({ "id": self.make(requests), "processing_status": "in_progress" });
                Reply::status(200, &made.to_string())
            }
            ("GET", ["v1", "messages", "batches"] | ["v1", "batches"]) => self.list(),
            ("GET", ["v1", "messages", "batches", id]) => {
                let status = if self.is_done(id) {
                    "ended"
                } else {
                    "in_progress"
                };
                let state = json!({ "id": id, "processing_status": status,
                    "request_counts": { "succeeded": self.count(id) }, "results_url": "http://127.0.0.1:9/elsewhere" });
                Reply::status(200, &state.to_string())
            }
            ("GET", ["v1", "messages", "batches", id, "results"]) => Reply::status(
                200,
                &self.lines(id, |request| {
                    let (text, bill) = self.anthropic(&request["params"], true);
                    json!({ "result": { "type": "succeeded", "message": {
                        "model": "test-model-1", "stop_reason": "end_turn",
                        "content": [{ "type": "text", "text": text }],
                        "usage": { "input_tokens": bill.input + self.exaggeration, "output_tokens": bill.output,
                            "cache_creation_input_tokens": bill.written,
                            "cache_read_input_tokens": bill.read },
                    } } })
                }),
            ),
            ("POST", ["v1", "files"]) => {
                let lines = body.lines().filter(|line| line.starts_with('{'));
                let name = format!("file-{}", hash(body));
                let lines: Vec<&str> = lines.collect();
                self.files
                    .lock()
                    .unwrap()
                    .insert(name.clone(), lines.join("\n"));
                Reply::status(200, &json!({ "id": name, "object": "file" }).to_string())
            }
            ("POST", ["v1", "batches"]) => {
                let asked = json();
                assert_eq!(asked["endpoint"], "/v1/chat/completions");
                let file =
                    self.files.lock().unwrap()[asked["input_file_id"].as_str().unwrap()].clone();
                let requests = file.lines().map(|line| serde_json::from_str(line).unwrap());
                let id = self.make(requests.collect());
                let mut labels = self.labels.lock().unwrap();
                labels.insert(id.clone(), asked["metadata"].clone());
                let made = json!({ "id": id, "status": "validating" });
                Reply::status(200, &made.to_string())
            }
            ("GET", ["v1", "batches", id]) => {
                let state = if self.is_done(id) {
                    json!({ "id": id, "status": "completed", "output_file_id": format!("out-{id}"),
                        "error_file_id": null, "request_counts": { "completed": self.count(id) } })
                } else {
                    json!({ "id": id, "status": "in_progress" })
                };
                Reply::status(200, &state.to_string())
            }
            ("GET", ["v1", "files", file, "content"]) => {
                let id = file.strip_prefix("out-").unwrap();
                Reply::status(
                    200,
                    &self.lines(id, |request| {
                        let (text, bill) = self.openai(&request["body"], true);
                        json!({ "error": null, "response": { "status_code": 200, "body": {
                        "model": "test-model-1",
                        "choices": [{ "index": 0, "finish_reason": "stop",
                            "message": { "role": "assistant", "content": text } }],
                        "usage": { "prompt_tokens": bill.input + self.exaggeration, "completion_tokens": bill.output },
                    } } })
                    }),
                )
            }
            _ => Reply::status(404, "{}"),
        }
    }

    /// Takes the requests of its first batch from another client as well.
    pub(crate) fn take_anothers(&self) {
        let mut requests = self.batches.lock().unwrap()["batch_0"].0.clone();
        for request in &mut requests {
            request["custom_id"] = Value::from(format!("other-{}", request["custom_id"]));
        }
        self.make(requests);
    }

    fn make(&self, requests: Vec<Value>) -> String {
        let mut batches = self.batches.lock().unwrap();
        let id = format!("batch_{}", batches.len());
        batches.insert(id.clone(), (requests, 0));
        id
    }

    /// All batches, the newest first.
    fn list(&self) -> Reply {
        let batches = self.batches.lock().unwrap();
        let labels = self.labels.lock().unwrap();
        let batches = batches.iter().rev().map(|(id, (requests, _))| {
            json!({ "id": id, "metadata": labels.get(id),
                "request_counts": { "processing": requests.len(), "succeeded": 0 } })
        });
        let listed = json!({ "data": batches.collect::<Vec<_>>(), "has_more": false });
        Reply::status(200, &listed.to_string())
    }

    fn count(&self, id: &str) -> usize {
        self.batches.lock().unwrap()[id].0.len()
    }

    fn is_done(&self, id: &str) -> bool {
        let mut batches = self.batches.lock().unwrap();
        let batch = batches.get_mut(id).unwrap();
        batch.1 += 1;
        batch.1 > self.patience
    }

    /// The answers of a batch, in another order than was asked.
    fn lines(&self, id: &str, answer: impl Fn(&Value) -> Value) -> String {
        let requests = self.batches.lock().unwrap()[id].0.clone();
        let lines = requests.iter().rev().map(|request| {
            let mut line = answer(request);
            line["custom_id"] = request["custom_id"].clone();
            line.to_string() + "\n"
        });
        lines.collect()
    }

    /// Prompt caching with breakpoints: an entry is written at each, and each looks back over twenty
    /// positions, a run of tool uses or of tool results being one.
    fn anthropic(&self, body: &Value, in_batch: bool) -> (String, Billed) {
        assert_eq!(body["stream"] == true, !in_batch);
        let array = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut blocks: Vec<(String, Value)> = Vec::new();
        blocks.extend(array(&body["tools"]).into_iter().map(|tool| ("tools".to_owned(), tool)));
        blocks.extend(array(&body["system"]).into_iter().map(|text| ("system".to_owned(), text)));
        for message in array(&body["messages"]) {
            let role = message["role"].as_str().unwrap().to_owned();
            blocks.extend(array(&message["content"]).into_iter().map(|one| (role.clone(), one)));
        }
        let (mut chain, mut until, mut position) = (0, 0, 0);
        let mut kind = String::new();
        let mut prefixes = Vec::new();
        for (role, mut block) in blocks {
            let is_marked = block.as_object_mut().unwrap().remove("cache_control").is_some();
            assert!(!(is_marked && in_batch), "what a batch marks is paid for and never read");
            chain = hash((chain, &role, block.to_string()));
            until += tokens(&texts(&block));
            let own = block["type"].as_str().unwrap_or_default().to_owned();
            let goes_on = own == kind && (own == "tool_use" || own == "tool_result");
            position += usize::from(!goes_on);
            kind = own;
            prefixes.push((chain, until, position, is_marked));
        }
        let mut cached = self.cached.lock().unwrap();
        let marks: Vec<usize> = (0..prefixes.len()).filter(|at| prefixes[*at].3).collect();
        assert!(marks.len() <= 4, "at most four breakpoints");
        let found = marks.iter().rev().find_map(|mark| {
            let near = |at: &usize| prefixes[*mark].2 - prefixes[*at].2 < 20;
            let mut back = (0..=*mark).rev().take_while(near);
            back.find(|at| cached.contains(&prefixes[*at].0))
        });
        let read = found.map_or(0, |at| prefixes[at].1);
        let last = marks.last().map_or(0, |at| prefixes[*at].1);
        let last = if last >= MINIMUM { last.max(read) } else { read };
        for mark in marks {
            if prefixes[mark].1 >= MINIMUM {
                cached.insert(prefixes[mark].0);
            }
        }
        drop(cached);
        let text = said(body);
        let bill = Billed {
            input: until - last,
            written: last - read,
            read,
            output: tokens(&text),
            in_batch,
        };
        self.billed.lock().unwrap().push(bill);
        (text, bill)
    }

    /// Automatic caching: the longest prefix that was sent before, from 1,024 tokens on, in steps of
    /// 128; none is looked for in a batch.
    fn openai(&self, body: &Value, in_batch: bool) -> (String, Billed) {
        let mut whole = texts(&body["tools"]);
        for message in body["messages"].as_array().unwrap() {
            whole += message["role"].as_str().unwrap();
            whole += &texts(&message["content"]);
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                whole += &texts(&call["function"]["name"]);
                whole += &texts(&call["function"]["arguments"]);
            }
        }
        let letters: Vec<char> = whole.chars().collect();
        let prompt = (letters.len() as u64).div_ceil(4);
        let mut read = 0;
        if !in_batch {
            let mut cached = self.cached.lock().unwrap();
            let (mut chain, mut is_found) = (0, true);
            for (at, step) in letters.chunks_exact(512).enumerate() {
                chain = hash((chain, step));
                let until = 128 * (at as u64 + 1);
                is_found &= cached.contains(&chain);
                if is_found && until >= MINIMUM {
                    read = until;
                }
                cached.insert(chain);
            }
        }
        let text = said(body);
        let bill =
            Billed { input: prompt - read, written: 0, read, output: tokens(&text), in_batch };
        self.billed.lock().unwrap().push(bill);
        (text, bill)
    }
}

/// Whether the answer that is judged has half of the reference's words, or is known to be right.
fn is_right(asked: &str) -> bool {
    let part = |tag: &str| {
        let (_, rest) = asked.split_once(&format!("<{tag}>")).unwrap();
        rest.split_once(&format!("</{tag}>")).unwrap().0.to_lowercase()
    };
    let (reference, answer) = (part("reference"), part("answer"));
    let is_shown = |known: &KnownAnswer| answer.trim() == known.answer.to_lowercase().trim();
    let known = known_answers(JudgeTask::Wide).into_iter().find(is_shown);
    if let Some(known) = known {
        return known.is_right;
    }
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric());
        words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (reference, answer) = (words(&reference), words(&answer));
    let same = reference.intersection(&answer).count();
    2 * same >= reference.len()
}

/// A reader knows nothing, a judge compares words and gives its reason, and a summary has 1,800
/// tokens.
fn said(body: &Value) -> String {
    let asked = body["messages"].as_array().unwrap().last().unwrap();
    let asked = texts(&asked["content"]);
    if asked.contains("<reference>") {
        let verdict = if is_right(&asked) { "right" } else { "invented" };
        let reason = "The answer is held against the reference word by word: what it names is the same \
                      value, or another one, and nothing beside it changes what it says.";
        format!("{{\"reason\": \"{reason}\", \"verdict\": \"{verdict}\"}}")
    } else if asked.contains("Use only what this conversation says so far") {
        "not in context".to_owned()
    } else {
        "The work goes on as it was planned. ".repeat(200)
    }
}
