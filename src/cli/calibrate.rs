//! `proctor calibrate`: a judge against people's labels.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use serde::Deserialize;
use serde_json::json;

use super::{Exit, Stop, judges, models, print_json, prose, say};
use crate::model::Request;
use crate::probe::Verdict;
use crate::probe::judge::{self, Brief, Judge, Word};
use crate::record::calibration;
use crate::record::journal::write_whole;
use crate::report::escape;
use crate::runner::Connected;
use crate::stats::ConfidenceInterval;
use crate::stats::calibration::{Calibration, Labelled, self_consistency};
use crate::tokens::{CharsPer4, CountedTexts};

mod sheet;

/// Arguments of `proctor calibrate`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A row has `question`, `reference`, `answer`, and `label`, what people say: \
                        right or incomplete, stale, another's, invented, abstained (or correct, \
                        incorrect, true, false, 1, 0). `verdict` is what a judge said; without it \
                        `--judge` is asked. `form`, `older`, `others` and `strategy` are optional. \
                        Rows without a label are judged, and their share of right answers is \
                        corrected. `--from-run RUN -n 100 -o labels.csv` writes such rows from the \
                        answers of a run, for people to label."
)]
pub(super) struct Args {
    /// Labelled answers: .csv with a header, or .jsonl
    #[arg(required_unless_present = "from_run")]
    labels: Option<PathBuf>,
    /// Write a sheet of answers to label, from this run, to the file of `--output`
    #[arg(long, value_name = "RUN", conflicts_with_all = ["labels", "judge", "json"], requires = "output")]
    from_run: Option<PathBuf>,
    /// How many answers the sheet has at most
    #[arg(short = 'n', long, value_name = "N", default_value_t = 100, requires = "from_run", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    answers: u32,
    /// The judge, as in `openai:gpt-5-mini`, or a table as in a scenario; several vote
    #[arg(long, value_name = "KIND:MODEL")]
    judge: Vec<String>,
    /// How often the judge is asked about each answer, to see whether it agrees with itself
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=20))]
    repeats: u32,
    /// Where the judge's replies are kept
    #[arg(
        long,
        value_name = "FILE",
        default_value = "calibration.cassette.jsonl"
    )]
    cassette: PathBuf,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
    /// Also write the figures to this file, as JSON; with `--from-run` the sheet, .csv or .jsonl
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    asked: judges::Asked,
    #[command(flatten)]
    costs: judges::Costs,
}

/// One row, as it is written.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Written {
    question: String,
    reference: String,
    form: Option<String>,
    older: serde_json::Value,
    others: serde_json::Value,
    answer: String,
    label: serde_json::Value,
    verdict: serde_json::Value,
    strategy: Option<String>,
}

/// One row, read.
struct Row {
    brief: Brief,
    answer: String,
    label: Option<bool>,
    /// Of each time the judge was asked; nothing where it said nothing.
    verdicts: Vec<Option<bool>>,
    strategy: Option<String>,
}

pub(super) fn run(args: &Args) -> anyhow::Result<Exit> {
    let labels = match (&args.labels, &args.from_run, &args.output) {
        (_, Some(folder), Some(path)) => return sheet::write(folder, args.answers, path),
        (Some(labels), _, _) => labels,
        // Clap asks for one of them.
        (None, _, _) => return Err(Stop::new(Exit::Usage, "no file of labels is named").into()),
    };
    let mut rows = read(labels)?;
    let has_verdicts = rows.iter().any(|row| !row.verdicts.is_empty());
    let name = if !args.judge.is_empty() {
        let named = judges::parse(&args.judge)?;
        let connected = args.asked.connect_judges(&named, &args.cassette)?;
        let requests: Vec<Request> = rows.iter().map(Row::request).collect();
        args.costs
            .confirm(&connected, &requests, args.repeats, &CharsPer4)?;
        ask(&mut rows, &connected, args.repeats);
        models::finish(&connected)?;
        judges::names(&named)
    } else if has_verdicts {
        "as in the file".to_owned()
    } else {
        let problem = format!(
            "`{}` holds no verdict, and no judge is named",
            labels.display()
        );
        return Err(Stop::new(Exit::Usage, problem)
            .with_hint("name one with `--judge`, or add a column `verdict`")
            .into());
    };
    let figures = Figures::of(&rows)?;
    if args.json {
        print_json(&figures.json(&name))?;
    } else {
        prose::say(&figures.in_words(&name))?;
    }
    if let Some(path) = &args.output {
        let mut bytes = serde_json::to_vec_pretty(&figures.json(&name))?;
        bytes.push(b'\n');
        write_whole(path, &bytes)?;
        say(&format!("wrote `{}`", path.display()));
    }
    Ok(Exit::Done)
}

