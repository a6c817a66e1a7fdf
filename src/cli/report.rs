//! `proctor report`: renders a run folder again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::builder::PossibleValuesParser;

use super::{Exit, Result, listed, one_of, outputs, print, stop_with, terminal};
use crate::record::journal::{MANIFEST, RecordedRun, timings, write_whole};
use crate::report::screen::{ScreenOptions, SortBy};
use crate::report::{Format, Report, ReportKind, endings, format, json};

/// Arguments of `proctor report`.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Folder of the run
    run: PathBuf,
    /// Also show the measured processor time of the strategies' own code
    #[arg(long)]
    timings: bool,
    #[command(flatten, next_help_heading = "Output")]
    output: ReportOutput,
    #[command(flatten)]
    printed: Printed,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    /// Show the page in a browser, while the run goes on: each load is made from the folder as it is then, and only
    /// this machine can reach it; Ctrl-C ends it
    #[arg(long, conflicts_with_all = ["json", "output", "tables", "timings"])]
    serve: bool,
    /// Port to listen at; 0 picks a free one
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "serve")]
    port: u16,
}

/// The tables of a report that are printed.
#[derive(Debug, Clone, Default, clap::Args)]
pub(super) struct PrintedTables {
    /// Print all tables instead of one screen, or the table of this name
    #[arg(
        long,
        value_name = "NAME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ALL_TABLES,
        value_parser = PossibleValuesParser::new(table_names()),
        hide_possible_values = true,
        conflicts_with = "json"
    )]
    pub(super) tables: Option<String>,
}

/// The parts of a run's report that are printed.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Printed {
    #[command(flatten)]
    pub(super) tables: PrintedTables,
    /// Sort strategies by `bill`, `tokens`, `facts`, `answers`, `actions`, `calls`, `waiting` or `name`
    #[arg(long, value_name = "BY", value_parser = one_of(SortBy::ALL, SortBy::name), hide_possible_values = true, default_value = "bill", hide_default_value = true)]
    sort: SortBy,
}

const ALL_TABLES: &str = "all";

fn table_names() -> impl Iterator<Item = &'static str> {
    crate::report::section_ids().into_iter().chain([ALL_TABLES])
}

impl Printed {
    /// Prints the report for people: one screen, all tables, or one of them.
    pub(super) fn print(&self, report: &Report, took: Option<Duration>) -> Result<Exit> {
        let sort = self.sort;
        self.tables.print(report, ScreenOptions { sort, took })
    }
}

impl PrintedTables {
    /// The same for another report, which has tables of other names.
    pub(super) fn of_another(&self) -> Self {
        let tables = self.tables.clone().filter(|name| name == ALL_TABLES);
        Self { tables }
    }

    /// Prints one screen, all tables, or one of them.
    pub(super) fn print(&self, report: &Report, options: ScreenOptions) -> Result<Exit> {
        let Some(name) = self.tables.as_deref() else {
            return print(&terminal().screen(report, options));
        };
        if name == ALL_TABLES {
            return print(&terminal().render(report));
        }
        let Some(section) = report.section(name) else {
            let ids = report.sections.iter().map(|section| section.id);
            let hint = format!("it has {}", listed(ids));
            let problem = format!("this report has no table `{name}`");
            return stop_with(Exit::Usage, problem, hint);
        };
        print(terminal().section(section).trim_start_matches('\n'))
    }
}

/// Where a report goes.
#[derive(Debug, clap::Args)]
pub(super) struct ReportOutput {
    /// Also write the report to this file; the ending sets the format: .html, .md for a comment,
    /// .full.md for every table, .json, .jsonl, .csv, .parquet (in a build with the feature `parquet`), .txt, .junit.xml, .otlp.json
    /// for a trace of evaluation events, or a picture: .pareto.svg, .tokens.svg, .bill.svg, .retention.svg (repeatable).
    /// `-` is standard output, in place of the screen: JSON, or as in `-.md`
    #[arg(short, long, value_name = "FILE", allow_hyphen_values = true)]
    output: Vec<PathBuf>,
}

