//! Items that were never asked, because the session ended before.

use crate::probe::ProbeKind;
use crate::record::{DeathCause, End, Fate, LostAt, SurvivalRecord};

/// The record of an item that was never asked: nothing was sent, so nothing survived, neither where
/// it was said nor in the output of a compaction.
pub(super) fn after_death(end: &End, kind: ProbeKind) -> SurvivalRecord {
    let overflow;
    let lost = match end {
        End::Completed => None,
        End::Died {
            call,
            prompt,
            cause: DeathCause::Overflow,
        } => {
            overflow = format!("a prompt of {prompt} tokens did not fit");
            Some((call, "overflow death", &*overflow))
        }
        End::Died { call, .. } => {
            let reason = "the provider failed at every attempt";
            Some((call, "unanswered call", reason))
        }
        End::Failed { call, error } => Some((call, "strategy failure", &**error)),
        End::NotMeasurable { call, why } => Some((call, "not measurable", &**why)),
    };
    let lost_at = lost.map(|(call, stage, reason)| LostAt {
        call: *call,
        stage: stage.to_owned(),
        reason: reason.to_owned(),
        seen_by_summariser: None,
    });
    SurvivalRecord {
        fate: Fate::Lost,
        score: 0.0,
        place: None,
        compacted_score: kind.is_searched().then_some(0.0),
        lost_at,
        most: None,
        said: None,
        judged: None,
    }
}
