//! Generated sessions: same seed, same bytes; what was planted is there once, and nowhere else.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests fail loudly"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use memchr::memmem;
use proctor_sessions::ground_truth::{ArtifactVerb, Fact, KeyValue, Revision, RuleForm};
use proctor_sessions::tokens::{CountedTexts, O200k};
use proctor_sessions::units::{ContentHash, Tokens, is_valid_id};
use proctor_sessions::{ContentBlock, Message, Role, Session, Tag, ToolUse};
use proctor_synth::{FAMILIES, Generated, Length, Recipe, SyntheticError, generate};

use crate::goldens::{golden, sampled};

mod controls;
mod distribution;
#[path = "../../../../tests/it/goldens.rs"]
mod goldens;
mod kinds;
mod stories;
mod truth;

use truth::{argument, check_truth, check_validity};

fn counts() -> CountedTexts {
    CountedTexts::new(Arc::new(O200k))
}

const CODE_REVIEW: &str = "code-review";
const FEATURE_PHASES: &str = "feature-phases";

/// Sessions that tests share: most ask for the same.
type Shared = BTreeMap<(String, u64, u32), Arc<Generated>>;
static SHARED: Mutex<Shared> = Mutex::new(Shared::new());

/// Generates a session; one of a number of rounds is generated once for all tests.
#[expect(clippy::expect_used, reason = "a helper of tests")]
fn made_in(family: &str, seed: u64, length: Length) -> Arc<Generated> {
    let make = || {
        let recipe = Recipe { family: family.to_owned(), seed, length, ..Recipe::default() };
        Arc::new(generate(&recipe, &counts()).expect("a valid recipe"))
    };
    let Length::Rounds(rounds) = length else {
        return make();
    };
    let key = (family.to_owned(), seed, rounds);
    let known = SHARED.lock().expect("no test panics here").get(&key).cloned();
    known.unwrap_or_else(|| {
        let made = make();
        let mut shared = SHARED.lock().expect("no test panics here");
        shared.insert(key, made.clone());
        made
    })
}

fn made(seed: u64, length: Length) -> Arc<Generated> {
    made_in(CODE_REVIEW, seed, length)
}

fn phases(seed: u64, rounds: u32) -> Arc<Generated> {
    made_in(FEATURE_PHASES, seed, Length::Rounds(rounds))
}

fn rounds(seed: u64, rounds: u32) -> Arc<Generated> {
    made(seed, Length::Rounds(rounds))
}

fn size(session: &Session, counts: &CountedTexts) -> Tokens {
    session.texts().map(|text| counts.size(text).tokens).sum()
}

fn hash(generated: &Generated) -> String {
    let mut bytes = Vec::new();
    proctor_formats::native::write(&generated.session, &mut bytes).unwrap();
    bytes.extend(format!("{:?}", generated.truth).into_bytes());
    ContentHash::of(bytes).hex(16)
}

/// All texts of a message that a model reads.
fn text_of(session: &Session, message: usize) -> String {
    session.message(message).model_text().join("\n")
}

#[test]
fn the_bytes_of_feature_phases_are_golden() {
    let found: Vec<String> = (1..=3).map(|seed| hash(&phases(seed, 40))).collect();
    assert_eq!(found, GOLDEN_PHASES);
}

const GOLDEN_PHASES: [&str; 3] = ["0b688e0118e8a8e4", "b69d91eef81bd1ab", "d13e63b2e8a3256f"];

/// The families that are the work of `code-review` in another shape.
const SHAPES: [&str; 5] = ["ci-agent", "teaching", "pause-return", "huge-outputs", "resumed"];

#[test]
fn the_bytes_of_reviews_and_other_shapes_are_golden() {
    let mut found = String::new();
    for family in [CODE_REVIEW].into_iter().chain(SHAPES) {
        for seed in 1..=2 {
            let made = made_in(family, seed, Length::Rounds(40));
            let _ = writeln!(found, "{family} {seed} {}", hash(&made));
        }
    }
    golden("tests/fixtures/synthetic/shapes.txt", &found);
}

