//! The imports of nearly every section.

pub(super) use crate::record::words::GradeVerdict;
pub(super) use crate::record::{Arm, CellRecord};
pub(super) use crate::report::build::Material;
pub(super) use crate::report::display::many;
pub(super) use crate::report::strategy_summary::StrategySummary;
pub(super) use crate::report::{
    Banner, BannerLevel, Cell, Column, Role, Row, RowMark, Section, Value, display,
};
pub(super) use crate::units::Tokens;
pub(super) use std::collections::BTreeMap;
