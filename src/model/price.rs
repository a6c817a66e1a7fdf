//! Prices of tokens: dated price files, one per provider, with the rules of its prompt cache.
//!
//! A price that no document names is unknown and prints as such; it is never 0 and never guessed.
//! Where no price is known, a [`CacheScheme`] still says what each class of tokens costs relative to
//! uncached input, which is enough to compare strategies.

use std::sync::{Arc, LazyLock};

use regex::Regex;
use serde::Serialize;

pub use crate::record::words::{
    CallPrice, CallPrices, DatedModel, FAST, Latency, LongPrompts, PerToken, Placement, Rates,
    RelativePrice,
};
use crate::settings::{Reader, SettingError, SettingTable, SettingValue};
use crate::units::{Factor, Tokens, Usage, Usd, whole};

mod latency;
mod limit;
mod placement;
mod scheme;

pub use limit::{LimitedProperty, RequestLimit, RequestSize};
pub use placement::{Client, Senders};
pub use scheme::{CacheScheme, Reuse};

/// The files that come with Proctor.
const BUILT_IN: [(&str, &str); 3] = [
    ("anthropic.toml", include_str!("price/anthropic.toml")),
    ("openai.toml", include_str!("price/openai.toml")),
    ("gemini.toml", include_str!("price/gemini.toml")),
];

/// The value of `format` in a price file.
const FORMAT: &str = "proctor-prices";

/// All prices that are in force.
#[derive(Debug, Clone, PartialEq)]
pub struct Prices {
    /// The files, those that go before others first.
    lists: Vec<PriceList>,
}

/// The window of models whose window no price file names.
const ASSUMED_WINDOW: Tokens = Tokens(200_000);

/// One price file.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct PriceList {
    /// Its name: `anthropic.toml` for one that comes with Proctor, else its path.
    #[serde(skip)]
    pub file: Arc<str>,
    /// Whose prices they are.
    #[serde(skip)]
    pub provider: String,
    /// When the documents were read.
    pub date: String,
    /// The address of the documents.
    #[serde(skip)]
    pub document: String,
    /// The small model that is meant by [`FAST`], where the file names one.
    pub fast: Option<String>,
    /// The price of a request in a batch, in thousandths of the same request's price, all classes
    /// alike; `None` where no document names one.
    #[serde(skip)]
    pub batch: Option<u32>,
    /// The rules of the provider's cache.
    pub schemes: Vec<CacheScheme>,
    /// Limits of its requests beside the window.
    pub limits: Vec<RequestLimit>,
    /// The models.
    pub models: Vec<ModelPrice>,
}

/// The prices of one model, per token. An absent price is unknown.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelPrice {
    /// Its names, as recorded; a date at the end of a recorded name is ignored.
    pub names: Vec<String>,
    /// The document with the prices, if it is not the file's.
    pub document: Option<String>,
    /// When that document was read, if not on the file's day.
    pub date: Option<String>,
    /// The day from which the provider no longer serves it.
    pub retired: Option<String>,
    /// The prices in prompts of at most [`Self::holds_up_to`], and those of longer ones where they are known.
    pub per_token: PerToken,
    /// The longest prompt of these prices; `None` where they hold for every prompt.
    pub holds_up_to: Option<Tokens>,
    /// The shortest prefix that is cached.
    pub minimum_cacheable: Option<Tokens>,
    /// How long a prefix lives after its last use, in seconds, if not as the scheme says.
    pub ttl_seconds: Option<u64>,
    /// The context window, the smallest where there are several.
    pub window: Option<Tokens>,
    /// All context windows that the provider offers, ascending; none where no document names one.
    pub windows: Vec<Tokens>,
    /// The longest response.
    pub max_output: Option<Tokens>,
    /// How long calls take.
    pub latency: Option<Latency>,
}

impl PerToken {
    /// The cost of a call; `None` where a class of tokens that occurs has no known price.
    pub fn cost_of_call(&self, usage: &Usage) -> Option<Usd> {
        self.cost_of_calls(usage, 1)
    }

    /// The cost of so many calls, as if all prompts were as long as their mean.
    pub fn cost_of_calls(&self, usage: &Usage, calls: u64) -> Option<Usd> {
        let usage = LongPrompts::at_usual_price(self.long_prompts, *usage, calls);
        self.cost(&usage)
    }

