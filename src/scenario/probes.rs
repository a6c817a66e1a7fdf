//! `[probes]`: files of facts, and which of all that is known about a session is asked.

use std::path::{Path, PathBuf};

use crate::probe::{ProbeKind, Selection};
use crate::settings::{Place, Reader, Setting, SettingError, Value};

/// The most items of a session that can be asked for: more than any has.
const MOST_ITEMS: u64 = 1_000_000;

/// A file of facts, with what named it.
#[derive(Debug, Clone, PartialEq)]
pub struct ProbeFile {
    /// Where it is.
    pub path: PathBuf,
    /// What named it.
    pub place: Place,
}

/// Reads `[probes]`; `folder` is where relative paths start, `seed` draws items where there are more
/// than are asked.
pub(super) fn read(
    reader: Option<Reader<'_>>,
    folder: &Path,
    seed: u64,
) -> Result<(Vec<ProbeFile>, Selection), SettingError> {
    let mut selection = Selection {
        seed,
        ..Selection::default()
    };
    let Some(mut reader) = reader else {
        return Ok((Vec::new(), selection));
    };
    let place = reader.place().clone();
    let place = reader
        .setting("files")
        .map_or(place, |setting| setting.place.clone());
    let files = reader.texts("files")?.unwrap_or_default();
    if let Some(setting) = reader.setting("points") {
        selection.points = points(&reader, setting)?;
    }
    let items = reader.whole("items", 1, MOST_ITEMS)?;
    selection.items = items.and_then(|most| usize::try_from(most).ok());
    selection.kinds = kinds(&mut reader)?;
    reader.finish()?;
    let file = |path: &&str| ProbeFile {
        path: folder.join(path),
        place: place.clone(),
    };
    Ok((files.iter().map(file).collect(), selection))
}

/// Percents of a session, ascending.
fn points(reader: &Reader<'_>, setting: &Setting) -> Result<Vec<u8>, SettingError> {
    let items = match &setting.value {
        Value::List(items) => items.as_slice(),
        _ => &[],
    };
    let percent = |item: &Setting| match item.value {
        Value::Whole(percent @ 1..=100) => u8::try_from(percent).ok(),
        _ => None,
    };
    let points: Option<Vec<u8>> = items.iter().map(percent).collect();
    let is_ascending = |points: &Vec<u8>| points.is_sorted_by(|one, next| one < next);
    let points = points.filter(|points| !points.is_empty() && is_ascending(points));
    points.ok_or_else(|| {
        let problem = format!(
            "`{}` must be a list of ascending whole numbers from 1 to 100, not `{}`",
            reader.path_of("points"),
            setting.value
        );
        SettingError::new(&setting.place, problem).with_hint("as in `points = [50, 100]`")
    })
}

fn kinds(reader: &mut Reader<'_>) -> Result<Vec<ProbeKind>, SettingError> {
    let Some(names) = reader.texts("kinds")? else {
        return Ok(Vec::new());
    };
    let place = reader
        .setting("kinds")
        .map_or(reader.place(), |setting| &setting.place)
        .clone();
    let mut kinds: Vec<ProbeKind> = Vec::new();
    for name in names {
        let known = ProbeKind::ALL.into_iter().find(|kind| kind.name() == name);
        let Some(kind) = known else {
            let problem = format!(
                "`{}` names no kind of probe: `{name}`",
                reader.path_of("kinds")
            );
            let all = ProbeKind::ALL.map(ProbeKind::name).join(", ");
            return Err(SettingError::new(&place, problem).with_hint(format!("kinds are {all}")));
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() {
        let problem = format!("`{}` names no kind", reader.path_of("kinds"));
        return Err(SettingError::new(&place, problem).with_hint("leave it out to ask all kinds"));
    }
    kinds.sort_unstable();
    Ok(kinds)
}
