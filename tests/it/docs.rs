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

mod strategies;

/// A page of `docs`.
fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)
}

/// A fenced block of a page: its language, the file that it is, and its lines.
struct Block<'a> {
    language: &'a str,
    file: Option<&'a str>,
    lines: Vec<&'a str>,
}

/// The fenced blocks of a page, in order. The words behind the fence are the language and the file.
fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            continue;
        };
        let mut words = info.split(' ');
        blocks.push(Block {
            language: words.next().unwrap_or_default(),
            file: words.next(),
            lines: lines.by_ref().take_while(|line| *line != "```").collect(),
        });
    }
    blocks
}

impl Block<'_> {
    /// The commands of a block: behind `$ ` in `console`, each line in `sh`. A `\` continues a line.
    fn commands(&self) -> Vec<String> {
        let mut commands: Vec<String> = Vec::new();
        let mut continues = false;
        for line in &self.lines {
            let command = match self.language {
                "console" if !continues => line.strip_prefix("$ "),
                "console" | "sh" => Some(line.trim()),
                _ => None,
            };
            let Some(command) = command.filter(|command| !command.is_empty()) else {
                continue;
            };
            let whole = command.strip_suffix('\\').unwrap_or(command);
            match commands.last_mut().filter(|_| continues) {
                Some(last) => last.push_str(whole),
                None => commands.push(whole.replace("cargo run --release -- ", "proctor ")),
            }
            continues = whole != command;
        }
        commands
    }
}

/// The commands of a page, in order.
fn commands(text: &str) -> Vec<String> {
    blocks(text).iter().flat_map(Block::commands).collect()
}

/// Runs a command of a page in a folder, which is also the home; what a page calls `$CLONE` is this repository.
fn shell(command: &str, folder: &Path) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_proctor"));
    let path = std::env::var("PATH").unwrap();
    Command::new("sh")
        .args(["-c", command])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("CLONE", env!("CARGO_MANIFEST_DIR"))
        .env("HOME", folder)
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

/// The pages to learn from, the README among them, and those to look things up in, as links of the index lead to them.
fn pages() -> (Vec<String>, Vec<String>) {
    let index = std::fs::read_to_string(page("README.md")).unwrap();
    let (to_learn, to_look_up) = index.split_once("\n## Reference").unwrap();
    (links(to_learn), links(to_look_up))
}

/// Where the links of a page lead.
fn links(text: &str) -> Vec<String> {
    let links = text.split("](").skip(1);
    links.filter_map(|link| Some(link.split_once(')')?.0.to_owned())).collect()
}

/// Whether a command waits for a server, a key or a network, or has a word in capitals to be replaced: `SESSION`.
fn needs_more(command: &str) -> bool {
    let network = ["--graded", "--upstream", "proctor live", "proctor record"];
    let mut words =
        command.split(|letter: char| !letter.is_alphanumeric() && !"_$".contains(letter));
    network.iter().any(|word| command.contains(word))
        || words
            .any(|word| word.len() > 2 && word.chars().all(|letter| letter.is_ascii_uppercase()))
}

/// Asserts that the parser of arguments takes all of a command: it refuses a flag behind the others, and only this.
#[track_caller]
fn parses(name: &str, command: &str, folder: &Path) {
    let end = [" -- ", " > ", " | ", " && ", " #", " &"].map(|end| command.find(end));
    let (before, after) =
        command.split_at(end.into_iter().flatten().min().unwrap_or(command.len()));
    let after = after.strip_prefix(" -- ").map_or("", |_| after);
    let command_line = format!("{before} --no-such-flag{after}");
    let said = String::from_utf8(shell(&command_line, folder).stderr).unwrap();
    assert!(said.contains("has no flag `--no-such-flag`"), "{name}: `{command}`:\n{said}");
}