#[test]
fn every_shape_is_valid_and_its_truth_is_true() {
    for family in SHAPES {
        for length in [1, 2, 3, 8, 40, 100] {
            for seed in 1..=2 {
                let generated = made_in(family, seed, Length::Rounds(length));
                let session = &generated.session;
                let loaded = &session.messages()[..session.loaded()];
                let loaded = loaded.iter().filter(|m| m.role() == Role::Assistant);
                let calls = loaded.count() + session.calls().len();
                assert_eq!(calls, length as usize, "{family}");
                check_validity(&generated.session);
                check_truth(&generated);
            }
        }
        let counts = counts();
        let generated = made_in(family, 3, Length::Tokens(Tokens(60_000)));
        check_validity(&generated.session);
        check_truth(&generated);
        let total = size(&generated.session, &counts).0;
        assert!((60_000..=120_000).contains(&total), "{family}: {total}");
    }
}

/// What a family is for shows in its sessions, and not in those of `code-review`.
#[test]
fn each_shape_stresses_what_it_says() {
    let of = |family| made_in(family, 4, Length::Rounds(120));
    let review = of(CODE_REVIEW);
    let typed = |made: &Generated| {
        let messages = made.session.messages().iter();
        messages.filter(|message| message.has_tag(Tag::TypedUser)).count()
    };
    let commands = |made: &Generated| {
        let messages = made.session.messages().iter();
        let tools = messages.flat_map(|message| message.tool_uses());
        tools.filter(|(_, tool)| &*tool.name == "Bash").count()
    };
    let (pipeline, lesson) = (of("ci-agent"), of("teaching"));
    println!(
        "typed: {} {} {}, commands: {} {}",
        typed(&pipeline),
        typed(&review),
        typed(&lesson),
        commands(&pipeline),
        commands(&review)
    );
    assert!(typed(&pipeline) * 3 < typed(&review) * 2);
    assert!(typed(&lesson) > typed(&review));
    assert!(commands(&pipeline) * 4 > commands(&review) * 5);

    let last_told = |made: &Generated| {
        let end = made.session.messages().len();
        let facts = made.truth.facts.iter();
        let told = facts.filter(|fact| fact.id.starts_with("recall"));
        told.map(|fact| fact.evidence[0] * 100 / end).max().unwrap()
    };
    assert!(last_told(&review) > 70, "{}", last_told(&review));
    assert!(last_told(&lesson) < 34, "{}", last_told(&lesson));

    let gaps = |made: &Generated| -> (usize, usize) {
        let times: Vec<i64> = made
            .session
            .messages()
            .iter()
            .filter_map(|message| Some(message.details.timestamp?.0))
            .collect();
        let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longer = |least: i64| gaps.iter().filter(|gap| **gap > least * 60_000).count();
        (longer(5) - longer(60), longer(60))
    };
    assert_eq!(gaps(&review), (0, 0));
    let (minutes, hours) = gaps(&of("pause-return"));
    assert!(minutes >= 3 && hours >= 3, "{minutes} {hours}");

    let huge = |made: &Generated| -> (usize, usize) {
        let messages = made.session.messages();
        let sizes = messages.iter().flat_map(|message| message.model_text());
        let large = sizes.filter(|text| text.len() > 50_000).count();
        let reads = |message: &Message| {
            let tools = message.tool_uses();
            tools.filter(|(_, tool)| &*tool.name == "Read").count()
        };
        let at_once = messages.iter().filter(|message| reads(message) == 5);
        (large, at_once.count())
    };
    let (large, at_once) = huge(&of("huge-outputs"));
    println!("{large} huge results, {at_once} times five reads");
    assert!(large >= 4 && at_once >= 4, "{large} {at_once}");
    assert_eq!(huge(&review).1, 0);
}

