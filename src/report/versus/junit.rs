//! `JUnit` XML: one test case per strategy and gated metric, for build servers that show tests.

use std::fmt::Write as _;

use super::{Versus, breaks, change, interval, margin, rests_on};
use crate::report::escape::xml;
use crate::stats::gate::Verdict;

/// The gate as `JUnit` XML. `regressed` is a failure, `inconclusive` is skipped, and a failure where
/// `inconclusive_fails`.
pub fn render(versus: &Versus, inconclusive_fails: bool) -> String {
    let mut suites = String::new();
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for one in &versus.comparisons {
        let Some(gated) = &one.gated else { continue };
        let mut cases = String::new();
        let (mut own_tests, mut own_failures, mut own_skipped) = (0, 0, 0);
        let mut case = |name: &str, verdict: Verdict, says: &str| {
            own_tests += 1;
            let class = xml(&format!("proctor.{}", one.title()));
            let _ = write!(
                cases,
                "    <testcase classname=\"{class}\" name=\"{}\"",
                xml(name)
            );
            let element = match verdict {
                Verdict::Regressed => "failure",
                Verdict::Inconclusive if inconclusive_fails => "failure",
                Verdict::Inconclusive => "skipped",
                Verdict::Improved | Verdict::NonInferior => {
                    let _ = writeln!(
                        cases,
                        ">\n      <system-out>{}</system-out>\n    </testcase>",
                        xml(says)
                    );
                    return;
                }
            };
            if element == "failure" {
                own_failures += 1;
            } else {
                own_skipped += 1;
            }
            let _ = writeln!(
                cases,
                ">\n      <{element} message=\"{}\"{}/>\n    </testcase>",
                xml(says),
                if element == "failure" {
                    format!(" type=\"{verdict}\"")
                } else {
                    String::new()
                }
            );
        };
        let broken = breaks(gated);
        let (verdict, says) = if broken.is_empty() {
            (
                Verdict::NonInferior,
                "nothing of high importance was lost".to_owned(),
            )
        } else {
            (Verdict::Regressed, broken.join("; "))
        };
        case("hard breaks", verdict, &says);
        for gated in &gated.metrics {
            let Some(metric) = one.comparison.metric(gated.metric) else {
                continue;
            };
            let mut says = format!(
                "Δ = {} {} · margin {} → {} · {}",
                change(metric),
                interval(metric, one.comparison.target),
                margin(metric.kind, gated.margin),
                gated.verdict,
                rests_on(metric, &one.comparison)
            );
            if let Some(reason) = &gated.reason {
                let _ = write!(says, " · {reason}");
            }
            case(gated.metric, gated.verdict, &says);
        }
        let _ = write!(
            suites,
            "  <testsuite name=\"{}\" tests=\"{own_tests}\" failures=\"{own_failures}\" errors=\"0\" \
             skipped=\"{own_skipped}\">\n{cases}  </testsuite>\n",
            xml(&one.title())
        );
        tests += own_tests;
        failures += own_failures;
        skipped += own_skipped;
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"proctor gate\" tests=\"{tests}\" \
         failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\">\n{suites}</testsuites>\n"
    )
}
