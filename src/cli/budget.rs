//! `proctor budget`: what fits into a window, and which lines a prompt crosses on its way.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::{Exit, Stop, print_json, prose};
use crate::report::escape;
use crate::settings::{Place, Setting, Value as Set};
use crate::strategy::StrategySpec;
use crate::strategy::trigger::{Condition, Measure, Scope, Trigger};
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
#[command(
    after_help = "The lines are those of Claude Code: automatic compaction 13,000 tokens \
                        below the effective window, blocking 3,000 below it, warnings 20,000 \
                        below a line. Its documents measure warnings from two lines: both are \
                        printed."
)]
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
    /// Size of a typical file read
    #[arg(long, value_name = "TOKENS", default_value_t = TYPICAL_READ,
          value_parser = clap::value_parser!(u64).range(1..))]
    read_tokens: u64,
    /// Say where a prompt of this size stands, too
    #[arg(long, value_name = "TOKENS", value_parser = tokens)]
    prompt: Option<Tokens>,
    /// Say at which size the stages of this strategy fire, too
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// What is printed
    #[arg(long, value_name = "FORMAT", value_enum, default_value = "text")]
    format: Format,
    /// The same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// Tables for people
    Text,
    /// One JSON object
    Json,
}

/// A number of tokens as people type it: `200000`, `200_000`, `200,000`, `200k`.
fn tokens(typed: &str) -> Result<Tokens, String> {
    let digits: String = typed.chars().filter(|c| !matches!(c, '_' | ',')).collect();
    let (digits, factor) = match digits.strip_suffix(['k', 'K']) {
        Some(thousands) => (thousands, 1_000),
        None => (&*digits, 1),
    };
    let number = digits.parse::<u64>().ok();
    number
        .and_then(|number| number.checked_mul(factor))
        .map(Tokens)
        .ok_or_else(|| "it must be a number of tokens, as in `200000` or `200k`".to_owned())
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let window = Window {
        max_output: args.max_output,
        ..Window::new(args.window)
    };
    if window.effective() == Tokens::ZERO {
        let problem = format!("a window of {} tokens leaves no room", args.window);
        let stop = Stop::new(Exit::Usage, problem);
        return Err(stop
            .with_hint("`--window` must be larger than what `--max-output` reserves")
            .into());
    }
    let stages = match &args.preset {
        Some(name) => stages(name, window, args.system_tokens)?,
        None => Vec::new(),
    };
    let budget = Budget {
        window,
        system: args.system_tokens,
        read: Tokens(args.read_tokens),
        prompt: args.prompt,
        preset: args.preset.clone(),
        stages,
    };
    if args.json || args.format == Format::Json {
        print_json(&budget.to_json())?;
    } else {
        prose::say(&budget.to_text())?;
    }
    Ok(Exit::Done)
}

/// What is shown.
struct Budget {
    window: Window,
    system: Tokens,
    read: Tokens,
    prompt: Option<Tokens>,
    preset: Option<String>,
    stages: Vec<StageLine>,
}

/// When a stage of a strategy fires.
struct StageLine {
    /// Its name and trigger, in words.
    shown: String,
    /// The smallest prompt at which it fires, where its trigger asks for a size.
    fires_at: Option<Tokens>,
    /// Whether the trigger counts by the counter of the scenario.
    is_exact: bool,
}

impl Budget {
    /// How many typical reads fit between the system prompt and a line.
    fn reads(&self, line: Tokens) -> u64 {
        (line - self.system).0 / self.read.0
    }

