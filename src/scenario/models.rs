//! `[models]`: who summarises, reads and judges, how fast they are asked, and what that may cost.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use super::Result;
use crate::model::api::{Dialect, THINKING};
use crate::model::cassette::ReplayMode;
use crate::model::price::Prices;
use crate::model::spending::Budget;
use crate::model::timing::ServerTiming;
use crate::probe::Asking;
use crate::probe::judge::Judging;
use crate::session::wire::Provider;
use crate::settings::{CheckedTable, Place, Setting, SettingError, SettingTable, SettingValue};
use crate::units::{Tokens, Usd};

/// Prompts that a server of one's own keeps in its memory, where nothing says how many: Ollama and
/// LM Studio begin with one.
const SLOTS: usize = 1;

/// Who is asked, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelsSetting {
    /// Writes summaries.
    pub summariser: ModelSetting,
    /// Answers probes, and is a model; without one no probe is asked, and survival is measured all the same.
    pub reader: Option<ModelSetting>,
    /// Judge answers; several vote.
    pub judges: Vec<ModelSetting>,
    /// Which answers are judged.
    pub judging: Judging,
    /// How often each probe is answered, in each repeat.
    pub answers: u32,
    /// How often each judge grades an answer.
    pub judgements: u32,
    /// Further questions to the reader.
    pub asking: Asking,
    /// Calibrations of judges: files, with the place that names each.
    pub calibrations: Vec<(PathBuf, Place)>,
    /// Where answers are kept, and what named it; without one, in the run's folder.
    pub cassette: Option<(PathBuf, Place)>,
    /// The use of recorded answers.
    pub replay: ReplayMode,
    /// How fast each provider is asked.
    pub pace: RequestPace,
    /// Limits on spending.
    pub budget: Budget,
}

/// A model, as a scenario names it.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a scenario names a handful")]
pub enum ModelSetting {
    /// Rules instead of a language model.
    Offline,
    /// Answers written in a file.
    Scripted {
        /// Its name in reports.
        name: String,
        /// The script, and what named it.
        script: (PathBuf, Place),
    },
    /// Recorded answers only.
    Cassette {
        /// The model whose answers they are.
        name: String,
        /// Whose API it was asked through.
        provider: Provider,
        /// The place that names it.
        place: Place,
    },
    /// A language model behind an API.
    Live(LiveSetting),
}

/// A language model behind an API.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSetting {
    /// How it is spoken to: all that decides what it answers.
    pub dialect: Dialect,
    /// The base URL; without one that of the environment, or of the provider.
    pub base_url: Option<String>,
    /// The name of the variable that holds the key.
    pub key: Option<String>,
    /// Certificates of a private authority, as a PEM file.
    pub authority: Option<PathBuf>,
    /// What is known of its server, where that is on this machine.
    pub home: Option<Home>,
    /// The place that names it.
    pub place: Place,
}

/// What is known of a server on this machine. What it says of itself decides nothing about answers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Home {
    /// Whether the scenario says how many slots it has.
    pub is_told: bool,
    /// How many prompts it keeps at once: a further one takes the place of one of them.
    pub slots: usize,
    /// Its context window as it says, prompt and answer together.
    pub window: Option<Tokens>,
    /// How long it takes, by timing requests.
    pub timing: Option<ServerTiming>,
    /// Tokens that it counts for each of the scenario's counter.
    pub counted: f64,
}

impl Home {
    /// Whether its window holds so many tokens of ours; one that is not known holds any.
    pub fn holds(&self, tokens: Tokens) -> bool {
        let window = self.window.map(|window| window.0 as f64);
        window.is_none_or(|window| tokens.0 as f64 * self.counted <= window)
    }
}

/// Whether an address is on this machine: such a server costs nothing, and serves nobody else.
pub(crate) fn is_at_home(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next(),
        None => authority.split(':').next(),
    }
    .unwrap_or_default();
    let address: Option<IpAddr> = host.parse().ok();
    host.eq_ignore_ascii_case("localhost") || address.is_some_and(|ip| ip.is_loopback())
}

/// How fast each provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct RequestPace {
    /// Requests under way at most.
    pub at_once: usize,
    /// How often a request is sent again.
    pub retries: u32,
    /// A provider that asks to be left alone for more seconds than this is given up.
    pub longest_wait_seconds: u64,
    /// Seconds until the first byte of an answer, at most.
    pub first_byte_seconds: u64,
    /// Seconds until the whole answer, at most.
    pub timeout_seconds: u64,
}

impl ModelsSetting {
    /// All models that are named.
    pub fn all(&self) -> impl Iterator<Item = &ModelSetting> {
        let summariser = std::iter::once(&self.summariser);
        summariser.chain(&self.reader).chain(&self.judges)
    }

