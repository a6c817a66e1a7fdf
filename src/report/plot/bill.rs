//! The bill by class of tokens: a bar for full history, and one for each strategy.

use std::collections::BTreeMap;

use super::scene::{
    Color, GREEN, HPos, INK, KeyMark, ORANGE, PURPLE, PlotScene, SKY, VERMILLION, fitted,
};
use crate::metric::CellSummary;
use crate::metric::cost::SchemeCost;
use crate::report::headline::{self, label};
use crate::report::{Report, display};
use crate::units::{Tokens, Usage, Usd};

const CLASSES: [(Color, &str); 5] = [
    (SKY, "read from the cache"),
    (ORANGE, "written to the cache"),
    (PURPLE, "plain input"),
    (GREEN, "the agent's answers"),
    (VERMILLION, "the strategy's own calls"),
];

/// The amounts of [`CLASSES`], in dollars or in input tokens.
type Amounts = [f64; CLASSES.len()];

const LEFT: f64 = 16.0;
/// The room for the total behind a bar.
const BEHIND: f64 = 90.0;
const BAR: f64 = 16.0;
const ROW: f64 = 46.0;
/// A bar is cut at so many times the bill of full history: a longer one would squeeze all others.
const LONGEST: f64 = 2.5;

/// One bar per strategy that completed every session, the best bill first.
pub(crate) fn scene(report: &Report, width: f64) -> PlotScene {
    let mut scene = PlotScene::new("The bill by class of tokens", width);
    scene.legend(&CLASSES.map(|(color, name)| (KeyMark::Band(1.0), color, name)));
    let rows = headline::rows(report).into_iter();
    let sound = rows.filter(|row| !row.is_broken() && row.name != "full");
    let full = [("full", "full history".to_owned())].into_iter();
    let bars = full.chain(sound.map(|row| (&*row.name, label(&row.name))));
    let priced = report.cells.iter().all(|cell| cell.price.is_some());
    let bars: Vec<(String, Amounts)> =
        bars.filter_map(|(name, label)| Some((label, amounts(report, name, priced)?))).collect();
    let totals = bars.iter().map(|(_, amounts)| amounts.iter().sum::<f64>());
    let Some(full) = totals.clone().next().filter(|full| *full > 0.0) else {
        scene.note("no prompt cache was simulated in this run");
        return scene;
    };
    let most = totals.clone().fold(full, f64::max).min(LONGEST * full);
    let (right, top) = (scene.right() - BEHIND, scene.y);
    let place = |amount: f64| LEFT + (amount / most).min(1.0) * (right - LEFT);
    for ((name, amounts), total) in bars.iter().zip(totals) {
        let name = fitted(name, right - LEFT);
        scene.label((LEFT, scene.y + 8.0), &name, HPos::Left);
        let (upper, mut sum) = (scene.y + 20.0, 0.0);
        for ((color, class), amount) in CLASSES.into_iter().zip(amounts) {
            let share = display::percent(amount / total);
            let words = format!("{name}: {} {class}, {share}", in_words(*amount, priced));
            let edges = [place(sum), upper, place(sum + amount), upper + BAR];
            scene.tip(&words, |scene| scene.rect(edges, color, 1.0));
            sum += amount;
        }
        let cut = if total > most { "… " } else { "" };
        let words = format!("{cut}{}", in_words(total, priced));
        scene.label((place(sum) + 8.0, upper + BAR / 2.0), &words, HPos::Left);
        scene.y += ROW;
    }
    scene.dashes(&[(place(full), top), (place(full), scene.y)], INK, 1, 0.6);
    scene.y += 12.0;
    if !priced {
        scene.paragraph("in input tokens of each session's model, since a price is unknown");
    }
    scene
}

fn in_words(amount: f64, priced: bool) -> String {
    if priced {
        Usd::of_dollars(amount).to_string()
    } else {
        display::tokens(crate::units::whole(amount))
    }
}

/// The amounts of a strategy over all sessions, repeats averaged; `None` if it completed none.
fn amounts(report: &Report, strategy: &str, priced: bool) -> Option<Amounts> {
    let mut sessions: BTreeMap<&str, Vec<Amounts>> = BTreeMap::new();
    let cells = report.cells.iter().filter(|cell| cell.strategy == strategy);
    for cell in cells.filter(|cell| cell.both_completed) {
        let amounts = of_cell(cell, priced)?;
        sessions.entry(&cell.session).or_default().push(amounts);
    }
    let mean = |repeats: &Vec<Amounts>, class: usize| {
        repeats.iter().map(|amounts| amounts[class]).sum::<f64>() / repeats.len() as f64
    };
    (!sessions.is_empty()).then(|| {
        std::array::from_fn(|class| sessions.values().map(|repeats| mean(repeats, class)).sum())
    })
}

/// The amounts of a cell, in dollars or in input tokens; `None` where a price is unknown.
pub(super) fn of_cell(cell: &CellSummary, priced: bool) -> Option<Amounts> {
    let cost: &SchemeCost = cell.costs.first()?;
    let prices = cell.price.as_ref().filter(|_| priced).map(|price| &price.per_token);
    let agent = cost.paid.agent;
    let classes = [
        agent.read(),
        agent.written(),
        Usage::uncached(agent.input_uncached, Tokens::ZERO),
        Usage::uncached(Tokens::ZERO, agent.output),
        cost.paid.strategy,
    ];
    let mut amounts = [0.0; CLASSES.len()];
    for (amount, usage) in amounts.iter_mut().zip(classes) {
        *amount = match prices {
            Some(prices) => prices.cost(&usage)?.in_dollars(),
            None => cost.prices.rates.cost(&usage) as f64 / 1_000.0,
        };
    }
    // Calls to other models are known in thousandths of an input token.
    let input = prices.and_then(|prices| prices.input);
    let unit = input.map_or(1.0, Usd::in_dollars) / 1_000.0;
    amounts[4] += cost.other_models_cost? as f64 * unit;
    Some(amounts)
}
