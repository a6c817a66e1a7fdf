//! Logs of requests as agents write them: one conversation is one session, whatever else the log holds.

use proctor_sessions::{Message, Role, Session, Tag};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A message, in no API's words.
#[derive(Clone)]
enum Said {
    User(String),
    /// A text, and the id and the file of a call.
    Model(String, Option<(String, String)>),
    /// The id of the call, and what a tool said.
    Tool(String, String),
}

/// How an agent asks for a summary.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Summary {
    /// Behind the whole context.
    Whole,
    /// In the message of a result, without the newest round, which stays.
    Early,
    /// As another agent without tools, which checks what it wrote.
    Aside,
    /// As another agent, with the conversation as one text.
    Text,
    /// Not at all: the oldest rounds are left out.
    None,
}

/// The name of the conversation in its requests.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Named {
    Session,
    CacheKey,
    /// One name for all conversations.
    Everyone,
    No,
}

/// The choices for all conversations of a log.
#[derive(Debug, Clone, Copy)]
struct Plan {
    is_gemini: bool,
    summary: Summary,
    named: Named,
    /// Its first message tells the time, and its system prompt and tools grow.
    is_volatile: bool,
    seed: u64,
}

/// A session as an import has to find it: its calls, and how many were made before each compaction.
type Found = (usize, Vec<usize>);

struct Agent {
    plan: Plan,
    number: usize,
    state: u64,
    context: Vec<Said>,
    calls: usize,
    compacted: Vec<usize>,
    /// Tokens of all its prompts.
    billed: u64,
    lines: Vec<String>,
    others: Vec<Found>,
    is_main: bool,
}

impl Agent {
    fn new(plan: Plan, number: usize, prompt: &str) -> Self {
        Self {
            plan,
            number,
            state: plan.seed ^ (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15),
            context: vec![Said::User(prompt.to_owned())],
            calls: 0,
            compacted: Vec::new(),
            billed: 0,
            lines: Vec::new(),
            others: Vec::new(),
            is_main: true,
        }
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % below
    }

    fn drawn(&mut self, below: u64) -> usize {
        usize::try_from(self.draw(below)).expect("a small number")
    }

    /// Logs a request of the agent, or of one without tools that has another system prompt.
    fn ask(&mut self, is_own: bool, context: &[Said], answer: &Said) {
        let (stamp, note) = (self.draw(1000), self.draw(3) == 0);
        let grown = if self.plan.is_volatile && is_own && self.is_main { self.calls } else { 0 };
        let mut context = context.to_vec();
        if self.plan.is_volatile
            && is_own
            && let Some(Said::User(text)) = context.first_mut()
        {
            *text = format!("It is {stamp} o'clock, and {grown} files are changed.\n{text}");
        }
        let context = &context[..];
        let memory: Vec<String> = (0..grown).map(|fact| format!("fact-{fact}")).collect();
        let memory = memory.join(" ");
        let system = if !is_own {
            "You write down what a conversation was about, in few words and nothing else."
                .to_owned()
        } else if self.is_main {
            format!(
                "x-header: {stamp}\nYou mend clocks with the tools that you have, one step after the \
                 other, and say what you found. Never guess, and ask the person where you are not \
                 sure. Today is day {stamp}. {memory}"
            )
        } else {
            "You search the workshop for parts and report them to the one who sent you.".to_owned()
        };
        let mut tools: Vec<String> = match (is_own, self.is_main) {
            (false, _) => Vec::new(),
            (true, false) => vec!["read".to_owned()],
            (true, true) => ["read", "wind", "oil", "weigh"].map(str::to_owned).into(),
        };
        tools.extend((0..grown).map(|number| format!("skill-{number}")));
        let mut line = if self.plan.is_gemini {
            gemini(&system, &tools, context, answer)
        } else {
            let mut line = anthropic(&system, &tools, context, answer);
            let request = &mut line["request"];
            let session = format!("session-{}", self.number);
            match self.plan.named {
                Named::Session => {
                    let user = json!({"device_id": "d", "session_id": session}).to_string();
                    request["metadata"] = json!({"user_id": user});
                }
                Named::CacheKey => request["prompt_cache_key"] = session.into(),
                Named::Everyone => request["metadata"] = json!({"user_id": "everyone"}),
                Named::No => {}
            }
            // A note is in one request, and no more in the next.
            let last = request["messages"].as_array_mut().and_then(|list| list.last_mut());
            if let Some(blocks) = last.and_then(|last| last["content"].as_array_mut())
                && note
            {
                let note = format!("<system-reminder>It is {stamp} o'clock.</system-reminder>");
                blocks.push(json!({"type": "text", "text": note}));
            }
            line
        };
        for key in ["/usage/input_tokens", "/usageMetadata/promptTokenCount"] {
            if let Some(tokens) = line["response"].pointer_mut(key) {
                *tokens = (stamp + 1).into();
                self.billed += stamp + 1;
            }
        }
        self.lines.push(line.to_string());
    }