    /// Whether a language model behind an API is named.
    pub fn has_live(&self) -> bool {
        !self.live_names().is_empty()
    }

    /// The models behind an API, each once.
    pub fn live_names(&self) -> Vec<&str> {
        let names = self.all().filter_map(|model| match model {
            ModelSetting::Live(live) => Some(&*live.dialect.model),
            _ => None,
        });
        let mut seen = BTreeSet::new();
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Whether a model is named whose answers are kept or recorded.
    pub fn needs_cassette(&self) -> bool {
        let mut all = self.all();
        self.has_live() || all.any(|model| matches!(model, ModelSetting::Cassette { .. }))
    }

    /// Sets the reader's window where the scenario says nothing and its server or `known` knows it, with
    /// room for what a model may think before it answers. That of a server on this machine is taken to be a fifth
    /// smaller: it may count more tokens than the scenario's counter, and what is measured of that would be another
    /// number each time.
    pub fn settle_window(&mut self, known: impl Fn(&str) -> Option<Tokens>) {
        let window = match &self.reader {
            Some(ModelSetting::Live(live)) => match live.home {
                Some(home) => home.window.map(|window| Tokens(window.0 / 5 * 4)),
                None => known(&live.dialect.model).map(|window| window - THINKING),
            },
            Some(ModelSetting::Cassette { name, .. }) => {
                known(name).map(|window| window - THINKING)
            }
            Some(ModelSetting::Offline | ModelSetting::Scripted { .. }) | None => None,
        };
        self.asking.window = self.asking.window.or(window);
    }

    /// The live models whose servers are on this machine.
    pub fn homes(&self) -> impl Iterator<Item = (&LiveSetting, Home)> {
        self.all().filter_map(|model| match model {
            ModelSetting::Live(live) => Some((live, live.home?)),
            _ => None,
        })
    }

    /// The same, to take in what they say.
    pub fn homes_mut(&mut self) -> impl Iterator<Item = &mut LiveSetting> {
        let named =
            std::iter::once(&mut self.summariser).chain(&mut self.reader).chain(&mut self.judges);
        named.filter_map(|model| match model {
            ModelSetting::Live(live) if live.home.is_some() => Some(live),
            _ => None,
        })
    }

    /// Whether anything but rules is named.
    pub fn has_any(&self) -> bool {
        self.all().any(|model| *model != ModelSetting::Offline)
    }

    /// All that decides what is answered: part of a run's fingerprint. How fast it is asked, where
    /// answers are kept and what they may cost decides nothing.
    pub fn values(&self) -> serde_json::Value {
        let models: Vec<serde_json::Value> = self.all().map(ModelSetting::values).collect();
        json!([models, self.reader.is_some(), self.judging, self.asking])
    }

    /// Only judges: what a table of `judge = …` says.
    pub fn of_judges(table: &SettingTable, place: &Place) -> Result<Self> {
        let keys = CheckedTable::new(table, "", (&super::KEYS, "models"))?;
        let models = read(&keys, Path::new(""))?;
        if models.judges.is_empty() {
            return Err(SettingError::new(place, "no judge is named"));
        }
        Ok(models)
    }
}

impl ModelSetting {
    /// Its name in reports.
    pub fn name(&self) -> &str {
        match self {
            Self::Offline => "offline",
            Self::Scripted { name, .. } | Self::Cassette { name, .. } => name,
            Self::Live(live) => &live.dialect.model,
        }
    }

    /// Tokens it may think before each answer.
    pub fn thinking(&self) -> Tokens {
        match self {
            Self::Live(live) => live.dialect.thinking,
            Self::Offline | Self::Scripted { .. } | Self::Cassette { .. } => Tokens::ZERO,
        }
    }

