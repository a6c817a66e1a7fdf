//! Bills of made-up providers are fitted exactly, and those without information are not fitted.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::model::offline::Offline;
use crate::model::price::Prices;
use crate::replay::{CellName, Models, NoClock, PreparedSession, Repetitions, Replayed, replay};
use crate::session::{
    CompactedTo, ContentBlock, Message, RecordedCompaction, Role, SessionParts, Tag, Thinking,
};
use crate::tokens::CharsPer4;
use crate::units::Usage;

/// One call: tokens that arrive before it, its bill, its model, and tokens of hidden thinking.
#[derive(Debug, Clone)]
struct Call {
    arrives: u64,
    billed: u64,
    model: Option<&'static str>,
    hidden: u64,
    is_typed: bool,
}

/// The tokens of text in every answer.
const ANSWER: u64 = 50;

fn call(arrives: u64, billed: u64) -> Call {
    Call { arrives, billed, model: None, hidden: 0, is_typed: false }
}

fn text(tokens: u64) -> ContentBlock {
    ContentBlock::Text("word".repeat(usize::try_from(tokens).unwrap()).into())
}

fn session(calls: &[Call], compacted_at: Option<usize>) -> Session {
    let mut messages = Vec::new();
    for call in calls {
        let tags = call.is_typed.then_some(Tag::TypedUser);
        let asks = Message::new(Role::User, vec![text(call.arrives)]).with_tags(tags);
        let thinks = ContentBlock::Thinking(Box::new(Thinking {
            text: "".into(),
            signature: Some("signed".into()),
        }));
        let thinks = (call.hidden > 0).then_some(thinks);
        let mut answers =
            Message::new(Role::Assistant, thinks.into_iter().chain([text(ANSWER)]).collect());
        let output = Tokens(ANSWER + call.hidden);
        answers.details.usage = Some(Usage::uncached(Tokens(call.billed), output));
        answers.details.model = call.model.map(Arc::from);
        messages.extend([Arc::new(asks), Arc::new(answers)]);
    }
    let compactions = compacted_at.map(|at| RecordedCompaction {
        at,
        trigger: Some("auto".into()),
        pre_tokens: None,
        usage: None,
        after: CompactedTo::Replaced(Vec::new()),
    });
    Session::new(SessionParts {
        id: "billed".to_owned(),
        messages,
        compactions: compactions.into_iter().collect(),
        model: Some("usual".to_owned()),
        ..SessionParts::default()
    })
    .unwrap()
}

fn fitted(calls: &[Call], compacted_at: Option<usize>) -> Bill {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    Bill::of(&session(calls, compacted_at), &counts, Sizes::Billed, None)
}

/// Calls with the bills of a provider that counts `factor` parts per million behind `head`, and
/// treats hidden thinking so.
fn billed(
    head: u64,
    factor: u64,
    thinking: HiddenThinking,
    arrives: &[(u64, u64, bool)],
) -> Vec<Call> {
    let (mut counted, mut hidden) = (0, 0);
    let calls = arrives.iter().map(|(arrives, thought, is_typed)| {
        counted += arrives;
        if *is_typed && thinking == HiddenThinking::KeptForTurn {
            hidden = 0;
        }
        let billed = head + (counted * factor + 500_000) / 1_000_000 + hidden;
        counted += ANSWER;
        if thinking != HiddenThinking::Dropped {
            // The bill counts all that was written; words among it are billed by the factor.
            hidden += (ANSWER + thought).saturating_sub((ANSWER * factor + 500_000) / 1_000_000);
        }
        Call { hidden: *thought, is_typed: *is_typed, ..call(*arrives, billed) }
    });
    calls.collect()
}