/// Asks the judges about every row, each repeat as a request of its own; several vote.
fn ask(rows: &mut [Row], connected: &Connected, repeats: u32) {
    let counts = CountedTexts::new(Arc::new(CharsPer4));
    for row in rows {
        let request = row.request();
        let said = |repeat: u32| {
            let judges = connected.judges().iter();
            let replies =
                judges.map(|judge| judge::read(&judge.answer(&request, repeat, &counts).answer));
            let verdicts: Vec<Verdict> = replies
                .map(|reply| match reply {
                    Ok(word) => judge::graded(word, row.brief.is_never_said()),
                    Err(reason) => Verdict::Unscored { reason },
                })
                .collect();
            match judge::vote(&verdicts)? {
                Verdict::Scored { score, .. } => Some(score > 0.5),
                Verdict::Unscored { .. } => None,
            }
        };
        row.verdicts = (0..repeats).map(said).collect();
    }
}

fn read(path: &Path) -> anyhow::Result<Vec<Row>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::new(Exit::Invalid, format!("cannot read `{shown}`: {error}")))?;
    let is_csv = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("csv"));
    let wrong = |line: usize, problem: String| {
        Stop::new(
            Exit::Invalid,
            format!("line {line} of `{shown}`: {problem}"),
        )
        .with_hint("`proctor calibrate --help` says what a row has")
    };
    let mut rows = Vec::new();
    if is_csv {
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let headers = reader.headers().context("cannot read the header")?.clone();
        let is_there = |wanted: &&str| headers.iter().any(|name| name.trim() == *wanted);
        let missing = ["question", "answer"].iter().find(|name| !is_there(name));
        if let Some(missing) = missing {
            let has: Vec<&str> = headers.iter().collect();
            let problem = format!(
                "there is no column `{missing}`; the header has `{}`, which commas must part",
                escape::plain(&has.join("`, `"))
            );
            return Err(wrong(1, problem).into());
        }
        for (at, record) in reader.records().enumerate() {
            let record = record.map_err(|error| wrong(at + 2, error.to_string()))?;
            let line = record.position().map_or(at + 2, |place| {
                usize::try_from(place.line()).unwrap_or(at + 2)
            });
            let fields: serde_json::Map<String, serde_json::Value> = headers
                .iter()
                .zip(&record)
                .map(|(name, value)| (name.trim().to_owned(), value.into()))
                .collect();
            rows.push(row(fields.into()).map_err(|problem| wrong(line, problem))?);
        }
    } else {
        for (at, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let value =
                serde_json::from_str(line).map_err(|error| wrong(at + 1, error.to_string()))?;
            rows.push(row(value).map_err(|problem| wrong(at + 1, problem))?);
        }
    }
    if rows.is_empty() {
        return Err(Stop::new(Exit::NothingSelected, format!("`{shown}` holds no answer")).into());
    }
    Ok(rows)
}

