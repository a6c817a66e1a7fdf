//! Each API, and what happens where a strategy is of no use.

use super::*;
use proctor::live::{NotItsLog, Skip, TaskNames};
use proctor::model::{CallFailure, Model, ModelKind, Reply, Request};
use proctor::session::import::request::READER;

/// An agent's items for a number of tool calls, each with a long result.
pub(super) fn items(api: Api, calls: usize) -> Vec<Value> {
    let long = "a line of the result\n".repeat(40);
    let mut items = Vec::new();
    if api == Api::ChatCompletions {
        items.push(json!({"role": "system", "content": "You are an agent."}));
    }
    items.push(match api {
        Api::Responses => json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
        _ => json!({"role": "user", "content": "go", "name": "ann"}),
    });
    for call in 0..calls {
        let (id, text) = (format!("c{call}"), format!("{call}: {long}"));
        items.extend(match api {
            Api::Responses => vec![
                json!({"type": "reasoning", "id": format!("rs{call}"), "summary": [], "encrypted_content": "x"}),
                json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}", "status": "completed"}),
                json!({"type": "function_call_output", "call_id": id, "output": text}),
            ],
            Api::ChatCompletions => vec![
                json!({"role": "assistant", "content": null, "tool_calls": [
                    {"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": text}),
            ],
            _ => vec![
                json!({"role": "assistant", "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "s"},
                    {"type": "tool_use", "id": id, "name": "read", "input": {}}]}),
                json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text,
                    "cache_control": {"type": "ephemeral"}}]}),
            ],
        });
    }
    items
}

pub(super) fn body(api: Api, items: &[Value]) -> String {
    let key = if api == Api::Responses { "input" } else { "messages" };
    let tools = json!([{"name": "read", "odd": true}]);
    // Blanks and keys of nobody's knowledge are the agent's business.
    format!("{{ \"tools\": {tools},\n  \"{key}\": {}, \"unknown\" : 1.50 }}", json!(items))
}

/// Lets an agent make calls under a strategy; the items that were sent at the last, and what of the body is around them.
fn last_sent(live: &Live, api: Api, strategy: usize, calls: usize) -> (Vec<Value>, String) {
    let cell = LiveCell { strategy, ..LiveCell::default() };
    let mut last = None;
    for call in 0..=calls {
        let own = body(api, &items(api, call));
        let sent = live.send(&cell, api, &own, Timestamp(i64::try_from(call).unwrap()));
        live.answered(sent.ticket.unwrap(), None, Timestamp(i64::try_from(call).unwrap()));
        last = Some(sent.body.unwrap_or(own));
    }
    let text = last.unwrap();
    let read: Value = serde_json::from_str(&text).unwrap();
    let key = if api == Api::Responses { "input" } else { "messages" };
    let items = read[key].as_array().unwrap().clone();
    let own = body(api, &[]);
    let (before, after) = own.split_once("[]").unwrap();
    assert!(text.starts_with(before) && text.ends_with(after), "{text}");
    (items, text)
}

#[test]
fn every_api_keeps_what_is_not_cleared_as_it_came() {
    for api in [Api::Messages, Api::ChatCompletions, Api::Responses] {
        let (live, _) = front(None);
        let own = items(api, 12);
        let (sent, _) = last_sent(&live, api, 1, 12);
        assert_eq!(sent.len(), own.len(), "{api:?}");
        let changed: Vec<usize> = (0..own.len()).filter(|at| sent[*at] != own[*at]).collect();
        // Results that are older than the last two are cleared, and nothing else is.
        assert_eq!(changed.len(), 10, "{api:?}");
        for at in changed {
            let text = sent[at].to_string();
            assert!(
                text.len() < 200 && text.contains(&format!("c{}", text_of(&own[at]))),
                "{text}"
            );
        }
        assert_eq!(live.untouched(), BTreeMap::new());
    }
}

