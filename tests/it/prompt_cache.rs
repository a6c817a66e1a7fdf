//! The incremental prompt cache says what one says that remembers every prompt, whatever happens to
//! a context.

use std::sync::Arc;

use proctor::context::{CacheEffect, Context, Entry};
use proctor::model::price::{CacheScheme, Rates, Reuse};
use proctor::replay::prompt_cache::{Edited, Line, Moment, Pieces, PromptCache, Split};
use proctor::session::Role;
use proctor::units::Tokens;
use proptest::prelude::*;

use crate::contexts::{self, Happening};

fn scheme(reuse: Reuse) -> CacheScheme {
    CacheScheme {
        name: "tried".to_owned(),
        reuse,
        rates: Rates {
            write: Some(1_250),
            read: 100,
            output: 5_000,
        },
        breakpoints: 4,
        look_back: Some(4),
        ttl_seconds: Some(300),
        ..CacheScheme::none()
    }
}

/// A prompt, block by block, and where its newest user messages end.
struct Prompt {
    blocks: Vec<(String, Tokens)>,
    ends: Vec<usize>,
}

impl Prompt {
    fn of(context: &Context) -> Self {
        let counts = contexts::counts();
        let mut prompt = Self {
            blocks: Vec::new(),
            ends: Vec::new(),
        };
        for entry in context.entries() {
            let message = &entry.message;
            let kinds = message.content().iter().map(std::mem::discriminant);
            for (kind, block) in kinds.zip(message.blocks()) {
                let key = format!("{kind:?} {:?} {}", message.role(), block.text);
                prompt.blocks.push((key, counts.block(&block).tokens));
            }
            if message.role() == Role::User {
                prompt.ends.push(prompt.blocks.len());
            }
        }
        prompt.ends = prompt.ends.into_iter().rev().take(2).collect();
        prompt
    }

    fn until(&self, blocks: usize) -> Tokens {
        self.blocks[..blocks]
            .iter()
            .map(|(_, tokens)| *tokens)
            .sum()
    }

    fn begins_like(&self, other: &[(String, Tokens)]) -> bool {
        self.blocks.starts_with(other)
    }
}

/// A cache that remembers every prompt.
struct Memory {
    reuse: Reuse,
    kept: Vec<(Vec<(String, Tokens)>, Moment)>,
}

impl Memory {
    fn send(&mut self, prompt: &Prompt, now: Moment) -> Split {
        let live: Vec<&[(String, Tokens)]> = self
            .kept
            .iter()
            .filter(|(_, used)| now - used <= 300_000)
            .map(|(prefix, _)| &prefix[..])
            .collect();
        let (found, last) = match self.reuse {
            Reuse::Nothing => (0, 0),
            Reuse::LongestPrefix => {
                let common = |other: &&[(String, Tokens)]| {
                    let pairs = prompt.blocks.iter().zip(*other);
                    pairs.take_while(|(own, other)| own == other).count()
                };
                (
                    live.iter().map(common).max().unwrap_or(0),
                    prompt.blocks.len(),
                )
            }
            Reuse::Breakpoints => {
                let is_near = |length: usize| {
                    let mut ends = prompt.ends.iter();
                    ends.any(|end| (end.saturating_sub(4)..=*end).contains(&length))
                };
                let found = live
                    .iter()
                    .filter(|prefix| is_near(prefix.len()) && prompt.begins_like(prefix))
                    .map(|prefix| prefix.len());
                let last = prompt.ends.first().copied().unwrap_or(0);
                (found.max().unwrap_or(0), last)
            }
        };
        let read = prompt.until(found);
        let ends = match self.reuse {
            Reuse::LongestPrefix => vec![prompt.blocks.len()],
            Reuse::Nothing | Reuse::Breakpoints => prompt.ends.clone(),
        };
        let prefixes = ends.iter().map(|end| (prompt.blocks[..*end].to_vec(), now));
        self.kept.extend(prefixes.collect::<Vec<_>>());
        Split {
            read,
            written: prompt.until(last) - read,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn following_a_prompt_is_as_good_as_remembering_all_of_them(
        happenings in contexts::happenings(),
        reuse in prop::sample::select(&[Reuse::Breakpoints, Reuse::LongestPrefix][..]),
    ) {
        let counts = contexts::counts();
        let mut context = Context::default();
        let mut line = Line::new(&[]);
        let mut cache = PromptCache::new(Arc::new(scheme(reuse)));
        let mut memory = Memory { reuse, kept: Vec::new() };
        let mut now = 0;
        for (at, happening) in happenings.iter().enumerate() {
            match happening {
                Happening::Append(origin, message) => {
                    let entry = Entry::new(origin.clone(), Arc::new(message.clone()), &counts);
                    line.append(&Pieces::of(&entry, &counts));
                    context.append(entry);
                }
                Happening::Patch(changes) => {
                    let edits = contexts::plan(&context, changes, &counts);
                    let applied = contexts::apply(&mut context, edits, &counts).unwrap();
                    let edits = applied.change.edits.iter().map(|edit| Edited {
                        entries: edit.entries.clone(),
                        with: edit.with.iter().map(|entry| Pieces::of(entry, &counts)).collect(),
                        cache: CacheEffect::Breaks,
                    });
                    line.patch(&edits.collect::<Vec<_>>());
                }
                Happening::Look => {
                    // Now and then more time goes by than a prefix lives.
                    now += if at % 5 == 0 { 301_000 } else { 1_000 };
                    let prompt = Prompt::of(&context);
                    prop_assert_eq!(line.until(line.len()), prompt.until(prompt.blocks.len()));
                    let split = cache.send(&line, now).split;
                    line.sent(now);
                    prop_assert_eq!(split, memory.send(&prompt, now));
                }
            }
        }
    }
}
