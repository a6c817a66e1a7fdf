//! Profiles of sessions: the figures by which generated ones are compared with recorded ones.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Role, Session, Tag, ToolClass, ToolUse};
use crate::tokens::CountedTexts;
use crate::units::Tokens;

/// The figures of some sessions, taken together. One without any data is `None`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
pub struct SessionProfile {
    /// How many sessions these are.
    pub sessions: u64,
    /// API calls in all of them.
    pub calls: u64,
    /// Messages that a person typed.
    pub requests: u64,
    /// Tool results.
    pub results: u64,
    /// Bytes of a tool result.
    pub result_bytes: Option<Spread>,
    /// API calls for each message that a person typed.
    pub calls_per_request: Option<f64>,
    /// Share of the messages' tokens that tool results have; system prompt and tools are left out.
    pub observation_share: Option<f64>,
    /// Of the uses of tools that read files, those that name a file the session read before.
    pub reread_share: Option<f64>,
    /// Of the calls that use tools, those that use more than one.
    pub parallel_share: Option<f64>,
    /// Seconds from one API call to the next.
    pub gap_seconds: Option<Spread>,
    /// Of these gaps, those over five minutes: a prompt cache is forgotten.
    pub gaps_over_5_minutes: Option<f64>,
    /// Of these gaps, those over an hour: the longer cache is forgotten, too.
    pub gaps_over_1_hour: Option<f64>,
}

/// Percentiles of some values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
pub struct Spread {
    /// One of ten is below.
    pub p10: u64,
    /// Half of them are below.
    pub p50: u64,
    /// Nine of ten are below.
    pub p90: u64,
    /// Nineteen of twenty are below.
    pub p95: u64,
    /// All but one of a hundred are below.
    pub p99: u64,
    /// The largest.
    pub max: u64,
}

/// The profiles of public recordings, by product: of those with hundreds of results.
/// `proctor sessions generate --describe FOLDER --json` measured each, in tokens of `o200k`; shares have three
/// digits.
pub fn recorded() -> Result<BTreeMap<String, SessionProfile>, serde_json::Error> {
    serde_json::from_str(include_str!("session_profile/recorded.json"))
}

impl Spread {
    /// Percentiles by the nearest rank; none of no values.
    fn of(mut values: Vec<u64>) -> Option<Self> {
        values.sort_unstable();
        let at = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied()
        };
        Some(Self {
            p10: at(10)?,
            p50: at(50)?,
            p90: at(90)?,
            p95: at(95)?,
            p99: at(99)?,
            max: at(100)?,
        })
    }
}

/// Measures sessions one by one; none is kept.
#[derive(Debug, Default)]
pub struct Profiler {
    profile: SessionProfile,
    result_bytes: Vec<u64>,
    gaps: Vec<u64>,
    said: Tokens,
    observed: Tokens,
    reads: u64,
    rereads: u64,
    acting: u64,
    parallel: u64,
}

impl Profiler {
    /// Measures one more session.
    pub fn add(&mut self, session: &Session, counts: &CountedTexts) {
        let messages = session.messages();
        // Where a product says what was typed, nothing else was.
        let told = messages.iter().any(|message| message.has_tag(Tag::TypedUser));
        let injected = [Tag::Synthetic, Tag::Meta, Tag::CompactSummary];
        let mut seen = BTreeSet::new();
        for message in messages {
            let mut results = message.tool_results().peekable();
            if results.peek().is_none() && message.role() == Role::User {
                let by_product = injected.iter().any(|tag| message.has_tag(*tag));
                self.profile.requests +=
                    u64::from(message.has_tag(Tag::TypedUser) || !told && !by_product);
            }
            let texts = message.model_text();
            for (block, _) in results {
                self.result_bytes.push(texts[block].len() as u64);
                self.observed += counts.size(&texts[block]).tokens;
            }
            self.said += texts.iter().map(|text| counts.size(text).tokens).sum();
            let uses = message.tool_uses().count();
            self.acting += u64::from(uses > 0);
            self.parallel += u64::from(uses > 1);
            for path in message.tool_uses().filter_map(|(_, tool)| read_by(tool)) {
                self.reads += 1;
                self.rereads += u64::from(!seen.insert(path));
            }
        }
        // Responses that were loaded at the beginning were calls once.
        let responses = messages.iter().filter(|message| {
            message.role() == Role::Assistant && !message.has_tag(Tag::Synthetic)
        });
        self.profile.calls += responses.clone().count() as u64;
        let times: Vec<i64> =
            responses.filter_map(|message| Some(message.details.timestamp?.0)).collect();
        for pair in times.windows(2) {
            // A clock that was set back is not a gap.
            self.gaps.extend(u64::try_from(pair[1].saturating_sub(pair[0])).ok());
        }
        self.profile.sessions += 1;
    }

