//! A feature is named in its own file and where it is registered: adding one touches nothing else.
//!
//! What names a feature elsewhere is true of that one, need not be said of a new one, and is listed
//! with the reason.

use std::collections::BTreeSet;
use std::path::Path;

use proctor::metric::METRICS;
use proctor::probe::ProbeKind;

use super::scan::Token;
use super::{File, files, is_test_file, scan};

/// Features of one kind that `CONTRIBUTING.md` adds as a file and a line.
struct Feature {
    names: fn(&[File]) -> Vec<String>,
    /// Where they are written and registered, the list first: there everything may be named.
    home: &'static [&'static str],
    /// The modules and enums in whose paths a name can mean nothing else; `super` beside the list.
    behind: &'static [&'static str],
    /// Whether a string that is the name of one can mean nothing else.
    has_proper_names: bool,
    /// Which other file names which features; `*` for names that mean something else elsewhere.
    named_in: &'static [(&'static str, &'static str)],
}

const FEATURES: &[Feature] = &[
    // Stages.
    Feature {
        names: |all| marked(all, "strategy/stage", "impl Stage for"),
        home: &["strategy/stage"],
        behind: &["stage"],
        has_proper_names: true,
        named_in: &[
            // A reader, an arm of generated sessions, and a tool of one family.
            ("*", "extract recorded snip"),
            // Reports see no stage; a test below holds the list complete.
            (
                "report/sections/comparison/written",
                "collapse_groups external session_memory summarize",
            ),
            // A strategy that is one program is that stage and no other.
            ("strategy/preset", "external"),
            // The control without a model digests.
            ("strategy/control", "digest"),
        ],
    },
    // Importers.
    Feature {
        names: |all| marked(all, "session/import", "const IMPORTER:"),
        home: &["session/import"],
        behind: &["import"],
        has_proper_names: true,
        named_in: &[
            // Products that show a summary in place of the thinking.
            ("bill/fit", "codex openai_responses"),
            // A command of the same name.
            ("cli/examples", "inspect"),
            // The proxy writes logs in the formats of the APIs.
            (
                "cli/record",
                "anthropic gemini openai_chat openai_responses",
            ),
            // Products whose breakpoints were seen to differ from those the provider recommends.
            ("model/price/placement", "claude_code opencode openhands pi"),
            // It does not use the larger window of its models.
            ("runner/native", "claude_code"),
            // A provider and presets of the same names.
            // The system that a trace names.
            ("session/export/otlp", "gemini"),
            ("session/wire", "anthropic gemini openai_responses"),
            (
                "strategy/preset/built_in",
                "aider claude_code cline codex copilot_cli gemini_cli goose kimi_cli opencode openhands pi qwen_code",
            ),
        ],
    },
    // Observers.
    Feature {
        names: |all| marked(all, "replay/observe", "impl Observer for"),
        home: &["replay/observe"],
        behind: &["observe"],
        has_proper_names: false,
        named_in: &[
            // Laws are held against what these two see.
            ("check", "changes validity"),
            // Shown to a person, and not recorded.
            ("cli/inspect", "snapshot"),
            ("cli/inspect/diff", "snapshot"),
            ("cli/inspect/page", "snapshot"),
            ("cli/inspect/usage", "snapshot"),
            // Made once for a session, because it is dear.
            ("replay/prepared", "prompt_cache recovery"),
        ],
    },
    // Metrics.
    Feature {
        names: |_| METRICS.iter().map(|it| it.name.to_owned()).collect(),
        home: &["metric/table"],
        behind: &[],
        has_proper_names: true,
        named_in: &[
            // Fields of other output, a level of validity and a stage.
            ("*", "compactions extract overflows rejected"),
            // The axes of a sweep: what it saves and what it keeps.
            (
                "cli/sweep",
                "accuracy action_support cost_savings survival token_savings",
            ),
            // What is compared and gated is a list of its own, with margins.
            (
                "compare",
                "accuracy action_support completion cost_savings survival token_savings",
            ),
            (
                "compare/sample",
                "accuracy action_support completion survival token_savings",
            ),
            // Scores of probes, which are paired one by one; only answers depend on chance.
            ("compare/difference", "accuracy survival"),
            ("compare/gate", "accuracy completion"),
            ("compare/slices", "survival"),
            // What rests on prices is computed again where they changed.
            ("compare/prices", "cost_savings"),
            // The evaluator of that name.
            ("metric/noise", "survival"),
            // How a session ended has a label of its own.
            ("report/otlp", "completion"),
            // Columns of probe items.
            ("report/columns", "survival survival_compacted"),
            // The axes of a verdict, and what its sentences name besides.
            (
                "compare/verdict/differences",
                "accuracy action_support cost_savings survival",
            ),
            (
                "report/evidence",
                "accuracy action_support cost_savings cost_savings_edge survival token_savings",
            ),
            // The few columns that are shown first.
            (
                "report/headline",
                "accuracy action_support completion cost_savings cost_savings_edge fired strategy_calls \
                 survival tasks_solved token_savings",
            ),
            // What the screen can be sorted by.
            (
                "report/screen",
                "action_support cost_savings strategy_calls token_savings",
            ),
            // What a number is made of.
            (
                "report/explain",
                "action_support completion cost_savings cost_savings_edge strategy_calls survival \
                 token_savings",
            ),
            // What is still in the prompt is lost; anything else is an answer to it.
            ("report/comparison/hard_breaks", "survival"),
            // What is drawn.
            ("report/plot/pareto", "cost_savings"),
            ("report/plot/savings", "cost_savings token_savings"),
            // What was kept.
            ("report", "accuracy action_support fidelity survival"),
            // Columns that depend on the scenario or on how many answers were scored.
            (
                "report/sections/comparison",
                "accuracy cost_savings_edge fidelity survival",
            ),
            // Sections with a column for it beside their own.
            ("report/sections/cost", "token_savings"),
            ("report/sections/trail", "unsupported_atoms"),
        ],
    },
    // Formats of reports: the modules of their functions.
    Feature {
        names: modules_of_formats,
        home: &["report/format"],
        behind: &["report", "plot", "super"],
        has_proper_names: false,
        named_in: &[
            // The terminal and the summary of a job are written without being asked for.
            ("cli", "terminal"),
            ("cli/comparison", "comment"),
            // A comment is Markdown of few tables.
            ("report/comment", "markdown"),
            // The schema of a report is that of its JSON, and the writer escapes as it does.
            ("cli/report", "json"),
            ("cli/schema", "json"),
            // Suites of tests are made where verdicts are.
            ("report/comparison", "junit"),
            ("report/github", "junit"),
            // It is laid out for a terminal.
            ("report/screen", "terminal"),
            ("report/comparison/screen", "terminal"),
            ("report/sweep/screen", "terminal"),
            // The page holds pictures.
            ("report/html", "cache pareto savings tokens"),
            ("report/html/calls", "tokens"),
            ("report/html/retention", "curves"),
        ],
    },
    // Formats of reports: the endings of their files.
    Feature {
        names: endings_of_formats,
        home: &["report/format"],
        behind: &[],
        has_proper_names: true,
        named_in: &[
            // Files that are no reports.
            ("*", "csv json jsonl"),
            // It is empty without a gate.
            ("cli/comparison", "junit.xml"),
            // A session is written in a file of that ending too.
            ("cli/import", "otlp.json"),
            // Not every build has it.
            ("cli/report", "parquet"),
            ("report", "parquet"),
        ],
    },
    // Keys of a scenario: their dotted paths, and the names that are no common word.
    Feature {
        names: |_| keys(),
        home: &[
            "scenario",
            "model/price/scheme",
            "session/synthetic",
            "strategy/preset/build",
        ],
        behind: &[],
        has_proper_names: true,
        named_in: &[
            // Fields of other files and output.
            ("*", "max_output timeout_seconds"),
            // Set by flags.
            (
                "cli/inputs",
                "cache.prices side_chains window.fraction window.mode window.tokens",
            ),
            ("cli/models", "base_url"),
            // Options that the help of the gate shows.
            ("cli/run", "fail_on"),
            ("cli/sweep", "models.reader"),
            // A strategy's own words about itself.
            ("report/sections/comparison/written", "stand_in"),
            ("strategy/preset", "stand_in"),
            // Named in advice.
            ("report/sections/noise", "models.answers models.judgements"),
        ],
    },
    // Kinds of probes. Generators, importers and proposals make the facts that they plant or find.
    Feature {
        names: |_| {
            ProbeKind::ALL
                .map(|it| it.name().replace('-', "_"))
                .to_vec()
        },
        home: &[
            "probe/kind",
            "probe/derive",
            "session/ground_truth",
            "session/synthetic",
            "session/import/benchmark",
        ],
        behind: &["ProbeKind", "Fact"],
        has_proper_names: false,
        named_in: &[
            // Metrics of calls that carry values and of rules; of open questions only evidence is found.
            ("metric/fidelity", "act constraint open"),
            // The rate of chance, and what has none.
            ("metric/survival", "decoy unanswerable"),
            // Mistakes that a file of facts of these kinds cannot be read for, or can.
            (
                "probe/check",
                "artifact decision obsolete open_handle order",
            ),
            // Values beside the right one belong to no other probe.
            ("probe/grade", "binding"),
            // Answers whose verdict is known.
            ("probe/judge", "decoy rejected_path"),
            // Orders, lists, pairs and rules that are found in part.
            (
                "replay/observe/survival",
                "artifact constraint continuation decision decoy open order two_step unanswerable",
            ),
            // What full history must hold and an empty context must not.
            ("report/controls", "decoy recall"),
            // Kinds that always have a column, or a heading of their own.
            ("report/sections", "artifact constraint decoy open recall"),
            // Not planted.
            ("runner/probes", "decoy"),
        ],
    },
];

