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
    let reference = "First no, because it was taken back; then yes.";
    Spec {
        answers: Answers::Together,
        asked: own_and(standing_question),
        reference: Reference::Text(reference),
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| grade(answer.text))),
        ..Spec::new(ProbeKind::Obsolete, AnswerFormat::YesOrNo, parts)
    }
}

/// Right is that the first instruction does not hold and the second does. A forgotten instruction
/// is not followed, so it is right not to know the first; the one in force has to be known.
fn grade(answer: &str) -> Option<Score> {
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
    let (withdrawn, standing) = answer.split_once(OTHER_ORDER)?;
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
        let both = |first: &str, second: &str| format!("{first}{OTHER_ORDER}{second}");
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
            let found = grade(&both(first, second)).unwrap();
            assert_eq!(found.1, outcome, "{first} {second}");
        }
        assert_eq!(grade(&both("No, it was taken back.", "Yes.")), None);
    }
}
