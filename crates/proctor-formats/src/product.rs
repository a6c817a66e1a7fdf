//! The common parts of several products: words of their records, and records that form a tree.

use super::prelude::*;

/// Whether `word` is one of `words`, which are separated by white space.
pub(super) fn is_one_of(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// The role of the model, or that of the user.
pub(super) fn role_of(is_model: bool) -> Role {
    if is_model { Role::Assistant } else { Role::User }
}

/// The next name of its kind: `call-1`, then `call-2`.
pub(super) fn numbered(kind: &str, count: &mut usize) -> Arc<str> {
    *count += 1;
    format!("{kind}-{count}").into()
}

/// The sessions of a file with several conversations.
pub(super) fn sessions_of(
    conversations: impl IntoIterator<Item = Assembler>,
    source: &mut Source,
    file: &SourceText,
) -> Imported {
    let conversations = conversations.into_iter().map(|conversation| vec![conversation]);
    joined_with_side_chains(conversations.collect(), source, file)
}

/// Where the conversation of this name is, a new one if none had the name.
pub(super) fn place_of<N: Ord, T: Default>(
    name: N,
    names: &mut BTreeMap<N, usize>,
    conversations: &mut Vec<T>,
) -> usize {
    *names.entry(name).or_insert_with(|| {
        conversations.push(T::default());
        conversations.len() - 1
    })
}

/// The record, if it is of this type.
pub(super) fn of_type<'a>(raw: &'a RawValue, kind: &str) -> Option<Object<'a>> {
    // Most records do not have the word.
    let record = raw.get().contains(kind).then(|| Object::read(raw))?;
    record.filter(|record| record.text("type").as_deref() == Some(kind))
}

/// The records of each session of a file: files that were joined hold several. A record that names a session begins it,
/// or goes on with it; records in front of the first name belong to the first session.
pub(super) fn by_session<R>(records: Vec<R>, mut name: impl FnMut(&R) -> Text) -> Vec<Vec<R>> {
    let (mut names, mut sessions, mut at) = (BTreeMap::new(), vec![Vec::new()], 0);
    for record in records {
        if let Some(name) = name(&record) {
            let next = if names.is_empty() { 0 } else { sessions.len() };
            at = *names.entry(name).or_insert(next);
            sessions.resize_with(sessions.len().max(at + 1), Vec::new);
        }
        sessions[at].push(record);
    }
    sessions
}

/// The sessions of a file: the main conversation, and those of sub-agents. The first one reports
/// the counts of the file as a whole.
pub(super) fn with_side_chains(
    chains: impl IntoIterator<Item = Assembler>,
    source: &mut Source,
    file: &SourceText,
) -> Imported {
    joined_with_side_chains(vec![chains.into_iter().collect()], source, file)
}

/// The same of a file with several such sessions, of which each has a number.
pub(super) fn joined_with_side_chains(
    joined: Vec<Vec<Assembler>>,
    source: &mut Source,
    file: &SourceText,
) -> Imported {
    let mut sessions: Vec<Session> = Vec::new();
    let is_one = joined.iter().filter(|chains| is_begun(chains)).count() < 2;
    let mut number = 0;
    for chains in joined {
        number += usize::from(is_begun(&chains));
        let main = if is_one { file.id.clone() } else { format!("{}-{number}", file.id) };
        let mut sides = 0;
        for (at, mut chain) in chains.into_iter().enumerate() {
            if chain.is_empty() {
                if sessions.is_empty() || at == 0 {
                    add_counts(source, chain.source);
                }
                continue;
            }
            let mut id = main.clone();
            if at > 0 {
                sides += 1;
                chain.is_side = true;
                chain.source.main = Some(main.clone());
                id = format!("{main}-side-{sides}");
            }
            sessions.extend(chain.finish(id, &file.path)?);
        }
    }
    Ok(sessions)
}

/// Whether something was said in one of them.
fn is_begun(chains: &[Assembler]) -> bool {
    !chains.iter().all(Assembler::is_empty)
}

/// The record above another.
pub(super) enum Parent<N> {
    /// There is none.
    None,
    /// The one of that name; of an unknown name, or of none, the one before.
    Named(Option<N>),
}

/// The places of the records on the way up from `last`; of records of one name the first counts.
pub(super) fn branch_of<N: Ord>(
    names: impl Iterator<Item = Option<N>>,
    last: Option<usize>,
    parent: impl Fn(usize) -> Parent<N>,
) -> BTreeSet<usize> {
    let mut places: BTreeMap<N, usize> = BTreeMap::new();
    for (at, name) in names.enumerate() {
        if let Some(name) = name {
            places.entry(name).or_insert(at);
        }
    }
    let above = |at: usize| match parent(at) {
        Parent::None => None,
        Parent::Named(name) => {
            name.and_then(|name| places.get(&name).copied()).or_else(|| at.checked_sub(1))
        }
    };
    let mut path = BTreeSet::new();
    climb(last, above, &mut path);
    path
}

/// Adds a record and all records above it to `path`, up to one that is there already: a circle ends
/// where it began.
pub(super) fn climb<T: Ord + Copy>(
    from: Option<T>,
    parent: impl Fn(T) -> Option<T>,
    path: &mut BTreeSet<T>,
) {
    let mut at = from;
    while let Some(here) = at
        && path.insert(here)
    {
        at = parent(here);
    }
}

/// Who wrote a message of the user's role: a tool (none), the product, or a person.
pub(super) fn speaker(blocks: &[ContentBlock], is_injected: impl Fn(&str) -> bool) -> Option<Tag> {
    if blocks.iter().any(ContentBlock::is_result) {
        None
    } else if texts(blocks).any(is_injected) {
        Some(Tag::Meta)
    } else {
        Some(Tag::TypedUser)
    }
}

/// Who wrote a message of the user's role, where the product writes none.
pub(super) fn speaker_of(blocks: &[ContentBlock]) -> Option<Tag> {
    speaker(blocks, |_| false)
}

/// A JSON object of values as they were recorded.
pub(super) fn json_object<'a>(all: impl Iterator<Item = (Cow<'a, str>, &'a RawValue)>) -> String {
    let entries = all.map(|(key, value)| format!("{}:{}", json!(key), value.get()));
    format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
}
