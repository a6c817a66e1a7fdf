//! `proctor score`: another judge grades the answers of a run; nothing is replayed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;

use super::{Exit, Stop, judges, models, report, say};
use crate::model::{CallFailure, Model, ModelKind};
use crate::probe::judge::{self, Judge, sentinel};
use crate::probe::{OTHER_ORDER, ProbeKind, Unscored, Verdict};
use crate::record::journal::{Journal, Run};
use crate::record::verdicts::GivenVerdict;
use crate::record::{AnswerRecord, CellRecord, ProbeRecord, ProbeText};
use crate::report::Report;

/// Arguments of `proctor score`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Verdicts are added to `verdicts.jsonl` in the run's folder; the judge that was \
                        added last is the run's. What it said before is not asked again."
)]
pub(super) struct Args {
    /// Folder of the run
    run: PathBuf,
    /// The judge, as in `openai:gpt-5-mini`, or a table as in a scenario
    #[arg(long, value_name = "KIND:MODEL")]
    judge: String,
    /// Grade all answers, and not only those that rules cannot grade
    #[arg(long)]
    all: bool,
    /// Requests under way at most
    #[arg(short, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    #[command(flatten)]
    asked: judges::Asked,
    #[command(flatten)]
    output: report::Output,
}

/// What was asked, by session, probe and percent.
type Texts<'a> = BTreeMap<(&'a str, &'a str, u8), &'a ProbeText>;

/// An answer that is to be graded.
struct Open<'a> {
    cell: &'a CellRecord,
    item: &'a ProbeRecord,
    /// Which of its answers, from 0.
    turn: u32,
    answer: &'a str,
    text: &'a ProbeText,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    args.output.check()?;
    let shown = args.run.display();
    let run = Run::read(&args.run).with_context(|| format!("cannot read the run in `{shown}`"))?;
    if run.manifest.reader.kind == ModelKind::Deterministic {
        let problem = format!("the run in `{shown}` holds no answers of a model");
        return Err(Stop::new(Exit::NothingSelected, problem)
            .with_hint("only runs whose reader is a model have answers that a judge can grade")
            .into());
    }
    let texts = texts(&run.cells);
    if texts.is_empty() {
        let problem = format!("the run in `{shown}` does not say what was asked");
        return Err(Stop::new(Exit::NothingSelected, problem)
            .with_hint("the cells of `full` hold the questions; a run that has them can be scored")
            .into());
    }
    let open: Vec<Open<'_>> = run
        .cells
        .iter()
        .flat_map(|cell| cell.probes.iter().map(move |item| (cell, item)))
        .flat_map(|(cell, item)| {
            let answers = (0..).zip(item.answers());
            answers.map(move |answer| (cell, item, answer))
        })
        .filter_map(|(cell, item, answer)| open(cell, item, answer, &texts, args.all))
        .collect();
    let named = judges::parse(&args.judge)?;
    let connected = args
        .asked
        .connect_judges(&named, &args.run.join("cassette.jsonl"))?;
    let Some(judge) = connected.judges().first() else {
        return Err(Stop::new(Exit::Usage, "no judge is named").into());
    };
    // The lock of the run's folder: nobody else writes to it meanwhile.
    let mut journal = Journal::open(&args.run, &run.manifest)?;
    sentinels(&**judge);
    let given = grade_all(&open, &**judge, usize::from(args.jobs));
    models::finish(&connected)?;
    journal.keep_verdicts(&given)?;
    drop(journal);
    let unscored = given
        .iter()
        .filter(|one| matches!(one.verdict, Verdict::Unscored { .. }))
        .count();
    say(&format!(
        "{} answers were given to judge {}, {unscored} brought no verdict",
        given.len(),
        judge.name()
    ));
    let run = Run::read(&args.run).context("cannot read the run back")?;
    let made = Report::of(&run.manifest, &run.cells);
    report::show(&made)?;
    args.output.write(&made)
}

/// What was asked and what is right, by session, probe and percent, as the reference was asked it.
fn texts(cells: &[CellRecord]) -> Texts<'_> {
    let all = cells
        .iter()
        .flat_map(|cell| cell.probe_texts.iter().map(move |text| (cell, text)));
    all.map(|(cell, text)| {
        let key = (cell.session.as_str(), text.probe.as_str(), text.percent);
        (key, text)
    })
    .collect()
}

fn open<'a>(
    cell: &'a CellRecord,
    item: &'a ProbeRecord,
    (turn, answer): (u32, &'a AnswerRecord),
    texts: &Texts<'a>,
    all: bool,
) -> Option<Open<'a>> {
    let said = answer.text.as_deref()?;
    let needs = matches!(
        answer.typed,
        Verdict::Unscored {
            reason: Unscored::NeedsJudge
        }
    );
    let key = (cell.session.as_str(), item.probe.as_str(), item.percent);
    Some(Open {
        cell,
        item,
        turn,
        // Two answers to one question in both orders are no text that a judge could grade.
        answer: Some(said).filter(|said| (all || needs) && !said.contains(OTHER_ORDER))?,
        text: texts.get(&key)?,
    })
}

/// Grades all answers, several at once; verdicts come back in the order of the answers.
fn grade_all(open: &[Open<'_>], judge: &dyn Model, workers: usize) -> Vec<GivenVerdict> {
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<usize, GivenVerdict>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(open.len()).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = open.get(at) else { break };
                    let verdict = grade(one, judge);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.extend(verdict.map(|verdict| (at, verdict)));
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

/// The verdict; nothing where only a recorded one would do and there is none.
fn grade(open: &Open<'_>, judge: &dyn Model) -> Option<GivenVerdict> {
    let request = Judge::request_of(&open.text.question, &open.text.gold, open.answer);
    let reply = judge.answer(&request, 0).answer;
    if matches!(reply, Err(CallFailure::NotRecorded)) {
        return None;
    }
    let verdict = match judge::read(&reply) {
        Ok(is_right) => judge::graded(is_right, open.item.kind == ProbeKind::Decoy, open.answer),
        Err(reason) => Verdict::Unscored { reason },
    };
    Some(GivenVerdict {
        session: open.cell.session.clone(),
        strategy: open.cell.strategy.clone(),
        repeat: open.cell.repeat,
        probe: open.item.probe.clone(),
        percent: open.item.percent,
        answer: open.turn,
        judge: judge.name().to_owned(),
        kind: judge.kind(),
        rubric: judge::rubric_hash(),
        verdict,
        usage: reply.map(|reply| reply.usage).unwrap_or_default(),
    })
}

/// Puts the answers whose verdict is known to the judge, and says how it did.
fn sentinels(judge: &dyn Model) {
    let all = sentinel::sentinels();
    let met = all
        .iter()
        .filter(|sentinel| {
            let request = Judge::request(&sentinel.probe, 0, sentinel.answer);
            judge::read(&judge.answer(&request, 0).answer) == Ok(sentinel.is_right)
        })
        .count();
    let count = all.len();
    say(&format!(
        "judge {} meets {met} of {count} answers whose verdict is known",
        judge.name()
    ));
}
