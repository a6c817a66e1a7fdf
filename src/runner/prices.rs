//! The prices in force: the built-in files, and the one that a scenario names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::bill::ABSURD;
use crate::model::price::{CacheScheme, CallPrices, DatedModel, PerToken, Prices};
use crate::record::{CacheBasis, PriceEntry, SessionCache};
use crate::runner::{Plan, Result};
use crate::scenario::{CacheSetting, ModelsSetting, Scenario};
use crate::session::wire::RuleSet;
use crate::session::{InnerRequest, Session};
use crate::settings::{SettingError, with_suggestion};
use crate::units::{Tokens, Usage, Usd, whole};

/// Reads the prices that a scenario asks for. A model that it names is one of them, unless it brings a cache
/// scheme of its own.
pub fn in_force(cache: &CacheSetting) -> Result<Prices> {
    let mut prices = Prices::built_in()?;
    if let Some((path, place)) = &cache.prices {
        let text = super::read_named("prices", path, place)?;
        prices = prices.with_file(&path.display().to_string(), &text)?;
    }
    if let Some(model) = &cache.model
        && cache.scheme.is_none()
        && prices.of(model).is_none()
    {
        let problem = format!("there are no prices of a model `{model}`");
        let error = SettingError::new(&cache.model_place, problem)
            .with_hint("`--set cache.prices=FILE` adds a price file of your own");
        let models = prices.lists().iter().flat_map(|list| &list.models);
        let names = models.filter_map(|model| model.names.first());
        return Err(with_suggestion(error, model, names.map(String::as_str)).into());
    }
    Ok(prices)
}

impl Plan {
    /// The price file of one's own, where it prices no session and no model of the run, with what both name.
    pub fn unused_prices(&self) -> Option<String> {
        let (path, _) = self.scenario.cache.prices.as_ref()?;
        let list = self.prices.lists().first()?;
        let sessions = self.manifest.sessions.iter();
        let recorded = sessions.flat_map(|session| {
            let price = session.price.iter();
            let priced = price.flat_map(|price| price.other_models.keys().chain([&price.model]));
            priced.chain(&session.unpriced)
        });
        let recorded: BTreeSet<&str> = recorded.map(String::as_str).collect();
        let asked = self.scenario.models.live_names();
        let mut found = recorded.iter().chain(&asked).filter_map(|model| self.prices.of(model));
        if !list.schemes.is_empty() || found.any(|(found, _)| found.file == list.file) {
            return None;
        }
        let named = list.models.iter().flat_map(|model| &model.names).map(String::as_str);
        let [named, recorded] = [named.collect(), recorded].map(|names: BTreeSet<&str>| {
            let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
            if quoted.is_empty() { "no model".to_owned() } else { quoted.join(", ") }
        });
        let path = path.display();
        Some(format!("`{path}` prices no session: it has {named}, and they have {recorded}"))
    }
}

/// The prices at which the models of a run itself are asked.
pub fn asked(models: &ModelsSetting, prices: &Prices) -> Prices {
    let own = models.homes().map(|(live, _)| live.dialect.model.clone());
    prices.clone().with_own(own)
}

/// The model whose prices count for a session.
pub(super) fn model_of<'a>(cache: &'a CacheSetting, session: &'a Session) -> Option<&'a str> {
    cache.model.as_deref().or(session.model())
}

/// The known prices of a session, for the manifest. One in whose calls the provider made requests of its own has those
/// of its model, times what the calls and these requests were billed over the calls alone: they read the same
/// conversation.
pub(super) fn of_session(
    cache: &CacheSetting,
    prices: &Prices,
    session: &Session,
) -> Option<PriceEntry> {
    let model = model_of(cache, session)?;
    let mut found = entry(prices, model)?;
    found.per_token = per_token(cache, prices, model)?;
    if cache.model.is_some() {
        return Some(found);
    }
    let own = found.per_token.of_call_at(&found.per_token);
    let (mut billed, mut within) = (Usd::default(), Usd::default());
    for call in session.calls() {
        let details = &session.message(*call).details;
        let called = details.model.as_deref().unwrap_or(model);
        let prices_of_call = per_token(cache, prices, called);
        match prices_of_call.and_then(|other| found.per_token.of_call_at(&other)) {
            None => *found.unpriced_calls.entry(called.to_owned()).or_default() += 1,
            price if price != own => {
                *found.other_models.entry(called.to_owned()).or_default() += 1;
            }
            Some(_) => {}
        }
        let usage = details.usage.as_ref();
        billed += usage.and_then(|usage| prices_of_call?.cost_of_call(usage)).unwrap_or_default();
        for request in &details.inner_requests {
            if let Some(cost) = of_request(prices, called, request) {
                within += cost;
                found.inner_requests += 1;
            }
        }
    }
    if found.inner_requests > 0 {
        found.per_token = found.per_token.times(billed + within, billed);
    }
    Some(found)
}

