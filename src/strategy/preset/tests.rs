//! Presets by name, with overrides, and what is wrong with names.

use super::*;
use crate::settings::parse_value;
use crate::window::{PromptSizes, Window};

fn named(name: &str) -> Result<StrategySpec, SettingError> {
    StrategySpec::parse(name, &Trigger::always(), &Place::BuiltIn)
}

#[track_caller]
fn check(preset: &str, path: &str, value: &str, says: &str) {
    let flag = Place::Flag("--set".into());
    let said = named(preset)
        .and_then(|spec| spec.with(path, parse_value(value, &flag)))
        .map_or_else(|error| error.to_string(), |spec| spec.name().to_owned());
    assert_eq!(said, says);
}

#[test]
fn every_preset_builds_and_describes_itself() {
    for (name, _) in PRESETS {
        let spec = named(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!spec.description().is_empty(), "{name}");
        spec.breaks().unwrap();
    }
    assert_eq!(
        named("learn-claude-code-s06").unwrap().stages().unwrap(),
        [
            "clear_results (before every call)",
            "summarize (over 50000 tokens or when the model calls `compact` (chars/4) (messages only))"
        ]
    );
    assert!(named("tail@20000").is_ok());
    assert!(named("random@20000").is_ok());
}

#[test]
fn a_tail_that_reaches_the_line_of_its_stage_leaves_no_room() {
    for (name, window, head, largest, has_room) in [
        // It keeps 20,000, and fires from 16,384 before the end on.
        ("pi", 200_000, 5_000, 500_000, true),
        ("pi", 40_000, 3_000, 60_000, true),
        ("pi", 40_000, 4_500, 60_000, false),
        // It never fires.
        ("pi", 40_000, 4_500, 20_000, true),
        ("cline", 24_000, 3_000, 60_000, false),
        ("claude-code", 24_000, 2_000, 60_000, true),
        ("observation-masking", 24_000, 2_000, 60_000, true),
    ] {
        let sizes =
            PromptSizes { head: Tokens(head), round: Tokens(500), largest: Tokens(largest) };
        let checked = named(name).unwrap().check_window(Window::new(Tokens(window)), &sizes);
        assert_eq!(checked.is_ok(), has_room, "{name} {window} {checked:?}");
    }
}

#[test]
fn a_control_is_called_after_what_it_follows() {
    let follows = |text: &str| {
        StrategySpec::parse(text, &Trigger::always(), &Place::BuiltIn).map_or_else(
            |error| error.to_string(),
            |spec| format!("{} {}", spec.name(), spec.follows().unwrap_or("-")),
        )
    };
    for (text, says) in [
        ("tail@20000", "tail@20000 -"),
        ("tail@20k", "tail@20k -"),
        ("random@2000[select.seed=7]", "random@2000[select.seed=7] -"),
        ("tail@none", "tail@none none"),
        ("random@my-own", "random@my-own my-own"),
        (
            "tail@observation-masking[ clear_results.keep_last = 5 ]",
            "tail@observation-masking[clear_results.keep_last=5] \
             observation-masking[clear_results.keep_last=5]",
        ),
        (
            "tail@observation-masking[clear_results.keep_lst=5]",
            "built-in default: unknown key `clear_results.keep_lst`, did you mean `keep_last`?",
        ),
        (
            "tail@My own",
            "built-in default: `tail@My own` names neither a budget in tokens nor a strategy",
        ),
    ] {
        assert_eq!(follows(text), says);
    }
}

#[test]
fn a_stage_can_be_switched_off_and_stays_checked() {
    let stages = |name: &str| named(name).and_then(|spec| spec.stages()).map(|stages| stages.len());
    let all = stages("claude-code").unwrap();
    assert_eq!(stages("claude-code[snip.enabled=false]").unwrap(), all - 1);
    // A request after a refusal is not made, and everything that depends on it waits in vain.
    assert_eq!(stages("claude-code[summarize.enabled=false]").unwrap(), all - 1);
    check(
        "claude-code",
        "micro.keep_last",
        "0",
        "flag `--set`: `micro.keep_last` must be a whole number of at least 1, not `0`",
    );
    check(
        "claude-code",
        "micro.enabled",
        "'no'",
        "flag `--set`: `micro.enabled` must be `true` or `false`, not `\"no\"`",
    );
}

