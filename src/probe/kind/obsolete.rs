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
    Spec {
        answers: Answers::Together,
        asked: own_and(standing_question),
        reference: Some("First no, because it was taken back; then yes.".into()),
        grade: Some(Box::new(|answer| grade(answer.text))),
        ..Spec::new(ProbeKind::Obsolete, AnswerFormat::YesOrNo, parts)
    }
}

/// Right is that the first instruction does not hold and the second does. A forgotten instruction
/// is not followed, so it is right not to know the first; the one in force has to be known.
fn grade(answer: &str) -> Option<Score> {
    let (withdrawn, standing) = answer.split_once(OTHER_ORDER)?;
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