/// The prices of the calls of a session that went from model to model, each at the price of its own.
pub(super) fn of_calls(cache: &CacheSetting, prices: &Prices, session: &Session) -> CallPrices {
    let mut found = CallPrices::new();
    let own = session.model().filter(|_| cache.model.is_none());
    let Some((model, own)) = own.and_then(|own| Some((own, per_token(cache, prices, own)?))) else {
        return found;
    };
    let mut last = own.of_call_at(&own);
    for (call, message) in session.calls().iter().enumerate() {
        let called = session.message(*message).details.model.as_deref().unwrap_or(model);
        let price = per_token(cache, prices, called).and_then(|other| own.of_call_at(&other));
        if price != last {
            found.insert(call, price);
        }
        last = price;
    }
    found
}

/// The prices of a model, under the scenario's own scheme if it has one.
fn per_token(cache: &CacheSetting, prices: &Prices, model: &str) -> Option<PerToken> {
    let known = prices.of(model)?.1.per_token;
    Some(cache.scheme.as_ref().map_or(known, |scheme| known.under(scheme)))
}

/// The bill of a request within a call, at the price of the model that answered; `None` where there is none, or the
/// bill is not believed.
pub(crate) fn of_request(prices: &Prices, called: &str, request: &InnerRequest) -> Option<Usd> {
    let (_, price) = prices.of(request.model.as_deref().unwrap_or(called))?;
    let usage = Some(request.usage).filter(|usage| usage.total() <= ABSURD)?;
    price.per_token.cost_of_call(&usage)
}

/// The known prices of a model.
fn entry(prices: &Prices, model: &str) -> Option<PriceEntry> {
    let (list, price) = prices.of(model)?;
    let fast = list.fast.as_ref().and_then(|model| {
        let (list, price) = prices.of(model)?;
        let (model, date) = (model.clone(), list.day_of(price).to_owned());
        Some(DatedModel { model, date })
    });
    Some(PriceEntry {
        model: model.to_owned(),
        provider: list.provider.clone(),
        date: list.day_of(price).to_owned(),
        document: price.document.as_ref().unwrap_or(&list.document).clone(),
        scheme: list.schemes.first().map(|scheme| scheme.name.clone()),
        other_models: BTreeMap::new(),
        unpriced_calls: BTreeMap::new(),
        inner_requests: 0,
        per_token: price.per_token,
        prompts_up_to: price.holds_up_to,
        latency: price.latency,
        fast,
        read_shares: prices.read_shares(&list.provider),
    })
}

/// The scheme that a session was billed with: the scenario's own, else the one that its usage shows,
/// else that of its model's provider, else that of the scenario's.
pub(super) fn scheme(scenario: &Scenario, prices: &Prices, session: &Session) -> SessionCache {
    let usage: Usage = session.messages().iter().filter_map(|message| message.details.usage).sum();
    cache_of(scenario, prices, session, &usage)
}

fn cache_of(scenario: &Scenario, prices: &Prices, session: &Session, bill: &Usage) -> SessionCache {
    let cache = |scheme: &str, basis| SessionCache { scheme: scheme.to_owned(), basis };
    if let Some(own) = &scenario.cache.scheme {
        return cache(&own.name, CacheBasis::Set);
    }
    let model = model_of(&scenario.cache, session);
    let list = model.and_then(|model| prices.of(model)).map(|(list, _)| list);
    let scheme = list.and_then(|list| list.schemes.first());
    // OpenAI has one scheme, whether a model bills writes or not.
    let may_be_anthropic = scheme.is_none_or(|scheme| scheme.rates.write.is_some());
    if may_be_anthropic && bill.cache_write_1h > bill.cache_write_5m {
        return cache("anthropic-1h", CacheBasis::Billed);
    }
    if may_be_anthropic && bill.cache_write_5m > Tokens::ZERO {
        return cache("anthropic-5m", CacheBasis::Billed);
    }
    // Many formats count reads only. OpenAI's older models write for nothing.
    let basis = if bill.cache_read + bill.cache_write_5m > Tokens::ZERO {
        CacheBasis::Billed
    } else {
        CacheBasis::Assumed
    };
    match (scheme, basis, scenario.provider) {
        (Some(scheme), _, _) => cache(&scheme.name, basis),
        (None, CacheBasis::Assumed, RuleSet::Anthropic) => cache("anthropic-5m", basis),
        (None, _, _) => cache("auto-prefix", basis),
    }
}

