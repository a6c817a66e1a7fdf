//! The models of a scenario, made ready: offline ones per session, all others once for a run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::PlanError;
use crate::model::api::Dialect;
use crate::model::cassette::{self, Cassette, ReplayMode, Taped};
use crate::model::offline::Offline;
use crate::model::price::{PerToken, Prices};
use crate::model::scripted::script;
use crate::model::spending::{Budget, Spending};
use crate::model::{Model, ModelKind, Purpose, Request, Response, Stop};
use crate::probe::judge::{self, Judging};
use crate::record::ModelEntry;
use crate::replay::{Fitness, Models, Panel, Times};
use crate::scenario::{LiveSetting, ModelSetting, ModelsSetting};
use crate::tokens::CountedTexts;
use crate::units::ContentHash;

/// What of the world a run may use.
pub struct Access<'a> {
    /// Reads a variable of the environment: keys and base URLs.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Whether no socket may be opened.
    pub is_offline: bool,
    /// Takes the place of the scenario's replay mode.
    pub replay: Option<ReplayMode>,
    /// Where answers are kept if the scenario does not say.
    pub cassette: PathBuf,
}

impl Access<'_> {
    /// Nothing at all: enough where no model is named.
    pub(super) fn none() -> Self {
        Access {
            variable: &|_| None,
            is_offline: true,
            replay: None,
            cassette: PathBuf::new(),
        }
    }
}

impl std::fmt::Debug for Access<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access")
            .field("is_offline", &self.is_offline)
            .finish_non_exhaustive()
    }
}

/// The models of a run.
#[derive(Debug)]
pub struct Connected {
    summariser: Who,
    reader: Option<Who>,
    judges: Vec<Arc<dyn Model>>,
    judging: Judging,
    fitness: Fitness,
    times: Times,
    cassette: Option<Arc<Cassette>>,
    spending: Arc<Spending>,
    budget: Budget,
    #[cfg(feature = "http")]
    live: Vec<Arc<crate::model::http::Live>>,
}

#[derive(Debug)]
enum Who {
    /// Made per session: it counts by the session's own counter.
    Offline,
    One(Arc<dyn Model>),
}

/// What is worth keeping: an answer that is no refusal, and of verdicts those that can be read.
fn is_worth_keeping(request: &Request, response: &Response) -> bool {
    match response.stop {
        Stop::Refusal | Stop::ContentFilter => false,
        Stop::End | Stop::Length | Stop::ToolUse => {
            request.purpose != Purpose::Judge || judge::is_verdict(&response.text)
        }
    }
}

impl Connected {
    /// Makes all models of a scenario ready. No socket is opened before the first request.
    pub fn new(
        models: &ModelsSetting,
        seed: u64,
        prices: &Prices,
        access: &Access<'_>,
    ) -> Result<Self, PlanError> {
        #[cfg(not(feature = "http"))]
        let _ = seed;
        let mode = access.replay.unwrap_or(models.replay);
        // Without a network only what is recorded can be answered by a live model.
        let mode = if access.is_offline && models.has_live() {
            ReplayMode::Strict
        } else {
            mode
        };
        let named = models.cassette.as_ref().map(|(path, _)| path.as_path());
        let wanted = named.is_some() || models.needs_cassette();
        let cassette = if wanted {
            let path = named.unwrap_or(&access.cassette);
            Some(Cassette::open(path, mode)?)
        } else {
            None
        };
        let price = |model: &str| Some((model.to_owned(), prices.of(model)?.1.per_token));
        let known: BTreeMap<String, PerToken> = models
            .all()
            .filter_map(|model| price(model.name()))
            .collect();
        let mut making = Making {
            cassette: cassette.clone(),
            spending: Arc::new(Spending::new(known)),
            access,
            #[cfg(feature = "http")]
            seed,
            #[cfg(feature = "http")]
            pace: models.pace,
            #[cfg(feature = "http")]
            engine: None,
            #[cfg(feature = "http")]
            pacers: BTreeMap::new(),
            #[cfg(feature = "http")]
            live: Vec::new(),
        };
        let summariser = making.who(&models.summariser)?;
        let reader = models.reader.as_ref().map(|model| making.who(model));
        let reader = reader.transpose()?;
        let mut judges = Vec::new();
        for judge in &models.judges {
            if let Who::One(judge) = making.who(judge)? {
                judges.push(judge);
            }
        }
        Ok(Self {
            summariser,
            reader,
            judges,
            judging: models.judging,
            fitness: Fitness::default(),
            times: Times {
                answers: models.answers,
                judgements: models.judgements,
            },
            cassette,
            spending: making.spending,
            budget: models.budget,
            #[cfg(feature = "http")]
            live: making.live,
        })
    }

