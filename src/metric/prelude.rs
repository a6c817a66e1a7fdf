//! The imports of nearly every metric.

pub(super) use crate::metric::fidelity::Anchors;
pub(super) use crate::metric::pool::Observed;
pub(super) use crate::metric::{CellSummary, PooledValue};
pub(super) use crate::record::words::ProbeKind;
pub(super) use crate::record::words::{ModelKind, Purpose};
pub(super) use crate::record::{CellRecord, ProbeRecord};
pub(super) use crate::units::Tokens;
pub(super) use serde::Serialize;
pub(super) use std::collections::{BTreeMap, BTreeSet};
