//! The columns that are shown first: those of the comparison that decide, in a newcomer's words.

/// A column of the comparison, or of the costs.
pub(super) struct Headline {
    /// Its id.
    pub(super) column: &'static str,
    /// The two lines of its heading.
    pub(super) heading: [&'static str; 2],
    /// Whether there is room for it on a screen.
    pub(super) is_on_screen: bool,
}

/// Where models answered and where strings were searched: of the two, a screen shows the first that was
/// measured.
pub(super) const KEPT: [&str; 2] = ["accuracy", "survival"];

/// The modelled time of the agent's calls and of those it waits for: a column of the costs.
pub(super) const WAIT: &str = "blocking_seconds";

/// All of them, in order.
pub(super) const HEADLINES: [Headline; 10] = [
    headline("completion", ["", "completed"], false),
    headline("fired", ["", "fired"], false),
    headline("cost_savings", ["cost", "saved"], true),
    headline("cost_savings_edge", ["cost saved,", "edge"], false),
    headline("token_savings", ["tokens", "saved"], true),
    headline(KEPT[0], ["answers", "right"], true),
    headline(KEPT[1], ["facts", "kept"], true),
    headline("action_support", ["actions", "supported"], true),
    headline("strategy_calls", ["own", "calls"], true),
    headline(WAIT, ["", "latency"], false),
];

const fn headline(
    column: &'static str,
    heading: [&'static str; 2],
    is_on_screen: bool,
) -> Headline {
    Headline {
        column,
        heading,
        is_on_screen,
    }
}

impl Headline {
    /// The heading on one line.
    pub(super) fn words(&self) -> String {
        self.heading.join(" ").trim().to_owned()
    }
}
