//! `[probes]`: files of facts, and the selection of facts that are asked.

use super::Result;
use crate::probe::{ProbeKind, Selection};
use crate::settings::{CheckedTable, Setting, SettingError, SettingValue};

/// Reads which items are asked; `seed` draws them where there are more than are asked.
pub(super) fn read(keys: &CheckedTable<'_>, seed: u64) -> Result<Selection> {
    let points = keys.given("points");
    Ok(Selection {
        seed,
        only: Vec::new(),
        points: points.map_or(Ok(Vec::new()), |setting| points_of(keys, setting))?,
        items: keys.whole("items"),
        kinds: kinds(keys)?,
    })
}

/// Percents of a session, ascending.
fn points_of(keys: &CheckedTable<'_>, setting: &Setting) -> Result<Vec<u8>> {
    let items = setting.as_list().unwrap_or_default();
    let percents = items.iter().map(|item| match item.value {
        SettingValue::Integer(percent @ 1..=100) => u8::try_from(percent).ok(),
        _ => None,
    });
    let points: Option<Vec<u8>> = percents.collect();
    let ascending = points.filter(|points| points.is_sorted_by(|one, next| one < next));
    ascending.filter(|points| !points.is_empty()).ok_or_else(|| {
        let problem = format!(
            "`{}` must be a list of ascending whole numbers from 1 to 100, not `{}`",
            keys.reader().path_of("points"),
            setting.value
        );
        SettingError::new(&setting.place, problem).with_hint("as in `points = [50, 100]`")
    })
}

fn kinds(keys: &CheckedTable<'_>) -> Result<Vec<ProbeKind>> {
    let names = keys.reader().texts("kinds")?.unwrap_or_default();
    let mut kinds: Vec<ProbeKind> = Vec::new();
    for name in names {
        let Some(kind) = ProbeKind::ALL.into_iter().find(|kind| kind.name() == name) else {
            let problem =
                format!("`{}` names no kind of probe: `{name}`", keys.reader().path_of("kinds"));
            let all = ProbeKind::ALL.map(ProbeKind::name).join(", ");
            let hint = format!("kinds are {all}");
            return Err(SettingError::new(keys.place_of("kinds"), problem).with_hint(hint));
        };
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    if kinds.is_empty() && keys.setting("kinds").is_some() {
        let problem = format!("`{}` names no kind", keys.reader().path_of("kinds"));
        let hint = "leave it out to ask all kinds";
        return Err(SettingError::new(keys.place_of("kinds"), problem).with_hint(hint));
    }
    kinds.sort_unstable();
    Ok(kinds)
}
