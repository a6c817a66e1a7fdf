//! `proctor judge test`: a judge against people's labels.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::known_requests;
use crate::cli::{
    CliError, CliFacts, Exit, Result, has_ending, models, outputs, read_text, show, stop,
    stop_with, write_output,
};
use crate::model::Request;
use crate::probe::GradeVerdict;
use crate::probe::judge::{self, Brief, JudgeTask, Word};
use crate::record::calibration::FORMAT;
use crate::record::verdicts;
use crate::replay::Fitness;
use crate::report::escape;
use crate::runner::RunModels;
use crate::stats::calibration::{Calibration, LabelledAnswer, Rate, self_consistency};
use crate::tokens::{CharsPer4, CountedTexts};

mod sheet;

/// Arguments of `proctor judge test`.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct Args {
    /// Labelled answers: .csv with a header, or .jsonl
    #[arg(required_unless_present = "from_run")]
    labels: Option<PathBuf>,
    /// Write a sheet of answers to label, from this run, to the file of `--output`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["labels", "judge", "json"], requires = "output")]
    from_run: Option<PathBuf>,
    /// Most answers on the sheet
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, requires = "from_run", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    answers: u32,
    /// The judge, as in `openai:gpt-5-mini`, or a table as in a scenario; several vote
    #[arg(long, value_name = "KIND:MODEL")]
    judge: Vec<String>,
    /// How often to ask the judge about each answer, to see whether it agrees with itself
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    repeats: u32,
    /// File that keeps the judge's replies
    #[arg(long, value_name = "FILE")]
    #[arg(default_value = "calibration.cassette.jsonl")]
    cassette: PathBuf,
    /// Print the figures as JSON
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Also write the figures to this file, as JSON; with `--from-run` the sheet, .csv or .jsonl
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
    #[command(flatten, next_help_heading = "Models")]
    judges: models::JudgeOptions,
}

/// One row, as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct RawRow {
    question: String,
    reference: String,
    form: Option<String>,
    older: Value,
    others: Value,
    answer: String,
    label: Value,
    verdict: Value,
    strategy: Option<String>,
}

/// One row, read.
struct JudgedRow {
    brief: Brief,
    answer: String,
    label: Option<bool>,
    /// The verdict of each repeat, if the judge gave one.
    verdicts: Vec<Option<bool>>,
    strategy: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    if let (Some(folder), Some(path)) = (&args.from_run, &args.output) {
        return sheet::write(folder, args.answers, path);
    }
    args.output.iter().try_for_each(|file| outputs::check(file))?;
    // Clap asks for one of them.
    let labels = args.labels.as_deref().unwrap_or(Path::new(""));
    let mut rows = read(labels)?;
    let mut prompt = judge::prompt_id();
    let name = if !args.judge.is_empty() {
        let judges = &args.judges;
        let connected = judges.connect("--judge", &args.judge, &args.cassette)?;
        let of_rows = rows.iter().map(|row| row.request(JudgeTask::Wide));
        let (known, of_rows) = (known_requests(), of_rows.collect::<Vec<_>>());
        let requests: [(&[Request], u32); 2] = [(&known, 1), (&of_rows, args.repeats)];
        args.judges.confirm(&connected, &requests, &CharsPer4)?;
        let asked = ask(&mut rows, &connected, args.repeats);
        models::close(Some(&connected), true)?;
        prompt = verdicts::prompt_of(&prompt, &asked?);
        models::names(&connected)
    } else if rows.iter().any(|row| !row.verdicts.is_empty()) {
        "as in the file".to_owned()
    } else {
        let problem = format!("`{}` holds no verdict, and no judge is named", labels.display());
        let hint = "name one with `--judge`, or add a column `verdict`";
        return stop_with(Exit::Usage, problem, hint);
    };
    let figures = Agreement::of(name, prompt, &rows)?;
    let template = include_str!("../text/calibration.txt");
    show(args.json, FORMAT, &figures, template)?;
    if let Some(path) = &args.output {
        let mut bytes = serde_json::to_vec_pretty(&CliFacts::new(FORMAT, &figures))?;
        bytes.push(b'\n');
        write_output(path, &bytes)?;
    }
    Ok(Exit::Done)
}

