//! Which bills follow from each other, and at what rates.

use super::points::{BillPoint, Points, tokens};
use super::{Drop, Factor, HiddenThinking};

/// Counted growth below this says nothing about a factor.
const LEAST_GROWTH: i64 = 500;

/// Factors outside are no tokenizer's: one token may be four characters or a part of one.
const FACTORS: std::ops::RangeInclusive<Factor> = Factor(200_000)..=Factor(6_000_000);

/// How far back a bill may go on from another one: what is billed between is that of other requests.
const LOOK_BACK: usize = 8;

/// A bill that others agree with, and how it stands to the one before.
#[derive(Debug, Clone, Copy)]
pub(super) struct Anchor {
    pub(super) point: BillPoint,
    pub(super) step: BillStep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BillStep {
    /// As expected.
    Grows,
    /// Far more than expected.
    Rises,
    /// Far less.
    Falls,
}

/// What one counted token of each model is billed as, and how long hidden thinking stays.
#[derive(Debug, Clone)]
pub(super) struct FollowedRates {
    pub(super) factors: Vec<Option<Factor>>,
    pub(super) thinking: HiddenThinking,
}

impl FollowedRates {
    pub(super) fn factor(&self, model: usize) -> Factor {
        let all = self.factors.iter().flatten();
        self.factors[model].or(all.copied().next()).unwrap_or(Factor::ONE)
    }

