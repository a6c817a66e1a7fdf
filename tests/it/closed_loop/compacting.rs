//! Agents that compact their own history while a strategy stands in front of them.

use super::apis::{body, items};
use super::*;

const SUMMARY: &str =
    "The parser is at fault: it drops the last token of each line, and nobody noticed.";

/// An answer in words.
fn answer(api: Api, text: &str) -> String {
    let message = json!({"role": "assistant", "content": text});
    let answer = match api {
        Api::ChatCompletions => json!({"choices": [{"message": message}]}),
        Api::Responses => json!({"output": [{"type": "message", "role": "assistant",
            "content": [{"type": "output_text", "text": text}]}]}),
        _ => json!({"role": "assistant", "content": [{"type": "text", "text": text}]}),
    };
    answer.to_string()
}

struct Client {
    live: Live,
    api: Api,
    strategy: usize,
}

impl Client {
    /// Sends these items; the ticket, and the items that were sent on.
    fn send(&self, items: &[Value]) -> (Ticket, Vec<Value>) {
        let own = body(self.api, items);
        let cell = LiveCell { strategy: self.strategy, ..LiveCell::default() };
        let sent = self.live.send(&cell, self.api, &own, Timestamp(7));
        let read: Value = serde_json::from_str(sent.body.as_deref().unwrap_or(&own)).unwrap();
        let list = read.get("messages").unwrap_or(&read["input"]);
        (sent.ticket.unwrap(), list.as_array().unwrap().clone())
    }
}

/// An agent that keeps its last rounds, with a summary in the place of the others.
fn check(api: Api, strategy: usize) {
    let log = Bytes::default();
    let (live, _) = front(Some(&log));
    let client = Client { live, api, strategy };
    for call in 0..=12 {
        let (ticket, _) = client.send(&items(api, call));
        assert_eq!((ticket.conversation, ticket.call), (0, call));
    }
    // It is asked for apart.
    let prompt = json!([{"role": "user", "content": "Sum up this conversation: so it was."}]);
    let key = if api == Api::Responses { "input" } else { "messages" };
    let asked = json!({ key: prompt }).to_string();
    let cell = LiveCell { strategy, ..LiveCell::default() };
    let sent = client.live.send(&cell, api, &asked, Timestamp(8));
    assert_eq!(sent.body, None);
    let side = sent.ticket.unwrap();
    assert_eq!((side.conversation, side.call), (1, 0));
    let answer = answer(api, SUMMARY);
    client.live.answered(side, Some(&answer), Timestamp(9));
    let text = format!("Another model wrote this summary:\n{SUMMARY}");
    let summary = json!({"role": "user", "content": text});
    for call in 13..16 {
        let all = items(api, call);
        let round = all.len() / call;
        let from = all.len() - round * (call - 9);
        let system = all[..from].iter().filter(|it| it["role"] == "system");
        let mut own: Vec<Value> = system.cloned().collect();
        own.push(summary.clone());
        own.extend_from_slice(&all[from..]);
        let (ticket, sent) = client.send(&own);
        assert_eq!((ticket.conversation, ticket.call), (0, call), "{api:?}");
        // Results that are older than the last two were cleared, and stay so.
        let changed = own.iter().zip(&sent).filter(|(own, sent)| own != sent);
        assert_eq!(changed.count(), (call - 11) * strategy, "{api:?}");
        assert_eq!(own.len(), sent.len());
        assert_eq!(client.send(&own), (ticket, sent));
    }
    let finished = client.live.finished();
    let again = super::front(None).0;
    assert_eq!(again.restore(&log.events()), Ok(Vec::new()));
    let [cell] = <[_; 1]>::try_from(finished).unwrap();
    assert_eq!((cell.measured.others, cell.measured.calls), (1, 1));
    let prepared = PreparedSession::new(Arc::new(cell.session), cell.counts, Vec::new());
    let models = Models {
        summariser: cell.summariser,
        reader: None,
        judge: None,
        times: Repetitions::default(),
    };
    let played = Replayed::Strategy(cell.strategy, cell.window);
    let (contexts, is_strategys) = replayed(&prepared.unwrap(), played, &models);
    assert!(!is_strategys, "the agent's own compaction is an event");
    assert_eq!(contexts.len(), 15, "{api:?}: the last call has no answer");
}

#[test]
fn an_agent_that_compacts_by_itself_stays_one_conversation() {
    for api in [Api::Messages, Api::ChatCompletions, Api::Responses] {
        for strategy in [0, 1] {
            check(api, strategy);
        }
    }
}

#[test]
fn a_summary_may_come_back_as_the_models_own_words() {
    let (live, _) = front(None);
    let client = Client { live, api: Api::ChatCompletions, strategy: 0 };
    for call in 0..=12 {
        client.send(&items(client.api, call));
    }
    let (side, _) = client.send(&[user("Sum up this conversation: so it was.")]);
    client.live.answered(side, Some(&answer(client.api, SUMMARY)), Timestamp(9));
    for call in 13..15 {
        let all = items(client.api, call);
        let mut own = all[..2].to_vec();
        own.push(model(SUMMARY));
        own.extend_from_slice(&all[20..]);
        let (ticket, _) = client.send(&own);
        assert_eq!((ticket.conversation, ticket.call), (0, call));
    }
}

