//! The observer against a full recomputation, and against cases by hand.

use proptest::prelude::*;

use super::*;
use crate::context::{BlockAt, CacheEffect, Context, Edit};
use crate::record::{DeathCause, End};
use crate::session::ground_truth::{
    ArtifactVerb, Importance, PlanItem, Revision, RuleForm, TouchedFile,
};
use crate::session::{Message, Role, SessionParts};
use crate::tokens::{CharsPer4, CountedTexts, Size};
use crate::units::Tokens;

mod reading;

const RULE: &str = "Never touch the migrations folder on this branch.";

fn probes() -> Arc<[Probe]> {
    let probe = |id: &str, fact, evidence: &[usize]| Probe {
        id: id.to_owned(),
        fact,
        question: String::new(),
        evidence: evidence.to_vec(),
        until: None,
        importance: Importance::Normal,
    };
    let owned = str::to_owned;
    vec![
        probe(
            "port",
            Fact::Recall { key: owned("staging gateway port"), value: owned("48213") },
            &[0],
        ),
        probe(
            "rule",
            Fact::Constraint {
                topic: owned("migrations folder"),
                statement: owned(RULE),
                form: RuleForm::Open,
            },
            &[0],
        ),
        probe(
            "files",
            Fact::Artifact {
                verb: ArtifactVerb::Created,
                files: vec![file("src/a.rs", 1), file("src/b.rs", 3)],
                optional: Vec::new(),
            },
            &[1, 3],
        ),
        probe(
            "key",
            Fact::Update {
                key: owned("signing key"),
                values: vec![Revision::new("k-111", 0), Revision::new("k-222", 3)],
            },
            &[0, 3],
        ),
        probe(
            "plan",
            Fact::Continuation {
                plan: owned("velmor"),
                items: [("wire it", Some(4)), ("ship it", None)]
                    .map(|(item, done)| PlanItem { item: owned(item), done })
                    .into(),
            },
            &[2, 4],
        ),
        probe(
            "order",
            Fact::Order {
                sequence: owned("writing"),
                events: vec![
                    Revision::new("src/a.rs", 1),
                    Revision::new("k-222", 3),
                    Revision::new("looks good", 5),
                ],
            },
            &[1, 3, 5],
        ),
        probe("ask", Fact::LastRequest { requests: vec![Revision::new("go on", 6)] }, &[6]),
        probe("decoy", Fact::Decoy { key: owned("billing port"), value: owned("59999") }, &[]),
    ]
    .into()
}

fn file(path: &str, message: usize) -> TouchedFile {
    TouchedFile { path: path.to_owned(), message, until: None }
}

fn session() -> Session {
    let texts = [
        format!("The staging gateway port is 48213. {RULE}\nThe signing key is k-111."),
        "writing src/a.rs".to_owned(),
        "- [ ] wire it\n- [ ] ship it".to_owned(),
        "writing src/b.rs, signing key: k-222".to_owned(),
        "- [x] wire it\n- [ ] ship it".to_owned(),
        "writing: looks good".to_owned(),
        "go on".to_owned(),
        "finished".to_owned(),
    ];
    let messages = texts
        .into_iter()
        .enumerate()
        .map(|(at, text)| {
            let role = if at % 2 == 0 { Role::User } else { Role::Assistant };
            Arc::new(Message::text(role, text))
        })
        .collect();
    Session::new(SessionParts { id: "s".into(), messages, ..SessionParts::default() }).unwrap()
}

struct Cell {
    session: Session,
    counts: CountedTexts,
    context: Context,
    observer: Box<SurvivalObserver>,
    next: usize,
}

impl Cell {
    fn new() -> Self {
        let session = session();
        let plan = SurvivalPlan::new(&session, probes(), &Selection::default()).unwrap();
        Self {
            observer: Box::new(SurvivalObserver::new(Arc::new(plan))),
            counts: CountedTexts::new(Arc::new(CharsPer4)),
            context: Context::default(),
            next: 0,
            session,
        }
    }

    fn append(&mut self) {
        if let Some(message) = self.session.messages().get(self.next) {
            let entry = Entry::new(Origin::Verbatim(self.next), message.clone(), &self.counts);
            self.observer.appended(&entry);
            self.context.append(entry);
            self.next += 1;
        }
    }

