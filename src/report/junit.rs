//! `JUnit` XML of one run: whether it is valid, and whether each strategy works at all.

use std::fmt::Write as _;

use crate::report::escape;
use crate::report::{Artifact, RenderError, Renderer, Report, Role};

/// Writes one test case for the controls, and one per strategy, which fails where the strategy is
/// broken: a session died, or a prompt would have been rejected.
#[derive(Debug, Clone, Copy, Default)]
pub struct Junit;

impl Renderer for Junit {
    fn format(&self) -> &'static str {
        "junit.xml"
    }

    fn render(&self, report: &Report) -> Result<Vec<Artifact>, RenderError> {
        let controls = report.controls().err().map(|invalid| invalid.to_string());
        let mut cases = vec![("controls".to_owned(), controls)];
        let rows = report
            .section("comparison")
            .map(|section| &section.table.rows);
        for row in rows
            .into_iter()
            .flatten()
            .filter(|row| row.role == Role::Strategy)
        {
            let broken = row.marks.iter().find(|mark| mark.starts_with("broken"));
            cases.push((row.name.clone(), broken.cloned()));
        }
        let failures = cases
            .iter()
            .filter(|(_, failure)| failure.is_some())
            .count();
        let counts = format!(
            "tests=\"{}\" failures=\"{failures}\" errors=\"0\"",
            cases.len()
        );
        let suite = escape::xml(&report.run.scenario);
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"proctor run\" {counts}>\n  <testsuite \
             name=\"{suite}\" {counts} skipped=\"0\">\n"
        );
        for (name, failure) in &cases {
            let name = escape::xml(name);
            let _ = write!(
                out,
                "    <testcase classname=\"proctor.{suite}\" name=\"{name}\""
            );
            let _ = match failure {
                None => writeln!(out, "/>"),
                Some(why) => {
                    let why = escape::xml(why);
                    writeln!(
                        out,
                        ">\n      <failure message=\"{why}\" type=\"broken\"/>\n    </testcase>"
                    )
                }
            };
        }
        out.push_str("  </testsuite>\n</testsuites>\n");
        Ok(vec![Artifact {
            name: "report.junit.xml".to_owned(),
            bytes: out.into_bytes(),
        }])
    }
}
