//! Asks a probe of a prompt exactly as it was sent, and has the answer graded.

use super::meter::Meter;
use super::observe::CallView;
use crate::model::Model;
use crate::probe::grade::Rules;
use crate::probe::judge::{self, Judge};
use crate::probe::{Grader, OTHER_ORDER, Probe, Unscored, Verdict};
use crate::record::AnswerRecord;
use crate::step::{Caller, drive};

/// Asks `probe` of the prompt in `view`. The context is not changed; nothing is billed to the
/// strategy. A judge is asked where the rules do not suffice.
pub(super) fn ask(
    view: &CallView<'_>,
    probe: &Probe,
    rules: &Rules,
    judge: Option<&dyn Model>,
    meter: &mut Meter<'_>,
) -> AnswerRecord {
    let entries = view.context.entries().iter();
    let messages: Vec<_> = entries.map(|entry| entry.message.clone()).collect();
    let requests = judge::questions(view.session.system(), &messages, probe);
    // One question per prompt, both orders of a choice included.
    let mut texts = Vec::with_capacity(requests.len());
    for request in requests {
        match meter.call(vec![request]).pop() {
            Some(Ok(response)) => texts.push(response.text),
            Some(Err(_)) | None => break,
        }
    }
    if texts.len() < probe.questions().len() {
        let reason = Unscored::NoAnswer;
        return AnswerRecord {
            text: None,
            typed: Verdict::Unscored { reason },
            judged: None,
            usage: meter.take_aside(),
        };
    }
    let text = &*texts.join(OTHER_ORDER);
    let typed = drive(rules.grade(probe, view.before, text), meter);
    let is_open = matches!(
        typed,
        Verdict::Unscored {
            reason: Unscored::NeedsJudge
        }
    );
    let judged =
        (is_open && judge.is_some()).then(|| drive(Judge.grade(probe, view.before, text), meter));
    AnswerRecord {
        text: Some(text.to_owned()),
        typed,
        judged,
        usage: meter.take_aside(),
    }
}
