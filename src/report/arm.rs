//! Every metric of one strategy over all its sessions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::metric::CellSummary;
use crate::metric::answers::{Accuracy, Answers, Extract, Scope};
use crate::metric::calls::ModelCalls;
use crate::metric::compaction::StageTotal;
use crate::metric::cost::{Bill, SchemeCost};
use crate::metric::fidelity::Failings;
pub use crate::metric::fidelity::{LOWEST_CEILING, LOWEST_SPAN};
use crate::metric::strain::Strain;
use crate::metric::summaries::Summaries;
use crate::metric::survival::Score;
use crate::metric::trail::{self, Trail};
use crate::probe::ProbeKind;
use crate::record::TrailCounts;
use crate::report::cost::ArmCost;
use crate::stats::Estimate;
use crate::units::Tokens;

mod fidelity;

pub use fidelity::Fidelity;

/// Every metric of one strategy over all its sessions.
///
/// Repeats of a session are averaged first, so that each session weighs the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArmSummary {
    /// The strategy's name, or `full` or `empty`.
    pub strategy: String,
    /// Cells.
    pub cells: usize,
    /// Sessions these cells are of.
    pub sessions: usize,
    /// Calls reached, over all cells.
    pub reached: usize,
    /// Calls planned, over all cells.
    pub planned: usize,
    /// Sessions in which a patch was applied, in any repeat.
    pub fired: usize,
    /// Calls at which cells died, ascending.
    pub deaths: Vec<usize>,
    /// Calls at which the strategy failed, ascending.
    pub failures: Vec<usize>,
    /// Calls whose prompt would have been rejected.
    pub rejected: usize,
    /// Findings of level `warning`.
    pub warnings: usize,
    /// Prompts refused as too long, recovered or not.
    pub overflows: usize,
    /// How near the window prompts came, and how restless the strategy was, over all cells.
    pub strain: Strain,
    /// `1 − S/S⁰`; its items are calls.
    pub token_savings: Option<Estimate>,
    /// `1 − ΣS/ΣS⁰`: exact.
    pub token_savings_of_totals: Option<f64>,
    /// What it costs under each bill, the one of the comparison first.
    pub costs: Vec<ArmCost>,
    /// As if the strategy's own calls were free.
    pub token_savings_without_calls: Option<Estimate>,
    /// The largest prompt that was sent.
    pub peak_prompt: Option<Tokens>,
    /// All planted items, corrected for chance.
    pub survival: Option<Estimate>,
    /// The same before the correction.
    pub survival_uncorrected: Option<Estimate>,
    /// In the compacted region, corrected for chance.
    pub survival_compacted: Option<Estimate>,
    /// Planted items that are gone and could be read again.
    pub survival_reachable: Option<Estimate>,
    /// By kind, uncorrected; that of `decoy` is the chance rate.
    pub survival_by_kind: BTreeMap<&'static str, Estimate>,
    /// What the reader made of it; nothing where nobody was asked.
    pub answers: Option<ArmAnswers>,
    /// What the reader made of the summaries in it alone; nothing where it was not asked.
    pub summary_answers: Option<ArmAnswers>,
    /// Atoms of tool calls that were present; its items are atoms.
    pub action_support: Option<Estimate>,
    /// The same for atoms of which some occurrence has been compacted.
    pub action_support_compacted: Option<Estimate>,
    /// All prompts together, over all cells.
    pub area: Tokens,
    /// What compactions left free of the effective window; its items are patches.
    pub headroom: Option<Estimate>,
    /// Atoms of tool calls that are gone and could be read again; its items are atoms.
    pub action_reachable: Option<Estimate>,
    /// What compactions left of the messages; its items are patches.
    pub retained: Option<Estimate>,
    /// Patches that were applied.
    pub compactions: usize,
    /// By stage.
    pub stages: BTreeMap<String, StageTotal>,
    /// Calls the strategy made.
    pub model_calls: ModelCalls,
    /// The mean summary, over all cells.
    pub summary_tokens: Option<Tokens>,
    /// Token savings after what is missing was read again; its items are calls.
    pub net_savings: Option<Estimate>,
    /// Calls by which that would be done, over all cells; nothing where nobody looked.
    pub reread_calls: Option<usize>,
    /// Which files can be told from the prompts; its items are files, call by call.
    pub trail: ArmTrail,
    /// Atoms of summaries that nobody said; its items are atoms.
    pub unsupported_atoms: Option<Estimate>,
}

