//! Prompts of the user's own: files that stages of a scenario's strategies name.

use std::path::Path;

use crate::settings::SettingError;
use crate::strategy::preset::StrategySpec;

/// A prompt of more bytes is a mistake in a path.
const MOST_BYTES: u64 = 1 << 20;

/// Reads the prompts that each of these strategies names.
pub(super) fn read(strategies: &mut [StrategySpec]) -> Result<(), SettingError> {
    for spec in strategies.iter_mut() {
        if spec.unread_prompt().is_some() {
            *spec = read_one(spec.clone())?;
        }
    }
    super::programs::locate(strategies)
}

/// Reads the prompts that one strategy names. A path starts at the folder of the file that names it,
/// and at the working directory where a flag does.
pub(super) fn read_one(spec: StrategySpec) -> Result<StrategySpec, SettingError> {
    spec.with_prompts(|path, place| {
        let file = place.folder().join(path);
        text(&file).map_err(|why| {
            let problem = format!("cannot read the prompt `{}`: {why}", file.display());
            SettingError::new(place, problem)
                .with_hint("`prompt` names a text file in the folder of the file that names it")
        })
    })
}

fn text(file: &Path) -> Result<String, String> {
    let about = std::fs::metadata(file).map_err(|error| error.to_string())?;
    if about.len() > MOST_BYTES {
        return Err(format!("it has {} bytes, and at most {MOST_BYTES} are read", about.len()));
    }
    let text = crate::files::read_to_string(file).map_err(|error| error.to_string())?;
    if text.trim().is_empty() {
        return Err("it is blank".to_owned());
    }
    Ok(text)
}
