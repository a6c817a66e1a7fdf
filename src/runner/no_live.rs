//! In place of the servers of live models, in a build without HTTP: there are none.

#![expect(clippy::unused_self, reason = "with the feature `http` there are servers")]

use std::sync::Arc;

use super::{Access, PlanError, Result};
use crate::model::Model;
use crate::scenario::{LiveSetting, RequestPace};

#[derive(Debug)]
pub(super) struct Servers;

impl Servers {
    pub(super) fn new(_: RequestPace) -> Self {
        Self
    }

    pub(super) fn connect(&self, live: &LiveSetting, _: &Access<'_>) -> Result<Arc<dyn Model>> {
        Err(PlanError::NoHttp { model: live.dialect.model.clone(), place: live.place.clone() })
    }

    pub(super) fn until<T>(&self, _: &(dyn Fn() -> bool + Sync), work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(super) fn refused_schemas(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    pub(super) fn waited(&self) -> Option<String> {
        None
    }

    pub(super) fn take_times(&self) -> Vec<serde_json::Value> {
        Vec::new()
    }
}
