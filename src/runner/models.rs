//! Prepares the models of a scenario: offline ones per session, all others once per run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Result;
use super::live::Servers;
use crate::model::api::Dialect;
use crate::model::cassette::{self, Cassette, CassetteModel, ReplayMode};
#[cfg(feature = "http")]
use crate::model::http::Notice;
use crate::model::offline::Offline;
use crate::model::price::Prices;
use crate::model::scripted::script;
use crate::model::spending::{Budget, Spending};
use crate::model::{Model, ModelKind, Purpose, Request, Response, Stop};
use crate::probe::judge::{self, Judging};
use crate::record::{ModelEntry, ServerWindow};
use crate::replay::{Fitness, Judges, Models, Repetitions};
use crate::scenario::{ModelSetting, ModelsSetting};
use crate::session::wire::Provider;
use crate::tokens::CountedTexts;
use crate::units::ContentHash;

/// The resources of a run in addition to its scenario: environment, network, recorded answers.
pub struct Access<'a> {
    /// Reads a variable of the environment: keys and base URLs.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// Whether no socket may be opened.
    pub is_offline: bool,
    /// Takes the place of the scenario's replay mode.
    pub replay: Option<ReplayMode>,
    /// Where answers are kept if the scenario does not say.
    pub cassette: PathBuf,
    /// Hears of requests that failed.
    #[cfg(feature = "http")]
    pub notice: Option<Notice>,
}

impl Access<'_> {
    /// Access to nothing: enough where no model is named.
    pub(super) fn none() -> Self {
        Access {
            variable: &|_| None,
            is_offline: true,
            replay: None,
            cassette: PathBuf::new(),
            #[cfg(feature = "http")]
            notice: None,
        }
    }
}

/// The models of a run.
#[derive(Debug)]
pub struct RunModels {
    summariser: RunModel,
    reader: Option<RunModel>,
    /// The judges.
    pub judges: Vec<Arc<dyn Model>>,
    judging: Judging,
    fitness: Fitness,
    times: Repetitions,
    /// The cassette, if answers are kept.
    pub cassette: Option<Arc<Cassette>>,
    /// The spending so far.
    pub spending: Arc<Spending>,
    /// The limits of spending.
    pub budget: Budget,
    pub(super) servers: Servers,
}

#[derive(Debug)]
enum RunModel {
    /// Made per session: it counts by the session's own counter.
    Offline,
    Shared(Arc<dyn Model>),
}

impl RunModel {
    fn for_session(&self, counts: &Arc<CountedTexts>) -> Arc<dyn Model> {
        match self {
            Self::Shared(model) => model.clone(),
            Self::Offline => Arc::new(Offline::new(counts.clone())),
        }
    }
}

/// Whether an answer is worth keeping: it is not a refusal, and its verdict can be parsed.
fn is_worth_keeping(request: &Request, response: &Response) -> bool {
    match response.stop {
        Stop::Refusal | Stop::ContentFilter => false,
        Stop::End | Stop::Length | Stop::ToolUse => {
            request.purpose != Purpose::Judge || judge::is_verdict(request, &response.text)
        }
    }
}

impl RunModels {
    /// Makes all models of a scenario ready. No socket is opened before the first request.
    pub fn new(models: &ModelsSetting, prices: &Prices, access: &Access<'_>) -> Result<Self> {
        // Without a network only what is recorded can be answered by a live model.
        let mode = if access.is_offline && models.has_live() {
            ReplayMode::Strict
        } else {
            access.replay.unwrap_or(models.replay)
        };
        let named = models.cassette.as_ref().map(|(path, _)| path.as_path());
        let wanted = named.or_else(|| models.needs_cassette().then_some(&*access.cassette));
        let cassette = wanted.map(|path| Cassette::open(path, mode)).transpose()?;
        let names = models.all().map(ModelSetting::name);
        let known = names.filter_map(|name| Some((name.to_owned(), prices.of(name)?.1.per_token)));
        let mut making = ModelFactory {
            cassette,
            spending: Arc::new(Spending::new(known.collect())),
            access,
            servers: Servers::new(models.pace),
        };
        let summariser = making.handle(&models.summariser)?;
        let reader = models.reader.as_ref().map(|model| making.handle(model)).transpose()?;
        let mut judges = Vec::new();
        for judge in &models.judges {
            if let RunModel::Shared(judge) = making.handle(judge)? {
                judges.push(judge);
            }
        }
        Ok(Self {
            summariser,
            reader,
            judges,
            judging: models.judging,
            fitness: Fitness::default(),
            times: Repetitions { answers: models.answers, judgements: models.judgements },
            cassette: making.cassette,
            spending: making.spending,
            budget: models.budget,
            servers: making.servers,
        })
    }

    /// The models for one session.
    pub(super) fn for_session(&self, counts: &Arc<CountedTexts>) -> Models {
        Models {
            summariser: self.summariser.for_session(counts),
            reader: self.reader.as_ref().map(|reader| reader.for_session(counts)),
            judge: (!self.judges.is_empty()).then(|| Judges {
                models: self.judges.clone(),
                judging: self.judging,
                fitness: self.fitness.clone(),
            }),
            times: self.times,
        }
    }

