//! The usage of a call, under the names that products give to its counters.

use std::sync::LazyLock;

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
}

/// The counters of a call; none if the value is not an object.
pub(super) fn usage(raw: &RawValue, cached: CachedTokens, source: &mut Source) -> Option<Usage> {
    let value = value(raw);
    if !value.is_object() {
        source.warn("a usage cannot be read");
        return None;
    }
    Some(usage_in(&value, cached, source))
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
    let last = iterations(value).iter().rfind(|value| is_message(value));
    let last = last.map(|last| counted(last, cached, source));
    let last = last.filter(|last| last.prompt() <= whole.prompt());
    last.map_or(whole, |last| Usage {
        output: whole.output.max(last.output),
        ..last
    })
}

/// The iterations of a call that has several.
fn iterations(value: &Value) -> &[Value] {
    let iterations = value["iterations"].as_array().filter(|all| all.len() > 1);
    iterations.map_or(&[], Vec::as_slice)
}

fn is_message(iteration: &Value) -> bool {
    iteration["type"] == "message"
}

/// The iterations of a call beside the one that is its prompt, as warnings: how many tokens each kind took, which
/// no cost holds, and whether the counters of the call are another sum.
///
/// Anthropic's counters of a call add up its iterations, without those that the advisor or a compaction took.
pub(super) fn other_iterations(value: &Value) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    let iterations = iterations(value);
    let Some(last) = iterations.iter().rposition(is_message) else {
        return found;
    };
    let total = |one| counted(one, CachedTokens::Apart, &mut Source::default()).total();
    let (mut messages, mut others) = (Tokens::ZERO, Tokens::ZERO);
    for (at, one) in iterations.iter().enumerate() {
        let (kind, tokens) = (one["type"].as_str().unwrap_or("untyped"), total(one));
        match kind {
            "message" => messages += tokens,
            "advisor_message" | "compaction" => {}
            _ => others += tokens,
        }
        if at != last {
            let model = one["model"].as_str().unwrap_or("the same model");
            let name = format!("tokens beside a prompt, in no cost: {kind} by {model}");
            *found.entry(name.chars().take(120).collect()).or_default() += tokens.0;
        }
    }
    if ![messages, messages + others].contains(&total(value)) {
        let what = "the iterations of a call do not add up to its counters";
        found.insert(what.to_owned(), 1);
    }
    found
}

/// The counters at the top of a usage.
fn counted(value: &Value, cached: CachedTokens, source: &mut Source) -> Usage {
    let [prompt, read, written, output, thought, total] =
        ["prompt", "read", "written", "output", "thought", "total"].map(|of| at(value, of, source));
    let [minutes, hours] = ["for_minutes", "for_hours"].map(|of| at(value, of, source));
    let written = written.max(minutes.saturating_add(hours));
    let all_cached = read.saturating_add(written);
    let apart = billed(prompt, written, read, output).total();
    let uncached = match cached {
        CachedTokens::Apart => prompt,
        CachedTokens::Within if all_cached > 0 && Tokens(total) == apart => prompt,
        CachedTokens::Within => prompt.checked_sub(all_cached).unwrap_or_else(|| {
            source.warn("a usage counts cached tokens apart from the prompt");
            prompt
        }),
    };
    let mut usage = Usage {
        cache_write_1h: Tokens(hours),
        ..billed(uncached, written - hours, read, output)
    };
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
    let read = found.find(|found| !found.is_null())?.as_u64();
    if read.is_none() {
        source.warn("a usage counter is no count and was taken as zero");
    }
    read
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
        for (total, uncached) in [(130, 20), (230, 120), (0, 20)] {
            let usage = serde_json::json!({
                "prompt_tokens": 120, "cache_read_tokens": 100, "completion_tokens": 10, "total_tokens": total,
            });
            let usage = usage_in(&usage, CachedTokens::Within, &mut Source::default());
            assert_eq!(usage, billed(uncached, 0, 100, 10), "{total}");
        }
    }

    #[test]
    fn of_several_iterations_the_last_message_is_the_prompt_and_the_others_are_counted() {
        let one = |kind: &str, input: u64, read: u64, output: u64| {
            serde_json::json!({
                "type": kind, "input_tokens": input, "cache_read_input_tokens": read, "output_tokens": output,
            })
        };
        let [first, advice, last, huge] = [
            one("message", 3, 100, 6),
            one("advisor_message", 80, 0, 9),
            one("message", 10, 103, 7),
            one("message", 300, 0, 7),
        ];
        let advisor = "tokens beside a prompt, in no cost: advisor_message by the same model";
        let message = "tokens beside a prompt, in no cost: message by the same model";
        let wrong = "the iterations of a call do not add up to its counters";
        for (iterations, read, prompt, warnings) in [
            (vec![&first], 203, (13, 203, 13), vec![]),
            (vec![&advice], 203, (13, 203, 13), vec![]),
            (
                vec![&first, &advice, &last],
                203,
                (10, 103, 13),
                vec![(advisor, 89), (message, 109)],
            ),
            (
                vec![&first, &last],
                204,
                (10, 103, 13),
                vec![(wrong, 1), (message, 109)],
            ),
            (
                vec![&first, &huge],
                203,
                (13, 203, 13),
                vec![(wrong, 1), (message, 109)],
            ),
        ] {
            let mut usage = one("whole", 13, read, 13);
            usage["iterations"] = serde_json::json!(iterations);
            let found = other_iterations(&usage).into_iter();
            let warnings = warnings
                .into_iter()
                .map(|(what, count)| (what.to_owned(), count));
            assert_eq!(found.collect::<Vec<_>>(), warnings.collect::<Vec<_>>());
            let (uncached, read, output) = prompt;
            let usage = usage_in(&usage, CachedTokens::Apart, &mut Source::default());
            assert_eq!(usage, billed(uncached, 0, read, output));
        }
    }

    #[test]
    fn the_places_of_counters_are_read() {
        assert!(!PLACES["prompt"].is_empty() && !PLACES["output"].is_empty());
    }
}