fn row(value: serde_json::Value) -> Result<Row, String> {
    let written: Written = serde_json::from_value(value).map_err(|error| error.to_string())?;
    for (name, text) in [("question", &written.question), ("answer", &written.answer)] {
        if text.trim().is_empty() {
            return Err(format!("`{name}` is empty"));
        }
    }
    let brief = Brief {
        form: written.form.filter(|form| !form.trim().is_empty()),
        older: listed("older", &written.older)?,
        others: listed("others", &written.others)?,
        ..Brief::new(
            &sheet::read(written.question),
            &sheet::read(written.reference),
        )
    };
    let verdict = said("verdict", &written.verdict, &brief)?;
    Ok(Row {
        label: said("label", &written.label, &brief)?,
        brief,
        answer: sheet::read(written.answer),
        verdicts: verdict.map(Some).into_iter().collect(),
        strategy: written.strategy.filter(|name| !name.trim().is_empty()),
    })
}

/// Right, wrong, or nothing said.
fn said(name: &str, value: &serde_json::Value, brief: &Brief) -> Result<Option<bool>, String> {
    let text = match value {
        serde_json::Value::Null => return Ok(None),
        serde_json::Value::Bool(said) => return Ok(Some(*said)),
        serde_json::Value::String(text) => text.trim().to_lowercase(),
        other => other.to_string(),
    };
    match text.as_str() {
        "" => Ok(None),
        "true" | "1" | "yes" => Ok(Some(true)),
        "false" | "0" | "no" => Ok(Some(false)),
        text => match Word::parse(text) {
            Some(word) => {
                let verdict = judge::graded(word, brief.is_never_said());
                Ok(Some(
                    matches!(verdict, Verdict::Scored { score, .. } if score > 0.5),
                ))
            }
            None => Err(format!(
                "`{name}` must be a verdict, as `right` or `incomplete`, not `{text}`"
            )),
        },
    }
}

