//! `proctor score`: another judge, or a panel, grades the answers of a run; nothing is replayed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;

use super::{Exit, Stop, judges, models, report, say};
use crate::model::{Answered, CallFailure, Model, ModelKind, Purpose, Request, bill};
use crate::probe::judge::{self, Judge, sentinel};
use crate::probe::{OTHER_ORDER, Unscored, Verdict};
use crate::record::journal::{Journal, Run};
use crate::record::verdicts::GivenVerdict;
use crate::record::{
    AnswerRecord, CellRecord, JudgeCalibration, KeptCall, LostCall, ProbeRecord, ProbeText,
};
use crate::report::Report;
use crate::tokens::{CharsPer4, CountedTexts, counter};
use crate::units::{Tokens, Usage};

/// Arguments of `proctor score`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Verdicts are added to `verdicts.jsonl` in the run's folder; the judge that was \
                        added last, or the panel, is the run's. What it said before is not asked \
                        again. Answers whose verdict is known are put to it first: a judge that \
                        misses too many of them is unfit, is asked no more, and the exit code is 102."
)]
pub(super) struct Args {
    /// Folder of the run
    run: PathBuf,
    /// The judge, as in `openai:gpt-5-mini`, or a table as in a scenario; several vote
    #[arg(long, value_name = "KIND:MODEL", required = true)]
    judge: Vec<String>,
    /// Grade all answers, and not only those that rules cannot grade
    #[arg(long)]
    all: bool,
    /// What `proctor calibrate -o` wrote of the judge, for the report; several times for several judges
    #[arg(long, value_name = "FILE")]
    calibration: Vec<PathBuf>,
    /// Requests under way at most
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    #[command(flatten)]
    asked: judges::Asked,
    #[command(flatten)]
    costs: judges::Costs,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    output: report::Output,
}

/// What was asked, by session, probe and percent.
pub(super) type Texts<'a> = BTreeMap<(&'a str, &'a str, u8), &'a ProbeText>;

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
    let open = answers(&run.cells, &texts, args.all);
    let named = judges::parse(&args.judge)?;
    let calibrations = calibrations(&args.calibration, &judges::names(&named))?;
    let connected = args
        .asked
        .connect_judges(&named, &args.run.join("cassette.jsonl"))?;
    let panel = connected.judges();
    let known = sentinels();
    let asked: Vec<Asked> = open.iter().map(Open::asked).collect();
    let all = known.iter().chain(&asked);
    let requests: Vec<Request> = all.map(|one| one.request.clone()).collect();
    let named_counter = counter(&run.manifest.counter);
    let counter = named_counter.unwrap_or_else(|| Arc::new(CharsPer4));
    args.costs.confirm(&connected, &requests, 1, &*counter)?;
    // The lock of the run's folder: nobody else writes to it meanwhile.
    let mut journal = Journal::open(&args.run, &run.manifest)?;
    let counts = CountedTexts::new(counter);
    let voters = Voters {
        panel,
        unfit: Vec::new(),
        counts: &counts,
    };
    let mut given = grade_all(&known, &voters, usize::from(args.jobs));
    // An unfit judge is not paid for verdicts that would not count.
    let unfit = panel.iter().filter(|judge| is_unfit(&given, judge.name()));
    let voters = Voters {
        unfit: unfit.map(|judge| judge.name().to_owned()).collect(),
        ..voters
    };
    given.extend(grade_all(&asked, &voters, usize::from(args.jobs)));
    models::finish(&connected)?;
    journal.keep_verdicts(&given)?;
    journal.keep_calibrations(&calibrations)?;
    drop(journal);
    for judge in panel {
        let of_judge = || given.iter().filter(|one| one.judge == judge.name());
        let met = of_judge().filter(|one| is_met(one)).count();
        let all = of_judge().filter(|one| one.sentinel.is_some()).count();
        if voters.unfit.iter().any(|unfit| unfit == judge.name()) {
            say(&format!(
                "judge {} meets {met} of {all} answers whose verdict is known: it is unfit, and was \
                 asked no more",
                judge.name()
            ));
            continue;
        }
        let graded = of_judge().filter(|one| one.sentinel.is_none());
        let is_unscored = |one: &&GivenVerdict| matches!(one.verdict, Verdict::Unscored { .. });
        say(&format!(
            "{} answers were given to judge {}, {} brought no verdict; it meets {met} of {all} answers \
             whose verdict is known",
            graded.clone().count(),
            judge.name(),
            graded.filter(is_unscored).count()
        ));
    }
    let run = Run::read(&args.run).context("cannot read the run back")?;
    let made = Report::of(&run.manifest, &run.cells);
    report::print_as(&made, args.json)?;
    args.output.write(&made)
}