/// The names of the files of a folder that hold this text.
fn marked(all: &[File], folder: &str, mark: &str) -> Vec<String> {
    let names = all.iter().filter_map(|file| {
        let name = file.module.strip_prefix(folder)?.strip_prefix('/')?;
        (!name.contains('/') && file.text.contains(mark)).then(|| name.to_owned())
    });
    names.collect()
}

/// The tokens of the list of formats, three by three.
fn list_of_formats(all: &[File]) -> impl Iterator<Item = &[Token]> {
    let list = all.iter().find(|file| file.module == "report/format");
    list.unwrap().source.tokens.windows(3)
}

/// The modules of the functions in the list of formats.
fn modules_of_formats(all: &[File]) -> Vec<String> {
    let functions = ["render", "lines", "file", "scene"];
    let calls = list_of_formats(all)
        .filter(|three| three[1].text == "::" && functions.contains(&&*three[2].text));
    calls.map(|three| three[0].text.clone()).collect()
}

/// The endings in the list of formats, with those that not every build has.
fn endings_of_formats(all: &[File]) -> Vec<String> {
    let new = list_of_formats(all).filter(|three| three[0].text == "new" && three[1].text == "(");
    let endings = new.filter_map(|three| three[2].text.strip_prefix('"'));
    endings.map(str::to_owned).collect()
}