#[test]
fn items_that_say_nothing_keep_their_places() {
    let empty = json!({"role": "assistant", "content": ""});
    let null = json!({"role": "assistant", "content": null});
    let go_on = json!({"role": "user", "content": "Please go on."});
    let unsaid = json!({"role": "user", "content": []});
    let listed = json!({"type": "mcp_list_tools", "id": "l", "server_label": "x", "tools": []});
    for (api, at, added) in [
        (Api::ChatCompletions, 14, vec![&empty, &go_on]),
        (Api::ChatCompletions, 14, vec![&null, &go_on]),
        (Api::ChatCompletions, 1, vec![&unsaid]),
        (Api::Messages, 13, vec![&empty, &go_on]),
        (Api::Responses, 1, vec![&listed]),
        (Api::Responses, 19, vec![&listed, &unsaid]),
        (Api::Responses, 0, vec![&unsaid]),
    ] {
        let mut own = items(api, 12);
        own.splice(at..at, added.into_iter().cloned());
        let (live, _) = front(None);
        let cell = LiveCell { strategy: 1, ..LiveCell::default() };
        let is_models = |item: &Value| {
            let is_said = ["reasoning", "function_call", "mcp_list_tools"].map(Value::from);
            item["role"] == "assistant" || is_said.contains(&item["type"])
        };
        let ends = |end: &usize| {
            !is_models(&own[end - 1]) && own.get(*end).is_none_or(is_models) && *end > 1
        };
        let mut sent = Vec::new();
        for end in (1..=own.len()).filter(ends) {
            let body = body(api, &own[..end]);
            let now = live.send(&cell, api, &body, Timestamp(0));
            assert_eq!(now.ticket.map(|it| it.conversation), Some(0), "{body}");
            let read: Value = serde_json::from_str(&now.body.unwrap_or(body)).unwrap();
            let list = read.get("messages").unwrap_or(&read["input"]);
            sent = list.as_array().unwrap().clone();
        }
        assert_eq!(sent.len(), own.len(), "{api:?}");
        let changed = (0..own.len()).filter(|at| sent[*at] != own[*at]).count();
        assert_eq!(changed, 10, "{api:?} {at}");
    }
}

#[test]
fn an_answer_that_comes_back_tells_an_agent_whose_prompt_changes() {
    let (live, _) = front(None);
    let said =
        |role: &str, text: &str| json!({"role": role, "content": [{"type": "text", "text": text}]});
    let mut histories = [const { Vec::new() }; 4];
    for call in 0..4 {
        for (agent, history) in histories.iter_mut().enumerate() {
            // The first two tell the time; the others are told apart by nothing but their prompts.
            let (system, answer) = match agent {
                0 | 1 => (format!("It is 12:0{call}."), format!("{agent}: {call}")),
                _ => (format!("You are {agent}."), format!("ok {call}")),
            };
            let asked = if call == 0 { "go".to_owned() } else { format!("go {call}") };
            history.push(said("user", &asked));
            let body = json!({"system": system, "messages": history}).to_string();
            let task = Some(format!("t{}", agent / 2));
            let cell = LiveCell { task, ..LiveCell::default() };
            let sent = live.send(&cell, Api::Messages, &body, Timestamp(call));
            let ticket = sent.ticket.unwrap();
            assert_eq!(ticket.call, usize::try_from(call).unwrap(), "agent {agent}");
            history.push(said("assistant", &answer));
            let answer = said("assistant", &answer).to_string();
            live.answered(ticket, Some(&answer), Timestamp(call));
        }
    }
    assert_eq!(live.finished().len(), 2);
}

/// The number of a result.
fn text_of(item: &Value) -> String {
    let text = item.to_string();
    let at = text.find(": a line").unwrap();
    let digits = text[..at].chars().rev().take_while(char::is_ascii_digit);
    digits.collect::<Vec<_>>().into_iter().rev().collect()
}

#[test]
fn every_api_takes_a_summary() {
    for api in [Api::Messages, Api::ChatCompletions, Api::Responses] {
        let (live, _) = front(None);
        let (sent, text) = last_sent(&live, api, 2, 24);
        assert!(sent.len() < items(api, 24).len() / 2, "{api:?}");
        assert!(text.len() < body(api, &items(api, 24)).len() / 2, "{api:?}");
        let finished = live.finished();
        assert_eq!(finished.len(), 0, "nothing was answered");
    }
}

