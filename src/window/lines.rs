//! The lines a prompt crosses as it grows: warning, error, automatic compaction, blocking.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Window;
use crate::units::Tokens;

/// Automatic compaction starts so far below the effective window: Claude Code's
/// `AUTOCOMPACT_BUFFER_TOKENS`.
pub const AUTO_COMPACT_BUFFER: Tokens = Tokens(13_000);

/// New input is refused from so far below the effective window on, which leaves room for a
/// compaction by hand: Claude Code's `MANUAL_COMPACT_BUFFER_TOKENS`.
pub const BLOCKING_BUFFER: Tokens = Tokens(3_000);

/// The user is warned so far below a line: Claude Code's `WARNING_THRESHOLD_BUFFER_TOKENS`.
pub const WARNING_BUFFER: Tokens = Tokens(20_000);

/// The warning turns red so far below the same line: Claude Code's
/// `ERROR_THRESHOLD_BUFFER_TOKENS`, which has the value of [`WARNING_BUFFER`].
pub const ERROR_BUFFER: Tokens = Tokens(20_000);

/// The shares of the effective window at which a published picture of Claude Code draws warning,
/// automatic compaction and blocking, in percent. Its constants differ.
pub const DRAWN_PERCENT: [u64; 3] = [85, 90, 95];

/// The line that warnings are measured from: documents on Claude Code read it in two ways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WarningFrom {
    /// The line of automatic compaction.
    #[default]
    AutoCompact,
    /// The effective window.
    EffectiveWindow,
}

impl WarningFrom {
    /// Both readings, the default first.
    pub const ALL: [Self; 2] = [Self::AutoCompact, Self::EffectiveWindow];

    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::AutoCompact => "auto-compact",
            Self::EffectiveWindow => "effective-window",
        }
    }
}

impl fmt::Display for WarningFrom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The lines of one window, in tokens of the whole prompt.
///
/// A line that would lie below zero lies at zero: a window smaller than its buffers is crossed
/// from the first token on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Lines {
    /// The effective window.
    pub effective: Tokens,
    /// Automatic compaction starts here.
    pub auto_compact: Tokens,
    /// New input is refused from here on.
    pub blocking: Tokens,
    /// The user is warned from here on.
    pub warning: Tokens,
    /// The warning is red from here on.
    pub error: Tokens,
    /// The line that warning and error are measured from.
    pub warning_from: WarningFrom,
}

/// Which lines a prompt has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four flags, each read for itself, as the product defines them"
)]
pub struct Flags {
    /// The warning line.
    pub warning: bool,
    /// The error line.
    pub error: bool,
    /// The line of automatic compaction.
    pub auto_compact: bool,
    /// The blocking line.
    pub blocking: bool,
}

/// The highest line a prompt has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Zone {
    /// None.
    Normal,
    /// The warning line. Where the error line lies on it, as by default, no prompt is shown here.
    Warning,
    /// The error line.
    Error,
    /// The line of automatic compaction.
    AutoCompact,
    /// The blocking line.
    Blocking,
}

impl Zone {
    /// All zones, from the lowest.
    pub const ALL: [Self; 5] =
        [Self::Normal, Self::Warning, Self::Error, Self::AutoCompact, Self::Blocking];

    /// Its name in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::AutoCompact => "auto-compact",
            Self::Blocking => "blocking",
        }
    }
}

impl Window {
    /// The window's lines, warnings measured from `warning_from`.
    pub fn lines(&self, warning_from: WarningFrom) -> Lines {
        let effective = self.effective();
        let auto_compact = effective - AUTO_COMPACT_BUFFER;
        let base = match warning_from {
            WarningFrom::AutoCompact => auto_compact,
            WarningFrom::EffectiveWindow => effective,
        };
        Lines {
            effective,
            auto_compact,
            blocking: effective - BLOCKING_BUFFER,
            warning: base - WARNING_BUFFER,
            error: base - ERROR_BUFFER,
            warning_from,
        }
    }

    /// Warning, automatic compaction and blocking as [`DRAWN_PERCENT`] has them: whole percents
    /// of the effective window, rounded down.
    pub fn drawn(&self) -> [Tokens; 3] {
        let effective = u128::from(self.effective().0);
        DRAWN_PERCENT.map(|percent| {
            let line = effective * u128::from(percent) / 100;
            Tokens(u64::try_from(line).unwrap_or(u64::MAX))
        })
    }
}

