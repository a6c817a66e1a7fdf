//! `proctor budget`: what fits into a window, and which lines a prompt crosses on its way.

use serde_json::{Value, json};

use super::{Exit, Result, show_with, stop_with, tokens};
use crate::settings::Place;
use crate::strategy::StrategySpec;
use crate::strategy::trigger::{Condition, Trigger, TriggerScope, TriggerUnit};
use crate::units::Tokens;
use crate::window::{
    AUTO_COMPACT_BUFFER, BLOCKING_BUFFER, DRAWN_PERCENT, Lines, WARNING_BUFFER, WarningFrom,
    Window, Zone,
};

/// A typical read of a file: 500 lines of code, of which ten take about 15,000 tokens by a
/// published estimate for Claude Code.
const TYPICAL_READ: u64 = 1_500;

/// Arguments of `proctor budget`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Context window in tokens
    #[arg(long, value_name = "TOKENS", default_value = "200k", value_parser = tokens)]
    window: Tokens,
    /// Tokens the model may write in one response; at most 20,000 are reserved
    #[arg(long, value_name = "TOKENS", default_value = "0", value_parser = tokens)]
    max_output: Tokens,
    /// Size of system prompt and tool definitions
    #[arg(long, value_name = "TOKENS", default_value = "0", value_parser = tokens)]
    system_tokens: Tokens,
    /// Also say in which zone a prompt of this size is
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    prompt: Option<Tokens>,
    /// Also say at which size the stages of this strategy fire
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    let window = Window { max_output: args.max_output, ..Window::new(args.window) };
    if window.effective() == Tokens::ZERO {
        let problem = format!("a window of {} tokens leaves no room", args.window);
        let hint = "`--window` must be larger than what `--max-output` reserves";
        return stop_with(Exit::Usage, problem, hint);
    }
    let (facts, template) = (facts(args, window)?, include_str!("text/budget.txt"));
    show_with(args.json, "proctor-budget", facts, buffers(), template)
}

/// How the tokens of a window are spent.
fn facts(args: &Args, window: Window) -> Result<Value> {
    let system = args.system_tokens;
    let preset = args.preset.as_deref();
    let stages = preset.map(|name| stages(name, window, system));
    let readings = WarningFrom::ALL.map(|from| reading(window.lines(from), args.prompt));
    let lines = window.lines(WarningFrom::AutoCompact);
    let [warning, auto_compact, blocking] = window.drawn();
    Ok(json!({
        "window": window.tokens,
        "max_output": window.max_output,
        "system_tokens": system,
        "effective": lines.effective,
        "auto_compact": lines.auto_compact,
        "blocking": lines.blocking,
        "readings": readings,
        "left_for_messages": lines.effective - system,
        "typical_read": {
            "tokens": TYPICAL_READ,
            "up_to_auto_compact": (lines.auto_compact - system).0 / TYPICAL_READ,
            "up_to_effective": (lines.effective - system).0 / TYPICAL_READ,
        },
        "drawn": {
            "percent": DRAWN_PERCENT,
            "warning": warning,
            "auto_compact": auto_compact,
            "blocking": blocking,
        },
        "preset": args.preset,
        "stages": stages.transpose()?.unwrap_or_default(),
    }))
}

/// How far the lines are apart.
fn buffers() -> Value {
    json!({
        "blocking_buffer": BLOCKING_BUFFER,
        "auto_compact_buffer": AUTO_COMPACT_BUFFER,
        "warning_buffer": WARNING_BUFFER,
    })
}

/// The lines of a window, by where warnings are measured from; and the zones that some prompt is in, each with the
/// smallest such prompt.
fn reading(lines: Lines, prompt: Option<Tokens>) -> Value {
    let Lines { warning, error, .. } = lines;
    let first = [Tokens::ZERO, warning, error, lines.auto_compact, lines.blocking];
    let zones = Zone::ALL.into_iter().zip(first).filter(|(zone, from)| lines.zone(*from) == *zone);
    json!({
        "warning_from": lines.warning_from.name(),
        "warning": warning,
        "error": error,
        "zones": zones.map(|(_, from)| place(&lines, from)).collect::<Vec<_>>(),
        "prompt": prompt.map(|tokens| place(&lines, tokens)),
    })
}

/// The place of a prompt among the lines.
fn place(lines: &Lines, tokens: Tokens) -> Value {
    json!({
        "zone": lines.zone(tokens),
        "tokens": tokens,
        "flags": lines.flags(tokens),
        "percent_left": lines.percent_left(tokens),
    })
}

/// The stages of a strategy with their triggers, each with the smallest prompt at which it fires, where its trigger asks
/// for a size; it is exact where the trigger counts by the counter of the scenario.
fn stages(name: &str, window: Window, system: Tokens) -> Result<Vec<Value>> {
    let common = Trigger::of(Condition::window_fraction(0.8));
    let place = Place::Flag(format!("--preset {name}").into());
    let spec = StrategySpec::parse(name, &common, &place)?;
    let stages = spec.triggers()?.into_iter().map(|(name, trigger)| {
        let line = first_size(&trigger.condition, window);
        let before = match trigger.scope {
            TriggerScope::Prompt => Tokens::ZERO,
            TriggerScope::Messages => system,
        };
        json!({
            "stage": format!("{name} ({trigger})"),
            "fires_at": line.map(|line| line + before),
            "is_exact": line.is_none() || trigger.counter == TriggerUnit::Scenario,
        })
    });
    Ok(stages.collect())
}

