//! `[window]`: how large the window is, and when the controls compact.

use std::fmt;

use serde::Serialize;

use super::Result;
use crate::settings::{CheckedTable, SettingError};
use crate::strategy::trigger::Trigger;
use crate::units::Tokens;
use crate::window::{NativeWindow, Window};

/// How large the window is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WindowSetting {
    /// The mode.
    pub mode: WindowMode,
    /// Whether all strategies share one trigger, the scenario's: with `mode = "matched"`.
    pub is_matched: bool,
    /// Where the line is known from at which the recorded product compacts.
    pub line: LineSource,
    /// Tokens the model may write in one response; nothing: what the recorded product reserves, in
    /// its own window, else none.
    pub max_output: Option<Tokens>,
    /// Tokens the provider adds to the prompt when it decides whether the prompt fits.
    pub overflow_reserve: Tokens,
    /// Billed tokens in front of every prompt of a session that neither holds its system prompt and
    /// tools nor gives their size.
    pub head: Option<Tokens>,
    /// A recording is left out if its window, as a share of it, would hold fewer tokens of its
    /// conversation: no product compacts prompts so short. The manifest lists the sessions that are left.
    #[serde(skip)]
    pub floor: Tokens,
}

/// Where the window's size comes from.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub enum WindowMode {
    /// This many tokens; without a number the session's own window, else 200,000.
    Native(Option<Tokens>),
    /// This share of the largest prompt of the full history, so that short sessions exercise
    /// every strategy.
    Fit(f64),
}

/// Where the line is known from at which a product compacts by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub enum LineSource {
    /// From its last automatic compaction in the recording, before the first one from its rule.
    #[default]
    Recorded,
    /// From its rule.
    Rule,
}

impl WindowSetting {
    /// Where the recorded product's line is known from, if the window is the product's own.
    pub fn line(&self) -> Option<LineSource> {
        (self.mode == WindowMode::Native(None)).then_some(self.line)
    }

    /// Whether a window behind a head of this size is too small to measure anything. A number of tokens
    /// never is.
    pub fn is_below_floor(&self, window: Window, head: Tokens) -> bool {
        match self.mode {
            WindowMode::Native(_) => false,
            WindowMode::Fit(_) => window.tokens - head < self.floor,
        }
    }

    /// The window, where it is the same for all sessions.
    pub fn fixed(&self) -> Option<Window> {
        match self.mode {
            WindowMode::Native(Some(tokens)) => Some(self.of(tokens, Tokens::ZERO)),
            WindowMode::Native(None) | WindowMode::Fit(_) => None,
        }
    }

    /// The window for one session: `native` is its own, `largest` its largest prompt, of which `head`
    /// tokens are in front of every prompt. A share of the session is a share of what follows them.
    pub fn resolve(&self, native: NativeWindow, largest: Tokens, head: Tokens) -> Window {
        let (tokens, reserved) = match self.mode {
            WindowMode::Native(None) => (native.tokens, native.max_output),
            WindowMode::Native(Some(tokens)) => (tokens, Tokens::ZERO),
            WindowMode::Fit(fraction) => (head + (largest - head).fraction(fraction), Tokens::ZERO),
        };
        self.of(tokens, reserved)
    }

    /// A window of so many tokens; `reserved` are those that the session's product reserves for output.
    fn of(&self, tokens: Tokens, reserved: Tokens) -> Window {
        Window {
            tokens,
            max_output: self.max_output.unwrap_or(reserved),
            overflow_reserve: self.overflow_reserve,
        }
    }
}

impl fmt::Display for WindowSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mode {
            WindowMode::Native(None) => f.write_str("native")?,
            WindowMode::Native(Some(tokens)) => write!(f, "{tokens} tokens")?,
            WindowMode::Fit(fraction) => write!(f, "fit:{fraction}")?,
        }
        if self.is_matched {
            f.write_str(", triggers matched")?;
        }
        if let Some(output) = self.max_output.filter(|output| *output > Tokens::ZERO) {
            write!(f, ", {output} reserved for output")?;
        }
        Ok(())
    }
}

