//! The recipe of a synthetic session, as a scenario writes it.

use super::small;
use crate::session::synthetic::{
    FAMILIES, HEAD_TOKENS, Language, Length, MOST_DISTRACTORS, MOST_FACTS, OBSERVATIONS, RESULTS,
    Recipe, families_in,
};
use crate::settings::{Reader, SettingError, with_suggestion};
use crate::units::Tokens;

/// Reads it whole: an unknown key is an error.
pub(super) fn read(mut reader: Reader<'_>) -> Result<Recipe, SettingError> {
    let place = reader.place();
    let families: Vec<&'static str> = FAMILIES.iter().map(|family| family.name).collect();
    let Some(family) = reader.choice("family", &families)? else {
        return Err(with_suggestion(reader.must_be_set("family"), "", families));
    };
    let seed = reader.whole("seed", 0, u64::MAX)?.unwrap_or(1);
    let rounds = reader.whole("rounds", 1, 1_000_000)?;
    let tokens = reader.whole("tokens", 1_000, 1_000_000_000)?;
    let length = match (rounds, tokens) {
        (Some(rounds), None) => Length::Rounds(small(rounds)),
        (None, Some(tokens)) => Length::Tokens(Tokens(tokens)),
        _ => {
            let problem = "`synthetic` needs either `rounds` or `tokens`";
            return Err(SettingError::new(place, problem));
        }
    };
    let fact_percent = small(
        reader
            .whole("fact_percent", 0, MOST_FACTS.into())?
            .unwrap_or(100),
    );
    let (least, most) = OBSERVATIONS.into_inner();
    let observation_percent = reader.whole("observation_percent", least.into(), most.into())?;
    let (smallest, largest) = RESULTS.into_inner();
    let result_percent = reader.whole("result_percent", smallest.into(), largest.into())?;
    let distractors = reader.whole("distractors", 0, MOST_DISTRACTORS.into())?;
    let phrasings = reader.whole("phrasings", 1, 100)?;
    let head_tokens = reader.whole("head_tokens", 0, 1_000_000)?;
    let codes = Language::ALL.map(Language::code);
    let code = reader.choice("language", &codes)?;
    let language = code.and_then(Language::of_code).unwrap_or_default();
    let mut known = FAMILIES.iter();
    if !known.any(|known| known.name == family && known.languages.contains(&language)) {
        let problem = format!(
            "`{family}` is not written in `{}`, only {}",
            language.code(),
            families_in(language)
        );
        return Err(SettingError::new(place, problem));
    }
    reader.finish()?;
    Ok(Recipe {
        family: family.to_owned(),
        seed,
        length,
        fact_percent,
        observation_percent: observation_percent.map(small),
        result_percent: result_percent.map_or(100, small),
        distractors: distractors.map(small),
        head_tokens: head_tokens.map_or(HEAD_TOKENS, Tokens),
        phrasings: phrasings.map(small),
        language,
    })
}
