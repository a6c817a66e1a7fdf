//! Checks a strategy: the laws that it owes the provider, the model and the user, over small sessions.
//!
//! A law *must* hold, or *should*: the first kind fails a check, the second is a finding. A scene that breaks a law is
//! made smaller for as long as it still does, so that a finding shows little more than its cause; and the outcome says
//! which laws had no chance to be broken.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rayon::prelude::*;

use self::laws::{ANSWERS, About, CheckLaw, Judged, LAWS, StrategyFacts};
use self::play::{Played, Plays};
use self::world::Matter;
use crate::session::Session;
use crate::stop::StopToken;
use crate::strategy::StrategySpec;
use crate::strategy::external::ProgramError;
use crate::strategy::external::protocol::{Hello, ProgramKind};
use crate::units::Tokens;

mod laws;
mod play;
mod smaller;
mod world;

/// How a strategy is checked.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Decides what happens in the sessions.
    pub seed: u64,
    /// Laws that the strategy breaks on purpose, each with the reason.
    pub allowed: BTreeMap<String, String>,
    /// Laws that are looked at alone; empty means all.
    pub only: BTreeSet<String>,
    /// Requested when the time is over: what is not judged by then is said to be so.
    pub stop: StopToken,
}

/// How bad it is to break a law.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LawLevel {
    /// The check fails.
    Must,
    /// It is a finding.
    Should,
}

impl LawLevel {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Should => "should",
        }
    }
}

/// The state of a law after a check.
#[derive(Debug, Clone)]
pub enum LawState {
    /// It was kept, in so many sessions that could have shown otherwise.
    Held(usize),
    /// It was broken.
    Broken(Box<BrokenLaw>),
    /// No session gave it a chance to be broken.
    NoChance,
    /// It is not asked of strategies of this kind.
    NotAsked,
    /// The strategy declares that it breaks it, for this reason.
    Declared(String),
    /// The strategy did not even answer.
    NotTried,
    /// The time was over before all sessions were judged.
    OutOfTime,
}

/// The outcome of one law.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The law's name.
    pub law: &'static str,
    /// How bad it is to break it.
    pub level: LawLevel,
    /// The behaviour that it asks for.
    pub expected: &'static str,
    /// Its state.
    pub state: LawState,
}

impl Checked {
    /// How it was broken.
    pub fn finding(&self) -> Option<&BrokenLaw> {
        match &self.state {
            LawState::Broken(finding) => Some(finding),
            _ => None,
        }
    }
}

/// A session in which a law is broken.
#[derive(Debug, Clone)]
pub struct BrokenLaw {
    /// The behaviour that was seen, with the call.
    pub got: String,
    /// The scene.
    pub scene: String,
    /// The window.
    pub window: Tokens,
    /// The smallest part of the scene that still breaks the law.
    pub session: Arc<Session>,
}

/// The outcome of a check.
#[derive(Debug, Clone)]
pub struct CheckOutcome {
    /// The kind that the strategy declares, else the one that was seen.
    pub kind: ProgramKind,
    /// Law by law.
    pub laws: Vec<Checked>,
    /// Sessions in which the strategy changed something, and how many there are.
    pub changed: (usize, usize),
}

impl CheckOutcome {
    /// Laws of this level that are broken.
    pub fn broken(&self, level: LawLevel) -> usize {
        let laws = self.laws.iter().filter(|checked| checked.level == level);
        laws.filter(|checked| checked.finding().is_some()).count()
    }
}

/// The names of all laws.
pub fn laws() -> impl Iterator<Item = &'static str> {
    LAWS.iter().map(|law| law.name)
}

