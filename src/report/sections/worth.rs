//! How near each strategy is to the product that it is called after, and what of that is missing.

use super::prelude::*;

pub(super) fn section(material: &Material<'_>) -> Section {
    let rows = material.manifest.strategies.iter().filter_map(|entry| {
        let worth = entry.worth.as_ref()?;
        let missing = worth.missing.as_deref().unwrap_or("nothing that is known");
        let texts = [worth.fidelity.name(), &worth.product, missing];
        let cells = texts.map(Cell::text).into();
        Some(super::row(&entry.name, Role::Strategy, cells))
    });
    Section::new("worth", rows)
}