    fn to_text(&self) -> String {
        let mut out = String::new();
        let by = self.window.lines(WarningFrom::AutoCompact);
        let other = self.window.lines(WarningFrom::EffectiveWindow);
        let reserved = self.window.tokens - by.effective;
        let _ = writeln!(
            out,
            "Window of {} tokens, {} of them for output\n",
            grouped(self.window.tokens),
            grouped(self.window.max_output)
        );
        let mut row = |name: &str, tokens: Tokens, words: String| {
            let _ = writeln!(out, "{name:22}{:>11}  {words}", grouped(tokens));
        };
        let below = |buffer, line| format!("{} below {line}", grouped(buffer));
        row(
            "effective window",
            by.effective,
            below(reserved, "the window"),
        );
        let effective = "the effective window";
        row("blocking", by.blocking, below(BLOCKING_BUFFER, effective));
        row(
            "auto-compact",
            by.auto_compact,
            below(AUTO_COMPACT_BUFFER, effective),
        );
        row(
            "warning and error",
            by.warning,
            below(WARNING_BUFFER, "auto-compact"),
        );
        row("  or", other.warning, below(WARNING_BUFFER, effective));
        row(
            "left for messages",
            by.effective - self.system,
            format!(
                "a system prompt of {} off the effective window",
                grouped(self.system)
            ),
        );
        let read = |line: &str| format!("of {} each, up to {line}", grouped(self.read));
        row(
            "typical file reads",
            Tokens(self.reads(by.auto_compact)),
            read("auto-compact"),
        );
        row(
            "",
            Tokens(self.reads(by.effective)),
            read("the effective window"),
        );
        for lines in [by, other] {
            self.write_zones(&mut out, &lines);
        }
        out.push_str("\nFlags: w warning, e error, a automatic compaction, b blocking\n");
        if by.auto_compact == Tokens::ZERO {
            out.push_str(
                "\nThis window is too small for these lines: automatic compaction would begin with the \
                 first prompt\n",
            );
        }
        let drawn = self.window.drawn();
        let _ = writeln!(
            out,
            "\nAs drawn beside these constants, by shares of the effective window\n"
        );
        for (name, (percent, line)) in ["warning", "auto-compact", "blocking"]
            .iter()
            .zip(DRAWN_PERCENT.iter().zip(drawn))
        {
            let _ = writeln!(out, "{name:22}{:>11}  {percent} %", grouped(line));
        }
        if let Some(preset) = &self.preset {
            let _ = writeln!(out, "\nStages of {}\n", escape::plain(preset));
            for stage in &self.stages {
                let at = match stage.fires_at {
                    Some(tokens) if stage.is_exact => grouped(tokens),
                    Some(tokens) => format!("~{}", grouped(tokens)),
                    None => "-".to_owned(),
                };
                let _ = writeln!(out, "{at:>11}  {}", escape::plain(&stage.shown));
            }
            if self.stages.iter().any(|stage| !stage.is_exact) {
                let _ = writeln!(out, "\n~ by the trigger's own estimate of a size");
            }
        }
        out
    }

    fn write_zones(&self, out: &mut String, lines: &Lines) {
        let _ = writeln!(
            out,
            "\nZones, warnings measured from {}\n\n{:22}{:>11}{:>9}  flags                       left",
            match lines.warning_from {
                WarningFrom::AutoCompact => "auto-compact",
                WarningFrom::EffectiveWindow => "the effective window",
            },
            "",
            "from",
            "share"
        );
        let mut row = |name: &str, from: Tokens| {
            let share = from.share_of(lines.effective).unwrap_or(0.0) * 100.0;
            let set = flags(lines, from).into_iter();
            let set: String = set
                .map(|(name, is_set)| match (is_set, name) {
                    (false, _) => '-',
                    (true, "warning") => 'w',
                    (true, "error") => 'e',
                    (true, "auto_compact") => 'a',
                    (true, _) => 'b',
                })
                .collect();
            let left = lines.percent_left(from);
            let _ = writeln!(
                out,
                "{name:22}{:>11}{share:>7.1} %  {set:24}{left:>6} %",
                grouped(from)
            );
        };
        for (zone, from) in zones(lines) {
            row(zone.name(), from);
        }
        if let Some(prompt) = self.prompt {
            row(&format!("prompt: {}", lines.zone(prompt).name()), prompt);
        }
    }

    fn to_json(&self) -> Value {
        let by = self.window.lines(WarningFrom::AutoCompact);
        let readings = WarningFrom::ALL.map(|from| {
            let lines = self.window.lines(from);
            let zones: Vec<Value> = zones(&lines)
                .into_iter()
                .map(|(zone, from)| stand(&lines, zone, from))
                .collect();
            json!({
                "warning_from": from.name(),
                "warning": lines.warning.0,
                "error": lines.error.0,
                "zones": zones,
                "prompt": self.prompt.map(|prompt| stand(&lines, lines.zone(prompt), prompt)),
            })
        });
        let [warning, auto_compact, blocking] = self.window.drawn();
        let stages = self.stages.iter().map(|stage| {
            json!({
                "stage": stage.shown,
                "fires_at": stage.fires_at.map(|tokens| tokens.0),
                "is_exact": stage.is_exact,
            })
        });
        json!({
            "format": "proctor-budget",
            "version": 1,
            "window": self.window.tokens.0,
            "max_output": self.window.max_output.0,
            "system_tokens": self.system.0,
            "effective": by.effective.0,
            "auto_compact": by.auto_compact.0,
            "blocking": by.blocking.0,
            "readings": readings,
            "left_for_messages": (by.effective - self.system).0,
            "typical_read": {
                "tokens": self.read.0,
                "up_to_auto_compact": self.reads(by.auto_compact),
                "up_to_effective": self.reads(by.effective),
            },
            "drawn": {
                "percent": DRAWN_PERCENT,
                "warning": warning.0,
                "auto_compact": auto_compact.0,
                "blocking": blocking.0,
            },
            "preset": self.preset,
            "stages": stages.collect::<Vec<_>>(),
        })
    }
}

/// The zones that some prompt is in, each with the smallest such prompt.
fn zones(lines: &Lines) -> Vec<(Zone, Tokens)> {
    let from = [
        Tokens::ZERO,
        lines.warning,
        lines.error,
        lines.auto_compact,
        lines.blocking,
    ];
    let zones = Zone::ALL.into_iter().zip(from);
    zones
        .filter(|(zone, from)| lines.zone(*from) == *zone)
        .collect()
}

