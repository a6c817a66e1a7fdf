//! `JUnit` XML, for build servers that show tests.

use std::fmt::Write as _;

use super::escape::xml;
use super::{Report, Role, Subject};

/// Checks of one run or strategy.
pub(crate) struct Suite {
    pub(crate) name: String,
    pub(crate) cases: Vec<Case>,
}

/// One check.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) outcome: Outcome,
    pub(crate) messages: Vec<String>,
}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Passed,
    /// With the type of the failure.
    Failed(&'static str),
    Skipped,
}

/// The test cases of a run: one for the controls, and one per strategy, which fails where the
/// strategy is broken; of a comparison one per strategy and gated metric.
pub(super) fn render(report: &Report) -> String {
    let (name, suites) = match &report.subject {
        Subject::Comparison(comparisons) => ("proctor gate", comparisons.suites()),
        Subject::Run | Subject::Sweep(_) => ("proctor run", vec![of_run(report)]),
    };
    let counts = counts(&suites.iter().flat_map(|suite| &suite.cases));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"{name}\" {counts}>\n"
    );
    for suite in &suites {
        write_suite(&mut out, suite);
    }
    out.push_str("</testsuites>\n");
    out
}

fn of_run(report: &Report) -> Suite {
    let case = |name: &str, failure: Option<String>| Case {
        name: name.to_owned(),
        outcome: match failure {
            Some(_) => Outcome::Failed("broken"),
            None => Outcome::Passed,
        },
        messages: failure.into_iter().collect(),
    };
    let controls = report.controls().err().map(|invalid| invalid.to_string());
    let strategies = report.compared().iter();
    let strategies = strategies.filter(|row| row.role == Role::Strategy);
    let of_strategies = strategies.map(|row| {
        let mut marks = row.marks.iter();
        case(
            &row.name,
            marks.find(|mark| mark.starts_with("broken")).cloned(),
        )
    });
    Suite {
        name: report
            .run
            .as_ref()
            .map_or(String::new(), |run| run.scenario.clone()),
        cases: std::iter::once(case("controls", controls))
            .chain(of_strategies)
            .collect(),
    }
}

fn counts<'a>(cases: &(impl Iterator<Item = &'a Case> + Clone)) -> String {
    let count = |is_meant: fn(Outcome) -> bool| {
        let cases = cases.clone();
        cases.filter(|case| is_meant(case.outcome)).count()
    };
    format!(
        "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
        count(|_| true),
        count(|outcome| matches!(outcome, Outcome::Failed(_))),
        count(|outcome| outcome == Outcome::Skipped)
    )
}

fn write_suite(out: &mut String, suite: &Suite) {
    let name = xml(&suite.name);
    let counts = counts(&suite.cases.iter());
    let _ = writeln!(out, "  <testsuite name=\"{name}\" {counts}>");
    for case in &suite.cases {
        let says = xml(&case.messages.join("; "));
        let element = match case.outcome {
            Outcome::Passed if says.is_empty() => String::new(),
            Outcome::Passed => format!("<system-out>{says}</system-out>"),
            Outcome::Failed(kind) => format!("<failure message=\"{says}\" type=\"{kind}\"/>"),
            Outcome::Skipped => format!("<skipped message=\"{says}\"/>"),
        };
        let case = xml(&case.name);
        let _ = write!(
            out,
            "    <testcase classname=\"proctor.{name}\" name=\"{case}\""
        );
        let _ = match element.as_str() {
            "" => writeln!(out, "/>"),
            element => writeln!(out, ">\n      {element}\n    </testcase>"),
        };
    }
    out.push_str("  </testsuite>\n");
}