    fn patch(&mut self, call: usize, edits: Vec<Edit>) {
        let change = self.context.apply(edits).unwrap();
        self.observer.patched(&Applied {
            call,
            stage: "clear".into(),
            reason: "old".into(),
            change,
            is_still_over: false,
            prepared_at: None,
        });
    }

    fn summary(&self, range: std::ops::Range<usize>, text: &str) -> Edit {
        let entries = &self.context.entries()[range.clone()];
        let message = Arc::new(Message::text(Role::User, text));
        let with = vec![Entry::new(Origin::derived_from(entries), message, &self.counts)];
        Edit::replacing(range, with)
    }

    fn call(&mut self, call: usize) {
        let before = self.session.calls()[call];
        while self.next < before {
            self.append();
        }
        self.observer.called(&CallView {
            call,
            before,
            session: &self.session,
            context: &self.context,
            fixed: Size::default(),
            scale: crate::bill::Scale::COUNTED,
            response: self.session.message(before),
            edge: None,
        });
    }

    fn due(&self, call: usize) -> Vec<Item> {
        self.observer.plan.items[self.observer.plan.due_range(call)].to_vec()
    }

    fn results(&self, call: usize) -> Vec<SurvivalRecord> {
        self.observer
            .plan
            .due_range(call)
            .map(|index| self.observer.results[index].clone().unwrap())
            .collect()
    }
}

#[test]
fn everything_survives_in_the_full_history_and_nothing_in_an_empty_one() {
    let mut full = Cell::new();
    let mut empty = Cell::new();
    empty.next = usize::MAX;
    for call in 0..4 {
        full.call(call);
        empty.call(call);
        for (item, survived) in full.due(call).iter().zip(full.results(call)) {
            let is_decoy = full.observer.plan.probes[item.probe].kind() == ProbeKind::Decoy;
            let (fate, score) = if is_decoy { (Fate::Lost, 0.0) } else { (Fate::Kept, 1.0) };
            assert_eq!((survived.fate, survived.score), (fate, score), "{item:?}");
            assert_eq!(survived.compacted_score, None, "{item:?}");
        }
        for lost in empty.results(call) {
            assert_eq!((lost.fate, lost.score), (Fate::Lost, 0.0));
            assert_eq!(lost.lost_at, None);
        }
    }
}

#[test]
fn a_loss_names_the_patch_that_caused_it() {
    let mut cell = Cell::new();
    cell.call(1);
    let first = cell.summary(0..1, "A port is 48213. The migrations folder: do not touch.");
    cell.patch(2, vec![first]);
    cell.call(2);
    let results = cell.results(2);
    let lost_at = Some(LostAt {
        call: 2,
        stage: "clear".into(),
        reason: "old".into(),
        seen_by_summariser: None,
    });
    assert_eq!(results[0].fate, Fate::Unsure);
    assert_eq!(results[0].place, Some(PlaceInPrompt::Derived));
    assert_eq!(results[0].compacted_score, Some(0.0));
    assert_eq!(results[0].lost_at, lost_at);
    assert_eq!(results[1].fate, Fate::Kept);
    assert_eq!(results[1].compacted_score, Some(1.0));
    assert_eq!(results[1].lost_at, None);
    assert_eq!(results[2].fate, Fate::Kept);
    assert_eq!(results[2].compacted_score, None);

    let text = (BlockAt { entry: 1, block: 0 }, "[cleared] gateway staging 48213".into());
    let entries = cell.context.entries();
    let edits = Edit::blocks(entries, [text], CacheEffect::Breaks, &cell.counts);
    cell.patch(3, edits);
    cell.call(3);
    let results = cell.results(3);
    assert_eq!(results[0].fate, Fate::Kept, "it came back");
    assert_eq!(results[0].place, Some(PlaceInPrompt::Edited));
    assert_eq!(results[0].lost_at, None);
    assert_eq!(results[2].fate, Fate::Partial);
    assert!((results[2].score - 0.5).abs() < f64::EPSILON);
    assert_eq!(results[2].compacted_score, Some(0.0));
    assert_eq!(results[2].lost_at.as_ref().unwrap().call, 3);
}

