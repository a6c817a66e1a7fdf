//! The sentences of a verdict.

use std::fmt::Write as _;

use super::{
    Avoid, Axis, AxisFinding, Candidate, Contender, Flip, FullHistory, Line, MARGIN, Obstacle,
    TasksSolved, Verdict,
};
use crate::naming::{base_name, short_name};
use crate::stats::paired::FEWEST_SESSIONS;
use crate::units::many;

/// Strategies that are named one by one; the others are counted.
const SHOWN: usize = 2;

impl Axis {
    /// Its name in sentences.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Facts => "facts",
            Self::Answers => "answers",
            Self::Actions => "actions",
        }
    }
}

impl Verdict {
    /// The verdict in sentences: what to use, or why nothing is recommended, and what to avoid.
    pub fn lines(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = self.tasks.iter().map(TasksSolved::line).collect();
        // They say more than the replay of what the agents did.
        let is_closed = !lines.is_empty();
        let recommended = self.contenders.iter().filter(|it| it.is_recommended);
        let first = recommended.clone().take(SHOWN);
        lines.extend(first.map(|it| Line::new("use", self.why(it))));
        let others = named(recommended.skip(SHOWN).map(|it| &it.strategy));
        if !others.is_empty() {
            lines.push(Line::new(
                "use",
                format!("{others} beat their controls, too"),
            ));
        }
        let obstacle = self.obstacle.filter(|_| !is_closed);
        let why_not = obstacle.map(|it| Line::new("no recommendation", self.why_not(it)));
        lines.extend(why_not);
        let avoid = self.avoid.iter().filter(|it| !it.is_broken);
        let why = |it: &Avoid| format!("{}: {}", short_name(&it.strategy), it.why);
        lines.extend(
            avoid
                .clone()
                .take(SHOWN)
                .map(|it| Line::new("avoid", why(it))),
        );
        let others = named(avoid.skip(SHOWN).map(|it| &it.strategy));
        if !others.is_empty() {
            lines.push(Line::new("avoid", format!("also {others}")));
        }
        lines
    }

    /// Why a strategy is recommended.
    fn why(&self, one: &Contender) -> String {
        let named = |is_better: bool| -> Vec<String> {
            let axes = one.axes.iter().filter(|axis| axis.is_better == is_better);
            axes.map(in_words).collect()
        };
        let saved = one.saved.map(|saved| match saved {
            saved if saved < 0.0 => {
                format!(
                    " costs {} more than full history would, and",
                    percent(-saved)
                )
            }
            saved => format!(" saves {} and", percent(saved)),
        });
        let not_worse = named(false).join(" and ");
        let margin = points(self.margin);
        let rest = match not_worse.as_str() {
            "" => String::new(),
            axes => format!(", and is worse by no more than {margin} points on {axes}"),
        };
        format!(
            "{}{} beats its control {} on {}{rest}. Shown on {}.",
            short_name(&one.strategy),
            saved.unwrap_or_default(),
            short_name(&one.control),
            named(true).join(" and "),
            self.population
        )
    }

    fn why_not(&self, obstacle: Obstacle) -> String {
        // The contender that saves most.
        let best = self.contenders.first();
        match obstacle {
            Obstacle::NothingRan => "nothing was recorded yet".to_owned(),
            Obstacle::AllBroken => {
                "every strategy that changed a session broke, or none changed one, as the table says"
                    .to_owned()
            }
            Obstacle::NothingFired => "no strategy changed anything in these sessions".to_owned(),
            Obstacle::NoControls => {
                "this run has no controls at equal budget (`controls = false`), and nothing \
                 else is compared"
                    .to_owned()
            }
            Obstacle::NoOutcomes => {
                "the outcomes of the tasks are unknown; pass them with `proctor live --outcomes FILE`"
                    .to_owned()
            }
            Obstacle::FewSessions => {
                let verb = if self.sessions == 1 { "is" } else { "are" };
                let independent = match self.clusters {
                    clusters if clusters == self.sessions => String::new(),
                    clusters => format!(", {clusters} of them independent,"),
                };
                format!(
                    "{}{independent} {verb} too few to say anything about others: {FEWEST_SESSIONS} \
                     independent ones are the least.{}",
                    self.population,
                    best.map(Self::as_seen).unwrap_or_default()
                )
            }
            Obstacle::NotShown => best.map(|it| self.not_shown(it)).unwrap_or_default(),
            Obstacle::Dearer => {
                let mut shown = self.contenders.iter().filter(|one| one.is_shown());
                let dearer = shown.find_map(|one| Some(self.dearer_than_full(one, one.full_history?)));
                dearer.unwrap_or_default()
            }
        }
    }

