//! A table of worlds: what is true of the strategies, and the first sentence.

use super::*;
use crate::compare::gate::{Rules, Verdict as Gated, gate};
use crate::compare::judge::tests::billed;
use crate::compare::{Findings, of_pair};
use crate::record::ModelEntry;
use crate::record::words::{Fidelity, ModelKind, Worth};

/// Sessions of a world: doing nothing costs about $10 in each, some more than in others.
const SESSIONS: usize = 12;

pub(super) fn bill_of(at: usize) -> f64 {
    10.0 + (at * 7 % 5) as f64 * 0.4
}

/// A strategy whose bill is this share of that of doing nothing, and which keeps this share of the facts, give or
/// take a little from session to session.
fn sample(name: &str, sessions: usize, bill: f64, kept: f64) -> Sample {
    let bills: Vec<f64> = (0..sessions).map(|at| bill_of(at) * (bill + wave(at, 0.01))).collect();
    let facts: Vec<f64> = (0..sessions).map(|at| kept + wave(at + 1, 0.005)).collect();
    billed(name, &bills, &facts)
}

fn wave(at: usize, size: f64) -> f64 {
    [1.0, -0.6, 0.2, -0.9, 0.5, -0.2][at % 6] * size
}

/// A strategy with its control, both as shares of doing nothing.
pub(super) fn row(name: &str, sessions: usize, own: (f64, f64), control: (f64, f64)) -> RunRow {
    RunRow {
        sample: sample(name, sessions, own.0, own.1),
        control: Some(sample(&format!("tail@{name}"), sessions, control.0, control.1)),
        fired: sessions,
        largest_elsewhere: None,
        broken: None,
        is_too_large: false,
        is_program: false,
        tokens_saved: None,
        cause: None,
    }
}

pub(super) fn world(sessions: usize, fits: bool, rows: Vec<RunRow>) -> Rows {
    let nothing =
        billed("none", &(0..sessions).map(bill_of).collect::<Vec<_>>(), &vec![1.0; sessions]);
    let all = nothing.sessions.keys().cloned();
    Rows {
        population: crate::units::many(sessions, "session", "sessions"),
        clusters: sessions,
        fits: all.filter(|_| fits).collect(),
        nothing,
        strategies: rows,
        rule: JudgingRule::of_population(1),
    }
}

#[track_caller]
pub(super) fn check(world: &Rows, answer: Answer, says: &[&str]) -> Verdict {
    let verdict = world.advise();
    let first = &verdict.said[0].text;
    assert_eq!(verdict.answer, answer, "{first}");
    for part in says {
        assert!(first.contains(part), "`{part}` is not in `{first}`");
    }
    // What is said never holds a number that is none.
    assert!(!verdict.sentences.concat().contains("NaN"), "{:?}", verdict.sentences);
    verdict
}

#[test]
fn where_all_cost_more_than_doing_nothing_what_is_there_is_kept() {
    let rows = || {
        vec![
            row("mask", SESSIONS, (1.14, 0.9), (1.20, 0.8)),
            row("dear", SESSIONS, (1.5, 0.9), (1.2, 0.9)),
        ]
    };
    let said = check(
        &world(SESSIONS, true, rows()),
        Answer::Keep,
        &[
            "Keep what you have. Everything else costs more than its $128.80: the cheapest, mask, costs $18.02 more (bill +14 % [+14, +14])",
        ],
    );
    // It keeps more than its control: the trade is named; and both are avoided, over the margin.
    assert!(
        said.said[0].text.contains("A trade: mask keeps more than tail@mask (facts +10 "),
        "{:?}",
        said.said
    );
    let avoided: Vec<&str> = said.avoid.iter().map(|it| &*it.strategy).collect();
    assert_eq!(avoided, ["dear", "mask"]);
    assert!(
        said.avoid[0].why.starts_with("1.5 times the bill of doing nothing"),
        "{:?}",
        said.avoid
    );
    assert!(said.avoid[1].why.starts_with("1.1 times the bill"), "{:?}", said.avoid);
}

#[test]
fn a_cheaper_one_that_keeps_the_facts_is_used() {
    let winner = row("codex", SESSIONS, (0.9, 0.99), (0.85, 0.8));
    let said = check(
        &world(SESSIONS, true, vec![winner]),
        Answer::Use,
        &[
            "Use codex. It saves $12.89 (bill −10 % [",
            "keeps as much as doing nothing (facts −1 [",
            "beats tail@codex on facts +19 [",
            "more a session",
            "`--apply` writes it to a file",
        ],
    );
    assert_eq!(said.contenders[0].obstacle, None);
    assert!(said.quoted_controls().eq(["tail@codex"]));
}

