//! The usage of a call, under the names that products give to its counters.

use std::sync::LazyLock;

use proctor_sessions::InnerRequest;

use super::prelude::*;

/// The places of the counters of a usage, by the names that products give them.
static PLACES: LazyLock<BTreeMap<String, Vec<String>>> =
    LazyLock::new(|| toml::from_str(include_str!("usage.toml")).unwrap_or_default());

/// Where a product counts the tokens of a prompt that were read from the cache or written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachedTokens {
    /// Within the prompt.
    Within,
    /// Apart from the prompt.
    Apart,
    /// Within the prompt where the total shows it, or else apart.
    AsTotal,
}

/// The counters of a call; none if the value is not an object.
pub(super) fn usage(raw: &RawValue, cached: CachedTokens, source: &mut Source) -> Option<Usage> {
    let counts = value(raw);
    if !counts.is_object() {
        source.warn("a usage cannot be read");
        return None;
    }
    Some(usage_in(&counts, cached, source))
}

/// The counters of a call.
///
/// Cache writes are split by lifetime where the record says so; otherwise they are of the
/// five-minute kind, the only one there was. What was thought is added to the output where the
/// total shows that it is not part of it, and cached tokens to the prompt where the total shows that.
/// Of several `iterations` within a call, the prompt is that of the last `message`, and the output that of all. One
/// with a larger prompt than the whole call is not believed.
pub(super) fn usage_in(value: &Value, cached: CachedTokens, source: &mut Source) -> Usage {
    let whole = counted(value, cached, source);
    let message = iterations(value).iter().rfind(|value| is_message(value));
    let last = message.map(|last| counted(last, cached, source));
    let believed = last.filter(|last| last.prompt() <= whole.prompt());
    believed.map_or(whole, |last| Usage { output: whole.output.max(last.output), ..last })
}

/// The iterations of a call that has several.
fn iterations(value: &Value) -> &[Value] {
    value["iterations"].as_array().filter(|all| all.len() > 1).map_or(&[], Vec::as_slice)
}

fn is_message(iteration: &Value) -> bool {
    iteration["type"] == "message"
}

/// The iterations of a call beside the one that is its prompt.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Iterations {
    /// The requests that were billed apart from the call's usage.
    pub(super) inner: Vec<InnerRequest>,
    /// Tokens that are in no bill, and sums that are wrong.
    pub(super) warnings: BTreeMap<String, u64>,
}

impl Iterations {
    /// Of the usage of a call that has several; `None` for any other.
    ///
    /// Anthropic's counters of a call add up its iterations, without those of the advisor and of a compaction
    /// (<https://platform.claude.com/docs/en/agents-and-tools/tool-use/advisor-tool>). A compaction is no part of
    /// the bill of the conversation that it shortens: what replays it asks for it anew.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let all = iterations(value);
        let last = all.iter().rposition(is_message)?;
        let mut found = Self::default();
        let whole = counted(value, CachedTokens::Apart, &mut Source::default());
        let (mut messages, mut others) = (Tokens::ZERO, Tokens::ZERO);
        let believed = counted(&all[last], CachedTokens::Apart, &mut Source::default()).prompt()
            <= whole.prompt();
        for (at, one) in all.iter().enumerate() {
            let kind: String = one["type"].as_str().unwrap_or("untyped").chars().take(80).collect();
            let mut usage = counted(one, CachedTokens::Apart, &mut Source::default());
            match &*kind {
                "message" => messages += usage.total(),
                "advisor_message" => {}
                "compaction" => {
                    let what =
                        "tokens of a compaction within a call, apart from the cost of the call";
                    *found.warnings.entry(what.to_owned()).or_default() += usage.total().0;
                    continue;
                }
                _ => others += usage.total(),
            }
            if kind != "advisor_message" {
                // The call's own output has what it wrote.
                usage.output = Tokens::ZERO;
            }
            if at != last && (believed || kind == "advisor_message") {
                found.inner.push(InnerRequest {
                    kind: kind.into(),
                    model: one["model"].as_str().map(Arc::from),
                    usage,
                });
            }
        }
        if ![messages, messages + others].contains(&whole.total()) {
            let what = "the iterations of a call do not add up to its counters";
            found.warnings.insert(what.to_owned(), 1);
        }
        Some(found)
    }
}

/// The counters at the top of a usage.
fn counted(value: &Value, cached: CachedTokens, source: &mut Source) -> Usage {
    let [prompt, read, unsplit, output, thought, total] =
        ["prompt", "read", "written", "output", "thought", "total"].map(|of| at(value, of, source));
    let [minutes, hours] = ["for_minutes", "for_hours"].map(|of| at(value, of, source));
    let written = unsplit.max(minutes.saturating_add(hours));
    let all_cached = read.saturating_add(written);
    let apart = billed(prompt, written, read, output).total();
    let sum = prompt.saturating_add(output);
    let sums = [sum, sum.saturating_add(thought)];
    let uncached = match cached {
        CachedTokens::Apart => prompt,
        _ if all_cached > 0 && Tokens(total) == apart => prompt,
        CachedTokens::AsTotal if !sums.contains(&total) => prompt,
        _ => prompt.checked_sub(all_cached).unwrap_or_else(|| {
            source.warn("a usage counts cached tokens apart from the prompt");
            prompt
        }),
    };
    let mut usage =
        Usage { cache_write_1h: Tokens(hours), ..billed(uncached, written - hours, read, output) };
    if Tokens(total) == usage.total() + Tokens(thought) {
        usage.output += Tokens(thought);
    }
    usage
}