fn at_most(limit: u64) -> impl Fn(Tokens, u64) -> bool {
    move |found, expected| found.0.abs_diff(expected) <= limit
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn head_and_factor_are_found_again(
        head in 0_u64..60_000,
        factor in 400_000_u64..3_000_000,
        arrives in prop::collection::vec(1_000_u64..4_000, 6..40),
    ) {
        let arrives: Vec<_> = arrives.into_iter().map(|tokens| (tokens, 0, false)).collect();
        let calls = billed(head, factor, HiddenThinking::Dropped, &arrives);
        let bill = fitted(&calls, None);
        let near = at_most(12);
        prop_assert!(near(bill.scale(0).head, head), "{:?}", bill.sizes());
        let fit = bill.sizes().fit.clone().unwrap();
        prop_assert_eq!(fit.calls, calls.len());
        for prediction in [fit.held_out.second_half, fit.held_out.in_a_row].into_iter().flatten() {
            prop_assert!((prediction.by_anchors.ratio() - 1.0).abs() < 0.01, "{prediction:?}");
            prop_assert!((prediction.by_factor.ratio() - 1.0).abs() < 0.01, "{prediction:?}");
        }
    }

    #[test]
    fn the_treatment_of_hidden_thinking_is_found(
        which in 0_usize..3,
        arrives in prop::collection::vec((200_u64..2_000, 300_u64..3_000), 12..30),
    ) {
        let thinking = [
            HiddenThinking::Dropped,
            HiddenThinking::KeptForTurn,
            HiddenThinking::Kept,
        ][which];
        let arrives: Vec<_> = arrives.into_iter().enumerate().map(|(at, (arrives, hidden)): (usize, (u64, u64))| (arrives, hidden, at % 4 == 0)).collect();
        let bill = fitted(&billed(20_000, 1_300_000, thinking, &arrives), None);
        prop_assert_eq!(bill.sizes().thinking, Some(thinking));
        prop_assert!((bill.scale(0).factor.ratio() - 1.3).abs() < 0.01, "{:?}", bill.sizes());
    }

    #[test]
    fn replay_sends_prompts_as_they_were_billed(
        which in 0_usize..3,
        arrives in prop::collection::vec((500_u64..2_000, 300_u64..3_000), 12..30),
    ) {
        let thinking = [
            HiddenThinking::Dropped,
            HiddenThinking::KeptForTurn,
            HiddenThinking::Kept,
        ][which];
        let typed = |(at, (arrives, hidden)): (usize, (u64, u64))| (arrives, hidden, at % 4 == 0);
        let arrives: Vec<_> = arrives.into_iter().enumerate().map(typed).collect();
        let calls = billed(20_000, 1_300_000, thinking, &arrives);
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let session = Arc::new(session(&calls, None));
        let bill = Bill::of(&session, &counts, Sizes::Billed, None);
        let schemes = Prices::built_in().unwrap().schemes("anthropic", None);
        let prepared = PreparedSession::new(session, counts.clone(), Vec::new())
            .unwrap()
            .billed(Arc::new(bill))
            .with_cache(schemes, 0);
        let models = Models {
            summariser: Arc::new(Offline::new(counts)),
            reader: None,
            judge: None,
            times: Repetitions::default(),
        };
        let name = CellName { strategy: "full".to_owned(), repeat: 0 };
        let record = replay(&prepared, name, Replayed::Full, &models, &NoClock).record;
        for (call, prompt) in calls.iter().zip(&record.prompt_tokens) {
            prop_assert_eq!(prompt.0, call.billed);
        }
        // All of a prompt ends at a breakpoint of the last message: it is read or written.
        let cache = record.prompt_cache.iter().find(|cache| cache.scheme == "anthropic-5m").unwrap();
        for (at, prompt) in record.prompt_tokens.iter().enumerate() {
            prop_assert_eq!(cache.read[at] + cache.written[at], *prompt);
        }
    }

    /// Whatever is billed, an unedited prompt is its bill where that is an anchor, and what a strategy removes never
    /// makes a prompt larger, nor smaller than its head.
    #[test]
    fn prompts_are_bills_and_shrink_with_what_is_removed(
        bills in prop::collection::vec(
            (0_u64..4_000, prop_oneof![4 => 0_u64..3_000, 1 => 0_u64..200_000], 0_u64..2_000, 0_usize..3, any::<bool>()),
            2..40,
        ),
        jumps in any::<bool>(),
        keep in prop::collection::vec(any::<bool>(), 80),
        also in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut sum = 9_000;
        let calls: Vec<Call> = bills.iter().map(|(arrives, grown, hidden, model, is_typed)| {
            sum = if jumps { *grown } else { sum + grown };
            Call {
                hidden: *hidden,
                is_typed: *is_typed,
                model: [None, Some("one"), Some("other")][*model],
                ..call(*arrives, sum)
            }
        }).collect();
        let session = session(&calls, None);
        let counts = CountedTexts::new(Arc::new(CharsPer4));
        let bill = Bill::of(&session, &counts, Sizes::Billed, None);
        let sized = bill.sized(&session).unwrap_or(session);
        let mut left: BTreeMap<usize, Tokens> = BTreeMap::new();
        for (call, until) in sized.calls().iter().enumerate() {
            let from = call.checked_sub(1).map_or(0, |last| sized.calls()[last]);
            let left_out = (from..*until).filter_map(|at| bill.left_out(at));
            for (at, tokens) in left_out.flat_map(|left_out| &left_out.parts) {
                *left.entry(*at).or_default() += *tokens;
            }
            let sized = |is_there: &dyn Fn(usize) -> bool| {
                let sizes = (0..*until).filter(|at| is_there(*at)).map(|at| {
                    let size = crate::context::measure(sized.message(at), &counts);
                    size - Size::hidden(left.get(&at).copied().unwrap_or_default())
                });
                bill.scale(call).prompt(sizes.sum())
            };
            let all = sized(&|_| true);
            if let Some(billed) = bill.billed.get(&call) {
                prop_assert_eq!(all, *billed);
            }
            let some = sized(&|at| keep[at]);
            let less = sized(&|at| keep[at] && also[at]);
            prop_assert!(less <= some && some <= all);
            prop_assert!(less >= bill.scale(call).head);
        }
    }

    #[test]
    fn a_bill_undone_is_the_count(factor in 1_000_000_u64..6_000_000, counted in 0_u64..10_000_000) {
        let factor = Factor(factor);
        let scale = Scale { head: Tokens(7), factor, ratio: Factor::ONE };
        prop_assert_eq!(scale.counted(factor.bill(Tokens(counted))), Tokens(counted));
        prop_assert!(factor.bill(scale.room(Tokens(counted))) <= Tokens(counted));
    }
}