    /// The models for one session.
    pub(super) fn for_session(&self, counts: &Arc<CountedTexts>) -> Models {
        let mut offline: Option<Arc<dyn Model>> = None;
        let mut one = |who: &Who| match who {
            Who::One(model) => model.clone(),
            Who::Offline => offline
                .get_or_insert_with(|| Arc::new(Offline::new(counts.clone())))
                .clone(),
        };
        Models {
            summariser: one(&self.summariser),
            reader: self.reader.as_ref().map(&mut one),
            judge: (!self.judges.is_empty()).then(|| Panel {
                judges: self.judges.clone(),
                judging: self.judging,
                fitness: self.fitness.clone(),
            }),
            times: self.times,
        }
    }

    /// The judges.
    pub fn judges(&self) -> &[Arc<dyn Model>] {
        &self.judges
    }

    /// The cassette, if answers are kept.
    pub fn cassette(&self) -> Option<&Arc<Cassette>> {
        self.cassette.as_ref()
    }

    /// The models behind an API.
    #[cfg(feature = "http")]
    pub(super) fn live(&self) -> &[Arc<crate::model::http::Live>] {
        &self.live
    }

    /// What was paid so far.
    pub fn spending(&self) -> &Spending {
        &self.spending
    }

    /// What may be spent.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Models whose server refused a JSON schema for verdicts, with what it said.
    #[cfg(feature = "http")]
    pub fn refused_schemas(&self) -> Vec<(String, String)> {
        let live = self.live.iter();
        live.filter_map(|live| Some((live.name().to_owned(), live.schema_refused()?)))
            .collect()
    }

    #[cfg(not(feature = "http"))]
    #[expect(
        clippy::unused_self,
        reason = "with the feature `http` there are servers"
    )]
    /// Without a network no server refuses anything.
    pub fn refused_schemas(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Measured times of the calls that ended since this was last asked, as lines of `timings.jsonl`.
    #[cfg(feature = "http")]
    pub(super) fn take_times(&self) -> Vec<serde_json::Value> {
        let times = self.live.iter().flat_map(|live| live.take_times());
        let short = |time: std::time::Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        times
            .map(|time| {
                serde_json::json!({
                    "model": &*time.model,
                    "purpose": time.purpose,
                    "attempts": time.attempts,
                    "answered": time.is_answered,
                    "waited_us": short(time.waited),
                    "first_token_us": time.first_token.map(short),
                    "took_us": short(time.took),
                })
            })
            .collect()
    }

    #[cfg(not(feature = "http"))]
    #[expect(
        clippy::unused_self,
        reason = "with the feature `http` there are times"
    )]
    pub(super) fn take_times(&self) -> Vec<serde_json::Value> {
        Vec::new()
    }
}

/// What making models needs, and what they share.
struct Making<'a> {
    cassette: Option<Arc<Cassette>>,
    spending: Arc<Spending>,
    access: &'a Access<'a>,
    #[cfg(feature = "http")]
    seed: u64,
    #[cfg(feature = "http")]
    pace: crate::scenario::Pace,
    #[cfg(feature = "http")]
    engine: Option<Arc<crate::model::http::Engine>>,
    #[cfg(feature = "http")]
    pacers: BTreeMap<String, Arc<crate::model::http::pace::Pacer>>,
    #[cfg(feature = "http")]
    live: Vec<Arc<crate::model::http::Live>>,
}

