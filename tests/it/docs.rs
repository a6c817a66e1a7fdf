//! The guides say what the program does: their commands run, and what is generated is current.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

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

/// Runs a command of a page in a folder.
fn shell(command: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_proctor"));
    let path = std::env::var("PATH").unwrap();
    Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env(
            "PATH",
            format!("{}:{path}", program.parent().unwrap().display()),
        )
        .env_remove("PROCTOR_WINDOW")
        .env_remove("PROCTOR_COUNTER")
        .env_remove("PROCTOR_SEED")
        .output()
        .unwrap()
}

/// What a command of a page prints; it must succeed.
#[track_caller]
fn printed(name: &str, command: &str, folder: &Path) -> String {
    let output = shell(command, folder);
    assert!(
        output.status.success(),
        "{name}: `{command}`:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Runs all commands of a page in one folder, in order; each must succeed.
#[track_caller]
fn run_all(name: &str, at_least: usize) {
    let text = std::fs::read_to_string(page(name)).unwrap();
    let commands = commands(&text);
    assert!(commands.len() >= at_least, "{name}: {commands:?}");
    let folder = tempfile::tempdir().unwrap();
    for command in commands {
        let command = command.replace("cargo run --release -- ", "proctor ");
        printed(name, &command, folder.path());
    }
}

#[test]
fn the_commands_of_the_guides_run() {
    for (name, at_least) in sampled([
        ("getting-started.md", 6),
        ("writing-a-scenario.md", 3),
        ("scale.md", 6),
        ("reference/synthetic-sessions.md", 4),
    ]) {
        run_all(name, at_least);
    }
}

#[test]
fn the_reference_of_metrics_is_what_the_code_writes() {
    let written = proctor::metric::reference::reference();
    goldens::golden("docs/reference/metrics.md", &written);
}

#[test]
fn the_reference_of_strategies_is_what_presets_and_code_say() {
    let written = proctor::strategy::reference::reference().unwrap();
    goldens::golden("docs/reference/strategies.md", &written);
    for kind in STAGES {
        let written = proctor::strategy::reference::page(kind);
        assert!(
            !written.contains("|  |\n"),
            "a knob says nothing: {written}"
        );
        goldens::golden(&format!("docs/reference/stages/{}.md", kind.name), &written);
    }
}

/// The head of the page of prices.
const PRICES: &str = "# Prices\n\n\
    Made by the tests from `src/model/price/*.toml`. Dollars per million tokens; an empty cell is unknown, never 0. Each \
    file names its documents and when they were read. A file of your own (`--set cache.prices=FILE`) goes before \
    these: [`[cache]` in a scenario](../writing-a-scenario.md#cache-and-prices).\n\n\
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
    goldens::golden("docs/reference/prices.md", &prices());
}

#[test]
fn the_schema_of_the_protocol_is_what_the_code_reads_and_writes() {
    let schema = proctor::strategy::external::schema();
    goldens::golden("docs/strategy.schema.json", &format!("{schema:#}\n"));
}

#[test]
fn links_between_the_guides_lead_somewhere() {
    let pages = ["", "reference", "reference/stages"]
        .map(|folder| std::fs::read_dir(page(folder)).unwrap());
    for entry in pages.into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let folder = path.parent().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split([')', '#']).next().unwrap();
            let is_file = !target.is_empty() && !target.contains("://");
            assert!(
                !is_file || folder.join(target).exists(),
                "{}: {target}",
                path.display()
            );
        }
    }
}

/// The texts in backticks.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The command that a cell of a table, or an item of a list, begins its code with.
fn command_of(cell: &str) -> Option<&str> {
    code(cell)
        .next()
        .filter(|code| code.starts_with("proctor ") || code.starts_with("cargo test "))
}

