//! The last request of the user, verbatim.

use super::prelude::*;

pub(super) fn spec(requests: &[Revision]) -> Spec<'_> {
    let parts = Part::revisions(Search::Request, "", requests);
    Spec {
        answers: Answers::Newest,
        reference: Reference::Newest(""),
        // A message may hold what other probes ask for.
        values: Some(Vec::new()),
        ..Spec::new(ProbeKind::LastRequest, AnswerFormat::Quote, parts)
    }
}
