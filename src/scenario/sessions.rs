//! `[[sessions]]`: recordings, and the recipes of synthetic sessions.

use std::path::Path;

use super::{Result, SessionSource};
use crate::session::synthetic::{FAMILIES, LEAST_WINDOW, Language, Length, Recipe, families_in};
use crate::settings::{CheckedTable, SettingError, SettingTable, with_suggestion};
use crate::units::Tokens;

/// Reads one entry of `[[sessions]]`; `folder` is where relative paths start.
pub(super) fn read(table: &SettingTable, folder: &Path) -> Result<Vec<SessionSource>> {
    let keys = CheckedTable::new(table, "sessions", (&super::KEYS, "session"))?;
    let synthetic = keys.setting("synthetic");
    let recipe = synthetic.map(|_| recipe(&keys.table("synthetic")?)).transpose()?;
    let wrong = |place, problem: &str| Err(SettingError::new(place, problem));
    match (keys.file("path", folder), recipe) {
        (Some((path, place)), None) if keys.setting("count").is_none() => {
            Ok(vec![SessionSource::File(path, Some(place))])
        }
        (None, Some(recipe)) => Ok((0..keys.whole("count").unwrap_or_default())
            .map(|n: u64| recipe.seed.wrapping_add(n))
            .map(|seed| SessionSource::Synthetic(Recipe { seed, ..recipe.clone() }))
            .collect()),
        (Some(_), None) => {
            wrong(keys.place_of("count"), "`sessions.count` needs `synthetic`: a file is read once")
        }
        (Some(_), Some(_)) => {
            let problem = "`[[sessions]]` has both `path` and `synthetic`";
            Err(SettingError::new(table.place(), problem).with_hint("give each a table of its own"))
        }
        (None, None) => wrong(table.place(), "`[[sessions]]` needs either `path` or `synthetic`"),
    }
}

/// Reads what a command line says of a synthetic session, as `synthetic` says it in a scenario.
pub fn synthetic(keys: &SettingTable) -> Result<Recipe> {
    recipe(&CheckedTable::new(keys, "", (&super::KEYS, "recipe"))?)
}

fn recipe(keys: &CheckedTable<'_>) -> Result<Recipe> {
    let Some(family) = keys.text("family") else {
        let error = keys.reader().must_be_set("family");
        return Err(with_suggestion(error, "", super::names("families")));
    };
    let window = keys.whole("for_window");
    let sized = Recipe::default().for_window(window.unwrap_or(LEAST_WINDOW));
    let length = match (keys.whole("rounds"), keys.whole("tokens"), window) {
        (Some(rounds), None, None) => Length::Rounds(rounds),
        (None, Some(tokens), None) => Length::Tokens(Tokens(tokens)),
        (None, None, Some(_)) => sized.length,
        _ => {
            let problem = "`synthetic` needs one of `rounds`, `tokens` and `for_window`";
            return Err(SettingError::new(keys.place(), problem));
        }
    };
    let head_tokens = match (window, keys.setting("head_tokens")) {
        (Some(_), None) => sized.head_tokens,
        _ => Tokens(keys.whole("head_tokens").unwrap_or_default()),
    };
    let language = keys.one_of("language", Language::ALL, Language::code).unwrap_or_default();
    let mut known = FAMILIES.iter();
    if !known.any(|known| known.name == family && known.languages.contains(&language)) {
        let problem = format!(
            "`{family}` is not written in `{}`, only {}",
            language.code(),
            families_in(language)
        );
        return Err(SettingError::new(keys.place(), problem));
    }
    Ok(Recipe {
        family: family.to_owned(),
        seed: keys.whole("seed").unwrap_or_default(),
        length,
        fact_percent: keys.whole("fact_percent").unwrap_or_default(),
        observation_percent: keys.whole("observation_percent"),
        result_percent: keys.whole("result_percent").unwrap_or_default(),
        distractors: keys.whole("distractors"),
        head_tokens,
        window,
        phrasings: keys.whole("phrasings"),
        language,
    })
}
