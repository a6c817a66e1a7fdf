//! The guides say what the program does: their commands run, and what is generated is current.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use proctor::model::price::Prices;
use proctor::strategy::stage::STAGES;
use proctor::units::{Tokens, Usd};

use crate::goldens;
use crate::goldens::sampled;

/// A page of `docs`.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("docs")
        .join(name)
}

/// The commands of the `console` and `sh` blocks of a page, in order.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut fence = None;
    for line in text.lines() {
        match (fence, line.strip_prefix("```")) {
            (None, Some(language)) => fence = Some(language),
            (Some(_), Some(_)) => fence = None,
            (Some("console"), None) => {
                commands.extend(line.strip_prefix("$ ").map(str::to_owned));
            }
            (Some("sh"), None) if !line.is_empty() => commands.push(line.to_owned()),
            (Some(_) | None, None) => {}
        }
    }
    commands
}

/// Runs all commands of a page in one folder, in order; each must succeed.
#[track_caller]
fn run_all(name: &str, at_least: usize) {
    let text = std::fs::read_to_string(page(name)).unwrap();
    let commands = commands(&text);
    assert!(commands.len() >= at_least, "{name}: {commands:?}");
    let folder = tempfile::tempdir().unwrap();
    let program = Path::new(env!("CARGO_BIN_EXE_proctor"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    for command in commands {
        let shown = command.replace("cargo run --release -- ", "proctor ");
        let output = Command::new("sh")
            .args(["-c", &shown])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env_remove("PROCTOR_WINDOW")
            .env_remove("PROCTOR_COUNTER")
            .env_remove("PROCTOR_SEED")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{name}: `{command}`:\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn the_commands_of_the_guides_run() {
    for (name, at_least) in sampled([
        ("getting-started.md", 6),
        ("writing-a-scenario.md", 3),
        ("scale.md", 6),
        ("synthetic-sessions.md", 4),
    ]) {
        run_all(name, at_least);
    }
}

#[test]
fn the_reference_of_metrics_is_what_the_code_writes() {
    let written = proctor::metric::reference::reference();
    goldens::golden("docs/metrics.md", &written);
}

#[test]
fn the_reference_of_strategies_is_what_presets_and_code_say() {
    let written = proctor::strategy::reference::reference().unwrap();
    goldens::golden("docs/strategies.md", &written);
    for kind in STAGES {
        let written = proctor::strategy::reference::page(kind);
        assert!(
            !written.contains("|  |\n"),
            "a knob says nothing: {written}"
        );
        goldens::golden(&format!("docs/stages/{}.md", kind.name), &written);
    }
}

/// The head of the page of prices.
const PRICES: &str = "# Prices\n\n\
    Made by the tests from `src/model/price/*.toml`. Dollars per million tokens; an empty cell is unknown, never 0. Each \
    file names its documents and when they were read. A file of your own (`--prices FILE`, `cache.prices`) goes before \
    these: [`[cache]` in a scenario](writing-a-scenario.md#cache-and-prices).\n\n\
    *read* is the price of a token that is found in the prompt cache, and *of input* its share of the price of input: the \
    figure on which a bill depends most. Where the lowest or the highest share of the provider's models that are still \
    served would change a recommendation, or the sign of what a strategy saves, the report says so under *Turns with*. \
    *write* is input that is written to a cache of five minutes, or of an hour; OpenAI's models that bill writes keep them \
    for 30 minutes. Where it is empty, writing costs what input costs. *up to* is the longest prompt at these prices: \
    longer ones cost more. A strategy's `fast` is the model named above the table: the cheapest of those that were served \
    on the day of the file, for a million tokens in and a fifth of that out. *retired* is the first day on which a model \
    is no longer served; old recordings are still billed at its price.\n";

/// A number of tokens with its digits in threes: `1,048,576`.
fn grouped(tokens: Tokens) -> String {
    let digits = tokens.0.to_string();
    let parts: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|part| std::str::from_utf8(part).unwrap())
        .collect();
    parts.join(",")
}

/// The tables of all price files.
fn prices() -> String {
    let prices = Prices::built_in().unwrap();
    let mut out = PRICES.to_owned();
    let dollars = |price: Option<Usd>| price.map(|price| format!("{}", price.0 as f64 / 1_000.0));
    let tokens = |tokens: &[Tokens]| {
        let tokens: Vec<String> = tokens.iter().copied().map(grouped).collect();
        Some(tokens.join(" or "))
    };
    for list in prices.lists() {
        let fast = list.fast.as_ref().unwrap();
        let _ = write!(
            out,
            "\n## {}\n\n`fast` is `{fast}`. Prices of {}; `{}`.\n\n\
             | model | input | output | read | of input | write, 5m | write, 1h | window | longest answer | up to | retired |\n\
             |:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|:--|\n",
            list.provider, list.date, list.file
        );
        for model in &list.models {
            let price = &model.per_token;
            let share = price.cache_read.zip(price.input);
            let names: Vec<String> = model.names.iter().map(|name| format!("`{name}`")).collect();
            let cells = [
                Some(names.join(" ")),
                dollars(price.input),
                dollars(price.output),
                dollars(price.cache_read),
                share.map(|(read, input)| format!("{}", read.0 as f64 / input.0 as f64)),
                dollars(price.cache_write_5m),
                dollars(price.cache_write_1h),
                tokens(&model.windows),
                model.max_output.map(grouped),
                model.holds_up_to.map(grouped),
                model.retired.clone(),
            ];
            let cells = cells.map(Option::unwrap_or_default);
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    out
}

#[test]
fn the_table_of_prices_is_that_of_the_price_files() {
    goldens::golden("docs/prices.md", &prices());
}

#[test]
fn the_schema_of_the_protocol_is_what_the_code_reads_and_writes() {
    let schema = proctor::strategy::external::schema();
    goldens::golden("docs/strategy.schema.json", &format!("{schema:#}\n"));
}

#[test]
fn links_between_the_guides_lead_somewhere() {
    for entry in std::fs::read_dir(page("")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#']).next().unwrap();
            let is_file = !target.is_empty() && !target.contains("://");
            assert!(
                !is_file || page("").join(target).exists(),
                "{}: {target}",
                path.display()
            );
        }
    }
}
