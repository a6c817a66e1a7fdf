//! A walk through a session as replay makes it, for the tests of observers.

use super::super::{CallView, Observer};
use crate::context::{Applied, Context, Edit, Entry, Origin};
use crate::session::Session;
use crate::tokens::{CountedTexts, Size};

/// Shows `observer` every message and call of `session`. `edits` names what is changed before a call,
/// all at once where it names anything; `after` sees observer and context behind every message.
pub(in crate::replay::observe) fn walk<O: Observer>(
    session: &Session,
    counts: &CountedTexts,
    observer: &mut O,
    edits: impl Fn(usize) -> Vec<Edit>,
    after: impl Fn(&O, &Context),
) {
    let mut context = Context::default();
    for (at, message) in session.messages().iter().enumerate() {
        if let Ok(call) = session.calls().binary_search(&at) {
            let edits = edits(call);
            if !edits.is_empty() {
                observer.patched(&Applied {
                    call,
                    stage: "test".into(),
                    reason: String::new(),
                    change: context.apply(edits, counts).unwrap(),
                    is_still_over: false,
                });
            }
            observer.called(&CallView {
                call,
                before: at,
                session,
                context: &context,
                fixed: Size::default(),
                scale: crate::bill::Scale::COUNTED,
                response: message,
                edge: None,
            });
        }
        let entry = Entry::new(Origin::Verbatim(at), message.clone(), counts);
        observer.appended(&entry);
        context.append(entry);
        after(observer, &context);
    }
}