    /// Makes a call of the agent's own; the answer asks for a tool if `is_work`.
    fn call(&mut self, is_work: bool) {
        let step = self.calls;
        // Without names, and with summaries that nothing ties to them, words tell two conversations apart.
        let is_named = matches!(self.plan.named, Named::Session | Named::CacheKey);
        let is_bare = !is_named && self.plan.summary == Summary::Text;
        let of = if is_bare { format!(" of {}", self.number) } else { String::new() };
        let answer = |id: String| {
            let call = is_work.then(|| (id, format!("part-{step}.txt")));
            Said::Model(format!("I look at part {step}{of}."), call)
        };
        let mut used = answer(self.draw(u64::MAX).to_string());
        let context = self.context.clone();
        self.ask(true, &context, &used);
        // A client that waited too long asks again, and may use either answer.
        let is_known = !self.plan.is_volatile || self.calls > 0;
        if !self.plan.is_gemini && is_known && self.draw(12) == 0 {
            let second = answer(self.draw(u64::MAX).to_string());
            self.ask(true, &context, &second);
            used = if is_work && self.draw(2) == 0 { second } else { used };
        }
        self.calls += 1;
        self.context.push(used.clone());
        let said = match used {
            Said::Model(_, Some((id, file))) => {
                let text = format!("{file} of clock {} has {step} teeth", self.number);
                Said::Tool(id, text)
            }
            _ => Said::User(format!("And what of wheel {step} of clock {}?", self.number)),
        };
        self.context.push(said);
    }

    /// The newest rounds, each an answer and what came after it.
    fn newest(&self, rounds: usize) -> Vec<Said> {
        let from = self.context.len().saturating_sub(2 * rounds).max(1);
        self.context[from..].to_vec()
    }

    fn compact(&mut self) {
        let number = self.compacted.len();
        let text = format!(
            "Clock {} was looked at until step {}, which is summary {number} of it.",
            self.number, self.calls
        );
        let question = Said::User(format!("Write summary {number} of all that you have seen."));
        let written = Said::Model(text.clone(), None);
        let rounds = 1 + self.drawn(2);
        let mut kept = self.newest(rounds);
        match self.plan.summary {
            Summary::Whole => {
                let context = [&self.context[..], &[question]].concat();
                self.ask(true, &context, &written);
            }
            Summary::Early => {
                kept = self.newest(1);
                let early = &self.context[..self.context.len() - 2];
                let context = [early, &[question]].concat();
                let tagged = format!("<analysis>Long.</analysis>\n<summary>\n{text}\n</summary>");
                self.ask(true, &context, &Said::Model(tagged, None));
            }
            Summary::Aside => {
                let context = [&self.context[..], &[question]].concat();
                let first = Said::Model(format!("At first: {text}"), None);
                self.ask(false, &context, &first);
                let check = Said::User("Is anything missing? Write it again.".to_owned());
                let context = [&context[..], &[first, check]].concat();
                self.ask(false, &context, &written);
            }
            Summary::Text => {
                let steps = self.calls;
                let told = format!("The model looked at {steps} parts.\n{text:.20} Sum it up.");
                self.ask(false, &[Said::User(told)], &written);
            }
            Summary::None => {
                let prompt = self.context[0].clone();
                self.context = [&[prompt][..], &kept].concat();
                self.compacted.push(self.calls);
                return;
            }
        }
        let summary = Said::User(format!("What was before is left out. {text} Go on from there."));
        self.context = [&[summary][..], &kept].concat();
        self.compacted.push(self.calls);
    }