    /// Why a strategy that beats its control is not recommended: doing nothing costs less.
    fn dearer_than_full(&self, one: &Contender, full: FullHistory) -> String {
        let better = one.axes.iter().filter(|axis| axis.is_better);
        let better: Vec<String> = better.map(in_words).collect();
        let sessions = match full.of - full.sessions {
            0 => many(full.of, "session", "sessions"),
            _ => format!("{} of {} sessions", full.sessions, full.of),
        };
        let more = match points(-full.saved).as_str() {
            "0" => "less than 1".to_owned(),
            points => points.to_owned(),
        };
        format!(
            "full history (`none`) fits the window in {sessions} and costs less there: keep it. {} beats its \
             control {} on {}, but costs {more} % more. Compared on {}.",
            short_name(&one.strategy),
            short_name(&one.control),
            better.join(" and "),
            self.population
        )
    }

    /// What was seen of a contender, without a claim.
    fn as_seen(one: &Contender) -> String {
        let axes: Vec<String> = one.axes.iter().map(difference).collect();
        let [own, control] = [&one.strategy, &one.control].map(|name| short_name(name));
        match axes.join(", ").as_str() {
            "" => String::new(),
            axes => format!(" Here {own} differs from its control {control} by: {axes}."),
        }
    }

    /// What is not shown of the contender that saves most, and what would show it.
    fn not_shown(&self, one: &Contender) -> String {
        let axes: Vec<String> = one.axes.iter().map(in_words).collect();
        let saves = match one.saved {
            Some(saved) if saved > 0.0 && self.contenders.len() > 1 => {
                format!("saves more than the other strategies ({})", percent(saved))
            }
            Some(saved) if saved > 0.0 => format!("saves {}", percent(saved)),
            Some(_) => "costs the least, though more than full history".to_owned(),
            None => "comes first".to_owned(),
        };
        let is_same = !one.axes.is_empty() && one.axes.iter().all(AxisFinding::is_nothing);
        let but = if is_same {
            "and does the same here as"
        } else {
            "but is not shown to beat"
        };
        let mut text = format!(
            "{} {saves}, {but} its control {}: {}.",
            short_name(&one.strategy),
            short_name(&one.control),
            axes.join(", ")
        );
        for (axis, why) in &one.uncompared {
            let axis = match axis {
                Axis::Cost => "Cost is",
                Axis::Facts => "Facts are",
                Axis::Answers => "Answers are",
                Axis::Actions => "Actions are",
            };
            let _ = write!(text, " {axis} not compared: {why}.");
        }
        for axis in one.axes.iter().filter(|axis| axis.is_better) {
            if let Some(flip) = &axis.flip {
                let flips = flip.in_words(axis);
                let _ = write!(text, " Its advantage on {} {flips}.", axis.axis.name());
            }
        }
        let needed = one.sessions_needed.map(|sessions| {
            format!(" About {sessions} sessions like these would show it, if the differences stay.")
        });
        text + &needed.unwrap_or_default() + &format!(" Compared on {}.", self.population)
    }
}

impl Flip {
    fn in_words(&self, axis: &AxisFinding) -> String {
        let seen = signed(axis.difference);
        match self {
            Self::Edge { edge } => format!(
                "is {seen} with the usual cache breakpoints and {} with one at the edge",
                signed(*edge)
            ),
            Self::LeftOut { session, without } => {
                format!("is {seen}, and {} without {session}", signed(*without))
            }
        }
    }
}

