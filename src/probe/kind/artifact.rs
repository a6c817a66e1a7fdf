//! Which files were read, created, modified or deleted.

use super::prelude::*;

pub(super) fn spec<'a>(files: &'a [TouchedFile], optional: &'a [TouchedFile]) -> Spec<'a> {
    let parts = files.iter().map(|file| SpecPart {
        since: Some(file.message),
        until: file.until,
        ..SpecPart::new(SearchBy::Path, "", &file.path)
    });
    Spec {
        optional,
        grade: Some(Box::new(|answer| {
            let gold = Gold {
                wanted: canonical(answer.current.iter().copied()),
                optional: canonical(answer.optional.iter().copied()),
                ever: &BTreeSet::new(),
                known: &answer.rules.paths,
            };
            let entries = listed(answer.text, &['\n', ',']).map(trim_punctuation);
            gold.grade(&canonical(entries.filter(|path| !path.is_empty())))
        })),
        ..Spec::new(ProbeKind::Artifact, AnswerFormat::Paths, parts.collect())
    }
}

fn canonical<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    paths.map(canonical_path).collect()
}