/// Reads `[window]`.
pub(super) fn read(keys: &CheckedTable<'_>) -> Result<(WindowSetting, Trigger)> {
    let mode = keys.text("mode").unwrap_or_default();
    let fraction = keys.number("fraction");
    let tokens = keys.whole("tokens").map(Tokens);
    let size = match (mode, fraction, tokens) {
        // The size of a window in which triggers are matched is named as any other.
        ("fit" | "matched", Some(fraction), None) if fraction > 0.0 => WindowMode::Fit(fraction),
        ("fit" | "matched", Some(fraction), None) => {
            let problem = format!("`window.fraction` must be above 0, not `{fraction}`");
            return Err(SettingError::new(keys.place_of("fraction"), problem));
        }
        ("fit", _, None) => {
            let hint = "with `mode = \"fit\"`, as in `fraction = 0.6`";
            let error = SettingError::new(keys.place(), "`window.fraction` must be set");
            return Err(error.with_hint(hint));
        }
        ("fit", _, Some(_)) => {
            let problem = "`window.tokens` has no meaning with `mode = \"fit\"`";
            return Err(SettingError::new(keys.place(), problem));
        }
        (_, None, tokens) => WindowMode::Native(tokens),
        (_, Some(_), _) => {
            let problem = "`window.fraction` needs `mode = \"fit\"` and no `tokens`";
            return Err(SettingError::new(keys.place(), problem));
        }
    };
    // By default as much as the recorded product reserves.
    let max_output = keys.setting("max_output").and_then(|_| keys.whole("max_output"));
    if let WindowMode::Native(Some(tokens)) = size {
        for (key, reserved) in
            [("max_output", max_output), ("overflow_reserve", keys.whole("overflow_reserve"))]
        {
            if let Some(reserved) = reserved.filter(|reserved| *reserved >= tokens.0) {
                let problem = format!(
                    "`window.{key}` of {reserved} leaves no room in a window of {tokens} tokens"
                );
                return Err(SettingError::new(keys.place_of(key), problem)
                    .with_hint("reserve less than the window, or use a larger window"));
            }
        }
    }
    let window = WindowSetting {
        mode: size,
        is_matched: mode == "matched",
        line: match keys.text("line") {
            Some("rule") => LineSource::Rule,
            _ => LineSource::Recorded,
        },
        max_output: max_output.map(Tokens),
        overflow_reserve: Tokens(keys.whole("overflow_reserve").unwrap_or_default()),
        head: keys.whole("head_tokens").map(Tokens),
        floor: Tokens(keys.whole("floor").unwrap_or_default()),
    };
    let trigger = match keys.given("trigger") {
        Some(setting) => Trigger::read("window.trigger", setting)?,
        None => Trigger::always(),
    };
    Ok((window, trigger))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::KnownBy;

    #[test]
    fn a_window_comes_from_the_scenario_or_the_session() {
        let window = |mode| WindowSetting {
            mode,
            is_matched: false,
            line: LineSource::Recorded,
            max_output: None,
            overflow_reserve: Tokens::ZERO,
            head: None,
            floor: Tokens(800),
        };
        let resolve = |mode, head| {
            let native =
                NativeWindow { tokens: Tokens(7), max_output: Tokens(3), known_by: KnownBy::Model };
            let window = window(mode).resolve(native, Tokens(1_000), Tokens(head));
            window.tokens.0
        };
        assert_eq!(resolve(WindowMode::Native(None), 0), 7);
        assert_eq!(resolve(WindowMode::Native(Some(Tokens(9))), 0), 9);
        assert_eq!(resolve(WindowMode::Fit(0.6), 0), 600);
        // A share of what no strategy can change would be no share of the session.
        assert_eq!(resolve(WindowMode::Fit(0.6), 500), 800);
        let is_small = |mode, tokens, head| {
            window(mode).is_below_floor(Window::new(Tokens(tokens)), Tokens(head))
        };
        let fit = WindowMode::Fit(0.6);
        assert!(is_small(fit, 799, 0) && !is_small(fit, 800, 0) && is_small(fit, 800, 1));
        assert!(!is_small(WindowMode::Native(Some(Tokens(10))), 10, 0));
    }
}