/// The fate of the revised key and of the plan, as asked at the last call.
fn check_last(entries: std::ops::Range<usize>, text: &str, key: (Fate, f64), plan: (Fate, f64)) {
    let mut cell = Cell::new();
    cell.call(2);
    let edit = cell.summary(entries, text);
    cell.patch(3, vec![edit]);
    cell.call(3);
    let results = cell.results(3);
    let found = |at: usize| (results[at].fate, results[at].score);
    assert_eq!(found(3), key, "{text}");
    assert_eq!(found(4), plan, "{text}");
}

#[test]
fn the_newest_value_has_survived_where_no_older_one_stands_after_it() {
    use Fate::{Changed, Kept, Lost, Unsure};
    let whole = (Kept, 1.0);
    let gone = (Lost, 0.0);
    check_last(0..1, "nothing", whole, whole);
    check_last(0..5, "signing key k-222; left: ship it", whole, whole);
    check_last(0..5, "signing key k-111", (Changed, 0.0), gone);
    check_last(0..5, "signing key: k-111, k-222", (Unsure, 0.0), gone);
    check_last(0..5, "signing key: k-111 -> k-222", whole, gone);
    check_last(0..5, "one of them is k-222", (Unsure, 0.0), gone);
    // An older value behind the newest is the last word.
    check_last(4..5, "signing key: k-111", (Changed, 0.0), (Changed, 2.0 / 3.0));
    check_last(2..5, "left: ship it", (Changed, 0.0), whole);
    check_last(0..5, "left: ship it, wire it", gone, (Changed, 2.0 / 3.0));
    check_last(0..5, "left: wire it", gone, (Changed, 0.0));
    check_last(0..5, "completed: ship it, wire it", gone, (Changed, 0.0));
}

#[test]
fn what_is_changed_names_what_is_said_now_and_the_stage_that_says_it() {
    let mut cell = Cell::new();
    cell.call(2);
    let text = "You may touch the migrations folder on this branch. The signing key is k-111.";
    let edit = cell.summary(0..5, text);
    cell.patch(3, vec![edit]);
    cell.call(3);
    let results = cell.results(3);
    for (found, said) in [
        (&results[1], "You may touch the migrations folder on this branch."),
        (&results[3], "k-111"),
    ] {
        assert_eq!((found.fate, found.score, found.most), (Fate::Changed, 0.0, None));
        assert_eq!(found.changed_to(), Some(said));
        let lost = found.lost_at.as_ref().unwrap();
        assert_eq!((lost.call, &*lost.stage), (3, "clear"));
    }
    // Nothing is known of the port's key: it may be there.
    let mut cell = Cell::new();
    cell.call(2);
    let edit = cell.summary(0..5, "48213");
    cell.patch(3, vec![edit]);
    cell.call(3);
    let port = &cell.results(3)[0];
    assert_eq!((port.fate, port.score, port.most), (Fate::Unsure, 0.0, Some(1.0)));
}

#[test]
fn the_lines_of_a_summary_tell_an_order_and_the_last_request() {
    use Fate::{Changed, Kept, Lost, Partial};
    let third = 1.0 / 3.0;
    for (text, order, ask) in [
        ("writing: src/a.rs, k-222, looks good", (Kept, 1.0), Lost),
        ("writing:\nlooks good\nk-222\nsrc/a.rs", (Changed, 0.0), Lost),
        ("writing: src/a.rs, looks good, k-222", (Partial, third), Lost),
        ("writing: src/a.rs, looks good. Then: go on", (Partial, third), Kept),
        ("writing: k-222", (Partial, 0.0), Lost),
        ("src/a.rs", (Fate::Unsure, 0.0), Lost),
        ("nothing", (Lost, 0.0), Lost),
    ] {
        let mut cell = Cell::new();
        cell.call(2);
        cell.append();
        cell.append();
        let edit = cell.summary(0..7, text);
        cell.patch(3, vec![edit]);
        cell.call(3);
        let results = cell.results(3);
        let found = &results[5];
        assert_eq!(found.fate, order.0, "{text}");
        assert!((found.score - order.1).abs() < 1e-9, "{text}: {}", found.score);
        assert_eq!(found.compacted_score, Some(found.score), "{text}");
        assert_eq!(results[6].fate, ask, "{text}");
    }
}