    fn values(&self) -> serde_json::Value {
        match self {
            Self::Offline => json!("offline"),
            Self::Scripted { name, .. } => json!({ "scripted": name }),
            // A run from recorded answers is the run that recorded them.
            Self::Cassette { name, provider, .. } => json!({ "provider": provider, "model": name }),
            Self::Live(live) => json!(live.dialect),
        }
    }
}

/// Reads `[models]`; `folder` is where relative paths start.
pub(super) fn read(keys: &CheckedTable<'_>, folder: &Path) -> Result<ModelsSetting> {
    let path_of = |name: &str| keys.reader().path_of(name);
    let reader = named(keys, "reader", folder)?;
    if reader == Some(ModelSetting::Offline) {
        let problem =
            format!("`{}` cannot be `offline`: rules answer no questions", path_of("reader"));
        let hint =
            "`none` asks nobody, and the facts kept are measured all the same; or name a model";
        return Err(SettingError::new(keys.place_of("reader"), problem).with_hint(hint));
    }
    let given = keys.given("judge").map(|setting| judges_of(&path_of("judge"), setting, folder));
    let judges = given.transpose()?.unwrap_or_default();
    let answers = keys.whole("answers").unwrap_or(1);
    let judgements = keys.whole("judgements").unwrap_or(1);
    let window = keys.whole("reader_window").map(Tokens);
    for (name, is_unmet, needs, model) in [
        (
            "answers",
            answers > 1 && reader.is_none(),
            "above 1 needs a reader that may answer otherwise the next time",
            "reader",
        ),
        ("judgements", judgements > 1 && judges.is_empty(), "above 1 needs a judge", "judge"),
        ("reader_window", window.is_some() && reader.is_none(), "needs a reader", "reader"),
    ] {
        if is_unmet {
            let error = SettingError::new(keys.place_of(name), format!("`models.{name}` {needs}"));
            return Err(error.with_hint(format!("name one in `models.{model}`")));
        }
    }
    let budget = keys.table("budget")?;
    let replay = keys.one_of("replay", ReplayMode::ALL, ReplayMode::name);
    if budget.number("usd").is_some_and(|usd| usd <= 0.0) {
        let problem = "`models.budget.usd` must be above 0";
        let hint = "`--offline` asks no model";
        return Err(SettingError::new(budget.place_of("usd"), problem).with_hint(hint));
    }
    Ok(ModelsSetting {
        summariser: named(keys, "summariser", folder)?.ok_or_else(|| {
            let problem = format!("`{}` cannot be `none`", path_of("summariser"));
            SettingError::new(keys.place_of("summariser"), problem)
                .with_hint("`offline` writes summaries by rule")
        })?,
        reader,
        judges,
        judging: match keys.text("judging") {
            Some("all") => Judging::All,
            _ => Judging::Needed,
        },
        answers,
        judgements,
        asking: Asking {
            qualifies: keys.flag("qualify"),
            summaries: keys.text("reader_scope") == Some("context+summary"),
            omits_tools: !keys.flag("reader_tools"),
            omits_escape: !keys.flag("reader_escape"),
            longest: keys.whole("reader_output").map(Tokens),
            window,
        },
        calibrations: keys.files("calibrations", folder),
        cassette: keys.file("cassette", folder),
        replay: replay.unwrap_or_default(),
        pace: keys.table("pace")?.read()?,
        budget: Budget {
            money: budget.number("usd").map(Usd::of_dollars),
            tokens: budget.whole("tokens").map(Tokens),
            minutes: budget.whole("minutes"),
            least_coverage: budget.number("least_coverage").unwrap_or_default(),
        },
    })
}

/// A model that only has recorded answers needs a file of them.
pub(super) fn check(models: &ModelsSetting) -> Result<()> {
    for model in models.all() {
        if let ModelSetting::Cassette { place, .. } = model
            && models.cassette.is_none()
        {
            let problem = "a model of kind `cassette` needs `models.cassette`, the file";
            return Err(SettingError::new(place, problem));
        }
    }
    Ok(())
}

fn judges_of(path: &str, setting: &Setting, folder: &Path) -> Result<Vec<ModelSetting>> {
    let items = setting.as_list().unwrap_or(std::slice::from_ref(setting));
    let mut judges: Vec<ModelSetting> = Vec::new();
    for item in items {
        let Some(judge) = one(path, item, folder)? else {
            continue;
        };
        let problem = if judge == ModelSetting::Offline {
            format!("`{path}` cannot be `offline`: rules grade without a judge")
        } else if judges.iter().any(|other| other.name() == judge.name()) {
            format!("judge `{}` is named twice", judge.name())
        } else {
            judges.push(judge);
            continue;
        };
        return Err(SettingError::new(&item.place, problem));
    }
    Ok(judges)
}

/// The model that a key names; `None` for nobody.
fn named(keys: &CheckedTable<'_>, key: &str, folder: &Path) -> Result<Option<ModelSetting>> {
    let setting = keys.given(key);
    setting.map_or(Ok(None), |setting| one(&keys.reader().path_of(key), setting, folder))
}

/// A word, or a table that says more.
fn one(path: &str, setting: &Setting, folder: &Path) -> Result<Option<ModelSetting>> {
    const HINT: &str = "`offline`, `none`, or a table as in `{ kind = \"openai\", model = \"…\" }`";
    match &setting.value {
        SettingValue::Text(word) if word == "offline" => Ok(Some(ModelSetting::Offline)),
        SettingValue::Text(word) if word == "none" => Ok(None),
        SettingValue::Table(table) => {
            table_of(&CheckedTable::new(table, path, (&super::KEYS, "model"))?, folder).map(Some)
        }
        value => {
            let problem = format!("`{path}` must be a model, not `{value}`");
            Err(SettingError::new(&setting.place, problem).with_hint(HINT))
        }
    }
}

fn table_of(keys: &CheckedTable<'_>, folder: &Path) -> Result<ModelSetting> {
    let Some(kind) = keys.text("kind") else {
        let hint = "`offline`, `openai`, `anthropic`, `scripted` or `cassette`";
        return Err(keys.reader().must_be_set("kind").with_hint(hint));
    };
    keys.reader().refuse_others(&keys.of_kind(kind))?;
    let name = keys.text("model").map(str::to_owned);
    if let Some(name) = name.as_ref().filter(|name| !is_model_id(name)) {
        let path = keys.reader().path_of("model");
        let problem = format!("`{path}` must be a model's id, not `{name}`");
        return Err(SettingError::new(keys.place(), problem));
    }
    let place = keys.place().clone();
    let id = name.clone().ok_or_else(|| keys.reader().must_be_set("model"));
    Ok(match kind {
        "offline" => ModelSetting::Offline,
        "scripted" => ModelSetting::Scripted {
            name: name.unwrap_or_else(|| "scripted".to_owned()),
            script: match keys.text("script") {
                Some(script) => (folder.join(script), place),
                None => return Err(keys.reader().must_be_set("script")),
            },
        },
        "cassette" => {
            ModelSetting::Cassette { name: id?, provider: provider_of(keys, "provider"), place }
        }
        _ => live(id?, keys, folder)?,
    })
}

/// Whether a text can be the id of a model, which becomes part of records and reports.
fn is_model_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 200
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-/:@+".contains(c))
}

