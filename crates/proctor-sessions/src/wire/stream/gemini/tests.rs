//! Streams of Gemini, put together.

use super::super::{Api, Assembly, StreamProblem};
use super::*;

fn answer(stream: &str, is_stream: bool) -> Result<Value, StreamProblem> {
    let mut assembly = Assembly::new(Api::GenerateContent, is_stream);
    stream.as_bytes().chunks(7).for_each(|piece| {
        assembly.push(piece);
    });
    let whole = assembly.finish()?;
    Ok(serde_json::from_str(whole.get()).unwrap())
}

#[test]
fn a_streamed_content_is_put_together() {
    let parts =
        |parts: &str| format!(r#""candidates":[{{"content":{{"parts":[{parts}],"role":"model"}}"#);
    let events = [
        format!(
            r#"{{{},"index":0}}],"modelVersion":"gemini-x","responseId":"r1"}}"#,
            parts(r#"{"text":"hm","thought":true}"#)
        ),
        format!("{{{}}}]}}", parts(r#"{"text":"Grüß "}"#)),
        format!(
            "{{{}}}]}}",
            parts(
                r#"{"text":"dich"},{"functionCall":{"name":"read","args":{"p":1}},"thoughtSignature":"c2ln"}"#
            )
        ),
        format!(
            r#"{{{},"finishReason":"STOP"}}],"usageMetadata":{{"promptTokenCount":9,"candidatesTokenCount":4}}}}"#,
            parts(r#"{"text":"","thoughtSignature":"bW9yZQ=="}"#)
        ),
    ];
    let expected = json!({
        "candidates": [{
            "content": {"role": "model", "parts": [
                {"text": "hm", "thought": true},
                {"text": "Grüß dich"},
                {"functionCall": {"name": "read", "args": {"p": 1}}, "thoughtSignature": "c2ln"},
                {"text": "", "thoughtSignature": "bW9yZQ=="},
            ]},
            "index": 0, "finishReason": "STOP",
        }],
        "modelVersion": "gemini-x", "responseId": "r1",
        "usageMetadata": {"promptTokenCount": 9, "candidatesTokenCount": 4},
    });
    let lines = |events: &[String]| -> String {
        let events = events.iter();
        let lines: Vec<String> = events.map(|event| format!("data: {event}\r\n\r\n")).collect();
        lines.concat()
    };
    assert_eq!(answer(&lines(&events), true), Ok(expected.clone()));
    let list = format!("[{}\n]", events.join(",\r\n"));
    assert_eq!(answer(&list, false), Ok(expected.clone()));
    let wrapped = events.each_ref().map(|event| format!("{{\"response\":{event}}}"));
    assert_eq!(answer(&lines(&wrapped), true), Ok(expected));
    assert_eq!(answer(&lines(&events[..3]), true), Err(StreamProblem::BrokeOff));
    assert!(answer(&list[..list.len() - 9], false).is_err());
    for odd in
        [r#"{"content":"hi"}"#, r#"{"content":[]}"#, "7", r#"{"content":{"parts":[7,{"text":1}]}}"#]
    {
        let stream =
            format!(r#"data: {{"candidates":[{odd}],"usageMetadata":1,"promptFeedback":7}}"#);
        assert_eq!(answer(&stream, true), Err(StreamProblem::BrokeOff), "{odd}");
    }
    let failed = r#"data: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED"}}"#;
    assert!(matches!(answer(failed, true), Err(StreamProblem::Reported(_))));
}
