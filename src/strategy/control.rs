//! Controls: strategies that are made from their name.
//!
//! `tail@20000` and `random@20000` cut to a budget in tokens when the scenario's trigger fires.
//! `tail@<strategy>` and `random@<strategy>` *follow* another strategy: wherever it changed its
//! context, they cut to the size that it had afterwards. What such a control keeps is what the
//! same budget buys without any thought.

use super::knob::KEYS;
use crate::settings::{SettingError, SettingTable, SettingValue};

/// The controls, with one line each.
pub static CONTROLS: &[(&str, &str)] = &[
    (
        "tail@N",
        "the newest API rounds within N tokens, cut when the scenario's trigger fires; always valid",
    ),
    ("random@N", "the newest API round and others by lot, within N tokens; else as `tail@N`"),
    (
        "tail@STRATEGY",
        "the newest API rounds within the size STRATEGY has, cut wherever it changes its context",
    ),
    ("random@STRATEGY", "the newest API round and others by lot; else as `tail@STRATEGY`"),
    (
        "METHOD@STRATEGY",
        "the rounds that another method of `select` chooses (`lead`, `textrank`, `tfidf`, \
         `bm25_last_user`, `atoms`); else as `tail@STRATEGY`. `METHOD@N` is there, too",
    ),
    (
        "digest@STRATEGY",
        "a `digest`, made without a model, in the size STRATEGY has, and the newest messages in up \
         to half of it: what a model's summary of that size has to beat",
    ),
];

/// The stages that can follow a strategy: a digest, or any method of `select`.
pub(super) fn following_words() -> Vec<&'static str> {
    let methods = KEYS.words_of("select", "method");
    [DIGEST].into_iter().chain(methods).collect()
}

/// The word that is not a method of `select`.
pub(super) const DIGEST: &str = "digest";

/// The meaning of a control's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlName<'a> {
    /// Cut to this number of tokens.
    Budget(&'static str, u32),
    /// Cut to the sizes of the strategy that is called so.
    Follow(&'static str, &'a str),
}

impl<'a> ControlName<'a> {
    /// Reads a name; nothing if it is not that of a control.
    pub(super) fn of(name: &'a str) -> Option<Self> {
        let (method, rest) = name.split_once('@')?;
        let method = following_words().into_iter().find(|word| *word == method)?;
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, behind) = rest.split_at(digits);
        // `tail@20k` is `tail@20000`.
        let (behind, unit) = match behind.strip_prefix('k') {
            Some(behind) => (behind, 1_000),
            None => (behind, 1),
        };
        match number.parse::<u32>().ok().and_then(|number| number.checked_mul(unit)) {
            Some(budget) if method != DIGEST && (behind.is_empty() || behind.starts_with('[')) => {
                Some(Self::Budget(method, budget))
            }
            _ => Some(Self::Follow(method, rest)),
        }
    }

    /// The strategy `name` that it is.
    pub(super) fn table(self, name: &str) -> Result<SettingTable, SettingError> {
        let (Self::Budget(method, _) | Self::Follow(method, _)) = self;
        let (within, settings) = match self {
            Self::Budget(method, budget) => (
                format!("{budget} tokens"),
                format!(
                    "[[stage]]\nkind = \"select\"\nmethod = \"{method}\"\nbudget_tokens = {budget}\n\
                     when = \"scenario\"\n"
                ),
            ),
            Self::Follow(method, follows) => {
                let follows = SettingValue::Text(follows.to_owned());
                (
                    "the size of the strategy it follows".to_owned(),
                    format!("follows = {follows}\nmethod = \"{method}\"\n"),
                )
            }
        };
        let kept = contents(method);
        let text = format!("description = \"Control: {kept} within {within}\"\n{settings}");
        SettingTable::parse(name, &text)
    }
}

fn contents(method: &str) -> &'static str {
    match method {
        "random" => "the newest round and others by lot",
        "lead" => "the newest round and the oldest",
        "textrank" | "tfidf" | "bm25_last_user" | "atoms" => "the newest round and others by score",
        "model" => "the newest round and others that a model names",
        DIGEST => "a digest and the newest messages",
        _ => "the newest rounds",
    }
}