fn keys() -> Vec<String> {
    let text = include_str!("../../../src/scenario/keys.toml");
    let sections: toml::Table = text.parse().unwrap();
    let keys = sections.iter().flat_map(|(section, keys)| {
        let keys = keys.as_table().unwrap().keys();
        keys.flat_map(move |key| [key.clone(), format!("{section}.{key}")])
    });
    keys.filter(|name| name.contains(['_', '.'])).collect()
}

/// A name as an enum has it, as a module and in words are the same.
fn plain(name: &str) -> String {
    let letters = name.chars().filter(|c| !matches!(c, '_' | '-'));
    letters.flat_map(char::to_lowercase).collect()
}

/// Which other files name which features.
fn namings(feature: &Feature, all: &[File]) -> BTreeSet<(String, String)> {
    let names = (feature.names)(all);
    assert!(
        names.len() > 10,
        "nothing to register in {:?}",
        feature.home
    );
    let is_test = |file: &File| file.path().contains(&"tests") || is_test_file(file, all);
    let others = all
        .iter()
        .filter(|file| !file.is_in(feature.home) && !is_test(file));
    let folder = |module: &str| module.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let anywhere = feature.named_in.iter().filter(|(file, _)| *file == "*");
    let anywhere: Vec<&str> = anywhere.flat_map(|(_, names)| names.split(' ')).collect();
    let mut found = BTreeSet::new();
    for file in others {
        let tokens = &file.source.tokens;
        let is_beside = folder(&file.module) == folder(feature.home[0]);
        let words = feature
            .behind
            .iter()
            .filter(|word| **word != "super" || is_beside);
        let behind = words.flat_map(|word| scan::behind(tokens, word));
        let behind: BTreeSet<String> = behind.map(|name| plain(&name)).collect();
        let strings = tokens
            .iter()
            .filter_map(|token| token.text.strip_prefix('"'));
        let strings: BTreeSet<String> = strings.map(|text| text.replace('-', "_")).collect();
        for name in &names {
            let is_proper = feature.has_proper_names && !anywhere.contains(&name.as_str());
            if is_proper && strings.contains(&name.replace('-', "_"))
                || behind.contains(&plain(name))
            {
                found.insert((file.module.clone(), name.clone()));
            }
        }
    }
    found
}

#[test]
fn a_feature_is_named_in_its_own_file_and_in_its_list() {
    let mut all = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    files(&src, "", &mut all).unwrap();
    let mut wrong = Vec::new();
    for feature in FEATURES {
        let listed = feature.named_in.iter().filter(|(file, _)| *file != "*");
        let known = listed.flat_map(|(file, names)| {
            let names = names.split(' ');
            names.map(|name| ((*file).to_owned(), name.to_owned()))
        });
        let (found, known) = (namings(feature, &all), known.collect::<BTreeSet<_>>());
        let new: Vec<_> = found.difference(&known).collect();
        let gone: Vec<_> = known.difference(&found).collect();
        if !new.is_empty() || !gone.is_empty() {
            let home = feature.home;
            wrong.push(format!(
                "{home:?}: named elsewhere {new:#?}, and no longer {gone:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reports compare no strategy by what a model would have written, and know its stages by name.
#[test]
fn every_stage_that_asks_a_model_is_known_to_reports() {
    let mut all = Vec::new();
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    files(&src, "", &mut all).unwrap();
    let stages = (FEATURES[0].names)(&all).into_iter().filter(|stage| {
        let own = format!("strategy/stage/{stage}");
        let asks = |file: &File| {
            let calls = scan::behind(&file.source.tokens, "Step");
            calls.iter().any(|it| it.starts_with("ask"))
        };
        all.iter().any(|file| file.is_in(&[&own]) && asks(file))
    });
    // What one asks for was recorded: no model writes it. The other asks with one of its methods, and its name is a
    // plain word.
    let is_known = |stage: &String| !["recorded", "extract"].contains(&stage.as_str());
    let stages: Vec<String> = stages.filter(is_known).collect();
    let written = FEATURES[0]
        .named_in
        .iter()
        .find(|(file, _)| file.ends_with("/written"));
    assert_eq!(stages.join(" "), written.unwrap().1);
}
