//! Which session each one belongs to.

use std::collections::{BTreeMap, BTreeSet};

/// The main session of each session that has one, by the ids and the main sessions that they name: the last on the
/// way up. One that is not there is the main session of those that name it, and in a circle the named one is.
pub(super) fn roots(links: &[(&str, Option<&str>)], ids: &BTreeSet<String>) -> Vec<Option<String>> {
    let mains: BTreeMap<&str, &str> =
        links.iter().filter_map(|(id, main)| Some((*id, (*main)?))).collect();
    let mut known: BTreeMap<&str, &str> = ids.iter().map(|id| (&**id, &**id)).collect();
    for id in ids.iter().filter(|_| !mains.is_empty()) {
        // An id is a name and digits of the content; products write a time before the name.
        let name = id.rsplit_once('-').map_or(&**id, |(name, _)| name);
        let ends = name.match_indices('-').map(|(at, _)| &name[at + 1..]);
        for name in std::iter::once(name).chain(ends) {
            known.entry(name).or_insert(id);
        }
    }
    let above = |id: &str| {
        let main = mains.get(id)?;
        Some(*known.get(main).unwrap_or(main))
    };
    let roots = links.iter().map(|(id, _)| {
        let named = above(id)?;
        let (mut root, mut passed) = (named, BTreeSet::from([*id]));
        while let Some(next) = above(root) {
            if !passed.insert(root) {
                return Some(named.to_owned());
            }
            root = next;
        }
        Some(root.to_owned())
    });
    roots.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_belongs_to_the_last_main_session_on_the_way_up() {
        let check = |links: &[(&str, Option<&str>)], expected: &[Option<&str>]| {
            let ids = links.iter().map(|(id, _)| (*id).to_owned()).collect();
            let found = roots(links, &ids);
            let found: Vec<Option<&str>> = found.iter().map(Option::as_deref).collect();
            assert_eq!(found, expected, "{links:?}");
        };
        let main = ("rollout-9-00-a-b-012345", None);
        let root = Some(main.0);
        check(&[main, ("x-012345", Some("a-b")), ("y-0", Some("x"))], &[None, root, root]);
        check(&[main, ("x-0", Some(main.0))], &[None, root]);
        check(
            &[main, ("x-0", Some("b-a")), ("y-0", Some("x-0"))],
            &[None, Some("b-a"), Some("b-a")],
        );
        check(&[("a-0", Some("b")), ("b-0", Some("a"))], &[Some("b-0"), Some("a-0")]);
        check(&[("a-0", Some("a"))], &[Some("a-0")]);
    }
}