    /// How the bill goes on from `one` to `two`.
    fn step(&self, points: &Points, one: &BillPoint, two: &BillPoint) -> BillStep {
        let factor = self.factor(one.model);
        let added = points.expected(one.message..two.message, factor, self.thinking);
        let expected = (one.billed + added).max(1);
        // Another model may count half of it, or twice.
        let (least, most) = if one.model == two.model { (0.8, 1.25) } else { (0.5, 2.0) };
        let may_leave = match self.thinking {
            HiddenThinking::Dropped => 0,
            HiddenThinking::KeptForTurn | HiddenThinking::Kept => {
                points.may_leave(one, two, factor)
            }
        };
        let ratio = two.billed as f64 / expected as f64;
        let ratio_without = two.billed as f64 / (expected - may_leave).max(1) as f64;
        if ratio > most {
            BillStep::Rises
        } else if ratio_without < least {
            BillStep::Falls
        } else {
            BillStep::Grows
        }
    }
}

/// The rates at which these bills, each with the one it goes on from, grow: the ratio of the sums.
///
/// Within a turn thinking whose words are hidden stays in the prompt, or it was never billed there: what explains
/// the bills better holds. A model whose ratio is no tokenizer's has none of its own; `None` if that is so of all.
pub(super) fn rates(points: &Points, pairs: &[(BillPoint, BillPoint)]) -> Option<FollowedRates> {
    let hides =
        pairs.iter().any(|pair| points.between(pair).written > 0) && !points.is_output_partial;
    let within: Vec<(BillPoint, BillPoint)> = if hides {
        pairs.iter().filter(|pair| points.between(pair).typed == 0).copied().collect()
    } else {
        Vec::new()
    };
    let text: i64 = within.iter().map(|pair| points.between(pair).text).sum();
    let pairs = if text < LEAST_GROWTH { pairs } else { &within };
    let tried = if hides {
        &[HiddenThinking::Dropped, HiddenThinking::Kept][..]
    } else {
        &[HiddenThinking::Dropped]
    };
    let solved = tried.iter().filter_map(|thinking| {
        let mut sums = vec![(0_i64, 0_i64); points.models.len()];
        for pair in pairs {
            let added = points.between(pair);
            let (billed, counted) = &mut sums[pair.0.model];
            *billed += pair.1.billed - pair.0.billed - added.images;
            *counted += added.text;
            if *thinking == HiddenThinking::Kept {
                *billed -= added.written;
                *counted -= added.shown;
            }
        }
        let ratios = sums.into_iter().map(|(billed, counted)| {
            (counted >= LEAST_GROWTH).then(|| Factor::of(tokens(billed), tokens(counted)))?
        });
        let mut factors: Vec<Option<Factor>> = ratios.collect();
        let known = factors.iter().any(Option::is_some);
        for factor in &mut factors {
            *factor = factor.filter(|factor| FACTORS.contains(factor));
        }
        if known && factors.iter().all(Option::is_none) {
            return None;
        }
        let rates = FollowedRates { factors, thinking: *thinking };
        let error = pairs.iter().map(|(one, two)| {
            let factor = rates.factor(one.model);
            let expected = points.expected(one.message..two.message, factor, *thinking);
            let off = i128::from(two.billed - one.billed - expected);
            off * off
        });
        Some((error.sum::<i128>(), rates))
    });
    // Of equal ones `min_by_key` takes the first.
    let best = solved.min_by_key(|(error, _)| *error);
    best.map(|(_, rates)| rates)
}

/// Two bills of one model and one history.
fn pairs(bills: &[Anchor]) -> Vec<(BillPoint, BillPoint)> {
    let pairs = bills.windows(2).map(|pair| (pair[0], pair[1])).filter(|(one, two)| {
        two.step == BillStep::Grows
            && one.point.model == two.point.model
            && one.point.segment == two.point.segment
    });
    pairs.map(|(one, two)| (one.point, two.point)).collect()
}

/// The bills that follow from each other. Those of other requests in between, and those that add up several, are
/// not among them.
fn followed(points: &Points, bills: &[BillPoint], rates: &FollowedRates) -> Vec<Anchor> {
    let mut anchors: Vec<Anchor> = Vec::with_capacity(bills.len());
    for point in bills {
        let last = anchors.last().filter(|last| last.point.segment == point.segment);
        let mut new = last.map_or(BillStep::Grows, |last| rates.step(points, &last.point, point));
        if match (last, new) {
            (Some(_), BillStep::Falls) => true,
            (Some(last), BillStep::Rises) => last.step == BillStep::Falls,
            _ => false,
        } {
            let history = anchors.iter().rev();
            let back = history
                .take_while(|anchor| anchor.point.segment == point.segment)
                .take(LOOK_BACK)
                .position(|anchor| rates.step(points, &anchor.point, point) == BillStep::Grows);
            if let Some(back) = back {
                anchors.truncate(anchors.len() - back);
                new = BillStep::Grows;
            }
        }
        anchors.push(Anchor { point: *point, step: new });
    }
    anchors
}

/// The rates of these bills, and those that follow from each other.
pub(super) fn anchors(
    points: &Points,
    bills: &[BillPoint],
) -> Option<(FollowedRates, Vec<Anchor>)> {
    let near = bills.windows(2).map(|pair| (pair[0], pair[1])).filter(|(one, two)| {
        one.model == two.model && one.segment == two.segment && two.billed * 5 >= one.billed * 4
    });
    let near: Vec<(BillPoint, BillPoint)> = near.collect();
    // A bill that no text explains is that of another request, or wrong. Where all are, there is no rate.
    let mut explained = near.clone();
    explained.retain(|(one, two)| {
        let most = points.expected(one.message..two.message, *FACTORS.end(), HiddenThinking::Kept);
        two.billed - one.billed <= most
    });
    if explained.is_empty() {
        explained = near;
    }
    let rates = self::rates(points, &explained)?;
    let anchors = followed(points, bills, &rates);
    let rates = self::rates(points, &pairs(&anchors))?;
    Some((rates, anchors))
}

/// Falls of the bill by more than a fifth that nothing explains.
pub(super) fn drops(anchors: &[Anchor]) -> Vec<Drop> {
    let falls = anchors.windows(2).map(|pair| (pair[0].point, pair[1])).filter(|(one, two)| {
        two.step == BillStep::Falls
            && one.segment == two.point.segment
            && two.point.billed * 5 < one.billed * 4
    });
    let drops = falls.map(|(one, two)| Drop {
        call: two.point.call,
        before: tokens(one.billed),
        after: tokens(two.point.billed),
    });
    drops.collect()
}