pub(super) fn run(args: &Args) -> Result<Exit> {
    args.output.check(args.json)?;
    if args.serve {
        return serve(args);
    }
    let run = read_run(&args.run)?;
    let mut report = Report::of(&run.manifest, &run.cells);
    // A run does not say where its scenario and sessions are, nor which flags it had.
    report.next.clear();
    if args.timings {
        report = report.with_timings(&timings(&args.run)?);
    }
    if args.json {
        print_as(&report, true)?;
    } else if !args.output.takes_stdout() {
        args.printed.print(&report, None)?;
        let timings = report.section("timings").filter(|_| args.timings);
        if let Some(timings) = timings {
            print(&terminal().section(timings))?;
        }
    }
    args.output.write(&report)
}

#[cfg(not(feature = "http"))]
fn serve(_: &Args) -> Result<Exit> {
    super::without_http()
}

/// Serves the page of a run on this machine.
#[cfg(feature = "http")]
fn serve(args: &Args) -> Result<Exit> {
    use super::{chain, say};

    read_run(&args.run)?;
    let server = crate::proxy::page::PageServer::bind(args.port)
        .map_err(|error| super::CliError::new(Exit::Usage, chain(&error.into())))?;
    let stop = super::interrupt::stop_on_interrupt("ending");
    print(&format!("http://{}/\n", server.address()))?;
    say("each load shows the run as it is then; Ctrl-C ends");
    let folder = args.run.clone();
    let page = std::sync::Arc::new(move |session: Option<&str>| {
        page(&folder, session).map_err(|error| format!("{}\n", chain(&error)))
    });
    server.serve(page, &stop)?;
    Ok(Exit::Done)
}

/// The page of the folder as it is now.
#[cfg(feature = "http")]
fn page(folder: &Path, session: Option<&str>) -> Result<String> {
    let run = read_run(folder)?;
    let mut report = Report::of(&run.manifest, &run.cells);
    if let Some(id) = session {
        let known = run.manifest.sessions.iter().any(|session| session.id == id);
        anyhow::ensure!(known, "the run has no session `{id}`");
        report.first_session = Some(id.to_owned());
    }
    let format = format_of(ReportKind::Run, Path::new("report.html"))?;
    let bytes = format.render(&report)?.into_iter().map(|artifact| artifact.bytes).next();
    Ok(String::from_utf8(bytes.unwrap_or_default())?)
}

/// Reads a run folder.
pub(super) fn read_run(folder: &Path) -> Result<RecordedRun> {
    let shown = folder.display();
    if folder.is_file() {
        let problem = format!("`{shown}` is a file, and a run is a folder");
        let hint = "`proctor run` names the folder that it writes";
        return stop_with(Exit::Invalid, problem, hint);
    }
    if folder.is_dir() && !folder.join(MANIFEST).exists() {
        let problem = format!("`{shown}` is not the folder of a run: it has no `{MANIFEST}`");
        let inner = folder.read_dir().into_iter().flatten().flatten();
        let runs = inner.map(|entry| entry.path()).filter(|path| path.join(MANIFEST).exists());
        let lines: BTreeSet<String> = runs.map(|run| format!("\n  {}", run.display())).collect();
        let hint = if lines.is_empty() {
            "a run says at its end which folder it wrote; most are under `reports/`".to_owned()
        } else {
            format!("the runs in it:{}", String::from_iter(lines))
        };
        return stop_with(Exit::Invalid, problem, hint);
    }
    RecordedRun::read(folder).with_context(|| format!("cannot read the run in `{shown}`"))
}

/// Prints the report, for people or for programs.
pub(super) fn print_as(report: &Report, is_json: bool) -> Result<Exit> {
    if is_json { print(&json::render(report)?) } else { print(&terminal().render(report)) }
}