impl Making<'_> {
    fn who(&mut self, setting: &ModelSetting) -> Result<Who, PlanError> {
        Ok(match setting {
            ModelSetting::Offline => Who::Offline,
            ModelSetting::Scripted { name, script } => {
                let (path, place) = script;
                let file = path.display().to_string();
                let text = std::fs::read_to_string(path).map_err(|cause| PlanError::Script {
                    file: file.clone(),
                    place: place.clone(),
                    cause,
                })?;
                let model: Arc<dyn Model> = Arc::new(script::parse(&file, &text)?.named(name));
                // The dialect under which answers of scripted models are kept.
                let dialect = Dialect::new(crate::session::wire::Provider::Anthropic, name);
                self.taped(dialect, ModelKind::Scripted, Some(model))
            }
            ModelSetting::Cassette { name, provider, .. } => {
                let cassette = self.cassette.as_ref();
                let kind = cassette.and_then(|cassette| cassette.kind_of(name));
                let dialect = Dialect::new(*provider, name);
                self.taped(dialect, kind.unwrap_or(ModelKind::Live), None)
            }
            ModelSetting::Live(live) => {
                let dialect = Dialect {
                    provider: live.provider,
                    model: live.model.clone(),
                    temperature: live.temperature,
                    limit: live.limit,
                    thinking: live.thinking,
                    structured: live.structured,
                };
                let is_strict = self
                    .cassette
                    .as_ref()
                    .is_some_and(|cassette| cassette.mode() == ReplayMode::Strict);
                let model = if self.access.is_offline || is_strict {
                    None
                } else {
                    Some(self.connect(live, &dialect)?)
                };
                self.taped(dialect, ModelKind::Live, model)
            }
        })
    }

    fn taped(&self, dialect: Dialect, kind: ModelKind, model: Option<Arc<dyn Model>>) -> Who {
        let Some(cassette) = self.cassette.clone() else {
            return model.map_or(Who::Offline, Who::One);
        };
        let spending = self.spending.clone();
        let taped = Taped::new(cassette, dialect, kind, model, spending, is_worth_keeping);
        Who::One(Arc::new(taped))
    }

    #[cfg(not(feature = "http"))]
    #[expect(
        clippy::unused_self,
        reason = "with the feature `http` it makes a client"
    )]
    fn connect(&self, live: &LiveSetting, _: &Dialect) -> Result<Arc<dyn Model>, PlanError> {
        Err(PlanError::NoHttp {
            model: live.model.clone(),
            place: live.place.clone(),
        })
    }

    #[cfg(feature = "http")]
    fn connect(
        &mut self,
        live: &LiveSetting,
        dialect: &Dialect,
    ) -> Result<Arc<dyn Model>, PlanError> {
        use std::time::Duration;

        use crate::model::http::pace::{PaceSetting, Pacer};
        use crate::model::http::{Engine, Live};
        let http = |cause| PlanError::Http {
            model: live.model.clone(),
            place: live.place.clone(),
            cause,
        };
        let connection = connection(live, self.access)?;
        let engine = match &self.engine {
            Some(engine) => engine.clone(),
            None => self.engine.insert(Engine::start().map_err(http)?).clone(),
        };
        let setting = PaceSetting {
            at_once: self.pace.at_once,
            tokens_per_minute: self.pace.tokens_per_minute,
            retries: self.pace.retries,
            longest_wait: Duration::from_secs(self.pace.longest_wait_seconds),
            seed: self.seed,
            ..PaceSetting::default()
        };
        // Models behind one address share its limits.
        let pacer = self
            .pacers
            .entry(connection.base_url.clone())
            .or_insert_with(|| Arc::new(Pacer::new(setting)))
            .clone();
        let made = Live::new(dialect.clone(), connection, engine, pacer).map_err(http)?;
        let made = Arc::new(made);
        self.live.push(made.clone());
        Ok(made)
    }
}