#[test]
fn an_outline_is_recommended_with_the_word_alone() {
    let outline = |name: &str, fidelity| {
        let mut row = row(name, SESSIONS, (0.9, 0.99), (0.85, 0.8));
        row.sample.worth = Some(Worth { fidelity, product: "Codex".to_owned(), missing: None });
        row
    };
    let rows = [Fidelity::Outline, Fidelity::Close];
    let rows = rows.map(|fidelity| outline(fidelity.name(), fidelity));
    check(
        &world(SESSIONS, true, rows.into()),
        Answer::Use,
        &[
            "Use outline (an outline of Codex) (the same: close). It saves ",
            "`--apply` writes it to a file",
        ],
    );
    let mut lossy = outline("codex", Fidelity::Outline);
    lossy.sample = Sample { worth: lossy.sample.worth, ..sample("codex", SESSIONS, 0.9, 0.92) };
    check(
        &world(SESSIONS, true, vec![lossy.clone()]),
        Answer::Trade,
        &["codex (an outline of Codex) is a trade: "],
    );
    let none = sample("none", SESSIONS, 1.0, 0.8);
    let found = judge::judge(&none, &lossy.sample, &JudgingRule::of_population(1));
    let text = of_pair(&found).text;
    assert!(text.starts_with("Use codex (an outline of Codex): better on "), "{text}");
    for few in [1, 3] {
        let mut row = row("codex", few, (0.9, 0.99), (0.85, 0.8));
        row.sample.worth.clone_from(&lossy.sample.worth);
        check(
            &world(few, true, vec![row]),
            Answer::FewSessions,
            &["kept as much is codex (an outline of Codex), $"],
        );
    }
}

#[test]
fn a_cheaper_one_with_a_loss_over_the_margin_is_a_trade_at_its_bound() {
    let lossy = row("codex", SESSIONS, (0.9, 0.92), (0.85, 0.7));
    let said = check(
        &world(SESSIONS, true, vec![lossy]),
        Answer::Trade,
        &[
            "codex is a trade: it saves $12.89 ",
            "gives up 8 points of facts [8, 8]",
            "`--margin facts=0.09` and `--margin actions=0.09` take it",
        ],
    );
    // One that no margin accepts is named after it, although it is cheaper.
    let tail = row("tail", SESSIONS, (0.5, 0.3), (0.5, 0.3));
    let lossy = row("codex", SESSIONS, (0.9, 0.92), (0.85, 0.7));
    let both = world(SESSIONS, true, vec![tail, lossy]);
    check(&both, Answer::Trade, &["codex is a trade", "take it"]);
    // What it says is true: with these margins it is used.
    let mut accepted =
        world(SESSIONS, true, vec![row("codex", SESSIONS, (0.9, 0.92), (0.85, 0.7))]);
    for axis in ["facts", "actions"] {
        accepted.rule.margins.set(axis, 0.09).unwrap();
    }
    check(&accepted, Answer::Use, &["and gives up no more than the margins accept (facts −8 ["]);
    assert!(
        said.contenders[0].obstacle.as_ref().unwrap().contains("keeps less than doing nothing")
    );
}

#[test]
fn a_saving_within_the_margin_of_the_bill_buys_no_loss() {
    let lossy = row("codex", SESSIONS, (0.985, 0.88), (0.85, 0.5));
    let judged = |margins: &[(&str, f64)]| {
        let mut judged = world(SESSIONS, true, vec![lossy.clone()]);
        for (axis, margin) in margins {
            judged.rule.margins.set(axis, *margin).unwrap();
        }
        judged
    };
    let (accepted, less) = ([("facts", 0.2), ("actions", 0.2)], ("bill", 0.01));
    check(
        &judged(&[]),
        Answer::Keep,
        &["saves $1.", "; it keeps less than doing nothing (facts −12"],
    );
    check(&judged(&accepted), Answer::Keep, &["pays for no loss (facts −12"]);
    check(&judged(&[less]), Answer::Trade, &["gives up 12 points of facts"]);
    check(&judged(&[accepted.as_slice(), &[less]].concat()), Answer::Use, &["Use codex"]);
    // And a difference of nothing is none.
    let mut even = judged(&[]);
    let bills: Vec<f64> = (0..SESSIONS).map(bill_of).collect();
    even.strategies[0].sample = billed("codex", &bills, &[0.88; SESSIONS]);
    let says = "costs less than its $128.80: codex costs as much, and gives up 12 points of facts";
    let said = check(&even, Answer::Keep, &[says]);
    assert_eq!(said.contenders[0].obstacle.as_deref(), Some("it costs as much as doing nothing"));
}