/// Refuses an ending that nothing writes, a place where nothing can be written and one that is written to twice, before any
/// work is done. With `is_json` standard output holds the results as JSON.
pub(super) fn check(kind: ReportKind, files: &[PathBuf], is_json: bool) -> Result<()> {
    if is_json && takes_stdout(files) {
        let problem = "`--json` cannot be used with `-o -`";
        return stop_with(Exit::Usage, problem, "leave one of them out");
    }
    for (at, path) in files.iter().enumerate() {
        let mut earlier = files[..at].iter();
        if earlier.any(|other| other == path || is_stdout(other) && is_stdout(path)) {
            let problem = format!("`{}` is named twice in this command", path.display());
            return stop_with(Exit::Usage, problem, "name another file to write");
        }
        let format = format_of(kind, path)?;
        outputs::check(path)?;
        if is_stdout(path) && SEVERAL_FILES.contains(&format.ending) {
            let problem = format!("`.{}` is more than one text", format.ending);
            return stop_with(Exit::Usage, problem, "name a file, as in `-o report.csv`");
        }
    }
    Ok(())
}

/// Formats of several tables, or of bytes that are no text.
const SEVERAL_FILES: [&str; 2] = ["csv", "parquet"];

/// Whether this name stands for standard output: `-`, and with the ending of a format `-.md`.
pub(super) fn is_stdout(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name == "-" || name == "/dev/stdout" || name.starts_with("-.")
}

/// Whether one of these files is standard output, so that nothing else is printed there.
pub(super) fn takes_stdout(files: &[PathBuf]) -> bool {
    files.iter().any(|path| is_stdout(path))
}

/// Writes a report to files.
pub(super) fn write(kind: ReportKind, report: &Report, files: &[PathBuf]) -> Result<()> {
    for path in files {
        let artifacts = format_of(kind, path)?.render(report)?;
        if is_stdout(path) {
            for artifact in artifacts {
                print(&String::from_utf8_lossy(&artifact.bytes))?;
            }
            continue;
        }
        for (at, artifact) in artifacts.iter().enumerate() {
            let path = match at {
                0 => path.clone(),
                // `out.csv` is written with `out.probes.csv`.
                _ => path.with_extension(&artifact.ending),
            };
            write_whole(&path, &artifact.bytes)?;
            say!("wrote `{}`", path.display());
        }
    }
    Ok(())
}

impl ReportOutput {
    pub(super) fn check(&self, is_json: bool) -> Result<()> {
        check(ReportKind::Run, &self.output, is_json)
    }

    /// Whether the report itself is what is printed.
    pub(super) fn takes_stdout(&self) -> bool {
        takes_stdout(&self.output)
    }

    /// Writes the files. The exit code says whether the controls held, those of the judges
    /// among them.
    pub(super) fn write(&self, report: &Report) -> Result<Exit> {
        write(ReportKind::Run, report, &self.output)?;
        let problem = match report.controls.check() {
            Ok(()) if report.unfit_judges.is_empty() => return Ok(Exit::Done),
            Ok(()) => format!(
                "unfit as a judge, by answers whose verdict is known: {}; its verdicts do not count",
                report.unfit_judges.join(", ")
            ),
            Err(invalid) => format!(
                "{invalid}\n hint: `proctor sessions facts --check FILE` says which facts of a file are wrong"
            ),
        };
        say!("error: {problem}");
        Ok(Exit::ControlsFailed)
    }
}

/// The format of a file, by its ending.
pub(super) fn format_of(kind: ReportKind, path: &Path) -> Result<&'static Format> {
    let name = match path.file_name().unwrap_or_default().to_string_lossy() {
        name if name == "-" || path == Path::new("/dev/stdout") => "report.json".into(),
        name => name,
    };
    if let Some(format) = format(kind, &name) {
        return Ok(format);
    }
    let shown = path.display();
    if cfg!(not(feature = "parquet")) && name.to_ascii_lowercase().ends_with(".parquet") {
        let problem = format!("this build writes no Parquet, and so not `{shown}`");
        let hint = "build it with `--features parquet`, or write `.csv`: the columns are the same";
        return stop_with(Exit::Usage, problem, hint);
    }
    let what = match kind {
        ReportKind::Run => "report",
        ReportKind::Comparison => "comparison",
        ReportKind::Sweep => "sweep",
    };
    let endings = listed(endings(kind).map(|ending| format!("`.{ending}`")));
    let hint = format!("the file's ending must be one of {endings}");
    let problem = format!("a {what} cannot be written to `{shown}`");
    stop_with(Exit::Usage, problem, hint)
}
