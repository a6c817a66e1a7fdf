//! Batches of a provider's: many requests sent in one, answered within a day, at a part of the price.
//!
//! OpenAI's API takes a file of requests and gives back a file of answers; Anthropic's takes the
//! requests themselves. In both an answer is known by the name its request was given.

use std::time::Duration;

use hyper::body::Bytes;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{LiveModel, Waits, Wire};
use crate::model::{CallFailure, Response, api};
use crate::session::wire::Provider;
use crate::units::ContentHash;

/// The entry of a batch's metadata that holds its label.
const LABEL: &str = "proctor";

/// Bytes of an answer about a batch, at most: providers take batches of 256 MB.
const MOST_BYTES: usize = 1 << 30;

/// Bytes of one answer in a batch, at most: no model says as much.
const MOST_LINE: usize = 16 << 20;

/// How often a file of answers is fetched that was cut off.
const FETCHES: usize = 3;

/// How often a call about a batch is made, where it fails for a reason that passes.
const ATTEMPTS: u32 = 6;

/// A request of a batch.
#[derive(Debug, Clone)]
pub struct BatchRequest {
    /// Names it among the answers: letters, digits, `-` and `_`.
    pub name: String,
    /// The request, written for a batch.
    pub body: String,
}

/// The result of a request of a batch, by its name.
pub type BatchAnswer = (String, Result<Response, CallFailure>);

/// Why a batch cannot be sent or fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The provider refuses it for good.
    #[error("the provider refuses the batch ({0})")]
    Refused(String),
    /// The provider knows no such batch, or has thrown its answers away.
    #[error("the provider has no batch of that name")]
    Gone,
    /// The provider cannot be reached, or does not answer as its documents say.
    #[error("the provider does not answer about the batch ({0})")]
    Unreached(String),
}

/// A request as a line of OpenAI's file. Definitions of tools are as recorded, perhaps laid out over lines; within a
/// string JSON has no line break.
fn line_of(BatchRequest { name, body }: &BatchRequest) -> String {
    let url = "/v1/chat/completions";
    let flat = body.replace(['\r', '\n'], " ");
    format!("{{\"custom_id\":\"{name}\",\"method\":\"POST\",\"url\":\"{url}\",\"body\":{flat}}}\n")
}

