//! Learns head and factor from a session's usage.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Bill, Drop, Factor, Fit, HiddenThinking, Scale, SessionSizes, SizeComparison, Sizes};
use crate::session::{ContentBlock, Message, Role, Session, Tag, ToolSchema};
use crate::tokens::{CountedTexts, Size};
use crate::units::{Tokens, median};

/// Bills above this are no bills: ten times the largest window that any provider offers.
const ABSURD: Tokens = Tokens(100_000_000);

/// A head above this is missing history, not system prompt and tools: measured heads reach 42,000
/// tokens, and each connected tool server may add some thousands.
const LARGEST_HEAD: Tokens = Tokens(120_000);

/// Counted growth below this says nothing about a factor.
const LEAST_GROWTH: i128 = 500;

/// Factors outside are no tokenizer's: one token may be four characters or a part of one.
const FACTORS: std::ops::RangeInclusive<Factor> = Factor(200_000)..=Factor(6_000_000);

/// A fit is rejected if its median prompt is further from its bill, or if more than a quarter of the
/// bills fall.
const MOST_OFF: Factor = Factor(250_000);

/// How often factor and hidden thinking are solved for each other; the error at least halves each time.
const ROUNDS: usize = 40;

/// One billed call.
#[derive(Debug, Clone)]
struct Point {
    call: usize,
    /// The full history it was sent, as counted.
    counted: Size,
    billed: Tokens,
    model: usize,
    /// Rises where the history in front of a call is no longer what it was.
    segment: usize,
    /// Hidden thinking in front of it: how many messages hold some, and how many of them were
    /// written before the user typed last.
    thoughts: usize,
    thoughts_before_turn: usize,
}

impl Point {
    /// Whether two bills are of one history, and of one model.
    fn is_comparable(&self, other: &Self) -> bool {
        self.segment == other.segment && self.model == other.model
    }
}

/// A message with thinking whose words are not recorded.
#[derive(Debug, Clone, Copy)]
struct Thought {
    message: usize,
    output: Tokens,
    visible: Tokens,
    model: usize,
}

/// The billed calls of a session.
struct Bills {
    models: Vec<Arc<str>>,
    points: Vec<Point>,
    thoughts: Vec<Thought>,
    drops: Vec<Drop>,
    warnings: Vec<String>,
    /// The model of each call.
    by_call: Vec<u32>,
    is_output_partial: bool,
}

/// Head and factors, and how well they explain the bill.
#[derive(Debug, Clone)]
struct Solution {
    thinking: HiddenThinking,
    factors: Vec<Option<Factor>>,
    /// Running sums of hidden thinking, by number of messages that hold some.
    hidden: Vec<i128>,
    error: u128,
}

impl Solution {
    fn factor(&self, model: usize) -> Factor {
        self.factors[model].unwrap_or(Factor::ONE)
    }

    /// Hidden thinking in front of a call.
    fn hidden(&self, point: &Point) -> i128 {
        let sums = &self.hidden;
        match self.thinking {
            HiddenThinking::Dropped => 0,
            HiddenThinking::KeptForTurn => sums[point.thoughts] - sums[point.thoughts_before_turn],
            HiddenThinking::Kept => sums[point.thoughts],
        }
    }

    /// By how much the bill of a call exceeds its history without a head.
    fn excess(&self, point: &Point) -> i128 {
        let head = Tokens::ZERO;
        let factor = self.factor(point.model);
        let text = Scale { head, factor }.text(point.counted);
        i128::from(point.billed.0) - i128::from(text.0) - self.hidden(point)
    }

    /// The prompt of a call as replayed.
    fn replayed(&self, point: &Point, scales: &[Scale]) -> Tokens {
        scales[point.model].prompt(point.counted) + tokens(self.hidden(point))
    }

    /// The scales of all models, with these heads.
    fn scales(&self, heads: Vec<Tokens>) -> Vec<Scale> {
        let models = heads.into_iter().enumerate();
        let scale = |(model, head)| Scale {
            head,
            factor: self.factor(model),
        };
        models.map(scale).collect()
    }
}

/// Tokens of a sum that may have become negative.
fn tokens(sum: i128) -> Tokens {
    Tokens(u64::try_from(sum.max(0)).unwrap_or(u64::MAX))
}