/// Sessions whose bill shows nothing, or not everything, are counted, with a warning.
#[test]
fn a_bill_that_tells_nothing_is_not_fitted() {
    let growing = |from: u64, step: u64, n: u64| -> Vec<Call> {
        (0..n).map(|at| call(1_000, from + at * step)).collect()
    };
    let absurd = [call(1_000, 9_000), call(1_000, u64::MAX), call(1_000, 11_100)];
    let mut wrong = growing(9_000, 1_050, 12);
    wrong[5].billed = 10_000_000;
    // Every other call is billed by a fifth more than it was before, regardless of its prompt.
    let bill = |at: u64| 4_000 + at * 300 + (at % 2) * 3_000;
    let sawtooth = (0..12).map(|at| call(1_000, bill(at))).collect();
    for (calls, compacted_at, sizes, says) in [
        (vec![call(100, 0); 5], None, Sizes::Counted, ""),
        (growing(9_000, 1_050, 1), None, Sizes::Billed, "text is taken as counted"),
        (
            vec![call(1_000, 0), call(1_000, 9_000)],
            None,
            Sizes::Counted,
            "one call was billed, and not the first",
        ),
        (growing(9_000, 1_050, 9), None, Sizes::Billed, ""),
        (growing(9_000, 0, 9), None, Sizes::Counted, "do not grow as their bill does"),
        (growing(9_000, 50_000, 9), None, Sizes::Counted, "do not grow as their bill does"),
        (growing(9_000, 1_050, 9), Some(1), Sizes::Billed, "head is unknown"),
        (growing(900_000, 1_050, 9), None, Sizes::Billed, "begins in the middle"),
        (growing(10, 1_050, 9), None, Sizes::Billed, "the head is taken as 0"),
        (absurd.to_vec(), None, Sizes::Billed, "not believed: 1"),
        (wrong, None, Sizes::Billed, "those of other requests: 1"),
        (sawtooth, None, Sizes::Counted, "does not follow"),
    ] {
        let bill = fitted(&calls, compacted_at);
        let said = bill.sizes().warnings.join("\n");
        assert_eq!(bill.sizes().sizes, sizes, "{calls:?}: {said}");
        assert!(said.contains(says), "{calls:?}: {said}");
        assert_eq!(said.is_empty(), says.is_empty(), "{said}");
    }
}

#[test]
fn a_fall_of_the_bill_is_named_and_goes_to_the_head() {
    let mut calls = billed(30_000, 1_200_000, HiddenThinking::Dropped, &[(2_000, 0, false); 20]);
    for call in &mut calls[12..] {
        call.billed -= 25_000;
    }
    let bill = fitted(&calls, None);
    let drops = &bill.sizes().drops;
    assert_eq!(drops.len(), 1);
    assert_eq!((drops[0].call, drops[0].before.0), (12, calls[11].billed));
    // All of it was in the head.
    assert_eq!(bill.scale(11).head.0 - bill.scale(12).head.0, 25_000);
    assert!((bill.scale(0).factor.ratio() - 1.2).abs() < 0.001);
    assert_eq!(bill.largest().0, calls.iter().map(|call| call.billed).max().unwrap());
}

#[test]
fn each_model_has_its_factor_and_the_same_head() {
    let mut calls = billed(24_000, 1_200_000, HiddenThinking::Dropped, &[(2_000, 0, false); 20]);
    let mut counted = 10 * (2_000 + ANSWER);
    for call in &mut calls[10..] {
        counted += 2_000;
        call.billed = 30_000 + counted * 3 / 2;
        call.model = Some("other");
        counted += ANSWER;
    }
    let bill = fitted(&calls, None);
    let (one, other) = (bill.scale(9), bill.scale(10));
    assert!((one.factor.ratio() - 1.2).abs() < 0.001, "{one:?}");
    assert!((other.factor.ratio() - 1.5).abs() < 0.001, "{other:?}");
    // 24,000 tokens of one are 20,000 as counted, and 30,000 of the other.
    assert!(at_most(40)(one.head, 24_000) && at_most(60)(other.head, 30_000));
    assert!((other.ratio.ratio() - 1.25).abs() < 0.001, "{other:?}");
    assert_eq!(bill.sizes().factors.len(), 2);
}

#[test]
fn a_model_whose_bills_tell_nothing_leaves_the_others_theirs() {
    for odd in [0, 20_000] {
        let mut calls =
            billed(24_000, 1_200_000, HiddenThinking::Dropped, &[(2_000, 0, false); 20]);
        for (at, call) in (0..).zip(&mut calls[17..]) {
            call.billed = 60_000 + at * odd;
            call.model = Some("other");
        }
        let bill = fitted(&calls, None);
        let said = bill.sizes().warnings.join("\n");
        assert_eq!(bill.sizes().sizes, Sizes::Billed, "{odd}: {said}");
        let factor = bill.scale(9).factor.ratio();
        assert!((factor - 1.2).abs() < 0.001, "{odd}: {factor}");
    }
}