#[test]
fn only_revisions_before_the_question_count() {
    let mut cell = Cell::new();
    for (call, newest) in [(0, "k-111"), (1, "k-111"), (2, "k-222")] {
        cell.call(call);
        let plan = cell.observer.plan.clone();
        let results = cell.results(call);
        let due = cell.due(call);
        let asked = due.iter().zip(results).find(|(item, _)| plan.probes[item.probe].id == "key");
        let (item, result) = asked.unwrap();
        assert_eq!(result.fate, Fate::Kept, "{call}");
        let fact = &plan.probes[item.probe].fact;
        let before = cell.session.calls()[call];
        assert_eq!(fact.spec().current(before).pop(), Some(newest), "{call}");
    }
}

#[test]
fn what_is_due_after_a_death_is_lost() {
    let end = End::Died { call: 2, prompt: Tokens(900), cause: DeathCause::Overflow };
    let lost = after_death(&end, ProbeKind::Recall);
    assert_eq!((lost.fate, lost.score), (Fate::Lost, 0.0));
    // Whoever dies early must not look better in the compacted region; a decoy is no loss.
    assert_eq!(lost.compacted_score, Some(0.0));
    let decoy = after_death(&end, ProbeKind::Decoy);
    assert_eq!(decoy.compacted_score, None);
    let lost_at = lost.lost_at.unwrap();
    assert_eq!((lost_at.call, lost_at.stage.as_str()), (2, "overflow death"));
}

const WRITTEN: [&str; 12] = [
    "signing key k-111",
    "the signing key became k-222, and wire it is finished",
    "signing key k-111 or signing key k-222",
    "left: ship it, wire it",
    "a summary of nothing",
    "staging gateway: 48213",
    "48213",
    "the migrations folder must not be touched",
    "touch the migrations folder; wrote src/a.rs and src/b.rs",
    "billing port 59999",
    "writing: looks good, then src/a.rs",
    "go on",
];

#[derive(Debug, Clone)]
enum Move {
    Append,
    Edit(usize, usize),
    Replace(usize, usize, Vec<usize>),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => Just(Move::Append),
        1 => (0..8_usize, 0..WRITTEN.len()).prop_map(|(at, text)| Move::Edit(at, text)),
        1 => (0..8_usize, 0..4_usize, prop::collection::vec(0..WRITTEN.len(), 0..3))
            .prop_map(|(at, length, with)| Move::Replace(at, length, with)),
    ];
    prop::collection::vec(one, 1..24)
}

proptest! {
    #[test]
    fn following_patches_equals_looking_at_everything(moves in moves()) {
        let mut cell = Cell::new();
        for (call, step) in moves.into_iter().enumerate() {
            let length = cell.context.entries().len();
            match step {
                Move::Append => cell.append(),
                Move::Edit(at, text) if at < length => {
                    let text = (BlockAt { entry: at, block: 0 }, WRITTEN[text].into());
                    let entries = cell.context.entries();
                    let edits = Edit::blocks(entries, [text], CacheEffect::Keeps, &cell.counts);
                    cell.patch(call, edits);
                }
                Move::Replace(at, span, with) if at < length => {
                    let range = at..(at + span).min(length);
                    let origins = [
                        Origin::derived_from(&cell.context.entries()[range.clone()]),
                        Origin::Authored,
                        Origin::Restored(0),
                    ];
                    let with = with
                        .iter()
                        .zip(origins)
                        .map(|(text, origin)| {
                            let message = Message::text(Role::User, WRITTEN[*text]);
                            Entry::new(origin, Arc::new(message), &cell.counts)
                        })
                        .collect::<Vec<_>>();
                    cell.patch(call, vec![Edit::replacing(range, with)]);
                }
                Move::Edit(..) | Move::Replace(..) => {}
            }
            let prompt = cell.observer.plan.occurrences(&cell.context);
            for (slot, count) in cell.observer.counts.iter().enumerate() {
                let found = prompt.of(slot);
                prop_assert_eq!(found.is_strong(), *count > 0);
                prop_assert!(!found.is_strong() || !cell.observer.lost.contains_key(&slot));
            }
        }
    }
}
