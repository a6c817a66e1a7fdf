//! Recognises the agent that sends a request, and the conversation that it names.

use crate::prelude::*;
use std::cell::{OnceCell, RefCell};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

/// The name of a conversation in a request.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    /// Where it is: names from two places cannot be compared.
    place: &'static str,
    pub(crate) value: Arc<str>,
}

/// Keys of a request, or of its metadata, that name a conversation, with the headers that do.
const NAMES: &str = "session_id sessionId conversation_id conversationId thread_id threadId x-session-id \
    x-claude-code-session-id x-session-affinity";

impl Name {
    /// The name of a conversation that a trace knows.
    pub(crate) fn of_trace(value: Arc<str>) -> Self {
        Self { place: "trace", value }
    }

    /// The most certain name in a request or in the log around it: an application may use one cache key, and a
    /// user one name, in all conversations.
    pub(crate) fn of(request: &Object<'_>) -> Option<Self> {
        let [metadata, headers] = ["metadata", "headers"]
            .map(|key| request.get(key).and_then(Object::read).unwrap_or_default());
        for place in NAMES.split_whitespace() {
            for object in [request, &metadata, &headers] {
                if let Some(value) = object.text(place) {
                    return Some(Self { place, value });
                }
            }
        }
        let user = metadata.text("user_id");
        if let Some(value) = user.as_deref().and_then(session_of_user) {
            return Some(Self { place: "session of user", value });
        }
        let (place, value) = match request.text("prompt_cache_key") {
            Some(key) => ("prompt_cache_key", key),
            None => ("user", user.or_else(|| request.text("user"))?),
        };
        Some(Self { place, value })
    }

    /// Whether both are names of one kind, and not the same.
    pub(super) fn differs(&self, other: &Self) -> bool {
        self.place == other.place && self.value != other.value
    }
}

/// The session in Claude Code's name of a user: JSON with a `session_id`, or `user_…_session_ID`.
fn session_of_user(user: &str) -> Text {
    let json: Option<serde_json::Value> = serde_json::from_str(user).ok();
    let named = json.and_then(|json| json.get("session_id")?.as_str().map(Arc::from));
    named.or_else(|| user.rsplit_once("_session_").map(|(_, id)| id.into()))
}

/// The system prompts of a log, each once.
#[derive(Default)]
pub(super) struct Prompts(BTreeMap<Arc<str>, Rc<SystemPrompt>>);

/// A system prompt, which is compared with each other one once.
#[derive(Default)]
struct SystemPrompt {
    /// Its number in the order of the log.
    number: usize,
    text: Arc<str>,
    words: OnceCell<Vec<u64>>,
    /// Whether it is like those of these numbers.
    alike: RefCell<BTreeMap<usize, bool>>,
}

impl SystemPrompt {
    fn is_alike(&self, other: &Self) -> bool {
        if self.number == other.number {
            return true;
        }
        let (early, late) = if self.number < other.number { (self, other) } else { (other, self) };
        let mut alike = late.alike.borrow_mut();
        let known = alike.entry(early.number);
        *known.or_insert_with(|| is_most_shared(early.words(), late.words()))
    }

    fn words(&self) -> &[u64] {
        self.words.get_or_init(|| words(&self.text))
    }
}

/// Identifies an agent across its requests, by its tools and its system prompt.
#[derive(Clone)]
pub(super) struct AgentIdentity {
    tools: Rc<BTreeSet<Arc<str>>>,
    system: Rc<SystemPrompt>,
    pub(super) name: Option<Name>,
}

impl Prompts {
    /// The agent of a request.
    pub(super) fn agent(&mut self, session: &Session, name: Option<Name>) -> AgentIdentity {
        let tools = session.parts().tools.iter();
        let text = session.parts().system.clone().unwrap_or_default();
        let number = self.0.len();
        let system = self.0.entry(text).or_insert_with_key(|text| {
            Rc::new(SystemPrompt { number, text: text.clone(), ..SystemPrompt::default() })
        });
        AgentIdentity {
            tools: Rc::new(tools.map(|tool| tool.name.clone()).collect()),
            system: system.clone(),
            name,
        }
    }
}

