//! Logs of agents that nothing but their words tells apart: each is a session, and each call that was paid is on a bill.

use proctor_sessions::{CompactedTo, Session, Tag};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::recorded::billed;

/// A log of Anthropic's API as it grows.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    paid: u64,
}

impl Log {
    fn add(&mut self, messages: &[Value], answer: &Value) {
        let tokens = 100 + self.lines.len() as u64;
        self.paid += tokens;
        let request = json!({"model": "m", "system": "You mend clocks.", "messages": messages,
            "tools": [{"name": "read"}]});
        let response = json!({"type": "message", "id": format!("msg_{tokens}"), "role": "assistant",
            "content": answer, "usage": {"input_tokens": tokens, "output_tokens": 2}});
        let line = json!({"request": request, "response": response});
        self.lines.push(line.to_string());
    }

    /// The calls of each session, the fewest first.
    fn calls(&self) -> Vec<usize> {
        let text = self.lines.join("\n");
        let sessions = super::read("anthropic", text.as_bytes()).expect("a good log");
        let bills: u64 = sessions.iter().map(billed).sum();
        assert_eq!(bills, self.paid, "{text}");
        for session in &sessions {
            let messages = session.messages();
            assert!(!messages.iter().any(|one| one.has_tag(Tag::Orphan)), "{text}");
            assert!(session.compactions().is_empty(), "{text}");
        }
        let mut calls: Vec<usize> = sessions.iter().map(|one| one.calls().len()).collect();
        calls.sort_unstable();
        calls
    }
}

fn said(role: &str, content: &Value) -> Value {
    json!({"role": role, "content": content})
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Tries of one task at the same time: nothing but the ids of their calls tells them apart, where they say the same.
    #[test]
    fn each_try_of_a_task_is_a_session(
        tries in 2_usize..5,
        calls in prop::collection::vec(2_usize..6, 4),
        order in prop::collection::vec(0_usize..4, 40),
        is_same: bool,
    ) {
        let mut log = Log::default();
        let mut contexts = vec![vec![said("user", &text("The clock is slow."))]; tries];
        let mut made = vec![0; tries];
        let rest = (0..tries).cycle().take(6 * tries);
        for own in order.into_iter().map(|own| own % tries).chain(rest) {
            let step = made[own];
            if step == calls[own] {
                continue;
            }
            let which = if is_same { 0 } else { own };
            let id = format!("toolu_{own}_{step}");
            let asks = json!([{"type": "text", "text": format!("Part {step} of {which}.")},
                {"type": "tool_use", "id": id, "name": "read", "input": {"part": step}}]);
            let result = json!([{"type": "tool_result", "tool_use_id": id,
                "content": format!("part {step} of clock {which}")}]);
            log.add(&contexts[own], &asks);
            contexts[own].extend([said("assistant", &asks), said("user", &result)]);
            made[own] += 1;
        }
        let mut wanted = calls[..tries].to_vec();
        wanted.sort_unstable();
        prop_assert_eq!(log.calls(), wanted);
    }

    /// A model that says nothing, and words that a client puts into its mouth.
    #[test]
    fn silent_and_prefilled_answers_are_calls(turns in prop::collection::vec((0_usize..4, any::<bool>()), 1..12)) {
        let mut log = Log::default();
        let mut context = Vec::new();
        let mut calls = 0;
        for (turn, (silent, is_prefilled)) in turns.into_iter().enumerate() {
            context.push(said("user", &text(&format!("Question {turn} about the clock."))));
            if silent < 2 {
                log.add(&context, &json!([]));
                // The client asks again, with more words or without.
                if silent == 0 && let Some(last) = context.last_mut() {
                    let again = json!({"type": "text", "text": "Please answer."});
                    last["content"].as_array_mut().expect("a list").push(again);
                }
            }
            calls += 1;
            let answer = format!("{turn}, as the gears are worn}}");
            if is_prefilled {
                let begun = said("assistant", &text("{cause: "));
                log.add(&[&context[..], &[begun]].concat(), &text(&answer));
                context.push(said("assistant", &text(&format!("{{cause: {answer}"))));
            } else {
                log.add(&context, &text(&answer));
                context.push(said("assistant", &text(&answer)));
            }
        }
        prop_assert_eq!(log.calls(), [calls]);
    }
}

