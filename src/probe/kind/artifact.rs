//! Which files were read, created, modified or deleted.

use std::collections::BTreeSet;

use super::prelude::*;

pub(super) fn spec<'a>(files: &'a [TouchedFile], optional: &'a [TouchedFile]) -> Spec<'a> {
    let part = |file: &'a TouchedFile| Part {
        since: Some(file.message),
        until: file.until,
        ..Part::new(Search::Path, "", &file.path)
    };
    let parts = files.iter().map(part).collect();
    Spec {
        optional,
        values: Some(Vec::new()),
        grade: Some(Box::new(|answer| {
            let known = answer.rules.paths();
            grade(&answer.current, &answer.optional, known, answer.text)
        })),
        ..Spec::new(ProbeKind::Artifact, AnswerFormat::Paths, parts)
    }
}

/// Set F1 on canonical paths: `2·|answered ∩ gold| / (|answered| + |gold|)`. `known` are the paths of
/// all lists of the session. Optional files count on neither side.
fn grade(
    gold: &[&str],
    optional: &[&str],
    known: &BTreeSet<String>,
    answer: &str,
) -> Option<Score> {
    let canonical = |paths: &[&str]| -> BTreeSet<String> {
        paths.iter().map(|path| canonical_path(path)).collect()
    };
    let (gold, optional) = (canonical(gold), canonical(optional));
    let answered: Vec<&str> = listed(answer, &['\n', ','])
        .map(trim_punctuation)
        .filter(|path| !path.is_empty())
        .collect();
    let answered = canonical(&answered);
    if answered.is_empty() || !answered.is_subset(known) {
        return None;
    }
    let counts = |path: &&String| gold.contains(*path) || !optional.contains(*path);
    let counted = answered.iter().filter(counts).count();
    let common = gold.intersection(&answered).count();
    Some((
        f1(common, gold.len(), counted),
        outcome(common, gold.len(), counted),
    ))
}
