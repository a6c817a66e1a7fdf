//! Items that were never asked, because the session ended before.

use crate::probe::ProbeKind;
use crate::record::{DeathCause, End, Fate, LostAt, SurvivalRecord};

/// The record of an item that was never asked: nothing was sent, so nothing survived, neither where
/// it was said nor in the output of a compaction.
pub(super) fn after_death(end: &End, kind: ProbeKind) -> SurvivalRecord {
    let (stage, reason) = match end {
        End::Completed => ("", String::new()),
        End::Died { prompt, cause: DeathCause::Overflow, .. } => {
            let reason = format!("a prompt of {prompt} tokens did not fit");
            ("overflow death", reason)
        }
        End::Died { .. } => {
            let reason = "the provider failed at every attempt";
            ("unanswered call", reason.to_owned())
        }
        End::Failed { error, .. } => ("strategy failure", error.clone()),
        End::NotMeasurable { why, .. } => ("not measurable", why.clone()),
    };
    let lost_at = end.call().map(|call| LostAt {
        call,
        stage: stage.to_owned(),
        reason,
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
