//! The oldest part of the context goes until the rest fits.

use super::prelude::*;
use crate::units::index;

#[derive(Debug, Deserialize)]
pub(super) struct DropOldest {
    unit: DropUnit,
    fraction: f64,
    fit_fraction: f64,
    max_steps: usize,
    pin_first: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum DropUnit {
    Round,
    Pair,
    Message,
}

impl DropUnit {
    /// Where units begin. The entries before the first response begin the conversation, and are no
    /// round.
    fn starts(self, entries: &[Entry]) -> Vec<usize> {
        match self {
            Self::Round => {
                let (_, rounds) = cut::rounds(entries);
                rounds.iter().map(|round| round.start).collect()
            }
            Self::Pair => (0..entries.len()).filter(|at| Cut::Pair.allows(entries, *at)).collect(),
            Self::Message => (0..entries.len()).collect(),
        }
    }
}

impl Stage for DropOldest {
    fn plan<'a>(&'a mut self, context: &Context, cx: &'a Situation) -> PlannedPatch<'a> {
        let entries = context.entries();
        let room = cx.window.tokens - cx.window.overflow_reserve;
        let target = room.fraction(self.fit_fraction);
        let mut prompt = cx.prompt(context);
        // A provider that refuses what should have fitted has a smaller window than it says.
        let refused = cx.overflow.is_some();
        if prompt <= target && !refused {
            return Step::Done(Ok(Patch::default()));
        }
        let pinned = self.pin_first.min(entries.len());
        // The last unit always stays.
        let mut starts = self.unit.starts(entries).into_iter().filter(|at| *at >= pinned);
        let start = starts.next().unwrap_or(entries.len());
        let mut ends: Vec<usize> = starts.collect();
        let at_once = index((ends.len() as f64 * self.fraction).ceil()).max(usize::from(refused));
        if self.max_steps > 0 {
            ends.truncate(self.max_steps);
        }
        let mut end = start;
        let mut units = 0;
        for next in ends {
            if prompt <= target && units >= at_once {
                break;
            }
            let freed = entries[end..next].iter().map(Entry::size).sum();
            prompt = prompt - cx.scale.text(freed);
            end = next;
            units += 1;
        }
        if end == start {
            return Step::Done(Ok(Patch::default()));
        }
        Step::Done(Ok(Patch::replacing(
            format!("the {units} oldest units dropped to fit {target} tokens"),
            start..end,
            Vec::new(),
        )))
    }
}

#[cfg(test)]
mod tests {
    use crate::strategy::stage::trial::{Trial, answers, asks, said, typed};

    /// Ten messages of a hundred tokens or a few more: what each is, as a letter.
    const LETTERS: &str = "tarABxytsu";

    /// The letters of the messages that stay in a window of this size.
    fn left(knobs: &str, window: u64) -> String {
        let mut trial = Trial::new("drop_oldest", knobs).within(window);
        let text = "x".repeat(400);
        let input = format!("\"{text}\"");
        trial.append([
            typed(&text),
            asks(&[("r", "Read", &input)]),
            answers(&[("r", &text)]),
            asks(&[("x", "Read", &input)]),
            asks(&[("y", "Read", &input)]),
            answers(&[("x", &text)]),
            answers(&[("y", &text)]),
            typed(&text),
            said(&text),
            typed(&text),
        ]);
        let reason = trial.fire().unwrap();
        let letters: Vec<char> = LETTERS.chars().collect();
        let entries = trial.context.entries().iter();
        let left: String = entries
            .map(|entry| match entry.origin {
                crate::context::Origin::Verbatim(at) => letters[at],
                _ => '?',
            })
            .collect();
        assert_eq!(reason.is_none(), left == LETTERS, "{knobs}");
        left
    }

    #[test]
    fn whole_units_go_from_the_oldest_end() {
        for (knobs, window, expected) in [
            ("", 1_100, LETTERS),
            ("", 1_000, "tABxytsu"),
            ("", 700, "tsu"),
            ("", 1, "tsu"),
            ("unit = 'pair'", 1_000, "tABxytsu"),
            ("unit = 'pair'", 700, "ttsu"),
            ("unit = 'pair'", 300, "tsu"),
            ("unit = 'pair'", 1, "tu"),
            ("unit = 'message'", 1_000, "trABxytsu"),
            ("unit = 'message'\npin_first = 0", 1, "u"),
            ("unit = 'message'\npin_first = 3", 700, "tartsu"),
            ("unit = 'message'\nmax_steps = 2", 1, "tABxytsu"),
            // Of eight messages between the pinned one and the last.
            ("unit = 'message'\nfraction = 0.5", 1_000, "txytsu"),
            ("unit = 'message'\nfraction = 0.51", 1_000, "tytsu"),
            ("unit = 'message'\nfraction = 0.5\nmax_steps = 1", 1_000, "trABxytsu"),
            ("unit = 'message'\nfraction = 0.5", 1_100, LETTERS),
            ("fit_fraction = 0.5", 2_000, "tABxytsu"),
        ] {
            assert_eq!(left(knobs, window), expected, "{knobs} {window}");
        }
    }

    #[test]
    fn a_prompt_that_was_refused_gives_up_a_unit_though_it_should_fit() {
        let mut trial = Trial::new("drop_oldest", "unit = 'message'").within(10_000).refused();
        trial.append(["one", "two", "three"].map(typed));
        assert!(trial.fire().unwrap().is_some());
        assert_eq!(trial.texts(), ["one", "three"]);
    }
}
