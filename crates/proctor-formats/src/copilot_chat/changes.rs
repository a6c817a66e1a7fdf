//! VS Code's log of a chat: the chat, and then what changed in it, one change a line.
//!
//! A change names a place by keys and indices (`k`): it sets a value (`kind` 1), adds items to a list
//! behind the first `i` (2), or deletes a key (3). A new chat (0) takes the place of the old one. Where
//! the kind is odd, the other keys tell it.

use crate::prelude::*;

/// The longest path of a change. Those that are written are shorter, and longer ones could nest the
/// chat without end.
const LONGEST: usize = 8;

/// The chats of a file: each value that is one, and the one that a log leaves.
pub(super) fn chats(file: &SourceText, source: &mut Source) -> Result<Vec<Value>> {
    let mut chats = Vec::new();
    let mut logged: Option<Value> = None;
    for line in file.values(source)? {
        let mut entry: Value = line.parse()?;
        if !entry.is_object() {
            source.not_understood("value that is no chat");
            continue;
        }
        if entry.get("requests").is_some() {
            chats.push(entry);
            continue;
        }
        let value = entry.get_mut("v").map(Value::take);
        let path = entry.get("k").and_then(Value::as_array);
        let written = entry.get("kind").and_then(Value::as_u64);
        // A new chat is the only change without a place.
        let known = written.filter(|kind| *kind <= 3 && (*kind == 0) == path.is_none());
        let kind = known.unwrap_or(match (path, &value) {
            (None, _) => 0,
            (_, Some(Value::Array(_))) => 2,
            (_, None) => 3,
            _ => 1,
        });
        if kind == 0 {
            let Some(chat) = value.filter(Value::is_object) else {
                source.not_understood("value that is no chat");
                continue;
            };
            if logged.replace(chat).is_some() {
                source.warn("a log begins anew; the chat before it is left out");
            }
            continue;
        }
        let chat = logged.get_or_insert_with(|| Value::Object(Map::new()));
        let index = entry.get("i").and_then(Value::as_u64);
        let first = index.and_then(|index| usize::try_from(index).ok());
        let place = path.filter(|path| path.len() <= LONGEST);
        if place.and_then(|path| change(chat, path, kind, value, first)).is_none() {
            source.warn("a change of the chat has no place and is left out");
        }
    }
    chats.extend(logged);
    Ok(chats)
}

/// Makes one change; none if the chat has no such place.
fn change(
    chat: &mut Value,
    path: &[Value],
    kind: u64,
    value: Option<Value>,
    first: Option<usize>,
) -> Option<()> {
    let (last, above) = path.split_last()?;
    let mut at = chat;
    for key in above {
        at = match key {
            Value::String(key) => at.get_mut(key)?,
            key => at.get_mut(usize::try_from(key.as_u64()?).ok()?)?,
        };
    }
    let place = match (at, last) {
        (Value::Object(object), Value::String(key)) if kind == 3 => {
            object.shift_remove(key);
            return Some(());
        }
        (Value::Object(object), Value::String(key)) => object.entry(key).or_insert(Value::Null),
        (Value::Array(items), index) => {
            let index = usize::try_from(index.as_u64()?).ok()?;
            if index == items.len() {
                items.push(Value::Null);
            }
            items.get_mut(index)?
        }
        _ => return None,
    };
    if kind != 2 {
        *place = value.unwrap_or_default();
        return Some(());
    }
    if !place.is_array() {
        *place = Value::Array(Vec::new());
    }
    let items = place.as_array_mut()?;
    items.truncate(first.unwrap_or(items.len()));
    if let Some(Value::Array(more)) = value {
        items.extend(more);
    }
    Some(())
}