    /// The cost of a part of a call: whether its prompt is a long one, all of its tokens decide.
    pub fn cost_of_part(&self, whole: &Usage, part: Usage) -> Option<Usd> {
        let rule = self.long_prompts.filter(|rule| whole.prompt() > rule.over);
        self.cost(&rule.map_or(part, |rule| rule.of_long(part)))
    }

    /// The cost of tokens at the usual price.
    pub fn cost(&self, usage: &Usage) -> Option<Usd> {
        self.classes(usage).map(|(_, tokens, price)| Some(price?.times(tokens))).sum()
    }

    /// The classes of these tokens that have no known price, in the words of a price file.
    pub(crate) fn unknown(&self, usage: &Usage) -> impl Iterator<Item = &'static str> {
        self.classes(usage).filter(|(.., price)| price.is_none()).map(|(name, ..)| name)
    }

    /// The classes that occur, with their tokens and prices.
    fn classes(&self, usage: &Usage) -> impl Iterator<Item = (&'static str, Tokens, Option<Usd>)> {
        let classes = [
            ("input", usage.input_uncached, self.input),
            ("cache_write_5m", usage.cache_write_5m, self.cache_write_5m),
            ("cache_write_1h", usage.cache_write_1h, self.cache_write_1h),
            ("cache_read", usage.cache_read, self.cache_read),
            ("output", usage.output, self.output),
        ];
        classes.into_iter().filter(|(_, tokens, _)| *tokens > Tokens::ZERO)
    }

    /// The prices under a scheme of one's own, which says what a read and a write cost relative to input.
    #[must_use]
    pub fn under(self, scheme: &CacheScheme) -> Self {
        let shares = [scheme.rates.write.unwrap_or(1_000), scheme.rates.read];
        let [write, read] = shares.map(|thousandths| {
            self.input.map(|input| Usd(input.0 * u64::from(thousandths) / 1_000))
        });
        Self { cache_write_5m: write, cache_write_1h: write, cache_read: read, ..self }
    }

    /// All prices times `part / whole`.
    #[must_use]
    pub fn times(self, part: Usd, whole: Usd) -> Self {
        self.each(|price| {
            let whole = u128::from(whole.0);
            let product = u128::from(price?.0) * u128::from(part.0);
            let quotient = (product + whole / 2).checked_div(whole)?;
            u64::try_from(quotient).ok().map(Usd)
        })
    }

    /// The price of a call at other prices, relative to these; `None` where one is unknown. A write without a price of
    /// its own costs as input.
    pub fn of_call_at(&self, other: &Self) -> Option<CallPrice> {
        Some(CallPrice {
            input: ratio(self.input, other.input)?,
            written: ratio(self.cache_write_5m, other.cache_write_5m.or(other.input))?,
            read: ratio(self.cache_read, other.cache_read)?,
            output: ratio(self.output, other.output)?,
            long_prompts: other.long_prompts,
        })
    }

    /// Another price in the place of each.
    fn each(self, other: impl Fn(Option<Usd>) -> Option<Usd>) -> Self {
        Self {
            input: other(self.input),
            cache_write_5m: other(self.cache_write_5m),
            cache_write_1h: other(self.cache_write_1h),
            cache_read: other(self.cache_read),
            output: other(self.output),
            long_prompts: self.long_prompts,
        }
    }

    /// A price in thousandths of the input's.
    fn of_input(&self, price: Option<Usd>) -> Option<u32> {
        let (price, input) = (u128::from(price?.0), u128::from(self.input?.0));
        let thousandths = (price * 1_000 + input / 2).checked_div(input)?;
        u32::try_from(thousandths).ok()
    }

    /// The rates of a scheme for a model of these prices; what they do not tell stays as it is.
    fn rates(&self, scheme: &CacheScheme) -> Rates {
        let lives_long = scheme.ttl_seconds.is_some_and(|seconds| seconds > 300);
        let write = if lives_long { self.cache_write_1h } else { self.cache_write_5m };
        let known = scheme.rates;
        Rates {
            write: self.of_input(write).or(known.write),
            read: self.of_input(self.cache_read).unwrap_or(known.read),
            output: self.of_input(self.output).unwrap_or(known.output),
            ..known
        }
    }
}