/// Several values: a list, or one on each line.
fn listed(name: &str, value: &serde_json::Value) -> Result<Vec<String>, String> {
    let wrong = || format!("`{name}` must be texts, one on each line");
    match value {
        serde_json::Value::Null => Ok(Vec::new()),
        serde_json::Value::String(text) => {
            let text = sheet::read(text.clone());
            Ok(text
                .lines()
                .map(str::to_owned)
                .filter(|line| !line.is_empty())
                .collect())
        }
        serde_json::Value::Array(items) => {
            let texts = items.iter().map(|item| item.as_str().map(str::to_owned));
            texts.collect::<Option<_>>().ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

impl Row {
    /// What a judge is sent.
    fn request(&self) -> Request {
        Judge::request_of(&self.brief, &self.answer)
    }

    /// The first verdict; the others only say whether the judge agrees with itself.
    fn verdict(&self) -> Option<bool> {
        self.verdicts.first().copied().flatten()
    }
}

struct Figures {
    rows: usize,
    unscored: usize,
    consistency: Option<f64>,
    all: Calibration,
    by_strategy: BTreeMap<String, Calibration>,
    /// Answers without a label, and those of them that the judge calls right.
    unlabelled: (usize, usize),
}

impl Figures {
    fn of(rows: &[Row]) -> anyhow::Result<Self> {
        let both = |row: &&Row| {
            Some(Labelled {
                human: row.label?,
                judge: row.verdict()?,
            })
        };
        let labelled: Vec<Labelled> = rows.iter().filter_map(|row| both(&row)).collect();
        let Some(all) = Calibration::of(&labelled) else {
            let problem = "no answer has both a label and a verdict";
            return Err(Stop::new(Exit::NothingSelected, problem).into());
        };
        let mut groups: BTreeMap<String, Vec<Labelled>> = BTreeMap::new();
        for row in rows {
            if let (Some(name), Some(one)) = (&row.strategy, both(&row)) {
                groups.entry(name.clone()).or_default().push(one);
            }
        }
        let by_strategy = groups
            .into_iter()
            .filter_map(|(name, labelled)| Some((name, Calibration::of(&labelled)?)))
            .collect();
        let said: Vec<Vec<bool>> = rows
            .iter()
            .map(|row| row.verdicts.iter().copied().flatten().collect())
            .collect();
        let without = rows.iter().filter(|row| row.label.is_none());
        let unlabelled: Vec<bool> = without.filter_map(Row::verdict).collect();
        Ok(Self {
            rows: rows.len(),
            unscored: rows.iter().filter(|row| row.verdict().is_none()).count(),
            consistency: self_consistency(&said),
            all,
            by_strategy,
            unlabelled: (
                unlabelled.iter().filter(|right| **right).count(),
                unlabelled.len(),
            ),
        })
    }

    fn in_words(&self, judge: &str) -> String {
        let all = &self.all;
        let mut out = String::new();
        let judge = escape::plain(judge);
        let _ = writeln!(out, "judge {judge}: {}", all.fitness.name());
        let _ = writeln!(
            out,
            "  {} answers, {} labelled and judged, {} without a verdict",
            self.rows, all.labels, self.unscored
        );
        let consistency = self.consistency.map_or("not measured".to_owned(), percent);
        let _ = writeln!(out, "  agrees with itself on  {consistency}");
        let _ = writeln!(out, "  base rate of right     {}", percent(all.base_rate));
        let kappa = all
            .kappa
            .map_or("not defined".to_owned(), |kappa| format!("{kappa:.2}"));
        let _ = writeln!(out, "  Cohen's kappa          {kappa}");
        for (name, rate) in [
            ("sensitivity (q1)      ", &all.sensitivity),
            ("specificity (q0)      ", &all.specificity),
        ] {
            let _ = writeln!(out, "  {name} {}", estimate(rate.as_ref()));
        }
        let (called, judged) = self.unlabelled;
        if judged > 0 {
            let _ = writeln!(
                out,
                "  of {judged} answers without a label it calls {} right; corrected {}",
                percent(called as f64 / judged as f64),
                estimate(all.corrected(called, judged).as_ref())
            );
        }
        for (name, one) in &self.by_strategy {
            let _ = writeln!(
                out,
                "  {}: {} labels, sensitivity {}, specificity {}",
                escape::plain(name),
                one.labels,
                estimate(one.sensitivity.as_ref()),
                estimate(one.specificity.as_ref())
            );
        }
        out.push_str(
            "  calibrated: at least 100 labels, kappa of at least 0.6, q0 + q1 of at least 1.6;\n  \
             provisional: the same with fewer labels\n",
        );
        out
    }

    fn json(&self, judge: &str) -> serde_json::Value {
        let (called, judged) = self.unlabelled;
        let rate = |rate: Option<&(f64, ConfidenceInterval)>| {
            rate.map(|(value, interval)| {
                json!({ "value": value, "low": interval.lower_bound, "high": interval.upper_bound })
            })
        };
        let one = |one: &Calibration| {
            json!({
                "labels": one.labels,
                "base_rate": one.base_rate,
                "kappa": one.kappa,
                "sensitivity": rate(one.sensitivity.as_ref()),
                "specificity": rate(one.specificity.as_ref()),
                "verdict": one.fitness.name(),
            })
        };
        let strategies: serde_json::Map<String, serde_json::Value> = self
            .by_strategy
            .iter()
            .map(|(name, calibration)| (name.clone(), one(calibration)))
            .collect();
        json!({
            "format": calibration::FORMAT,
            "version": 1,
            "judge": judge,
            "rubric": judge::rubric_hash(),
            "prompt": judge::prompt_id(),
            "answers": self.rows,
            "unscored": self.unscored,
            "self_consistency": self.consistency,
            "all": one(&self.all),
            "strategies": strategies,
            "unlabelled": {
                "judged": judged,
                "called_right": called,
                "corrected": rate(self.all.corrected(called, judged).as_ref()),
            },
        })
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

fn estimate(rate: Option<&(f64, ConfidenceInterval)>) -> String {
    rate.map_or("not measured".to_owned(), |(value, interval)| {
        format!(
            "{} [{}, {}]",
            percent(*value),
            percent(interval.lower_bound),
            percent(interval.upper_bound)
        )
    })
}
