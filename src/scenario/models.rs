//! `[models]`: who summarises, reads and judges, how fast they are asked, and what that may cost.

use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};

use crate::model::api::LimitName;
use crate::model::cassette::ReplayMode;
use crate::model::spending::Budget;
use crate::probe::Asking;
use crate::probe::judge::Judging;
use crate::session::wire::Provider;
use crate::settings::{Place, Reader, Setting, SettingError, Table, Value};
use crate::units::{Tokens, Usd, is_valid_id};

/// What a model behind an OpenAI-compatible API may think before an answer or a verdict, where the
/// scenario does not say. Ours: models that think take a few hundred to a few thousand tokens, and for
/// others a higher limit changes nothing.
const THINKING: Tokens = Tokens(4_096);

/// Who is asked, and how.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelsSetting {
    /// Writes summaries.
    pub summariser: ModelSetting,
    /// Answers probes; without one no probe is asked, and survival is measured all the same.
    pub reader: Option<ModelSetting>,
    /// Judge answers; several vote.
    pub judges: Vec<ModelSetting>,
    /// Which answers are judged.
    pub judging: Judging,
    /// How often each probe is answered, in each repeat.
    pub answers: u32,
    /// How often each judge grades an answer.
    pub judgements: u32,
    /// What a reader that is a model is asked beside the scored questions.
    pub asking: Asking,
    /// What `proctor calibrate` said of judges: files, with what named them.
    pub calibrations: Vec<(PathBuf, Place)>,
    /// Where answers are kept, and what named it; without one, in the run's folder.
    pub cassette: Option<(PathBuf, Place)>,
    /// What recorded answers are for.
    pub replay: ReplayMode,
    /// How fast each provider is asked.
    pub pace: Pace,
    /// What may be spent.
    pub budget: Budget,
}

/// A model, as a scenario names it.
#[derive(Debug, Clone, PartialEq)]
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
        /// What named it.
        place: Place,
    },
    /// A language model behind an API.
    Live(LiveSetting),
}

/// A language model behind an API.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LiveSetting {
    /// Whose API.
    pub provider: Provider,
    /// The model's id.
    pub model: String,
    /// The base URL; without one that of the environment, or of the provider.
    #[serde(skip)]
    pub base_url: Option<String>,
    /// The name of the variable that holds the key.
    #[serde(skip)]
    pub key: Option<String>,
    /// Certificates of a private authority, as a PEM file.
    #[serde(skip)]
    pub authority: Option<PathBuf>,
    /// Sent where it is set.
    pub temperature: Option<f64>,
    /// What the limit of the output is called.
    pub limit: LimitName,
    /// What a model that thinks first may think, in tokens: added to the limit of every answer.
    pub thinking: Tokens,
    /// Whether verdicts are asked for with a JSON schema.
    pub structured: bool,
    /// What named it.
    #[serde(skip)]
    pub place: Place,
}

/// How fast each provider is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// Requests under way at most.
    pub at_once: usize,
    /// Tokens a minute.
    pub tokens_per_minute: Option<Tokens>,
    /// How often a request is sent again.
    pub retries: u32,
    /// A provider that asks to be left alone for more seconds than this is given up.
    pub longest_wait_seconds: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            at_once: 16,
            tokens_per_minute: None,
            retries: 8,
            longest_wait_seconds: 300,
        }
    }
}

/// No reader has a larger window.
const MOST_WINDOW: u64 = 1_000_000_000;

/// The most answers to a probe and verdicts on an answer.
const MOST_TIMES: u64 = 100;

impl Default for ModelsSetting {
    /// Offline: no key, no network.
    fn default() -> Self {
        Self {
            summariser: ModelSetting::Offline,
            reader: Some(ModelSetting::Offline),
            judges: Vec::new(),
            judging: Judging::Needed,
            answers: 1,
            judgements: 1,
            asking: Asking {
                qualifies: true,
                summaries: false,
                window: None,
            },
            calibrations: Vec::new(),
            cassette: None,
            replay: ReplayMode::Auto,
            pace: Pace::default(),
            budget: Budget::default(),
        }
    }
}

impl ModelsSetting {
    /// All models that are named.
    pub fn all(&self) -> impl Iterator<Item = &ModelSetting> {
        [&self.summariser]
            .into_iter()
            .chain(&self.reader)
            .chain(&self.judges)
    }

    /// Whether a language model behind an API is named.
    pub fn has_live(&self) -> bool {
        self.all()
            .any(|model| matches!(model, ModelSetting::Live(_)))
    }