impl LiveModel {
    /// Sends requests as one batch, and returns its name at the provider. `label` is a name of our own, by which
    /// [`find_batch`](Self::find_batch) finds it.
    pub fn submit(&self, label: &str, requests: &[BatchRequest]) -> Result<String, BatchError> {
        match self.wire.provider {
            Provider::Anthropic => {
                let lines = requests.iter().map(|BatchRequest { name, body }| {
                    format!(r#"{{"custom_id":"{name}","params":{body}}}"#)
                });
                let lines: Vec<String> = lines.collect();
                let body = format!(r#"{{"requests":[{}]}}"#, lines.join(","));
                name_of(&self.made("/v1/messages/batches", body)?)
            }
            Provider::OpenAi => {
                let lines = requests.iter().map(line_of);
                let file = name_of(&self.upload(lines.collect())?)?;
                let body = json!({
                    "input_file_id": file,
                    "endpoint": "/v1/chat/completions",
                    "completion_window": "24h",
                    "metadata": { LABEL: label },
                });
                name_of(&self.made("/batches", body.to_string())?)
            }
        }
    }

    /// Finds the batch of this label among those that the provider has taken, but none that `is_known`.
    ///
    /// Anthropic's batches have no label: the newest with as many requests is returned, which another may have
    /// sent. The names of its answers tell.
    pub fn find_batch(
        &self,
        label: &str,
        requests: usize,
        is_known: &dyn Fn(&str) -> bool,
    ) -> Result<Option<String>, BatchError> {
        let (path, after, is_same): (_, _, &dyn Fn(&Value) -> bool) = match self.wire.provider {
            Provider::Anthropic => ("/v1/messages/batches", "after_id", &|batch| {
                let counts = batch["request_counts"].as_object().into_iter().flatten();
                let count: u64 = counts.filter_map(|(_, count)| count.as_u64()).sum();
                count == requests as u64 && batch["archived_at"].is_null()
            }),
            Provider::OpenAi => ("/batches", "after", &|batch| {
                batch["metadata"][LABEL] == label && batch["status"] != "failed"
            }),
        };
        let mut page = format!("{path}?limit=100");
        loop {
            let listed = match self.fetched(&page) {
                Err(BatchError::Gone) => Value::Null,
                fetched => read(&fetched?)?,
            };
            let Some(batches) = listed["data"].as_array() else {
                return Err(BatchError::Unreached("it lists no batches".to_owned()));
            };
            for batch in batches.iter().filter(|batch| is_same(batch)) {
                let id = name_of(batch)?;
                if !is_known(&id) {
                    return Ok(Some(id));
                }
            }
            match batches.last().filter(|_| listed["has_more"] == true) {
                Some(last) => page = format!("{path}?limit=100&{after}={}", name_of(last)?),
                None => return Ok(None),
            }
        }
    }

    /// The results of the batch of this name, in which requests that were never answered are missing; `None` while it
    /// is under way.
    pub fn batch(&self, name: &str) -> Result<Option<Vec<BatchAnswer>>, BatchError> {
        let name = checked(name)?;
        match self.wire.provider {
            Provider::Anthropic => {
                let path = format!("/v1/messages/batches/{name}");
                let state = read(&self.fetched(&path)?)?;
                match state["processing_status"].as_str() {
                    Some("ended") => {}
                    Some("in_progress" | "canceling") => return Ok(None),
                    _ => return Err(self.unknown(&state["processing_status"])),
                }
                let counts = ["succeeded", "errored", "canceled", "expired"]
                    .map(|end| &state["request_counts"][end]);
                // The address in the reply is not followed: it would receive the key.
                let results = self.answers(&format!("{path}/results"), &counts)?;
                Ok(Some(results))
            }
            Provider::OpenAi => {
                let state = read(&self.fetched(&format!("/batches/{name}"))?)?;
                match state["status"].as_str().unwrap_or_default() {
                    "completed" | "expired" | "cancelled" => {}
                    "failed" => {
                        let errors = state["errors"]["data"].as_array().into_iter().flatten();
                        let said: Vec<&str> =
                            errors.filter_map(|error| error["message"].as_str()).take(3).collect();
                        return Err(BatchError::Refused(self.wire.said(&said.join("; "))));
                    }
                    "validating" | "in_progress" | "finalizing" | "cancelling" => {
                        return Ok(None);
                    }
                    _ => return Err(self.unknown(&state["status"])),
                }
                let mut ended = Vec::new();
                let completed = &state["request_counts"]["completed"];
                for (file, count) in
                    [("output_file_id", completed), ("error_file_id", &Value::Null)]
                {
                    if let Some(file) = state[file].as_str() {
                        let path = format!("/files/{}/content", checked(file)?);
                        ended.extend(self.answers(&path, &[count])?);
                    }
                }
                Ok(Some(ended))
            }
        }
    }

    /// The error of a batch in a state that the provider's documents do not name: it may never end.
    fn unknown(&self, status: &Value) -> BatchError {
        let status = self.wire.said(&status.to_string());
        BatchError::Unreached(format!("its status is {status}, which is none that is known"))
    }

    /// Fetches a file of answers, which has as many lines as these counts say. One that was cut is fetched again: what
    /// it lacks would be paid for twice.
    fn answers(&self, path: &str, counts: &[&Value]) -> Result<Vec<BatchAnswer>, BatchError> {
        let count: u64 = counts.iter().filter_map(|count| count.as_u64()).sum();
        for _ in 0..FETCHES {
            let bytes = self.fetched(path)?;
            let lines = bytes.split(|byte| *byte == b'\n');
            let lines: Vec<&[u8]> = lines.filter(|line| !line.trim_ascii().is_empty()).collect();
            let last = lines.last().map(|line| serde_json::from_slice::<IgnoredAny>(line));
            if last.is_none_or(|last| last.is_ok()) && lines.len() as u64 >= count {
                return Ok(answers(self.wire.provider, &lines));
            }
        }
        Err(BatchError::Unreached("its file of answers is cut off".to_owned()))
    }

    /// Uploads a file of requests.
    fn upload(&self, lines: String) -> Result<Value, BatchError> {
        // No text holds its own hash.
        let boundary = ContentHash::of(&lines);
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n\
             --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; \
             filename=\"requests.jsonl\"\r\nContent-Type: application/jsonl\r\n\r\n{lines}\r\n\
             --{boundary}--\r\n"
        );
        drop(lines);
        let kind = format!("multipart/form-data; boundary={boundary}");
        let bytes = self.sent(&Method::POST, "/files", Some(&(body.into(), kind)))?;
        read(&bytes)
    }

    fn made(&self, path: &str, body: String) -> Result<Value, BatchError> {
        let body = (body.into(), "application/json".to_owned());
        read(&self.sent(&Method::POST, path, Some(&body))?)
    }

    fn fetched(&self, path: &str) -> Result<Vec<u8>, BatchError> {
        self.sent(&Method::GET, path, None)
    }

    /// Makes one call, again where it fails for a reason that passes.
    fn sent(
        &self,
        method: &Method,
        path: &str,
        body: Option<&(Bytes, String)>,
    ) -> Result<Vec<u8>, BatchError> {
        let wire = &self.wire;
        let address = wire.url.as_str();
        let base = address.strip_suffix(self.dialect.path()).unwrap_or(address);
        let url = format!("{base}{path}");
        // A batch whose creation was not confirmed may exist: it is not sent again.
        let safe = *method == Method::GET;
        let waits = &wire.connection.waits;
        let called = async {
            let mut failed = String::new();
            for attempt in 0..ATTEMPTS {
                if attempt > 0 {
                    let pause = wire.pacer.pause(attempt, ContentHash::of(&url));
                    if waits.on(tokio::time::sleep(pause)).await.is_none() {
                        break;
                    }
                }
                match once(wire, method.clone(), &url, body.cloned()).await {
                    Ok((200..=299, bytes)) => return Ok(bytes),
                    Ok((404 | 410, _)) => return Err(BatchError::Gone),
                    Ok((status, _)) if passes(status, safe) => failed = format!("HTTP {status}"),
                    Ok((status @ 500..=599, _)) => {
                        return Err(BatchError::Unreached(format!("HTTP {status}")));
                    }
                    Ok((status, bytes)) => {
                        let said = format!("HTTP {status}: {}", String::from_utf8_lossy(&bytes));
                        return Err(BatchError::Refused(wire.said(&said)));
                    }
                    Err(problem) if safe => problem.clone_into(&mut failed),
                    Err(problem) => return Err(BatchError::Unreached(problem.to_owned())),
                }
            }
            Err(BatchError::Unreached(failed))
        };
        self.engine.0.block_on(called)
    }
}

/// Whether a call that failed with this status is made again: one that changes something only if it was turned away.
fn passes(status: u16, is_safe: bool) -> bool {
    matches!(status, 429 | 503 | 529) || is_safe && matches!(status, 408 | 409 | 425 | 500..=599)
}

/// One call: its status, and all that was answered.
async fn once(
    wire: &Wire,
    method: Method,
    url: &str,
    body: Option<(Bytes, String)>,
) -> Result<(u16, Vec<u8>), &'static str> {
    let mut headers = wire.headers.clone();
    // A stop does not end the sending of a batch: without the reply its name would not be known.
    let waits = match body {
        Some(_) => Waits::default(),
        None => wire.connection.waits.clone(),
    };
    let mut request = wire.client.request(method, url);
    match body {
        Some((body, kind)) => {
            let kind = HeaderValue::from_str(&kind).map_err(|_| "a header cannot be sent")?;
            headers.insert(CONTENT_TYPE, kind);
            request = request.body(body);
        }
        None => drop(headers.remove(CONTENT_TYPE)),
    }
    let sent = timeout(wire.connection.whole, request.headers(headers).send());
    let sent = waits.on(sent).await.ok_or("the run was stopped")?;
    let mut answer = sent.map_err(|_| "timed out")?.map_err(|_| "no connection")?;
    let status = answer.status().as_u16();
    let between = wire.connection.between.max(Duration::from_secs(1));
    let mut bytes = Vec::new();
    loop {
        let piece = timeout(between, answer.chunk()).await.map_err(|_| "timed out")?;
        match piece.map_err(|_| "the answer broke off")? {
            Some(piece) if bytes.len() + piece.len() > MOST_BYTES => {
                return Err("its answer is longer than 1 GiB");
            }
            Some(piece) => bytes.extend_from_slice(&piece),
            None => return Ok((status, bytes)),
        }
    }
}