/// The other price of a token as a multiple of its own.
fn ratio(own: Option<Usd>, other: Option<Usd>) -> Option<Factor> {
    match own {
        Some(own) if other != Some(own) => Factor::of(Tokens(other?.0), Tokens(own.0)),
        Some(_) | None => Some(Factor::ONE),
    }
}

impl Prices {
    /// The prices that come with Proctor.
    pub fn built_in() -> Result<Self, SettingError> {
        let none = Self { lists: Vec::new() };
        BUILT_IN.iter().rev().try_fold(none, |prices, (file, text)| prices.with_file(file, text))
    }

    /// The same, with a file whose models and schemes go before those of the same name. Its small model must be
    /// served on the day of the file.
    pub fn with_file(mut self, file: &str, text: &str) -> Result<Self, SettingError> {
        let table = SettingTable::parse(file, text)?;
        let list = PriceList::read(file, &table)?;
        self.lists.insert(0, list.clone());
        let Some(fast) = &list.fast else {
            return Ok(self);
        };
        let of = &list.date;
        let retired = self.of(fast).map(|(_, price)| price.retired.clone());
        let why = match retired {
            None => "has no price".to_owned(),
            Some(Some(day)) if day <= *of => {
                format!("was retired on {day}, and these prices are of {of}")
            }
            Some(_) => return Ok(self),
        };
        let place = table.place_of(FAST);
        let error = SettingError::new(place, format!("the model of `fast`, `{fast}`, {why}"));
        let served = list.models.iter().filter(|price| list.serves(price));
        let priced = served.filter(|price| price.per_token.output.is_some());
        let cheapest = priced.min_by_key(|price| price.per_token.output);
        let hint = cheapest.and_then(|price| price.names.first()).map_or_else(
            || "name one that is served on that day".to_owned(),
            |name| format!("the cheapest one here is `{name}`"),
        );
        Err(error.with_hint(hint))
    }

    /// The same for the models of a run itself, with those that a server on this machine answers as. They cost
    /// nothing, unless a file says otherwise.
    #[must_use]
    pub fn with_own(mut self, models: impl IntoIterator<Item = String>) -> Self {
        for name in models {
            let known = self.of(&name).map(|(list, price)| (list.clone(), price.clone()));
            let (mut list, mut price) =
                known.unwrap_or_else(|| (PriceList::own(), ModelPrice::free()));
            price.names = vec![name];
            list.models = vec![price];
            self.lists.insert(0, list);
        }
        self
    }

    /// The files, those that go before others first.
    pub fn lists(&self) -> &[PriceList] {
        &self.lists
    }

    /// The price of a model, and its file. A date at the end of the model's name is ignored; so is a provider before it, as
    /// LiteLLM and OpenRouter write it, where no file names both.
    pub fn of(&self, model: &str) -> Option<(&PriceList, &ModelPrice)> {
        let bare = model.rsplit('/').next().unwrap_or(model);
        self.named(model).or_else(|| self.named(bare))
    }

    fn named(&self, model: &str) -> Option<(&PriceList, &ModelPrice)> {
        let undated = without_date(model);
        self.lists.iter().find_map(|list| {
            let found = list
                .models
                .iter()
                .find(|price| price.names.iter().any(|name| name == model || name == undated))?;
            Some((list, found))
        })
    }

    /// The price of the model that a strategy names, relative to this price of an input token of the agent's
    /// model; `None` where one of the prices is unknown.
    pub fn relative(&self, agent: &str, input: Usd, named: &str) -> Option<RelativePrice> {
        let (list, _) = self.of(agent)?;
        let named = match named {
            FAST => list.fast.as_deref()?,
            named => named,
        };
        let (_, other) = self.of(named)?;
        let prices = [other.per_token.input?, other.per_token.output?];
        let [of_input, of_output] = prices.map(|price| {
            let thousandths = price.0.saturating_mul(1_000).saturating_add(input.0 / 2);
            thousandths.checked_div(input.0)
        });
        Some(RelativePrice {
            input: of_input?,
            output: of_output?,
            long_prompts: other.per_token.long_prompts,
        })
    }

