//! `proctor judge`: grades the answers of a run again, and tests a judge against people's labels.

use std::collections::BTreeMap;
use std::path::Path;

use super::{Exit, Result, stop_with};
use crate::model::Request;
use crate::probe::judge::JudgeTask;
use crate::probe::judge::known_answer::known_answers;
use crate::record::{AnswerRecord, CellRecord, ProbeRecord, ProbeText};

mod score;
mod test;

/// Commands below `proctor judge`.
#[derive(Debug, clap::Subcommand)]
pub(super) enum JudgeAction {
    /// Grade the answers of a run with another judge, without replaying it
    Score(score::Args),
    /// Compare a judge with people's labels, and say whether to trust it
    Test(test::Args),
}

pub(super) fn run(action: &JudgeAction) -> Result<Exit> {
    match action {
        JudgeAction::Score(args) => score::run(args),
        JudgeAction::Test(args) => test::run(args),
    }
}

/// Questions with their right answers, by session, probe and percent.
type ProbeTexts<'a> = BTreeMap<(&'a str, &'a str, u8), &'a ProbeText>;

/// An answer of a run, with its question.
struct RunAnswer<'a> {
    cell: &'a CellRecord,
    item: &'a ProbeRecord,
    /// Which of the answers to its question, from 0.
    turn: u32,
    answer: &'a AnswerRecord,
    text: &'a ProbeText,
}

/// The questions of a run, as the reference was asked them.
fn texts(cells: &[CellRecord]) -> ProbeTexts<'_> {
    let all = cells.iter().flat_map(|cell| cell.probe_texts.iter().map(move |text| (cell, text)));
    all.map(|(cell, text)| {
        let key = (cell.session.as_str(), text.probe.as_str(), text.percent);
        (key, text)
    })
    .collect()
}

/// The answers of a run whose question is known.
fn answers<'a>(
    cells: &'a [CellRecord],
    texts: &ProbeTexts<'a>,
) -> impl Iterator<Item = RunAnswer<'a>> {
    let items = cells.iter().flat_map(|cell| cell.probes.iter().map(move |item| (cell, item)));
    items.flat_map(move |(cell, item)| {
        let text = texts.get(&(&*cell.session, &*item.probe, item.percent));
        let known = text.map(|text| (0..).zip(item.answers()).map(move |one| (one, *text)));
        let answers = known.into_iter().flatten();
        answers.map(move |((turn, answer), text)| RunAnswer { cell, item, turn, answer, text })
    })
}

/// The end of a command about the answers of a run that has none.
fn no_answers(folder: &Path) -> Result<Exit> {
    let shown = folder.display();
    let problem = format!("the run in `{shown}` holds no answers with their questions");
    let hint = "only runs whose reader answered, and that have cells of `full`, have them";
    stop_with(Exit::NothingSelected, problem, hint)
}

/// The answers of known verdict that a judge may be shown.
fn known_requests() -> Vec<Request> {
    let both = [JudgeTask::Wide, JudgeTask::Narrow].into_iter();
    let known = both.flat_map(known_answers);
    known.map(|known| known.request()).collect()
}
