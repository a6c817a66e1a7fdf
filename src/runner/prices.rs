//! The prices in force: the built-in files, and the one that a scenario names.

use crate::model::price::{CacheScheme, Prices};
use crate::record::PriceEntry;
use crate::runner::PlanError;
use crate::scenario::{CacheSetting, Scenario};
use crate::session::Session;
use crate::session::wire::Provider;

/// Reads the prices that a scenario asks for.
pub fn in_force(cache: &CacheSetting) -> Result<Prices, PlanError> {
    let prices = Prices::built_in()?;
    let Some((path, place)) = &cache.prices else {
        return Ok(prices);
    };
    let file = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|cause| PlanError::Prices {
        file: file.clone(),
        place: place.clone(),
        cause,
    })?;
    Ok(prices.with_file(&file, &text)?)
}

/// The model whose prices count for a session.
pub(super) fn model<'a>(cache: &'a CacheSetting, session: &'a Session) -> Option<&'a str> {
    cache.model.as_deref().or(session.model())
}

/// What is known of a model's prices, for the manifest.
pub(super) fn entry(prices: &Prices, model: &str) -> Option<PriceEntry> {
    let (list, price) = prices.of(model)?;
    Some(PriceEntry {
        model: model.to_owned(),
        provider: list.provider.clone(),
        date: list.date.clone(),
        document: price.document.as_ref().unwrap_or(&list.document).clone(),
        scheme: list.schemes.first().map(|scheme| scheme.name.clone()),
        per_token: price.per_token,
        latency: price.latency,
    })
}

/// All schemes for a session, the one that the comparison shows first: the scenario's own, else
/// that of its provider.
pub(super) fn schemes(scenario: &Scenario, prices: &Prices, session: &Session) -> Vec<CacheScheme> {
    let mut schemes = prices.schemes(model(&scenario.cache, session));
    let shown = match (&scenario.cache.scheme, scenario.provider) {
        (Some(own), _) => {
            schemes.retain(|scheme| scheme.name != own.name);
            schemes.push(own.clone());
            own.name.as_str()
        }
        (None, Provider::Anthropic) => "anthropic-5m",
        (None, Provider::OpenAi) => "auto-prefix",
    };
    schemes.sort_by_key(|scheme| scheme.name != shown);
    schemes
}

/// All that decides costs, whatever the files are called.
pub(super) fn exact(cache: &CacheSetting, prices: &Prices) -> String {
    let lists = prices.lists().iter();
    let lists: Vec<_> = lists
        .map(|list| {
            (
                &list.date,
                &list.fast,
                &list.schemes,
                &list.limits,
                &list.models,
            )
        })
        .collect();
    format!(
        "{:?} {:?} {} {lists:?}",
        cache.model, cache.scheme, cache.pacing_seconds
    )
}