/// The number only sets how many facts there are; it must be near the truth.
#[test]
fn rounds_of_each_shape_cost_what_it_assumes() {
    let counts = counts();
    for (family, assumed) in SHAPES.into_iter().zip([1_750, 1_500, 1_600, 7_000, 1_600]) {
        let mean = (1..=6)
            .map(|seed| size(&made_in(family, seed, Length::Rounds(120)).session, &counts).0)
            .sum::<u64>()
            / 6
            / 120;
        println!("{family}: {mean} tokens per round");
        assert!(mean.abs_diff(assumed) * 4 < assumed, "{family}: {mean}");
    }
}

/// How many facts of each kind, by the first part of their ids.
fn kinds(generated: &Generated) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for fact in &generated.truth.facts {
        let kind = fact.id.trim_end_matches(|c: char| c.is_ascii_digit());
        *kinds.entry(kind.trim_end_matches('-').to_owned()).or_default() += 1;
    }
    kinds
}

#[test]
fn a_feature_has_facts_of_every_kind_and_each_phase_ends_with_a_marker() {
    for seed in 1..=6 {
        let generated = phases(seed, 64);
        let kinds = kinds(&generated);
        for (kind, least) in [
            ("recall", 8),
            ("constraint", 4),
            ("decoy", 4),
            ("decision", 3),
            ("update", 2),
            ("numeric", 2),
            ("rejected-path", 2),
            ("continuation", 1),
            ("error", 2),
            ("binding", 2),
            ("order", 1),
            ("last-request", 1),
            ("artifact-read", 1),
        ] {
            let found = kinds.get(kind).copied().unwrap_or(0);
            assert!(found >= least, "{seed}: {found} of {kind}");
        }
        let facts = generated.truth.facts.iter();
        let revised = facts.filter(|fact| match &fact.fact {
            Fact::Update { values, .. } | Fact::Numeric { values, .. } => values.len() > 1,
            _ => false,
        });
        assert!(revised.count() >= 3, "{seed}");
        let messages = generated.session.messages().iter();
        let ends: Vec<_> = messages.filter(|m| m.has_tag(Tag::PhaseEnd)).collect();
        assert!(ends.len() >= 4, "{seed}: {}", ends.len());
        assert!(ends.iter().all(|message| message.has_tag(Tag::TypedUser)));
    }
    let long = phases(3, 520);
    assert!(kinds(&long)["continuation"] >= 8);
    assert!(kinds(&long)["decision"] >= 20);
}

#[test]
fn what_is_snipped_was_shown_before_and_tells_nothing_that_lasts() {
    for seed in 1..=4 {
        let made = phases(seed, 120);
        let Generated { session, truth } = &*made;
        let evidence: BTreeSet<usize> =
            truth.facts.iter().flat_map(|fact| fact.evidence.iter().copied()).collect();
        let mut named = BTreeSet::new();
        let (mut snips, mut compacts) = (0, 0);
        for (at, message) in session.messages().iter().enumerate() {
            for (_, tool_use) in message.tool_uses() {
                compacts += usize::from(&*tool_use.name == "compact");
                if &*tool_use.name != "snip" {
                    continue;
                }
                snips += 1;
                for id in tool_use.input.value()["results"].as_array().unwrap() {
                    let place = session.messages()[..at].iter().position(|earlier| {
                        let mut results = earlier.tool_results();
                        results.any(|(_, result)| id == &*result.tool_use_id)
                    });
                    named.insert(place.unwrap());
                }
            }
        }
        assert!(snips >= 3 && compacts >= 1, "{seed}: {snips} {compacts}");
        for (at, message) in session.messages().iter().enumerate() {
            assert_eq!(message.has_tag(Tag::Snip), named.contains(&at), "{seed}: {at}");
        }
        assert!(named.is_disjoint(&evidence), "{seed}");
    }
}

#[test]
fn the_same_recipe_gives_the_same_session_and_another_seed_another_one() {
    assert_eq!(hash(&rounds(9, 25)), hash(&rounds(9, 25)));
    assert_ne!(hash(&rounds(9, 25)), hash(&rounds(10, 25)));
    let length = Length::Tokens(Tokens(30_000));
    assert_eq!(hash(&made(9, length)), hash(&made(9, length)));
}

