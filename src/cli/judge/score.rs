//! `proctor judge score`: another judge, or a panel, grades the answers of a run; nothing is replayed.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context as _;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;

use super::{RunAnswer, answers, known_requests, no_answers, texts};
use crate::bill::Scale;
use crate::cli::{CliError, Exit, Result, models, read_run, report, stop};
use crate::model::{CallFailure, Model, Request};
use crate::probe::judge::{self, JudgeTask};
use crate::probe::{GradeVerdict, Unscored};
use crate::record::JudgeCalibration;
use crate::record::journal::{Journal, RecordedRun};
use crate::record::verdicts::{self, GivenVerdict};
use crate::replay::{Fitness, RequestBill};
use crate::report::Report;
use crate::tokens::{CharsPer4, CountedTexts, counter};
use crate::units::{Usage, many};

/// Arguments of `proctor judge score`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Folder of the run
    run: PathBuf,
    /// The judge, as in `openai:gpt-5-mini`, or a table as in a scenario; several vote
    #[arg(long, value_name = "KIND:MODEL", required = true)]
    judge: Vec<String>,
    /// Grade all answers, not only those that rules cannot grade
    #[arg(long)]
    all: bool,
    /// The judge's figures from `proctor judge test -o`, for the report (repeatable)
    #[arg(long, value_name = "FILE")]
    calibration: Vec<PathBuf>,
    /// Most requests under way at once
    #[arg(short, long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=64))]
    jobs: u16,
    #[command(flatten, next_help_heading = "Models")]
    judges: models::JudgeOptions,
    /// Print the report as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    #[command(flatten, next_help_heading = "Output")]
    output: report::ReportOutput,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    args.output.check(args.json)?;
    let run = read_run(&args.run)?;
    let texts = texts(&run.cells);
    if answers(&run.cells, &texts).next().is_none() {
        return no_answers(&args.run);
    }
    let cassette = args.run.join("cassette.jsonl");
    let connected = args.judges.connect("--judge", &args.judge, &cassette)?;
    let calibrations = calibrations(&args.calibration, &models::names(&connected))?;
    let judges = &connected.judges;
    let graded: Vec<RunAnswer<'_>> =
        answers(&run.cells, &texts).filter(|one| one.is_graded(args.all)).collect();
    let mut requests = known_requests();
    requests.extend(graded.iter().map(|one| one.request(JudgeTask::Wide)));
    let counter = counter(&run.manifest.counter).unwrap_or_else(|| Arc::new(CharsPer4));
    args.judges.confirm(&connected, &[(&requests, 1)], &*counter)?;
    // The lock of the run's folder: no other process writes to it meanwhile.
    let mut journal = Journal::open(&args.run, &run.manifest)?;
    let threads = ThreadPoolBuilder::new().num_threads(usize::from(args.jobs)).build()?;
    let counts = CountedTexts::new(counter);
    let mut panel = Panel {
        judges,
        tasks: Vec::new(),
        prompt: judge::prompt_id(),
        counts: &counts,
        left_out: AtomicUsize::new(0),
        in_a_row: AtomicUsize::new(0),
    };
    let outcome = panel.qualify().and_then(|mut given| {
        given.extend(threads.install(|| panel.grade_all(&graded))?);
        Ok(given)
    });
    models::close(Some(&connected), true)?;
    let given = outcome?;
    journal.keep_verdicts(&given)?;
    journal.keep_calibrations(&calibrations)?;
    drop(journal);
    for (judge, task) in judges.iter().zip(&panel.tasks) {
        say_of(judge.name(), *task, &given);
    }
    let run = RecordedRun::read(&args.run).context("cannot read the run back")?;
    let made = Report::of(&run.manifest, &run.cells);
    if !args.output.takes_stdout() {
        report::print_as(&made, args.json)?;
    }
    let exit = args.output.write(&made)?;
    let left_out = panel.left_out.into_inner();
    if left_out > 0 {
        let verdicts = many(left_out, "verdict is", "verdicts are");
        say!("{verdicts} outstanding, because a judge gave no answer; the same command asks again");
    }
    Ok(match exit {
        Exit::Done if left_out > 0 => Exit::Outstanding,
        exit => exit,
    })
}