/// The smallest size at which a condition holds, if it asks for one. Of several that must all hold
/// it is the largest; of several of which one will do, the smallest.
fn first_size(condition: &Condition, window: Window) -> Option<Tokens> {
    let (Condition::All(all) | Condition::Any(all)) = condition else {
        return condition.line(window, window.effective());
    };
    let sizes = all.iter().filter_map(|inner| first_size(inner, window));
    match condition {
        Condition::Any(_) => sizes.min(),
        _ if all.iter().any(|one| excludes(one, window)) => None,
        _ => sizes.max(),
    }
}

/// Whether a condition never holds in this window.
fn excludes(condition: &Condition, window: Window) -> bool {
    match condition {
        Condition::WindowOver(limit) => window.tokens <= *limit,
        Condition::WindowUnder(limit) => window.tokens >= *limit,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(system: u64) -> Value {
        let window = Window { max_output: Tokens(16_384), ..Window::new(Tokens(200_000)) };
        let args = Args {
            window: window.tokens,
            max_output: window.max_output,
            system_tokens: Tokens(system),
            prompt: Some(Tokens(175_000)),
            preset: Some("learn-claude-code-s06".to_owned()),
            json: false,
        };
        facts(&args, window).unwrap()
    }

    #[test]
    fn the_published_exercise_comes_out_to_the_token() {
        let template = include_str!("text/budget.txt");
        let mut page = buffers();
        page["facts"] = budget(50_000);
        let text = crate::cli::template::fill(template, page).unwrap();
        let expected = "\
Window of 200,000 tokens, 16,384 of them for output

effective window          183,616  16,384 below the window
blocking                  180,616  3,000 below the effective window
auto-compact              170,616  13,000 below the effective window
warning and error         150,616  20,000 below auto-compact
  or                      163,616  20,000 below the effective window
left for messages         133,616  a system prompt of 50,000 off the effective window
typical file reads             80  of 1,500 each, up to auto-compact
                               89  of 1,500 each, up to the effective window

Zones, warnings measured from auto-compact

                             from    share  flags                       left
normal                          0    0.0 %  ----                       100 %
error                     150,616   82.0 %  we--                        12 %
auto-compact              170,616   92.9 %  wea-                         0 %
blocking                  180,616   98.4 %  weab                         0 %
prompt: auto-compact      175,000   95.3 %  wea-                         0 %

Zones, warnings measured from the effective window

                             from    share  flags                       left
normal                          0    0.0 %  ----                       100 %
error                     163,616   89.1 %  we--                        11 %
auto-compact              170,616   92.9 %  wea-                         7 %
blocking                  180,616   98.4 %  weab                         2 %
prompt: auto-compact      175,000   95.3 %  wea-                         5 %

Flags: w warning, e error, a automatic compaction, b blocking

As drawn beside these constants, by shares of the effective window

warning                   156,073  85 %
auto-compact              165,254  90 %
blocking                  174,435  95 %

Stages of learn-claude-code-s06

          -  clear_results (before every call)
";
        assert!(text.starts_with(expected), "{text}");
        let json = budget(0);
        assert_eq!(json["left_for_messages"], 183_616);
        assert_eq!(json["readings"][1]["warning"], 163_616);
        assert_eq!(json["readings"][0]["prompt"]["zone"], "auto_compact");
        assert_eq!(json["readings"][0]["zones"][1]["flags"]["error"], true);
        assert_eq!(json["typical_read"]["up_to_auto_compact"], 113);
    }

    /// `preset_lines.tsv`: where a product begins to summarise, as its source computes it. One that waits for more than a
    /// line fires one token later.
    #[test]
    fn presets_summarise_where_their_products_do() {
        let rows = include_str!("text/preset_lines.tsv").lines().skip(1);
        for row in rows {
            let columns: Vec<&str> = row.split('\t').collect();
            let [preset, window, max_output, line, holds, _] = columns[..] else {
                panic!("{row}");
            };
            let tokens = |text: &str| text.parse().map(Tokens).unwrap();
            let window = Window { max_output: tokens(max_output), ..Window::new(tokens(window)) };
            let stages = stages(preset, window, Tokens::ZERO).unwrap();
            let ours = stages.iter().filter(|stage| {
                let (kinds, stage) = (["summarize", "digest"], stage["stage"].as_str().unwrap());
                kinds.iter().any(|kind| stage.starts_with(kind))
            });
            let ours = ours.filter_map(|stage| stage["fires_at"].as_u64()).min().map(Tokens);
            let later = u64::from(holds == ">");
            let exact = tokens(line);
            assert!(ours == Some(exact) || ours == Some(exact + Tokens(later)), "{row}: {ours:?}");
        }
    }

    #[test]
    fn a_trigger_fires_at_the_first_size_that_satisfies_it() {
        let window = Window::new(Tokens(1_001));
        let of = |condition| first_size(&condition, window).map(|line| line.0);
        let over = Condition::TokensOver(Tokens(500));
        let reserve = Condition::ReserveTokens(Tokens(1).into());
        assert_eq!(of(over.clone()), Some(501));
        assert_eq!(of(Condition::window_fraction(0.5)), Some(501));
        assert_eq!(of(Condition::window_fraction(1.0)), Some(1_001));
        assert_eq!(of(reserve.clone()), Some(1_000));
        assert_eq!(of(Condition::Overflow), None);
        let both = vec![Condition::Marker, over, reserve];
        assert_eq!(of(Condition::All(both.clone())), Some(1_000));
        assert_eq!(of(Condition::Any(both)), Some(501));
    }

    #[test]
    fn numbers_are_read_as_people_type_them() {
        for (typed, number) in [
            ("200000", Some(200_000)),
            ("200_000", Some(200_000)),
            ("200,000", Some(200_000)),
            ("16k", Some(16_000)),
            ("", None),
            ("-1", None),
            ("99999999999999999999", None),
            ("99999999999999999k", None),
        ] {
            assert_eq!(tokens(typed).ok(), number.map(Tokens), "{typed}");
        }
    }
}
