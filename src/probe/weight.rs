//! How much a fact weighs in the score of its session: `weights.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::{Probe, ProbeExt as _};
use crate::record::words::HIGH_WEIGHT;
use crate::session::ground_truth::Importance;

/// The table of weights, which is a part of a run's fingerprint.
pub(crate) const TABLE: &str = include_str!("weights.toml");

/// The weight of a kind that the table does not name.
const OTHER: u8 = 1;

static WEIGHTS: LazyLock<BTreeMap<String, u8>> =
    LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());

/// The weight of what a probe asks about.
pub fn of(probe: &Probe) -> u8 {
    match probe.importance {
        Importance::High => HIGH_WEIGHT,
        Importance::Normal => (WEIGHTS.get(probe.kind().name()).copied()).unwrap_or(OTHER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::ProbeKind;

    #[test]
    fn the_table_names_kinds() {
        let kinds = ProbeKind::ALL.map(ProbeKind::name);
        assert!(!WEIGHTS.is_empty());
        for (kind, weight) in &*WEIGHTS {
            assert!(kinds.contains(&kind.as_str()), "{kind}");
            assert!(*weight <= HIGH_WEIGHT, "{kind}");
        }
    }
}