/// Asks the judges about every row, each repeat as a request of its own; several vote. Each is given the task
/// that it is fit for, one that is unfit the wide one. Returns those with the narrow one, with its prompt.
fn ask(
    rows: &mut [JudgedRow],
    connected: &RunModels,
    repeats: u32,
) -> Result<BTreeMap<String, String>, CliError> {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    let fitness = Fitness::default();
    let mut known = Vec::new();
    for judge in &connected.judges {
        let results = fitness.of(&**judge, &counts);
        known.push(results.map_err(|failure| models::unheard(&**judge, &failure))?);
    }
    for row in rows {
        for repeat in 0..repeats {
            let mut verdicts = Vec::new();
            for (judge, known) in connected.judges.iter().zip(&known) {
                let task = known.task.unwrap_or_default();
                let reply = judge.answer(&row.request(task), repeat, &counts).answer;
                models::heard(&**judge, &reply)?;
                verdicts.push(judge::verdict(task.read(&reply), row.brief.is_never_said()));
            }
            row.verdicts.push(judge::vote(&verdicts).and_then(is_right));
        }
    }
    let records = known.iter().flat_map(|results| &results.records);
    Ok(verdicts::narrow_judges(records))
}

/// Whether a verdict calls the answer right, if it says anything.
fn is_right(verdict: GradeVerdict) -> Option<bool> {
    match verdict {
        GradeVerdict::Scored { score, .. } => Some(score > 0.5),
        GradeVerdict::Unscored { .. } => None,
    }
}

/// The rows of a file, in CSV where its ending says so, else one JSON object a line.
fn read(path: &Path) -> Result<Vec<JudgedRow>> {
    let text = read_text("", path, "check the path")?;
    let shown = path.display();
    let values = if has_ending(path, "csv") {
        csv_values(&text)
    } else {
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        lines.map(|(at, line)| (at, json_value(line))).collect()
    };
    if values.is_empty() {
        return stop(Exit::NothingSelected, format!("`{shown}` holds no answer"));
    }
    let mut rows = Vec::new();
    for (line, value) in values {
        rows.push(value.and_then(row).or_else(|problem| {
            let problem = format!("line {line} of `{shown}`: {problem}");
            let hint = "`proctor judge test --help` says what a row has";
            stop_with(Exit::Invalid, problem, hint)
        })?);
    }
    Ok(rows)
}

fn json_value(line: &str) -> Result<Value, String> {
    serde_json::from_str(line).map_err(|error| error.to_string())
}

/// Each record of a CSV file as an object of texts, with its line.
fn csv_values(text: &str) -> Vec<(usize, Result<Value, String>)> {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let headers = match reader.headers() {
        Ok(headers) => headers.clone(),
        Err(error) => return vec![(1, Err(format!("cannot read the header: {error}")))],
    };
    for wanted in ["question", "answer"] {
        if !headers.iter().any(|name| name.trim() == wanted) {
            let problem = format!(
                "there is no column `{wanted}`; the header has `{}`, which commas must separate",
                escape::plain(&headers.iter().collect::<Vec<&str>>().join("`, `"))
            );
            return vec![(1, Err(problem))];
        }
    }
    let records = (2..).zip(reader.records()).map(|(at, record)| match record {
        Err(error) => (at, Err(error.to_string())),
        Ok(record) => {
            let line = record.position().and_then(|at| line_of(text, at.byte()));
            let names = headers.iter().map(str::trim).map(str::to_owned);
            let fields = names.zip(record.iter().map(Value::from)).collect();
            (line.unwrap_or(at), Ok(Value::Object(fields)))
        }
    });
    records.collect()
}

/// The line of a record, from 1, where the reader says that it begins: with CRLF that is between the two.
fn line_of(text: &str, byte: u64) -> Option<usize> {
    let (before, rest) = text.split_at_checked(usize::try_from(byte).ok()?)?;
    let skipped = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
    let lines = [before, &rest[..skipped]].map(|part| part.matches('\n').count());
    Some(lines.iter().sum::<usize>() + 1)
}