/// Which files can be told from a strategy's prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ArmTrail {
    /// Of what is told, the share that is true.
    pub precision: Option<Estimate>,
    /// Of what is true, the share that is told.
    pub recall: Option<Estimate>,
    /// Their harmonic mean, session by session.
    pub f1: Option<Estimate>,
    /// All cells together, verb by verb.
    pub counts: Option<Trail>,
}

/// What a reader made of a strategy's prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "reader", rename_all = "snake_case")]
pub enum ArmAnswers {
    /// The reader is no language model.
    Extract {
        /// Share answered right.
        right: Option<Estimate>,
        /// The least and the most it may be, where items have no score.
        #[serde(skip_serializing_if = "Option::is_none")]
        bounds: Option<(f64, f64)>,
        /// Outcomes over all cells.
        outcomes: Extract,
    },
    /// The reader is a model.
    Accuracy {
        /// Mean score.
        accuracy: Option<Estimate>,
        /// The least and the most it may be, where items have no score.
        #[serde(skip_serializing_if = "Option::is_none")]
        bounds: Option<(f64, f64)>,
        /// Relative to full history.
        fidelity: Fidelity,
        /// The least and the most it may be, where items have no score here or under full history.
        #[serde(skip_serializing_if = "Option::is_none")]
        fidelity_bounds: Option<(f64, f64)>,
        /// `F* = (acc − acc_empty)/(acc_full − acc_empty)`, over what was scored in all three;
        /// nothing where fidelity is refused, and without an empty arm.
        normalised: Option<Estimate>,
        /// In which ways answers are wrong, by name.
        failings: BTreeMap<&'static str, Estimate>,
        /// Share of decoys answered with a concrete value.
        invented: Option<Estimate>,
        /// Items that were not graded.
        unscored: usize,
        /// Of these, those that rules cannot confirm and no judge was asked about.
        needs_judge: usize,
        /// Items that did not qualify: they count in accuracy, and not in fidelity.
        unqualified: usize,
    },
}

/// Accuracy under full history and under empty context: what fidelity is measured between.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Anchors {
    /// `acc_full`.
    pub full: Option<f64>,
    /// `acc_empty`.
    pub empty: Option<f64>,
}

