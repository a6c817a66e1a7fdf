//! An instruction that was taken back, asked for beside one that is in force.

use super::prelude::*;

pub(super) fn spec<'a>(
    withdrawn: &'a KeyValue,
    withdrawal: &'a str,
    standing: &'a KeyValue,
    standing_question: &str,
) -> Spec<'a> {
    let parts = vec![
        Part::value(&standing.key, &standing.value),
        Part::new(Search::Rule, &withdrawn.key, withdrawal),
    ];
    let [first, then] = drawn(withdrawal, ["no, because it was taken back", "yes"]);
    let own = [
        Question::Own(String::new()),
        Question::Other(standing_question.to_owned()),
    ];
    Spec {
        answers: Answers::Together,
        asked: drawn(withdrawal, own).into(),
        reference: Reference::Written(format!("First {first}; then {then}.")),
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| {
            let (withdrawn, standing) = two_answers(withdrawal, answer.text)?;
            grade(withdrawn, standing)
        })),
        ..Spec::new(ProbeKind::Obsolete, AnswerFormat::YesOrNo, parts)
    }
}

/// Right is that the first instruction does not hold and the second does. A forgotten instruction
/// is not followed, so it is right not to know the first; the one in force has to be known.
fn grade(withdrawn: &str, standing: &str) -> Option<Score> {
    enum Half {
        Yes,
        No,
        Unknown,
    }
    let read = |half: &str| match words(half).as_slice() {
        [word] if word == "yes" => Some(Half::Yes),
        [word] if word == "no" => Some(Half::No),
        _ => abstains(half).then_some(Half::Unknown),
    };
    Some(match (read(withdrawn)?, read(standing)?) {
        (Half::Yes, _) => wrong(Outcome::Stale),
        (Half::No | Half::Unknown, Half::Yes) => RIGHT,
        (Half::No | Half::Unknown, Half::Unknown) => wrong(Outcome::Abstained),
        (Half::No | Half::Unknown, Half::No) => wrong(Outcome::Wrong),
    })
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