#[test]
fn what_cannot_be_read_is_passed_on_and_counted() {
    let (live, _) = front(None);
    let cell = LiveCell::default();
    let kept = json!({"previous_response_id": "r1", "input": [{"role": "user", "content": "go"}]});
    let reference = json!({"input": [{"type": "item_reference", "id": "i1"}]});
    for (api, body) in [
        (Api::Responses, kept.to_string()),
        (Api::Responses, reference.to_string()),
        (Api::Responses, json!({"input": "go"}).to_string()),
        (Api::Messages, "[1, 2".to_owned()),
        (Api::GenerateContent, json!({"contents": []}).to_string()),
    ] {
        let sent = live.send(&cell, api, &body, Timestamp(0));
        assert_eq!((sent.body, sent.ticket), (None, None), "{body}");
    }
    let untouched = live.untouched();
    let counts: Vec<u64> = untouched.values().copied().collect();
    assert_eq!(counts, [2, 3], "{untouched:?}");
}

/// A model that takes its time.
#[derive(Debug)]
struct Slow(Duration);

impl Model for Slow {
    fn name(&self) -> &'static str {
        "slow"
    }

    fn kind(&self) -> ModelKind {
        ModelKind::Live
    }

    fn answer(&self, _: &Request, _: u32, _: &CountedTexts) -> Reply {
        std::thread::sleep(self.0);
        Reply::once(Err(CallFailure::Timeout))
    }
}

#[test]
fn an_agent_waits_no_longer_than_it_is_told_and_the_log_says_so() {
    let log = Bytes::default();
    let make = |patience| {
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let setting = StrategySetting {
            spec: spec("codex"),
            window: Window::new(WINDOW),
            sizes: Sizes::Counted,
            summariser: Arc::new(Slow(Duration::from_secs(2))),
            counts,
        };
        Live::new(vec![setting], Duration::from_millis(patience), READER)
    };
    let live = make(200);
    live.keep(Log::new(log.clone()), true);
    let calls = 20;
    for call in 0..=calls {
        let own = body(Api::Messages, &items(Api::Messages, call));
        let sent = live.send(
            &LiveCell::default(),
            Api::Messages,
            &own,
            Timestamp(i64::try_from(call).unwrap()),
        );
        let answer = json!({"role": "assistant", "content": [{"type": "text", "text": "ok"}], "usage": {"input_tokens": 300 * (call + 1)}});
        live.answered(
            sent.ticket.unwrap(),
            Some(&answer.to_string()),
            Timestamp(i64::try_from(call).unwrap()),
        );
    }
    let late = log
        .events()
        .iter()
        .filter(|event| matches!(event, Event::Sent { skipped: Some(Skip::Late), .. }))
        .count();
    assert!(late > 0);
    let finished = live.finished();
    let [cell] = &finished[..] else { panic!("{finished:?}") };
    assert_eq!(cell.measured.skipped.values().sum::<u64>(), late as u64);
    assert_eq!(
        (cell.measured.calls, cell.measured.billed.prompt()),
        (calls + 1, Tokens((0..=calls).map(|call| 300 * (call as u64 + 1)).sum()))
    );
    // Nobody waits for a log, and it says which calls were late.
    assert_eq!(make(1).restore(&log.events()), Ok(Vec::new()));
}

#[test]
fn a_key_in_a_body_is_sent_and_not_logged() {
    let log = Bytes::default();
    let (live, _) = front(None);
    live.keep(Log::new(log.clone()), true);
    let cell = LiveCell { strategy: 1, ..LiveCell::default() };
    let tools = r#""tools": [{"type": "mcp", "server_label": "x", "authorization" : "k\"key-é", "headers": {"x": "key-2"}}], "mcp_servers": [{"authorization_token": "key-3"}], "before":"#;
    let mut changed = 0;
    for calls in 1..8 {
        let body = body(Api::Responses, &items(Api::Responses, calls));
        let body = body.replacen("\"tools\":", tools, 1);
        let sent = live.send(&cell, Api::Responses, &body, Timestamp(0));
        let Some(sent) = sent.body else { continue };
        let around = |text: &str| {
            let (before, rest) = text.split_once("\"input\"").unwrap();
            let (_, behind) = rest.rsplit_once("\"unknown\"").unwrap();
            (before.to_owned(), behind.to_owned())
        };
        assert_eq!(around(&sent), around(&body));
        changed += 1;
    }
    assert!(changed > 0);
    let events = log.events();
    let logged = serde_json::to_string(&events).unwrap();
    assert!(logged.contains("server_label") && !logged.contains("key-"));
    assert_eq!(front(None).0.restore(&events), Ok(Vec::new()));
}