/// Reads calibrations, each of which must be of one of the judges.
fn calibrations(files: &[PathBuf], judges: &str) -> Result<Vec<JudgeCalibration>> {
    let mut calibrations = Vec::new();
    for path in files {
        let text = crate::files::read_to_string(path).map_err(|error| error.to_string());
        let read = text.and_then(|text| JudgeCalibration::read(&text));
        let own = read.and_then(|read| {
            if read.judge == judges || judges.split(" + ").any(|judge| judge == read.judge) {
                return Ok(read);
            }
            Err(format!("it is of judge `{}`, and asked is {judges}", read.judge))
        });
        calibrations.push(own.or_else(|problem| {
            let problem = format!("cannot use calibration `{}`: {problem}", path.display());
            stop(Exit::Invalid, problem)
        })?);
    }
    Ok(calibrations)
}

impl RunAnswer<'_> {
    /// Whether judges grade it: where rules give no verdict, or with `all`.
    fn is_graded(&self, all: bool) -> bool {
        let reason = Unscored::NeedsJudge;
        self.answer.text.is_some()
            && (all || self.answer.typed == GradeVerdict::Unscored { reason })
    }

    fn request(&self, task: JudgeTask) -> Request {
        let said = self.answer.text.as_deref().unwrap_or_default();
        task.request(&self.text.brief(), said)
    }
}

/// Whether a judge meets the known verdict.
fn is_met(given: &GivenVerdict) -> bool {
    matches!((given.sentinel, given.verdict), (Some(is_right), GradeVerdict::Scored { score, .. }) if (score > 0.5) == is_right)
}

/// After so many requests in a row that a judge gave no answer to, no other is made, as in a run.
const IN_A_ROW: usize = 3;

/// The judges who grade together.
struct Panel<'a> {
    judges: &'a [Arc<dyn Model>],
    /// Verdicts that a judge was asked for and did not give.
    left_out: AtomicUsize,
    in_a_row: AtomicUsize,
    /// The task of each; none for those who are asked no more.
    tasks: Vec<Option<JudgeTask>>,
    /// What identifies the prompts of all of them.
    prompt: String,
    counts: &'a CountedTexts,
}