    /// The profile of all of them.
    pub fn profile(self) -> SessionProfile {
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let longer =
            |minutes: u64| self.gaps.iter().filter(|gap| **gap > minutes * 60_000).count() as u64;
        let gaps = self.gaps.len() as u64;
        SessionProfile {
            results: self.result_bytes.len() as u64,
            calls_per_request: share(self.profile.calls, self.profile.requests),
            observation_share: share(self.observed.0, self.said.0),
            reread_share: share(self.rereads, self.reads),
            parallel_share: share(self.parallel, self.acting),
            gaps_over_5_minutes: share(longer(5), gaps),
            gaps_over_1_hour: share(longer(60), gaps),
            gap_seconds: Spread::of(self.gaps.iter().map(|gap| gap / 1_000).collect()),
            result_bytes: Spread::of(self.result_bytes),
            ..self.profile
        }
    }
}

/// The file that a tool use reads, as it names it.
fn read_by(tool: &ToolUse) -> Option<String> {
    const KEYS: [&str; 6] =
        ["file_path", "filePath", "path", "absolute_path", "target_file", "notebook_path"];
    if tool.class != ToolClass::Read {
        return None;
    }
    let input = tool.input.value();
    let path = KEYS.iter().find_map(|key| input.get(key)?.as_str())?;
    Some(path.trim_start_matches("./").to_owned())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::tokens::CharsPer4;
    use crate::units::Timestamp;
    use crate::{ContentBlock, JsonText, Message, SessionParts, ToolResult};

    /// Requests as `"?"`, calls as the files they read, and minutes passed in between.
    fn check(said: &[(&str, i64)], expected: [Option<f64>; 4], gaps: Option<(u64, f64)>) {
        let mut messages = Vec::new();
        let mut now = 0;
        let mut add = |mut message: Message, now: i64| {
            message.details.timestamp = Some(Timestamp(now));
            messages.push(Arc::new(message));
        };
        for (at, (files, minutes)) in said.iter().enumerate() {
            now += minutes * 60_000;
            if *files == "?" {
                add(Message::text(Role::User, "four"), now);
                continue;
            }
            let id = |n: usize| Arc::from(format!("t{at}-{n}"));
            let files: Vec<&str> = files.split(' ').collect();
            let uses = files.iter().enumerate().map(|(n, file)| {
                ContentBlock::ToolUse(Box::new(ToolUse {
                    id: id(n),
                    name: "Read".into(),
                    class: ToolClass::Read,
                    input: JsonText::of(&serde_json::json!({"path": file})),
                }))
            });
            add(Message::new(Role::Assistant, uses.collect()), now);
            let results = (0..files.len()).map(|n| {
                ContentBlock::ToolResult(Box::new(ToolResult {
                    tool_use_id: id(n),
                    content: vec![ContentBlock::Text("0123456789".into())],
                    is_error: false,
                }))
            });
            add(Message::new(Role::User, results.collect()), now);
        }
        let session =
            Session::new(SessionParts { id: "a".to_owned(), messages, ..SessionParts::default() })
                .expect("a session");
        let mut profiler = Profiler::default();
        profiler.add(&session, &CountedTexts::new(Arc::new(CharsPer4)));
        let profile = profiler.profile();
        let found = [
            profile.calls_per_request,
            profile.reread_share,
            profile.parallel_share,
            profile.gaps_over_1_hour,
        ];
        assert_eq!(found, expected, "{said:?}");
        let spread = profile.gap_seconds.map(|gap| gap.max);
        assert_eq!(spread.zip(profile.gaps_over_5_minutes), gaps, "{said:?}");
        if let Some(bytes) = profile.result_bytes {
            assert_eq!((bytes.p10, bytes.max), (10, 10));
            assert!(profile.observation_share.is_some_and(|it| it > 0.0 && it < 1.0));
        }
    }

    #[test]
    fn a_profile_holds_what_its_names_say() {
        check(&[("?", 0)], [Some(0.0), None, None, None], None);
        check(
            &[("?", 0), ("a b", 1), ("./a", 6), ("?", 1), ("c", 61)],
            [Some(1.5), Some(0.25), Some(1.0 / 3.0), Some(0.5)],
            Some((62 * 60, 1.0)),
        );
    }

    #[test]
    fn a_spread_names_values_that_are_there() {
        let spread = Spread::of((1..=200).rev().collect()).expect("values");
        assert_eq!(
            [spread.p10, spread.p50, spread.p90, spread.p95, spread.p99, spread.max],
            [20, 100, 180, 190, 198, 200]
        );
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
