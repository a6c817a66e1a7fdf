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
        let cell = LiveCell {
            strategy: self.strategy,
            ..LiveCell::default()
        };
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
    let client = Client {
        live,
        api,
        strategy,
    };
    for call in 0..=12 {
        let (ticket, _) = client.send(&items(api, call));
        assert_eq!((ticket.conversation, ticket.call), (0, call));
    }
    // It is asked for apart.
    let prompt = json!([{"role": "user", "content": "Sum up this conversation: so it was."}]);
    let key = if api == Api::Responses {
        "input"
    } else {
        "messages"
    };
    let asked = json!({ key: prompt }).to_string();
    let cell = LiveCell {
        strategy,
        ..LiveCell::default()
    };
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