    /// Sends a helper, whose requests have the same name.
    fn delegate(&mut self) {
        let name = self.number;
        let prompt = format!("Find part {} of clock {name} in the drawers.", self.calls);
        let mut helper = Self::new(self.plan, name, &prompt);
        helper.is_main = false;
        helper.state ^= self.draw(u64::MAX);
        for _ in 0..=self.draw(3) {
            helper.call(true);
        }
        helper.call(false);
        self.billed += helper.billed;
        self.lines.append(&mut helper.lines);
        self.others.push((helper.calls, Vec::new()));
    }

    fn work(&mut self) {
        if self.draw(2) == 0 {
            let title = Said::Model("Clock".to_owned(), None);
            let prompt = Said::User(format!("Name this: the clock {} is slow.", self.number));
            self.ask(false, &[prompt], &title);
            self.others.push((1, Vec::new()));
        }
        let limit = 7 + self.drawn(6);
        for _ in 0..8 + self.draw(20) {
            if self.context.len() > limit {
                self.compact();
            }
            // Only a call proves a conversation whose first message is another.
            let is_work = self.draw(5) > 0 || self.plan.is_volatile;
            self.call(is_work);
            if is_work && self.draw(8) == 0 {
                self.delegate();
            }
        }
    }
}

fn anthropic(system: &str, tools: &[String], context: &[Said], answer: &Said) -> Value {
    let block = |said: &Said| match said {
        Said::User(text) => vec![json!({"type": "text", "text": text})],
        Said::Model(text, call) => {
            let text = json!({"type": "text", "text": text});
            let call = call.iter().map(|(id, file)| {
                json!({"type": "tool_use", "id": id, "name": "read", "input": {"file": file}})
            });
            [text].into_iter().chain(call).collect()
        }
        Said::Tool(id, text) => {
            vec![json!({"type": "tool_result", "tool_use_id": id, "content": text})]
        }
    };
    let mut messages: Vec<Value> = Vec::new();
    for said in context {
        let role = if matches!(said, Said::Model(..)) { "assistant" } else { "user" };
        match messages.last_mut() {
            Some(last) if last["role"] == role => {
                let blocks = last["content"].as_array_mut().expect("a list");
                blocks.extend(block(said));
            }
            _ => messages.push(json!({"role": role, "content": block(said)})),
        }
    }
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    let request = json!({"model": "m", "system": system, "tools": tools, "messages": messages});
    let usage = json!({"input_tokens": 10, "output_tokens": 2});
    json!({"request": request, "response": {"type": "message", "role": "assistant",
        "content": block(answer), "usage": usage}})
}

/// The API gives calls no ids, and the client gives them its own.
fn gemini(system: &str, tools: &[String], context: &[Said], answer: &Said) -> Value {
    let parts = |said: &Said, is_sent: bool| match said {
        Said::User(text) => vec![json!({"text": text})],
        Said::Model(text, call) => {
            let call = call.iter().map(|(id, file)| {
                let mut call = json!({"name": "read", "args": {"file": file}});
                if is_sent {
                    call["id"] = format!("read_{id}").into();
                }
                json!({"functionCall": call})
            });
            [json!({"text": text})].into_iter().chain(call).collect()
        }
        Said::Tool(id, text) => {
            let response = json!({"output": text});
            let id = format!("read_{id}");
            vec![json!({"functionResponse": {"id": id, "name": "read", "response": response}})]
        }
    };
    let contents: Vec<Value> = context
        .iter()
        .map(|said| {
            let role = if matches!(said, Said::Model(..)) { "model" } else { "user" };
            json!({"role": role, "parts": parts(said, true)})
        })
        .collect();
    let tools: Vec<Value> = tools.iter().map(|name| json!({"name": name})).collect();
    let tools = json!([{"functionDeclarations": tools}]);
    let request = json!({"systemInstruction": {"parts": [{"text": system}]}, "tools": tools,
        "contents": contents});
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 2});
    json!({"request": request, "response": {"usageMetadata": usage,
        "candidates": [{"content": {"role": "model", "parts": parts(answer, false)}}]}})
}