#[test]
fn every_length_is_valid_and_its_truth_is_true() {
    for length in [1, 2, 3, 5, 8, 13, 40, 120] {
        for seed in 1..=2 {
            let generated = rounds(seed, length);
            assert_eq!(generated.session.calls().len(), length as usize);
            check_validity(&generated.session);
            check_truth(&generated);
            let generated = phases(seed, length);
            assert_eq!(generated.session.calls().len(), length as usize);
            check_validity(&generated.session);
            check_truth(&generated);
        }
    }
    for seed in 11..=18 {
        check_truth(&rounds(seed, 100));
        check_truth(&phases(seed, 100));
    }
}

#[test]
fn tokens_are_met_within_one_round() {
    let targets = [(1, 1), (2, 4_000), (3, 20_000), (4, 100_000)];
    let families = [CODE_REVIEW, FEATURE_PHASES];
    for (family, (seed, target)) in families.iter().flat_map(|f| targets.map(|t| (f, t))) {
        let recipe = Recipe {
            family: (*family).to_owned(),
            seed,
            length: Length::Tokens(Tokens(target)),
            ..Recipe::default()
        };
        let counts = counts();
        let generated = generate(&recipe, &counts).expect("a valid recipe");
        check_validity(&generated.session);
        check_truth(&generated);
        let calls = generated.session.calls();
        let total = size(&generated.session, &counts);
        let largest = calls
            .iter()
            .map(|at| {
                let round = generated.session.messages().iter().skip(*at).take(2);
                round.flat_map(|m| m.model_text()).map(|text| counts.size(text).tokens).sum()
            })
            .max()
            .unwrap_or(Tokens::ZERO);
        // System prompt and tools alone are larger than the smallest targets.
        let least = Tokens(target).max(Tokens(2_500));
        assert!(total >= Tokens(target), "{total} of {target}");
        assert!(total <= least + largest + Tokens(3_000), "{total} of {target}");
    }
}

#[test]
fn facts_are_spread_over_the_whole_session() {
    for length in [Length::Rounds(120), Length::Tokens(Tokens(250_000))] {
        let generated = made(6, length);
        let end = generated.session.messages().len();
        for (kind, least) in [("recall", 5), ("constraint", 2)] {
            let mut thirds = [0; 3];
            for fact in generated.truth.facts.iter().filter(|fact| fact.id.starts_with(kind)) {
                thirds[(fact.evidence[0] * 3 / end).min(2)] += 1;
            }
            assert!(thirds.iter().all(|count| *count >= least), "{length:?} {kind} {thirds:?}");
        }
    }
}

#[test]
fn the_number_of_facts_grows_with_the_length_and_can_be_scaled() {
    let number = |rounds: u32, fact_percent: u32, kind: &str| {
        let recipe = Recipe { length: Length::Rounds(rounds), fact_percent, ..Recipe::default() };
        let truth = generate(&recipe, &counts()).expect("a valid recipe").truth;
        truth.facts.iter().filter(|fact| fact.id.starts_with(kind)).count()
    };
    assert_eq!(number(40, 100, "recall"), 10);
    assert_eq!(number(40, 100, "constraint"), 5);
    assert_eq!(number(40, 100, "decoy"), 4);
    assert_eq!(number(40, 50, "recall"), 5);
    assert_eq!(number(200, 100, "recall"), 24);
    assert_eq!(number(200, 400, "recall"), 96);
    assert_eq!(number(1, 100, "constraint"), 1);
}

#[test]
fn a_later_read_shows_what_an_edit_wrote_in_every_family_that_edits() {
    for family in sampled(FAMILIES.iter()) {
        // A help desk has no files.
        if family.name == "policy-support" {
            continue;
        }
        // Few files are read as a whole behind a change: seeds are added until there are some.
        let mut shown = 0;
        for seed in 1..=12 {
            shown += reads_after_edits(family.name, seed);
            if shown >= 3 {
                break;
            }
        }
        assert!(shown >= 3, "{}: {shown}", family.name);
    }
}

