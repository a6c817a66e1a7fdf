//! The reader first: a few planted items under full history and under an empty context, before anything else is
//! asked. A reader that knows too little of them would be paid for a run that decides nothing.

use std::collections::BTreeSet;

use super::dependencies::Dependencies;
use super::{ArmIndex, ArmKind, CellError, LoadedSession, Plan, RunModels, prepare, replay_arm};
use crate::probe::{GradeVerdict, LOWEST_CEILING, Outcome, ProbeExt as _, Unscored};
use crate::record::ProbeRecord;
use crate::replay::{Models, PreparedSession, Repetitions};
use crate::stop::StopToken;

/// Items that are asked first, and in all where some of these are right and some are not.
const ITEMS: [usize; 2] = [5, 15];

/// With so few of the first items right, no more are asked.
const HOPELESS: usize = 1;

/// What a reader knew of the first items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FirstAnswers {
    /// Items that were asked.
    pub asked: usize,
    /// Of these, answered right with everything in front of the reader, or answered in a way that no judge graded.
    pub right: usize,
    /// Answered right with nothing in front of it, too: the context is not needed for them.
    pub guessed: usize,
    /// Said not to be there, with everything in front of it.
    pub abstained: usize,
    /// Not asked: not even the messages that hold the answer fit the window of the reader.
    pub too_long: usize,
}

impl FirstAnswers {
    /// Items that the reader knows from the context.
    fn known(&self) -> usize {
        self.right.saturating_sub(self.guessed)
    }

    /// Whether the answers of this reader decide nothing.
    pub fn are_too_few(&self) -> bool {
        (self.known() as f64) < LOWEST_CEILING * self.asked as f64
    }

    /// Whether it takes more items to know.
    fn are_few(&self) -> bool {
        self.known() > HOPELESS && self.known() < self.asked
    }

    /// What that means, in a sentence without its end.
    pub fn in_words(&self, reader: &str) -> String {
        let Self { asked, right, guessed, abstained, too_long } = self;
        if *too_long > 0 {
            return format!(
                "{too_long} of {asked} prompts do not fit the window of {reader}: start its server with a larger one"
            );
        }
        if abstained == asked {
            return format!(
                "{reader} abstains on {abstained} of {asked} planted items with all of the session in front of it: \
                 this model does not read these prompts"
            );
        }
        let guessed = match guessed {
            0 => String::new(),
            guessed => format!(", and {guessed} with none of it"),
        };
        format!(
            "{reader} answers {right} of {asked} questions right with all of the session in front of it{guessed}: \
             nothing could be said about strategies"
        )
    }
}

impl Plan {
    /// Asks the reader the first items. `None` where there is no reader or too little to ask, or where an answer did
    /// not come: the run will say why. Once `stop` is requested no answer is waited for.
    pub fn ask_reader_first(&self, stop: &StopToken) -> Option<FirstAnswers> {
        let models = self.models()?;
        models.servers.until(&|| stop.is_requested(), || self.first_of(models))
    }

    fn first_of(&self, models: &RunModels) -> Option<FirstAnswers> {
        self.scenario.models.reader.as_ref()?;
        let sessions = self.sessions.iter().zip(&self.manifest.sessions);
        let enough = sessions.filter(|(loaded, _)| self.first_items(loaded).len() >= ITEMS[0]);
        let (loaded, _) = enough.min_by_key(|(_, entry)| entry.tokens)?;
        let id = loaded.id();
        let items = self.first_items(loaded);
        let mut scenario = self.scenario.clone();
        scenario.strategies.clear();
        scenario.selection.items = None;
        let last = scenario.selection.points.last().copied();
        scenario.selection.points = last.into_iter().collect();
        scenario.models.asking.qualifies = false;
        let mut answers = FirstAnswers::default();
        for most in ITEMS {
            scenario.selection.only = items.iter().take(most).copied().collect();
            let plan = self.variant(scenario.clone(), &|session| session == id);
            let prepared = prepare(&plan, &plan.sessions[0], loaded.probes.clone()).ok()?;
            let mut own = models.for_session(prepared.counts());
            own.times = Repetitions::default();
            answers = plan.first_answers(&prepared, &own).ok()??;
            if !answers.are_few() {
                break;
            }
        }
        Some(answers)
    }

    /// The planted items of a session that are asked at its last point, in an order whose beginnings are spread over
    /// all of them: indices of probes.
    fn first_items(&self, loaded: &LoadedSession) -> Vec<usize> {
        let selection = &self.scenario.selection;
        let items = loaded.items(selection);
        let points = selection.ask_points(loaded.calls.len());
        let last = points.last().map(|(_, call)| *call);
        let asked_last = items.iter().filter(|item| Some(item.call) == last);
        let planted: BTreeSet<usize> = asked_last
            .map(|item| item.probe)
            .filter(|probe| !loaded.probes[*probe].kind().is_never_said())
            .collect();
        let step = (planted.len() / ITEMS[0]).max(1);
        let numbered = planted.iter().enumerate();
        let (first, others): (Vec<_>, Vec<_>) = numbered.partition(|(at, _)| at % step == 0);
        first.into_iter().chain(others).map(|(_, probe)| *probe).collect()
    }

    /// The answers under full history and under an empty context; `None` where one did not come.
    fn first_answers(
        &self,
        prepared: &PreparedSession,
        models: &Models,
    ) -> Result<Option<FirstAnswers>, CellError<'_>> {
        let followed = Dependencies::new(BTreeSet::new(), []);
        let mut verdicts: Vec<Vec<GradeVerdict>> = Vec::new();
        for kind in [ArmKind::Full, ArmKind::Empty] {
            let arm = ArmIndex { kind, repeat: 0 };
            let replay = replay_arm(self, (0, prepared), arm, &followed, models, Vec::new())?;
            if let Some(judges) = &models.judge {
                judges.fitness.give_lost(replay.record.lost_calls);
            }
            if replay.unanswered.is_some() {
                return Ok(None);
            }
            let probes = replay.record.probes.iter();
            verdicts.push(probes.filter_map(ProbeRecord::verdict).collect());
        }
        let with_empty = verdicts[0].iter().zip(&verdicts[1]);
        let mut answers = FirstAnswers::default();
        for (full, empty) in with_empty {
            answers.too_long += usize::from(*full == GradeVerdict::unscored(Unscored::TooLong));
            let (full, empty) = (outcome(full), outcome(empty));
            let right = full.is_none_or(|full| full == Outcome::Right);
            answers.asked += 1;
            answers.right += usize::from(right);
            answers.guessed += usize::from(right && empty == Some(Outcome::Right));
            answers.abstained += usize::from(full == Some(Outcome::Abstained));
        }
        Ok(Some(answers).filter(|answers| answers.asked > 0))
    }
}

/// How an item was answered; `None` where the answer may be right, and nobody could grade it.
fn outcome(verdict: &GradeVerdict) -> Option<Outcome> {
    match verdict {
        GradeVerdict::Scored { outcome, .. } => Some(*outcome),
        GradeVerdict::Unscored { reason } => match reason {
            Unscored::NeedsJudge
            | Unscored::JudgeFailed
            | Unscored::Unparsable
            | Unscored::Split
            | Unscored::JudgeUnfit => None,
            Unscored::NoAnswer | Unscored::Refused | Unscored::Rejected | Unscored::TooLong => {
                Some(Outcome::Wrong)
            }
        },
    }
}