/// Holds a strategy against every law, over sessions that come from the seed.
///
/// Where the strategy cannot even answer, the other laws are not tried; fails where its program does not start.
pub fn check(spec: &StrategySpec, settings: &Settings) -> Result<CheckOutcome, ProgramError> {
    let hello =
        spec.build().map_or_else(|_| Ok(Hello::default()), |strategy| strategy.declared())?;
    let scenes = world::scenes(settings.seed).into_iter();
    let plays: Vec<Plays<'_>> =
        scenes.map(|scene| Plays::of(spec, scene, &settings.stop)).collect();
    let answers =
        plays.first().map(|plays| (plays, judged(&LAWS[0], plays, &StrategyFacts::default())));
    let unanswered = answers.and_then(|(plays, judged)| match (unknown(&hello), judged) {
        (Some(got), _) | (None, Judged::Broken(got)) => Some((plays, got)),
        (None, Judged::Held | Judged::NoChance | Judged::OutOfTime) => None,
    });
    if let Some((first, got)) = unanswered {
        let laws = LAWS.iter().map(|law| match law.name {
            ANSWERS => {
                let finding = law.finding(first, got.clone(), &StrategyFacts::default());
                law.checked(LawState::Broken(Box::new(finding)))
            }
            _ => law.checked(LawState::NotTried),
        });
        return Ok(CheckOutcome {
            kind: hello.kind,
            laws: laws.collect(),
            changed: (0, plays.len()),
        });
    }
    plays.par_iter().for_each(|plays| _ = plays.usual());
    let known = strategy_facts(&plays);
    let kind = match hello.kind {
        ProgramKind::Other => seen(&plays, known.asks),
        kind => kind,
    };
    // One that asked no model so far may do so in a scene for which there was no time.
    let without_summaries = match kind {
        ProgramKind::Summarise => None,
        _ if known.is_whole || hello.kind != ProgramKind::Other => Some(LawState::NotAsked),
        _ => Some(LawState::OutOfTime),
    };
    let mut allowed = settings.allowed.clone();
    allowed.extend(hello.breaks.into_iter().map(|declared| {
        let reason = declared.reason;
        (declared.law, reason.unwrap_or_else(|| "the program declares it".to_owned()))
    }));
    let wanted =
        LAWS.iter().filter(|law| settings.only.is_empty() || settings.only.contains(law.name));
    let wanted: Vec<&CheckLaw> = wanted.collect();
    // All are judged before a scene is made smaller: that may take the rest of the time.
    let verdicts: Vec<Result<LawState, _>> = wanted
        .par_iter()
        .map(|law| law.verdict(&plays, &known, without_summaries.as_ref(), &allowed))
        .collect();
    let laws = wanted.par_iter().zip(verdicts).map(|(law, verdict)| {
        law.checked(match verdict {
            Ok(state) => state,
            Err((plays, got)) => LawState::Broken(Box::new(law.finding(plays, got, &known))),
        })
    });
    let fired = plays.iter().filter(|plays| plays.usual().has_fired());
    Ok(CheckOutcome { kind, changed: (fired.count(), plays.len()), laws: laws.collect() })
}

fn judged(law: &CheckLaw, plays: &Plays<'_>, known: &StrategyFacts) -> Judged {
    let lacks_scenes = law.is_about(About::AllScenes) && !known.is_whole;
    if lacks_scenes || !plays.is_whole() {
        return Judged::OutOfTime;
    }
    (law.judge)(plays, known)
}

impl CheckLaw {
    fn checked(&self, state: LawState) -> Checked {
        Checked { law: self.name, level: self.level, expected: self.expected, state }
    }

