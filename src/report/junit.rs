//! `JUnit` XML, for build servers that show tests.

use serde::Serialize;
use serde_json::json;

use super::{RenderError, Report, ReportData, template};
use crate::compare::NoteCode;

/// Checks of one run or strategy.
#[derive(Serialize)]
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) cases: Vec<TestCase>,
}

/// One check.
#[derive(Serialize)]
pub(crate) struct TestCase {
    pub(crate) name: String,
    pub(crate) outcome: CaseOutcome,
    pub(crate) messages: Vec<String>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CaseOutcome {
    Passed,
    /// With the type of the failure.
    Failed(&'static str),
    Skipped,
}

/// The test cases of a run: one for the controls, and one per strategy, which fails where the
/// strategy is broken; of a comparison one per strategy and gated metric.
pub(super) fn render(report: &Report) -> Result<String, RenderError> {
    let (name, suites) = match &report.subject {
        ReportData::Comparison(comparisons) => ("proctor compare --gate", comparisons.suites()),
        ReportData::Run | ReportData::Sweep(_) => ("proctor run", vec![of_run(report)]),
    };
    of_suites(name, &suites)
}

/// The file of these suites.
pub(crate) fn of_suites(name: &str, suites: &[Suite]) -> Result<String, RenderError> {
    let cases: Vec<&TestCase> = suites.iter().flat_map(|suite| &suite.cases).collect();
    let page = json!({ "name": name, "suites": suites, "cases": cases });
    template::render("junit.xml.j2", page)
}

fn case(name: &str, failure: Option<String>) -> TestCase {
    let outcome = match failure {
        Some(_) => CaseOutcome::Failed("broken"),
        None => CaseOutcome::Passed,
    };
    TestCase { name: name.to_owned(), outcome, messages: failure.into_iter().collect() }
}

fn of_run(report: &Report) -> Suite {
    let invalid = report.controls.check().err();
    let controls = invalid.map(|invalid| NoteCode::ControlsFailed.behind(&invalid.to_string()));
    let mut cases = vec![case("controls", controls)];
    cases.extend(report.strategies().map(|row| {
        let broken = row.marks.iter().find(|mark| mark.is_broken());
        case(&row.name, broken.map(|mark| NoteCode::Broken.behind(&mark.to_string())))
    }));
    let run = report.run.as_ref();
    let name = run.map_or(String::new(), |run| run.scenario.clone());
    Suite { name, cases }
}