impl ArmSummary {
    /// Sums up the cells of one strategy.
    pub fn of(strategy: &str, cells: &[&CellSummary], anchors: Anchors) -> Self {
        let sum = |count: fn(&CellSummary) -> usize| cells.iter().map(|cell| count(cell)).sum();
        let mut deaths: Vec<usize> = cells.iter().filter_map(|c| c.completion.died_at).collect();
        deaths.sort_unstable();
        let mut failures: Vec<usize> = cells
            .iter()
            .filter_map(|c| c.completion.failed_at)
            .collect();
        failures.sort_unstable();
        let mut fired: Vec<&str> = cells
            .iter()
            .filter(|cell| cell.fired())
            .map(|cell| cell.session.as_str())
            .collect();
        fired.sort_unstable();
        fired.dedup();
        let mut stages: BTreeMap<String, StageTotal> = BTreeMap::new();
        for (stage, total) in cells.iter().flat_map(|cell| &cell.stages) {
            let entry = stages.entry(stage.clone()).or_default();
            *entry = entry.plus(*total);
        }
        let by_kind: BTreeMap<&'static str, Estimate> = ProbeKind::ALL
            .into_iter()
            .filter_map(|kind| {
                let estimate = score(cells, |cell| cell.survival.of_kind(kind))?;
                Some((kind.name(), estimate))
            })
            .collect();
        let chance = by_kind
            .get(ProbeKind::Decoy.name())
            .map_or(0.0, |decoys| decoys.point_estimate);
        let compacted_chance = score(cells, |cell| cell.survival.compacted_decoys)
            .map_or(chance, |decoys| decoys.point_estimate);
        let survival_uncorrected = score(cells, |cell| cell.survival.planted());
        Self {
            strategy: strategy.to_owned(),
            cells: cells.len(),
            sessions: by_session(cells, |_| Some((1.0, 1))).0.len(),
            reached: sum(|cell| cell.completion.reached),
            planned: sum(|cell| cell.completion.planned),
            fired: fired.len(),
            deaths,
            failures,
            rejected: sum(|cell| cell.findings.rejected),
            warnings: sum(|cell| cell.findings.warnings),
            overflows: sum(|cell| cell.findings.overflows),
            strain: cells
                .iter()
                .fold(Strain::default(), |total, cell| total.plus(cell.strain)),
            token_savings: estimate(cells, |cell| {
                let savings = cell.savings?;
                Some((savings.share()?, savings.calls))
            }),
            token_savings_of_totals: savings_of_totals(cells),
            costs: costs(cells),
            token_savings_without_calls: estimate(cells, |cell| {
                let savings = cell.savings?;
                Some((savings.share_without_calls()?, savings.calls))
            }),
            peak_prompt: cells.iter().filter_map(|cell| cell.peak_prompt).max(),
            survival: survival_uncorrected.and_then(|found| found.corrected_for_chance(chance)),
            survival_uncorrected,
            survival_compacted: score(cells, |cell| cell.survival.compacted)
                .and_then(|found| found.corrected_for_chance(compacted_chance)),
            survival_reachable: score(cells, |cell| cell.survival.reachable),
            survival_by_kind: by_kind,
            answers: answers(cells, anchors, Scope::Context),
            summary_answers: answers(cells, anchors, Scope::Summaries),
            action_support: estimate(cells, |cell| {
                Some((cell.support.share()?, count(cell.support.wanted)))
            }),
            action_support_compacted: estimate(cells, |cell| {
                let share = cell.support.compacted_share()?;
                Some((share, count(cell.support.compacted_wanted)))
            }),
            area: cells.iter().map(|cell| cell.area).sum(),
            headroom: estimate(cells, |cell| Some((cell.headroom?, cell.compactions()))),
            action_reachable: estimate(cells, |cell| {
                let share = cell.support.reachable_share()?;
                Some((share, count(cell.support.wanted)))
            }),
            retained: estimate(cells, |cell| Some((cell.retained?, cell.compactions()))),
            compactions: sum(CellSummary::compactions),
            stages,
            model_calls: cells.iter().fold(ModelCalls::default(), |total, cell| {
                total.plus(cell.model_calls)
            }),
            summary_tokens: summaries(cells).mean(),
            net_savings: estimate(cells, |cell| {
                let savings = cell.savings?;
                Some((cell.rereads?.net_savings(&savings)?, savings.calls))
            }),
            reread_calls: cells
                .iter()
                .filter_map(|cell| cell.rereads)
                .map(|rereads| rereads.calls)
                .reduce(|sum, calls| sum + calls),
            trail: arm_trail(cells),
            unsupported_atoms: estimate(cells, |cell| {
                let atoms = cell.summary_atoms.as_ref()?;
                Some((trail::unsupported_share(atoms)?, count(atoms.atoms)))
            }),
        }
    }

    /// Calls reached / planned; nothing without calls. Exact.
    pub fn completion(&self) -> Option<f64> {
        (self.planned > 0).then(|| self.reached as f64 / self.planned as f64)
    }

