//! The strategies that recordings are compared with where none is named.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Result, find_sessions};
use crate::session::import::file_info::format_of;
use crate::settings::{Place, Setting, SettingTable};
use crate::strategy::preset::PRESETS;

/// The list that is changed by hand.
const DEFAULTS: &str = include_str!("../../presets/defaults.toml");

/// Products whose presets are compared, those of most recordings first: a folder may hold sessions of any number.
const MOST_PRODUCTS: usize = 3;

/// The strategies for these recordings: the agent's own, the preset of its product, the newest messages, and the usual
/// alternatives.
pub(super) fn of_recordings<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<Vec<Setting>> {
    let defaults = SettingTable::parse("presets/defaults.toml", DEFAULTS)?;
    let mut names = vec!["recorded".to_owned()];
    names.extend(products(paths, &defaults));
    names.push("tail@20000".to_owned());
    let usual = defaults.get("strategies").and_then(Setting::as_list);
    for name in usual.unwrap_or_default().iter().filter_map(Setting::as_text) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let place = Place::BuiltIn;
    let entries = names.into_iter().map(|name| {
        let mut entry = SettingTable::new(place.clone());
        entry.put("preset", name, &place);
        Setting::new(entry, &place)
    });
    Ok(entries.collect())
}

/// The presets of the products that recorded, the most frequent first.
fn products<'p>(
    recordings: impl Iterator<Item = &'p Path>,
    defaults: &SettingTable,
) -> Vec<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for path in recordings {
        let files = if find_sessions::is_walked(path) {
            find_sessions::recordings(path).map_or_else(|_| Vec::new(), |found| found.recordings)
        } else {
            vec![path.to_owned()]
        };
        let formats = files.iter().filter_map(|file| format_of(file).ok());
        for preset in formats.filter_map(|format| preset_of(format, defaults)) {
            *counts.entry(preset).or_default() += 1;
        }
    }
    let mut presets: Vec<(String, usize)> = counts.into_iter().collect();
    presets.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    presets.truncate(MOST_PRODUCTS);
    presets.into_iter().map(|(preset, _)| preset).collect()
}

/// The preset of the product that writes this format, if there is one.
fn preset_of(format: &str, defaults: &SettingTable) -> Option<String> {
    let products = defaults.get("products").and_then(Setting::as_table);
    let name = products.and_then(|products| products.text(format)).unwrap_or(format);
    PRESETS.iter().any(|(preset, _)| *preset == name).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strategy::preset::StrategySpec;
    use crate::strategy::trigger::Trigger;

    #[test]
    fn all_default_strategies_are_presets() {
        let defaults = SettingTable::parse("presets/defaults.toml", DEFAULTS).unwrap();
        let products = defaults.get("products").and_then(Setting::as_table).unwrap();
        for (format, _) in products.entries() {
            assert!(preset_of(format, &defaults).is_some(), "{format}");
        }
        assert_eq!(preset_of("claude-code", &defaults).as_deref(), Some("claude-code"));
        assert_eq!(preset_of("otlp", &defaults), None);
        for setting in of_recordings(std::iter::empty()).unwrap() {
            let name = setting.as_table().unwrap().text("preset").unwrap();
            let spec = StrategySpec::parse(name, &Trigger::default(), &Place::BuiltIn);
            assert!(spec.is_ok(), "{name}");
        }
    }
}