impl Panel<'_> {
    /// Puts the answers whose verdict is known to each judge, as a run does, and notes the task that it is
    /// fit for: no verdict is paid for that would not count.
    fn qualify(&mut self) -> Result<Vec<GivenVerdict>, CliError> {
        let fitness = Fitness::default();
        let mut known = Vec::new();
        for judge in self.judges {
            let outcome = fitness.of(&**judge, self.counts);
            let results = outcome.map_err(|failure| models::unheard(&**judge, &failure))?;
            self.tasks.push(results.task);
            known.push((results, fitness.take_lost()));
        }
        let records = known.iter().flat_map(|(results, _)| &results.records);
        self.prompt = verdicts::prompt_of(&self.prompt, &verdicts::narrow_judges(records));
        let mut given = Vec::new();
        for (judge, (results, lost)) in self.judges.iter().zip(known) {
            let first = given.len();
            given.extend(results.records.iter().map(|record| GivenVerdict {
                probe: record.name.clone(),
                sentinel: Some(record.is_right),
                narrow: record.narrow.clone(),
                verdict: record.verdict,
                usage: record.usage,
                key: record.calls.first().map(|kept| kept.key.clone()),
                ..self.by(&**judge)
            }));
            if let Some(first) = given.get_mut(first) {
                first.lost = lost;
            }
        }
        Ok(given)
    }

    /// Grades all answers, several at once, until a judge cannot be asked; verdicts are in the order
    /// of the answers, those of the panel side by side.
    fn grade_all(&self, answers: &[RunAnswer<'_>]) -> Result<Vec<GivenVerdict>, CliError> {
        let all = answers.par_iter().flat_map_iter(|one| {
            let judges = self.judges.iter().zip(&self.tasks);
            judges.map(move |(judge, task)| self.grade(one, &**judge, *task))
        });
        let given: Vec<Option<GivenVerdict>> = all.collect::<Result<_, CliError>>()?;
        Ok(given.into_iter().flatten().collect())
    }

    /// A verdict of this judge, as one of the panel, before it was asked.
    fn by(&self, judge: &dyn Model) -> GivenVerdict {
        let names = self.judges.iter().map(|judge| judge.name().to_owned());
        GivenVerdict {
            session: String::new(),
            strategy: String::new(),
            repeat: 0,
            probe: String::new(),
            percent: 0,
            answer: 0,
            judge: judge.name().to_owned(),
            panel: names.filter(|_| self.judges.len() > 1).collect(),
            sentinel: None,
            narrow: None,
            kind: judge.kind(),
            rubric: judge::rubric_hash(),
            prompt: self.prompt.clone(),
            verdict: GradeVerdict::unscored(Unscored::JudgeUnfit),
            usage: Usage::default(),
            key: None,
            lost: Vec::new(),
        }
    }

    /// A verdict; `None` where the judge gave no answer to this one. It ends the command if it fails several times in a
    /// row, or in a way that any later request meets too.
    fn grade(
        &self,
        answer: &RunAnswer<'_>,
        judge: &dyn Model,
        task: Option<JudgeTask>,
    ) -> Result<Option<GivenVerdict>, CliError> {
        let (cell, item) = (answer.cell, answer.item);
        let about = GivenVerdict {
            session: cell.session.clone(),
            strategy: cell.strategy.clone(),
            repeat: cell.repeat,
            probe: item.probe.clone(),
            percent: item.percent,
            answer: answer.turn,
            ..self.by(judge)
        };
        let Some(task) = task else {
            return Ok(Some(about));
        };
        let request = answer.request(task);
        let answered = judge.answer(&request, 0, self.counts);
        if matches!(
            answered.answer,
            Err(CallFailure::Server(_)
                | CallFailure::Timeout
                | CallFailure::Cut
                | CallFailure::Unreadable)
        ) && self.in_a_row.fetch_add(1, Ordering::Relaxed) + 1 < IN_A_ROW
        {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return Ok(None);
        }
        models::heard(judge, &answered.answer)?;
        self.in_a_row.store(0, Ordering::Relaxed);
        let booked = RequestBill::new(&request, &answered, Scale::COUNTED, self.counts);
        Ok(Some(GivenVerdict {
            verdict: judge::verdict(task.read(&answered.answer), item.kind.is_never_said()),
            usage: answered.paid.unwrap_or_default(),
            key: booked.kept.map(|kept| kept.key),
            lost: booked.lost,
            ..about
        }))
    }
}

/// Says how many verdicts a judge gave, and what it is fit for.
fn say_of(judge: &str, task: Option<JudgeTask>, given: &[GivenVerdict]) {
    let mut given: Vec<_> = given.iter().filter(|one| one.judge == judge).collect();
    let narrow = task == Some(JudgeTask::Narrow);
    let known = given.extract_if(.., |one| one.sentinel.is_some());
    let known: Vec<_> = known.filter(|one| one.narrow.is_some() == narrow).collect();
    let (met, all) = (known.iter().filter(|one| is_met(one)).count(), known.len());
    let answers = given.len();
    given.retain(|one| matches!(one.verdict, GradeVerdict::Unscored { .. }));
    let unscored = given.len();
    let asked = match task {
        None => {
            return say!(
                "judge {judge} meets {met} of {all} answers whose verdict is known: it is unfit, and was \
                 asked no more"
            );
        }
        Some(JudgeTask::Wide) => "",
        Some(JudgeTask::Narrow) => ", with yes or no,",
    };
    say!(
        "{answers} answers were given to judge {judge}, {unscored} brought no verdict; it meets{asked} \
         {met} of {all} answers whose verdict is known"
    );
}
