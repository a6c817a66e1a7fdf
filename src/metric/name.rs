//! Other words for the names of metrics: those of earlier builds, and those of the field.

/// The names that another word may stand for, the likeliest first.
fn names(word: &str) -> &'static [&'static str] {
    match word {
        "survival" => &["facts"],
        "survival_compacted" => &["facts_compacted"],
        "survival_reachable" => &["facts_reachable"],
        "accuracy" => &["answers"],
        "action_support" | "support" => &["actions"],
        "action_support_compacted" => &["actions_compacted"],
        "action_reachable" => &["actions_reachable"],
        "strategy_calls" | "own_calls" | "model_calls" => &["calls"],
        "rejected" => &["refused"],
        "blocking_seconds" | "latency" => &["waiting"],
        "token_savings" | "token_savings_of_totals" | "tokens_of_totals" => &["tokens"],
        "token_savings_without_calls" => &["tokens_without_calls"],
        "cost" | "savings" | "dollars" | "price" => &["bill", "bill_saved"],
        "cost_savings" => &["bill_saved", "bill"],
        "cost_savings_edge" => &["bill_saved_edge"],
        _ => &[],
    }
}

/// The name of today for another word, among the names that are `known` where it was typed.
pub fn today(word: &str, known: &[&str]) -> Option<&'static str> {
    names(word).iter().find(|name| known.contains(name)).copied()
}

/// The same as a sentence, for an error.
pub fn called(word: &str, known: &[&str]) -> Option<String> {
    let name = today(word, known)?;
    Some(format!("`{word}` is called `{name}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::METRICS;

    #[track_caller]
    fn check(word: &str, known: &[&str], expected: Option<&str>) {
        assert_eq!(today(word, known), expected, "{word}");
    }

    #[test]
    fn another_word_has_the_name_that_is_known_where_it_was_typed() {
        let gated = [
            "completion",
            "refused",
            "facts",
            "answers",
            "actions",
            "bill_saved",
            "tokens",
            "bill",
        ];
        let explained = ["completion", "bill_saved", "bill_saved_edge", "calls"];
        check("survival", &gated, Some("facts"));
        check("accuracy", &gated, Some("answers"));
        check("support", &gated, Some("actions"));
        check("rejected", &gated, Some("refused"));
        check("token_savings", &gated, Some("tokens"));
        for word in ["cost", "savings", "dollars"] {
            check(word, &gated, Some("bill"));
            check(word, &explained, Some("bill_saved"));
        }
        check("cost_savings", &gated, Some("bill_saved"));
        check("cost_savings", &["bill", "tokens"], Some("bill"));
        check("cost_savings_edge", &explained, Some("bill_saved_edge"));
        for word in ["strategy_calls", "own_calls", "model_calls"] {
            check(word, &explained, Some("calls"));
            check(word, &gated, None);
        }
        for word in ["latency", "blocking_seconds"] {
            check(word, &["waiting"], Some("waiting"));
        }
        check("completion", &gated, None);
        assert_eq!(called("survival", &gated).as_deref(), Some("`survival` is called `facts`"));
    }

    #[test]
    fn no_metric_has_a_name_of_before() {
        for metric in METRICS {
            assert_eq!(names(metric.name), [""; 0], "{}", metric.name);
        }
    }
}