/// Reads what was found out about the judges, each of whom must be one of these.
fn calibrations(files: &[PathBuf], judges: &str) -> anyhow::Result<Vec<JudgeCalibration>> {
    let mut all = Vec::new();
    for path in files {
        let shown = path.display();
        let wrong = |problem: String| {
            let problem = format!("cannot use calibration `{shown}`: {problem}");
            Stop::new(Exit::Invalid, problem)
        };
        let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let read = JudgeCalibration::read(&text).map_err(wrong)?;
        if read.judge != judges && !judges.split(" + ").any(|judge| judge == read.judge) {
            let problem = format!("it is of judge `{}`, and asked is {judges}", read.judge);
            return Err(wrong(problem).into());
        }
        all.push(read);
    }
    Ok(all)
}

/// What was asked and what is right, by session, probe and percent, as the reference was asked it.
pub(super) fn texts(cells: &[CellRecord]) -> Texts<'_> {
    let all = cells
        .iter()
        .flat_map(|cell| cell.probe_texts.iter().map(move |text| (cell, text)));
    all.map(|(cell, text)| {
        let key = (cell.session.as_str(), text.probe.as_str(), text.percent);
        (key, text)
    })
    .collect()
}

/// The answers of a run that are to be graded.
fn answers<'a>(cells: &'a [CellRecord], texts: &Texts<'a>, all: bool) -> Vec<Open<'a>> {
    let items = cells
        .iter()
        .flat_map(|cell| cell.probes.iter().map(move |item| (cell, item)));
    let given = items.flat_map(|(cell, item)| {
        let answers = (0..).zip(item.answers());
        answers.map(move |answer| (cell, item, answer))
    });
    given
        .filter_map(|(cell, item, answer)| open(cell, item, answer, texts, all))
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
    let text = *texts.get(&key)?;
    Some(Open {
        cell,
        item,
        turn,
        // Older records do not say what was asked in the other order.
        answer: Some(said).filter(|said| {
            let is_asked = !said.contains(OTHER_ORDER) || text.asked.is_some();
            (all || needs) && is_asked
        })?,
        text,
    })
}

/// One answer, as judges are asked about it.
struct Asked {
    request: Request,
    is_never_said: bool,
    /// The verdict as far as it is known before: all but what the judge says.
    about: GivenVerdict,
}

impl Open<'_> {
    fn asked(&self) -> Asked {
        Asked {
            request: Judge::request_of(&self.text.brief(), self.answer),
            is_never_said: self.item.kind.is_never_said(),
            about: GivenVerdict {
                session: self.cell.session.clone(),
                strategy: self.cell.strategy.clone(),
                repeat: self.cell.repeat,
                probe: self.item.probe.clone(),
                percent: self.item.percent,
                answer: self.turn,
                ..unsaid()
            },
        }
    }
}

/// The answers whose verdict is known: they come first, so that a judge is known by them.
fn sentinels() -> Vec<Asked> {
    let all = sentinel::sentinels().into_iter();
    all.map(|sentinel| Asked {
        request: sentinel.request(),
        is_never_said: sentinel.brief.is_never_said(),
        about: GivenVerdict {
            probe: sentinel.name.clone(),
            sentinel: Some(sentinel.is_right),
            ..unsaid()
        },
    })
    .collect()
}

/// A verdict that nobody has given yet, on nothing.
fn unsaid() -> GivenVerdict {
    GivenVerdict {
        session: String::new(),
        strategy: String::new(),
        repeat: 0,
        probe: String::new(),
        percent: 0,
        answer: 0,
        judge: String::new(),
        panel: Vec::new(),
        sentinel: None,
        kind: ModelKind::Live,
        rubric: judge::rubric_hash(),
        prompt: Some(judge::prompt_id()),
        verdict: Verdict::Unscored {
            reason: Unscored::JudgeFailed,
        },
        usage: Usage::default(),
        key: None,
        lost: Vec::new(),
    }
}

