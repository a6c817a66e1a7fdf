//! The last request of the user, verbatim.

use super::prelude::*;

pub(super) fn spec(requests: &[Revision]) -> Spec<'_> {
    let parts = Part::revisions(Search::Request, "", requests);
    Spec {
        answers: Answers::Newest,
        ..Spec::new(ProbeKind::LastRequest, AnswerFormat::Quote, parts)
    }
}
