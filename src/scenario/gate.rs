//! `[gate]`: what a change must not make worse.

use super::Result;
use crate::settings::{CheckedTable, Place, Setting, SettingError, SettingTable, SettingValue};

/// The limits for a change. Names of metrics are checked where they are known.
#[derive(Debug, Clone, PartialEq)]
pub struct GateSetting {
    /// Margins by metric, with where each was written.
    pub margins: Vec<(String, f64, Place)>,
    /// Whether only the metrics named here are gated.
    pub replaces_margins: bool,
    /// `suite` or `population`.
    pub target: Option<String>,
    /// Whether a lost probe of high importance breaks the gate.
    pub hard_break: bool,
    /// Share of what the baseline scored that must be scored again.
    pub coverage: f64,
    /// Whether `inconclusive` fails too.
    pub fail_on_inconclusive: bool,
    /// The baseline of `run --gate`.
    pub baseline: Option<String>,
    /// An older baseline that must hold as well.
    pub anchor: Option<String>,
}

/// Reads `[gate]`; the defaults where there is none.
pub(super) fn read(keys: &CheckedTable<'_>) -> Result<GateSetting> {
    Ok(GateSetting {
        margins: keys.setting("margins").map_or(Ok(Vec::new()), margins)?,
        replaces_margins: keys.flag("only"),
        target: keys.text("target").map(str::to_owned),
        hard_break: keys.flag("hard_break"),
        coverage: keys.number("coverage").unwrap_or(0.98),
        fail_on_inconclusive: keys.setting("fail_on").is_some(),
        baseline: keys.text("baseline").map(str::to_owned),
        anchor: keys.text("anchor").map(str::to_owned),
    })
}

/// Reads the `[gate]` of a scenario file, and nothing else of it.
pub fn read_gate(table: &SettingTable) -> Result<GateSetting> {
    read(&CheckedTable::unchecked(table, "", (&super::KEYS, "scenario")).table("gate")?)
}

fn margins(setting: &Setting) -> Result<Vec<(String, f64, Place)>> {
    let SettingValue::Table(table) = &setting.value else {
        return Err(SettingError::new(&setting.place, "`gate.margins` must be a table")
            .with_hint("as in `margins = { facts = 0.03 }`"));
    };
    let margins = table.entries().iter().map(|(metric, setting)| {
        let number = match &setting.value {
            SettingValue::Real(number) => Some(*number),
            // No margin is so large that it were not exact.
            SettingValue::Integer(number) => u32::try_from(*number).ok().map(f64::from),
            _ => None,
        };
        let margin =
            number.filter(|number| number.is_finite() && *number >= 0.0).ok_or_else(|| {
                let problem = format!("`gate.margins.{metric}` must be a number from 0");
                SettingError::new(&setting.place, problem)
            })?;
        Ok((metric.clone(), margin, setting.place.clone()))
    });
    margins.collect()
}
