//! The servers of live models: one client for all, one pace per address.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::{Access, PlanError, Result, read_named};
use crate::model::http::pace::{PaceSetting, Pacer};
use crate::model::http::{CallTime, Connection, Engine, HttpError, LiveModel, Waits};
use crate::model::timing::ServerTiming;
use crate::model::{CallFailure, Model, Purpose};
use crate::scenario::{Home, LiveSetting, RequestPace};
use crate::session::redact::Secret;
use crate::session::wire::Provider;
use crate::stop::StopToken;
use crate::units::{Tokens, Usage, whole};

/// The models behind an API, and their shared resources.
#[derive(Debug)]
pub(super) struct Servers {
    pace: RequestPace,
    setting: PaceSetting,
    waits: Waits,
    engine: Option<Arc<Engine>>,
    pacers: BTreeMap<(String, bool), Arc<Pacer>>,
    pub(super) live: Vec<Arc<LiveModel>>,
    /// What is known of the servers of these, where they are on this machine.
    homes: Vec<Option<Home>>,
    waited: Mutex<Vec<Waited>>,
}

/// How long a request of a strategy to a timed server took, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Waited {
    modelled: f64,
    measured: f64,
}

impl Servers {
    pub(super) fn new(pace: RequestPace) -> Self {
        Self {
            pace,
            waits: Waits::default(),
            setting: PaceSetting {
                at_once: pace.at_once,
                retries: pace.retries,
                longest_wait: Duration::from_secs(pace.longest_wait_seconds),
                ..PaceSetting::default()
            },
            engine: None,
            pacers: BTreeMap::new(),
            live: Vec::new(),
            homes: Vec::new(),
            waited: Mutex::default(),
        }
    }

    pub(super) fn connect(
        &mut self,
        live: &LiveSetting,
        access: &Access<'_>,
    ) -> Result<Arc<dyn Model>> {
        let mut connection = connection_to(live, access)?;
        connection.whole = Duration::from_secs(self.pace.timeout_seconds);
        let first = Duration::from_secs(self.pace.first_byte_seconds);
        connection.first_byte = first.min(connection.whole);
        connection.waits = self.waits.clone();
        let engine = if let Some(engine) = &self.engine {
            engine.clone()
        } else {
            let engine = Engine::start().map_err(|cause| unusable(live, cause))?;
            self.engine.insert(engine).clone()
        };
        // Models behind one address share its limits, if it is a home to both or to none.
        let entry = self
            .pacers
            .entry((connection.base_url.trim_end_matches('/').to_owned(), live.home.is_some()));
        let slots = live.home.map(|home| home.slots);
        let setting = PaceSetting { slots, ..self.setting };
        let pacer = entry.or_insert_with(|| Arc::new(Pacer::new(setting)));
        let model = LiveModel::new(live.dialect.clone(), connection, engine, pacer.clone());
        let made = Arc::new(model.map_err(|cause| unusable(live, cause))?);
        self.live.push(made.clone());
        self.homes.push(live.home);
        Ok(made)
    }

    /// Does `work`. Once `ends`, no model is waited for any more.
    pub(super) fn until<T>(&self, ends: &(dyn Fn() -> bool + Sync), work: impl FnOnce() -> T) -> T {
        if self.live.is_empty() {
            return work();
        }
        self.waits.set_ended(false);
        let (working, ended) = mpsc::channel::<()>();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while ended.recv_timeout(StopToken::POLL) == Err(RecvTimeoutError::Timeout) {
                    if ends() {
                        return self.waits.set_ended(true);
                    }
                }
            });
            let done = work();
            drop(working);
            done
        })
    }

    /// Models whose server refused a JSON schema for verdicts, with what it said.
    pub(super) fn refused_schemas(&self) -> Vec<(String, String)> {
        let live = self.live.iter();
        live.filter_map(|live| Some((live.name().to_owned(), live.schema_refused()?))).collect()
    }

    /// Measured times of the calls that ended since the last call, as lines of `timings.jsonl`.
    pub(super) fn take_times(&self) -> Vec<serde_json::Value> {
        let mut waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        let live = self.live.iter().zip(&self.homes);
        let times = live.flat_map(|(live, home)| {
            let times = live.take_times();
            waited.extend(times.iter().filter_map(|time| Waited::of(time, (*home)?)));
            times
        });
        times
            .map(|time| {
                serde_json::json!({
                    "model": &*time.model,
                    "purpose": time.purpose,
                    "attempts": time.attempts,
                    "answered": time.is_answered,
                    "waited_us": microseconds(time.waited),
                    "took_us": microseconds(time.took),
                })
            })
            .collect()
    }
}