    /// How long strategies waited for servers on this machine, modelled and measured, in words.
    pub fn waited(&self) -> Option<String> {
        self.servers.waited()
    }

    /// Models whose server refused a JSON schema for verdicts, with what it said.
    pub fn refused_schemas(&self) -> Vec<(String, String)> {
        self.servers.refused_schemas()
    }
}

/// Parts that the models of a run share while they are made.
struct ModelFactory<'a> {
    cassette: Option<Arc<Cassette>>,
    spending: Arc<Spending>,
    access: &'a Access<'a>,
    servers: Servers,
}

impl ModelFactory<'_> {
    fn handle(&mut self, setting: &ModelSetting) -> Result<RunModel> {
        Ok(match setting {
            ModelSetting::Offline => RunModel::Offline,
            ModelSetting::Scripted { name, script } => {
                let (path, place) = script;
                let text = super::read_named("script", path, place)?;
                let file = path.display().to_string();
                let model: Arc<dyn Model> = Arc::new(script::parse(&file, &text)?.named(name));
                // The dialect under which answers of scripted models are kept.
                let dialect = Dialect::new(Provider::Anthropic, name);
                self.taped(dialect, ModelKind::Scripted, Some(model))
            }
            ModelSetting::Cassette { name, provider, .. } => {
                let cassette = self.cassette.as_ref();
                let kind = cassette.and_then(|cassette| cassette.kind_of(name));
                let dialect = Dialect::new(*provider, name);
                self.taped(dialect, kind.unwrap_or(ModelKind::Live), None)
            }
            ModelSetting::Live(live) => {
                let cassette = self.cassette.as_ref();
                let asked = !self.access.is_offline
                    && !cassette.is_some_and(|cassette| cassette.mode() == ReplayMode::Strict);
                let model = asked.then(|| self.servers.connect(live, self.access));
                self.taped(live.dialect.clone(), ModelKind::Live, model.transpose()?)
            }
        })
    }

    fn taped(&self, dialect: Dialect, kind: ModelKind, model: Option<Arc<dyn Model>>) -> RunModel {
        let Some(cassette) = self.cassette.clone() else {
            return model.map_or(RunModel::Offline, RunModel::Shared);
        };
        RunModel::Shared(Arc::new(CassetteModel {
            cassette,
            dialect,
            kind,
            model,
            spending: self.spending.clone(),
            keeps: is_worth_keeping,
        }))
    }
}

/// A model as the manifest names it.
pub(super) fn entry(models: &ModelsSetting, setting: &ModelSetting) -> ModelEntry {
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

/// Hashes of the scripts: a changed script is another run. A script that cannot be read is an error when
/// the models are connected.
pub(super) fn scripts(models: &ModelsSetting) -> String {
    let files = models.all().filter_map(|model| match model {
        ModelSetting::Scripted { script, .. } => crate::files::read(&script.0).ok(),
        ModelSetting::Offline | ModelSetting::Cassette { .. } | ModelSetting::Live(_) => None,
    });
    let hashes: Vec<String> = files.map(|bytes| ContentHash::of(&bytes).hex(16)).collect();
    hashes.join(" ")
}

/// The servers on this machine, by the names of their models.
pub(super) fn servers(models: &ModelsSetting) -> BTreeMap<String, ServerWindow> {
    let servers = models.homes().map(|(live, home)| {
        let (tokens, counted) = (home.window, home.counted);
        (live.dialect.model.clone(), ServerWindow { tokens, counted })
    });
    servers.collect()
}

/// The judges one by one, in the order of the scenario.
pub(super) fn judges(models: &ModelsSetting) -> Vec<ModelEntry> {
    models.judges.iter().map(|judge| entry(models, judge)).collect()
}

/// All judges together as the manifest names them. Their kind is that of the least trustworthy.
pub(super) fn panel(models: &ModelsSetting) -> Option<ModelEntry> {
    let all = judges(models);
    let names: Vec<&str> = all.iter().map(|judge| judge.name.as_str()).collect();
    let scripted = all.iter().any(|judge| judge.kind == ModelKind::Scripted);
    (!all.is_empty()).then(|| ModelEntry {
        name: names.join(" + "),
        kind: if scripted { ModelKind::Scripted } else { ModelKind::Live },
    })
}

/// The kind of a recorded model: that of its recorded answers.
fn recorded_kind(models: &ModelsSetting, name: &str) -> ModelKind {
    let cassette = models.cassette.as_ref();
    let contents = cassette.and_then(|(path, _)| cassette::read(path).ok());
    let mut entries = contents.into_iter().flat_map(|contents| contents.entries);
    let entry = entries.find(|entry| entry.model == name);
    entry.map_or(ModelKind::Live, |entry| entry.kind)
}
