//! Servers on this machine: which there are, what each says of itself, and how fast it is.

use std::time::Duration;

use serde_json::{Value, json};

use super::{CallTime, Engine, LiveModel, attempt};
use crate::model::api::Dialect;
use crate::model::timing::{ServerTiming, TimedPrompt};
use crate::model::{CallFailure, Purpose, Request, Task};
use crate::units::{Tokens, index, whole};

/// The ports of servers, as each begins without being told: Ollama, llama.cpp, vLLM, LM Studio.
pub const PORTS: [u16; 4] = [11_434, 8_080, 8_000, 1_234];

/// A server on this machine says nothing of itself for longer than this only if there is none.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a server says of itself is read up to this size.
const MOST_BYTES: usize = 1 << 20;

/// vLLM and SGLang batch requests and keep the prefixes of many prompts; so many at once is ours.
const BATCHED_SLOTS: usize = 16;

/// Tokens of the small prompt that is timed.
const SMALL: Tokens = Tokens(500);

/// Tokens of the large one, at most: longer prompts take what is foreseen from the two.
const LARGE: f64 = 16_000.0;

/// Seconds for the large one, at most, were it read at the speed of the small one.
const LARGE_SECONDS: f64 = 60.0;

/// Tokens of the answer that is timed.
const TIMED_ANSWER: Tokens = Tokens(64);

/// What a server says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerFacts {
    /// Models that it can answer as, those that are loaded first.
    pub models: Vec<String>,
    /// Its context window, prompt and answer together.
    pub window: Option<Tokens>,
    /// How many prompts it keeps at once.
    pub slots: Option<usize>,
}

impl Engine {
    /// Asks the server at this base URL what it serves, and about `model`; `None` where none answers.
    pub fn facts(&self, base_url: &str, model: Option<&str>) -> Option<ServerFacts> {
        self.0.block_on(facts(base_url, model))
    }
}

async fn facts(base_url: &str, model: Option<&str>) -> Option<ServerFacts> {
    let client = super::client(None).ok()?;
    let base = base_url.trim_end_matches('/');
    let origin = base.strip_suffix("/v1").unwrap_or(base);
    let ask = async |path: &str, body: Option<Value>| -> Option<Value> {
        let url = format!("{origin}{path}");
        let request = match &body {
            Some(body) => client.post(url).body(body.to_string()),
            None => client.get(url),
        };
        let mut answer = request.timeout(PATIENCE).send().await.ok()?.error_for_status().ok()?;
        let mut said = Vec::new();
        while said.len() < MOST_BYTES
            && let Some(bytes) = answer.chunk().await.ok()?
        {
            said.extend_from_slice(&bytes);
        }
        serde_json::from_slice(&said).ok()
    };
    let listed = ask("/v1/models", None).await?;
    let mut of = ServerFacts { models: names(&listed["data"], "id"), ..ServerFacts::default() };
    let asked = model.or(of.models.first().map(String::as_str));
    // vLLM and SGLang.
    of.window = tokens(&entry(&listed["data"], "id", asked)["max_model_len"]);
    of.slots = of.window.map(|_| BATCHED_SLOTS);
    if of.window.is_some() {
        // They say no more.
    } else if let Some(props) = ask("/props", None).await {
        // llama.cpp.
        of.window = tokens(&props["default_generation_settings"]["n_ctx"]);
        let slots = props["total_slots"].as_u64();
        of.slots = slots.and_then(|slots| slots.try_into().ok());
    } else if let Some(loaded) = ask("/api/ps", None).await {
        // Ollama.
        let shown = ask("/api/show", Some(json!({ "model": asked }))).await;
        let loaded = &loaded["models"];
        of.window = num_ctx(&shown.unwrap_or_default())
            .or_else(|| tokens(&entry(loaded, "name", asked)["context_length"]));
        let loaded = names(loaded, "name");
        of.models.sort_by_key(|name| !loaded.contains(name));
    } else if let Some(listed) = ask("/api/v0/models", None).await {
        // LM Studio.
        of.window = tokens(&entry(&listed["data"], "id", asked)["loaded_context_length"]);
    }
    Some(of)
}

/// The names of models in a list, without those that only embed.
fn names(list: &Value, key: &str) -> Vec<String> {
    let names = list.as_array().into_iter().flatten().filter_map(|entry| entry[key].as_str());
    names.filter(|name| !name.contains("embed")).map(str::to_owned).collect()
}