#[test]
fn presets_clear_by_time_only_where_it_is_switched_on() {
    let clears_by_time = |name: &str| {
        let stages = named(name).and_then(|spec| spec.stages()).unwrap();
        stages.iter().any(|stage| stage == "micro (after 60 idle minutes)")
    };
    // Qwen Code does it as it comes.
    let has_the_stage =
        |(name, text): &&(&str, &str)| *name != "qwen-code" && text.contains("idle_over_minutes");
    let presets: Vec<_> = PRESETS.iter().filter(has_the_stage).collect();
    assert_eq!(presets.len(), 6);
    for (name, _) in presets {
        assert!(!clears_by_time(name), "{name}");
        assert!(clears_by_time(&format!("{name}[micro.enabled=true]")), "{name}");
    }
}

#[test]
fn names_can_be_typed_as_they_are_printed() {
    let name = "learn-claude-code-s06[clear_results.tools=[\"Read\", \"Bash\"],\
                summarize.when={ tokens_over = 9, scope = \"messages\" }]";
    let spec = StrategySpec::parse(name, &Trigger::always(), &Place::BuiltIn).unwrap();
    assert_eq!(spec.name(), name);
}

#[test]
fn overrides_show_in_the_name_and_are_checked() {
    check(
        "observation-masking",
        "clear_results.keep_last",
        "5",
        "observation-masking[clear_results.keep_last=5]",
    );
    check(
        "observation-masking",
        "clear_results.keep_last",
        "0",
        "flag `--set`: `clear_results.keep_last` must be a whole number of at least 1, not `0`",
    );
    check(
        "observation-masking",
        "clear_results.keep_lst",
        "5",
        "flag `--set`: unknown key `clear_results.keep_lst`, did you mean `keep_last`?",
    );
    check(
        "observation-masking",
        "clear_result.keep_last",
        "5",
        "flag `--set`: strategy `observation-masking` has no stage `clear_result`, did you mean `clear_results`?",
    );
    check(
        "observation-masking[clear_results.keep_last=2]",
        "clear_results.keep_last",
        "5",
        "observation-masking[clear_results.keep_last=5]",
    );
    check(
        "observation-masking",
        "keep_last",
        "5",
        "observation-masking[clear_results.keep_last=5]",
    );
    check(
        "observation-masking",
        "keep_lst",
        "5",
        "flag `--set`: `keep_lst` names no knob of `observation-masking`",
    );
    check(
        "learn-claude-code-s06",
        "guards.max_consecutive_failures",
        "5",
        "learn-claude-code-s06[guards.max_consecutive_failures=5]",
    );
    check(
        "observation-maskin",
        "a.b",
        "5",
        "built-in default: unknown strategy `observation-maskin`, did you mean `observation-masking`?",
    );
    check("tail@many", "a.b", "5", "flag `--set`: strategy `tail@many` has no stage `a`");
    check(
        "full",
        "a.b",
        "5",
        "built-in default: `full` is no strategy: every run measures it beside the others",
    );
}

#[test]
fn every_constant_of_every_preset_has_its_source() {
    let mut constants = 0;
    for (name, text) in PRESETS {
        // Constants of a `[[source]]` are sources.
        let text = text.split("\n[[source]]").next().unwrap_or_default();
        let tables = text.find("\n[").map_or("", |at| &text[at..]);
        let is_named = |line: &&str| {
            let mut names = ["kind", "name", "knob"].into_iter();
            names.any(|name| line.starts_with(name))
        };
        let lines = tables.lines().filter(|line| line.contains(" = ") && !is_named(line));
        for line in lines.filter(|line| !line.starts_with('#')) {
            assert!(line.contains("  # "), "{name}: no source: {line}");
            constants += 1;
        }
    }
    assert!(constants > 250, "{constants}");
}