fn microseconds(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl Waited {
    /// Of a request that a strategy waited for.
    fn of(time: &CallTime, home: Home) -> Option<Self> {
        let own = match time.purpose {
            Purpose::Compaction | Purpose::Background | Purpose::Recovery => time.is_answered,
            Purpose::Agent | Purpose::Probe | Purpose::Qualification | Purpose::Judge => false,
        };
        let timing = home.timing.filter(|_| own)?;
        // It is one of our tokens.
        let usage = time.usage;
        let [new, read, output] =
            [usage.prompt() - usage.cache_read, usage.cache_read, usage.output]
                .map(|tokens| Tokens(whole(tokens.0 as f64 / home.counted.max(0.1))));
        let usage = Usage { cache_read: read, ..Usage::uncached(new, output) };
        let modelled = timing.milliseconds(1, &usage);
        let measured = 1_000.0 * time.took.as_secs_f64();
        Some(Self { modelled, measured })
    }
}

impl Servers {
    /// How long strategies waited for servers on this machine, as modelled by the timing requests and as measured,
    /// in words; `None` where nothing was asked.
    pub(super) fn waited(&self) -> Option<String> {
        let waited = self.waited.lock().unwrap_or_else(PoisonError::into_inner);
        let measured: f64 = waited.iter().map(|one| one.measured).sum();
        let modelled: f64 = waited.iter().map(|one| one.modelled).sum();
        let ratios = waited.iter().map(|one| one.modelled / one.measured.max(1e-3));
        let mut off: Vec<f64> = ratios.map(|ratio| (ratio - 1.0).abs()).collect();
        off.sort_by(f64::total_cmp);
        let median = off.get(off.len() / 2)?;
        Some(format!(
            "strategies waited {:.1} s for {} of their own requests, {:.1} s as modelled by the timing requests \
             (half of them within {:.0} %)",
            measured / 1_000.0,
            waited.len(),
            modelled / 1_000.0,
            100.0 * median
        ))
    }
}

/// How long a server on this machine takes, by timing requests; `count` counts their tokens, and `nonce` makes
/// them new ones.
pub fn time_server(
    live: &LiveSetting,
    access: &Access<'_>,
    nonce: &str,
    count: &dyn Fn(&str) -> Tokens,
) -> Result<Result<ServerTiming, CallFailure>> {
    let connection = connection_to(live, access)?;
    let pacer = Arc::new(Pacer::new(PaceSetting {
        slots: live.home.map(|home| home.slots),
        ..PaceSetting::default()
    }));
    let engine = Engine::start().map_err(|cause| unusable(live, cause))?;
    let model = LiveModel::new(live.dialect.clone(), connection, engine, pacer)
        .map_err(|cause| unusable(live, cause))?;
    Ok(model.timed(nonce, count))
}

fn unusable(live: &LiveSetting, cause: HttpError) -> PlanError {
    PlanError::Http { model: live.dialect.model.clone(), place: live.place.clone(), cause }
}

/// Where a model is reached, and with which key.
///
/// A key of the environment goes only to the provider's own address, or to one that the environment
/// names: a scenario that names another address must name the key for it.
fn connection_to(live: &LiveSetting, access: &Access<'_>) -> Result<Connection> {
    let (key_name, url_name) = match live.dialect.provider {
        Provider::Anthropic => ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"),
        Provider::OpenAi => ("OPENAI_API_KEY", "OPENAI_BASE_URL"),
    };
    let from_environment = (access.variable)(url_name);
    let mut connection = match live.base_url.clone().or(from_environment.clone()) {
        Some(url) => Connection::to(url),
        None => Connection::public(live.dialect.provider),
    };
    let missing = |name: &str| PlanError::NoKey {
        model: live.dialect.model.clone(),
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
    connection.notice.clone_from(&access.notice);
    connection.key = key.map(|key| Secret::new(&key));
    if let Some(path) = &live.authority {
        connection.authority = Some(read_named("certificates", path, &live.place)?.into_bytes());
    }
    Ok(connection)
}