impl AgentIdentity {
    /// Whether both may be the same agent. A product may say what its system prompt said elsewhere, once it has
    /// compacted: then the name of the conversation has to be the same.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        self.has_tools_of(other)
            && (self.name.is_some() && self.name == other.name || self.has_prompt_of(other))
    }

    /// Whether both name one conversation by a name that is only its own.
    pub(super) fn is_session_of(&self, other: &Self) -> bool {
        let own =
            self.name.as_ref().filter(|name| !["prompt_cache_key", "user"].contains(&name.place));
        own.is_some() && own == other.name.as_ref()
    }

    /// Whether it may only be asked about the other's conversation: an agent may be given more tools, or another system
    /// prompt, but not both at once, and keeps some tools.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let none = self.tools.is_empty() && !other.tools.is_empty();
        let most = !self.tools.is_empty() && self.has_tools_of(other);
        !self.is_like(other) && (none || !most && !self.has_prompt_of(other))
    }

    /// Whether most of the tools are the same.
    fn has_tools_of(&self, other: &Self) -> bool {
        let counts = (self.tools.len(), other.tools.len());
        is_most(self.tools.intersection(&other.tools).count(), counts)
    }

    /// Whether the system prompts are alike, or one says more behind the other.
    pub(super) fn has_begun_prompt_of(&self, other: &Self) -> bool {
        let [one, other_one] = [&self.system.text, &other.system.text];
        let goes_on = one.starts_with(&**other_one) || other_one.starts_with(&**one);
        self.has_prompt_of(other) || goes_on && !one.is_empty() && !other_one.is_empty()
    }

    /// Whether the system prompts are alike.
    pub(super) fn has_prompt_of(&self, other: &Self) -> bool {
        self.system.is_alike(&other.system)
    }
}

/// Whether two texts differ in little: a date, a version, the name of a model.
pub(super) fn is_alike(one: &str, other: &str) -> bool {
    one == other || is_most_shared(&words(one), &words(other))
}

/// The words of a text, hashed and in the order of the hashes.
fn words(text: &str) -> Vec<u64> {
    let hasher = BuildHasherDefault::<DefaultHasher>::default();
    let words: BTreeSet<u64> = text.split_whitespace().map(|word| hasher.hash_one(word)).collect();
    words.into_iter().collect()
}

/// Whether two lists of words, both in order, have most in common.
fn is_most_shared(one: &[u64], other: &[u64]) -> bool {
    let counts = (one.len(), other.len());
    if !is_most(counts.0.min(counts.1), counts) {
        return false;
    }
    let mut rest = other.iter().peekable();
    let shared = one.iter().filter(|word| {
        while rest.next_if(|next| next < word).is_some() {}
        rest.next_if_eq(word).is_some()
    });
    is_most(shared.count(), counts)
}

/// Whether the shared ones are four of five, or more, of each.
fn is_most(shared: usize, (one, other): (usize, usize)) -> bool {
    shared * 5 >= one.max(other) * 4
}

#[cfg(test)]
mod tests {
    use proctor_sessions::{Message, Role, SessionParts};

    use super::*;

    #[test]
    fn two_prompts_are_compared_once_however_often_they_are_sent() {
        let mut prompts = Prompts::default();
        let mut sent = |text: &str| {
            let system = Some(text.into());
            let parts = SessionParts {
                id: "a".to_owned(),
                system,
                messages: vec![Arc::new(Message::text(Role::User, "Hi."))],
                ..SessionParts::default()
            };
            prompts.agent(&Session::new(parts).expect("a session"), None)
        };
        let [day, later, again, other] = [
            "you mend clocks on the day 1",
            "you mend clocks on the day 2",
            "you mend clocks on the day 1",
            "you mend the clocks of others",
        ]
        .map(&mut sent);
        assert!(Rc::ptr_eq(&day.system, &again.system));
        for (one, two, is_alike) in [(&day, &later, true), (&again, &other, false)] {
            assert_eq!(one.is_like(two), is_alike);
            assert_eq!(two.is_like(one), is_alike);
            let known = BTreeMap::from([(day.system.number, is_alike)]);
            assert_eq!(*two.system.alike.borrow(), known);
        }
    }
}
