//! Lines of a recording that cannot be read: each costs itself, and is counted.

use crate::prelude::*;

/// Lines that are left out. A few of them are no reason to refuse a file.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    no_json: usize,
    too_deep: usize,
    first: Option<ImportError>,
}

impl LeftOut {
    /// Counts one.
    pub(super) fn add(&mut self, number: u64, problem: ImportError, source: &mut Source) {
        /// The lines of each kind that are named.
        const NAMED: usize = 5;
        let (count, why) = match &problem {
            ImportError::Nesting(_, _, limit) => {
                (&mut self.too_deep, format!("nested deeper than {limit} levels"))
            }
            _ => (&mut self.no_json, "no JSON".to_owned()),
        };
        *count += 1;
        if *count <= NAMED {
            source.warn(&format!("line {number} is {why} and is left out"));
        } else {
            source.warn(&format!("further lines are {why} and are left out"));
        }
        self.first.get_or_insert(problem);
    }

    /// The first of them as an error, if nothing else could be read, or no more lines than are no JSON: that
    /// file is something else. Lines that are nested too deep are JSON, however many there are.
    pub(super) fn unless_most(self, read: usize) -> Result<()> {
        let most = self.no_json >= read.max(1) || read == 0;
        self.first.filter(|_| most).map_or(Ok(()), Err)
    }
}