pub(super) fn fit(session: &Session, counts: &CountedTexts, declared: Option<Tokens>) -> Bill {
    let bills = Bills::of(session, counts);
    let counted = |why: Option<String>| {
        let mut bill = Bill::counted(declared);
        bill.largest = bills.largest();
        bill.sizes.drops.clone_from(&bills.drops);
        bill.sizes.warnings.clone_from(&bills.warnings);
        bill.sizes.warnings.extend(why);
        bill
    };
    let Some(first) = bills.points.first() else {
        return counted(None);
    };
    if bills.points.len() == 1 {
        return counted(Some(
            "one call was billed: that does not tell head and text apart".to_owned(),
        ));
    }
    if let Some(why) = begins_later(session, first) {
        return counted(Some(why.to_owned()));
    }
    let Some(solution) = bills.solve(&bills.points) else {
        return counted(Some(
            "the prompts of the recording do not grow as their bill does".to_owned(),
        ));
    };
    let mut warnings = bills.warnings.clone();
    if solution.factors.iter().all(Option::is_none) {
        warnings.push(
            "the prompts grow too little to tell a factor: text is taken as counted".to_owned(),
        );
    }
    let Some(heads) = bills.heads(&solution, &bills.points, &mut warnings) else {
        return counted(Some(format!(
            "the first bill exceeds what is recorded of its prompt by more than {LARGEST_HEAD} tokens: the \
             recording begins in the middle of a session"
        )));
    };
    let scales = solution.scales(heads);
    let fit = bills.compare(&scales, &solution);
    let is_off = fit.as_ref().is_some_and(|(_, typical)| *typical > MOST_OFF);
    if is_off || bills.drops.len() * 4 > bills.points.len() {
        let why = "the bill does not follow the prompts of the recording";
        return counted(Some(why.to_owned()));
    }
    let fit = fit.map(|(fit, _)| fit);
    let factors = bills.models.iter().zip(&scales);
    let factors = factors
        .map(|(model, scale)| (model.to_string(), scale.factor))
        .collect();
    let hidden = bills.hidden(&solution);
    Bill {
        sizes: SessionSizes {
            sizes: Sizes::Billed,
            head: Some(scales[first.model].head),
            factors,
            thinking: (!bills.thoughts.is_empty() && !bills.is_output_partial)
                .then_some(solution.thinking),
            fit,
            drops: bills.drops.clone(),
            warnings,
        },
        largest: bills.largest(),
        by_call: bills.by_call,
        hidden,
        scales,
    }
}

/// Why the head cannot be learnt from the first bill: history is missing in front of it.
fn begins_later(session: &Session, first: &Point) -> Option<&'static str> {
    let messages = session.messages();
    let opening = messages.first()?;
    if first.segment > 0 {
        Some("the first billed call follows a compaction: the head is unknown")
    } else if opening.role() == Role::Assistant || opening.has_tag(Tag::Orphan) {
        Some("the recording begins in the middle of a session: the head is unknown")
    } else {
        None
    }
}

impl Bills {
    fn of(session: &Session, counts: &CountedTexts) -> Self {
        let tools = session.tools().iter().map(ToolSchema::text);
        let fixed: Size = tools
            .map(|tool| counts.schema(tool))
            .chain(session.system().map(|text| counts.size(text)))
            .sum();
        let own: Arc<str> = session.model().map_or_else(|| Arc::from(""), Arc::from);
        let mut bills = Self {
            models: Vec::new(),
            points: Vec::new(),
            thoughts: Vec::new(),
            drops: Vec::new(),
            warnings: Vec::new(),
            by_call: Vec::with_capacity(session.calls().len()),
            is_output_partial: false,
        };
        let mut known: BTreeMap<Arc<str>, usize> = BTreeMap::new();
        let mut counted = fixed;
        let mut calls = session.calls().iter().peekable();
        let mut compactions = session.compactions().iter().peekable();
        let (mut segment, mut before_turn) = (0, 0);
        let (mut absurd, mut shown, mut written) = (0_u64, Tokens::ZERO, Tokens::ZERO);
        for (at, message) in session.messages().iter().enumerate() {
            let size: Size = message.blocks().map(|block| counts.block(&block)).sum();
            while compactions.next_if(|event| event.at <= at).is_some() {
                segment += 1;
            }
            if message.has_tag(Tag::TypedUser) {
                before_turn = bills.thoughts.len();
            }
            if message.role() == Role::Assistant {
                let model = message.details.model.clone().unwrap_or_else(|| own.clone());
                let new = known.len();
                let model_at = *known.entry(model.clone()).or_insert(new);
                if model_at == bills.models.len() {
                    bills.models.push(model);
                }
                if calls.next_if(|call| **call == at).is_some() {
                    let call = bills.by_call.len();
                    bills
                        .by_call
                        .push(u32::try_from(model_at).unwrap_or(u32::MAX));
                    let billed = message
                        .details
                        .usage
                        .map_or(Tokens::ZERO, |usage| usage.prompt());
                    if billed > ABSURD {
                        absurd += 1;
                    } else if billed > Tokens::ZERO {
                        bills.add(Point {
                            call,
                            counted,
                            billed,
                            model: model_at,
                            segment,
                            thoughts: bills.thoughts.len(),
                            thoughts_before_turn: before_turn,
                        });
                        segment = bills.points.last().map_or(segment, |point| point.segment);
                    }
                }
                let output = message
                    .details
                    .usage
                    .map_or(Tokens::ZERO, |usage| usage.output);
                if output > Tokens::ZERO && output <= ABSURD {
                    shown += size.tokens;
                    written += output;
                }
                if hides_thinking(message, &session.source().format) && output <= ABSURD {
                    bills.thoughts.push(Thought {
                        message: at,
                        output,
                        visible: size.tokens,
                        model: model_at,
                    });
                }
            }
            counted += size;
        }
        if absurd > 0 {
            bills.warnings.push(format!(
                "calls with a bill of more than {ABSURD} tokens, which is not believed: {absurd}"
            ));
        }
        // A counter that was written before the answer was whole is far below what it wrote.
        bills.is_output_partial = shown > written;
        bills
    }

