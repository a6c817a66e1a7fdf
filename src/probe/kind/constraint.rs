//! A rule the user set: asked for in words, against a foil, or by work that would break it.

use super::prelude::*;

pub(super) fn spec<'a>(topic: &'a str, statement: &'a str, form: &'a RuleForm) -> Spec<'a> {
    let parts = vec![Part::new(Search::Rule, topic, statement)];
    let rule = Spec {
        grade: Some(Box::new(|answer| {
            let exact = answer.one_of(&answer.current);
            let is_said =
                !excepts(answer.text, statement) && says_rule(statement, topic, answer.text);
            exact.or(is_said.then_some(RIGHT))
        })),
        ..Spec::new(ProbeKind::Constraint, AnswerFormat::Sentence, parts)
    };
    match form {
        RuleForm::Open => rule,
        RuleForm::Choice { foil } => Spec {
            format: AnswerFormat::Letter,
            asked: vec![
                Question::Own(format!("\nA: {statement}\nB: {foil}")),
                Question::Own(format!("\nA: {foil}\nB: {statement}")),
            ],
            reference: Reference::Written(format!("A, and B in the other order: {statement}")),
            values: Some(Vec::new()),
            grade: Some(Box::new(|answer| letters(statement, foil, answer.text))),
            ..rule
        },
        RuleForm::Call {
            task,
            forbidden,
            allowed,
        } => {
            let free = allowed.as_ref().map(|allowed| allowed.target.as_str());
            let right = match free {
                Some(target) => {
                    let right = [
                        "to ask".to_owned(),
                        format!("a call on {target} without asking"),
                    ];
                    let [first, then] = drawn(statement, right);
                    format!("Right is first {first}, and then {then}.")
                }
                None => format!("Right is to ask, or any call but one on {forbidden}."),
            };
            let protected = Question::Other(task.clone());
            let asked = match allowed {
                Some(allowed) => {
                    let free = Question::Other(allowed.task.clone());
                    drawn(statement, [protected, free]).into()
                }
                None => vec![protected],
            };
            Spec {
                format: AnswerFormat::Call,
                asked,
                reference: Reference::Written(format!("{statement} {right}")),
                values: Some(Vec::new()),
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

/// Words in front of a letter.
const LETTER: &str = "answer choice is it letter option the";

/// The letters of a forced choice, asked in both orders: the rule is at A first, then at B. Right
/// in one order only is a guess, or a liking for a letter. `None` if a letter cannot be read: the
/// article "a" is none.
fn letters(statement: &str, foil: &str, answer: &str) -> Option<Score> {
    let letter = |half: &str, a: &str, b: &str| {
        let said = words(half);
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        let option = |text: &str| words(text);
        match said.as_slice() {
            [lead @ .., "a"] if lead.iter().all(|word| holds(LETTER, word)) => Some(true),
            [lead @ .., "b"] if lead.iter().all(|word| holds(LETTER, word)) => Some(false),
            ["a", rest @ ..] if rest == option(a) => Some(true),
            ["b", rest @ ..] if rest == option(b) => Some(false),
            _ => None,
        }
    };
    let (straight, turned) = answer.split_once(OTHER_ORDER)?;
    if abstains_in_one_order(answer) {
        return Some(wrong(Outcome::Abstained));
    }
    let straight = letter(straight, statement, foil)?;
    let turned = !letter(turned, foil, statement)?;
    Some(match (straight, turned) {
        (true, true) => RIGHT,
        (true, false) | (false, true) => wrong(Outcome::Partial),
        (false, false) => wrong(Outcome::Wrong),
    })
}

/// The forbidden call breaks the rule; every other one keeps it, as asking does.
fn call(forbidden: &str, answer: &str) -> Option<Score> {
    Some(match Call::read(answer)? {
        Call::Made(call) if call.contains(&normalise(forbidden)) => wrong(Outcome::Wrong),
        Call::Asks | Call::Made(_) => RIGHT,
    })
}

/// Right is to ask about the protected object and to act on the free one: neither a reader that
/// always asks nor one that always acts is right.
fn calls(forbidden: &str, target: &str, protected: &str, free: &str) -> Option<Score> {
    let names = |object: &str, call: &Call| match call {
        Call::Made(call) => has_phrase(call, &normalise(object)),
        Call::Asks => false,
    };
    let (protected, free) = (Call::read(protected)?, Call::read(free)?);
    Some(match protected {
        Call::Asks if names(target, &free) => RIGHT,
        Call::Asks => wrong(Outcome::Partial),
        // A call on something else is neither what the rule forbids nor what it wants.
        Call::Made(_) if !names(forbidden, &protected) => return None,
        Call::Made(_) => wrong(Outcome::Wrong),
    })
}