fn is_met(given: &GivenVerdict) -> bool {
    match (given.sentinel, given.verdict) {
        (Some(is_right), Verdict::Scored { score, .. }) => (score > 0.5) == is_right,
        (None, _) | (_, Verdict::Unscored { .. }) => false,
    }
}

/// Whether a judge misses too many of the answers whose verdict is known.
fn is_unfit(given: &[GivenVerdict], judge: &str) -> bool {
    let of_judge = given.iter().filter(|one| one.judge == judge);
    sentinel::is_unfit(of_judge.filter_map(|one| Some((one.sentinel?, is_met(one)))))
}

/// Who gives verdicts.
struct Voters<'a> {
    panel: &'a [Arc<dyn Model>],
    /// The names of those who are not asked.
    unfit: Vec<String>,
    counts: &'a CountedTexts,
}

/// Grades all answers, several at once; verdicts come back in the order of the answers, those of a
/// panel side by side.
fn grade_all(asked: &[Asked], voters: &Voters<'_>, workers: usize) -> Vec<GivenVerdict> {
    let panel = voters.panel;
    let names: Vec<String> = panel.iter().map(|judge| judge.name().to_owned()).collect();
    let names = if names.len() > 1 { names } else { Vec::new() };
    let next = AtomicUsize::new(0);
    let done: Mutex<BTreeMap<(usize, usize), GivenVerdict>> = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..workers.min(asked.len()).max(1) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(one) = asked.get(at) else { break };
                    for (voter, judge) in panel.iter().enumerate() {
                        let verdict = grade(one, &**judge, &names, voters);
                        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                        done.extend(verdict.map(|verdict| ((at, voter), verdict)));
                    }
                }
            });
        }
    });
    let done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.into_values().collect()
}

/// The verdict; nothing where only a recorded one would do and there is none.
fn grade(
    asked: &Asked,
    judge: &dyn Model,
    panel: &[String],
    voters: &Voters<'_>,
) -> Option<GivenVerdict> {
    if voters.unfit.iter().any(|unfit| unfit == judge.name()) {
        return Some(GivenVerdict {
            judge: judge.name().to_owned(),
            panel: panel.to_vec(),
            kind: judge.kind(),
            verdict: Verdict::Unscored {
                reason: Unscored::JudgeUnfit,
            },
            ..asked.about.clone()
        });
    }
    let counts = voters.counts;
    let answered = judge.answer(&asked.request, 0, counts);
    let lost = lost_of(&asked.request, &answered, counts);
    let reply = answered.answer;
    if matches!(
        reply,
        Err(CallFailure::NotRecorded | CallFailure::NotKept(_))
    ) {
        return None;
    }
    let verdict = match judge::read(&reply) {
        Ok(word) => judge::graded(word, asked.is_never_said),
        Err(reason) => Verdict::Unscored { reason },
    };
    let usage = answered.paid.map(|paid| paid.usage).unwrap_or_default();
    Some(GivenVerdict {
        judge: judge.name().to_owned(),
        panel: panel.to_vec(),
        kind: judge.kind(),
        verdict,
        usage,
        key: answered.key.map(|key| key.hex(KeptCall::DIGITS)),
        lost,
        ..asked.about.clone()
    })
}

/// What was paid for an answer and is kept nowhere.
fn lost_of(request: &Request, answered: &Answered, counts: &CountedTexts) -> Vec<LostCall> {
    let attempts = answered.failed.iter().map(|failure| LostCall {
        purpose: Purpose::Judge,
        usage: bill::failed(request, failure, counts),
        failure: Some(failure.to_string()),
    });
    let unkept = answered.paid.filter(|paid| !paid.is_kept);
    let unkept = unkept.map(|paid| LostCall {
        purpose: Purpose::Judge,
        usage: paid.usage,
        failure: None,
    });
    let all = attempts.chain(unkept);
    all.filter(|call| call.usage.total() > Tokens::ZERO)
        .collect()
}