    /// The lowest and the highest price of a read among the served models of a provider, in thousandths of their
    /// input.
    pub fn read_shares(&self, provider: &str) -> Option<[u32; 2]> {
        let lists = self.lists.iter().filter(|list| list.provider == provider);
        let served = lists.flat_map(|list| list.models.iter().filter(|price| list.serves(price)));
        let prices = served.map(|price| &price.per_token);
        prices.filter_map(|prices| prices.of_input(prices.cache_read)).fold(None, |ends, share| {
            let [least, most] = ends.unwrap_or([share; 2]);
            Some([least.min(share), most.max(share)])
        })
    }

    /// The limits of a model's requests beside its window: those of its provider, else those of the
    /// provider named. A window that is not known is taken to be `ASSUMED_WINDOW`.
    pub fn limits(&self, provider: &str, model: Option<&str>) -> Vec<RequestLimit> {
        let priced = model.and_then(|model| self.of(model));
        let provider = priced.map_or(provider, |(list, _)| &list.provider);
        let window = priced.and_then(|(_, price)| price.window).unwrap_or(ASSUMED_WINDOW);
        let mut lists = self.lists.iter();
        let own = lists.find(|list| list.provider == provider && !list.limits.is_empty());
        let limits = own.into_iter().flat_map(|list| &list.limits);
        limits.filter(|limit| limit.holds_for(window)).cloned().collect()
    }

    /// The schemes of all files, each name once, `none` first. Of one name in several files, that of a
    /// file of your own counts, then that of the model's provider, or of the provider named where the
    /// model is not known; the schemes of a known model's provider, and all where its file has none, have the rates
    /// of that model and the shortest prefix that is cached for it.
    pub fn schemes(&self, provider: &str, model: Option<&str>) -> Vec<CacheScheme> {
        let priced = model.and_then(|model| self.of(model));
        let provider = priced.map_or(provider, |(list, _)| &list.provider);
        let given = self.lists.len().saturating_sub(BUILT_IN.len());
        let mut lists: Vec<&PriceList> = self.lists.iter().collect();
        lists[given..].sort_by_key(|list| list.provider != provider);
        let found =
            lists.iter().flat_map(|list| list.schemes.iter().map(move |scheme| (list, scheme)));
        let mut none = CacheScheme::none();
        if let Some((_, price)) = priced {
            none.rates.output = price.per_token.rates(&none).output;
        }
        let mut schemes = vec![none];
        for (list, scheme) in found {
            if schemes.iter().any(|known| known.name == scheme.name) {
                continue;
            }
            let mut adapted = scheme.clone();
            if let Some((of, price)) = priced
                && (of.provider == list.provider || of.schemes.is_empty())
            {
                adapted.minimum = price.minimum_cacheable.unwrap_or(adapted.minimum);
                adapted.ttl_seconds = price.ttl_seconds.or(adapted.ttl_seconds);
                adapted.rates = price.per_token.rates(&adapted);
            }
            schemes.push(adapted);
        }
        let long_prompts = priced.and_then(|(_, price)| price.per_token.long_prompts);
        for scheme in &mut schemes {
            scheme.rates.long_prompts = long_prompts;
        }
        let mentioned = self.lists.iter().flat_map(|list| &list.schemes);
        let mentioned: Vec<&str> = mentioned.map(|scheme| scheme.name.as_str()).collect();
        schemes.sort_by_key(|scheme| mentioned.iter().position(|name| *name == scheme.name));
        schemes
    }
}

/// `claude-opus-4-5-20251101` and `gpt-5-codex-2025-09-15` without their dates.
fn without_date(model: &str) -> &str {
    static DATE: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new("-(?:[0-9]{8}|[0-9]{4}-[0-9]{2}-[0-9]{2})$").ok());
    let date = DATE.as_ref().and_then(|date| date.find(model));
    date.map_or(model, |date| &model[..date.start()])
}

impl ModelPrice {
    fn free() -> Self {
        Self { per_token: PerToken::default().each(|_| Some(Usd::default())), ..Self::default() }
    }
}

