//! The last request of the user, verbatim.

use super::prelude::*;

pub(super) fn spec(requests: &[Revision]) -> Spec<'_> {
    let parts = SpecPart::revisions(SearchBy::Request, "", requests);
    Spec {
        answers: AnswerSet::Newest,
        ..Spec::new(ProbeKind::LastRequest, AnswerFormat::Quote, parts)
    }
}