/// Where a model is reached, and with which key.
///
/// A key of the environment goes only to the provider's own address, or to one that the environment
/// names: a scenario that names another address must name the key for it.
#[cfg(feature = "http")]
fn connection(
    live: &LiveSetting,
    access: &Access<'_>,
) -> Result<crate::model::http::Connection, PlanError> {
    use crate::model::http::Connection;
    use crate::model::secret::Secret;
    use crate::session::wire::Provider;
    let (key_name, url_name) = match live.provider {
        Provider::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        Provider::OpenAi => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    };
    let from_environment = (access.variable)(url_name);
    let mut connection = match live.base_url.clone().or(from_environment.clone()) {
        Some(url) => Connection::to(url),
        None => Connection::public(live.provider),
    };
    let missing = |name: &str| PlanError::NoKey {
        model: live.model.clone(),
        variable: name.to_owned(),
        place: live.place.clone(),
    };
    let key = match (&live.key, &live.base_url) {
        (Some(name), _) => Some((access.variable)(name).ok_or_else(|| missing(name))?),
        (None, Some(_)) => None,
        (None, None) => {
            let key = (access.variable)(key_name);
            // A server of one's own may want none.
            if key.is_none() && from_environment.is_none() {
                return Err(missing(key_name));
            }
            key
        }
    };
    connection.key = key.map(|key| Secret::new(&key));
    if let Some(path) = &live.authority {
        let file = path.display().to_string();
        let pem = std::fs::read(path).map_err(|cause| PlanError::Authority {
            file,
            place: live.place.clone(),
            cause,
        })?;
        connection.authority = Some(pem);
    }
    Ok(connection)
}

fn entry(models: &ModelsSetting, setting: &ModelSetting) -> ModelEntry {
    ModelEntry {
        name: setting.name().to_owned(),
        kind: match setting {
            ModelSetting::Offline => ModelKind::Deterministic,
            ModelSetting::Scripted { .. } => ModelKind::Scripted,
            ModelSetting::Live(_) => ModelKind::Live,
            ModelSetting::Cassette { name, .. } => recorded_kind(models, name),
        },
    }
}

/// What stands for the contents of scripts: a changed script is another run. One that cannot be read is
/// told when the models are connected.
pub(super) fn scripts(models: &ModelsSetting) -> String {
    let files = models.all().filter_map(|model| match model {
        ModelSetting::Scripted { script, .. } => std::fs::read(&script.0).ok(),
        ModelSetting::Offline | ModelSetting::Cassette { .. } | ModelSetting::Live(_) => None,
    });
    let hashes: Vec<String> = files.map(|bytes| ContentHash::of(&bytes).hex(16)).collect();
    hashes.join(" ")
}

/// The judges one by one, in the order of the scenario.
pub(super) fn judges(models: &ModelsSetting) -> Vec<ModelEntry> {
    let judges = models.judges.iter();
    judges.map(|judge| entry(models, judge)).collect()
}

/// The models as the manifest names them; what is recorded tells what a cassette's answers are.
pub(super) fn entries(models: &ModelsSetting) -> Entries {
    let entry = |setting: &ModelSetting| entry(models, setting);
    let plain = |name: &str| ModelEntry {
        name: name.to_owned(),
        kind: ModelKind::Deterministic,
    };
    let judges = judges(models);
    Entries {
        summariser: entry(&models.summariser),
        reader: match &models.reader {
            None => plain("none"),
            Some(ModelSetting::Offline) => plain("bm25-extract"),
            Some(reader) => entry(reader),
        },
        judge: (!judges.is_empty()).then(|| ModelEntry {
            name: judges
                .iter()
                .map(|judge| judge.name.as_str())
                .collect::<Vec<_>>()
                .join(" + "),
            // A panel is what its least trustworthy member is.
            kind: if judges.iter().any(|judge| judge.kind == ModelKind::Scripted) {
                ModelKind::Scripted
            } else {
                ModelKind::Live
            },
        }),
    }
}

/// The models as the manifest names them.
pub(super) struct Entries {
    pub(super) summariser: ModelEntry,
    pub(super) reader: ModelEntry,
    pub(super) judge: Option<ModelEntry>,
}

fn recorded_kind(models: &ModelsSetting, name: &str) -> ModelKind {
    let path: Option<&Path> = models.cassette.as_ref().map(|(path, _)| path.as_path());
    let contents = path.and_then(|path| cassette::read(path).ok());
    let entries = contents
        .map(|contents| contents.entries)
        .unwrap_or_default();
    let entry = entries.iter().find(|entry| entry.model == name);
    entry.map_or(ModelKind::Live, |entry| entry.kind)
}
