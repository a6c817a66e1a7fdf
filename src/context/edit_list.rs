//! A list whose edits cost the shorter of its two sides.

use std::ops::{Deref, DerefMut, Range};

#[cfg(test)]
thread_local! {
    /// Elements of lists that were moved, checked or added up on this thread, each time anew.
    static VISITED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// Counts work on elements, for the tests that say how it grows.
#[cfg(test)]
pub(crate) fn visit(elements: usize) {
    VISITED.set(VISITED.get() + elements as u64);
}

/// Nobody counts outside tests.
#[cfg(not(test))]
pub(crate) fn visit(_: usize) {}

/// The work so far.
#[cfg(test)]
pub(crate) fn visited() -> u64 {
    VISITED.get()
}

/// A list that grows at its end and is edited anywhere.
///
/// An edit moves what is in front of it or what is behind it, whichever is shorter. So cutting the
/// front of a long list costs what is cut, and so does editing near its end.
///
/// Every element has a *mark*: a number that grows by one from element to element, and that an
/// edit changes only on the side that it moves. Notes about elements by their marks stay right on
/// the other side.
#[derive(Debug, Clone)]
pub(crate) struct EditList<T> {
    /// Elements that are gone, then those of the list.
    items: Vec<T>,
    /// How many are gone and not dropped yet: at most as many as there are others.
    gone: usize,
    /// How many were dropped.
    dropped: usize,
}

/// The side of an edit whose elements got other marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    /// What is in front of it.
    Front,
    /// What is behind it.
    Back,
}

impl<T> Default for EditList<T> {
    fn default() -> Self {
        Self::from(Vec::new())
    }
}

impl<T> From<Vec<T>> for EditList<T> {
    fn from(items: Vec<T>) -> Self {
        Self { items, gone: 0, dropped: 0 }
    }
}

impl<T> Deref for EditList<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items[self.gone..]
    }
}

impl<T> DerefMut for EditList<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items[self.gone..]
    }
}

impl<T> EditList<T> {
    /// Makes room for so many more.
    pub(crate) fn reserve_exact(&mut self, more: usize) {
        self.items.reserve_exact(more);
    }

    /// Adds an element at the end.
    pub(crate) fn push(&mut self, item: T) {
        self.items.push(item);
    }

    /// The mark of the first element, or of the next to come.
    pub(crate) fn first_mark(&self) -> usize {
        self.dropped + self.gone
    }

    /// The elements alone.
    pub(crate) fn into_vec(mut self) -> Vec<T> {
        self.items.drain(..self.gone);
        self.items
    }
}

impl<T: Clone> EditList<T> {
    /// These elements make way for others. Returns them, and which side has other marks now: as
    /// many more, or fewer, as the list grew or shrank.
    pub(crate) fn splice(&mut self, range: Range<usize>, with: &[T]) -> (Vec<T>, Moved) {
        let removed = self[range.clone()].to_vec();
        let fits = with.len() <= range.len() + self.gone;
        if range.start >= self.len() - range.end || !fits {
            let Range { start, end } = range;
            visit(self.len() - start);
            let range = self.gone + start..self.gone + end;
            self.items.splice(range, with.iter().cloned());
            return (removed, Moved::Back);
        }
        visit(range.end);
        // What is removed ends up in front of the list, where its elements are gone.
        let end = self.gone + range.end;
        let start = end - with.len();
        if with.len() <= range.len() {
            self.items[self.gone..start].rotate_right(range.len() - with.len());
        } else {
            let more = with.len() - range.len();
            self.items[self.gone - more..self.gone + range.start].rotate_left(more);
        }
        self.items[start..end].clone_from_slice(with);
        self.gone = self.gone + range.len() - with.len();
        if self.gone > self.items.len() / 2 {
            self.items.drain(..self.gone);
            self.dropped += std::mem::take(&mut self.gone);
        }
        (removed, Moved::Front)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn an_edit_leaves_the_same_elements_as_in_any_list_and_the_marks_of_one_side(
            edits in prop::collection::vec((0..30_usize, 0..30_usize, 0..6_usize), 0..40),
        ) {
            let mut list = EditList::default();
            let mut plain = Vec::new();
            let mut next = 0..;
            for (start, end, count) in edits {
                let [start, end] = [start, end].map(|at| at.min(plain.len()));
                let range = start.min(end)..start.max(end);
                let with: Vec<i32> = next.by_ref().take(count).collect();
                let (front, behind) = (list.first_mark(), list.first_mark() + list.len());
                let (removed, moved) = list.splice(range.clone(), &with);
                let expected: Vec<i32> = plain.splice(range.clone(), with).collect();
                prop_assert_eq!(removed, expected);
                prop_assert_eq!(&list[..], &plain[..]);
                match moved {
                    Moved::Front => prop_assert_eq!(list.first_mark() + list.len(), behind),
                    Moved::Back => prop_assert_eq!(list.first_mark(), front),
                }
                list.push(-1);
                plain.push(-1);
            }
            prop_assert_eq!(list.into_vec(), plain);
        }
    }

    #[test]
    fn cutting_the_front_moves_nothing_behind_it() {
        let mut list = EditList::from((0..1_000).collect::<Vec<i32>>());
        let mut largest = 0;
        for at in 1..900 {
            let (_, moved) = list.splice(0..2, &[-1]);
            assert_eq!((list[1], moved), (at + 1, Moved::Front));
            largest = largest.max(list.items.len() - list.len());
        }
        // What is gone is dropped before it is as much as what is left.
        assert!(largest <= 500 && list.items.len() < 2 * list.len() + 2);
    }
}