/// Fills a folder with what the pages assume: recordings without facts, one session, and the clients of the repository.
fn prepare(text: &str, folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    std::os::unix::fs::symlink(root.join("clients"), folder.join("clients")).unwrap();
    let session = root.join("scenarios/recorded/add-weeks.session.jsonl");
    std::fs::copy(session, folder.join("session.jsonl")).unwrap();
    if text.contains(" recordings") {
        for family in ["code-review", "debugging"] {
            let of = format!("{family} --rounds 40 --count 6 -o recordings");
            printed("recordings", &format!("proctor sessions generate {of}"), folder);
        }
        printed("recordings", "rm recordings/*.truth.json", folder);
    }
}

/// Follows a page in an empty folder: writes its files, block by block, and runs its commands in `console` blocks, in
/// order. A sweep may recommend nothing, and a gate may fail. A block in `screen` is all that the command before it
/// prints; `PROCTOR_BLESS=1` writes it.
fn follow(name: &str) {
    let text = std::fs::read_to_string(page(name)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    prepare(&text, folder.path());
    let (mut files, mut shown, mut made) = (BTreeMap::new(), String::new(), text.clone());
    for block in blocks(&text) {
        let lines = block.lines.join("\n");
        if block.language == "screen" {
            made = made.replacen(&lines, shown.trim_end(), 1);
        }
        if let Some(file) = block.file {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            let written = files.entry(file).or_insert_with(String::new);
            *written += &(lines + "\n");
            std::fs::write(path, written).unwrap();
        }
        for command in block.commands() {
            let is_known = command.starts_with("proctor ") || command.starts_with("cp ");
            if block.language != "console" || !is_known || needs_more(&command) {
                continue;
            }
            let output = shell(&command, folder.path());
            let said = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            let is_fine = matches!(code, Some(0 | 4 | 100));
            assert!(is_fine, "{name}: `{command}`: {code:?}\n{said}");
            shown = String::from_utf8(output.stdout).unwrap();
        }
    }
    goldens::golden(&format!("docs/{name}"), &made);
}

#[test]
fn the_parser_takes_the_commands_of_all_pages() {
    let (to_learn, to_look_up) = pages();
    let folder = tempfile::tempdir().unwrap();
    for name in to_learn.iter().chain(&to_look_up) {
        let text = std::fs::read_to_string(page(name)).unwrap();
        let commands = commands(&text).into_iter();
        for command in commands.filter(|command| command.starts_with("proctor ")) {
            parses(name, &command, folder.path());
        }
    }
}

#[test]
fn the_commands_of_the_pages_to_learn_from_run() {
    let (mut pages, _) = pages();
    pages.push("reference/synthetic-sessions.md".to_owned());
    for name in sampled(pages) {
        follow(&name);
    }
}

#[test]
fn the_screens_of_pages_are_those_of_today() {
    for name in ["reading-a-report.md", "comparing.md"] {
        follow(name);
    }
}

#[test]
fn the_pages_to_learn_from_stay_short() {
    let (to_learn, _) = pages();
    let words = to_learn.iter().map(|name| {
        let text = std::fs::read_to_string(page(name)).unwrap();
        text.split_whitespace().count()
    });
    let words: usize = words.sum();
    assert!(words <= 16_000, "{words} words");
}

#[test]
fn the_reference_of_metrics_is_what_the_code_writes() {
    let written = proctor::metric::reference::reference();
    goldens::golden("docs/reference/metrics.md", &written);
}

#[test]
fn the_page_of_codes_is_what_explain_says() {
    let written = proctor::compare::code::reference().unwrap();
    goldens::golden("docs/reference/codes.md", &written);
    let folder = tempfile::tempdir().unwrap();
    let said = printed("codes.md", "proctor explain '[v3]'", folder.path());
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&written).contains(&words(&said)), "{said}");
    let listed = printed("codes.md", "proctor explain", folder.path());
    assert_eq!(listed.lines().count(), written.matches("\n## ").count());
    let unknown = shell("proctor explain V33", folder.path());
    assert_eq!(unknown.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("did you mean `V3`"));
}