/// The scheme of a conversation with this bill, as a session has it and with its rates. A write costs what those
/// for five minutes and those for an hour cost on average.
pub(super) fn of_bill(
    scenario: &Scenario,
    prices: &Prices,
    session: &Session,
    usage: &Usage,
) -> (SessionCache, CacheScheme) {
    let cache = cache_of(scenario, prices, session, usage);
    let schemes = named(scenario, prices, session);
    let of = |name: &str| schemes.iter().find(|scheme| scheme.name == name);
    let mut own = of(&cache.scheme).cloned().unwrap_or_else(CacheScheme::none);
    let [short, long] = ["anthropic-5m", "anthropic-1h"].map(|name| of(name)?.rates.write);
    let written = usage.cache_write_5m + usage.cache_write_1h;
    if own.rates.write.is_some()
        && let (Some(short), Some(long)) = (short.map(f64::from), long.map(f64::from))
        && let Some(share) = usage.cache_write_1h.share_of(written)
    {
        own.rates.write = u32::try_from(whole(short + share * (long - short))).ok();
    }
    (cache, own)
}

/// All schemes for a session, the one that it was billed with first.
pub(super) fn schemes(scenario: &Scenario, prices: &Prices, session: &Session) -> Vec<CacheScheme> {
    let mut schemes = named(scenario, prices, session);
    let billed = scheme(scenario, prices, session).scheme;
    schemes.sort_by_key(|scheme| scheme.name != billed);
    schemes
}

fn named(scenario: &Scenario, prices: &Prices, session: &Session) -> Vec<CacheScheme> {
    let provider = scenario.provider.provider();
    let mut schemes = prices.schemes(provider, model_of(&scenario.cache, session));
    if let Some(mut own) = scenario.cache.scheme.clone() {
        // Its output and long prompts have the prices of the model.
        let none = CacheScheme::none().name;
        if let Some(any) = schemes.iter().find(|scheme| scheme.name == none) {
            own.rates.output = any.rates.output;
            own.rates.long_prompts = any.rates.long_prompts;
        }
        schemes.retain(|scheme| scheme.name != own.name);
        schemes.push(own);
    }
    schemes
}