fn entry<'a>(list: &'a Value, key: &str, model: Option<&str>) -> &'a Value {
    let mut entries = list.as_array().into_iter().flatten();
    let meant = entries.find(|entry| {
        // Ollama's names have a tag, which nobody types.
        let name = entry[key].as_str();
        name == model || name.and_then(|name| name.strip_suffix(":latest")) == model
    });
    meant.unwrap_or(&Value::Null)
}

fn tokens(number: &Value) -> Option<Tokens> {
    number.as_u64().filter(|number| *number > 0).map(Tokens)
}

/// The window that Ollama's file of a model sets: its parameters are lines of a name and a value.
fn num_ctx(shown: &Value) -> Option<Tokens> {
    let lines = shown["parameters"].as_str().unwrap_or_default().lines();
    let mut numbers = lines.filter_map(|line| line.trim().strip_prefix("num_ctx"));
    numbers.find_map(|number| number.trim().parse().ok().map(Tokens))
}

impl LiveModel {
    /// How long the server takes, by requests behind one that loads the model: to read a small prompt and a large one
    /// that it never saw, to read each again, and to write behind it. Tokens are counted by `count`; `nonce` makes the
    /// prompts new ones.
    pub fn timed(
        &self,
        nonce: &str,
        count: &dyn Fn(&str) -> Tokens,
    ) -> Result<ServerTiming, CallFailure> {
        // A server that has not loaded its model does so now, and knows its window only then.
        self.time(nonce, "Reply with one word.", Tokens(1))?;
        let base_url = &self.wire.connection.base_url;
        let facts = self.engine.facts(base_url, Some(&self.dialect.model));
        let window = facts.and_then(|facts| facts.window);
        let (small, counted) = self.timed_prompt(&format!("{nonce} small"), SMALL, count)?;
        let held = window.map_or(LARGE, |window| 0.8 * window.0 as f64 / counted);
        let affordable = LARGE_SECONDS / small.per_read(0.0);
        let tokens = Tokens(whole(affordable.min(held).min(LARGE)));
        let (large, counted) = match self.timed_prompt(nonce, tokens.max(SMALL.times(2)), count) {
            // Its window is smaller than that.
            Err(CallFailure::Overflow) => (small, counted),
            large => large?,
        };
        Ok(ServerTiming { counted, ..ServerTiming::fitted(small, large) })
    }

    /// Times a new prompt of about so many tokens, and says how many the server counts for each of ours.
    fn timed_prompt(
        &self,
        nonce: &str,
        tokens: Tokens,
        count: &dyn Fn(&str) -> Tokens,
    ) -> Result<(TimedPrompt, f64), CallFailure> {
        // Four characters a token are near enough: what is sent is counted.
        let characters = SAMPLE.chars().cycle().take(4 * index(tokens.0 as f64));
        let text = format!("{nonce}\n{}", characters.collect::<String>());
        let tokens = count(&text);
        let first = self.time(&text, "Reply with one word.", Tokens(1))?;
        let again = self.time(&text, "Reply with the word yes.", Tokens(1))?;
        let written = self.time(&text, "Count from 1 to 100.", TIMED_ANSWER)?;
        let output = Tokens(written.usage.output.0.clamp(2, TIMED_ANSWER.0));
        // A server that does not tell counts as we do.
        let told = Some(first.usage.prompt()).filter(|told| *told > Tokens::ZERO);
        let prompt = TimedPrompt {
            tokens,
            first: first.took,
            again: again.took,
            written: (output, written.took),
        };
        Ok((prompt, told.unwrap_or(tokens).0 as f64 / tokens.0 as f64))
    }

    /// How long one request takes, and what it uses.
    fn time(&self, text: &str, question: &str, most: Tokens) -> Result<CallTime, CallFailure> {
        let text = format!("{text}\n\n{question}");
        let request = Request::of_text(Purpose::Probe, Task::Answer, text, most);
        let dialect = Dialect { thinking: Tokens::ZERO, ..self.dialect.clone() };
        let sent = attempt::send(&self.wire, &dialect, &request);
        let (reply, time) = self.engine.0.block_on(sent);
        reply.answer.map(|_| time)
    }
}

/// Program and prose, as sessions hold them: this file.
const SAMPLE: &str = include_str!("home.rs");