#[test]
fn the_reference_of_strategies_is_what_presets_and_code_say() {
    let written = strategies::reference();
    goldens::golden("docs/reference/strategies.md", &written);
    for kind in STAGES {
        let written = strategies::page(kind);
        assert!(!written.contains("|  |\n"), "a knob says nothing: {written}");
        goldens::golden(&format!("docs/reference/stages/{}.md", kind.name), &written);
    }
}

/// The head of the page of prices.
const PRICES: &str = "# Prices\n\n\
    Made by the tests from `src/model/price/*.toml`. Dollars per million tokens; an empty cell is unknown, never 0. Each \
    file names its documents and when they were read. A file of your own (`--set cache.prices=FILE`) goes before \
    these: [`[cache]` in a scenario](scenario.md#cache-and-prices).\n\n\
    *read* is the price of a token that is found in the prompt cache, and *of input* its share of the price of input: the \
    figure on which a bill depends most. Where the lowest or the highest share of the provider's models that are still \
    served would change a recommendation, or the sign of what a strategy saves, the report says so under *Turns with*. \
    *write* is input that is written to a cache of five minutes, or of an hour; OpenAI's models that bill writes keep them \
    for 30 minutes. Where it is empty, writing costs what input costs. *up to* is the longest prompt at these prices: a request with \
    a longer one costs *longer* times as much, all of its input and its output. A strategy's `fast` is the model named above the table: the cheapest of those that were served \
    on the day of the file, for a million tokens in and a fifth of that out. *retired* is the first day on which a model \
    is no longer served; old recordings are still billed at its price.\n";

/// A number of tokens with its digits in threes: `1,048,576`.
fn grouped(tokens: Tokens) -> String {
    let digits = tokens.0.to_string();
    let parts: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
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
             | model | input | output | read | of input | write, 5m | write, 1h | window | longest answer | up to | longer | retired |\n\
             |:--|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|:--|\n",
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
                price.long_prompts.map(|longer| {
                    let times = [longer.input, longer.output].map(|it| f64::from(it) / 1_000.0);
                    format!("× {}, × {}", times[0], times[1])
                }),
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

/// Whether a page has a heading with this anchor; any file has the empty one.
fn has_anchor(path: &Path, anchor: &str) -> bool {
    if anchor.is_empty() {
        return path.exists();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut headings = text.lines().filter_map(|line| line.strip_prefix('#'));
    headings.any(|heading| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept =
            title.replace(|letter: char| !letter.is_alphanumeric() && !" -_".contains(letter), "");
        kept.replace(' ', "-") == anchor
    })
}

#[test]
fn links_between_the_guides_lead_somewhere() {
    let folders = ["..", "", "reference", "reference/stages", "experiments"];
    let files = folders.map(|folder| std::fs::read_dir(page(folder)).ok());
    for entry in files.into_iter().flatten().flatten() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "md" && extension != "txt") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        for link in links(&text).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let own = path.file_name().unwrap();
            let target = if file.is_empty() { Path::new(own) } else { Path::new(file) };
            let target = path.parent().unwrap().join(target);
            assert!(has_anchor(&target, anchor), "{}: {link}", path.display());
        }
    }
}

/// The texts in backticks.
fn code(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// The command that a cell of a table, or an item of a list, begins its code with.
fn command_of(cell: &str) -> Option<&str> {
    code(cell).next().filter(|code| code.starts_with("proctor ") || code.starts_with("cargo test "))
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
    let lines: Vec<String> = lines.map(|words| words.collect::<Vec<_>>().join(" ")).collect();
    let mut found: Vec<&String> = lines.iter().collect();
    for quote in quotes {
        let begun: Vec<&String> = lines.iter().filter(|line| line.starts_with(quote)).collect();
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
        ("gpt-4o-airline.json", "scenarios/recorded/add-weeks.session.jsonl"),
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
            let output =
                outputs.entry(command).or_insert_with(|| output_of(name, command, folder.path()));
            let missing = output.as_ref().and_then(|output| missing(output, &quotes));
            assert_eq!(missing, None, "{name}: `{command}` does not print this");
        }
    }
}