/// The counter of that name.
fn at(value: &Value, name: &str, source: &mut Source) -> u64 {
    let places = PLACES.get(name).map_or(&[][..], Vec::as_slice);
    counter(value, places, source).unwrap_or_default()
}

/// The counters at some places of a usage; those that are not there are zero.
pub(super) fn counters<const N: usize>(of: &Value, at: [&str; N], source: &mut Source) -> [u64; N] {
    at.map(|at| counter(of, &[at], source).unwrap_or_default())
}

/// The first counter that is there, or `None` if there is none, or it is not a count.
fn counter(value: &Value, places: &[impl AsRef<str>], source: &mut Source) -> Option<u64> {
    let mut found = places.iter().filter_map(|at| value.pointer(at.as_ref()));
    let read = count_in(found.find(|found| !found.is_null())?);
    if read.is_none() {
        source.warn("a usage counter is no count and was taken as zero");
    }
    read
}

/// A count, as it was or as tables and databases write it: a number with a fraction of zero, or digits.
pub(super) fn count_in(value: &Value) -> Option<u64> {
    /// The calls of no session add up to more.
    const MOST: u64 = 10_000_000_000;
    let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let count = written.strip_suffix(".0").unwrap_or(&written).parse().ok();
    count.filter(|count| *count <= MOST)
}

/// A bill that counts the cached tokens apart.
pub(super) fn billed(uncached: u64, written: u64, read: u64, output: u64) -> Usage {
    Usage {
        input_uncached: Tokens(uncached),
        cache_write_5m: Tokens(written),
        cache_write_1h: Tokens::ZERO,
        cache_read: Tokens(read),
        output: Tokens(output),
    }
}

/// The usage, unless it counts nothing.
pub(super) fn unless_zero(usage: Usage) -> Option<Usage> {
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_says_whether_cached_tokens_are_within_the_prompt() {
        for (total, uncached, as_total) in [(130, 20, 20), (230, 120, 120), (0, 20, 120)] {
            let usage = serde_json::json!({
                "prompt_tokens": 120, "cache_read_tokens": 100, "completion_tokens": 10, "total_tokens": total,
            });
            for (cached, uncached) in
                [(CachedTokens::Within, uncached), (CachedTokens::AsTotal, as_total)]
            {
                let usage = usage_in(&usage, cached, &mut Source::default());
                assert_eq!(usage, billed(uncached, 0, 100, 10), "{total}");
            }
        }
    }

    #[test]
    fn counters_are_read_as_tables_and_databases_write_them() {
        let check = |prompt: Value, output: Value, expected: Usage, warnings: usize| {
            let usage = json!({"prompt_tokens": prompt, "output_tokens": output});
            let mut source = Source::default();
            let usage = usage_in(&usage, CachedTokens::Within, &mut source);
            assert_eq!((usage, source.warnings.len()), (expected, warnings));
        };
        let whole = billed(9_007_199_254, 0, 0, 7);
        check(json!(9_007_199_254_u64), json!(7.0), whole, 0);
        check(json!("9007199254"), json!("7.0"), whole, 0);
        for none in [
            json!(-7.0),
            json!(7.5),
            json!("seven"),
            json!(true),
            json!([7]),
            json!(10_000_000_001_u64),
        ] {
            check(json!(3e2), none, billed(300, 0, 0, 0), 1);
        }
    }

    #[test]
    fn of_several_iterations_the_last_message_is_the_prompt_and_the_others_are_requests() {
        let one = |kind: &str, input: u64, read: u64, output: u64| {
            serde_json::json!({
                "type": kind, "input_tokens": input, "cache_read_input_tokens": read, "output_tokens": output,
            })
        };
        let [first, mut advice, last, huge] = [
            one("message", 3, 100, 6),
            one("advisor_message", 80, 0, 9),
            one("message", 10, 103, 7),
            one("message", 300, 0, 7),
        ];
        advice["model"] = "other".into();
        let wrong = "the iterations of a call do not add up to its counters";
        let inner = |kind: &str, model: Option<&str>, usage: Usage| InnerRequest {
            kind: kind.into(),
            model: model.map(Arc::from),
            usage,
        };
        let advised = inner("advisor_message", Some("other"), billed(80, 0, 0, 9));
        let earlier = inner("message", None, billed(3, 0, 100, 0));
        for (iterations, read, prompt, requests, warning) in [
            (vec![&first, &last], 203, (10, 103, 13), vec![&earlier], None),
            (vec![&first, &advice, &last], 203, (10, 103, 13), vec![&earlier, &advised], None),
            (vec![&first, &last], 204, (10, 103, 13), vec![&earlier], Some(wrong)),
            // A prompt above that of the whole is none, and what it is beside is the call's own.
            (vec![&advice, &first, &huge], 203, (13, 203, 13), vec![&advised], Some(wrong)),
        ] {
            let mut usage = one("whole", 13, read, 13);
            usage["iterations"] = serde_json::json!(iterations);
            let found = Iterations::of(&usage).unwrap();
            assert_eq!(found.inner.iter().collect::<Vec<_>>(), requests);
            assert_eq!(found.warnings.keys().next().map(String::as_str), warning);
            let (uncached, read, output) = prompt;
            let usage = usage_in(&usage, CachedTokens::Apart, &mut Source::default());
            assert_eq!(usage, billed(uncached, 0, read, output));
        }
        for alone in [&first, &advice] {
            let mut usage = one("whole", 13, 203, 13);
            usage["iterations"] = serde_json::json!([alone]);
            assert_eq!(Iterations::of(&usage), None);
        }
    }

    #[test]
    fn the_places_of_counters_are_read() {
        assert!(!PLACES["prompt"].is_empty() && !PLACES["output"].is_empty());
    }
}
