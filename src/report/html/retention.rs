//! Retention by kind and age: the share of planted items that survives as they get older.

use serde_json::{Value as Json, json};

use super::both;
use crate::metric::retention::{COMPACTIONS, Retention, TOKENS};
use crate::metric::survival::Score;
use crate::record::words::ProbeKind;
use crate::report::plot::curves;
use crate::report::{RenderError, Report, Role, display};

/// A picture, and one table for each kind with its own; `None` where no item has an age.
pub(super) fn tables(report: &Report) -> Result<Option<Json>, RenderError> {
    // The floor has no history to forget.
    let rows = report.compared().iter();
    let rows = rows.filter(|row| row.role != Role::Floor);
    let strategies = rows.map(|row| (&*row.name, report.retention(&row.name)));
    let strategies: Vec<(&str, Retention)> = strategies.collect();
    if strategies.iter().all(|(_, items)| items.0.is_empty()) {
        return Ok(None);
    }
    let picture = |kind| both(|width| curves::scene(report, kind, width));
    let kinds = ProbeKind::ALL.into_iter().filter_map(|kind| {
        let has_items = |items: &Retention| items.0.iter().any(|it| it.kind == kind);
        let own = strategies.iter().filter(|(_, items)| has_items(items));
        let rows = own.map(|(name, items)| {
            let tokens = items.by_tokens(|item| item.kind == kind);
            let compactions = items.by_compactions(|item| item.kind == kind);
            let cells: Vec<_> = tokens.iter().chain(&compactions).map(cell).collect();
            json!({ "name": name, "cells": cells })
        });
        let rows: Vec<Json> = rows.collect();
        let is_any = !rows.is_empty();
        is_any.then(|| {
            let picture = picture(Some(kind))?;
            Ok(json!({ "name": kind.name(), "picture": picture, "rows": rows }))
        })
    });
    let kinds: Result<Vec<Json>, RenderError> = kinds.collect();
    let tokens = TOKENS.iter().map(|(age, _)| format!("{age} tokens"));
    let compactions = COMPACTIONS.iter();
    let compactions = compactions.map(|(age, _)| format!("{age} compactions"));
    Ok(Some(json!({
        "picture": picture(None)?,
        "ages": tokens.chain(compactions).collect::<Vec<_>>(),
        "kinds": kinds?,
    })))
}

fn cell(age: &Score) -> Option<Json> {
    let mean = display::percent(age.mean()?);
    Some(json!({ "mean": mean, "items": age.items }))
}