fn row(value: Value) -> Result<JudgedRow, String> {
    let written: RawRow = serde_json::from_value(value).map_err(|error| error.to_string())?;
    for (name, text) in [("question", &written.question), ("answer", &written.answer)] {
        if text.trim().is_empty() {
            return Err(format!("`{name}` is empty"));
        }
    }
    let brief = Brief {
        form: written.form.filter(|form| !form.trim().is_empty()),
        older: texts("older", written.older)?,
        others: texts("others", written.others)?,
        ..Brief::new(&sheet::read(written.question), &sheet::read(written.reference))
    };
    let verdict = label("verdict", &written.verdict, &brief)?;
    Ok(JudgedRow {
        label: label("label", &written.label, &brief)?,
        brief,
        answer: sheet::read(written.answer),
        verdicts: verdict.map(Some).into_iter().collect(),
        strategy: written.strategy.filter(|name| !name.trim().is_empty()),
    })
}

/// Right, wrong, or not labelled.
fn label(name: &str, value: &Value, brief: &Brief) -> Result<Option<bool>, String> {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    Ok(match text.as_str() {
        "" => None,
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        text => {
            let Some(word) = Word::parse(text) else {
                return Err(format!(
                    "`{name}` must be a verdict, as `right` or `incomplete`, not `{text}`"
                ));
            };
            Some(is_right(judge::verdict(Ok(word), brief.is_never_said())) == Some(true))
        }
    })
}

/// Several values: a list, or one on each line.
fn texts(name: &str, value: Value) -> Result<Vec<String>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::String(text) => {
            let text = sheet::read(text);
            let lines = text.lines().filter(|line| !line.is_empty());
            Ok(lines.map(str::to_owned).collect())
        }
        list => serde_json::from_value(list)
            .map_err(|_| format!("`{name}` must be texts, one on each line")),
    }
}

impl JudgedRow {
    /// The request to a judge.
    fn request(&self, task: JudgeTask) -> Request {
        task.request(&self.brief, &self.answer)
    }

    /// The first verdict; the others only say whether the judge agrees with itself.
    fn verdict(&self) -> Option<bool> {
        self.verdicts.first().copied().flatten()
    }

    /// Label and verdict, where it has both.
    fn labelled(&self) -> Option<LabelledAnswer> {
        Some(LabelledAnswer { human: self.label?, judge: self.verdict()? })
    }
}

/// How far a judge says what people say.
#[derive(Serialize)]
struct Agreement {
    judge: String,
    rubric: String,
    prompt: String,
    answers: usize,
    unscored: usize,
    self_consistency: Option<f64>,
    all: Calibration,
    strategies: BTreeMap<String, Calibration>,
    unlabelled: UnlabelledAnswers,
}

/// Answers without a label that the judge graded, and how many it calls right.
#[derive(Serialize)]
struct UnlabelledAnswers {
    judged: usize,
    called_right: usize,
    corrected: Option<Rate>,
}

impl Agreement {
    fn of(judge: String, prompt: String, rows: &[JudgedRow]) -> Result<Self> {
        let labelled: Vec<LabelledAnswer> = rows.iter().filter_map(JudgedRow::labelled).collect();
        let Some(all) = Calibration::of(&labelled) else {
            let problem = "no answer has both a label and a verdict";
            return stop(Exit::NothingSelected, problem);
        };
        let mut groups: BTreeMap<String, Vec<LabelledAnswer>> = BTreeMap::new();
        for row in rows {
            if let (Some(name), Some(one)) = (&row.strategy, row.labelled()) {
                groups.entry(name.clone()).or_default().push(one);
            }
        }
        let verdicts = rows.iter().map(|row| row.verdicts.iter().copied().flatten());
        let verdicts: Vec<Vec<bool>> = verdicts.map(Iterator::collect).collect();
        let without: Vec<bool> =
            rows.iter().filter(|row| row.label.is_none()).filter_map(JudgedRow::verdict).collect();
        let by_strategy = groups.into_iter();
        let strategies = by_strategy.filter_map(|(name, own)| Some((name, Calibration::of(&own)?)));
        let called_right = without.iter().filter(|right| **right).count();
        Ok(Self {
            judge,
            rubric: judge::rubric_hash(),
            prompt,
            answers: rows.len(),
            unscored: rows.iter().filter(|row| row.verdict().is_none()).count(),
            self_consistency: self_consistency(&verdicts),
            strategies: strategies.collect(),
            unlabelled: UnlabelledAnswers {
                judged: without.len(),
                called_right,
                corrected: all.corrected(called_right, without.len()),
            },
            all,
        })
    }
}