impl PriceList {
    /// The list for servers on this machine: each finds the longest beginning of a prompt again.
    fn own() -> Self {
        Self {
            file: "this machine".into(),
            provider: "this machine".to_owned(),
            schemes: vec![CacheScheme {
                name: "longest-prefix".to_owned(),
                reuse: Reuse::LongestPrefix,
                ..CacheScheme::none()
            }],
            ..Self::default()
        }
    }

    /// Whether the provider serves a model of this file on the file's day.
    pub fn serves(&self, price: &ModelPrice) -> bool {
        price.retired.as_ref().is_none_or(|day| *day > self.date)
    }

    /// The day on which the prices of a model of this file were read.
    pub fn day_of<'a>(&'a self, price: &'a ModelPrice) -> &'a str {
        price.date.as_ref().unwrap_or(&self.date)
    }

    /// Reads a price file; `file` names it in errors and reports.
    fn read(file: &str, table: &SettingTable) -> Result<Self, SettingError> {
        let mut reader = Reader::new(table, "");
        let format = reader.text("format")?;
        let version = reader.whole("version", 0, u64::MAX)?;
        if format != Some(FORMAT) || version != Some(1) {
            let problem = "this is no price file that this version of Proctor reads";
            return Err(SettingError::new(table.place(), problem)
                .with_hint(format!("it begins with `format = \"{FORMAT}\"` and `version = 1`")));
        }
        let provider = reader.required("provider")?;
        let date = day(&mut reader, "date")?.ok_or_else(|| reader.must_be_set("date"))?;
        let document = reader.required("document")?;
        let fast = reader.text("fast")?.map(str::to_owned);
        let batch = scheme::thousandths(&mut reader, "batch", 1)?;
        let mut schemes: Vec<CacheScheme> = Vec::new();
        for table in reader.tables("schemes")? {
            let scheme = CacheScheme::read(Reader::new(table, "schemes"))?;
            if schemes.iter().any(|known| known.name == scheme.name) {
                let problem = format!("scheme `{}` is there twice", scheme.name);
                return Err(SettingError::new(table.place(), problem));
            }
            schemes.push(scheme);
        }
        let mut limits = Vec::new();
        for table in reader.tables("limits")? {
            limits.push(RequestLimit::read(Reader::new(table, "limits"))?);
        }
        let mut models: Vec<ModelPrice> = Vec::new();
        for table in reader.tables("models")? {
            let model = read_model(table)?;
            let mut known = models.iter().flat_map(|known| &known.names);
            if let Some(name) = known.find(|name| model.names.contains(name)) {
                let problem = format!("model `{name}` is there twice");
                return Err(SettingError::new(table.place(), problem));
            }
            models.push(model);
        }
        reader.finish()?;
        Ok(Self {
            file: file.into(),
            provider,
            date,
            document,
            fast,
            batch,
            schemes,
            limits,
            models,
        })
    }
}

/// A day, such as that on which a document was read.
fn day(reader: &mut Reader<'_>, key: &str) -> Result<Option<String>, SettingError> {
    let Some(date) = reader.text(key)? else {
        return Ok(None);
    };
    if date.parse::<jiff::civil::Date>().map_or(true, |day| day.to_string() != date) {
        let problem =
            format!("`{}` must be a day such as `2026-11-21`, not `{date}`", reader.path_of(key));
        return Err(SettingError::new(reader.place_of(key), problem));
    }
    Ok(Some(date.to_owned()))
}