    /// The models behind an API, each once.
    pub fn live_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for model in self.all() {
            if let ModelSetting::Live(live) = model
                && !names.contains(&live.model.as_str())
            {
                names.push(&live.model);
            }
        }
        names
    }

    /// Whether a model is named whose answers are kept or recorded.
    pub fn needs_cassette(&self) -> bool {
        let mut all = self.all();
        self.has_live() || all.any(|model| matches!(model, ModelSetting::Cassette { .. }))
    }

    /// Sets the reader's window where the scenario says nothing and `known` knows the model, with
    /// room for what it may think before it answers.
    pub fn settle_window(&mut self, known: impl Fn(&str) -> Option<Tokens>) {
        let name = match &self.reader {
            Some(ModelSetting::Live(live)) => &live.model,
            Some(ModelSetting::Cassette { name, .. }) => name,
            Some(ModelSetting::Offline | ModelSetting::Scripted { .. }) | None => return,
        };
        if self.asking.window.is_none() {
            let window = known(name).map(|window| window.0.saturating_sub(THINKING.0));
            self.asking.window = window.map(Tokens);
        }
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
}

impl ModelsSetting {
    /// Only judges: what a table of `judge = …` says.
    pub fn of_judges(table: &Table, place: &Place) -> Result<Self, SettingError> {
        let models = read(Some(Reader::new(table, "")), Path::new(""))?;
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
            Self::Live(live) => &live.model,
        }
    }

    /// What it may think before each answer, in tokens.
    pub fn thinking(&self) -> Tokens {
        match self {
            Self::Live(live) => live.thinking,
            Self::Offline | Self::Scripted { .. } | Self::Cassette { .. } => Tokens::ZERO,
        }
    }

    fn values(&self) -> serde_json::Value {
        match self {
            Self::Offline => json!("offline"),
            Self::Scripted { name, .. } => json!({ "scripted": name }),
            // A run from recorded answers is the run that recorded them.
            Self::Cassette { name, provider, .. } => json!({ "provider": provider, "model": name }),
            Self::Live(live) => json!(live),
        }
    }
}

/// Reads `[models]`; `folder` is where relative paths start.
pub(super) fn read(
    reader: Option<Reader<'_>>,
    folder: &Path,
) -> Result<ModelsSetting, SettingError> {
    let mut models = ModelsSetting::default();
    let Some(mut reader) = reader else {
        return Ok(models);
    };
    let path = reader.path_of("summariser");
    if let Some(setting) = reader.setting("summariser") {
        models.summariser = required(one(&path, setting, folder)?, &path, setting)?;
    }
    let path = reader.path_of("reader");
    if let Some(setting) = reader.setting("reader") {
        models.reader = one(&path, setting, folder)?;
    }
    let path = reader.path_of("judge");
    if let Some(setting) = reader.setting("judge") {
        models.judges = judges(&path, setting, folder)?;
    }
    models.judging = match reader.choice("judging", &["needed", "all"])? {
        Some("all") => Judging::All,
        _ => Judging::Needed,
    };
    let answers = reader.whole("answers", 1, MOST_TIMES)?.unwrap_or(1);
    if answers > 1 && matches!(models.reader, None | Some(ModelSetting::Offline)) {
        let problem =
            "`models.answers` above 1 needs a reader that may answer otherwise the next time";
        let place = reader
            .setting("answers")
            .map(|setting| setting.place.clone());
        let place = place.unwrap_or_else(|| reader.place().clone());
        return Err(SettingError::new(&place, problem).with_hint("name one in `models.reader`"));
    }
    let judgements = reader.whole("judgements", 1, MOST_TIMES)?.unwrap_or(1);
    if judgements > 1 && models.judges.is_empty() {
        let problem = "`models.judgements` above 1 needs a judge";
        let place = reader
            .setting("judgements")
            .map(|setting| setting.place.clone());
        let place = place.unwrap_or_else(|| reader.place().clone());
        return Err(SettingError::new(&place, problem).with_hint("name one in `models.judge`"));
    }
    models.answers = u32::try_from(answers).unwrap_or(1);
    models.judgements = u32::try_from(judgements).unwrap_or(1);
    models.asking.qualifies = reader.flag("qualify")?.unwrap_or(true);
    models.asking.summaries = matches!(
        reader.choice("reader_scope", &["context", "context+summary"])?,
        Some("context+summary")
    );
    models.asking.window = reader.whole("reader_window", 1, MOST_WINDOW)?.map(Tokens);
    if models.asking.window.is_some() && matches!(models.reader, None | Some(ModelSetting::Offline))
    {
        let problem = "`models.reader_window` needs a reader that is a model";
        let setting = reader.setting("reader_window");
        let place = setting.map_or(reader.place(), |setting| &setting.place);
        return Err(SettingError::new(place, problem).with_hint("name one in `models.reader`"));
    }
    let place = reader.setting("calibrations");
    let place = place
        .map_or(reader.place(), |setting| &setting.place)
        .clone();
    let files = reader.texts("calibrations")?.unwrap_or_default();
    models.calibrations = files
        .iter()
        .map(|file| (folder.join(file), place.clone()))
        .collect();
    if let Some(file) = reader.text("cassette")? {
        let setting = reader.setting("cassette");
        let place = setting.map_or(reader.place(), |setting| &setting.place);
        models.cassette = Some((folder.join(file), place.clone()));
    }
    let names = ReplayMode::ALL.map(ReplayMode::name);
    if let Some(name) = reader.choice("replay", &names)? {
        let mode = ReplayMode::ALL.into_iter().find(|mode| mode.name() == name);
        models.replay = mode.unwrap_or_default();
    }
    if let Some(reader) = reader.table("pace")? {
        models.pace = pace(reader)?;
    }
    if let Some(reader) = reader.table("budget")? {
        models.budget = budget(reader)?;
    }
    reader.finish()?;
    Ok(models)
}