fn flags(lines: &Lines, prompt: Tokens) -> [(&'static str, bool); 4] {
    let flags = lines.flags(prompt);
    [
        ("warning", flags.warning),
        ("error", flags.error),
        ("auto_compact", flags.auto_compact),
        ("blocking", flags.blocking),
    ]
}

fn stand(lines: &Lines, zone: Zone, prompt: Tokens) -> Value {
    json!({
        "zone": zone,
        "tokens": prompt.0,
        "flags": lines.flags(prompt),
        "percent_left": lines.percent_left(prompt),
    })
}

/// `183,616`.
fn grouped(tokens: Tokens) -> String {
    let digits = tokens.0.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// The stages of a strategy, each with the smallest prompt at which it fires.
fn stages(name: &str, window: Window, system: Tokens) -> anyhow::Result<Vec<StageLine>> {
    let common = Trigger::of(Condition::WindowFraction(0.8));
    let place = Place::Flag(format!("--preset {name}").into());
    let spec = StrategySpec::parse(name, &common, &place)?;
    let tables = match spec.table().get("stage").map(|setting| &setting.value) {
        Some(Set::List(tables)) => &tables[..],
        _ => &[],
    };
    let shown = spec.stages()?.into_iter();
    let lines = shown.enumerate().map(|(at, shown)| {
        let trigger = match tables.get(at) {
            Some(stage) => trigger(stage, &common)?,
            None => None,
        };
        let line = trigger.as_ref().and_then(|trigger| {
            let line = line(&trigger.condition, window)?;
            Some(match trigger.scope {
                Scope::Prompt => line,
                Scope::Messages => line + system,
            })
        });
        Ok(StageLine {
            shown,
            fires_at: line,
            is_exact: trigger
                .is_none_or(|trigger| line.is_none() || trigger.counter == Measure::Scenario),
        })
    });
    lines.collect()
}

/// The trigger of a stage, where one is written down.
fn trigger(stage: &Setting, common: &Trigger) -> anyhow::Result<Option<Trigger>> {
    let Set::Table(stage) = &stage.value else {
        return Ok(None);
    };
    let Some(when) = stage.get("when") else {
        return Ok(None);
    };
    if matches!(&when.value, Set::Text(word) if word == "scenario") {
        return Ok(Some(common.clone()));
    }
    Ok(Some(Trigger::read("when", when)?))
}

/// The smallest size at which a condition holds, if it asks for one. Of several that must all hold
/// it is the largest; of several of which one will do, the smallest.
fn line(condition: &Condition, window: Window) -> Option<Tokens> {
    let effective = window.effective();
    if let Condition::TokensOver(limit) = condition {
        Some(*limit + Tokens(1))
    } else if let Condition::WindowFraction(fraction) = condition {
        let below = effective.fraction(*fraction);
        let is_whole = below.0 as f64 >= effective.0 as f64 * fraction;
        Some(below + Tokens(u64::from(!is_whole)))
    } else if let Condition::ReserveTokens(reserve) = condition {
        Some(effective - *reserve)
    } else if let Condition::All(all) = condition {
        all.iter().filter_map(|inner| line(inner, window)).max()
    } else if let Condition::Any(any) = condition {
        any.iter().filter_map(|inner| line(inner, window)).min()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(system: u64) -> Budget {
        let window = Window {
            max_output: Tokens(16_384),
            ..Window::new(Tokens(200_000))
        };
        Budget {
            window,
            system: Tokens(system),
            read: Tokens(TYPICAL_READ),
            prompt: Some(Tokens(175_000)),
            preset: Some("learn-claude-code-s06".to_owned()),
            stages: stages("learn-claude-code-s06", window, Tokens(system)).unwrap(),
        }
    }

    #[test]
    fn the_published_exercise_comes_out_to_the_token() {
        let text = budget(50_000).to_text();
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
        let json = budget(0).to_json();
        assert_eq!(json["left_for_messages"], 183_616);
        assert_eq!(json["readings"][1]["warning"], 163_616);
        assert_eq!(json["readings"][0]["prompt"]["zone"], "auto_compact");
        assert_eq!(json["readings"][0]["zones"][1]["flags"]["error"], true);
        assert_eq!(json["typical_read"]["up_to_auto_compact"], 113);
    }

    #[test]
    fn a_trigger_fires_at_the_first_size_that_satisfies_it() {
        let window = Window::new(Tokens(1_001));
        let of = |condition| line(&condition, window).map(|line| line.0);
        let over = Condition::TokensOver(Tokens(500));
        let reserve = Condition::ReserveTokens(Tokens(1));
        assert_eq!(of(over.clone()), Some(501));
        assert_eq!(of(Condition::WindowFraction(0.5)), Some(501));
        assert_eq!(of(Condition::WindowFraction(1.0)), Some(1_001));
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
        assert_eq!(grouped(Tokens(0)), "0");
        assert_eq!(grouped(Tokens(999)), "999");
        assert_eq!(grouped(Tokens(1_234_567)), "1,234,567");
    }
}
