//! Gives calls one id each: a client may name a call anew, and an API may leave ids out.

use super::LoggedRequest;
use super::thread::SessionThread;
use crate::prelude::*;
use proctor_sessions::CallIds;

impl SessionThread {
    /// Takes messages of a request for those of the history that say the same, with their ids.
    pub(super) fn adopt_ids(&self, request: &mut LoggedRequest) {
        let own = &self.session.parts().messages;
        let mut ids = CallIds::new();
        let mut next = 0;
        let messages = &mut request.one.session.parts_mut().messages;
        for (message, look) in messages.iter_mut().zip(&mut request.looks) {
            if let Some((at, true)) = self.place(look) {
                next = at + 1;
                continue;
            }
            let places = self.forms.get(&look.form).filter(|_| look.has_calls());
            let same = places.and_then(|at| at.iter().find(|at| **at >= next).or(at.first()));
            if let Some(same) = same {
                next = same + 1;
                let calls = message.tool_uses().zip(own[*same].tool_uses());
                let pairs = calls.filter(|((_, one), (_, own))| one.id != own.id);
                ids.extend(pairs.map(|((_, one), (_, own))| (one.id.clone(), own.id.clone())));
            }
            rename(message, &ids);
            *look = same.map_or_else(|| Look::of(message), |same| Look::of(&own[*same]));
        }
        if let Some(answer) = messages.last_mut() {
            rename(answer, &self.free_ids(answer));
        }
    }

    /// Other ids for the calls of an answer whose ids, which its API left out, are those of earlier calls.
    fn free_ids(&self, answer: &Message) -> CallIds {
        let unnamed = answer.tool_uses().map(|(_, call)| &call.id);
        let unnamed: Vec<&Arc<str>> = unnamed.filter(|id| id.starts_with(UNNAMED)).collect();
        let earlier = self.session.parts().messages.iter().filter(|_| !unnamed.is_empty());
        let calls = earlier.flat_map(|message| message.tool_uses());
        let taken: BTreeSet<Arc<str>> = calls.map(|(_, call)| call.id.clone()).collect();
        let mut ids = CallIds::new();
        for id in unnamed.into_iter().filter(|id| taken.contains(*id)) {
            let mut others = (2_usize..).map(|number| Arc::from(format!("{id}-{number}")));
            let other = others.find(|other| !taken.contains(other));
            ids.extend(other.map(|other| (id.clone(), other)));
        }
        ids
    }
}

fn rename(message: &mut Arc<Message>, ids: &CallIds) {
    if let Some(renamed) = message.with_call_ids(ids) {
        *message = Arc::new(renamed);
    }
}