/// Why a strategy is to be avoided, if it is.
pub(super) fn avoid(candidate: &Candidate, all: &[Candidate]) -> Option<Avoid> {
    let of = |why: String, is_broken: bool| Avoid {
        strategy: candidate.name.clone(),
        why,
        is_broken,
    };
    if let Some(broken) = &candidate.broken {
        return Some(of(broken.clone(), true));
    }
    if candidate.fired == 0 {
        return None;
    }
    let saved = candidate.saved?;
    let most = saved.confidence_interval.map(|it| it.upper_bound);
    if most.unwrap_or(saved.point_estimate) < 0.0 && saved.point_estimate <= -MARGIN {
        return Some(of(dearer(candidate, saved.point_estimate, all), false));
    }
    let (by, better) = candidate.dominated.as_ref()?;
    let ends = (better.bounds.interval_lower, better.bounds.interval_upper);
    let (axis, seen) = (better.axis.name(), signed(better.bounds.difference));
    let (by, ends) = (short_name(by), interval(ends));
    let why = format!("{by} is no worse on any axis, and better on {axis} ({seen} {ends})");
    Some(of(why, false))
}

/// `55 % fewer tokens, 2.7 times the cost of prompts, as 489 edits break the prompt cache`.
fn dearer(candidate: &Candidate, saved: f64, all: &[Candidate]) -> String {
    let tokens = candidate.tokens_saved.filter(|tokens| *tokens > 0.005);
    let tokens = tokens.map(|tokens| format!("{} fewer tokens, ", percent(tokens)));
    let tokens = tokens.unwrap_or_default();
    let edits = match candidate.edits {
        0 => String::new(),
        1 => ", as one edit breaks the prompt cache".to_owned(),
        many => format!(", as {many} edits break the prompt cache"),
    };
    let mut text = format!(
        "{tokens}{:.1} times the cost of prompts{edits}",
        1.0 - saved
    );
    if let Some(edge) = candidate.saved_edge.filter(|edge| *edge > 0.0) {
        let saves = percent(edge);
        let _ = write!(
            text,
            " (with a cache breakpoint at the edge it saves {saves})"
        );
    }
    // The candidates are in the order of what they save.
    let sibling = all.iter().find(|other| {
        let same_base = base_name(&other.name) == base_name(&candidate.name);
        same_base && other.broken.is_none() && other.fired > 0
    });
    let sibling = sibling.and_then(|it| Some((&it.name, it.saved?.point_estimate)));
    if let Some((name, saved)) = sibling.filter(|(_, saved)| *saved > 0.0) {
        let _ = write!(text, "; {} saves {}", short_name(name), percent(saved));
    }
    text
}

/// `cost +9 [+3, +15]`.
fn in_words(axis: &AxisFinding) -> String {
    format!("{} {}", difference(axis), interval(axis.interval))
}

/// `cost +9`.
fn difference(axis: &AxisFinding) -> String {
    format!("{} {}", axis.axis.name(), signed(axis.difference))
}

pub(super) fn interval((low, high): (f64, f64)) -> String {
    format!("[{}, {}]", signed(low), signed(high))
}

/// Whole points with their sign: `+9`, `−7`, `0`.
pub(super) fn signed(share: f64) -> String {
    let text = points(share.abs());
    match text.as_str() {
        "0" => text,
        _ if share < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

pub(super) fn points(share: f64) -> String {
    format!("{:.0}", share * 100.0)
}

fn percent(share: f64) -> String {
    let sign = if share < 0.0 { "−" } else { "" };
    format!("{sign}{} %", points(share.abs()))
}

/// The short names of strategies.
fn named<'a>(strategies: impl Iterator<Item = &'a String>) -> String {
    let names = strategies.map(|name| short_name(name));
    names.collect::<Vec<_>>().join(", ")
}