/// The commands of a page's tables and lists, each with what the next cell quotes of their output. A row whose
/// command is left out goes on with that of the row above it.
fn quoted(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut rows: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in text.lines() {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let Some(at) = cells.iter().position(|cell| command_of(cell).is_some()) {
            let quotes = cells.get(at + 1).copied().unwrap_or_default();
            rows.extend(command_of(cells[at]).map(|command| (command, code(quotes).collect())));
        } else if let (["", _, "", quotes, ""], Some((above, _))) = (&cells[..], rows.last()) {
            rows.push((above, code(quotes).collect()));
        }
    }
    rows
}

/// The first of these that an output does not hold: as the beginning of a line, or as whole words of the lines that
/// the quote before it begins.
fn missing<'a>(output: &str, quotes: &[&'a str]) -> Option<&'a str> {
    let lines = output.lines().map(str::split_whitespace);
    let lines: Vec<String> = lines
        .map(|words| words.collect::<Vec<_>>().join(" "))
        .collect();
    let mut found: Vec<&String> = lines.iter().collect();
    for quote in quotes {
        let begun: Vec<&String> = lines
            .iter()
            .filter(|line| line.starts_with(quote))
            .collect();
        let holds = |line: &&String| {
            let line = format!(" {line} ").replace(',', " ");
            line.contains(&format!(" {quote} ").replace(',', " "))
        };
        if !begun.is_empty() {
            found = begun;
        } else if !found.iter().any(holds) {
            return Some(quote);
        }
    }
    None
}

/// What a command of a table prints, or `None` if it is a test. A scenario is quoted from its table, which other
/// tests make. Other runs are tried on one session.
fn output_of(name: &str, command: &str, folder: &Path) -> Option<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if let Some(test) = command.strip_prefix("cargo test --lib ") {
        assert!(has_test(&root.join("src"), test), "{name}: no test {test}");
        return None;
    }
    let Some(arguments) = command.strip_prefix("proctor run ") else {
        return Some(printed(name, command, folder));
    };
    let scenario = arguments.strip_prefix("scenarios/").unwrap_or_default();
    let table = root.join("scenarios/expected").join(scenario);
    let table = std::fs::read_to_string(table.with_extension("txt"));
    Some(table.unwrap_or_else(|_| {
        let sampled = format!("proctor run --sample 1 --offline {arguments}");
        printed(name, &sampled, folder)
    }))
}

/// Whether a file in a folder has a test of this name.
fn has_test(folder: &Path, name: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return has_test(&path, name);
        }
        std::fs::read_to_string(&path).is_ok_and(|text| text.contains(&format!("fn {name}()")))
    })
}

/// Where a page names recordings that are not here, ours take their place. Every third command of which nothing is
/// quoted is tried.
#[test]
fn the_pages_on_sources_and_figures_quote_what_commands_print() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    for (name, target) in [
        ("scenarios", "scenarios"),
        ("scripts", "scripts"),
        ("demonstrations", "scenarios/recorded"),
        (
            "gpt-4o-airline.json",
            "scenarios/recorded/add-weeks.session.jsonl",
        ),
    ] {
        std::os::unix::fs::symlink(root.join(target), folder.path().join(name)).unwrap();
    }
    for (name, at_least) in [("seeds.md", 60), ("published.md", 12)] {
        let text = std::fs::read_to_string(page(name)).unwrap();
        for command in commands(&text) {
            printed(name, &command, folder.path());
        }
        let rows = quoted(&text);
        assert!(rows.len() >= at_least, "{name}: {rows:?}");
        let (held, tried): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(_, quotes)| !quotes.is_empty());
        let mut outputs = BTreeMap::new();
        for (command, quotes) in held.into_iter().chain(sampled(tried)) {
            let output = outputs
                .entry(command)
                .or_insert_with(|| output_of(name, command, folder.path()));
            let missing = output.as_ref().and_then(|output| missing(output, &quotes));
            assert_eq!(missing, None, "{name}: `{command}` does not print this");
        }
    }
}