/// Agents without names, each with its messages and the answer it gets: every request is sent on whole, and those of two
/// agents are two conversations.
fn check_whole(steps: &[(&str, Vec<Value>, &str)]) {
    let (live, _) = front(None);
    let api = Api::ChatCompletions;
    let client = Client { live, api, strategy: 0 };
    let mut of: std::collections::BTreeMap<usize, std::collections::BTreeSet<&str>> =
        std::collections::BTreeMap::new();
    for (agent, own, said) in steps {
        let (ticket, sent) = client.send(own);
        assert_eq!(&sent, own, "{agent}");
        of.entry(ticket.conversation).or_default().insert(*agent);
        let answer = answer(api, said);
        client.live.answered(ticket, Some(&answer), Timestamp(9));
    }
    assert!(of.values().all(|agents| agents.len() == 1), "{of:?}");
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn model(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

const ASIDE: &str =
    "The agent was rewriting the parser: the lexer is done, and the tests remain to be done.";

#[test]
fn what_a_compaction_took_out_comes_back_as_a_conversation_of_its_own() {
    let mut own = vec![user("Tell me how the parser works, in detail.")];
    let mut steps = Vec::new();
    for call in 0..4 {
        let said = ["answer 0", "answer 1", "answer 2", "answer 3"][call];
        steps.push(("agent", own.clone(), said));
        own.extend([model(said), user(&format!("question {call}"))]);
    }
    let mut asked = own.clone();
    asked.push(user("Summarise the conversation."));
    steps.push(("agent", asked, ASIDE));
    let mut compacted = vec![user(&format!("Summary: {ASIDE}"))];
    compacted.extend_from_slice(&own[own.len() - 2..]);
    steps.push(("agent", compacted, "after the compaction"));
    let mut rewound = own[..7].to_vec();
    rewound.push(user("a new question"));
    steps.push(("rewound", rewound.clone(), "a new answer"));
    rewound.extend([model("a new answer"), user("and more")]);
    steps.push(("rewound", rewound, "the end"));
    check_whole(&steps);
}

#[test]
fn a_summary_alone_belongs_to_no_agent_that_it_may_not_be_of() {
    let mut own = [
        vec![user("Rewrite the parser of the tool.")],
        vec![user("Document all options of the server.")],
    ];
    let names = ["A", "B"];
    let mut steps = Vec::new();
    for call in 0..4 {
        for (agent, own) in own.iter_mut().enumerate() {
            let said = [["A0", "A1", "A2", "A3"], ["B0", "B1", "B2", "B3"]][agent][call];
            steps.push((names[agent], own.clone(), said));
            own.extend([model(said), user(&format!("result {agent} {call}"))]);
        }
    }
    let asked = format!("Summarise this conversation:\n{}", json!(own[0]));
    steps.push(("summariser", vec![user(&asked)], ASIDE));
    steps.push(("A again", vec![user(&format!("Summary: {ASIDE}"))], "A4"));
    steps.push(("B", own[1].clone(), "B4"));
    check_whole(&steps);
}

#[test]
fn equal_words_of_two_agents_are_no_compaction() {
    let prompt = user("Solve the issue: the parser fails on empty lines.");
    let same = user("<returncode>0</returncode>");
    let of = |said: [&str; 2]| {
        let all = [prompt.clone(), model(said[0]), same.clone()].into_iter();
        all.chain([model(said[1]), user("ok")]).collect::<Vec<_>>()
    };
    let (own, other) = (of(["A0", "A1"]), of(["B0", "B1"]));
    check_whole(&[
        ("A", own[..3].to_vec(), "A1"),
        ("B", other[..3].to_vec(), "B1"),
        ("A", own.clone(), "A2"),
        ("B", other.clone(), "B2"),
    ]);
}

/// A result of any API with these words in its place.
fn put(item: &mut Value, words: &str) {
    let keys = ["/output", "/content/0/content", "/content"];
    let text = keys.into_iter().find(|key| item.pointer(key).is_some());
    *item.pointer_mut(text.unwrap()).unwrap() = words.into();
}

#[test]
fn an_agent_that_clears_old_results_at_each_call_stays_one_conversation() {
    for api in [Api::Messages, Api::ChatCompletions, Api::Responses] {
        for strategy in [0, 2] {
            let live = front(None).0;
            let client = Client { live, api, strategy };
            for call in 0..12 {
                let mut own = items(api, call);
                let is_result =
                    |item: &&mut Value| item.to_string().contains("a line of the result");
                let mut results: Vec<&mut Value> = own.iter_mut().filter(is_result).collect();
                let old = results.len().saturating_sub(2);
                for result in &mut results[..old] {
                    put(result, "[cleared]");
                }
                let (ticket, sent) = client.send(&own);
                assert_eq!((ticket.conversation, ticket.call), (0, call), "{api:?}");
                assert!(strategy > 0 || sent == own);
            }
        }
    }
}