    /// Adds a billed call. A bill that falls though the history grew is that of another history.
    fn add(&mut self, mut point: Point) {
        if let Some(last) = self.points.last() {
            point.segment = point.segment.max(last.segment);
            if point.is_comparable(last)
                && point.billed.0.saturating_mul(5) < last.billed.0.saturating_mul(4)
            {
                self.drops.push(Drop {
                    call: point.call,
                    before: last.billed,
                    after: point.billed,
                });
                point.segment += 1;
            }
        }
        self.points.push(point);
    }

    fn largest(&self) -> Tokens {
        let billed = self.points.iter().map(|point| point.billed);
        billed.max().unwrap_or_default()
    }

    /// The tokens of a thought, as billed with these factors: the output without the visible text.
    fn tokens_of(&self, thought: &Thought, factors: &[Option<Factor>]) -> Tokens {
        if self.is_output_partial {
            return Tokens::ZERO;
        }
        let factor = factors[thought.model].unwrap_or(Factor::ONE);
        thought.output - factor.bill(thought.visible)
    }

    /// Running sums of hidden thinking, by number of messages that hold some.
    fn running(&self, factors: &[Option<Factor>]) -> Vec<i128> {
        let mut sums = vec![0_i128];
        for thought in &self.thoughts {
            let last = sums[sums.len() - 1];
            sums.push(last + i128::from(self.tokens_of(thought, factors).0));
        }
        sums
    }

    /// The factors under which these calls are explained best.
    fn solve(&self, points: &[Point]) -> Option<Solution> {
        let hypotheses = [
            HiddenThinking::Dropped,
            HiddenThinking::KeptForTurn,
            HiddenThinking::Kept,
        ];
        // Without hidden thinking all three say the same.
        let is_open = !self.thoughts.is_empty() && !self.is_output_partial;
        let tried = if is_open {
            &hypotheses[..]
        } else {
            &hypotheses[..1]
        };
        let solved = tried
            .iter()
            .filter_map(|thinking| self.under(*thinking, points));
        // Of equal ones `min_by_key` takes the first.
        solved.min_by_key(|solution| solution.error)
    }

    fn under(&self, thinking: HiddenThinking, points: &[Point]) -> Option<Solution> {
        let factors: Vec<Option<Factor>> = vec![None; self.models.len()];
        let mut solution = Solution {
            thinking,
            hidden: self.running(&factors),
            factors,
            error: 0,
        };
        for _ in 0..ROUNDS {
            let next = self.factors(points, &solution);
            if next == solution.factors {
                break;
            }
            solution.hidden = self.running(&next);
            solution.factors = next;
        }
        // A model that was asked too little is taken to count as the others do.
        let pooled = solution.factors.iter().flatten().next().copied();
        for factor in &mut solution.factors {
            *factor = factor.or(pooled);
            if factor.is_some_and(|factor| !FACTORS.contains(&factor)) {
                return None;
            }
        }
        solution.hidden = self.running(&solution.factors);
        let mut start: Option<(&Point, i128)> = None;
        for point in points {
            let excess = solution.excess(point);
            match start {
                Some((first, of_first)) if first.is_comparable(point) => {
                    let off = (excess - of_first).unsigned_abs();
                    solution.error = solution.error.saturating_add(off.saturating_mul(off));
                }
                _ => start = Some((point, excess)),
            }
        }
        Some(solution)
    }

