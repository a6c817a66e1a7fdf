//! Retention by age, kind and place.

use super::prelude::*;
use crate::metric::retention::{
    AgedItem, COMPACTIONS, Retention, TOKENS, age_in_compactions, age_in_tokens, cliff, drift,
    half_life,
};
use crate::record::PlaceInPrompt;
use crate::record::words::ProbeKind;

/// The items of a strategy with their ages, cluster by cluster.
type Clusters<'a> = BTreeMap<&'a str, Vec<AgedItem>>;

fn by_cluster<'a>(material: &'a Material<'_>, strategy: &str) -> Clusters<'a> {
    let mut clusters = Clusters::new();
    for cell in material.summaries_of(strategy) {
        let own = clusters.entry(&cell.cluster).or_default();
        own.extend(&cell.retention.0);
    }
    clusters
}

/// The share that survives of the items that are meant; where there is none, nothing is to be measured.
fn rate(clusters: &Clusters<'_>, is_meant: &dyn Fn(&AgedItem) -> bool) -> Cell {
    let values = clusters
        .values()
        .map(|own| own.iter().filter(|item| is_meant(item)).map(|item| item.score).collect());
    let values: Vec<Vec<f64>> = values.collect();
    if values.iter().all(Vec::is_empty) {
        return Cell::NOT_APPLICABLE;
    }
    Cell::rate(&values)
}

/// By compactions survived, with half-life, cliff and drift.
pub(super) fn by_age(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let clusters = by_cluster(material, &strategy.name);
        let items = Retention(clusters.values().flatten().copied().collect());
        if strategy.arm != Arm::Strategy || items.0.is_empty() {
            return None;
        }
        let tokens = items.by_tokens();
        let rates = (0..COMPACTIONS.len())
            .map(|at| rate(&clusters, &|item| age_in_compactions(item.compactions) == at));
        let mut cells: Vec<Cell> = rates.collect();
        let words = [
            half_life(&tokens).map(|at| TOKENS[at].0.to_owned()),
            cliff(&tokens)
                .map(|(at, fall)| format!("{}: −{:.0} points", TOKENS[at].0, 100.0 * fall)),
            drift(&items.0).map(|slope| format!("{:+.1} points", 100.0 * slope).replace('-', "−")),
        ];
        cells.extend(words.map(|words| Cell::text(words.unwrap_or_else(|| "–".to_owned()))));
        Some(cells)
    });
    // An age that nothing reached takes up no room.
    Section::new("retention", rows).hide_unmeasured()
}

/// The whole grid: kind × age × place.
pub(super) fn grid(material: &Material<'_>) -> Section {
    let rows = material.rows(|strategy| {
        let mut rows = Vec::new();
        if strategy.arm != Arm::Strategy {
            return rows;
        }
        let clusters = by_cluster(material, &strategy.name);
        for kind in ProbeKind::ALL {
            for (at, (age, _)) in TOKENS.iter().enumerate() {
                let meant = |item: &AgedItem| {
                    item.kind == kind && item.tokens.map(age_in_tokens) == Some(at)
                };
                let all = clusters.values().flatten();
                let own: Vec<&AgedItem> = all.filter(|item| meant(item)).collect();
                if own.is_empty() {
                    continue;
                }
                // The places of the remaining items: of all items of that kind and age, the share
                // there.
                let places = PlaceInPrompt::ALL.map(|place| {
                    let there = own.iter().filter(|item| item.place == Some(place));
                    let sum = there.fold(0.0, |sum, item| sum + item.score);
                    Cell::share(Some(sum / own.len() as f64))
                });
                let mut cells = vec![Cell::text(kind.name()), Cell::text(*age)];
                cells.push(rate(&clusters, &meant));
                cells.extend(places);
                rows.push(cells);
            }
        }
        rows
    });
    Section::new("retention_grid", rows)
}