#[test]
fn a_changed_result_keeps_its_item_and_a_log_keeps_its_strategies() {
    let log = Bytes::default();
    let (live, _) = front(None);
    live.keep(Log::new(log.clone()), true);
    let cell = LiveCell { strategy: 1, ..LiveCell::default() };
    let mut items = vec![
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}),
    ];
    for call in 0..6 {
        let id = format!("c{call}");
        items.push(json!({"type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": "*** Begin"}));
        let output = format!("{call} {}", "done\n".repeat(200));
        items.push(json!({"type": "custom_tool_call_output", "call_id": id, "output": output, "odd": call}));
        let sent = live.send(&cell, Api::Responses, &body(Api::Responses, &items), Timestamp(call));
        if call == 5 {
            let read: Value = serde_json::from_str(&sent.body.unwrap()).unwrap();
            let sent = read["input"].as_array().unwrap();
            let changed = (0..items.len()).filter(|at| sent[*at] != items[*at]);
            let changed: Vec<&Value> = changed.map(|at| &sent[at]).collect();
            assert_eq!(changed.len(), 4);
            assert!(
                changed
                    .iter()
                    .all(|it| it["type"] == "custom_tool_call_output" && it["odd"].is_number())
            );
        }
    }
    let events = log.events();
    assert_eq!(front(None).0.restore(&events), Ok(Vec::new()));
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let other = StrategySetting {
        spec: spec("none"),
        window: Window::new(WINDOW),
        sizes: Sizes::Counted,
        summariser: Arc::new(Offline::new(counts.clone())),
        counts,
    };
    let other = Live::new(vec![other], Duration::from_secs(1), READER);
    assert_eq!(other.restore(&events), Err(NotItsLog::Settings));
    // Without the first request, those that follow are other calls.
    let torn: Vec<Event> =
        events.into_iter().enumerate().filter(|(at, _)| *at != 1).map(|(_, it)| it).collect();
    assert_eq!(front(None).0.restore(&torn), Err(NotItsLog::Order));
}

/// The items that the last of six requests has under a strategy, each with what was sent for it.
fn sent_for(strategy: &str, api: Api, round: fn(i64, &str) -> Vec<Value>) -> Vec<[Value; 2]> {
    let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
    let setting = StrategySetting {
        spec: spec(strategy),
        window: Window::new(WINDOW),
        sizes: Sizes::Counted,
        summariser: Arc::new(Offline::new(counts.clone())),
        counts,
    };
    let live = Live::new(vec![setting], Duration::from_mins(1), READER);
    let (mut own, mut sent) = (vec![json!({"role": "user", "content": "go"})], Vec::new());
    for call in 0..6 {
        own.extend(round(call, &format!("{call} {}", "done\n".repeat(200))));
        let body = body(api, &own);
        let now = live.send(&LiveCell::default(), api, &body, Timestamp(call));
        let read: Value = serde_json::from_str(&now.body.unwrap_or(body)).unwrap();
        let list = read.get("messages").unwrap_or(&read["input"]);
        sent.clone_from(list.as_array().unwrap());
    }
    let found = sent.into_iter().map(|item| {
        let key = if item["call_id"].is_string() { "call_id" } else { "role" };
        let same = own.iter().find(|own| own["type"] == item["type"] && own[key] == item[key]);
        [same.unwrap_or(&Value::Null).clone(), item]
    });
    found.collect()
}