/// An agent puts its summary in front of the newest calls, again and again: that is no other wording of its task.
#[test]
fn each_summary_in_front_of_calls_that_stay_is_a_compaction() {
    let mut log = Log::default();
    let mut context = vec![said("user", &text("The clock is slow, and nobody knows why."))];
    for step in 0..5 {
        let id = format!("toolu_{step}");
        let asks = json!([{"type": "tool_use", "id": id, "name": "read", "input": {"part": step}}]);
        let result =
            json!([{"type": "tool_result", "tool_use_id": id, "content": format!("part {step}")}]);
        log.add(&context, &asks);
        context.extend([said("assistant", &asks), said("user", &result)]);
        if step > 0 {
            let summary = format!(
                "The clock is slow; of its parts the first {step} were looked at, and are whole."
            );
            log.add(&[&context[..], &[said("user", &text("Sum up."))]].concat(), &text(&summary));
            // It may stand for no more than the one before.
            let gone = if step % 2 == 0 { 1 } else { context.len() - 2 };
            context.splice(..gone, [said("user", &text(&summary))]);
        }
    }
    log.add(&context, &text("It is worn."));
    let sessions = super::read("anthropic", log.lines.join("\n").as_bytes()).expect("a good log");
    let found: Vec<(usize, usize)> =
        sessions.iter().map(|one| (one.calls().len(), one.compactions().len())).collect();
    assert_eq!(found, [(6, 4)]);
    assert_eq!(sessions.iter().map(billed).sum::<u64>(), log.paid);
}

/// `OpenAI` compacts a conversation that is sent to another path, and bills it: the conversation goes on with what came back.
#[test]
fn a_compaction_that_the_provider_was_asked_for_is_recorded_with_its_bill() {
    let user = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    let model = |text: &str| json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]});
    let call = json!({"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{}"});
    let result = json!({"type": "function_call_output", "call_id": "c1", "output": "a worn gear"});
    let item = json!({"type": "compaction", "id": "cmp_1", "encrypted_content": "sealed"});
    let line = |input: &[&Value], object: &str, output: &[&Value], tokens: u64| {
        let usage = json!({"input_tokens": tokens, "output_tokens": 5});
        json!({"request": {"model": "m", "instructions": "You mend clocks.", "input": input},
            "response": {"id": format!("resp_{tokens}"), "object": object, "model": "m", "output": output, "usage": usage}})
        .to_string()
    };
    let asked = user("Why is it late?");
    let whole = line(&[&asked, &call, &result], "response.compaction", &[&asked, &item], 20);
    let read = |lines: &[&String]| -> Vec<Session> {
        let lines: Vec<&str> = lines.iter().map(|line| line.as_str()).collect();
        super::read("openai-responses", lines.join("\n").as_bytes()).expect("a good log")
    };
    let first = line(&[&asked], "response", &[&call], 10);
    let last = line(&[&asked, &item], "response", &[&model("A gear is worn.")], 40);
    let sessions = read(&[&first, &whole, &last]);
    let outlines: Vec<String> = sessions.iter().map(super::outline).collect();
    let expected = r#"0 user[typed_user] "Why is it late?"
1 model[] read c1 {} = 10/0/0/0/5
2 user[] ->c1 "a worn gear"
3 model[] "A gear is worn." = 40/0/0/0/5
compaction before 3: - 10 = 20/0/0/0/5: encrypted
skipped: compaction item: 1
"#;
    assert_eq!(outlines, [expected]);
    // It is paid, whatever else is in the log.
    for lines in [vec![&whole], vec![&first, &whole]] {
        let sessions = read(&lines);
        let compactions: Vec<_> = sessions.iter().flat_map(Session::compactions).collect();
        assert_eq!(compactions.len(), 1, "{lines:?}");
        assert_eq!(compactions[0].after, CompactedTo::Encrypted);
        assert_eq!(compactions[0].usage.map(|usage| usage.prompt().0), Some(20));
    }
}