#[test]
fn where_doing_nothing_fits_nowhere_the_cheapest_that_is_not_worse_is_used() {
    let rows = vec![
        row("codex", SESSIONS, (0.7, 0.6), (0.65, 0.4)),
        row("aider", SESSIONS, (0.8, 0.6), (0.7, 0.5)),
    ];
    check(
        &world(SESSIONS, false, rows),
        Answer::Use,
        &[
            "Use codex. Nothing here that runs to the end, and is shown to keep as much, costs less than its $90.",
            "fits the window in no session",
        ],
    );
    // A tail by name has no control, and is dominated by nothing here.
    let tail = RunRow { control: None, ..row("tail@20000", SESSIONS, (0.5, 0.6), (0.5, 0.6)) };
    let codex = row("codex", SESSIONS, (0.7, 0.6), (0.65, 0.4));
    check(&world(SESSIONS, false, vec![tail, codex]), Answer::Use, &["Use tail@20000"]);
}

#[test]
fn a_win_by_one_session_is_none_and_the_session_is_named() {
    let mut lucky = row("codex", SESSIONS, (1.0, 1.0), (1.0, 0.8));
    for (id, session) in &mut lucky.sample.sessions {
        let factor = if id == "s03" { 0.2 } else { 1.01 };
        let bill = session.metrics["dollars"][0];
        session.metrics.insert("dollars".to_owned(), vec![bill * factor]);
    }
    check(
        &world(SESSIONS, true, vec![lucky]),
        Answer::Keep,
        &["Keep what you have. Nothing here is shown to beat its", "without s03 it saves nothing"],
    );
}

#[test]
fn twins_are_recommended_together() {
    let twin = |name| row(name, SESSIONS, (0.9, 0.99), (0.85, 0.8));
    let said = check(
        &world(SESSIONS, true, vec![twin("a"), twin("b")]),
        Answer::Use,
        &["Use a (the same: b). "],
    );
    assert!(said.contenders.iter().all(|it| it.is_recommended));
}

#[test]
fn what_is_broken_and_cheapest_is_never_used() {
    let broken = RunRow {
        broken: Some("died in 1 of 12, first at 33".to_owned()),
        is_too_large: true,
        ..row("cheap", SESSIONS, (0.2, 1.0), (0.2, 0.9))
    };
    let said = check(
        &world(SESSIONS, true, vec![broken.clone(), row("dear", SESSIONS, (1.2, 0.9), (1.1, 0.9))]),
        Answer::Keep,
        &["dear"],
    );
    assert!(said.avoid.iter().any(|it| it.is_broken && it.strategy == "cheap"));
    let refused = RunRow { is_too_large: false, ..broken.clone() };
    for (rows, answer, advice) in [
        (vec![broken.clone()], Answer::AllBroken, true),
        (vec![refused.clone()], Answer::AllFaulty, false),
        (vec![broken, refused], Answer::AllFaulty, false),
    ] {
        let judged = world(SESSIONS, true, rows);
        check(&judged, answer, &["no strategy changed anything and ran to the end"]);
        assert_eq!(answer.sentence().contains("`--window TOKENS`"), advice);
    }
    let idle = RunRow { fired: 0, ..row("idle", SESSIONS, (1.0, 1.0), (1.0, 1.0)) };
    check(
        &world(SESSIONS, true, vec![idle]),
        Answer::NothingFires,
        &["Nothing fires", "`--window fit:0.6`"],
    );
    check(&world(0, true, Vec::new()), Answer::NothingRan, &[]);
}

/// A clear winner among others that do nothing for the better.
fn among(strategies: usize, sessions: usize) -> Rows {
    let mut rows = vec![row("winner", sessions, (0.85, 0.99), (0.8, 0.8))];
    rows.extend(
        (1..strategies).map(|at| row(&format!("other-{at}"), sessions, (1.01, 0.99), (0.99, 0.99))),
    );
    world(sessions, true, rows)
}

#[test]
fn six_sessions_show_one_winner_and_nine_one_of_seven_and_twelve_one_of_57() {
    check(&among(1, 6), Answer::Use, &["Use winner"]);
    check(
        &among(7, 6),
        Answer::Ahead,
        &[
            "winner is ahead, not decided",
            "7 strategies are judged, and only 6 sessions differ.",
            "About 3 more sessions",
        ],
    );
    check(&among(7, 9), Answer::Use, &["Use winner"]);
    check(&among(57, 12), Answer::Use, &["Use winner"]);
    check(&among(57, 11), Answer::Ahead, &["About 1 more session like"]);
}