/// All that decides costs, apart from the names of the files.
pub(super) fn values(cache: &CacheSetting, prices: &Prices) -> Value {
    json!([cache, prices.lists()])
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use super::*;
    use crate::record::CacheBasis::{Assumed, Billed, Set};
    use crate::record::CacheRecord;
    use crate::session::{Message, Role, SessionParts};
    use crate::settings::SettingTable;

    /// The scheme of a session of one call, and how it is known.
    fn check(own: &str, model: Option<&str>, usage: Option<Usage>, expected: (&str, CacheBasis)) {
        let text = format!("{own}\n[[sessions]]\npath = 'a'\n[[strategies]]\npreset = 'none'\n");
        let table = SettingTable::parse("s.toml", &text).unwrap();
        let scenario = Scenario::read(&table, Path::new("")).unwrap();
        let mut answer = Message::text(Role::Assistant, "It is dry.");
        answer.details.usage = usage;
        let messages = [Message::text(Role::User, "Why?"), answer];
        let session = Session::new(SessionParts {
            id: "test".to_owned(),
            model: model.map(Into::into),
            messages: messages.into_iter().map(Arc::new).collect(),
            ..SessionParts::default()
        })
        .unwrap();
        let prices = Prices::built_in().unwrap();
        let found = scheme(&scenario, &prices, &session);
        assert_eq!((found.scheme.as_str(), found.basis), expected, "{own} {model:?} {usage:?}");
        let schemes = schemes(&scenario, &prices, &session);
        assert_eq!(schemes[0].name, expected.0);
    }

    #[test]
    fn a_session_has_the_scheme_that_it_was_billed_with() {
        let usage = |short, long, read| {
            Some(Usage {
                cache_write_5m: Tokens(short),
                cache_write_1h: Tokens(long),
                cache_read: Tokens(read),
                ..Usage::uncached(Tokens(9), Tokens(9))
            })
        };
        let (claude, codex) = (Some("claude-opus-4-6"), Some("gpt-5-codex"));
        let openai = "provider = 'openai'";
        let own = "[cache.scheme]\nname = 'ours'";
        check("", claude, usage(9, 10, 0), ("anthropic-1h", Billed));
        check("", claude, usage(10, 9, 0), ("anthropic-5m", Billed));
        check(openai, None, usage(1, 0, 99), ("anthropic-5m", Billed));
        check("", codex, usage(0, 0, 99), ("auto-prefix", Billed));
        // GPT-5.6 and later models bill writes, under the same scheme.
        let luna = Some("gpt-6-luna");
        check("", luna, usage(9, 0, 99), ("auto-prefix", Billed));
        check("", luna, usage(9, 0, 0), ("auto-prefix", Billed));
        check("", claude, usage(0, 0, 99), ("anthropic-5m", Billed));
        check("", None, usage(0, 0, 99), ("auto-prefix", Billed));
        check("", codex, usage(0, 0, 0), ("auto-prefix", Assumed));
        check("", claude, None, ("anthropic-5m", Assumed));
        check("", None, None, ("anthropic-5m", Assumed));
        check(openai, None, None, ("auto-prefix", Assumed));
        check(own, claude, usage(9, 10, 0), ("ours", Set));
        // No sum is too large.
        check("", claude, usage(u64::MAX, 1, u64::MAX), ("anthropic-5m", Billed));
    }

    #[test]
    fn each_call_of_a_session_has_the_price_of_its_own_model() {
        let usage = Usage {
            cache_write_5m: Tokens(2_000),
            cache_read: Tokens(30_000),
            ..Usage::uncached(Tokens(100), Tokens(400))
        };
        let models = ["claude-haiku-4-5", "claude-haiku-4-5", "claude-opus-4-6", "nobody-1"];
        let messages = models.into_iter().flat_map(|model| {
            let mut answer = Message::text(Role::Assistant, "It is dry.");
            answer.details.usage = Some(usage);
            answer.details.model = Some(model.into());
            [Message::text(Role::User, "Why?"), answer]
        });
        let session = Session::new(SessionParts {
            id: "test".to_owned(),
            model: Some(models[0].to_owned()),
            messages: messages.map(Arc::new).collect(),
            ..SessionParts::default()
        });
        let (session, prices) = (session.unwrap(), Prices::built_in().unwrap());
        let text = "[[sessions]]\npath = 'a'\n[[strategies]]\npreset = 'none'\n";
        let table = SettingTable::parse("s.toml", text).unwrap();
        let scenario = Scenario::read(&table, Path::new("")).unwrap();
        let found = of_session(&scenario.cache, &prices, &session).unwrap();
        assert_eq!(
            found.models(),
            "claude-haiku-4-5 (with calls: 1 of claude-opus-4-6, 1 of nobody-1 without a price)"
        );
        let cost = |model: &str| prices.of(model).unwrap().1.per_token.cost(&usage).unwrap().0;
        let calls = of_calls(&scenario.cache, &prices, &session);
        let record = CacheRecord { call_prices: calls, ..CacheRecord::default() };
        let billed = (0..4).map(|call| found.per_token.cost(&record.at_usual_price(call, usage)));
        let expected = [cost(models[0]), cost(models[0]), cost(models[2]), 0];
        assert_eq!(billed.collect::<Vec<_>>(), expected.map(|cost| Some(Usd(cost))));
        // An advisor is billed as its own model, another turn as the call's, and what nobody serves as nothing.
        let advised = [Some("claude-opus-4-6"), None, Some("nobody-1")].map(|model| InnerRequest {
            kind: "advisor_message".into(),
            model: model.map(Into::into),
            usage,
        });
        let mut parts = session.into_parts();
        let answer = parts.messages.last_mut().unwrap();
        Arc::make_mut(answer).details.inner_requests = advised[..1].to_vec();
        let answer = &mut parts.messages[1];
        Arc::make_mut(answer).details.inner_requests = advised[1..].to_vec();
        let session = Session::new(parts).unwrap();
        let found = of_session(&scenario.cache, &prices, &session).unwrap();
        let alone = 2 * cost(models[0]) + cost(models[2]);
        let within = cost(models[0]) + cost(models[2]);
        let mean = found.per_token.cost(&usage).unwrap().0;
        let expected = cost(models[0]) * (alone + within) / alone;
        assert!(mean.abs_diff(expected) * 200 < expected, "{mean} {expected}");
        assert!(found.models().ends_with("without a price, 2 within others)"));
    }
}