fn read_model(table: &SettingTable) -> Result<ModelPrice, SettingError> {
    let mut reader = Reader::new(table, "models");
    let names = reader.texts("names")?.unwrap_or_default();
    if names.is_empty() {
        let error = SettingError::new(table.place(), "`models.names` must be set");
        return Err(error.with_hint("as in `names = [\"gpt-5-codex\"]`"));
    }
    let document = reader.text("document")?.map(str::to_owned);
    let date = day(&mut reader, "date")?;
    let retired = day(&mut reader, "retired")?;
    let offered = windows(&mut reader)?;
    let holds_up_to = tokens(&mut reader, "prompts_up_to")?;
    let rule = long_prompts(&mut reader, holds_up_to)?;
    let write = per_token(&mut reader, "cache_write")?;
    let model = ModelPrice {
        names: names.into_iter().map(str::to_owned).collect(),
        document,
        date,
        retired,
        per_token: PerToken {
            input: per_token(&mut reader, "input")?,
            cache_write_5m: per_token(&mut reader, "cache_write_5m")?.or(write),
            cache_write_1h: per_token(&mut reader, "cache_write_1h")?.or(write),
            cache_read: per_token(&mut reader, "cache_read")?,
            output: per_token(&mut reader, "output")?,
            long_prompts: rule,
        },
        holds_up_to,
        minimum_cacheable: tokens(&mut reader, "minimum_cacheable_tokens")?,
        ttl_seconds: reader.whole("cache_ttl_seconds", 1, u64::MAX)?,
        window: offered.first().copied(),
        windows: offered,
        max_output: tokens(&mut reader, "max_output")?,
        latency: match reader.table("latency")? {
            Some(reader) => Some(Latency::read(reader)?),
            None => None,
        },
    };
    if model.per_token.input.is_some() && model.per_token.cache_read > model.per_token.input {
        let problem = "`models.cache_read` is dearer than `models.input`";
        let error = SettingError::new(reader.place_of("cache_read"), problem);
        let hint = "both are dollars per million tokens, and those of `input` are not cached";
        return Err(error.with_hint(hint));
    }
    reader.finish()?;
    Ok(model)
}

/// `longer_input = 2.0` and `longer_output = 1.5`: the price of requests with a longer prompt, as a multiple.
fn long_prompts(
    reader: &mut Reader<'_>,
    holds_up_to: Option<Tokens>,
) -> Result<Option<LongPrompts>, SettingError> {
    let input = scheme::thousandths(reader, "longer_input", 100)?;
    let output = scheme::thousandths(reader, "longer_output", 100)?;
    match (holds_up_to, input, output) {
        (_, None, None) => Ok(None),
        (Some(over), Some(input), Some(output)) if input.min(output) >= 1_000 => {
            Ok(Some(LongPrompts { over, input, output }))
        }
        _ => {
            let problem = "`models.longer_input` and `models.longer_output` must be at least 1 and stand beside \
                           `models.prompts_up_to`";
            Err(SettingError::new(reader.place(), problem))
        }
    }
}

/// Dollars per million tokens, as documents name them, in nano-dollars per token.
fn per_token(reader: &mut Reader<'_>, key: &str) -> Result<Option<Usd>, SettingError> {
    let Some(dollars) = reader.amount(key)? else {
        return Ok(None);
    };
    let nano = (dollars * 1_000.0).round();
    if (dollars * 1_000.0 - nano).abs() > 1e-6 {
        let problem = format!(
            "`{}` must be a multiple of a thousandth of a dollar per million tokens",
            reader.path_of(key)
        );
        return Err(SettingError::new(reader.place_of(key), problem));
    }
    Ok(Some(Usd(whole(nano))))
}

fn tokens(reader: &mut Reader<'_>, key: &str) -> Result<Option<Tokens>, SettingError> {
    Ok(reader.whole(key, 1, u64::MAX)?.map(Tokens))
}

/// `window = 200_000`, or `windows = [200_000, 1_000_000]` where the provider offers several.
fn windows(reader: &mut Reader<'_>) -> Result<Vec<Tokens>, SettingError> {
    let one = tokens(reader, "window")?;
    let Some(setting) = reader.setting("windows") else {
        return Ok(one.into_iter().collect());
    };
    let items = setting.as_list().unwrap_or_default().iter();
    let numbers = items.map(|item| match item.value {
        SettingValue::Integer(tokens) => u64::try_from(tokens).ok().map(Tokens),
        _ => None,
    });
    let ascending = numbers.collect::<Option<Vec<Tokens>>>().filter(|windows| {
        let from_one = windows.first().is_some_and(|first| *first > Tokens::ZERO);
        one.is_none() && from_one && windows.is_sorted_by(|one, next| one < next)
    });
    ascending.ok_or_else(|| {
        let key = reader.path_of("windows");
        let wanted = "a list of ascending numbers of tokens, without `window` beside it";
        SettingError::new(&setting.place, format!("`{key}` must be {wanted}"))
    })
}

#[cfg(test)]
mod tests;