#[test]
fn calls_and_results_stay_of_their_kinds() {
    let thinks = |call: i64, text: &str| {
        let id = format!("c{call}");
        vec![
            json!({"type": "reasoning", "id": format!("rs{call}"), "summary": [], "encrypted_content": "x"}),
            json!({"type": "custom_tool_call", "call_id": id, "name": "apply_patch", "input": "*** Begin"}),
            json!({"type": "custom_tool_call_output", "call_id": id, "output": text}),
        ]
    };
    let sent = sent_for("anthropic-clear-thinking", Api::Responses, thinks);
    assert!(sent.len() < 19, "thoughts are cleared");
    let calls = sent.iter().filter(|[_, item]| item["call_id"].is_string());
    assert!(
        calls.clone().count() == 12 && calls.clone().all(|[own, item]| own == item),
        "{sent:?}"
    );
    let shell = |call: i64, text: &str| {
        let id = format!("c{call}");
        let output =
            json!([{"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": call}}]);
        vec![
            json!({"type": "shell_call", "call_id": id, "action": {"commands": ["ls"]}}),
            json!({"type": "shell_call_output", "call_id": id, "output": output}),
        ]
    };
    let masking = "observation-masking[clear_results.keep_last=2]";
    let sent = sent_for(masking, Api::Responses, shell);
    let changed: Vec<_> = sent.iter().filter(|[own, item]| own != item).collect();
    assert!(changed.len() == 4, "{sent:?}");
    for [own, item] in changed {
        assert_eq!(item["output"][0]["outcome"], own["output"][0]["outcome"]);
        assert!(item["output"][0]["stdout"].is_string(), "{item}");
    }
    let old = |call: i64, text: &str| {
        let function_call = json!({"name": format!("read{call}"), "arguments": "{}"});
        vec![
            json!({"role": "assistant", "content": null, "function_call": function_call}),
            json!({"role": "function", "name": format!("read{call}"), "content": text}),
        ]
    };
    let sent = sent_for(masking, Api::ChatCompletions, old);
    let results = sent.iter().filter(|[_, item]| item["role"] == "function");
    assert_eq!(results.count(), 6, "{sent:?}");
}

#[test]
fn an_answer_that_was_cut_is_billed_and_is_no_answer() {
    let log = Bytes::default();
    let (live, _) = front(Some(&log));
    let body = body(Api::Messages, &items(Api::Messages, 1));
    let ticket =
        live.send(&LiveCell::default(), Api::Messages, &body, Timestamp(1)).ticket.unwrap();
    let answers = ["", "half a ", "half a word"].map(|text| {
        let content = match text {
            "" => json!([]),
            text => json!([{"type": "text", "text": text}]),
        };
        let usage = json!({"input_tokens": 100, "output_tokens": 1});
        json!({"type": "message", "role": "assistant", "content": content, "usage": usage})
            .to_string()
    });
    live.cut(ticket, &answers[0]);
    live.cut(ticket, &answers[1]);
    live.cut(ticket, "{}");
    live.answered(ticket, Some(&answers[2]), Timestamp(5));
    let restored = front(None).0;
    assert_eq!(restored.restore(&log.events()), Ok(Vec::new()));
    for live in [live, restored] {
        let measured = live.finished().remove(0).measured;
        assert_eq!((measured.calls, measured.billed.total()), (1, Tokens(303)));
    }
}

/// Sends prompts with the answers between them, and has the last answered. Returns the task in the log.
fn task_of(
    live: &Live,
    log: &Bytes,
    client: Option<&str>,
    turns: &[&str],
    answer: &str,
) -> Option<String> {
    let metadata = json!({"user_id": client});
    let roles = ["user", "assistant"].into_iter().cycle();
    let messages = roles.zip(turns);
    let messages = messages.map(|(role, text)| json!({"role": role, "content": text}));
    let messages: Vec<_> = messages.collect();
    let body = json!({"model": "m", "metadata": metadata, "messages": messages}).to_string();
    let sent = live.send(&LiveCell::default(), Api::Messages, &body, Timestamp(1));
    let answer = json!({"role": "assistant", "content": [{"type": "text", "text": answer}]});
    live.answered(sent.ticket.unwrap(), Some(&answer.to_string()), Timestamp(2));
    let mut events = log.events().into_iter().rev();
    events.find_map(|event| match event {
        Event::Request { cell, .. } => Some(cell.task),
        _ => None,
    })?
}