fn read(bytes: &[u8]) -> Result<Value, BatchError> {
    serde_json::from_slice(bytes)
        .map_err(|_| BatchError::Unreached("its answer is no JSON".to_owned()))
}

fn name_of(made: &Value) -> Result<String, BatchError> {
    checked(made["id"].as_str().unwrap_or_default())
}

/// A name that can be part of an address.
fn checked(name: &str) -> Result<String, BatchError> {
    if name.is_empty()
        || name.len() > 200
        || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    {
        let problem = "what it names is no name of a batch or a file";
        return Err(BatchError::Unreached(problem.to_owned()));
    }
    Ok(name.to_owned())
}

/// The answers in lines, by the names of their requests. A line that is none is left out, and so is one that is too
/// long: its request counts as never answered.
fn answers(provider: Provider, lines: &[&[u8]]) -> Vec<BatchAnswer> {
    let short = lines.iter().filter(|line| line.len() <= MOST_LINE);
    let values = short.filter_map(|line| serde_json::from_slice::<Value>(line).ok());
    let named = values.filter_map(|value| {
        let name = value["custom_id"].as_str()?.to_owned();
        let (result, response) = (&value["result"], &value["response"]);
        let read = match (provider, result["type"].as_str()) {
            (Provider::Anthropic, Some("succeeded")) => api::read(provider, &result["message"]),
            (Provider::Anthropic, Some("errored")) => Err(CallFailure::SERVER),
            (Provider::Anthropic, _) => Err(CallFailure::NoAnswer),
            (Provider::OpenAi, _) if response["status_code"] == 200 => {
                api::read(provider, &response["body"])
            }
            (Provider::OpenAi, _) => Err(CallFailure::SERVER),
        };
        Some((name, read))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Purpose, Request, Task};
    use crate::session::{JsonText, ToolSchema};
    use crate::units::Tokens;

    #[test]
    fn a_request_is_one_line_even_where_a_tool_is_defined_over_several() {
        let laid_out = "{\"type\": \"function\",\r\n \"function\": {\"name\": \"a\", \"description\": \"x\\ny\"}}";
        let tool = ToolSchema { name: "a".into(), definition: JsonText::parse(laid_out).unwrap() };
        let request = Request {
            tools: Some([tool].into()),
            ..Request::of_text(Purpose::Probe, Task::Answer, "Which port?", Tokens(9))
        };
        let dialect = api::Dialect::new(Provider::OpenAi, "m");
        let name = "n".to_owned();
        let body = dialect.body(&request);
        assert!(body.contains('\n'), "{body}");
        let line = line_of(&BatchRequest { name, body });
        assert_eq!(line.find(['\r', '\n']), Some(line.len() - 1));
        let value: Value = serde_json::from_str(&line).unwrap();
        let function = &value["body"]["tools"][0]["function"];
        assert_eq!(function["description"], "x\ny");
    }
}