/// The provider that a key names.
fn provider_of(keys: &CheckedTable<'_>, key: &str) -> Provider {
    keys.one_of(key, Provider::ALL, Provider::name).unwrap_or_default()
}

/// Whether a text can name an environment variable; the keys of most providers cannot.
pub fn is_variable_name(text: &str) -> bool {
    text.chars().all(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
}

fn live(model: String, keys: &CheckedTable<'_>, folder: &Path) -> Result<ModelSetting> {
    let provider = provider_of(keys, "kind");
    let base_url = keys.text("base_url").map(str::to_owned);
    let key = keys.text("key").map(str::to_owned);
    if key.as_deref().is_some_and(|key| !is_variable_name(key)) {
        let path = keys.reader().path_of("key");
        let problem =
            format!("`{path}` must be the name of an environment variable, and is not shown");
        let hint =
            "set a variable to the key itself, and name it, as in `key = \"OPENAI_API_KEY\"`";
        let place = keys.place_of("key").without_value();
        return Err(SettingError::new(&place, problem).with_hint(hint));
    }
    // The providers' own APIs know schemas and the newer name of the limit; what another server knows
    // only its operator does.
    let own_api = base_url.is_none();
    let slots = keys.whole("slots");
    let at_home = base_url.as_deref().is_some_and(is_at_home);
    // One that wants a key, or answers as a model that is paid for, is the way to a provider.
    let leads_on = key.is_some() || Prices::built_in()?.of(&model).is_some();
    let home = (at_home && (slots.is_some() || !leads_on)).then(|| Home {
        is_told: slots.is_some(),
        slots: slots.unwrap_or(SLOTS),
        window: None,
        timing: None,
        counted: 1.0,
    });
    if let (Some(_), None) = (slots, &home) {
        let problem = format!(
            "`{}` is of a server on this machine, and `base_url` names none",
            keys.reader().path_of("slots")
        );
        let hint = "`models.pace.at_once` says how many requests may be under way";
        return Err(SettingError::new(keys.place(), problem).with_hint(hint));
    }
    let limit = match keys.text("limit") {
        Some("max_completion_tokens") => "max_completion_tokens",
        None if own_api && provider == Provider::OpenAi => "max_completion_tokens",
        _ => "max_tokens",
    };
    let thinking = match provider {
        // A model at home gets room once it was seen to think.
        Provider::OpenAi if home.is_none() => THINKING,
        // Anthropic's models think only on request.
        Provider::OpenAi | Provider::Anthropic => Tokens::ZERO,
    };
    let dialect = Dialect {
        provider,
        model,
        // Some of the providers' own models refuse it; servers at home draw by chance without it.
        temperature: keys.number("temperature").or(home.map(|_| 0.0)),
        limit,
        thinking: keys.whole("thinking_tokens").map_or(thinking, Tokens),
        structured: keys.setting("structured").map_or(own_api, |_| keys.flag("structured")),
    };
    Ok(ModelSetting::Live(LiveSetting {
        dialect,
        base_url,
        key,
        authority: keys.file("authority", folder).map(|(path, _)| path),
        home,
        place: keys.place().clone(),
    }))
}