    /// The ratio of sums by model: billed growth over counted growth between calls of one segment.
    fn factors(&self, points: &[Point], solution: &Solution) -> Vec<Option<Factor>> {
        let mut sums = vec![(0_i128, 0_i128); self.models.len()];
        for pair in points.windows(2) {
            let [one, two] = pair else { continue };
            if !one.is_comparable(two) {
                continue;
            }
            let exact = |point: &Point| i128::from(point.counted.exact.0) + solution.hidden(point);
            let text = |point: &Point| i128::from((point.counted.tokens - point.counted.exact).0);
            let grown = i128::from(two.billed.0) - i128::from(one.billed.0);
            let (billed, counted) = &mut sums[one.model];
            *billed += grown - (exact(two) - exact(one));
            *counted += text(two) - text(one);
        }
        let ratio = |(billed, counted): (i128, i128)| {
            if counted < LEAST_GROWTH {
                return None;
            }
            Factor::of(tokens(billed), tokens(counted))
        };
        sums.into_iter().map(ratio).collect()
    }

    /// The head in front of each model's prompts; `None` where the first bill shows that history is
    /// missing.
    fn heads(
        &self,
        solution: &Solution,
        points: &[Point],
        warnings: &mut Vec<String>,
    ) -> Option<Vec<Tokens>> {
        let first = points.first()?;
        let head = solution.excess(first);
        if head < 0 {
            warnings.push(format!(
                "the first bill is {} tokens below what is recorded of its prompt: the head is taken as 0",
                -head
            ));
        }
        let head = tokens(head);
        if head > LARGEST_HEAD {
            return None;
        }
        // The same head in another model's tokens.
        let counted = solution.factor(first.model).count(head);
        let heads = (0..self.models.len()).map(|model| solution.factor(model).bill(counted));
        Some(heads.collect())
    }

    /// Hidden thinking by message, as far as it stays in the prompt.
    fn hidden(&self, solution: &Solution) -> BTreeMap<usize, Tokens> {
        if solution.thinking == HiddenThinking::Dropped {
            return BTreeMap::new();
        }
        let of = |thought: &Thought| (thought.message, self.tokens_of(thought, &solution.factors));
        let all = self.thoughts.iter().map(of);
        all.filter(|(_, tokens)| *tokens > Tokens::ZERO).collect()
    }

    /// The prompts of the full history compared with their bills, and by how much the median one is
    /// off, as a share of its bill.
    fn compare(&self, scales: &[Scale], solution: &Solution) -> Option<(Fit, Factor)> {
        let points = self.points.iter();
        let points: Vec<&Point> = points.take_while(|point| point.segment == 0).collect();
        let compared = |point: &&Point| SizeComparison {
            billed: point.billed,
            replayed: solution.replayed(point, scales),
        };
        let all: Vec<SizeComparison> = points.iter().map(compared).collect();
        let counted = points.iter().map(|point| point.counted.tokens).sum();
        let billed = points.iter().map(|point| point.billed).sum();
        let held_out = || {
            let (learnt, tried) = points.split_at(points.len() / 2);
            let learnt: Vec<Point> = learnt.iter().copied().cloned().collect();
            let solution = self.solve(&learnt)?;
            solution.factors.iter().flatten().next()?;
            let heads = self.heads(&solution, &learnt, &mut Vec::new())?;
            let scales = solution.scales(heads);
            let ratio =
                |point: &&Point| Factor::of(solution.replayed(point, &scales), point.billed);
            let mut ratios: Vec<Factor> = tried.iter().filter_map(ratio).collect();
            ratios.sort_unstable();
            median(&ratios, |one, two| Factor(u64::midpoint(one.0, two.0)))
        };
        let of = |size: fn(&SizeComparison) -> Tokens| {
            let mut sizes: Vec<Tokens> = all.iter().map(size).collect();
            sizes.sort_unstable();
            median(&sizes, |one, two| Tokens(u64::midpoint(one.0, two.0)))
        };
        let off = |it: &SizeComparison| {
            let off = it.billed.0.abs_diff(it.replayed.0);
            Factor::of(Tokens(off), it.billed)
        };
        let mut offs: Vec<Factor> = all.iter().filter_map(off).collect();
        offs.sort_unstable();
        let typical = *offs.get(offs.len() / 2)?;
        let fit = Fit {
            calls: all.len(),
            first: *all.first()?,
            median: SizeComparison {
                billed: of(|it| it.billed)?,
                replayed: of(|it| it.replayed)?,
            },
            last: *all.last()?,
            counted: Factor::of(counted, billed)?,
            held_out: held_out(),
        };
        Some((fit, typical))
    }
}

/// Formats that show a summary in place of the thinking.
const SUMMARISE_THINKING: [&str; 2] = ["codex", "openai-responses"];

/// Whether the message holds thinking whose words are not recorded, but for a signature.
fn hides_thinking(message: &Message, format: &str) -> bool {
    let may_show = SUMMARISE_THINKING.contains(&format);
    message.content().iter().any(|block| match block {
        ContentBlock::Thinking(thinking) => {
            thinking.signature.is_some() && (may_show || thinking.text.is_empty())
        }
        _ => false,
    })
}