/// How many whole files were shown after a change, each with the change in it.
fn reads_after_edits(family: &str, seed: u64) -> usize {
    let mut shown = 0;
    let made = made_in(family, seed, Length::Rounds(160));
    let session = &made.session;
    let mut written: BTreeMap<String, String> = BTreeMap::new();
    for (at, message) in session.messages().iter().enumerate() {
        let results: BTreeMap<String, String> = session
            .messages()
            .get(at + 1)
            .into_iter()
            .flat_map(|next| next.tool_results())
            .map(|(block, result)| {
                let text = &session.message(at + 1).model_text()[block];
                (result.tool_use_id.to_string(), text.to_string())
            })
            .collect();
        for (_, tool_use) in message.tool_uses() {
            let Some(path) = argument(tool_use, "file_path") else {
                continue;
            };
            if let Some(new) = argument(tool_use, "new_string") {
                assert!(new.contains(&argument(tool_use, "old_string").unwrap()));
                written.insert(path, new);
            } else if argument(tool_use, "content").is_none()
                && tool_use.input.value().get("offset").is_none()
                && let Some(new) = written.get(&path)
            {
                let plain: Vec<&str> = results[&*tool_use.id]
                    .lines()
                    .map(|line| line.split_once('\t').unwrap().1)
                    .collect();
                assert!(plain.join("\n").contains(new), "{path}");
                shown += 1;
            }
        }
    }
    shown
}

#[test]
fn arguments_reuse_what_was_shown_before() {
    let made = rounds(2, 120);
    let session = &made.session;
    let mut before = String::new();
    let (mut known, mut all) = (0, 0);
    for message in session.messages() {
        for (_, tool_use) in message.tool_uses() {
            for name in ["file_path", "pattern", "old_string"] {
                if let Some(value) = argument(tool_use, name) {
                    all += 1;
                    let first = value.lines().next().expect("a line").trim_end_matches("/**");
                    known += usize::from(before.contains(first));
                }
            }
        }
        before.push_str(&message.model_text().join("\n"));
    }
    assert!(all > 50, "{all}");
    assert!(known * 100 > all * 60, "{known} of {all}");
}

#[test]
fn rounds_of_a_feature_cost_what_the_family_assumes_however_long_it_gets() {
    let counts = counts();
    let mean = |rounds: u32, seeds: u64| {
        let sizes = (1..=seeds).map(|seed| size(&phases(seed, rounds).session, &counts).0);
        sizes.sum::<u64>() / seeds / u64::from(rounds)
    };
    let (short, long) = (mean(120, 8), mean(1_500, 1));
    println!("tokens per round: {short} at 120 rounds, {long} at 1500");
    assert!((1_300..=2_300).contains(&short), "{short}");
    assert!((1_300..=2_600).contains(&long), "{long}");
}

#[test]
fn a_recipe_that_makes_no_session_says_why() {
    let check = |recipe: Recipe, message: &str| {
        let error = generate(&recipe, &counts()).expect_err("an impossible recipe");
        assert_eq!(error.to_string(), message);
    };
    let recipe = Recipe::default();
    check(
        Recipe { family: "code-reviews".to_owned(), ..recipe.clone() },
        "unknown synthetic family `code-reviews`",
    );
    check(
        Recipe { length: Length::Rounds(0), ..recipe.clone() },
        "a `code-review` session of zero length: ask for at least 1 round or 1 token",
    );
    let many = Recipe { fact_percent: 401, ..recipe };
    assert!(matches!(generate(&many, &counts()), Err(SyntheticError::OutOfRange { .. })));
}

#[test]
fn ids_are_valid_and_name_the_recipe() {
    assert_eq!(rounds(7, 4).session.id(), "code-review-s7-r4");
    assert_eq!(made(7, Length::Tokens(Tokens(3_000))).truth.session, "code-review-s7-t3000");
    assert!(is_valid_id(rounds(u64::MAX, 4).session.id()));
    assert!(FAMILIES.iter().all(|family| is_valid_id(family.name)));
}