impl Lines {
    /// The lines a prompt of this size has reached. A prompt on a line has reached it.
    pub fn flags(&self, prompt: Tokens) -> Flags {
        Flags {
            warning: prompt >= self.warning,
            error: prompt >= self.error,
            auto_compact: prompt >= self.auto_compact,
            blocking: prompt >= self.blocking,
        }
    }

    /// The zone of a prompt of this size: the highest line that it has reached.
    pub fn zone(&self, prompt: Tokens) -> Zone {
        let from_highest = [self.blocking, self.auto_compact, self.error, self.warning];
        let mut zones = from_highest.into_iter().zip(Zone::ALL.into_iter().rev());
        zones.find(|(line, _)| prompt >= *line).map_or(Zone::Normal, |(_, zone)| zone)
    }

    /// Percent left of the line that warnings are measured from, rounded to the nearest whole:
    /// 100 with nothing sent, 0 from that line on.
    pub fn percent_left(&self, prompt: Tokens) -> u8 {
        let base = match self.warning_from {
            WarningFrom::AutoCompact => self.auto_compact,
            WarningFrom::EffectiveWindow => self.effective,
        };
        let left = u128::from((base - prompt).0);
        let whole = u128::from(base.0.max(1));
        u8::try_from((left * 200 + whole) / (whole * 2)).unwrap_or(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window { max_output: Tokens(16_384), ..Window::new(Tokens(200_000)) }
    }

    /// The exercise of the document the constants were taken from.
    #[test]
    fn the_lines_of_a_window_of_200_000_with_16_384_of_output() {
        let of = |from| {
            let lines = window().lines(from);
            [lines.effective, lines.auto_compact, lines.blocking, lines.warning, lines.error]
                .map(|line| line.0)
        };
        assert_eq!(of(WarningFrom::AutoCompact), [183_616, 170_616, 180_616, 150_616, 150_616]);
        assert_eq!(of(WarningFrom::EffectiveWindow), [183_616, 170_616, 180_616, 163_616, 163_616]);
        assert_eq!(window().drawn().map(|line| line.0), [156_073, 165_254, 174_435]);
    }

    #[test]
    fn a_prompt_on_a_line_has_reached_it() {
        let lines = window().lines(WarningFrom::AutoCompact);
        let of = |prompt| {
            let flags = lines.flags(Tokens(prompt));
            let set = [flags.warning, flags.error, flags.auto_compact, flags.blocking];
            let set: String = set.iter().map(|is_set| if *is_set { "1" } else { "0" }).collect();
            (set, lines.zone(Tokens(prompt)), lines.percent_left(Tokens(prompt)))
        };
        for (prompt, flags, zone, left) in [
            (0, "0000", Zone::Normal, 100),
            (150_615, "0000", Zone::Normal, 12),
            (150_616, "1100", Zone::Error, 12),
            (170_615, "1100", Zone::Error, 0),
            (170_616, "1110", Zone::AutoCompact, 0),
            (180_615, "1110", Zone::AutoCompact, 0),
            (180_616, "1111", Zone::Blocking, 0),
            (u64::MAX, "1111", Zone::Blocking, 0),
        ] {
            assert_eq!(of(prompt), (flags.to_owned(), zone, left), "{prompt}");
        }
    }

    #[test]
    fn a_warning_line_below_the_error_line_has_a_zone_of_its_own() {
        let lines = Lines {
            warning: Tokens(10),
            error: Tokens(20),
            ..window().lines(WarningFrom::AutoCompact)
        };
        assert_eq!(lines.zone(Tokens(15)), Zone::Warning);
    }

    #[test]
    fn a_window_smaller_than_its_buffers_blocks_from_the_first_token_on() {
        let lines = Window::new(Tokens(2_000)).lines(WarningFrom::AutoCompact);
        assert_eq!(lines.auto_compact, Tokens::ZERO);
        assert_eq!(lines.zone(Tokens::ZERO), Zone::Blocking);
        assert_eq!(lines.percent_left(Tokens::ZERO), 0);
    }

    #[test]
    fn percent_left_is_of_the_line_warnings_are_measured_from() {
        let left = |from, prompt| window().lines(from).percent_left(Tokens(prompt));
        assert_eq!(left(WarningFrom::AutoCompact, 85_308), 50);
        assert_eq!(left(WarningFrom::EffectiveWindow, 85_308), 54);
        assert_eq!(left(WarningFrom::EffectiveWindow, 183_616), 0);
    }
}
