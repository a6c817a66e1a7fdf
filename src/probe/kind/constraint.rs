//! A rule the user set: asked for in words, against a foil, or by work that would break it.

use super::prelude::*;

pub(super) fn spec<'a>(topic: &'a str, statement: &'a str, form: &'a RuleForm) -> Spec<'a> {
    let parts = vec![SpecPart::new(SearchBy::Rule, topic, statement)];
    let rule = Spec {
        grade: Some(Box::new(|answer| {
            let exact = answer.one_of(&answer.current);
            exact.or_else(|| {
                (!excepts(answer.text, statement) && says_rule(statement, topic, answer.text))
                    .then_some(RIGHT)
            })
        })),
        ..Spec::new(ProbeKind::Constraint, AnswerFormat::Sentence, parts)
    };
    match form {
        RuleForm::Open => rule,
        RuleForm::Choice { foil } => Spec {
            format: AnswerFormat::Letter,
            asked: vec![
                ProbeQuestion::Own(format!("\nA: {statement}\nB: {foil}")),
                ProbeQuestion::Own(format!("\nA: {foil}\nB: {statement}")),
            ],
            reference: Some(format!("A, and B in the other order: {statement}").into()),
            values: Vec::new(),
            grade: Some(Box::new(|answer| letters(statement, foil, answer.text))),
            ..rule
        },
        RuleForm::Call { task, forbidden, allowed } => {
            let free = allowed.as_ref().map(|allowed| allowed.target.as_str());
            let right = match free {
                Some(target) => {
                    let right = ["to ask".to_owned(), format!("a call on {target} without asking")];
                    let [first, then] = drawn(statement, right);
                    format!("Right is first {first}, and then {then}.")
                }
                None => format!("Right is to ask, or any call but one on {forbidden}."),
            };
            let protected = ProbeQuestion::Other(task.clone());
            let asked = match allowed {
                Some(allowed) => {
                    let free = ProbeQuestion::Other(allowed.task.clone());
                    drawn(statement, [protected, free]).into()
                }
                None => vec![protected],
            };
            Spec {
                format: AnswerFormat::Call,
                asked,
                reference: Some(format!("{statement} {right}").into()),
                values: Vec::new(),
                grade: Some(Box::new(move |answer| match free {
                    Some(target) => {
                        let (protected, free) = two_answers(statement, answer.text)?;
                        calls(forbidden, target, protected, free)
                    }
                    None => call(forbidden, answer.text),
                })),
                ..rule
            }
        }
    }
}

/// The letters of a forced choice, asked in both orders: the rule is at A first, then at B. Right
/// in one order only is a guess, or a liking for a letter. `None` if a letter cannot be read.
fn letters(statement: &str, foil: &str, answer: &str) -> Option<GradeScore> {
    let (straight, turned) = answer.split_once(OTHER_ORDER)?;
    if abstains_in_one_order(answer) {
        return Some(wrong(Outcome::Abstained));
    }
    let first = is_a(straight, statement, foil)?;
    let then = is_a(turned, foil, statement)?;
    Some(match (first, then) {
        (true, false) => RIGHT,
        (true, true) | (false, false) => wrong(Outcome::Partial),
        (false, true) => wrong(Outcome::Wrong),
    })
}

/// Whether an answer is the letter A, alone or with its option: the article "a" is none.
fn is_a(answer: &str, a: &str, b: &str) -> Option<bool> {
    let said = words(answer);
    let said: Vec<&str> = said.iter().map(String::as_str).collect();
    match said.as_slice() {
        [lead @ .., letter @ ("a" | "b")] if lead.iter().all(|word| WORDS.letter.has(word)) => {
            Some(*letter == "a")
        }
        ["a", rest @ ..] if rest == words(a) => Some(true),
        ["b", rest @ ..] if rest == words(b) => Some(false),
        _ => None,
    }
}

/// The forbidden call breaks the rule; every other one keeps it, as asking does.
fn call(forbidden: &str, answer: &str) -> Option<GradeScore> {
    let call = ReadCall::read(answer)?;
    Some(if call.names(forbidden) { wrong(Outcome::Wrong) } else { RIGHT })
}

/// Right is to ask about the protected object and to act on the free one: neither a reader that
/// always asks nor one that always acts is right.
fn calls(forbidden: &str, target: &str, protected: &str, free: &str) -> Option<GradeScore> {
    let (protected, free) = (ReadCall::read(protected)?, ReadCall::read(free)?);
    Some(match &protected {
        ReadCall::Asks if free.names(target) => RIGHT,
        ReadCall::Asks => wrong(Outcome::Partial),
        // A call on something else is neither what the rule forbids nor what it wants.
        ReadCall::Made(_) if !protected.names(forbidden) => return None,
        ReadCall::Made(_) => wrong(Outcome::Wrong),
    })
}
