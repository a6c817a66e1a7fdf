//! The rules of a provider's prompt cache.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::record::words::Rates;
use crate::settings::{Reader, SettingError};
use crate::units::{Tokens, is_valid_id, whole};

/// Which prefixes of a prompt are found again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// None: there is no cache.
    #[default]
    Nothing,
    /// Those that end at a breakpoint of an earlier prompt.
    Breakpoints,
    /// The longest one that any earlier prompt began with, block by block.
    LongestPrefix,
}

/// The rules of a provider's prompt cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CacheScheme {
    /// Its name in reports.
    pub name: String,
    /// Which prefixes are found again.
    pub reuse: Reuse,
    /// The price of each class of tokens.
    pub rates: Rates,
    /// The shortest prefix that is cached.
    pub minimum: Tokens,
    /// Cached prefixes are rounded down to a multiple of this, if it is not 0.
    pub step: Tokens,
    /// Breakpoints in a prompt, at most. [`Client`](super::Client) says where they are.
    pub breakpoints: usize,
    /// How many positions a breakpoint looks at for an earlier one, itself the first; `None`: all.
    /// A run of tool uses is one position, and so is a run of tool results.
    pub look_back: Option<usize>,
    /// How long a prefix lives after its last use, in seconds; `None`: for ever.
    pub ttl_seconds: Option<u64>,
}

/// Breakpoints of a scheme that does not say: after tools, after system, on the last two user
/// messages.
const BREAKPOINTS: usize = 4;

/// The price of output if a scheme does not name it, in thousandths: five times input, as for all
/// of Anthropic's models.
const OUTPUT: u32 = 5_000;

impl CacheScheme {
    /// No cache at all: every token is uncached input.
    pub fn none() -> Self {
        Self {
            name: "none".to_owned(),
            rates: Rates { write: None, read: 1_000, output: OUTPUT, long_prompts: None },
            ..Self::default()
        }
    }

    /// The number of tokens that the provider caches of a prefix.
    pub fn rounded(&self, prefix: Tokens) -> Tokens {
        let step = self.step.0.max(1);
        let whole = Tokens(prefix.0 / step * step);
        if whole < self.minimum { Tokens::ZERO } else { whole }
    }

    /// Reads a scheme from a price file or a scenario.
    pub fn read(mut reader: Reader<'_>) -> Result<Self, SettingError> {
        let place = reader.place();
        let path = reader.path_of("name");
        let name = reader.text("name")?.unwrap_or("custom").to_owned();
        if !is_valid_id(&name) || name == "none" {
            let problem = format!("`{path}` must be `[a-z0-9][a-z0-9._@-]*` and not `none`");
            return Err(SettingError::new(place, problem));
        }
        let reuse = match reader.choice("reuse", &["breakpoints", "longest_prefix"])? {
            Some("breakpoints") => Reuse::Breakpoints,
            _ => Reuse::LongestPrefix,
        };
        let write = thousandths(&mut reader, "write", 10)?;
        let rates = Rates {
            write,
            read: thousandths(&mut reader, "read", 1)?.unwrap_or(1_000),
            output: thousandths(&mut reader, "output", 100)?.unwrap_or(OUTPUT),
            long_prompts: None,
        };
        let scheme = Self {
            name,
            reuse,
            rates,
            minimum: Tokens(reader.whole("minimum_tokens", 0, u64::MAX)?.unwrap_or(0)),
            step: Tokens(reader.whole("step_tokens", 1, u64::MAX)?.unwrap_or(1)),
            breakpoints: reader.whole("breakpoints", 1, 100)?.map_or(BREAKPOINTS, length),
            look_back: reader.whole("look_back_positions", 1, u64::MAX)?.map(length),
            ttl_seconds: reader.whole("ttl_seconds", 1, u64::MAX)?,
        };
        reader.finish()?;
        Ok(scheme)
    }
}

fn length(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// A factor on a price, at most this one, in thousandths.
pub(super) fn thousandths(
    reader: &mut Reader<'_>,
    key: &str,
    most: u32,
) -> Result<Option<u32>, SettingError> {
    let Some(factor) = reader.amount(key)? else {
        return Ok(None);
    };
    if factor > f64::from(most) {
        let path = reader.path_of(key);
        let problem = format!("`{path}` must be at most {most}, not {factor}");
        let error = SettingError::new(reader.place_of(key), problem);
        return Err(error.with_hint("it is a factor on a price: half of it is 0.5"));
    }
    Ok(u32::try_from(whole((factor * 1_000.0).round())).ok())
}
