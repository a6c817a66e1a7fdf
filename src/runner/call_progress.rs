//! Says how far a cell of many calls has come.

use super::Progress;
use crate::record::CellKey;
use crate::replay::observe::{CallView, Observer};

/// Counts the calls of a cell.
#[derive(Debug)]
pub(super) struct CallProgress<'p> {
    pub(super) cell: CellKey,
    /// After how many calls it says so.
    pub(super) every: usize,
    pub(super) progress: &'p dyn Progress,
}

impl Observer for CallProgress<'_> {
    fn called(&mut self, view: &CallView<'_>) {
        let (done, planned) = (view.call + 1, view.session.calls().len());
        if done.is_multiple_of(self.every) {
            self.progress.calls(&self.cell, done, planned);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::record::CellRecord;
    use crate::replay::{CellName, Models, NoClock, PreparedSession, Replayed, replay_watched};
    use crate::session::{Message, Role, Session, SessionParts};
    use crate::tokens::{CharsPer4, CountedTexts};

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<(usize, usize)>>);

    impl Progress for Heard {
        fn calls(&self, _: &CellKey, done: usize, planned: usize) {
            self.0.lock().unwrap().push((done, planned));
        }
        fn cell(&self, _: &CellRecord) {}
        fn session(&self, _: &str, _: usize) {}
    }

    #[test]
    fn a_long_cell_says_how_far_it_is() {
        let message =
            |at: usize| Arc::new(Message::text([Role::User, Role::Assistant][at % 2], "more"));
        let parts = SessionParts {
            id: "long".to_owned(),
            messages: (0..14).map(message).collect(),
            ..SessionParts::default()
        };
        let counts = Arc::new(CountedTexts::new(Arc::new(CharsPer4)));
        let session = Arc::new(Session::new(parts).unwrap());
        let prepared = PreparedSession::new(session, counts.clone(), Vec::new()).unwrap();
        let heard = Heard::default();
        let name = CellName::first("full");
        let counter =
            CallProgress { cell: CellRecord::default().key(), every: 3, progress: &heard };
        let models = Models::offline(&counts);
        let more: Vec<Box<dyn Observer + '_>> = vec![Box::new(counter)];
        replay_watched(&prepared, name, Replayed::Full, &models, &NoClock, more);
        assert_eq!(*heard.0.lock().unwrap(), [(3, 7), (6, 7)]);
    }
}
