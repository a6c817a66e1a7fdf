//! Hard breaks in words: each lost fact by its question and value, where a run knows them.

use std::collections::{BTreeMap, BTreeSet};

use crate::compare::gate::{CONFIRM, GateResult};
use crate::compare::{Axis, ChangedProbe, NewDeath};
use crate::report::display;

/// One line per hard break; a fact that is lost at several points of a session has one line.
pub(super) fn lines(gated: &GateResult) -> Vec<String> {
    let mut lines: Vec<String> = gated.deaths.iter().map(death).collect();
    lines.extend(facts(&gated.lost).into_iter().chain(refusals(gated)));
    lines
}

/// The same in short: how many facts were lost, and each other hard break.
pub(super) fn in_short(gated: &GateResult) -> Vec<String> {
    let lost: BTreeSet<_> = gated.lost.iter().map(fact_of).collect();
    let facts = display::many(lost.len(), "lost fact", "lost facts");
    let facts = (!lost.is_empty()).then(|| format!("{facts} of high importance"));
    let deaths = gated.deaths.iter().map(death);
    facts.into_iter().chain(deaths).chain(refusals(gated)).collect()
}

/// Prompts that the provider would refuse, and coverage that is too low.
fn refusals(gated: &GateResult) -> impl Iterator<Item = String> {
    let rules = gated.broken_rules.iter().map(|rule| {
        format!(
            "broke rule {} in session {}, which the baseline keeps: the provider would refuse the prompt",
            rule.rule, rule.session
        )
    });
    let avoided = gated.avoided.iter().cloned();
    rules.chain(avoided).chain(gated.coverage.clone())
}

/// Possible hard breaks that may be chance: only repeats would show.
pub(super) fn unconfirmed(gated: &GateResult) -> Vec<String> {
    let why = format!("not confirmed: {CONFIRM} repeats on each side would tell it from chance");
    let lines = gated.unconfirmed_deaths.iter().map(death).chain(facts(&gated.unconfirmed));
    lines.map(|line| format!("{line}; {why}")).collect()
}

fn death(death: &NewDeath) -> String {
    let at = death.at.as_deref().unwrap_or("a call that is not known");
    let ((before, old), (after, new)) = (death.baseline, death.candidate);
    let session = &death.session;
    if (old, new) == (1, 1) {
        return format!("session {session} died at {at}, under the candidate only");
    }
    format!(
        "session {session} died in {after} of {new} repeats, first at {at}, and under the baseline in {before} of {old}"
    )
}

/// The id of a probe item and the point of the session at which it is asked, in percent.
pub(super) fn probe_and_percent(item: &str) -> (&str, &str) {
    item.rsplit_once('@').unwrap_or((item, "100"))
}

/// The key by which lost probes are one fact: session, item and value.
pub(super) fn fact_of(probe: &ChangedProbe) -> (&str, &str, Option<&str>) {
    let (id, _) = probe_and_percent(&probe.probe);
    let value = probe.text.as_ref().map(|text| &*text.value);
    (&probe.session, id, value)
}

/// Lost facts, in the order of their first losses.
fn facts(lost: &[ChangedProbe]) -> Vec<String> {
    let mut facts: Vec<(&ChangedProbe, Vec<&str>)> = Vec::new();
    let mut places = BTreeMap::new();
    for probe in lost {
        let (_, percent) = probe_and_percent(&probe.probe);
        let at = *places.entry(fact_of(probe)).or_insert(facts.len());
        match facts.get_mut(at) {
            Some((_, percents)) => percents.push(percent),
            None => facts.push((probe, vec![percent])),
        }
    }
    facts.into_iter().map(|(probe, percents)| lost_fact(probe, percents)).collect()
}

/// A lost fact in words, and the points of the session at which it was asked for.
fn lost_fact(probe: &ChangedProbe, mut percents: Vec<&str>) -> String {
    let (id, _) = probe_and_percent(&probe.probe);
    let fact = match &probe.text {
        Some(text) => display::fact(&text.question, &text.value),
        None => format!("the {} probe {id}", probe.kind),
    };
    let what = match probe.axis {
        Axis::Facts => fact,
        _ => format!("the answer to {fact}"),
    };
    let place = probe.lost_at.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
    percents.sort_by_key(|percent| (percent.len(), *percent));
    // Its answer may be lost as well.
    percents.dedup();
    let (session, points) = (&probe.session, percents.join(", "));
    format!("lost {what}{place}: session {session}, {id} asked at {points} %")
}
