//! The prices in force: the built-in files, and the one that a scenario names.

use crate::model::price::{CacheScheme, Prices};
use crate::record::{CacheBasis, PriceEntry, SessionCache};
use crate::runner::PlanError;
use crate::scenario::{CacheSetting, Scenario};
use crate::session::Session;
use crate::session::wire::Provider;
use crate::units::{Tokens, Usage};

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

/// The scheme that a session was billed with: the scenario's own, else the one that its usage shows,
/// else that of its model's provider, else that of the scenario's.
pub(super) fn scheme(scenario: &Scenario, prices: &Prices, session: &Session) -> SessionCache {
    let cache = |scheme: &str, basis| SessionCache {
        scheme: scheme.to_owned(),
        basis,
    };
    if let Some(own) = &scenario.cache.scheme {
        return cache(&own.name, CacheBasis::Set);
    }
    let messages = session.messages().iter();
    let usages = messages.filter_map(|message| message.usage);
    let usage = usages.fold(Usage::default(), |sum, usage| sum + usage);
    if usage.cache_write_1h > usage.cache_write_5m {
        return cache("anthropic-1h", CacheBasis::Billed);
    }
    if usage.cache_write_5m > Tokens::ZERO {
        return cache("anthropic-5m", CacheBasis::Billed);
    }
    let model = model(&scenario.cache, session);
    let list = model
        .and_then(|model| prices.of(model))
        .map(|(list, _)| list);
    let scheme = list.and_then(|list| list.schemes.first());
    // Many formats count reads only. Nobody but OpenAI's kind of provider writes for nothing.
    let basis = if usage.cache_read > Tokens::ZERO {
        CacheBasis::Billed
    } else {
        CacheBasis::Assumed
    };
    match (scheme, basis, scenario.provider) {
        (Some(scheme), _, _) => cache(&scheme.name, basis),
        (None, CacheBasis::Billed, _) | (None, _, Provider::OpenAi) => cache("auto-prefix", basis),
        (None, _, Provider::Anthropic) => cache("anthropic-5m", basis),
    }
}

/// All schemes for a session, the one that it was billed with first.
pub(super) fn schemes(scenario: &Scenario, prices: &Prices, session: &Session) -> Vec<CacheScheme> {
    let mut schemes = prices.schemes(model(&scenario.cache, session));
    if let Some(own) = &scenario.cache.scheme {
        schemes.retain(|scheme| scheme.name != own.name);
        schemes.push(own.clone());
    }
    let billed = scheme(scenario, prices, session).scheme;
    schemes.sort_by_key(|scheme| scheme.name != billed);
    schemes
}

/// All that decides costs, whatever the files are called.
pub(super) fn exact(cache: &CacheSetting, prices: &Prices) -> String {
    let lists = prices.lists().iter();
    let lists: Vec<_> = lists
        .map(|list| (&list.date, &list.fast, &list.schemes, &list.models))
        .collect();
    format!(
        "{:?} {:?} {} {} {lists:?}",
        cache.model,
        cache.scheme,
        cache.breakpoints.name(),
        cache.pacing_seconds
    )
}