/// A model that only has recorded answers needs a file of them.
pub(super) fn check(models: &ModelsSetting) -> Result<(), SettingError> {
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

fn required(
    model: Option<ModelSetting>,
    path: &str,
    setting: &Setting,
) -> Result<ModelSetting, SettingError> {
    model.ok_or_else(|| {
        SettingError::new(&setting.place, format!("`{path}` cannot be `none`"))
            .with_hint("`offline` writes summaries by rule")
    })
}

fn judges(path: &str, setting: &Setting, folder: &Path) -> Result<Vec<ModelSetting>, SettingError> {
    let items = match &setting.value {
        Value::List(items) => items.iter().collect(),
        _ => vec![setting],
    };
    let mut judges: Vec<ModelSetting> = Vec::new();
    for item in items {
        match one(path, item, folder)? {
            None => {}
            Some(ModelSetting::Offline) => {
                let problem = format!("`{path}` cannot be `offline`: rules grade without a judge");
                return Err(SettingError::new(&item.place, problem));
            }
            Some(judge) if judges.iter().any(|other| other.name() == judge.name()) => {
                let problem = format!("judge `{}` is named twice", judge.name());
                return Err(SettingError::new(&item.place, problem));
            }
            Some(judge) => judges.push(judge),
        }
    }
    Ok(judges)
}

/// A word, or a table that says more.
fn one(path: &str, setting: &Setting, folder: &Path) -> Result<Option<ModelSetting>, SettingError> {
    const HINT: &str = "`offline`, `none`, or a table as in `{ kind = \"openai\", model = \"…\" }`";
    match &setting.value {
        Value::Text(word) if word == "offline" => Ok(Some(ModelSetting::Offline)),
        Value::Text(word) if word == "none" => Ok(None),
        Value::Table(table) => table_of(Reader::new(table, path), folder).map(Some),
        value => {
            let problem = format!("`{path}` must be a model, not `{value}`");
            Err(SettingError::new(&setting.place, problem).with_hint(HINT))
        }
    }
}

fn table_of(mut reader: Reader<'_>, folder: &Path) -> Result<ModelSetting, SettingError> {
    let kinds = ["offline", "openai", "anthropic", "scripted", "cassette"];
    let Some(kind) = reader.choice("kind", &kinds)? else {
        return Err(reader
            .must_be_set("kind")
            .with_hint("`offline`, `openai`, `anthropic`, `scripted` or `cassette`"));
    };
    let place = reader.place().clone();
    let missing = |reader: &Reader<'_>, key: &str| reader.must_be_set(key);
    let setting = match kind {
        "offline" => ModelSetting::Offline,
        "scripted" => {
            let name = name(&mut reader)?.unwrap_or_else(|| "scripted".to_owned());
            let Some(script) = reader.text("script")? else {
                return Err(missing(&reader, "script"));
            };
            ModelSetting::Scripted {
                name,
                script: (folder.join(script), place),
            }
        }
        "cassette" => {
            let Some(name) = name(&mut reader)? else {
                return Err(missing(&reader, "model"));
            };
            let provider = match reader.choice("provider", &["anthropic", "openai"])? {
                Some("openai") => Provider::OpenAi,
                _ => Provider::Anthropic,
            };
            ModelSetting::Cassette {
                name,
                provider,
                place,
            }
        }
        kind => {
            let provider = match kind {
                "openai" => Provider::OpenAi,
                _ => Provider::Anthropic,
            };
            let Some(model) = name(&mut reader)? else {
                return Err(missing(&reader, "model"));
            };
            live(provider, model, &mut reader, folder, place)?
        }
    };
    reader.finish()?;
    Ok(setting)
}

/// The model's id. It becomes part of records and reports.
fn name(reader: &mut Reader<'_>) -> Result<Option<String>, SettingError> {
    let Some(name) = reader.text("model")? else {
        return Ok(None);
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._-/:@+".contains(c);
    if name.is_empty() || name.len() > 200 || !name.chars().all(is_plain) {
        let problem = format!(
            "`{}` must be a model's id, not `{name}`",
            reader.path_of("model")
        );
        return Err(SettingError::new(reader.place(), problem));
    }
    Ok(Some(name.to_owned()))
}

fn live(
    provider: Provider,
    model: String,
    reader: &mut Reader<'_>,
    folder: &Path,
    place: Place,
) -> Result<ModelSetting, SettingError> {
    let base_url = reader.text("base_url")?.map(str::to_owned);
    let key = reader.text("key")?.map(str::to_owned);
    if let Some(key) = &key
        && !is_valid_id(&key.to_ascii_lowercase().replace('_', "-"))
    {
        let problem = format!(
            "`{}` must be the name of an environment variable, and never a key",
            reader.path_of("key")
        );
        return Err(SettingError::new(reader.place(), problem));
    }
    let limit = match reader.choice("limit", &["max_tokens", "max_completion_tokens"])? {
        Some("max_tokens") => LimitName::MaxTokens,
        Some(_) => LimitName::MaxCompletionTokens,
        // Other servers know the older name only.
        None if base_url.is_none() && provider == Provider::OpenAi => {
            LimitName::MaxCompletionTokens
        }
        None => LimitName::MaxTokens,
    };
    let thinking = match (reader.whole("thinking_tokens", 0, 1_000_000)?, provider) {
        (Some(tokens), _) => Tokens(tokens),
        (None, Provider::OpenAi) => THINKING,
        // Anthropic's models think only where they are told to.
        (None, Provider::Anthropic) => Tokens::ZERO,
    };
    // The providers' own APIs know schemas; what another server knows only its operator does.
    let is_own = base_url.is_none();
    Ok(ModelSetting::Live(LiveSetting {
        provider,
        model,
        base_url,
        key,
        authority: reader.text("authority")?.map(|file| folder.join(file)),
        temperature: reader.amount("temperature")?,
        limit,
        thinking,
        structured: reader.flag("structured")?.unwrap_or(is_own),
        place,
    }))
}

fn pace(mut reader: Reader<'_>) -> Result<Pace, SettingError> {
    let mut pace = Pace::default();
    if let Some(most) = reader.whole("at_once", 1, 1_000)? {
        pace.at_once = usize::try_from(most).unwrap_or(usize::MAX);
    }
    pace.tokens_per_minute = reader.whole("tokens_per_minute", 1, u64::MAX)?.map(Tokens);
    if let Some(retries) = reader.whole("retries", 0, 1_000)? {
        pace.retries = super::small(retries);
    }
    if let Some(seconds) = reader.whole("longest_wait_seconds", 0, 86_400)? {
        pace.longest_wait_seconds = seconds;
    }
    reader.finish()?;
    Ok(pace)
}

fn budget(mut reader: Reader<'_>) -> Result<Budget, SettingError> {
    let budget = Budget {
        money: reader.amount("usd")?.map(nano),
        tokens: reader.whole("tokens", 1, u64::MAX)?.map(Tokens),
        minutes: reader.whole("minutes", 1, 1_000_000)?,
        least_coverage: reader.fraction("least_coverage")?.unwrap_or(0.0),
    };
    reader.finish()?;
    Ok(budget)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an amount is at least 0, and a float as large as an integer saturates"
)]
fn nano(dollars: f64) -> Usd {
    Usd((dollars * 1e9).round() as u64)
}
