//! An instruction that was taken back, asked for beside one that is in force.

use super::prelude::*;

pub(super) fn spec<'a>(
    withdrawn: &'a KeyValue,
    withdrawal: &'a str,
    standing: &'a KeyValue,
    standing_question: &str,
) -> Spec<'a> {
    let parts = vec![
        SpecPart::value(&standing.key, &standing.value),
        SpecPart::new(SearchBy::Rule, &withdrawn.key, withdrawal),
    ];
    let [first, then] = drawn(withdrawal, ["no, because it was taken back", "yes"]);
    Spec {
        answers: AnswerSet::Together,
        asked: drawn(withdrawal, own_and(standing_question)).into(),
        reference: Some(format!("First {first}; then {then}.").into()),
        grade: Some(Box::new(|answer| {
            let (withdrawn, standing) = two_answers(withdrawal, answer.text)?;
            grade(withdrawn, standing)
        })),
        ..Spec::new(ProbeKind::Obsolete, AnswerFormat::YesOrNo, parts)
    }
}

/// Right is that the first instruction does not hold and the second does. A forgotten instruction
/// is not followed, so it is right not to know the first; the one in force has to be known.
fn grade(withdrawn: &str, standing: &str) -> Option<GradeScore> {
    Some(match (Half::read(withdrawn)?, Half::read(standing)?) {
        (Half::Yes, _) => wrong(Outcome::Stale),
        (Half::No | Half::Unknown, Half::Yes) => RIGHT,
        (Half::No | Half::Unknown, Half::Unknown) => wrong(Outcome::Abstained),
        (Half::No | Half::Unknown, Half::No) => wrong(Outcome::Wrong),
    })
}

/// The answer to one of the two questions.
enum Half {
    Yes,
    No,
    Unknown,
}

impl Half {
    fn read(answer: &str) -> Option<Self> {
        match words(answer).as_slice() {
            [word] if word == "yes" => Some(Self::Yes),
            [word] if word == "no" => Some(Self::No),
            _ => abstains(answer).then_some(Self::Unknown),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_constant_answer_separates_an_instruction_in_force_from_one_taken_back() {
        let unknown = "not in context";
        for (first, second, outcome) in [
            ("No.", "Yes.", Outcome::Right),
            (unknown, "Yes.", Outcome::Right),
            ("yes", "yes", Outcome::Stale),
            ("no", "no", Outcome::Wrong),
            (unknown, unknown, Outcome::Abstained),
            ("no", unknown, Outcome::Abstained),
            ("yes", "no", Outcome::Stale),
        ] {
            let found = grade(first, second).unwrap();
            assert_eq!(found.1, outcome, "{first} {second}");
        }
        assert_eq!(grade("No, it was taken back.", "Yes."), None);
    }
}