    /// The state of the law over all scenes; an error where it is broken, with the scene and how.
    fn verdict<'p>(
        &self,
        all: &'p [Plays<'p>],
        known: &StrategyFacts,
        without_summaries: Option<&LawState>,
        allowed: &BTreeMap<String, String>,
    ) -> Result<LawState, (&'p Plays<'p>, String)> {
        if let Some(reason) = allowed.get(self.name) {
            return Ok(LawState::Declared(reason.clone()));
        }
        if let Some(state) = without_summaries.filter(|_| self.is_about(About::Summaries)) {
            return Ok(state.clone());
        }
        let (mut held, mut is_late) = (0, false);
        for plays in all {
            if plays.scene.subject == Matter::Pictures && !self.is_about(About::Bytes) {
                continue;
            }
            match judged(self, plays, known) {
                // A play that ended early shows nothing of what is not there.
                Judged::Held if self.name != ANSWERS && plays.usual().failure().is_some() => {}
                Judged::NoChance => {}
                Judged::Held => held += 1,
                Judged::OutOfTime => is_late = true,
                Judged::Broken(got) => return Err((plays, got)),
            }
        }
        Ok(match held {
            _ if is_late => LawState::OutOfTime,
            0 => LawState::NoChance,
            held => LawState::Held(held),
        })
    }

    fn finding(&self, plays: &Plays<'_>, got: String, known: &StrategyFacts) -> BrokenLaw {
        let scene = plays.scene.clone();
        let (scene, got) = if self.is_about(About::Rates) || plays.stop.is_requested() {
            (scene, got)
        } else {
            smaller::smallest(scene, got, |scene| {
                let plays = Plays::of(plays.spec, scene.clone(), plays.stop);
                match judged(self, &plays, known) {
                    Judged::Broken(got) => Some(got),
                    Judged::Held | Judged::NoChance | Judged::OutOfTime => None,
                }
            })
        };
        BrokenLaw { got, scene: scene.name, window: scene.window, session: scene.session }
    }
}

/// A law of that name is not there: a declaration that says nothing.
fn unknown(hello: &Hello) -> Option<String> {
    let declared = hello.breaks.iter().find(|declared| !laws().any(|law| law == declared.law))?;
    Some(format!("`hello` declares that it breaks `{}`, which is not a law", declared.law))
}

/// The kind of a strategy, by its replays.
fn seen(plays: &[Plays<'_>], asks: bool) -> ProgramKind {
    let drops = plays.iter().any(|plays| {
        let played = plays.usual();
        let mut prompts = played.prompts.iter();
        prompts.any(|prompt| prompt.present(&plays.scene.session).len() < prompt.before)
    });
    let mut played = plays.iter().map(Plays::usual);
    match (asks, drops) {
        (true, _) => ProgramKind::Summarise,
        (false, true) => ProgramKind::Window,
        (false, false) if played.any(Played::has_fired) => ProgramKind::Clear,
        (false, false) => ProgramKind::Other,
    }
}

/// Collects the facts that take several scenes.
fn strategy_facts(plays: &[Plays<'_>]) -> StrategyFacts {
    let mut lines: BTreeMap<String, usize> = BTreeMap::new();
    let mut known = StrategyFacts {
        is_whole: plays.iter().all(Plays::is_whole),
        asks: plays.iter().any(|plays| !plays.usual().asked.is_empty()),
        ..StrategyFacts::default()
    };
    for plays in plays {
        let played = plays.usual();
        for line in laws::frames(played, &plays.scene.session) {
            *lines.entry(line).or_default() += 1;
        }
        known.fired += usize::from(played.has_fired());
        let events = played.record.compactions.iter();
        let first = events.map(|event| event.before).min();
        if let Some(first) = first.filter(|_| plays.scene.subject != Matter::Refused) {
            let least = known.triggers.entry(plays.scene.window).or_insert(first);
            *least = first.min(*least);
        }
        if plays.scene.subject == Matter::Growth {
            let fired = played.fired(known.asks).first().map(|event| event.before);
            known.fired_at.push((plays.scene.window, fired));
        }
    }
    let often = lines.into_iter().filter(|(_, times)| *times > 1);
    known.frames = often.map(|(line, _)| line).collect();
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_law() {
        let page = include_str!("../docs/reference/external-strategies.md");
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| `")).collect();
        for law in LAWS {
            let row = format!("| `{}` | {} | {} |", law.name, law.level.name(), law.expected);
            assert!(rows.contains(&&*row), "missing: {row}");
        }
        let names: BTreeSet<&str> = laws().collect();
        assert_eq!(names.len(), LAWS.len());
    }
}