fn is_call(message: &Message) -> bool {
    message.role() == Role::Assistant && !message.has_tag(Tag::Synthetic)
}

fn found(session: &Session) -> Found {
    let messages = session.messages();
    let calls = |until: usize| messages[..until].iter().filter(|one| is_call(one)).count();
    let before = session.compactions().iter().map(|one| calls(one.at));
    (calls(messages.len()), before.collect())
}

/// The conversations of a plan, their requests mixed, and what an import has to find.
fn log(plan: Plan) -> (String, Vec<Found>, u64) {
    let mut agents: Vec<Agent> = (0..2)
        .map(|number| {
            // Only a name tells two conversations apart that begin alike.
            let is_named = matches!(plan.named, Named::Session | Named::CacheKey);
            let which = if is_named { 0 } else { number };
            let mut agent = Agent::new(plan, number, &format!("The clock {which} is slow. Why?"));
            agent.work();
            agent
        })
        .collect();
    let mut wanted: Vec<Found> = Vec::new();
    for agent in &agents {
        wanted.push((agent.calls, agent.compacted.clone()));
        wanted.extend(agent.others.clone());
    }
    wanted.sort();
    let billed = agents.iter().map(|agent| agent.billed).sum();
    let mut lines = Vec::new();
    while let Some(longest) = agents.iter_mut().max_by_key(|agent| agent.lines.len())
        && !longest.lines.is_empty()
    {
        let rest = longest.drawn(4) + 1;
        let count = rest.min(longest.lines.len());
        lines.extend(longest.lines.drain(..count));
    }
    (lines.join("\n"), wanted, billed)
}

/// The prompt tokens on the bill of a session.
pub(crate) fn billed(session: &Session) -> u64 {
    let calls = session.messages().iter().flat_map(|message| {
        let inner = message.details.inner_requests.iter();
        inner.map(|one| one.usage).chain(message.details.usage)
    });
    let compactions = session.compactions().iter().filter_map(|one| one.usage);
    calls.chain(compactions).map(|usage| usage.prompt().0).sum()
}

fn check(plan: Plan) {
    let (text, wanted, paid) = log(plan);
    let format = if plan.is_gemini { "gemini" } else { "anthropic" };
    let sessions = super::read(format, text.as_bytes()).expect("a good log");
    let mut got: Vec<Found> = sessions.iter().map(found).collect();
    got.sort();
    assert_eq!(got, wanted, "{plan:?}");
    let bills: u64 = sessions.iter().map(billed).sum();
    assert_eq!(bills, paid, "{plan:?}");
    for session in &sessions {
        assert!(!session.messages().iter().any(|it| it.has_tag(Tag::Orphan)), "{plan:?}");
        // Nothing is lost between a request for a summary and the context behind it.
        let messages = session.messages();
        let before = &messages[..messages.len() - 1];
        for (_, call) in before.iter().flat_map(|message| message.tool_uses()) {
            let mut results = messages.iter().flat_map(|message| message.tool_results());
            let is_answered = results.any(|(_, result)| result.tool_use_id == call.id);
            assert!(is_answered, "{plan:?} {call:?}");
        }
        let skipped = &session.source().skipped;
        assert!(!skipped.contains_key("key `metadata`"), "{skipped:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_conversation_is_one_session_of_all_its_calls_and_compactions(
        is_gemini: bool,
        summary in prop::sample::select(vec![
            Summary::Whole, Summary::Early, Summary::Aside, Summary::Text, Summary::None,
        ]),
        named in prop::sample::select(vec![
            Named::Session, Named::CacheKey, Named::Everyone, Named::No,
        ]),
        is_volatile: bool,
        seed: u64,
    ) {
        let named = if is_gemini { Named::No } else { named };
        // Without ids, nothing proves a conversation whose first message is another.
        let is_volatile = is_volatile && !is_gemini;
        check(Plan { is_gemini, summary, named, is_volatile, seed });
    }
}
