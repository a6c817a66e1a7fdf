//! Families told in chapters: each is valid, true to its ground truth, and stresses what it says.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use proctor_sessions::Tag;
use proctor_sessions::ground_truth::Fact;
use proctor_sessions::units::Tokens;
use proctor_synth::{FAMILIES, Generated, Length};

use super::{argument, check_truth, check_validity, counts, hash, kinds, made_in, size};
use crate::goldens::golden;

/// The families that are told in chapters, but for `feature-phases`, with their tokens per round.
const STORIES: [(&str, u64); 4] = [
    ("debugging", 1_750),
    ("small-talk-start", 1_700),
    ("policy-support", 270),
    ("marathon", 1_900),
];

fn of(family: &str, rounds: u32) -> Arc<Generated> {
    made_in(family, 4, Length::Rounds(rounds))
}

#[test]
fn the_bytes_of_stories_are_golden() {
    let mut found = String::new();
    for (family, _) in STORIES {
        for seed in 1..=2 {
            let made = made_in(family, seed, Length::Rounds(60));
            let _ = writeln!(found, "{family} {seed} {}", hash(&made));
        }
    }
    golden("tests/fixtures/synthetic/stories.txt", &found);
}

#[test]
fn every_story_is_valid_and_its_truth_is_true() {
    for (family, _) in STORIES {
        for (length, seeds) in
            [(1, 2), (2, 2), (3, 2), (8, 2), (40, 2), (41, 1), (100, 1), (300, 1)]
        {
            for seed in 1..=seeds {
                let generated = made_in(family, seed, Length::Rounds(length));
                assert_eq!(generated.session.calls().len(), length as usize, "{family}");
                check_validity(&generated.session);
                check_truth(&generated);
            }
        }
        let generated = made_in(family, 3, Length::Tokens(Tokens(60_000)));
        check_validity(&generated.session);
        check_truth(&generated);
        let total = size(&generated.session, &counts()).0;
        assert!((60_000..=120_000).contains(&total), "{family}: {total}");
    }
}

/// The number only sets how many facts there are; it must be near the truth.
#[test]
fn rounds_of_each_story_cost_what_it_assumes_however_long_it_gets() {
    let counts = counts();
    for (family, assumed) in STORIES {
        let mean = |rounds: u32, seeds: u64| {
            let sizes = (1..=seeds).map(|seed| {
                let made = made_in(family, seed, Length::Rounds(rounds));
                size(&made.session, &counts).0
            });
            sizes.sum::<u64>() / seeds / u64::from(rounds)
        };
        let (short, long) = (mean(120, 3), mean(900, 1));
        println!("{family}: {short} tokens per round at 120 rounds, {long} at 900");
        assert!(short.abs_diff(assumed) * 4 < assumed, "{family}: {short}");
        assert!(long.abs_diff(assumed) * 4 < assumed, "{family}: {long}");
    }
}

/// How many messages hold a result that failed.
fn failures(made: &Generated) -> usize {
    let messages = made.session.messages().iter();
    let results = messages.flat_map(|message| message.tool_results());
    results.filter(|(_, result)| result.is_error).count()
}

#[test]
fn debugging_is_failures_suspects_and_numbers_that_fall() {
    let (debugging, review) = (of("debugging", 120), of("code-review", 120));
    let [failing, usual] = [&debugging, &review].map(|made| failures(made));
    assert!(failing * 2 > usual * 3, "{failing} {usual}");
    assert!(kinds(&debugging)["rejected-path"] >= 9);
    let mut falls = 0;
    for fact in &debugging.truth.facts {
        if let Fact::Numeric { values, .. } = &fact.fact {
            let numbers: Vec<u64> = values.iter().map(|it| it.value.parse().unwrap()).collect();
            falls += numbers.windows(2).filter(|pair| pair[1] < pair[0]).count();
        }
    }
    assert!(falls >= 5, "{falls}");
}

#[test]
fn small_talk_is_marked_and_holds_nothing_that_lasts() {
    let made = of("small-talk-start", 120);
    let Generated { session, truth } = &*made;
    let messages = session.messages();
    let work = messages.iter().position(|it| it.has_tag(Tag::PhaseEnd));
    let work = work.unwrap();
    assert!((8..24).contains(&work), "{work}");
    let first = messages[0].model_text().join(" ");
    assert!(first.contains("hello.py"), "{first}");
    for fact in &truth.facts {
        let is_file = matches!(fact.fact, Fact::Artifact { .. });
        let is_late = fact.evidence.iter().all(|at| *at >= work);
        assert!(is_late || is_file, "{}", fact.id);
    }
    for (at, message) in messages.iter().enumerate() {
        let has_results = message.tool_results().next().is_some();
        if at < work {
            assert_eq!(message.has_tag(Tag::Snip), has_results, "{at}");
        } else {
            let text = message.model_text().join(" ");
            assert!(!text.contains("hello.py"), "{at}: {text}");
        }
    }
    // What was made is still known, though nobody needs it.
    let created = truth.facts.iter().find_map(|fact| match &fact.fact {
        Fact::Artifact { files, .. } if fact.id == "artifact-created" => Some(files),
        _ => None,
    });
    assert!(created.unwrap().iter().any(|file| file.path == "hello.py"));
}

#[test]
fn a_help_desk_makes_many_short_calls_and_shows_what_was_changed() {
    let mut shown = 0;
    for seed in 1..=4 {
        let made = made_in("policy-support", seed, Length::Rounds(200));
        let session = &made.session;
        let mut sizes = Vec::new();
        let mut changed: BTreeMap<String, String> = BTreeMap::new();
        for (at, message) in session.messages().iter().enumerate() {
            let uses = message.tool_uses();
            let uses: BTreeMap<String, _> = uses.map(|(_, it)| (it.id.to_string(), it)).collect();
            let Some(next) = session.messages().get(at + 1) else {
                break;
            };
            for (block, result) in next.tool_results() {
                let Some(tool) = uses.get(&*result.tool_use_id) else {
                    continue;
                };
                let text = &next.model_text()[block];
                sizes.push(text.len());
                let Some(order) = argument(tool, "order") else {
                    continue;
                };
                match argument(tool, "status") {
                    Some(status) if !result.is_error => {
                        changed.insert(order, status);
                    }
                    Some(_) => {}
                    None => {
                        if let Some(status) = changed.get(&order)
                            && &*tool.name == "get_order"
                        {
                            let said = format!("\"status\":\"{status}\"");
                            assert!(text.contains(&said), "{order}: {text}");
                            shown += 1;
                        }
                    }
                }
            }
        }
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        assert!((100..900).contains(&median), "{median}");
        assert!(sizes.len() > session.calls().len(), "{}", sizes.len());
    }
    assert!(shown >= 12, "{shown}");
}

#[test]
fn keys_of_a_marathon_are_revised_from_its_beginning_to_its_end() {
    let made = of("marathon", 600);
    let end = made.session.messages().len();
    let standing = made.truth.facts.iter().filter(|fact| match &fact.fact {
        Fact::Update { values, .. } => {
            let (first, last) = (values[0].message, values[values.len() - 1].message);
            values.len() >= 6 && (last - first) * 2 > end
        }
        _ => false,
    });
    let standing = standing.count();
    assert!(standing >= 8, "{standing}");
    assert_eq!(FAMILIES.last().unwrap().name, "marathon");
}
