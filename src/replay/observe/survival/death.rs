//! Items that were never asked, because the session ended before.

use crate::probe::ProbeKind;
use crate::record::{DeathCause, End, Fate, LostAt, SurvivalRecord};

/// What an item gets that was never asked: nothing was sent, so nothing survived, neither where it
/// was said nor in what a compaction made of it.
pub(super) fn after_death(end: &End, kind: ProbeKind) -> SurvivalRecord {
    let lost_at = match end {
        End::Completed => None,
        End::Died {
            call,
            prompt,
            cause: DeathCause::Overflow,
        } => Some(LostAt {
            call: *call,
            stage: "overflow death".to_owned(),
            reason: format!("a prompt of {prompt} tokens did not fit"),
            seen_by_summariser: None,
        }),
        End::Died {
            call,
            cause: DeathCause::Unanswered,
            ..
        } => Some(LostAt {
            call: *call,
            stage: "unanswered call".to_owned(),
            reason: "the provider failed at every attempt".to_owned(),
            seen_by_summariser: None,
        }),
        End::Failed { call, error } => Some(LostAt {
            call: *call,
            stage: "strategy failure".to_owned(),
            reason: error.clone(),
            seen_by_summariser: None,
        }),
        End::NotMeasurable { call, why } => Some(LostAt {
            call: *call,
            stage: "not measurable".to_owned(),
            reason: why.clone(),
            seen_by_summariser: None,
        }),
    };
    SurvivalRecord {
        fate: Fate::Lost,
        score: 0.0,
        place: None,
        compacted_score: (!kind.is_never_said() && kind != ProbeKind::Open).then_some(0.0),
        lost_at,
    }
}