    /// Why the strategy takes part in no ranking: `2 rejected, died at 57`. Nothing if it does.
    ///
    /// A session that ended early must never look cheap, and a prompt that would have been
    /// refused saves nothing.
    pub fn broken(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.rejected > 0 {
            parts.push(format!("{} rejected", self.rejected));
        }
        for (word, calls) in [("died", &self.deaths), ("failed", &self.failures)] {
            match calls.as_slice() {
                [] => {}
                [call] if self.cells == 1 => parts.push(format!("{word} at {call}")),
                [first, ..] => parts.push(format!(
                    "{word} in {} of {}, first at {first}",
                    calls.len(),
                    self.cells
                )),
            }
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

impl Anchors {
    fn bare(self) -> crate::metric::fidelity::Anchors {
        let Self { full, empty } = self;
        crate::metric::fidelity::Anchors { full, empty }
    }

    /// The anchors, from the cells of `full` and of `empty`.
    pub fn of(full: &[&CellSummary], empty: &[&CellSummary]) -> Self {
        let accuracy = |cells: &[&CellSummary]| {
            score(cells, |cell| {
                model(cell, Scope::Context)
                    .map(|a| a.score)
                    .unwrap_or_default()
            })
            .map(|estimate| estimate.point_estimate)
        };
        Self {
            full: accuracy(full),
            empty: accuracy(empty),
        }
    }
}

fn arm_trail(cells: &[&CellSummary]) -> ArmTrail {
    let share = |share: fn(&TrailCounts) -> Option<f64>, of: fn(&TrailCounts) -> u64| {
        estimate(cells, |cell| {
            let counts = cell.trail?.total();
            Some((share(&counts)?, count(of(&counts))))
        })
    };
    ArmTrail {
        precision: share(trail::precision, |counts| counts.told),
        recall: share(trail::recall, |counts| counts.touched),
        f1: share(trail::f1, |counts| counts.touched),
        counts: cells
            .iter()
            .filter_map(|cell| cell.trail)
            .reduce(Trail::plus),
    }
}

/// The summaries of all cells.
fn summaries(cells: &[&CellSummary]) -> Summaries {
    let all = cells.iter().flat_map(|cell| &cell.summaries.0);
    Summaries(all.copied().collect())
}

fn costs(cells: &[&CellSummary]) -> Vec<ArmCost> {
    let under = |bill: Bill| {
        let of = |cell: &'_ CellSummary| SchemeCost::under_bill(&cell.costs, &bill).cloned();
        let of_cells: Vec<SchemeCost> = cells.iter().filter_map(|cell| of(cell)).collect();
        ArmCost {
            savings: estimate(cells, |cell| {
                let cost = of(cell)?;
                Some((cost.share()?, cost.calls))
            }),
            read_share: estimate(cells, |cell| {
                let cost = of(cell)?;
                Some((cost.read_share()?, cost.calls))
            }),
            saved: [0, 1, 2].map(|quarter| {
                estimate(cells, |cell| {
                    let cost = of(cell)?;
                    Some((cost.by_call?.saved(quarter)?, cost.calls))
                })
            }),
            ..ArmCost::of(bill.clone(), &of_cells)
        }
    };
    let bills = Bill::all(cells.iter().map(|cell| &*cell.costs));
    bills.into_iter().map(under).collect()
}

fn answers(cells: &[&CellSummary], anchors: Anchors, scope: Scope) -> Option<ArmAnswers> {
    match cells.iter().find_map(|cell| in_scope(cell, scope))? {
        Answers::Extract(_) => {
            let extract = |cell: &CellSummary| match in_scope(cell, scope) {
                Some(Answers::Extract(extract)) => Some(*extract),
                Some(Answers::Accuracy(_)) | None => None,
            };
            let outcomes = cells
                .iter()
                .filter_map(|cell| extract(cell))
                .fold(Extract::default(), Extract::plus);
            Some(ArmAnswers::Extract {
                right: estimate(cells, |cell| {
                    let extract = extract(cell)?;
                    Some((extract.right_share()?, extract.scored()))
                }),
                bounds: outcomes.right_bounds(),
                outcomes,
            })
        }
        Answers::Accuracy(_) => {
            let part = |part: fn(&Accuracy) -> Score| {
                score(cells, move |cell| {
                    model(cell, scope).map(part).unwrap_or_default()
                })
            };
            let sum = |count: fn(&Accuracy) -> usize| {
                let models = cells.iter().filter_map(|cell| model(cell, scope));
                models.map(count).sum::<usize>()
            };
            let unqualified = sum(|accuracy| accuracy.unqualified);
            Some(ArmAnswers::Accuracy {
                accuracy: part(|accuracy| accuracy.score),
                bounds: between(
                    part(|accuracy| accuracy.bounds.worst),
                    part(|accuracy| accuracy.bounds.best),
                ),
                fidelity: fidelity::relative(cells, scope, anchors, unqualified > 0),
                fidelity_bounds: fidelity::bounds(cells, scope, anchors),
                normalised: fidelity::normalised(cells, scope, anchors),
                failings: FAILINGS
                    .into_iter()
                    .filter_map(|(name, of)| {
                        let rate =
                            |cell: &CellSummary| model(cell, scope).map(|it| of(&it.failings));
                        let estimate = score(cells, |cell| rate(cell).unwrap_or_default())?;
                        Some((name, estimate))
                    })
                    .collect(),
                invented: part(|accuracy| accuracy.invented),
                unscored: sum(|accuracy| accuracy.unscored),
                needs_judge: sum(|accuracy| accuracy.needs_judge),
                unqualified,
            })
        }
    }
}

/// Two estimates as the ends of what a value may be; nothing where they are one.
fn between(worst: Option<Estimate>, best: Option<Estimate>) -> Option<(f64, f64)> {
    let (worst, best) = (worst?.point_estimate, best?.point_estimate);
    (worst < best).then_some((worst, best))
}

/// A failing: its name in tables, and its rate.
pub(super) type Failing = (&'static str, fn(&Failings) -> Score);

/// The failings of a reader, each with its name in tables.
pub(super) const FAILINGS: [Failing; 8] = [
    ("omitted", |failings| failings.omitted),
    ("distorted", |failings| failings.distorted),
    ("stale", |failings| failings.stale),
    ("misbound", |failings| failings.misbound),
    ("hallucinated", |failings| failings.hallucinated),
    ("overclaimed", |failings| failings.overclaimed),
    ("compliance_kept", |failings| failings.compliance_kept),
    ("compliance_dropped", |failings| failings.compliance_dropped),
];

fn in_scope(cell: &CellSummary, scope: Scope) -> Option<&Answers> {
    match scope {
        Scope::Context => cell.answers.as_ref(),
        Scope::Summaries => cell.summary_answers.as_ref(),
    }
}

fn model(cell: &CellSummary, scope: Scope) -> Option<&Accuracy> {
    match in_scope(cell, scope) {
        Some(Answers::Accuracy(accuracy)) => Some(accuracy),
        Some(Answers::Extract(_)) | None => None,
    }
}

fn savings_of_totals(cells: &[&CellSummary]) -> Option<f64> {
    let (spent, reference) = cells.iter().filter_map(|cell| cell.savings).fold(
        (Tokens::ZERO, Tokens::ZERO),
        |(spent, reference), savings| {
            (
                spent + savings.prompts + savings.strategy,
                reference + savings.reference,
            )
        },
    );
    Some(1.0 - spent.share_of(reference)?)
}

fn count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn score(cells: &[&CellSummary], score: impl Fn(&CellSummary) -> Score) -> Option<Estimate> {
    estimate(cells, |cell| {
        let score = score(cell);
        Some((score.mean()?, score.items))
    })
}

fn estimate(
    cells: &[&CellSummary],
    value: impl Fn(&CellSummary) -> Option<(f64, usize)>,
) -> Option<Estimate> {
    let (values, items) = by_session(cells, value);
    Estimate::of_sessions(&values, items)
}

/// Two values per session, each the mean over its repeats, and the observations behind them all.
fn by_session_pair(
    cells: &[&CellSummary],
    value: impl Fn(&CellSummary) -> Option<((f64, f64), usize)>,
) -> (Vec<(f64, f64)>, usize) {
    let (left, items) = by_session(cells, |cell| value(cell).map(|(both, n)| (both.0, n)));
    let (right, _) = by_session(cells, |cell| value(cell).map(|(both, n)| (both.1, n)));
    (left.into_iter().zip(right).collect(), items)
}

/// One value per session, the mean over its repeats, and the observations behind them all.
fn by_session(
    cells: &[&CellSummary],
    value: impl Fn(&CellSummary) -> Option<(f64, usize)>,
) -> (Vec<f64>, usize) {
    let mut sessions: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    let mut items = 0;
    for cell in cells {
        if let Some((value, observations)) = value(cell) {
            let (sum, repeats) = sessions.entry(&cell.session).or_default();
            *sum += value;
            *repeats += 1;
            items += observations;
        }
    }
    let means = sessions
        .values()
        .map(|(sum, repeats)| sum / *repeats as f64)
        .collect();
    (means, items)
}