#[test]
fn a_request_that_names_no_task_has_the_only_one_of_its_client() {
    let log = Bytes::default();
    let prompts = [("a", "Fix the parser"), ("b", "Mend the tests")];
    let prompts = prompts.map(|(task, prompt)| (task.to_owned(), prompt.to_owned()));
    let tasks = TaskNames { prompts: prompts.into(), ..TaskNames::default() };
    let live = front(Some(&log)).0.with_tasks(tasks);
    let summary = "The parser reads dates by their first part, which is the day.";
    let compacted = format!("So far: {summary}");
    for (client, turns, answer, expected) in [
        (Some("s1"), &["Fix the parser"][..], "Which one?", Some("a")),
        // A sub-agent.
        (Some("s1"), &["List all files"], "None.", Some("a")),
        (Some("s2"), &["List all files"], "None.", None),
        (Some("s2"), &["Mend the tests"], "Yes.", Some("b")),
        // What runs keeps its task, and so does one that has none.
        (Some("s2"), &["List all files", "None.", "Look again."], "Still none.", None),
        (Some("s2"), &["List two files"], "None.", Some("b")),
        (Some("s2"), &["Fix the parser"], "Yes.", Some("a")),
        (Some("s2"), &["List two files", "None.", "Look again."], "Still none.", Some("b")),
        // The client has two.
        (Some("s2"), &["List three files"], "None.", None),
        (None, &["Fix the parser"], summary, Some("a")),
        // Behind a compaction.
        (None, &[&*compacted], "Go on.", Some("a")),
        (None, &[&*compacted, "Go on.", "Done?"], "Yes.", Some("a")),
        (None, &["List all files"], "None.", None),
    ] {
        let task = task_of(&live, &log, client, turns, answer);
        assert_eq!(task.as_deref(), expected, "{client:?} {turns:?}");
    }
    assert_eq!(front(None).0.restore(&log.events()), Ok(Vec::new()));
}

#[test]
fn a_conversation_that_gets_another_name_goes_on() {
    let (live, _) = front(None);
    let agents = ["one", "other"];
    for call in 0..6 {
        for (agent, said) in agents.into_iter().enumerate() {
            let mut all = items(Api::ChatCompletions, call);
            all[1] = json!({"role": "user", "content": said});
            let body = json!({"messages": all, "user": format!("{said} {}", call / 2)});
            let sent = live.send(
                &LiveCell::default(),
                Api::ChatCompletions,
                &body.to_string(),
                Timestamp(0),
            );
            let ticket = sent.ticket.unwrap();
            assert_eq!((ticket.conversation, ticket.call), (agent, call), "{said}");
        }
    }
}

#[test]
fn answers_without_words_and_those_to_requests_that_no_strategy_saw_are_billed() {
    let log = Bytes::default();
    let (live, _) = front(Some(&log));
    let cell = LiveCell { task: Some("fix".to_owned()), ..LiveCell::default() };
    for (at, api, silent) in [
        (0, Api::Messages, json!({"role": "assistant", "content": []})),
        (
            1,
            Api::ChatCompletions,
            json!({"choices": [{"message": {"role": "assistant", "content": null}}]}),
        ),
        (2, Api::Responses, json!({"output": []})),
    ] {
        let sent = live.send(&cell, api, &body(api, &items(api, 1)), Timestamp(0));
        let mut answer = silent;
        answer["usage"] = match api {
            Api::ChatCompletions => json!({"prompt_tokens": 100, "completion_tokens": 2}),
            _ => json!({"input_tokens": 100, "output_tokens": 2}),
        };
        answer["model"] = json!("other");
        let answer = answer.to_string();
        live.answered(sent.ticket.unwrap(), Some(&answer), Timestamp(1));
        live.answered_apart(&cell, api, &answer);
        live.answered_apart(&LiveCell::default(), api, &answer);
        let again = front(None).0;
        assert_eq!(again.restore(&log.events()), Ok(Vec::new()));
        for live in [&live, &again] {
            let [cell] = <[_; 1]>::try_from(live.finished()).unwrap();
            let answers = 2 * (at + 1);
            assert_eq!((cell.measured.calls, cell.measured.unbilled), (answers, 0), "{api:?}");
            assert_eq!(cell.measured.billed.prompt(), Tokens(100 * answers as u64));
            // The agent named no model, and each answer to the requests apart did.
            let apart = cell.measured.by_model["other"];
            assert_eq!(apart.prompt(), Tokens(50 * answers as u64));
        }
    }
}
