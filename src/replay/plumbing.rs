//! The facts that a program loses by itself: its cell once more, with a summariser that quotes every fact it is shown.

use std::sync::Arc;

use super::observe::survival::SurvivalObserver;
use super::{CellName, Models, NoClock, PreparedSession, Replayed, replay_observed};
use crate::model::offline::Offline;
use crate::model::scripted::{Scripted, response};
use crate::model::{Model as _, Response, Task};
use crate::probe::faithful::Faithful;
use crate::record::{End, Plumbing};
use crate::strategy::Strategy;
use crate::window::Window;

/// The facts that a strategy keeps under a faithful summariser; `None` where nothing was planted,
/// or the session does not end.
///
/// The models of the run have no part in it.
pub fn plumbing(
    prepared: &PreparedSession,
    strategy: Box<dyn Strategy>,
    window: Window,
) -> Option<Plumbing> {
    let plan = &prepared.watched.plan;
    let quotes = plan.quotes(prepared.session());
    let faithful = Faithful::new(quotes, window.tokens.0);
    let mut models = Models::offline(prepared.counts());
    let offline = Offline::new(prepared.counts().clone());
    let summariser = Scripted::new().reply(move |request| {
        if !matches!(request.task, Task::Summarise { .. }) {
            return offline.respond(request);
        }
        let (text, stop) = faithful.answer(request);
        Ok(Response { stop, ..response(text) })
    });
    models.summariser = Arc::new(summariser);
    let observer = Box::new(SurvivalObserver::new(plan.clone()));
    let name = CellName::first("");
    let replayed = Replayed::Strategy(strategy, window);
    let played = replay_observed(prepared, name, replayed, &models, &NoClock, vec![observer]);
    if played.record.end != End::Completed {
        return None;
    }
    let mut all = Plumbing::default();
    let items = played.record.probes.iter();
    for item in items.filter(|item| item.kind.is_searched()) {
        let weight = f64::from(item.weight);
        all.kept += weight * item.survival.score;
        all.weight += weight;
        all.items += 1;
    }
    (all.weight > 0.0).then_some(all)
}
