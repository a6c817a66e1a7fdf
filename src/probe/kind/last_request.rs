//! The last request of the user, verbatim.

use super::prelude::*;

pub(super) fn spec(requests: &[Revision]) -> Spec<'_> {
    let parts = SpecPart::revisions(PartSearch::Request, "", requests);
    Spec {
        answers: AnsweringParts::Newest,
        ..Spec::new(ProbeKind::LastRequest, AnswerFormat::Quote, parts)
    }
}
