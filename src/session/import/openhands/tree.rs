//! Events as a tree: later releases of version 1 let the user go back to an earlier event and go on
//! from there. The model sees the way from the root to the leaf.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use crate::session::import::conversations::Object;

/// The parent of an event that begins the conversation anew.
const ROOT: &str = "__root__";

/// Events that are no place to go on from.
const BESIDE: &[&str] = &["ConversationStateUpdateEvent", "ConversationErrorEvent"];

/// What is known of an event's place.
struct Node {
    id: Option<Arc<str>>,
    parent: Option<Arc<str>>,
    is_beside: bool,
}

/// The places of the events between the root and `leaf`, by default the last event; none where no
/// event names its parent, and all are in one line.
pub(super) fn branch(events: &[&RawValue], leaf: Option<&str>) -> Option<BTreeSet<usize>> {
    let nodes: Vec<Node> = events.iter().map(|raw| node(raw)).collect();
    if nodes.iter().all(|node| node.parent.is_none()) {
        return None;
    }
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(id) = &node.id {
            places.entry(id).or_insert(at);
        }
    }
    let named = leaf.and_then(|leaf| places.get(leaf).copied());
    let mut at = named.or_else(|| nodes.iter().rposition(|node| !node.is_beside));
    let mut branch = BTreeSet::new();
    while let Some(here) = at {
        if !branch.insert(here) {
            break;
        }
        // An event of an earlier release follows the one before it; so does one whose parent is
        // nowhere.
        let before = here.checked_sub(1);
        at = match nodes[here].parent.as_deref() {
            Some(ROOT) => None,
            Some(parent) => places.get(parent).copied().or(before),
            None => before,
        };
    }
    Some(branch)
}

fn node(raw: &RawValue) -> Node {
    let mut event = Object::read(raw).unwrap_or_default();
    let kind = event.take_text("kind");
    Node {
        id: event.take_text("id"),
        parent: event.take_text("parent_id"),
        is_beside: kind.is_some_and(|kind| BESIDE.contains(&&*kind)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events are written as `id<parent`, or `id` alone.
    #[track_caller]
    fn check(events: &[&str], leaf: Option<&str>, expected: Option<&[usize]>) {
        let texts: Vec<String> = events
            .iter()
            .map(|event| match event.split_once('<') {
                Some((id, parent)) => format!(r#"{{"id":"{id}","parent_id":"{parent}"}}"#),
                None => format!(r#"{{"id":"{event}","parent_id":null}}"#),
            })
            .collect();
        let raws: Vec<&RawValue> = texts
            .iter()
            .map(|text| serde_json::from_str(text).unwrap())
            .collect();
        let expected = expected.map(|places| places.iter().copied().collect());
        assert_eq!(branch(&raws, leaf), expected, "{events:?}");
    }

    #[test]
    fn the_branch_is_the_way_from_the_root_to_the_leaf() {
        check(&["a", "b", "c"], None, None);
        check(&["a", "b<a", "c<b", "d<b"], None, Some(&[0, 1, 3]));
        check(&["a", "b<a", "c<b", "d<b"], Some("c"), Some(&[0, 1, 2]));
        // Earlier events name no parent and follow each other.
        check(&["a", "b", "c<b", "d<a"], None, Some(&[0, 3]));
        check(&["a", "b", "c<b"], None, Some(&[0, 1, 2]));
        check(&["a", "b<a", "c<__root__"], None, Some(&[2]));
        // What cannot be is no reason to lose the rest, or to go on for ever.
        check(&["a", "b<x"], Some("nobody"), Some(&[0, 1]));
        check(&["a<b", "b<a"], None, Some(&[0, 1]));
    }
}