#[test]
fn a_program_that_is_a_plain_tail_is_told_so() {
    let mut program = row("mine", SESSIONS, (0.9, 0.6), (0.9, 0.6));
    program.is_program = true;
    check(
        &world(SESSIONS, true, vec![program.clone()]),
        Answer::PlainTail,
        &["Your program mine is a plain tail: the same bill and the same facts as tail@mine"],
    );
    // A strategy that does nothing cuts nothing either.
    let mut idle = row("mine", SESSIONS, (1.0, 1.0), (1.0, 1.0));
    idle.is_program = true;
    idle.sample = world(SESSIONS, true, Vec::new()).nothing;
    idle.control = Some(idle.sample.clone());
    check(
        &world(SESSIONS, true, vec![idle]),
        Answer::Keep,
        &["Nothing here costs less than its $128.80: none costs as much."],
    );
    // Beside a trade or a winner it is the second sentence.
    let trade = row("codex", SESSIONS, (0.8, 0.9), (0.8, 0.8));
    let said = check(
        &world(SESSIONS, true, vec![program.clone(), trade]),
        Answer::Trade,
        &["codex is a trade"],
    );
    assert_eq!(said.said[1].code, Some(NoteCode::PlainTail));
    let winner = row("codex", SESSIONS, (0.8, 0.99), (0.8, 0.8));
    let said = check(&world(SESSIONS, true, vec![program, winner]), Answer::Use, &["Use codex"]);
    assert!(said.said[1].text.starts_with("Your program mine is a plain tail"));
}

#[test]
fn who_wrote_the_summaries_is_what_happened_and_rules_are_not_compared() {
    let rules = ModelEntry { name: "select".to_owned(), kind: ModelKind::Deterministic };
    let mut written = row("codex", SESSIONS, (0.9, 0.99), (0.85, 0.8));
    written.sample.writer = Some(rules);
    check(
        &world(SESSIONS, true, vec![written]),
        Answer::Keep,
        &["facts and actions are not compared: rules wrote the summaries of codex"],
    );
    // Never asked, it is verbatim, and used.
    check(
        &world(SESSIONS, true, vec![row("codex", SESSIONS, (0.9, 0.99), (0.85, 0.8))]),
        Answer::Use,
        &[],
    );
}

#[test]
fn of_what_breaks_on_both_sides_nothing_is_used_and_nothing_improved() {
    for (dead, bill) in
        [1, SESSIONS].into_iter().flat_map(|dead| [0.5, 1.0, 1.5].map(|bill| (dead, bill)))
    {
        let [old, new] = [1.0, bill].map(|bill| {
            let mut sample = sample("codex", SESSIONS, bill, 0.9);
            for session in sample.sessions.values_mut().take(dead) {
                session.dead = 1;
                session.died_at = Some("call 3".to_owned());
            }
            sample
        });
        let rule = JudgingRule { target: Target::Suite, ..JudgingRule::of_population(1) };
        let found = judge::judge(&old, &new, &rule);
        let line = of_pair(&found);
        assert_eq!(line.code, Some(NoteCode::Broken), "{}", line.text);
        let why = format!("out of window in {dead} of 12 sessions, first at call 3");
        let says = format!("both break (the baseline: {why}; the candidate: {why})");
        assert!(line.text.contains(&says), "{}", line.text);
        let gated = gate(&found, [&old, &new], &Rules::default(), 1);
        let expected = if bill > 1.0 { Gated::Regressed } else { Gated::NonInferior };
        assert_eq!(gated.verdict, expected);
        assert_eq!(gated.notes[0], format!("both sides break: {why}"));
        // The bill says that it is no whole one.
        let scope = found.axis(Axis::Bill).unwrap().scope(SESSIONS).unwrap();
        assert!(scope.starts_with(&format!("of {dead} session")), "{scope}");
    }
}

#[test]
fn compare_says_of_a_world_what_run_says() {
    let of = |own: (f64, f64), other: (f64, f64)| {
        let left = sample("none", SESSIONS, other.0, other.1);
        let right = sample("codex", SESSIONS, own.0, own.1);
        let found: Findings = judge::judge(&left, &right, &JudgingRule::of_population(1));
        let line = of_pair(&found);
        let gated = gate(&found, [&left, &right], &Rules::default(), 1);
        // A gate passes what is used or the same, and fails what is worse in anything.
        let fails = matches!(line.code, Some(NoteCode::Trade | NoteCode::Keep));
        assert_eq!(gated.verdict == Gated::Regressed, fails, "{}: {gated:?}", line.text);
        (line.code, line.text)
    };
    let (code, text) = of((0.9, 0.99), (1.0, 1.0));
    assert_eq!(code, Some(NoteCode::Use), "{text}");
    assert!(text.starts_with("Use codex: better on bill −10 % ["), "{text}");
    let (code, text) = of((0.9, 0.92), (1.0, 1.0));
    assert_eq!(code, Some(NoteCode::Trade), "{text}");
    let (code, text) = of((1.14, 1.0), (1.0, 1.0));
    assert!(
        code == Some(NoteCode::Keep)
            && text.starts_with("Keep none: codex is worse on bill +14 % ["),
        "{text}"
    );
    let (code, _) = of((1.0, 1.0), (1.0, 1.0));
    assert_eq!(code, Some(NoteCode::NoDifference));
}
